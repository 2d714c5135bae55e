"""A versioned record, its row and its events: load, insert, change. One ``Keeper`` a noun.

Its statements are spelled from the record's fields, so a column cannot be forgotten in one of three places. Every
change is a compare-and-set on ``version`` and appends one event whose version is the record's: a row equals the
fold of its events.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, Protocol, TypeVar

import attrs

from store import rows
from store.sql import Sql, sql
from store.tx import Tx


class Versioned(Protocol):
    """What a record needs to be kept: an id, a version, and when it last changed."""

    @property
    def id(self) -> str: ...
    @property
    def version(self) -> int: ...


T = TypeVar("T", bound=Versioned)


class Keeper(Generic[T]):
    """The table of one noun. ``columns`` is what a SELECT of this noun lists, in record order."""

    def __init__(self, noun: str, table: str, cls: type[T]) -> None:
        record: Any = cls
        names = [f.name for f in attrs.fields(record)]
        self.noun = noun
        self.table = table
        self.cls = cls
        self.columns = ", ".join(names)
        values = ", ".join(f":{name}" for name in names)
        self._load = sql(f"SELECT {self.columns} FROM {table} WHERE id = :id")  # noqa: S608
        self._insert = sql(f"INSERT INTO {table} ({self.columns}) VALUES ({values})")  # noqa: S608
        self._updates: dict[tuple[str, ...], Sql] = {}

    def load(self, tx: Tx, record_id: str) -> T | None:
        """The record of that id. Asked for again in the same transaction it is not read again."""
        known: T | None = tx.known.get((self.table, record_id))
        if known is None and (found := tx.row(self._load, id=record_id)):
            known = tx.known[self.table, record_id] = rows.decode(self.cls, self.table, found)
        return known

    def held(self, tx: Tx, record_id: str) -> T:
        """A record that is there: another names it, and a foreign key holds it, or it was found before. None is ever
        deleted.
        """
        found = self.load(tx, record_id)
        assert found is not None, f"{self.noun}/{record_id} is held by whoever names it"
        return found

    def select(self, where: str) -> Sql:
        """A statement for ``one`` or ``many``: this noun's columns, then ``where`` (FROM is given)."""
        return sql(f"SELECT {self.columns} FROM {self.table} {where}")  # noqa: S608

    def one(self, tx: Tx, statement: Sql, **params: Any) -> T | None:
        found = tx.row(statement, **params)
        return rows.decode(self.cls, self.table, found) if found else None

    def many(self, tx: Tx, statement: Sql, **params: Any) -> list[T]:
        """Every record; raises ``Unreadable``, because a decision must not rest on those that happen to decode."""
        return [rows.decode(self.cls, self.table, row) for row in tx.rows(statement, **params)]

    def readable(self, tx: Tx, statement: Sql, **params: Any) -> list[T]:
        """The records that decode, for eyes; the others are named in ``tx.unreadable``."""
        return rows.decode_all(tx, self.cls, self.table, tx.rows(statement, **params))

    def insert(self, tx: Tx, record: T, *, kind: str, actor: str, at: int) -> T:
        params = rows.encode(record)
        tx.rows(self._insert, **params)
        tx.known[self.table, record.id] = record
        tx.append(
            f"{self.noun}/{record.id}",
            record.version,
            kind,
            actor=actor,
            at=at,
            body=rows.plain_fields(record),
            run=_run_of(self.noun, record),
        )
        return record

    def change(self, tx: Tx, before: T, *, kind: str, actor: str, at: int, **changes: Any) -> T:
        """The record after ``changes``. The caller compared versions in this same transaction."""
        after = rows.changed(before, {"version": before.version + 1, "updated_at": at, **changes})
        body: dict[str, Any] = {"version": after.version}
        for name in ("updated_at", *changes):
            if (value := getattr(after, name)) != getattr(before, name):
                body[name] = rows.plain(value)
        columns = {name: rows.column(value) for name, value in body.items()}
        if tx.changed(self._update(tuple(body)), id=before.id, was=before.version, **columns) != 1:
            raise AssertionError(f"{self.noun}/{before.id} moved inside the transaction that read it")
        tx.known[self.table, before.id] = after
        tx.append(
            f"{self.noun}/{after.id}", after.version, kind, actor=actor, at=at, body=body, run=_run_of(self.noun, after)
        )
        return after

    def _update(self, names: tuple[str, ...]) -> Sql:
        """Sets what changed and nothing else: SQLite rewrites every index, and asks after every foreign key, whose
        column an UPDATE names, even where its value stays.
        """
        if (found := self._updates.get(names)) is None:
            sets = ", ".join(f"{name} = :{name}" for name in names)
            found = sql(f"UPDATE {self.table} SET {sets} WHERE id = :id AND version = :was")  # noqa: S608
            self._updates[names] = found
        return found


def _run_of(noun: str, record: Any) -> str | None:
    """The run that a record belongs to, itself when it is one."""
    return record.id if noun == "team-run" else getattr(record, "team_run_id", None)


#: A page of a list: the records, and the number to continue after when there may be more.
Page = tuple[list[T], int | None]


def page(
    tx: Tx, keeper: Keeper[T], load: Callable[[int, int], list[tuple[Any, ...]]], after: int, limit: int
) -> Page[T]:
    """One page out of ``load(after, limit)``, whose rows are the row number, then the record's columns."""
    found = load(after, limit + 1)
    records = rows.decode_all(tx, keeper.cls, keeper.table, (row[1:] for row in found[:limit]))
    return records, found[limit - 1][0] if len(found) > limit else None
