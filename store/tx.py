"""One transaction as a unit of work sees it."""

from __future__ import annotations

from typing import Any

import apsw

from client.protocol.codec import pack_plain
from store.sql import Sql, sql

_EVENT = sql("""
    INSERT INTO events (at, stream, version, kind, actor, body, run)
    VALUES (:at, :stream, :version, :kind, :actor, :body, :run)
""")


class Unreadable(Exception):
    """A stored record does not decode. ``record`` is "<table>/<row>"."""

    def __init__(self, record: str, why: str) -> None:
        super().__init__(f"{record}: {why}")
        self.record = record
        self.why = why


class Tx:
    """Lives inside one read or one unit, never outside."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._execute = connection.execute
        self._connection = connection
        #: Streams that changed, in order; announced after the commit.
        self.streams: list[str] = []
        #: The last sequence number this transaction gave out; 0 when it gave out none.
        self.seq = 0
        #: Versioned records by table and id, as they stand in this transaction. Only their keepers write them.
        self.known: dict[tuple[str, str], Any] = {}
        #: Records a list left out because they do not decode.
        self.unreadable: list[Unreadable] = []

    def rows(self, statement: Sql, **params: Any) -> list[tuple[Any, ...]]:
        """What the statement finds. Text that is not UTF-8 comes as bytes: its own record is named for it."""
        try:
            return self._execute(statement.text, params).fetchall()
        except UnicodeDecodeError:
            return self._as_bytes(statement, params)

    def _as_bytes(self, statement: Sql, params: dict[str, Any]) -> list[tuple[Any, ...]]:
        cursor = self._execute(statement.text, params)
        names = [f"c{n}" for n in range(len(cursor.get_description()))]
        cursor.close()
        columns = ", ".join(f"iif(typeof({c}) = 'text', CAST({c} AS BLOB), {c}), typeof({c})" for c in names)
        text = f"WITH found({', '.join(names)}) AS ({statement.text}) SELECT {columns} FROM found"  # noqa: S608
        found = self._execute(text, params).fetchall()
        return [tuple(map(_decoded, row[::2], row[1::2])) for row in found]

    def row(self, statement: Sql, **params: Any) -> tuple[Any, ...] | None:
        found = self.rows(statement, **params)
        return found[0] if found else None

    def value(self, statement: Sql, **params: Any) -> Any:
        """The single value of a statement that always has one row."""
        ((value,),) = self.rows(statement, **params)
        return value

    def changed(self, statement: Sql, **params: Any) -> int:
        """Run a write; how many rows it changed."""
        self._execute(statement.text, params)
        return self._connection.changes()

    def append(  # noqa: PLR0913 — an event has as many columns
        self, stream: str, version: int, kind: str, *, actor: str, at: int, body: dict[str, Any], run: str | None = None
    ) -> None:
        """Record an event, of a run where it belongs to one; whoever watches hears of it after the commit.

        ``body`` is plain: what msgpack takes as it is.
        """
        self._execute(
            _EVENT.text,
            {
                "at": at,
                "stream": stream,
                "version": version,
                "kind": kind,
                "actor": actor,
                "body": pack_plain(body),
                "run": run,
            },
        )
        self.seq = self._connection.last_insert_rowid()
        self.streams.append(stream)
        if run is not None:
            self.streams.append(f"run/{run}")


def _decoded(value: Any, kind: Any) -> Any:
    if kind != "text":
        return value
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value
