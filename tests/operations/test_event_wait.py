"""``event.wait``, one test an outcome that the table declares; and what wakes a wait, what ends it, what it leaves."""

from __future__ import annotations

import attrs
import pytest
from trio.testing import MockClock, wait_all_tasks_blocked

from client.protocol.agent import AgentMember, PauseAgent, ResumeAgent, UpdateAgent
from client.protocol.event import ListEvents, Waited, WaitForEvent, WatchEvents
from client.protocol.ids import AgentMemberRef
from client.protocol.operation import Plane
from client.protocol.refusals import Code, Refusal
from daemon.operations import find
from daemon.waiting import wait
from store.database import in_thread
from tests.support import effects, mail, refusals, scene
from tests.support.node import Exchange, InProcessNode, in_process
from tests.support.refusals import refused_while_spoilt
from tests.support.run import stage
from tests.support.spoil import spoil
from tests.support.stores import SLOW


def paused(who: AgentMember, *, timeout_ms: int = 600_000) -> WaitForEvent:
    return WaitForEvent(predicate=f"agent:{who.id}.status=paused", timeout_ms=timeout_ms)


def pause(who: AgentMember, version: int = 1) -> PauseAgent:
    return PauseAgent(agent_member_id=AgentMemberRef(who.id), expected_version=version)


def rename(who: AgentMember, version: int = 1) -> UpdateAgent:
    return UpdateAgent(agent_member_id=AgentMemberRef(who.id), expected_version=version, name="new")


async def parked(node: InProcessNode, ask: WaitForEvent) -> Exchange:
    """A wait that has looked and found that it must wait."""
    exchange = node.send(ask)
    await wait_all_tasks_blocked()
    assert exchange.nothing_yet()
    return exchange


async def waited(exchange: Exchange) -> Waited:
    answer = await exchange.outcome()
    assert isinstance(answer, Waited), answer
    return answer


async def test_event_wait_ok(node: InProcessNode, autojump_clock: MockClock) -> None:
    """Parked until the commit, then awake at once with what was committed meanwhile."""
    ann = await scene.agent(node)
    exchange, began = await parked(node, paused(ann)), autojump_clock.current_time()
    resting = await node.ok(pause(ann))
    answer = await waited(exchange)
    assert autojump_clock.current_time() == began
    assert not answer.timed_out
    assert [(e.stream, e.version, e.at) for e in answer.events] == [(f"agent/{ann.id}", 2, resting.updated_at)]


async def test_what_is_true_already_is_answered_at_once(node: InProcessNode, autojump_clock: MockClock) -> None:
    ann = await scene.paused(node, await scene.agent(node))
    began = autojump_clock.current_time()
    answer = await node.ok(paused(ann))
    assert (answer.timed_out, answer.events) == (False, [])
    for predicate in (f"agent:{ann.id}.version>1", "seq>1"):
        assert not (await node.ok(WaitForEvent(predicate=predicate))).timed_out
    assert autojump_clock.current_time() == began


@pytest.mark.parametrize("predicate", ["agent:{}.version>2", "seq>2"])
async def test_a_wait_for_something_newer(node: InProcessNode, predicate: str) -> None:
    ann = await scene.agent(node)
    exchange = await parked(node, WaitForEvent(predicate=predicate.format(ann.id)))
    await node.ok(pause(ann))
    await wait_all_tasks_blocked()
    assert exchange.nothing_yet()
    await node.ok(ResumeAgent(agent_member_id=AgentMemberRef(ann.id), expected_version=2))
    assert [event.version for event in (await waited(exchange)).events] == [2, 3]


async def test_a_wait_wakes_only_on_commits_of_its_record(node: InProcessNode) -> None:
    ann, bob = await scene.agent(node, "ann"), await scene.agent(node, "bob")
    exchange = await parked(node, paused(ann))
    (event,) = node.relay._waiting.values()
    await node.ok(pause(bob))
    await wait_all_tasks_blocked()
    assert list(node.relay._waiting.values()) == [event]
    assert event.statistics().tasks_waiting == 1
    await node.ok(rename(ann))
    await wait_all_tasks_blocked()
    assert event.is_set()
    assert exchange.nothing_yet()
    await node.ok(pause(ann, 2))
    assert not (await waited(exchange)).timed_out


