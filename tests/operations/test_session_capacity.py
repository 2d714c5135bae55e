"""What a session's provider gives it: said by its supervisor out of structured records, shown while it is fresh."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import attrs
import pytest

from client.protocol.agent import CreateAgent
from client.protocol.board import AttentionKind, AttentionList, Board, DueList, ListAttention, ListDue, ShowBoard
from client.protocol.ids import TeamRef, UnixMs
from client.protocol.message import SendMessage
from client.protocol.operation import Plane
from client.protocol.refusals import Code, Refusal
from client.protocol.session import (
    AgentSession,
    Capacity,
    Ending,
    Failure,
    ListSessions,
    ReportSession,
    SessionCause,
    SessionShown,
    ShowSession,
)
from client.protocol.team_run import CreateTeamRun
from client.protocol.work_asks import SubmitWork
from daemon.call import Call
from daemon.kernel.capacity import FRESH_MS
from daemon.operations import attention, board, session
from providers import profiles
from providers.port import Typing
from providers.profiles import Profile
from store.session import SESSIONS
from store.tx import Tx
from tests.operations.test_effect_deliver import cycle_ended, deliver, to_bob, told
from tests.support import effects, scene
from tests.support.node import InProcessNode
from tests.support.run import Stage
from tests.support.supervised import said, supervised
from tests.support.works import bob

NAME = CreateAgent(name="anybody").profile
SOURCE = 'record type="error", error="quota"'
T = TypeVar("T")


@pytest.fixture(autouse=True)
def able(monkeypatch: pytest.MonkeyPatch) -> None:
    """The members of these tests take text."""
    monkeypatch.setitem(profiles.PROFILES, NAME, Profile(name=NAME, argv=["/bin/true"], typing=Typing()))


def ended(
    s: Stage,
    capacity: Capacity | None,
    ending: Ending = Ending.PROVIDER_FAILED,
    failure: Failure | None = Failure.QUOTA_EXHAUSTED,
) -> ReportSession:
    of = s.bob.session
    return ReportSession(
        session_id=of.id,
        session_gen=of.session_gen,
        sup_gen=s.sup_gen,
        cause=SessionCause.CYCLE_ENDED,
        ending=ending,
        failure=failure,
        capacity=capacity,
        capacity_source=SOURCE,
    )


async def exhausted(node: InProcessNode, capacity: Capacity = Capacity.EXHAUSTED) -> Stage:
    """Bob's cycle has ended so, and there is mail for him again."""
    s = await effects.live(node)
    await to_bob(s)
    await told(s)
    await supervised(s, ended(s, capacity))
    await to_bob(s)
    return s


def at(s: Stage, ms: int, run: Callable[[Tx, Call], T | Refusal], plane: Plane = Plane.OPERATOR) -> T:
    """What is answered so many milliseconds after it was read."""
    of = s.node.store.look(lambda tx: SESSIONS.load(tx, s.bob.session.id))
    assert of is not None
    assert of.capacity_at is not None
    call = s.node.call(plane, s.run.id if plane is Plane.SUPERVISOR else "", UnixMs(of.capacity_at + ms))
    found = s.node.store.look(lambda tx: run(tx, call))
    assert not isinstance(found, Refusal)
    return found


def due(s: Stage, ms: int) -> DueList:
    ask = ListDue(team_run_id=s.run.id, sup_gen=s.sup_gen)
    return at(s, ms, lambda tx, call: board.due(tx, call, ask), Plane.SUPERVISOR)


def seen(s: Stage, ms: int) -> tuple[AgentSession, AgentSession, Board, AttentionList]:
    shown: SessionShown = at(s, ms, lambda tx, c: session.show(tx, c, ShowSession(session_id=s.bob.session.id)))
    (listed,) = [
        each
        for each in at(s, ms, lambda tx, c: session.list_(tx, c, ListSessions(team_run_id=s.run.id))).items
        if each.id == s.bob.session.id
    ]
    drawn = at(s, ms, lambda tx, c: board.board(tx, c, ShowBoard(team_run_id=s.run.id)))
    items = at(s, ms, lambda tx, c: attention.list_(tx, c, ListAttention(team_run_id=s.run.id)))
    return shown.session, listed, drawn, items


