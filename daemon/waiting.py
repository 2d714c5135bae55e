"""``event.wait`` and ``event.watch``: parked until a commit, woken by it, looking again. Nothing polls.

A wait takes the relay's next event *before* it looks, so a commit between looking and parking wakes it. Deadlines
run on the monotonic clock: a suspended machine does not use them up.
"""

from __future__ import annotations

import functools
from collections.abc import AsyncGenerator, Callable, Mapping
from typing import Any

import attrs
import trio

from client.protocol.effect import RuntimeEffect
from client.protocol.event import Event, EventPage, Waited, WaitForEvent, WatchEvents
from client.protocol.ids import TeamRunId
from client.protocol.message import MessageDelivery
from client.protocol.operation import Plane
from client.protocol.refusals import Code, Refusal
from client.protocol.session import AgentSession
from client.protocol.team_run import TeamRun
from client.protocol.work import Work
from daemon.call import Call
from daemon.health import now
from daemon.kernel import cursor
from daemon.kernel.predicate import FieldIs, InboxHasMail, Predicate, RunSeqAbove, SeqAbove, VersionAbove, parse
from daemon.operations import actor, find, inbox, message
from daemon.operations.event import followed
from daemon.relay import ALL, Relay
from store import events, quarantine
from store.agent import AGENTS
from store.database import Store
from store.effect import EFFECTS
from store.membership import MEMBERSHIPS
from store.message import MAIL
from store.session import SESSIONS
from store.team import TEAMS
from store.team_run import TEAM_RUNS
from store.tx import Tx, Unreadable
from store.work import WORKS

_LOAD: Mapping[str, Callable[[Tx, str], Any]] = {
    keeper.noun: keeper.load for keeper in (AGENTS, EFFECTS, MAIL, MEMBERSHIPS, SESSIONS, TEAMS, TEAM_RUNS, WORKS)
}
_PAGE = 500


@attrs.frozen
class _Seen:
    true: bool
    events: list[Event]
    last: int  # the sequence number to go on after
    unreadable: list[Unreadable]


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
    topic = _topic(predicate)
    begin = cursor.read(ask.cursor, call.store_id, "events", topic)
    if isinstance(begin, Refusal):
        return begin
    after = begin if ask.cursor else store.seq

    def look(tx: Tx, *, late: bool) -> _Seen | Refusal | None:
        """None where it is not true yet; ``late``, what happened is said all the same."""
        true = actor.standing(tx, call) or _holds(tx, call, predicate)
        if isinstance(true, Refusal):
            return true
        return _events(tx, topic, after, limit=ask.limit, true=true) if true or late else None

    found: _Seen | Refusal | None = None
    with trio.move_on_after(ask.timeout_ms / 1000):
        while found is None:
            with relay.next(topic) as changed:
                if (found := store.look(functools.partial(look, late=False))) is None:
                    await changed.wait()
    # The last commit may have come together with the end of the time.
    seen = found or store.look(functools.partial(look, late=True))
    assert seen is not None, "late, there is always something to say"
    if isinstance(seen, Refusal):
        return seen
    quarantine.set_aside(store, seen.unreadable, at=now())
    onward = cursor.write(seen.last, call.store_id, "events", topic)
    return Waited(timed_out=not seen.true, events=seen.events, cursor=onward)


def _topic(predicate: Predicate) -> str:
    match predicate:
        case SeqAbove():
            return ALL
        case RunSeqAbove(run):
            return f"run/{run}"
        case InboxHasMail():
            return "mail"
        case FieldIs(noun, record_id) | VersionAbove(noun, record_id):
            return f"{noun}/{record_id}"


def _events(tx: Tx, topic: str, after: int, *, limit: int, true: bool) -> _Seen:
    """What was committed behind ``after`` on a stream or in a run; mail is read in the inbox, not here."""
    if topic == "mail":
        return _Seen(true=true, events=[], last=after, unreadable=[])
    run = topic.removeprefix("run/") if topic.startswith("run/") else ""
    found, last = events.after(tx, after, stream="" if run else topic, run=run, limit=limit)
    return _Seen(true=true, events=found, last=last, unreadable=tx.unreadable)


def _sees(tx: Tx, call: Call, record: object) -> bool:
    """Whether ``show`` would show it to the caller: a wait answers with the events of what it waits for."""
    match record:
        case Work():
            return not isinstance(actor.work(tx, call, record.id), Refusal)
        case TeamRun():
            return not isinstance(actor.run(tx, call, record.id), Refusal)
        case AgentSession() | RuntimeEffect():
            return not isinstance(actor.run(tx, call, record.team_run_id), Refusal)
        case MessageDelivery():
            return not isinstance(message.visible(tx, call, record.message_id), Refusal)
        case _:
            return True


def _holds(tx: Tx, call: Call, predicate: Predicate) -> bool | Refusal:
    match predicate:
        case SeqAbove(seq):
            return events.after(tx, seq, limit=1)[1] > seq
        case RunSeqAbove(run_id, seq):
            run = actor.run(tx, call, TeamRunId(run_id))
            return run if isinstance(run, Refusal) else events.after(tx, seq, run=run.id, limit=1)[1] > seq
        case InboxHasMail():
            return inbox.has_mail(tx, call)
        case FieldIs(noun, record_id) | VersionAbove(noun, record_id):
            record = _LOAD[noun](tx, record_id)
            if record is None or not _sees(tx, call, record):
                return find.not_found(noun, record_id)
            if isinstance(predicate, VersionAbove):
                return bool(record.version > predicate.version)
            return bool(getattr(record, predicate.field) == predicate.value)


async def watch(store: Store, relay: Relay, call: Call, ask: WatchEvents) -> AsyncGenerator[EventPage | Refusal, None]:
    """Pages of events, read when the peer has room for them: a slow watcher lags, it holds nothing up."""
    topic = followed(ask.stream, ask.team_run_id)
    begin = cursor.read(ask.cursor, call.store_id, "events", topic)
    if isinstance(begin, Refusal):
        yield begin
        return
    after = begin if ask.cursor else store.seq
    while True:
        with relay.next(topic) as changed:
            seen = store.look(functools.partial(_events, topic=topic, after=after, limit=_PAGE, true=True))
            if seen.last == after:
                await changed.wait()
                continue
        quarantine.set_aside(store, seen.unreadable, at=now())
        after = seen.last
        if seen.events:
            yield EventPage(items=seen.events, cursor=cursor.write(after, call.store_id, "events", topic))