async def test_no_commit_falls_between_looking_and_parking(node: InProcessNode, autojump_clock: MockClock) -> None:
    """A commit is made, and announced, when the wait has looked and before it parks. Else it would sleep for ever.

    The wait is asked as the daemon asks it, without the dispatcher, which looks too, before it.
    """
    ann = await scene.agent(node)
    look, done = node.store.look, list[str]()

    def look_then_commit(run: object) -> object:
        seen = look(run)  # type: ignore[arg-type,var-annotated]
        if not done:
            done.append("committed")
            node.send(pause(ann))
            node.commit()
        return seen

    node.store.look = look_then_commit  # type: ignore[method-assign,assignment]
    began = autojump_clock.current_time()
    answer = await wait(node.store, node.relay, node.call(), paused(ann))
    assert isinstance(answer, Waited), answer
    assert (done, answer.timed_out) == (["committed"], False)
    assert autojump_clock.current_time() == began


async def test_a_deadline_ends_a_wait(node: InProcessNode, autojump_clock: MockClock) -> None:
    ann = await scene.agent(node)
    exchange, began = await parked(node, paused(ann, timeout_ms=90_500)), autojump_clock.current_time()
    await node.ok(rename(ann))
    answer = await waited(exchange)
    assert autojump_clock.current_time() == pytest.approx(began + 90.5)
    assert answer.timed_out
    assert [event.kind for event in answer.events] == ["updated"]


async def test_a_wait_of_no_length_looks_once(node: InProcessNode) -> None:
    ann = await scene.agent(node)
    assert (await node.ok(paused(ann, timeout_ms=0))).timed_out
    await node.ok(pause(ann))
    assert not (await node.ok(paused(ann, timeout_ms=0))).timed_out


async def test_a_cursor_continues_a_wait(node: InProcessNode) -> None:
    ann = await scene.agent(node)
    first = await node.ok(paused(ann, timeout_ms=0))
    await node.ok(rename(ann))
    await node.ok(pause(ann, 2))
    ask = WaitForEvent(predicate=f"agent:{ann.id}.status=paused", cursor=first.cursor)
    second = await node.ok(ask)
    assert [event.version for event in second.events] == [2, 3]
    third = await node.ok(WaitForEvent(predicate=ask.predicate, cursor=second.cursor))
    assert third.events == []


async def test_a_cursor_of_one_record_serves_list_wait_and_watch(node: InProcessNode) -> None:
    ann = await scene.agent(node)
    stream = f"agent/{ann.id}"
    cursor = (await node.ok(paused(ann, timeout_ms=0))).cursor
    await node.ok(pause(ann))
    listed = await node.ok(ListEvents(stream=stream, cursor=cursor))
    watching = node.send(WatchEvents(stream=stream, cursor=cursor))
    assert await watching.outcome() == listed
    watching.scope.cancel()


async def test_who_only_wants_to_know_is_given_no_events_and_misses_none_later(node: InProcessNode) -> None:
    ann = await scene.agent(node)
    begin = (await node.ok(paused(ann, timeout_ms=0))).cursor
    await node.ok(rename(ann))
    await node.ok(pause(ann, 2))
    ask = WaitForEvent(predicate=f"agent:{ann.id}.status=paused", cursor=begin, limit=0)
    known = await node.ok(ask)
    assert (known.timed_out, known.events, known.cursor) == (False, [], begin)
    some = await node.ok(attrs.evolve(ask, limit=1))
    assert [event.version for event in some.events] == [2]
    rest = await node.ok(attrs.evolve(ask, cursor=some.cursor, limit=500))
    assert [event.version for event in rest.events] == [3]


