"""Handlers for ``event.*`` that read. Waiting and watching are in ``daemon.waiting``."""

from __future__ import annotations

from client.protocol.event import EventPage, ListEvents
from client.protocol.refusals import Refusal
from daemon.call import Call
from daemon.kernel import cursor
from store import events
from store.tx import Tx


def followed(stream: str, run: str) -> str:
    """What is followed: a record, else a run, else everything. Lists, waits and watches share cursors by it."""
    return stream or (f"run/{run}" if run else "")


def list_(tx: Tx, call: Call, ask: ListEvents) -> EventPage | Refusal:
    topic = followed(ask.stream, ask.team_run_id)
    after = cursor.read(ask.cursor, call.store_id, "events", topic)
    if isinstance(after, Refusal):
        return after
    items, last = events.after(tx, after, stream=ask.stream, run=ask.team_run_id, limit=ask.limit)
    return EventPage(items=items, cursor=cursor.write(last, call.store_id, "events", topic))
