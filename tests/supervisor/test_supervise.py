"""The loop of a run, inside the daemon, on a clock that stands still: whatever polls would never act."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import attrs
import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from client.protocol.agent import ResumeAgent
from client.protocol.attempt import AdmitWork, Binding
from client.protocol.board import ListDue
from client.protocol.ids import AgentMemberRef, TeamRef, TeamRunId
from client.protocol.operation import Node, Plane, R, Request
from client.protocol.refusals import Code, Refusal
from client.protocol.session import SessionCause
from client.protocol.team_run import CompleteTeamRun, CreateTeamRun, ResumeTeamRun, TakeTeamRun, TeamRun
from client.protocol.work import Priority, Work
from client.protocol.work_asks import (
    AcceptWork,
    AssignWork,
    BlockWork,
    CancelWork,
    ClaimWork,
    HoldWork,
    ListWorks,
    ShowWork,
    UnholdWork,
)
from daemon import loops as loops_of_the_daemon
from daemon.inside import Inside
from daemon.loops import Loops
from supervisor.desk import _AGAIN
from supervisor.means import Means
from supervisor.run import supervise
from tests.support import scene
from tests.support.node import InProcessNode
from tests.support.run import Member, Stage, stage
from tests.support.spoil import mend, spoil
from tests.support.supervised import close_all, drained, report, run_now, started


@attrs.define
class Supervisor:
    """One that runs; ``ended`` is what ended it."""

    ended: Refusal | None = None


def inside(node: InProcessNode, run_id: TeamRunId) -> Inside:
    return Inside(node.dispatcher, lambda: node.call(Plane.SUPERVISOR, run_id))


@asynccontextmanager
async def supervised(s: Stage, clock: MockClock, how: Node | None = None) -> AsyncIterator[Supervisor]:
    """A supervisor that holds the run of ``s`` and has seen what is due. A clock that stood still has not moved."""
    supervisor = Supervisor()

    async def run() -> None:
        supervisor.ended = await supervise(how or inside(s.node, s.run.id), None, s.run.id)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(run)
        await wait_all_tasks_blocked()
        yield supervisor
        assert how is not None or clock.current_time() == 0
        nursery.cancel_scope.cancel(reason="the test is over")


@pytest.fixture
def still(mock_clock: MockClock) -> MockClock:
    """A clock that does not move by itself."""
    return mock_clock


async def attempts(s: Stage, *works: Work) -> list[Binding]:
    await wait_all_tasks_blocked()
    return [b for work in works for b in (await s.node.ok(ShowWork(work_id=work.id))).bindings]


async def order(s: Stage) -> list[str]:
    """The titles of what was admitted, in order."""
    await wait_all_tasks_blocked()
    works = (await s.node.ok(ListWorks(team_run_id=s.run.id))).items
    found = {b.id: work.title for work in works for b in (await s.node.ok(ShowWork(work_id=work.id))).bindings}
    return [found[row[1]] for row in s.node.rows()["bindings"]]


async def as_ann(s: Stage, ask: Request[R]) -> R:
    return await s.node.ok(ask, plane=Plane.HOST, actor=s.ann.session)


async def accepted(s: Stage, work: Work) -> None:
    receipt = await s.receipt(work)
    await as_ann(s, AcceptWork(work_id=work.id, expected_version=work.version, receipt_id=receipt))


async def test_it_takes_the_run_and_admits_what_is_due(node: InProcessNode, still: MockClock) -> None:
    """At the moment in which it becomes due, by a commit, without a tick of the clock."""
    s = await stage(node)
    before = await s.owned(s.bob, "before")
    async with supervised(s, still):
        assert (await run_now(node, s.run)).sup_gen == s.sup_gen + 1
        (first,) = await attempts(s, before)
        assert (first.session_id, first.session_gen) == (s.bob.session.id, s.bob.session.session_gen)
        after = await s.owned(s.cid, "after")
        (second,) = await attempts(s, after)
        assert second.membership_id == s.cid.membership.id


async def test_the_most_urgent_goes_first(node: InProcessNode, still: MockClock) -> None:
    """Across members; among equals the oldest."""
    s = await stage(node)
    await s.owned(s.bob, "normal")
    await s.owned(s.cid, "low", priority=Priority.LOW)
    await s.owned(s.ann, "urgent", priority=Priority.URGENT)
    async with supervised(s, still):
        assert await order(s) == ["urgent", "normal", "low"]


async def test_a_member_is_given_one_work_at_a_time(node: InProcessNode, still: MockClock) -> None:
    """The next one comes once it has submitted or blocked what it has; in the order of their urgency."""
    s = await stage(node)
    low = await s.owned(s.bob, "low", priority=Priority.LOW)
    first = await s.owned(s.bob, "first")
    high = await s.owned(s.bob, "high", priority=Priority.HIGH)
    async with supervised(s, still):
        assert await order(s) == ["high"]
        await s.submit(await s.start(high, s.bob), s.bob)
        assert await order(s) == ["high", "first"]
        started = await s.start(first, s.bob)
        assert await order(s) == ["high", "first"]
        block = BlockWork(work_id=first.id, expected_version=started.version, reason="waits")
        await node.ok(block, plane=Plane.MEMBER, actor=s.bob.session)
        assert await order(s) == ["high", "first", "low"]
        assert len(await attempts(s, low)) == 1


async def test_what_is_not_ready_at_the_head_keeps_nobody_waiting(node: InProcessNode, still: MockClock) -> None:
    """I36: the most urgent waits for its prerequisite, what is ready goes; and it goes once that is accepted."""
    s = await stage(node)
    need = await s.owned(s.cid, "need")
    head = await s.owned(s.bob, "head", priority=Priority.URGENT, prerequisite_work_ids=[need.id])
    ready = await s.owned(s.bob, "ready", priority=Priority.LOW)
    async with supervised(s, still):
        assert await order(s) == ["need", "ready"]
        await s.submit(await s.start(ready, s.bob), s.bob)
        await accepted(s, await s.submit(await s.start(need, s.cid), s.cid))
        assert await order(s) == ["need", "ready", "head"]
        assert len(await attempts(s, head)) == 1


async def test_everything_that_makes_a_work_due_wakes_it(node: InProcessNode, still: MockClock) -> None:
    """A claim, an unhold, a session that is ready, a member that is resumed, a run that goes on."""
    s = await stage(node)
    async with supervised(s, still):
        claimed = await s.work("claimed")
        claim = ClaimWork(work_id=claimed.id, expected_version=claimed.version)
        claimed = await node.ok(claim, plane=Plane.MEMBER, actor=s.bob.session)
        assert await order(s) == ["claimed"]
        await s.submit(await s.start(claimed, s.bob), s.bob)

        held = await s.work("held")
        held = await as_ann(s, HoldWork(work_id=held.id, expected_version=held.version, reason="wait"))
        held = await assigned(s, held, s.bob)
        assert await order(s) == ["claimed"]
        await as_ann(s, UnholdWork(work_id=held.id, expected_version=held.version))
        assert await order(s) == ["claimed", "held"]

        gone = await report(attrs.evolve(s, run=await run_now(node, s.run)), s.cid.session, SessionCause.EXITED)
        await s.owned(s.cid, "no session")
        assert await order(s) == ["claimed", "held"]
        await report(attrs.evolve(s, run=await run_now(node, s.run)), gone, SessionCause.READY)
        assert await order(s) == ["claimed", "held", "no session"]

        paused = await scene.paused(node, s.ann.agent)
        await assigned_by_operator(s, "paused")
        assert await order(s) == ["claimed", "held", "no session"]
        await node.ok(ResumeAgent(agent_member_id=AgentMemberRef("ann"), expected_version=paused.version))
        assert await order(s) == ["claimed", "held", "no session", "paused"]


async def assigned(s: Stage, work: Work, to: Member) -> Work:
    ask = AssignWork(work_id=work.id, expected_version=work.version, membership_id=to.membership.id)
    return await as_ann(s, ask)


async def assigned_by_operator(s: Stage, title: str) -> Work:
    """To Ann, by herself: she is paused, not her session."""
    return await assigned(s, await s.work(title), s.ann)


async def test_a_draining_run_is_given_nothing_until_it_goes_on(node: InProcessNode, still: MockClock) -> None:
    s = await stage(node)
    work = await s.owned(s.bob)
    draining = await drained(node, s.run)
    async with supervised(s, still) as supervisor:
        assert await attempts(s, work) == []
        run = await run_now(node, draining)
        await node.ok(ResumeTeamRun(team_run_id=run.id, expected_version=run.version))
        assert len(await attempts(s, work)) == 1
        assert supervisor.ended is None


async def test_it_ends_when_a_newer_one_takes_the_run(node: InProcessNode, still: MockClock) -> None:
    s = await stage(node)
    async with supervised(s, still) as former:
        taken = await node.ok(TakeTeamRun(team_run_id=s.run.id), plane=Plane.SUPERVISOR, actor=s.run.id)
        await wait_all_tasks_blocked()
        assert former.ended is not None
        assert former.ended.code is Code.SUPERVISOR_GENERATION_FENCED
        assert f"sup_gen={taken.sup_gen} holds this run" in former.ended.lifted_by


async def test_it_ends_with_its_run(node: InProcessNode, still: MockClock) -> None:
    s = await stage(node)
    async with supervised(s, still) as supervisor:
        run = await run_now(node, s.run)
        await close_all(attrs.evolve(s, run=run))
        await node.ok(CompleteTeamRun(team_run_id=run.id, expected_version=run.version))
        await wait_all_tasks_blocked()
        assert supervisor.ended is not None
        assert supervisor.ended.code is Code.TEAM_RUN_NOT_OPEN


async def test_of_two_that_race_one_admits(node: InProcessNode, still: MockClock) -> None:
    """Both began; the one that took the run last holds it. There is one attempt, whoever asked first."""
    s = await stage(node)
    work = await s.owned(s.bob)
    async with supervised(s, still) as one, supervised(s, still) as other:
        another = await s.owned(s.cid, "another")
        assert len(await attempts(s, work)) == 1
        assert len(await attempts(s, another)) == 1
        assert sorted(each.ended.code if each.ended else "" for each in (one, other)) == [
            "",
            Code.SUPERVISOR_GENERATION_FENCED,
        ]


async def test_of_two_admissions_in_one_transaction_one_is_made(node: InProcessNode) -> None:
    s = await stage(node)
    work = await s.owned(s.bob)
    ask = AdmitWork(work_id=work.id, session_id=s.bob.session.id, sup_gen=s.sup_gen)
    both = [node.send(ask, plane=Plane.SUPERVISOR, actor=s.run.id) for _ in range(2)]
    node.commit()
    first, second = [await each.outcome() for each in both]
    assert isinstance(first, Binding)
    assert isinstance(second, Refusal)
    assert (second.code, second.about) == (Code.WORK_BINDING_LIVE, f"work/{work.id}")


async def test_nothing_is_woken_for_what_is_in_review_or_closed(node: InProcessNode, still: MockClock) -> None:
    s = await stage(node)
    review, closed = await s.submitted(s.bob), await s.owned(s.cid, "closed")
    await as_ann(s, CancelWork(work_id=closed.id, expected_version=closed.version, reason="no use"))
    async with supervised(s, still):
        assert len(await attempts(s, review)) == 1
        assert await attempts(s, closed) == []


@attrs.define
class Faulty:
    """A node that refuses the first questions of one kind with ``code``, as a full disk would."""

    node: Node
    kind: type[Request[Any]]
    code: Code
    left: int = 3

    async def ask(self, request: Request[R], *, key: str = "") -> R | Refusal:
        if type(request) is self.kind and self.left:
            self.left -= 1
            return Refusal(code=self.code, about="node", lifted_by="free space")
        return await self.node.ask(request, key=key)


@pytest.mark.parametrize("kind", [TakeTeamRun, ListDue, AdmitWork])
@pytest.mark.parametrize("code", [Code.STORE_FULL, Code.INTERNAL, Code.STORE_BUSY])
async def test_a_fault_is_waited_out(
    node: InProcessNode, autojump_clock: MockClock, kind: type[Request[Any]], code: Code
) -> None:
    """It asks again after a while, for as long as it takes; it gives up for a newer supervisor or an end only."""
    s = await stage(node)
    work = await s.owned(s.bob)
    faulty = Faulty(inside(node, s.run.id), kind, code)
    async with supervised(s, autojump_clock, faulty) as supervisor:
        with trio.move_on_after(3 * _AGAIN + 1):
            await trio.sleep_forever()  # of the mock clock, which jumps
        assert len(await attempts(s, work)) == 1
        assert supervisor.ended is None
        assert faulty.left == 0


@attrs.define
class Counting:
    """A node that counts the looks of a supervisor."""

    node: Node
    looks: int = 0

    async def ask(self, request: Request[R], *, key: str = "") -> R | Refusal:
        self.looks += isinstance(request, ListDue)
        return await self.node.ask(request, key=key)


async def test_a_run_in_which_much_happens_is_looked_at_once_for_all_of_it(
    node: InProcessNode, still: MockClock, looks_apart: float
) -> None:
    s = await stage(node)
    counting = Counting(inside(node, s.run.id))
    async with supervised(s, still, counting):
        works = [await s.owned(each, str(n)) for n, each in enumerate((s.bob, s.cid, s.ann))]
        assert await attempts(s, *works) == []
        assert counting.looks == 1
        still.jump(looks_apart)
        assert len(await attempts(s, *works)) == len(works)
        assert counting.looks == 2
        still.jump(looks_apart)  # for what was admitted
        await wait_all_tasks_blocked()
        still.jump(looks_apart)
        before = counting.looks
        await s.owned(s.bob, "in a run at rest")
        await wait_all_tasks_blocked()
        assert counting.looks == before + 1


async def test_one_work_that_cannot_be_admitted_holds_nobody_up(node: InProcessNode, still: MockClock) -> None:
    s = await stage(node)
    spoilt, sound = await s.owned(s.bob, "spoilt"), await s.owned(s.cid, "sound")
    was = spoil(node.store.path, "works", spoilt.id)
    async with supervised(s, still) as supervisor:
        assert len(await attempts(s, sound)) == 1
        mend(node.store.path, "works", spoilt.id, was)
        other = await s.owned(s.ann, "other")
        assert len(await attempts(s, spoilt, other)) == 2
        assert supervisor.ended is None


async def test_every_run_that_goes_on_gets_a_supervisor_of_the_daemon(node: InProcessNode, still: MockClock) -> None:
    """One that was going on when the daemon began, and one that is started; none that only is planned."""
    s = await stage(node)
    loops = Loops(node.dispatcher, node.relay, node.live.health, node.call, means=None)
    async with trio.open_nursery() as nursery:
        await nursery.start(loops.serve)
        await wait_all_tasks_blocked()
        assert (await run_now(node, s.run)).sup_gen == s.sup_gen + 1
        other = await planned(s)
        await wait_all_tasks_blocked()
        assert (await run_now(node, other)).sup_gen == 0
        await started(node, other)
        await wait_all_tasks_blocked()
        assert (await run_now(node, other)).sup_gen == 1
        assert still.current_time() == 0
        nursery.cancel_scope.cancel(reason="the test is over")


async def test_a_bug_over_one_run_ends_neither_the_daemon_nor_another_run(
    node: InProcessNode, still: MockClock, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Its supervisor begins anew after a while."""
    s = await stage(node)
    other = await started(node, await planned(s))
    failed: list[str] = []
    real = supervise

    async def once(asked: Node, means: Means | None, run_id: TeamRunId) -> Refusal:
        if run_id == s.run.id and not failed:
            failed.append(run_id)
            raise ZeroDivisionError
        return await real(asked, means, run_id)

    monkeypatch.setattr(loops_of_the_daemon, "supervise", once)
    loops = Loops(node.dispatcher, node.relay, node.live.health, node.call, means=None)
    async with trio.open_nursery() as nursery:
        await nursery.start(loops.serve)
        await wait_all_tasks_blocked()
        assert [(await run_now(node, run)).sup_gen for run in (s.run, other)] == [s.sup_gen, 1]
        (trouble,) = node.live.health.troubles
        assert trouble.code == "SUPERVISOR_FAILED"
        assert s.run.id in trouble.what
        still.jump(loops_of_the_daemon.AGAIN)
        await wait_all_tasks_blocked()
        assert (await run_now(node, s.run)).sup_gen == s.sup_gen + 1
        assert node.live.health.troubles == [trouble], "the next one may fail too"
        still.jump(loops_of_the_daemon.CALM)
        await wait_all_tasks_blocked()
        assert node.live.health.troubles == []
        nursery.cancel_scope.cancel(reason="the test is over")
    assert "ZeroDivisionError" in caplog.text


async def planned(s: Stage) -> TeamRun:
    return await s.node.ok(CreateTeamRun(team_id=TeamRef(s.team.id)))
