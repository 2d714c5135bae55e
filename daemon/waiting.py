"""``event.wait`` and ``event.watch``: parked until a commit, woken by it, looking again. Nothing polls.

A wait takes the relay's next event *before* it looks, so a commit between looking and parking wakes it. Deadlines
run on the monotonic clock: a suspended machine does not use them up.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

import attrs
import trio

from client.protocol.event import Event, EventPage, Waited, WaitForEvent, WatchEvents
from client.protocol.operation import Plane
from client.protocol.refusals import Code, Refusal
from daemon.call import Call
from daemon.kernel import cursor
from daemon.kernel.predicate import FieldIs, Predicate, SeqAbove, VersionAbove, parse
from daemon.operations import find
from daemon.relay import ALL, Relay
from store import events
from store.agent import AGENTS
from store.database import Store
from store.membership import MEMBERSHIPS
from store.team import TEAMS
from store.tx import Tx

_LOAD: Mapping[str, Callable[[Tx, str], Any]] = {keeper.noun: keeper.load for keeper in (AGENTS, MEMBERSHIPS, TEAMS)}
_PAGE = 500


@attrs.frozen
class _Seen:
    true: bool
    events: list[Event]
    last: int


async def wait(store: Store, relay: Relay, call: Call, ask: WaitForEvent) -> Waited | Refusal:
    predicate = parse(ask.predicate)
    if isinstance(predicate, Refusal):
        return predicate
    if isinstance(predicate, SeqAbove) and call.plane is not Plane.OPERATOR:
        return Refusal(
            code=Code.NOT_AUTHORIZED,
            about="predicate",
            lifted_by="wait on one record, as NOUN:ID.FIELD=VALUE",
        )
    topic = ALL if isinstance(predicate, SeqAbove) else f"{predicate.noun}/{predicate.id}"
    begin = cursor.read(ask.cursor, call.store_id, "events", topic)
    if isinstance(begin, Refusal):
        return begin
    after = begin if ask.cursor else store.seq
    with trio.move_on_after(ask.timeout_ms / 1000):
        while True:
            changed = relay.next(topic)
            seen = store.look(lambda tx: _look(tx, predicate, topic, after))
            if isinstance(seen, Refusal):
                return seen
            if seen.true:
                return _answer(call, topic, seen, timed_out=False)
            try:
                await changed.wait()
            finally:
                relay.forget(topic, changed)
    seen = store.look(lambda tx: _look(tx, predicate, topic, after))
    return seen if isinstance(seen, Refusal) else _answer(call, topic, seen, timed_out=not seen.true)


def _answer(call: Call, topic: str, seen: _Seen, *, timed_out: bool) -> Waited:
    onward = cursor.write(seen.last, call.store_id, "events", topic)
    return Waited(timed_out=timed_out, events=seen.events, cursor=onward)


def _look(tx: Tx, predicate: Predicate, topic: str, after: int) -> _Seen | Refusal:
    true = _holds(tx, predicate)
    if isinstance(true, Refusal):
        return true
    found, last = events.after(tx, after, stream=topic, limit=_PAGE)
    return _Seen(true=true, events=found, last=last)


def _holds(tx: Tx, predicate: Predicate) -> bool | Refusal:
    match predicate:
        case SeqAbove(seq):
            return bool(events.after(tx, seq, limit=1)[0])
        case FieldIs(noun, record_id) | VersionAbove(noun, record_id):
            record = _LOAD[noun](tx, record_id)
            if record is None:
                return find.not_found(noun, record_id)
            if isinstance(predicate, VersionAbove):
                return bool(record.version > predicate.version)
            return bool(getattr(record, predicate.field) == predicate.value)


async def watch(store: Store, relay: Relay, call: Call, ask: WatchEvents) -> AsyncIterator[EventPage | Refusal]:
    """Pages of events, read when the peer has room for them: a slow watcher lags, it holds nothing up."""
    begin = cursor.read(ask.cursor, call.store_id, "events", ask.stream)
    if isinstance(begin, Refusal):
        yield begin
        return
    after = begin if ask.cursor else store.seq
    while True:
        changed = relay.next(ask.stream)
        found, after = store.look(lambda tx, at=after: events.after(tx, at, stream=ask.stream, limit=_PAGE))  # type: ignore[misc]
        if found:
            yield EventPage(items=found, cursor=cursor.write(after, call.store_id, "events", ask.stream))
            continue
        try:
            await changed.wait()
        finally:
            relay.forget(ask.stream, changed)
