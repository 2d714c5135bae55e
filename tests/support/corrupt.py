"""Deliberate damage to a closed database: bad pages, and rows that none of our code would keep."""

from __future__ import annotations

import contextlib
import dataclasses
from pathlib import Path
from typing import Literal, TypeAlias

import apsw

Value: TypeAlias = str | bytes | int | float | None
Page: TypeAlias = Literal["root", "first leaf", "last leaf"]
Part: TypeAlias = Literal["header", "cells"]

_SET = "UPDATE {} SET {} = {} WHERE {}"
_LEAVES = "SELECT pageno FROM dbstat WHERE name = ? AND pagetype = 'leaf' ORDER BY path"


@dataclasses.dataclass(frozen=True)
class Damage:
    """Which bytes of the file were inverted."""

    page: int
    offset: int
    length: int


def damage_page(database: Path, table: str, *, page: Page = "root", part: Part = "header") -> Damage:
    """Invert bytes in one page of the b-tree of a table or index.

    ``header``: its first eight bytes, so that SQLite reports SQLITE_CORRUPT whenever it comes to this page:
    with ``root`` for everything in the table, with a leaf only for the rows there.
    ``cells``: the last 64 bytes of the page, in its oldest cells. SQLite may then hand out wrong values
    without a word, and only integrity_check or our own decoding may notice. Other tables are untouched.
    """
    _must_be_closed(database)
    with contextlib.closing(apsw.Connection(str(database), flags=apsw.SQLITE_OPEN_READONLY)) as connection:
        number = _page_number(connection, table, page)
        size = int(str(connection.execute("PRAGMA page_size").get))
    start = (number - 1) * size
    damage = Damage(number, start, 8) if part == "header" else Damage(number, start + size - 64, 64)
    invert(database, damage.offset, damage.length)
    return damage


def invert(file: Path, offset: int, length: int) -> None:
    """Invert ``length`` bytes of a file in place; doing it twice undoes it."""
    with file.open("r+b") as opened:
        opened.seek(offset)
        found = opened.read(length)
        if len(found) != length:
            raise ValueError(f"{file} has no {length} bytes at {offset}")
        opened.seek(offset)
        opened.write(bytes(byte ^ 0xFF for byte in found))


def overwrite(
    database: Path, table: str, column: str, value: Value, *, where: str, bindings: tuple[Value, ...] = ()
) -> None:
    """Put ``value`` into one column of the one row that ``where`` finds, past CHECKs, triggers, foreign keys.

    The pages stay sound; only the fact is impossible (integrity_check reports a broken CHECK all the same).
    The declared types of a STRICT table still hold: bytes go into a BLOB column. For invalid UTF-8 in a TEXT
    column see ``overwrite_text``.
    """
    _update(database, _SET.format(_quoted(table), _quoted(column), "?", where), (value, *bindings))


def overwrite_text(
    database: Path, table: str, column: str, garbage: bytes, *, where: str, bindings: tuple[Value, ...] = ()
) -> None:
    """Like ``overwrite``, with bytes that SQLite takes for text without looking at them."""
    sql = _SET.format(_quoted(table), _quoted(column), "CAST(? AS TEXT)", where)
    _update(database, sql, (garbage, *bindings))


def _update(database: Path, sql: str, bindings: tuple[Value, ...]) -> None:
    _must_be_closed(database)
    with contextlib.closing(apsw.Connection(str(database), flags=apsw.SQLITE_OPEN_READWRITE)) as connection:
        connection.config(apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER, 0)
        connection.execute("PRAGMA ignore_check_constraints=ON; PRAGMA foreign_keys=OFF; BEGIN").fetchall()
        connection.execute(sql, bindings).fetchall()
        if connection.changes() != 1:
            raise ValueError(f"{connection.changes()} rows instead of one: {sql}")
        connection.execute("COMMIT").fetchall()


def _page_number(connection: apsw.Connection, name: str, page: str) -> int:
    root = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = ?", (name,)).get
    if not isinstance(root, int) or root == 0:
        raise ValueError(f"no table or index {name} with pages of its own")
    if page == "root":
        return root
    leaves = connection.execute(_LEAVES, (name,)).fetchall()
    return int(str(leaves[0 if page == "first leaf" else -1][0]))


def _must_be_closed(database: Path) -> None:
    """Refuse where damage to the main file would be hidden, or undone, by a WAL."""
    wal = database.with_name(database.name + "-wal")
    if wal.exists() and wal.stat().st_size:
        raise ValueError(f"{wal} is not empty: close every connection first")


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
