"""Damage to one row of a store that runs: the row is there, its pages are sound, and it does not decode."""

from __future__ import annotations

import contextlib
from collections.abc import Generator
from pathlib import Path

import apsw

#: The column that is spoilt. No column holds such bytes, and in the body of an event they are no msgpack.
_COLUMN = {"events": "body", "messages": "created_at", "receipts": "created_at", "subscriptions": "state"}
_KEY = {"events": "seq"}
_BYTES = b"\xc1"


def spoil(path: Path, table: str, record_id: str | int) -> apsw.SQLiteValue:
    """Make one row unreadable; what stood there, for ``mend``."""
    column, key = _COLUMN.get(table, "updated_at"), _KEY.get(table, "id")
    with contextlib.closing(_open(path)) as connection:
        was = connection.execute(f"SELECT {column} FROM {table} WHERE {key} = ?", (record_id,)).get  # noqa: S608
        with _lax(connection, table):
            connection.execute(f"UPDATE {table} SET {column} = ? WHERE {key} = ?", (_BYTES, record_id))  # noqa: S608
            assert connection.changes() == 1
    return was


def mend(path: Path, table: str, record_id: str | int, was: apsw.SQLiteValue) -> None:
    """Undo ``spoil``."""
    column, key = _COLUMN.get(table, "updated_at"), _KEY.get(table, "id")
    with contextlib.closing(_open(path)) as connection:
        connection.execute(f"UPDATE {table} SET {column} = ? WHERE {key} = ?", (was, record_id))  # noqa: S608
        assert connection.changes() == 1


def execute(path: Path, statement: str, *values: apsw.SQLiteValue) -> None:
    """One statement past the daemon, with CHECK constraints and foreign keys off."""
    with contextlib.closing(_open(path)) as connection:
        connection.execute(statement, values)


def _open(path: Path) -> apsw.Connection:
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
    connection.set_busy_timeout(2000)
    connection.execute("PRAGMA ignore_check_constraints = ON")
    return connection


@contextlib.contextmanager
def _lax(connection: apsw.Connection, table: str) -> Generator[None]:
    """To this connection the table is not STRICT; every other one keeps the schema it has read."""
    schema = str(connection.execute("SELECT sql FROM sqlite_schema WHERE name = ?", (table,)).get)
    _write_schema(connection, table, schema.removesuffix(" STRICT"))
    try:
        yield
    finally:
        _write_schema(connection, table, schema)


def _write_schema(connection: apsw.Connection, table: str, text: str) -> None:
    connection.execute("PRAGMA writable_schema = ON")
    connection.execute("UPDATE sqlite_schema SET sql = ? WHERE name = ?", (text, table))
    connection.execute("PRAGMA writable_schema = RESET")
