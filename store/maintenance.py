"""The database as a file: opening, checking, copying, restoring."""

from __future__ import annotations

import contextlib
import errno
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import apsw
import attrs

from client.protocol.ids import new_id
from client.protocol.node import BackedUp
from client.protocol.refusals import Code, Refusal
from store import faults, node, replies
from store.database import connect
from store.migrate import migrate, version
from store.node import FLOOR_STEP, NodeRow
from store.sql import sql
from store.tx import Tx

T = TypeVar("T")


class Unusable(Exception):
    """SQLite cannot open or write the file."""


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
    try:
        look_before_touching(path, vfs=vfs)
        connection = connect(path, vfs=vfs)
        try:
            reached = migrate(connection)
            found = in_one(connection, node.load)
            row = in_one(connection, node.take)
        finally:
            connection.close()
        path.chmod(0o600)
    except (apsw.Error, OSError) as error:
        raise Unusable(str(error)) from error
    return Opened(row, bool(found.open), reached)


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
    """What SQLite finds wrong with the whole file; empty when nothing. Takes about a second a gigabyte."""
    connection = connect(path, readonly=True, vfs=vfs)
    try:
        found = [str(row[0]) for row in connection.execute("PRAGMA quick_check(20)")]
    except faults.STORAGE as error:
        found = [str(error)]
    finally:
        connection.close()
    return [] if found == ["ok"] else found


_VACUUM_INTO = sql("VACUUM INTO :file")
_SEQ = sql("SELECT coalesce(max(seq), 0) FROM events")


def back_up(path: Path, target: Path) -> BackedUp | Refusal:
    """Copy the whole database, as of one moment, to a new file.

    The copy is made beside the target under another name and linked into place once it is on the disk, so that
    a crash leaves either no file or a whole one.
    """
    partial = target.with_name(f".{target.name}.{new_id()}.partial")
    try:
        os.close(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        seq = _copy(path, partial)
        os.link(partial, target)
        sync_folder(target.parent)
    except FileExistsError:
        return Refusal(code=Code.FILE_EXISTS, about=str(target), lifted_by="choose another name")
    except OSError as error:
        full = error.errno == errno.ENOSPC
        return faults.refusal(Code.STORE_FULL) if full else _unusable(target, error.strerror or str(error))
    except apsw.FullError:
        return Refusal(code=Code.STORE_FULL, about=str(target), lifted_by="free space there, or choose another disk")
    except faults.STORAGE as error:
        return _unusable(target, str(error))
    finally:
        with contextlib.suppress(FileNotFoundError):
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
        seq = int(str(copy.execute(_SEQ.text).get))
    finally:
        copy.close()
    with partial.open("rb") as file:
        os.fsync(file.fileno())
    return seq


def _unusable(target: Path, why: str) -> Refusal:
    return Refusal(code=Code.FILE_UNUSABLE, about=str(target), lifted_by=f"choose a file that can be written ({why})")


class BadBackup(Exception):
    """The file to restore from is not a whole database of ours."""


def restore(path: Path, backup: Path) -> NodeRow:
    """Put ``backup`` in the place of the database at ``path``; no daemon may run. The former one is kept beside it.

    The store gets another id and every generation is raised above any ever issued, so that nothing which the
    former store handed out (cursor, capability, fence) can be taken for something of this one. How far
    generations were raised before stands in a file beside the database, because the backup may be older.
    Raises ``BadBackup``, ``NotOurs``, ``TooNew``, ``Unusable``; then nothing was changed.
    """
    try:
        return _restore(path, backup)
    except (apsw.Error, OSError) as error:
        raise Unusable(str(error)) from error


def _restore(path: Path, backup: Path) -> NodeRow:
    found = check(backup)
    if found:
        raise BadBackup("; ".join(found[:3]))
    if look_before_touching(backup) == 0:
        raise BadBackup("the file is empty")
    fresh = path.with_name(f".{path.name}.{new_id()}.restoring")
    fresh.write_bytes(b"")
    fresh.chmod(0o600)
    _copy(backup, fresh)
    floor = _next_floor(path)
    connection = connect(fresh)
    try:
        migrate(connection)
        row = in_one(connection, lambda tx: node.renew(tx, floor=floor))
    finally:
        connection.close()  # folds its log into the file
    _replace(path, fresh)
    return row


def _next_floor(path: Path) -> int:
    """A floor that no restore here has used yet, written down before it is used."""
    note = path.with_name("generations.json")
    try:
        last = int(json.loads(note.read_text("utf-8"))["floor"])
    except FileNotFoundError:
        last = 0
    floor = last + FLOOR_STEP
    temporary = note.with_name(".generations.json.new")
    with temporary.open("w", encoding="utf-8") as file:
        json.dump({"floor": floor}, file)
        file.flush()
        os.fsync(file.fileno())
    temporary.rename(note)
    sync_folder(path.parent)
    return floor


def _replace(path: Path, fresh: Path) -> None:
    """Set the former database aside with its log, so that no log is ever read against another file."""
    aside = new_id()
    for suffix in ("", "-wal", "-shm"):
        former = path.with_name(path.name + suffix)
        if former.exists():
            former.rename(path.with_name(f"{path.name}.before-{aside}{suffix}"))
    fresh.rename(path)
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def forget_replies(tx: Tx, *, now: int) -> int:
    """Drop replies that are older than they are kept; how many, at most one portion."""
    return replies.forget(tx, before=now - replies.KEPT_MS)
