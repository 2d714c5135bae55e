"""Events: reading what was committed, in order."""

from __future__ import annotations

from typing import Any

from client.protocol.codec import unpackb
from client.protocol.event import Event
from client.protocol.ids import SessionId, TeamRunId, UnixMs
from store.sql import sql
from store.tx import Tx, Unreadable

_COLUMNS = "seq, at, stream, version, kind, actor, body"

_AFTER = sql(f"""
    SELECT {_COLUMNS} FROM events
    WHERE seq > :after ORDER BY seq LIMIT :limit
""")  # noqa: S608
_OF_RUN = sql(f"""
    SELECT {_COLUMNS} FROM events
    WHERE run = :run AND seq > :after ORDER BY seq LIMIT :limit
""")  # noqa: S608
_OF_STREAM = sql(f"""
    SELECT {_COLUMNS} FROM events
    WHERE stream = :stream AND version > coalesce(
        (SELECT max(version) FROM events WHERE stream = :stream AND seq <= :after), 0)
    ORDER BY version LIMIT :limit
""")  # noqa: S608


def after(tx: Tx, seq: int, *, stream: str = "", run: str = "", limit: int) -> tuple[list[Event], int]:
    """Events behind ``seq``, and the last sequence number looked at. One that does not decode is left out."""
    if stream:
        found = tx.rows(_OF_STREAM, stream=stream, after=seq, limit=limit)
    elif run:
        found = tx.rows(_OF_RUN, run=run, after=seq, limit=limit)
    else:
        found = tx.rows(_AFTER, after=seq, limit=limit)
    events: list[Event] = []
    for row in found:
        try:
            events.append(_event(row))
        except Unreadable as error:
            tx.unreadable.append(error)
    return events, found[-1][0] if found else seq


_LAST = sql("SELECT coalesce(max(seq), 0) FROM events")


def last(tx: Tx) -> int:
    """The sequence number of the last event, 0 before the first."""
    return int(tx.value(_LAST))


_LAST_VERSION = sql("SELECT coalesce(max(version), 0) FROM events WHERE stream = :stream")


def last_version(tx: Tx, stream: str) -> int:
    """The version of the last event of a stream, 0 before the first."""
    return int(tx.value(_LAST_VERSION, stream=stream))


_LAST_OF_RUN = sql("SELECT coalesce(max(seq), 0) FROM events WHERE run = :run_id")


def last_of_run(tx: Tx, run_id: TeamRunId) -> int:
    """The sequence number of the last event of a run."""
    return int(tx.value(_LAST_OF_RUN, run_id=run_id))


_END_OF_SESSION = sql("""
    SELECT kind, at FROM events
    WHERE stream = 'session/' || :session_id AND (kind GLOB 'exited: *' OR kind GLOB 'lost: *' OR kind GLOB 'ended: *'
        OR kind IN ('stopped', 'closed', 'superseded', 'unbound', 'launch failed'))
    ORDER BY (kind GLOB 'exited: *') DESC, (kind = 'stopped') DESC, (kind GLOB 'lost: *') DESC, version DESC LIMIT 1
""")


def end_of_session(tx: Tx, session_id: SessionId) -> tuple[str, UnixMs] | None:
    """How the process of a session ended, as it was told last, and when. What was seen of it counts before what was
    done to it, and that before what was done to its record.
    """
    found = tx.row(_END_OF_SESSION, session_id=session_id)
    return (str(found[0]), UnixMs(found[1])) if found else None


def _event(row: tuple[Any, ...]) -> Event:
    seq, at, stream, version, kind, actor, body = row
    try:
        fields = unpackb(body)
        if not isinstance(fields, dict):
            raise ValueError("not a map")  # noqa: TRY004, TRY301 — one handler for all that can be wrong
        if not all(isinstance(text, str) for text in (stream, kind, actor)):
            raise ValueError("not UTF-8")  # noqa: TRY301 — as above
    except ValueError as error:
        raise Unreadable(f"events/{seq}", str(error)[:200]) from error
    return Event(seq=seq, at=UnixMs(at), stream=stream, version=version, kind=kind, actor=actor, body=fields)


_ONE = sql(f"SELECT {_COLUMNS} FROM events WHERE seq = :seq")  # noqa: S608


def load(tx: Tx, seq: int) -> Event | None:
    found = tx.row(_ONE, seq=seq)
    return _event(found) if found else None