@pytest.mark.parametrize("capacity", [Capacity.EXHAUSTED, Capacity.UNAUTHORIZED])
async def test_what_gives_nothing_is_shown_with_what_lifts_it_while_it_is_fresh(
    node: InProcessNode, capacity: Capacity
) -> None:
    s = await exhausted(node, capacity)
    for ms, left in ((0, FRESH_MS), (FRESH_MS - 1, 1)):
        shown, listed, drawn, items = seen(s, ms)
        assert shown.capacity is listed.capacity is capacity
        assert shown.capacity_source == SOURCE
        (member,) = [each for each in drawn.members if each.name == "bob"]
        assert (member.capacity, member.waits) == (capacity, f"for its provider, which is {capacity.value}")
        (item,) = [each for each in items.items if each.kind is AttentionKind.CAPACITY]
        assert item.what == f"the provider of bob gives it nothing: {capacity.value}, by its {SOURCE}"
        assert item.lifted_by == (
            "it is told and started again 5 min after that was read; to try at once: "
            "firm close bob, and firm reopen bob"
        )
        assert {seat.agent_name: seat.unavailable_ms for seat in due(s, ms).seats} == {"ann": 0, "bob": left, "cid": 0}


@pytest.mark.parametrize("ms", [FRESH_MS, FRESH_MS * 100, -1])
@pytest.mark.parametrize("capacity", [c for c in Capacity if c is not Capacity.UNKNOWN])
async def test_what_is_stale_keeps_nobody_and_is_not_shown(node: InProcessNode, capacity: Capacity, ms: int) -> None:
    """I38: neither as unavailable nor as available."""
    s = await exhausted(node, capacity)
    shown, listed, drawn, items = seen(s, ms)
    (member,) = [each for each in drawn.members if each.name == "bob"]
    assert shown.capacity is listed.capacity is member.capacity is Capacity.UNKNOWN
    assert member.waits == ""
    assert [each for each in items.items if each.kind is AttentionKind.CAPACITY] == []
    (seat,) = [each for each in due(s, ms).seats if each.agent_name == "bob"]
    assert (seat.unavailable_ms, seat.waking is not None) == (0, True)


@pytest.mark.parametrize("capacity", [Capacity.AVAILABLE, Capacity.LIMITED])
async def test_who_is_given_something_is_kept_from_nothing(node: InProcessNode, capacity: Capacity) -> None:
    s = await exhausted(node, capacity)
    shown, _, drawn, items = seen(s, 0)
    (member,) = [each for each in drawn.members if each.name == "bob"]
    assert (shown.capacity, member.capacity, member.waits) == (capacity, capacity, "")
    assert [each for each in items.items if each.kind is AttentionKind.CAPACITY] == []
    assert {seat.unavailable_ms for seat in due(s, 0).seats} == {0}


async def test_of_a_session_of_which_nothing_was_read_nothing_is_known(node: InProcessNode) -> None:
    s = await effects.live(node)
    await to_bob(s)
    await told(s)
    found = await supervised(s, ended(s, None))
    assert (found.capacity, found.capacity_at, found.capacity_source) == (Capacity.UNKNOWN, None, "")


async def test_the_last_word_counts(node: InProcessNode) -> None:
    s = await exhausted(node)
    await supervised(s, deliver(s))  # a supervisor that knows more may
    made = (await supervised(s, ListDue(team_run_id=s.run.id, sup_gen=s.sup_gen))).controls[0]
    await supervised(s, effects.settle(s, made))
    found = await supervised(s, ended(s, Capacity.AVAILABLE, Ending.COMPLETED, None))
    assert found.capacity is Capacity.AVAILABLE
    assert {seat.unavailable_ms for seat in due(s, 0).seats} == {0}


@pytest.mark.parametrize("failure", Failure)
async def test_how_a_provider_failed_is_on_record(node: InProcessNode, failure: Failure) -> None:
    s = await effects.live(node)
    await to_bob(s)
    made = await told(s)
    await supervised(s, ended(s, None, failure=failure))
    found = await effects.now(s, made)
    assert (found.ending, found.failure) == (Ending.PROVIDER_FAILED, failure)


