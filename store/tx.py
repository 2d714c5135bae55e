"""One transaction as a unit of work sees it."""

from __future__ import annotations

from typing import Any

import apsw

from client.protocol.codec import packb
from store.sql import Sql, sql

_EVENT = sql("""
    INSERT INTO events (at, stream, version, kind, actor, body)
    VALUES (:at, :stream, :version, :kind, :actor, :body)
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
        #: Records a list left out because they do not decode.
        self.unreadable: list[Unreadable] = []

    def rows(self, statement: Sql, **params: Any) -> list[tuple[Any, ...]]:
        return self._execute(statement.text, params).fetchall()

    def row(self, statement: Sql, **params: Any) -> tuple[Any, ...] | None:
        found = self._execute(statement.text, params).fetchall()
        return found[0] if found else None

    def value(self, statement: Sql, **params: Any) -> Any:
        """The single value of a statement that always has one row."""
        ((value,),) = self._execute(statement.text, params).fetchall()
        return value

    def changed(self, statement: Sql, **params: Any) -> int:
        """Run a write; how many rows it changed."""
        self._execute(statement.text, params)
        return self._connection.changes()

    def append(self, stream: str, version: int, kind: str, *, actor: str, at: int, body: dict[str, Any]) -> None:
        """Record an event; whoever watches hears of it after the commit."""
        self._execute(
            _EVENT.text,
            {
                "at": at,
                "stream": stream,
                "version": version,
                "kind": kind,
                "actor": actor,
                "body": packb(body),
            },
        )
        self.seq = self._connection.last_insert_rowid()
        self.streams.append(stream)
