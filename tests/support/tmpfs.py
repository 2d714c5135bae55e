"""A small real disk: a tmpfs in a mount namespace of its own, so that "disk full" is what the kernel says.

    with small_disk(tmp_path / "disk") as disk, worker(disk.command([*daemon])) as daemon:
        disk.fill()

Only processes started through ``command`` see the disk at ``disk.path``; this process reaches its files
through ``disk.outside``. Needs root, or user namespaces: ``available()`` says what is missing, for
``pytest.skip``.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import os
import shutil
import subprocess
import tempfile
from collections.abc import Generator, Sequence
from pathlib import Path

from tests.support.crash import WorkerEnded, worker

_HOLD = 'mount -t tmpfs -o "size=$1,mode=0700" small-disk "$2" && echo mounted && exec cat'
_BALLAST = "ballast"


class SmallDisk:
    """The mounted disk. Every method works from outside, while processes inside run on."""

    def __init__(self, path: Path, holder: int) -> None:
        """``holder`` is the process whose namespace has the disk at ``path``."""
        self.path = path
        # SQLite must not be given this path: it resolves /proc/<pid>/root as a link to / and misses the disk.
        self.outside = Path(f"/proc/{holder}/root{path}")
        self._holder = holder

    def command(self, argv: Sequence[str]) -> list[str]:
        """Return the command that runs ``argv`` inside.

        The process that ``subprocess`` starts becomes ``argv`` itself (same pid), with the caller's working
        folder and environment. Without root it is uid 0 of a user namespace in which only the caller exists.
        """
        user = [] if os.geteuid() == 0 else ["--user", "--preserve-credentials"]
        return ["nsenter", f"--target={self._holder}", *user, "--mount", f"--wd={Path.cwd()}", "--", *argv]

    def free_bytes(self) -> int:
        """Return what can still be written, in whole pages."""
        found = os.statvfs(self.outside)
        return found.f_bavail * found.f_frsize

    def fill(self, leave: int = 0) -> None:
        """Take all space but ``leave`` bytes (rounded down to pages). May be called again."""
        page = os.statvfs(self.outside).f_frsize
        with (self.outside / _BALLAST).open("ab", buffering=0) as ballast:
            while (room := self.free_bytes() - leave) >= page:
                try:
                    ballast.write(bytes(room - room % page))
                except OSError as problem:
                    if problem.errno != errno.ENOSPC:
                        raise
                    return  # somebody inside took the rest meanwhile

    def free(self) -> None:
        """Give the space back that ``fill`` took."""
        (self.outside / _BALLAST).unlink(missing_ok=True)

    def read_only(self) -> None:
        """Remount read-only. Raises ``OSError`` EBUSY while anybody has a file open for writing.

        So it serves for a daemon that is started on such a disk, not for one that runs.
        """
        self._remount("ro")

    def writable(self) -> None:
        """Undo ``read_only``."""
        self._remount("rw")

    def _remount(self, how: str) -> None:
        # bind: this mount, not the file system, which a user namespace may not touch. EBUSY is the same.
        done = subprocess.run(
            self.command(["env", "LC_ALL=C", "mount", "-o", f"remount,bind,{how}", str(self.path)]),
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            code = errno.EBUSY if "busy" in done.stderr else errno.EPERM
            raise OSError(code, done.stderr.strip(), str(self.path))


@contextlib.contextmanager
def small_disk(path: Path, size: int = 1 << 20) -> Generator[SmallDisk]:
    """Mount a tmpfs of ``size`` bytes (rounded up to pages) at ``path``, which is made if need be.

    The disk is gone when the context has ended and the last process inside too; end those first.
    """
    path.mkdir(parents=True, exist_ok=True)
    path = path.resolve()
    with worker([*_unshare(), "sh", "-c", _HOLD, "sh", str(size), str(path)]) as holder:
        holder.until("mounted")
        yield SmallDisk(path, holder.pid)


@functools.cache
def available() -> str | None:
    """Return why a small disk cannot be had here, or None if it can."""
    for tool in ("unshare", "nsenter", "mount"):
        if shutil.which(tool) is None:
            return f"{tool} is not installed"
    with tempfile.TemporaryDirectory() as folder:
        try:
            with small_disk(Path(folder), 1 << 16) as disk:
                subprocess.run(disk.command(["true"]), capture_output=True, check=True)
        except WorkerEnded as problem:
            return f"no private mount namespace: {problem}"
        except subprocess.CalledProcessError as problem:
            return f"no way into the mount namespace: {problem.stderr.decode(errors='replace').strip()}"
    return None


def _unshare() -> list[str]:
    user = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    return ["unshare", *user, "--mount", "--propagation", "private"]