@pytest.mark.parametrize("failure", [None, *Failure])
async def test_a_process_that_ended_in_a_cycle_failed_it_as_its_records_say(
    node: InProcessNode, failure: Failure | None
) -> None:
    s = await effects.live(node)
    await to_bob(s)
    made = await told(s)
    exited = attrs.evolve(ended(s, None, failure=failure), cause=SessionCause.EXITED, ending=None)
    await supervised(s, exited)
    found = await effects.now(s, made)
    assert (found.ending, found.failure) == (Ending.PROVIDER_FAILED, failure or Failure.RUNNER_ERROR)


@pytest.mark.parametrize("ending", [e for e in Ending if e is not Ending.PROVIDER_FAILED])
async def test_only_what_a_provider_failed_has_a_failure(node: InProcessNode, ending: Ending) -> None:
    s = await effects.live(node)
    await to_bob(s)
    made = await told(s)
    await supervised(s, ended(s, None, ending))
    found = await effects.now(s, made)
    assert (found.ending, found.failure) == (ending, None)


async def test_an_interrupt_of_the_provider_counts_as_no_cycle_that_came_to_nothing(node: InProcessNode) -> None:
    """I50: and it is not credited to us."""
    s = await effects.live(node)
    await to_bob(s)
    made = await told(s)
    found = await cycle_ended(s, Ending.INTERRUPTED_BY_PROVIDER)
    assert (found.streak, (await effects.now(s, made)).ending) == (0, Ending.INTERRUPTED_BY_PROVIDER)


async def test_nothing_that_a_member_writes_sets_it(node: InProcessNode) -> None:
    """I37: mail and results with the very words of a record are words."""
    s = await effects.live(node)
    quota = '{"type": "error", "error": "quota", "capacity": "exhausted"}'
    await bob(s).ok(SendMessage(body=quota, recipients=[s.ann.membership.id]))
    work = await s.owned(s.bob)
    await s.admit(work, s.bob)
    await told(s)
    begun = await s.start(work, s.bob)
    submit = SubmitWork(work_id=begun.id, expected_version=begun.version, result_summary=quota, report_only=True)
    await bob(s).ok(submit)
    report = ended(s, Capacity.EXHAUSTED)
    for plane, who in ((Plane.MEMBER, s.bob.session), (Plane.HOST, s.ann.session), (Plane.OPERATOR, "")):
        assert (await node.refused(report, plane=plane, actor=who)).code is Code.NOT_AUTHORIZED
    now = await effects.session_now(s)
    assert (now.capacity, now.capacity_at, now.capacity_source) == (Capacity.UNKNOWN, None, "")


async def test_the_next_session_of_a_member_begins_unknown(node: InProcessNode) -> None:
    s = await exhausted(node)
    again = await effects.again(s)
    assert (again.bob.session.capacity, again.bob.session.capacity_at) == (Capacity.UNKNOWN, None)


async def test_a_run_keeps_how_many_cycles_it_began_with(node: InProcessNode) -> None:
    crew = await scene.crew(node)
    made = await node.ok(CreateTeamRun(team_id=TeamRef(crew.team.id), cycles=2))
    usual = await node.ok(CreateTeamRun(team_id=TeamRef(crew.team.id)))
    assert (made.cycles, usual.cycles) == (2, 4)
    for wrong in (0, 1001):
        refusal = await node.refused(CreateTeamRun(team_id=TeamRef(crew.team.id), cycles=wrong))
        assert refusal.about == "cycles"


async def test_who_waits_for_a_cycle_is_shown_so(node: InProcessNode) -> None:
    s = await effects.live(node)
    node.execute("UPDATE team_runs SET cycles = 1 WHERE id = ?", s.run.id)
    await to_bob(s)

    async def waits() -> dict[str, str]:
        drawn = await node.ok(ShowBoard(team_run_id=s.run.id))
        return {each.name: each.waits for each in drawn.members}

    assert await waits() == {"ann": "", "bob": "", "cid": ""}
    await supervised(s, said(s.cid.session, SessionCause.CYCLE_STARTED, s.sup_gen))
    assert await waits() == {"ann": "", "bob": "for one of 1 cycles to end", "cid": ""}
    await supervised(s, said(s.cid.session, SessionCause.CYCLE_ENDED, s.sup_gen))
    assert await waits() == {"ann": "", "bob": "", "cid": ""}