async def test_more_than_a_page_of_events_is_answered_in_pages(node: InProcessNode) -> None:
    ann = await scene.agent(node)
    begin = (await node.ok(ListEvents(limit=1))).cursor
    asked = [node.send(rename(ann, version)) for version in range(1, 601)]
    assert all([not isinstance(await each.outcome(), Refusal) for each in asked])
    first = await node.ok(WaitForEvent(predicate="seq>600", cursor=begin))
    second = await node.ok(WaitForEvent(predicate="seq>600", cursor=first.cursor))
    assert [event.seq for event in first.events] == list(range(2, 502))
    assert [event.seq for event in second.events] == list(range(502, 602))


async def test_event_wait_cursor_invalid(node: InProcessNode) -> None:
    ann, bob = await scene.agent(node, "ann"), await scene.agent(node, "bob")
    cursor = (await node.ok(paused(ann, timeout_ms=0))).cursor
    for predicate, given in (
        (f"agent:{bob.id}.status=paused", cursor),
        ("seq>0", cursor),
        (f"agent:{ann.id}.status=paused", "nonsense"),
    ):
        refusal = await node.refused(WaitForEvent(predicate=predicate, cursor=given))
        assert refusal == refusals.stale_cursor()


@pytest.mark.parametrize("noun", ["agent", "membership", "team"])
async def test_event_wait_not_found(node: InProcessNode, noun: str) -> None:
    """Waits name a record by id alone: a name may come to mean another one while they wait."""
    await scene.crew(node)
    refusal = await node.refused(WaitForEvent(predicate=f"{noun}:crew.version>0"))
    assert refusal == refusals.not_found(noun, "crew")
    assert not isinstance(await node.follow(refusal), Refusal)


async def test_event_wait_row_quarantined(node: InProcessNode) -> None:
    ann = await scene.agent(node)
    ask = WaitForEvent(predicate=f"agent:{ann.id}.version>0")
    await refused_while_spoilt(node, ask, "agents", ann.id)


async def test_a_record_that_stops_being_readable_ends_the_wait(node: InProcessNode) -> None:
    ann = await scene.agent(node)
    exchange = await parked(node, paused(ann))
    spoil(node.store.path, "agents", ann.id)
    node.relay.announce([f"agent/{ann.id}"], 1)
    assert await exchange.outcome() == refusals.unreadable(f"agents/{ann.id}")


async def test_an_event_that_cannot_be_read_still_wakes_and_is_named(node: InProcessNode) -> None:
    await scene.agent(node)
    spoil(node.store.path, "events", 1)
    answer = await node.ok(WaitForEvent(predicate="seq>0", timeout_ms=0))
    assert (answer.timed_out, answer.events) == (False, [])
    assert await node.set_aside() == ["events/1"]


NOUNS = "agent, effect, mail, membership, session, team, team-run, work"


async def test_what_cannot_be_waited_for_is_said_with_what_can(node: InProcessNode) -> None:
    said = {
        "nonsense": "write seq>N, team-run:ID.seq>N, inbox, NOUN:ID.FIELD=VALUE or NOUN:ID.version>N",
        "event:x.phase=open": f"wait on one of {NOUNS}",
        "event:x.version>1": f"wait on one of {NOUNS}",
        "team:x.name=crew": "of team one can wait on state or version",
        "team:x.state=gone": "team state is one of active, inactive, trashed",
    }
    for predicate, lifted_by in said.items():
        refusal = await node.refused(WaitForEvent(predicate=predicate))
        assert refusal == Refusal(code=Code.MALFORMED, about="predicate", lifted_by=lifted_by)


async def test_only_the_operator_waits_on_everything(node: InProcessNode) -> None:
    ann = await scene.agent(node)
    for plane in (Plane.HOST, Plane.MEMBER, Plane.OBSERVER):
        refusal = await node.refused(WaitForEvent(predicate="seq>0"), plane=plane, actor=ann.id)
        assert refusal == Refusal(
            code=Code.NOT_AUTHORIZED,
            about="predicate",
            lifted_by="wait on one record, as NOUN:ID.FIELD=VALUE",
        )
        answer = await node.ok(paused(ann, timeout_ms=0), plane=plane, actor=ann.id)
        assert answer.timed_out


