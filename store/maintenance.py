"""The database as a file: opening, checking, copying, restoring."""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Callable, Generator
from pathlib import Path
from typing import TypeVar

import apsw
import attrs

from client.protocol.boundary import Boundary, Crash, no_crash
from client.protocol.ids import new_id
from client.protocol.node import BackedUp
from client.protocol.refusals import Code, Refusal
from store import events, faults, node
from store.database import connect
from store.migrate import NotOurs, TooNew, migrate, version
from store.node import FLOOR_STEP, NodeRow
from store.sql import sql
from store.tx import Tx

T = TypeVar("T")


class Unusable(Exception):
    """The file, or the folder it is in, cannot be used."""

    def __init__(self, why: str, lifted_by: str) -> None:
        super().__init__(why)
        self.lifted_by = lifted_by


@contextlib.contextmanager
def _usable(path: Path) -> Generator[None]:
    """Say what lifts it where the disk or the file around ``path`` fails."""
    try:
        yield
    except OSError as error:
        raise Unusable(str(error), faults.refusal(faults.code_of_errno(error.errno)).lifted_by) from error
    except faults.STORAGE as error:
        raise Unusable(str(error), faults.refusal(_reason(error, path.parent)).lifted_by) from error
    except apsw.Error as error:
        raise Unusable(str(error), "report this; nothing was changed") from error


def _reason(error: apsw.Error, folder: Path) -> Code:
    """SQLite says "disk I/O error" for much. With no connection left to ask for the system's, the disk is asked."""
    code = faults.code_of(error)
    if code is not Code.STORE_IO_ERROR:
        return code
    disk = os.statvfs(folder)
    if disk.f_flag & os.ST_RDONLY:
        return Code.STORE_READ_ONLY
    return Code.STORE_FULL if disk.f_bavail == 0 else code


@attrs.frozen
class Opened:
    """What was found when a store was opened. ``unclean``: its last daemon did not end in good order."""

    row: NodeRow
    unclean: bool
    schema_version: int


def take(path: Path, *, vfs: str | None = None) -> Opened:
    """Migrate the file and begin the next daemon generation, durably.

    Raises ``NotOurs``, ``TooNew``, ``Unusable``.
    """
    with _usable(path):
        _finish_restore(path)
        look_before_touching(path, vfs=vfs)
        _make_private(path)
        connection = connect(path, vfs=vfs)
        try:
            reached = migrate(connection)
            found = in_one(connection, node.load)
            row = in_one(connection, node.take)
        finally:
            connection.close()
    return Opened(row, bool(found.open), reached)


def _make_private(path: Path) -> None:
    """Before SQLite makes the file, or one beside it with the same mode."""
    if not path.exists():
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    path.chmod(0o600)


