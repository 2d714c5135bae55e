# ruff: noqa: N802 - SQLite's names
"""A SQLite VFS over the real ``unix`` one that loses power and breaks disks, on demand.

    with shim_vfs() as vfs:
        connection = apsw.Connection(str(path), vfs=vfs.name)
        ...
        vfs.power_loss(tmp_path / "after")      # then open after/<same file name> with the ordinary VFS

Reads, locks and shared memory are the real ones. Writes and syncs are done for real and told to a
``disk.Disk``.

Limits. Every connection to the database must go through the same shim: what another VFS, process or
``os.unlink`` does to the files is not seen (another length is noticed at the next open). A file found at the
first open counts as durable. Images live in memory: databases of some megabytes.
"""

from __future__ import annotations

import contextlib
import dataclasses
import enum
import itertools
import random
import threading
import time
from collections import Counter
from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

import apsw

from tests.support.disk import Disk, FileImage

if TYPE_CHECKING:
    from typing_extensions import Buffer

Call: TypeAlias = Literal["read", "write", "truncate", "sync"]
_BASE = "unix"
_serial = itertools.count(1)


class Kind(enum.Enum):
    """The part that a file plays; its value is the flag with which SQLite opens it."""

    MAIN = apsw.SQLITE_OPEN_MAIN_DB
    WAL = apsw.SQLITE_OPEN_WAL
    JOURNAL = apsw.SQLITE_OPEN_MAIN_JOURNAL
    SUPER_JOURNAL = apsw.SQLITE_OPEN_SUPER_JOURNAL


@dataclasses.dataclass
class _Fault:
    call: Call
    kind: Kind
    code: int
    after: int
    left: int | None

    def strikes(self) -> bool:
        if self.after:
            self.after -= 1
            return False
        if self.left is None:
            return True
        self.left -= 1
        return self.left >= 0


class ShimVfs(apsw.VFS):
    """Forgets unsynced writes (``power_loss``) and breaks on demand (``fail_*``, ``full``, ``heal``).

    All methods may be called from any thread, also while another one is inside SQLite.

    Errors reach the caller as the ``apsw`` exceptions that a real disk causes, with the same ``result`` and
    ``extendedresult``. One difference: where SQLite itself swallows an error (an automatic checkpoint, or the
    one at close), apsw still raises what a Python VFS raised, although the COMMIT took place. So the named
    faults aim only at the WAL, and its syncs count only if there is something to sync: those of COMMIT.
    ``heal()`` before closing.
    """

    def __init__(self) -> None:
        self.name = f"shim-{next(_serial)}"
        self.calls: Counter[tuple[Call, Kind]] = Counter()
        self.lock = threading.RLock()
        self.disk = Disk()
        #: Seconds that each sync of the WAL takes longer than the disk needs.
        self.slower = 0.0
        self._faults: list[_Fault] = []
        super().__init__(self.name, _BASE)

    # --- what the test does ---

    def power_loss(self, target: Path, seed: int | None = None) -> None:
        """Write to the new folder ``target`` what a disk holds after the power went this instant.

        Only synced content and synced names are there, and never a -shm. Deletions and truncations that were
        not synced did not happen. With ``seed``, each unsynced sector, name and truncation is there or not by
        chance, as on a real disk; a durable commit must stand every seed. Connections may stay open.
        """
        survivors = None if seed is None else random.Random(seed)
        with self.lock:
            found = self.disk.after_power_loss(survivors)
        _lay_out(found, target)

    def process_loss(self, target: Path) -> None:
        """Write to the new folder ``target`` what ``kill -9`` leaves: all that was written, synced or not.

        Without the -shm, which the next process rebuilds in any case. Nothing is read from the real files: to
        open and close them here would drop this process's locks on them.
        """
        with self.lock:
            found = self.disk.after_process_loss()
        _lay_out(found, target)

    def fail_next_sync(self, n: int = 1, after: int = 0) -> None:
        """Let the next ``n`` syncs of the WAL fail with SQLITE_IOERR_FSYNC, the first ``after`` excepted.

        With ``synchronous=FULL`` every COMMIT makes one; the first one after a restart of the WAL makes two.
        What was written stays in the live file; it is durable only if written again (see ``disk``).
        """
        self.fail("sync", Kind.WAL, apsw.SQLITE_IOERR_FSYNC, n=n, after=after)

    def fail_writes(self, n: int | None = None, after: int = 0) -> None:
        """Let the next ``n`` writes to the WAL (None: all until ``heal``) fail with SQLITE_IOERR_WRITE."""
        self.fail("write", Kind.WAL, apsw.SQLITE_IOERR_WRITE, n=n, after=after)

    def full(self) -> None:
        """Let every write to the WAL fail with SQLITE_FULL until ``heal``.

        Stricter than a real full disk, which still takes writes over old content: for that see ``tmpfs``.
        """
        self.fail("write", Kind.WAL, apsw.SQLITE_FULL, n=None)

    def fail(self, call: Call, kind: Kind, code: int, *, n: int | None = 1, after: int = 0) -> None:
        """Let any call on any kind of file fail with any code; mind the difference in the class docstring."""
        with self.lock:
            self._faults.append(_Fault(call, kind, code, after, n))

    def heal(self) -> None:
        """Take every fault away."""
        with self.lock:
            self._faults.clear()

    # --- what SQLite does; self.lock is held in ``called`` ---

    def called(self, call: Call, kind: Kind) -> None:
        """Count the call and raise if a fault strikes."""
        self.calls[call, kind] += 1
        for fault in self._faults:
            if (fault.call, fault.kind) == (call, kind) and fault.strikes():
                raise apsw.exception_for(fault.code)

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:
        """Open databases, WALs and journals behind the shim, temporary files without it."""
        kind = next((kind for kind in Kind if flags[0] & kind.value), None)
        if kind is None or name is None:
            return apsw.VFSFile(_BASE, name, flags)
        path = name.filename() if isinstance(name, apsw.URIFilename) else name
        with self.lock:
            return _ShimFile(self, kind, path, name, flags)

    def xDelete(self, filename: str, syncdir: bool) -> None:  # noqa: FBT001 - SQLite's signature
        """Delete for real, durably only when SQLite asks for it."""
        with self.lock:
            super().xDelete(filename, syncdir)
            self.disk.delete(filename)
            if syncdir:
                self.disk.folder_synced(filename)


