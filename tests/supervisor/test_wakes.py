"""What wakes the supervisor of a run at once, and what it does not do again for ever; on a clock that stands still."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from client.protocol.attempt import Binding, DeliveryCause, RedeliverWork, ReportDelivery
from client.protocol.event import ListEvents
from client.protocol.operation import Plane
from client.protocol.session import SessionCause
from client.protocol.team_run import ShowTeamRun, TakeTeamRun, TeamRun
from client.protocol.work import Work
from client.protocol.work_asks import AssignWork, CreateWork, ShowWork
from daemon.inside import Inside
from supervisor.decide import MOST_FAILURES
from supervisor.run import supervise
from tests.support import works
from tests.support.node import InProcessNode
from tests.support.run import Stage, session, stage
from tests.support.supervised import report, run_now


@asynccontextmanager
async def supervised(node: InProcessNode, run: TeamRun, clock: MockClock) -> AsyncIterator[None]:
    """A supervisor holds the run, and the clock does not move."""
    inside = Inside(node.dispatcher, lambda: node.call(Plane.SUPERVISOR, run.id))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(supervise, inside, None, run.id)
        await wait_all_tasks_blocked()
        yield
        assert clock.current_time() == 0
        nursery.cancel_scope.cancel(reason="the test is over")


async def attempts(s: Stage, work: Work) -> list[Binding]:
    await wait_all_tasks_blocked()
    return (await s.node.ok(ShowWork(work_id=work.id))).bindings


async def waiting(s: Stage, needed: Work) -> tuple[TeamRun, Work]:
    """A Work of Bob's in another run of the team, in which he has his session now; it needs ``needed``."""
    made = await works.second_run(s)
    other = await s.node.ok(TakeTeamRun(team_run_id=made.id), plane=Plane.SUPERVISOR, actor=made.id)
    await report(s, s.bob.session, SessionCause.CLOSED)
    places = (await s.node.ok(ShowTeamRun(team_run_id=other.id))).members
    (place,) = [p.member_run for p in places if p.member_run.membership_id == s.bob.membership.id]
    await session(s.node, other, place)
    ask = CreateWork(
        team_run_id=other.id, title="house", completion_criteria="it stands", prerequisite_work_ids=[needed.id]
    )
    work = await s.node.ok(ask)
    assign = AssignWork(work_id=work.id, expected_version=1, membership_id=s.bob.membership.id)
    return other, await works.ann(s).ok(assign)


async def test_a_prerequisite_accepted_in_another_run_wakes_the_run_that_needs_it(
    node: InProcessNode, mock_clock: MockClock
) -> None:
    s = await stage(node)
    ground = await s.submitted(s.cid, "ground")
    other, house = await waiting(s, ground)
    async with supervised(node, other, mock_clock):
        assert await attempts(s, house) == []
        await works.accepted(s, ground)
        assert len(await attempts(s, house)) == 1


async def test_a_prerequisite_closed_in_another_run_is_an_event_there_once(node: InProcessNode) -> None:
    s = await stage(node)
    ground = await s.work("ground")
    other, house = await waiting(s, ground)
    await works.cancelled(s, ground)
    events = (await node.ok(ListEvents(limit=500))).items
    (told,) = [each for each in events if each.stream == f"prerequisite/{ground.id}/{other.id}"]
    assert (told.kind, told.body) == ("cancelled", {"resolution": "cancelled", "work_id": ground.id})
    assert (await node.ok(ShowWork(work_id=house.id))).work == house


async def test_a_delivery_that_fails_is_made_again_and_then_waits_for_the_host(
    node: InProcessNode, mock_clock: MockClock
) -> None:
    """Under the same supervisor; not for ever."""
    s = await stage(node)
    work = await s.owned(s.bob)
    async with supervised(node, s.run, mock_clock):
        sup_gen = (await run_now(node, s.run)).sup_gen
        for made in range(1, MOST_FAILURES + 1):
            found = await attempts(s, work)
            assert [each.fence for each in found] == list(range(1, made + 1))
            failed = ReportDelivery(work_id=work.id, fence=found[-1].fence, sup_gen=sup_gen, cause=DeliveryCause.FAILED)
            await node.ok(failed, plane=Plane.SUPERVISOR, actor=s.run.id)
        assert len(await attempts(s, work)) == MOST_FAILURES
        await works.ann(s).ok(RedeliverWork(work_id=work.id, expected_version=work.version))
        assert len(await attempts(s, work)) == MOST_FAILURES + 1