def in_one(connection: apsw.Connection, run: Callable[[Tx], T]) -> T:
    """Run one transaction of its own, before there is a store with a queue."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        result = run(Tx(connection))
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
    return result


def look_before_touching(path: Path, *, vfs: str | None = None) -> int:
    """The schema version of a file that may not be ours, found without writing to it. 0 where there is none."""
    if not path.exists() or path.stat().st_size == 0:
        return 0
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY, vfs=vfs)
    try:
        return version(connection)
    finally:
        connection.close()


def check(path: Path, *, vfs: str | None = None) -> list[str]:
    """What SQLite finds wrong with the whole file; empty when nothing. Takes about a second a gigabyte.

    Raises ``Unusable`` where it could not look.
    """
    with _usable(path):
        connection = connect(path, readonly=True, vfs=vfs)
        found: list[str] = []
        try:
            for row in connection.execute("PRAGMA quick_check(20)"):
                found += [line for line in str(row[0]).splitlines() if not line.startswith("***")]
        except (apsw.CorruptError, apsw.NotADBError) as error:
            found = found or [str(error)]  # it ends so on some damage, after it has named it
        finally:
            named = [_naming(connection, line) for line in found if line != "ok"]
            connection.close()
    return named


_OF_ROOT = sql("SELECT name FROM sqlite_schema WHERE rootpage = :root")


def _naming(connection: apsw.Connection, line: str) -> str:
    """SQLite says "Tree 7": put the table or index before it."""
    tree = re.search(r"\bTree (\d+)", line)
    try:
        name = connection.execute(_OF_ROOT.text, {"root": int(tree[1])}).get if tree else None
    except faults.STORAGE:
        name = None
    return f"{name}: {line}" if name else line


_VACUUM_INTO = sql("VACUUM INTO :file")


def back_up(path: Path, target: Path) -> BackedUp | Refusal:
    """Copy the whole database, as of one moment, to a new file.

    The copy is made beside the target under another name and linked into place once it is on the disk, so that
    a crash leaves either no file or a whole one.
    """
    exists = Refusal(code=Code.FILE_EXISTS, about=str(target), lifted_by="choose another name")
    full = Refusal(code=Code.STORE_FULL, about=str(target), lifted_by="free space there, or choose another disk")
    if "\0" in str(target):
        return _unusable(target, "a path has no NUL in it")
    if os.path.lexists(target):
        return exists
    partial = target.with_name(f".{target.name}.{new_id()}.partial")
    try:
        os.close(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        seq = _copy(path, partial)
        os.link(partial, target)
        sync_folder(target.parent)
    except FileExistsError:
        return exists
    except OSError as error:
        no_room = faults.code_of_errno(error.errno) is Code.STORE_FULL
        return full if no_room else _unusable(target, error.strerror or str(error))
    except apsw.FullError:
        return full
    except faults.STORAGE as error:
        damaged = faults.code_of(error) is Code.STORE_CORRUPT
        return faults.refusal(Code.STORE_CORRUPT) if damaged else _unusable(target, str(error))
    finally:
        with contextlib.suppress(OSError):  # whatever it is, the outcome is decided
            partial.unlink()
    return BackedUp(file=str(target), size=target.stat().st_size, seq=seq)


def _copy(path: Path, partial: Path) -> int:
    connection = connect(path, readonly=True)
    try:
        connection.execute(_VACUUM_INTO.text, {"file": str(partial)})
    finally:
        connection.close()
    copy = apsw.Connection(str(partial), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        seq = events.last(Tx(copy))
    finally:
        copy.close()
    with partial.open("rb") as file:
        os.fsync(file.fileno())
    return seq


def _unusable(target: Path, why: str) -> Refusal:
    return Refusal(code=Code.FILE_UNUSABLE, about=str(target), lifted_by=f"choose a file that can be written ({why})")


class BadBackup(Exception):
    """The file to restore from is not a whole database of ours."""


def restore(path: Path, backup: Path, *, crash: Crash = no_crash) -> NodeRow:
    """Put ``backup`` in the place of the database at ``path``; no daemon may run. The former one is kept beside it.

    The store gets another id and every generation is raised above any ever issued, so that nothing which the
    former store handed out (cursor, capability, fence) can be taken for something of this one. How far
    generations were raised before stands in a file beside the database, because the backup may be older.
    Raises ``BadBackup``, ``NotOurs``, ``TooNew``, ``Unusable``; then nothing was changed.
    """
    with _usable(path):
        _finish_restore(path)
        if found := check(backup):
            raise BadBackup("; ".join(found[:3]))
        if look_before_touching(backup) == 0:
            raise BadBackup("the file is empty")
        _sweep(path)
        name = new_id()
        fresh = path.with_name(f".{path.name}.{name}.restoring")
        try:
            row = _renewed(path, backup, fresh, crash)
            fresh.rename(path.with_name(f"{path.name}.restored-{name}"))
        except BaseException:
            _sweep(path)
            raise
        sync_folder(path.parent)
        crash(Boundary.RESTORE)
        _finish_restore(path, crash)
    return row


def _renewed(path: Path, backup: Path, fresh: Path, crash: Crash) -> NodeRow:
    """Make ``fresh`` what the database at ``path`` shall be: one file, whole and on the disk."""
    os.close(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    _copy(backup, fresh)
    crash(Boundary.RESTORE)
    connection = connect(fresh)
    try:
        migrate(connection)
        last = max(_floor_in(connection), _floor_of(path))
        floor = _next_floor(path.with_name("generations.json"), last)
        crash(Boundary.RESTORE)
        row = in_one(connection, lambda tx: node.renew(tx, floor=floor))
        connection.pragma("journal_mode", "DELETE")  # folds its log into the file, or raises
    finally:
        connection.close()
    crash(Boundary.RESTORE)
    return row


def _sweep(path: Path) -> None:
    """Remove what a restore that failed, or was killed, had copied so far."""
    for left in path.parent.glob(f".{path.name}.*.restoring*"):
        left.unlink()


def _finish_restore(path: Path, crash: Crash = no_crash) -> None:
    """Put a restored database into its place. Its name is a promise: whoever finds it goes on from here.

    The former one moves with its log, so that no log is ever read against another file.
    """
    for restored in path.parent.glob(f"{path.name}.restored-*"):
        aside = f"{path.name}.before-{restored.name.rpartition('-')[2]}"
        for suffix in ("", "-wal", "-shm"):
            former = path.with_name(path.name + suffix)
            if former.exists():
                former.rename(path.with_name(aside + suffix))
                crash(Boundary.RESTORE)
        sync_folder(path.parent)
        restored.rename(path)
        crash(Boundary.RESTORE)
        sync_folder(path.parent)


def _floor_in(connection: apsw.Connection) -> int:
    return in_one(connection, node.load).generation_floor


def _floor_of(path: Path) -> int:
    """The floor of the database that is there; 0 where none can be read."""
    try:
        if look_before_touching(path) == 0:
            return 0
        connection = connect(path, readonly=True)
        try:
            return node.load(Tx(connection)).generation_floor
        finally:
            connection.close()
    except (apsw.Error, NotOurs, TooNew):
        return 0


def _next_floor(note: Path, last: int) -> int:
    """A floor that no restore here has used yet, written down before it is used."""
    try:
        last = max(last, int(json.loads(note.read_text("utf-8"))["floor"]))
    except FileNotFoundError:
        pass
    except (KeyError, TypeError, ValueError) as error:
        lifted_by = f"move {note} away if no session that an earlier store launched can still run"
        raise Unusable(f"{note} is damaged: {error}", lifted_by) from error
    floor = last + FLOOR_STEP
    temporary = note.with_name(f".{note.name}.new")
    with temporary.open("w", encoding="utf-8") as file:
        json.dump({"floor": floor}, file)
        file.flush()
        os.fsync(file.fileno())
    temporary.rename(note)
    sync_folder(note.parent)
    return floor


def sync_folder(folder: Path) -> None:
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