class _ShimFile(apsw.VFSFile):
    def __init__(self, vfs: ShimVfs, kind: Kind, path: str, name: str | apsw.URIFilename, flags: list[int]) -> None:
        self._vfs = vfs
        self._kind = kind
        self._path = path
        # unix syncs the folder with the first sync of a journal or WAL that it opened with CREATE.
        self._folder_too = kind is not Kind.MAIN and bool(flags[0] & apsw.SQLITE_OPEN_CREATE)
        existed = Path(path).exists()
        super().__init__(_BASE, name, flags)
        self._image = self._known(existed=existed)

    def _known(self, *, existed: bool) -> FileImage:
        disk = self._vfs.disk
        image = disk.file(self._path)
        size = self.xFileSize()
        if image is None and existed:
            content = super().xRead(size, 0) if size else b""
            return disk.adopt(self._path, content.ljust(size, b"\0"))
        if image is None or not existed:
            return disk.create(self._path)
        if len(image.live) != size:
            raise apsw.CantOpenError(
                f"{self._path} was changed without the shim: {len(image.live)} bytes became {size}"
            )
        return image

    def xRead(self, amount: int, offset: int) -> bytes:
        with self._vfs.lock:
            self._vfs.called("read", self._kind)
        return super().xRead(amount, offset)

    def xWrite(self, data: Buffer, offset: int) -> None:
        with self._vfs.lock:
            self._vfs.called("write", self._kind)
            super().xWrite(data, offset)
            self._image.write(bytes(data), offset)

    def xTruncate(self, newsize: int) -> None:
        with self._vfs.lock:
            self._vfs.called("truncate", self._kind)
            super().xTruncate(newsize)
            self._image.truncate(newsize)

    def xSync(self, flags: int) -> None:
        if self._kind is Kind.WAL:
            time.sleep(self._vfs.slower)  # noqa: TID251 — the slow disk itself; outside the lock, so that others go on reading
        with self._vfs.lock:
            if self._image.dirty or self._kind is not Kind.WAL:
                try:
                    self._vfs.called("sync", self._kind)
                except apsw.Error:
                    self._image.sync_failed()
                    raise
            super().xSync(flags)
            self._image.synced()
            if self._folder_too:
                self._folder_too = False
                self._vfs.disk.folder_synced(self._path)


@contextlib.contextmanager
def shim_vfs() -> Generator[ShimVfs]:
    """Give a registered shim and unregister it in the end. Close the connections first."""
    vfs = ShimVfs()
    try:
        yield vfs
    finally:
        vfs.unregister()


def _lay_out(files: dict[str, bytes], target: Path) -> None:
    target.mkdir(parents=True)
    for path, content in files.items():
        with (target / Path(path).name).open("xb") as file:  # two databases of one name would be a mistake
            file.write(content)
