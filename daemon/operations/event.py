"""Handlers for ``event.*`` that read. Waiting and watching are in ``daemon.waiting``."""

from __future__ import annotations

from client.protocol.event import EventPage, ListEvents
from client.protocol.refusals import Refusal
from daemon.call import Call
from daemon.kernel import cursor
from store import events
from store.tx import Tx


def list_(tx: Tx, call: Call, ask: ListEvents) -> EventPage | Refusal:
    after = cursor.read(ask.cursor, call.store_id, "events", ask.stream)
    if isinstance(after, Refusal):
        return after
    items, last = events.after(tx, after, stream=ask.stream, limit=ask.limit)
    return EventPage(items=items, cursor=cursor.write(last, call.store_id, "events", ask.stream))