async def test_nobody_waits_on_what_they_may_not_see(node: InProcessNode) -> None:
    """A wait answers with events: it hides what ``show`` hides, the other team's and the mail between two others."""
    our, their = await stage(node), await effects.cold(node)
    work = await their.owned(their.bob)
    letter = await mail.sent(their, their.cid, their.ann)
    effect = await effects.prepared(their)
    hidden = [
        ("work", work.id),
        ("team-run", their.run.id),
        ("session", their.bob.session.id),
        ("effect", effect.id),
        ("mail", letter.deliveries[0].id),
    ]
    for noun, record in hidden:
        ask = WaitForEvent(predicate=f"{noun}:{record}.version>0", timeout_ms=0)
        for stranger in (our.ann, our.bob):
            assert await mail.refused(our, stranger, ask) == find.not_found(noun, record)
        for theirs in (their.ann, their.cid):
            assert not (await mail.ok(their, theirs, ask)).timed_out
        assert not (await node.ok(ask)).timed_out
    third = await mail.also(their, "dan")
    between = WaitForEvent(predicate=f"mail:{letter.deliveries[0].id}.version>0", timeout_ms=0)
    assert await mail.refused(their, third, between) == find.not_found("mail", letter.deliveries[0].id)


async def test_one_commit_wakes_two_hundred_waits(node: InProcessNode, autojump_clock: MockClock) -> None:
    ann, bob = await scene.agent(node, "ann"), await scene.agent(node, "bob")
    waits = [node.send(paused(ann)) for _ in range(200)]
    others = [node.send(paused(bob)) for _ in range(20)]
    await wait_all_tasks_blocked()
    assert len(node.relay._waiting) == 2
    await node.ok(pause(ann))
    began = autojump_clock.current_time()
    assert {(await waited(each)).timed_out for each in waits} == {False}
    assert autojump_clock.current_time() == began
    assert all(each.nothing_yet() for each in others)
    assert {(await waited(each)).timed_out for each in others} == {True}
    assert autojump_clock.current_time() > began
    assert node.relay._waiting == {}


async def test_a_wait_that_ends_leaves_nothing_behind(node: InProcessNode, autojump_clock: MockClock) -> None:
    ann = await scene.agent(node)
    await node.ok(WaitForEvent(predicate=f"agent:{ann.id}.version>0"))  # true at once
    began = autojump_clock.current_time()
    await node.ok(paused(ann, timeout_ms=1000))
    assert autojump_clock.current_time() > began
    await node.refused(WaitForEvent(predicate="agent:nobody.version>0"))
    await node.refused(WaitForEvent(predicate="seq>0", cursor="nonsense"))
    left = await parked(node, paused(ann))
    assert set(node.relay._waiting) == {f"agent/{ann.id}"}
    left.scope.cancel()
    await wait_all_tasks_blocked()
    assert node.relay._waiting == {}


async def test_who_gives_up_takes_nobody_along(node: InProcessNode) -> None:
    ann = await scene.agent(node)
    stays, goes = await parked(node, paused(ann)), await parked(node, paused(ann))
    goes.scope.cancel()
    await wait_all_tasks_blocked()
    await node.ok(pause(ann))
    assert not (await waited(stays)).timed_out
    assert goes.nothing_yet()


async def test_a_wait_is_woken_by_a_commit_of_a_worker_thread(tmp_path_factory: pytest.TempPathFactory) -> None:
    async with in_process(tmp_path_factory.mktemp("threaded"), run=in_thread, quick=SLOW) as node:
        ann = await scene.agent(node)
        exchange = await parked(node, paused(ann))
        await node.ok(pause(ann))
        assert not (await waited(exchange)).timed_out
