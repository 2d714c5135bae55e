"""``team-run.complete`` and ``cancel``: a run ends when none of its Works is left open, and no Work slips in."""

from __future__ import annotations

import os

import attrs
import pytest
from trio.testing import wait_all_tasks_blocked

from client.protocol.attempt import Custody
from client.protocol.ids import AgentMemberRef, TeamRunId
from client.protocol.operation import Plane
from client.protocol.refusals import Code, Refusal
from client.protocol.session import BindSession, Driver, SessionCause
from client.protocol.team_run import CancelTeamRun, CompleteTeamRun, TeamRun, TeamRunState
from client.protocol.work import Phase, Resolution, Work
from client.protocol.work_asks import AcceptWork, CancelWork, CreateWork, ListWorks, ShowWork
from tests.support import refusals
from tests.support.node import Exchange, InProcessNode
from tests.support.refusals import refused_while_spoilt
from tests.support.run import Stage, stage
from tests.support.spoil import mend, spoil
from tests.support.supervised import close_all, drained, report, run_now

NO_RUN = TeamRunId("nothing")
OVER = [TeamRunState.COMPLETED, TeamRunState.CANCELLED]


def complete(run: TeamRun, version: int | None = None) -> CompleteTeamRun:
    return CompleteTeamRun(team_run_id=run.id, expected_version=version or run.version)


def cancel(run: TeamRun, version: int | None = None) -> CancelTeamRun:
    return CancelTeamRun(team_run_id=run.id, expected_version=version or run.version, reason="no use")


def create(run: TeamRun, title: str = "late") -> CreateWork:
    return CreateWork(team_run_id=run.id, title=title, completion_criteria="it works")


async def accepted(s: Stage, work: Work) -> Work:
    ask = AcceptWork(work_id=work.id, expected_version=work.version, receipt_id=await s.receipt(work))
    return await s.node.ok(ask, plane=Plane.HOST, actor=s.ann.session)


async def over(node: InProcessNode, state: TeamRunState) -> tuple[Stage, TeamRun]:
    s = await stage(node)
    await close_all(s)
    return s, await node.ok(complete(s.run) if state is TeamRunState.COMPLETED else cancel(s.run))


async def test_team_run_complete_ok(node: InProcessNode) -> None:
    """Accepted, cancelled and failed Works are closed; a draining run completes too."""
    s = await stage(node)
    await accepted(s, await s.submitted(s.bob))
    other = await s.work("another")
    ask = CancelWork(work_id=other.id, expected_version=other.version, reason="no use")
    await node.ok(ask, plane=Plane.HOST, actor=s.ann.session)
    draining = await drained(node, s.run)
    await close_all(attrs.evolve(s, run=draining))
    done = await node.ok(complete(draining))
    assert done == attrs.evolve(
        draining,
        version=draining.version + 1,
        state=TeamRunState.COMPLETED,
        updated_at=done.updated_at,
        ended_at=done.updated_at,
    )


@pytest.mark.parametrize("state", OVER)
async def test_team_run_complete_invalid_state_transition(node: InProcessNode, state: TeamRunState) -> None:
    _, run = await over(node, state)
    refusal = await node.refused(complete(run))
    assert refusal == refusals.no_move(f"team-run/{run.id}", state.value, "running or draining")


async def test_team_run_complete_not_found(node: InProcessNode) -> None:
    ask = CompleteTeamRun(team_run_id=NO_RUN, expected_version=1)
    assert await node.refused(ask) == refusals.not_found("team-run", "nothing")


async def test_team_run_complete_row_quarantined(node: InProcessNode) -> None:
    """Also while one of its Works cannot be read: nobody knows whether that is closed."""
    s = await stage(node)
    work = await s.work()
    was = spoil(node.store.path, "works", work.id)
    assert await node.refused(complete(s.run)) == refusals.unreadable(f"works/{work.id}")
    mend(node.store.path, "works", work.id, was)
    await node.ok(CancelWork(work_id=work.id, expected_version=1, reason="-"), plane=Plane.HOST, actor=s.ann.session)
    await close_all(s)
    await refused_while_spoilt(node, complete(s.run), "team_runs", s.run.id)


async def test_team_run_complete_session_live(node: InProcessNode) -> None:
    """A process that goes on would work for a run that is over."""
    s = await stage(node)
    for each in (s.ann, s.bob, s.cid):
        refusal = await node.refused(complete(s.run))
        assert (refusal.code, refusal.about) == (Code.SESSION_LIVE, f"session/{each.session.id}")
        await report(s, each.session, SessionCause.CLOSED)
    await node.ok(complete(s.run))


async def test_team_run_complete_version_conflict(node: InProcessNode) -> None:
    s = await stage(node)
    for version in (s.run.version - 1, s.run.version + 1):
        conflict = refusals.conflict(f"team-run/{s.run.id}", s.run.version)
        assert await node.refused(complete(s.run, version)) == conflict


async def test_team_run_complete_work_not_closed(node: InProcessNode) -> None:
    """In whatever phase, owned or not, held or not; submitted is not done."""
    s = await stage(node)
    works = [await s.submitted(s.bob), await s.started(s.cid, "second"), await s.work("third"), await s.work("4th")]
    for drain in (False, True):
        run = await drained(node, s.run) if drain else s.run
        refusal = await node.refused(complete(run))
        assert (refusal.code, refusal.about) == (Code.WORK_NOT_CLOSED, f"work/{works[0].id}")
        for work in works[:3]:
            assert f"{work.id} ({work.title}, {work.phase.value})" in refusal.lifted_by
        assert refusal.lifted_by.endswith("and others")


async def together(node: InProcessNode, *exchanges: Exchange) -> list[object]:
    """What the units that are queued come to, in one transaction."""
    assert all(each.nothing_yet() for each in exchanges)
    node.commit()
    return [await each.outcome() for each in exchanges]


async def test_either_the_work_is_there_or_the_run_is_over(node: InProcessNode) -> None:
    """I16: units that are committed together are still one behind the other."""
    s = await stage(node)
    made, done = await together(node, node.send(create(s.run)), node.send(complete(s.run)))
    assert isinstance(made, Work)
    assert isinstance(done, Refusal)
    assert (done.code, done.about) == (Code.WORK_NOT_CLOSED, f"work/{made.id}")
    ask = CancelWork(work_id=made.id, expected_version=1, reason="no use")
    await node.ok(ask, plane=Plane.HOST, actor=s.ann.session)
    await close_all(s)
    done, late = await together(node, node.send(complete(s.run)), node.send(create(s.run)))
    assert isinstance(done, TeamRun)
    assert isinstance(late, Refusal)
    assert (late.code, late.about) == (Code.TEAM_RUN_NOT_OPEN, f"team-run/{s.run.id}")
    assert (await run_now(node, s.run)).state is TeamRunState.COMPLETED


async def test_two_who_end_a_run_end_it_once(node: InProcessNode) -> None:
    s = await stage(node)
    await close_all(s)
    first, second = await together(node, node.send(complete(s.run)), node.send(complete(s.run)))
    assert isinstance(first, TeamRun)
    assert second == refusals.conflict(f"team-run/{s.run.id}", first.version)


async def test_team_run_cancel_ok(node: InProcessNode) -> None:
    """Its open Works are closed under the caller's name, their lost attempts end; what was accepted stays accepted."""
    s = await stage(node)
    done = await accepted(s, await s.submitted(s.bob))
    lost, review = await s.started(s.cid, "lost"), await s.submitted(s.bob, "review")
    await report(s, s.cid.session, SessionCause.LOST, SessionCause.RESOLVED)
    refusal = await node.refused(
        cancel(s.run),
    )
    assert refusal.code is Code.SESSION_LIVE
    await report(s, s.ann.session, SessionCause.CLOSED)
    await report(s, s.bob.session, SessionCause.CLOSED)
    node.execute("UPDATE sessions SET state = 'closed', closed_at = 1 WHERE id = ?", s.cid.session.id)
    ended = await node.ok(cancel(s.run))
    assert (ended.state, ended.ended_at) == (TeamRunState.CANCELLED, ended.updated_at)
    works = {work.id: work for work in (await node.ok(ListWorks(team_run_id=s.run.id))).items}
    assert works[done.id] == done
    for each in (lost, review):
        closed = works[each.id]
        assert (closed.phase, closed.resolution, closed.reason) == (Phase.CLOSED, Resolution.CANCELLED, "no use")
    (binding,) = (await node.ok(ShowWork(work_id=lost.id))).bindings
    assert (binding.custody, binding.reason) == (Custody.RELEASED, "no use")


async def test_a_planned_run_is_cancelled(node: InProcessNode) -> None:
    _, run = await over(node, TeamRunState.CANCELLED)
    assert run.state is TeamRunState.CANCELLED


@pytest.mark.parametrize("state", OVER)
async def test_team_run_cancel_invalid_state_transition(node: InProcessNode, state: TeamRunState) -> None:
    _, run = await over(node, state)
    refusal = await node.refused(cancel(run))
    good = "planned or running or draining"
    assert refusal == refusals.no_move(f"team-run/{run.id}", state.value, good)


async def test_team_run_cancel_not_found(node: InProcessNode) -> None:
    ask = CancelTeamRun(team_run_id=NO_RUN, expected_version=1, reason="-")
    assert await node.refused(ask) == refusals.not_found("team-run", "nothing")


async def test_team_run_cancel_row_quarantined(node: InProcessNode) -> None:
    s = await stage(node)
    await close_all(s)
    work = await s.work()
    await refused_while_spoilt(node, cancel(s.run), "works", work.id)


async def test_team_run_cancel_session_live(node: InProcessNode) -> None:
    """A session that a supervisor drives is its to close; one that a person bound is unbound."""
    s = await stage(node)
    await report(s, s.ann.session, SessionCause.CLOSED)
    await report(s, s.cid.session, SessionCause.CLOSED)
    refusal = await node.refused(cancel(s.run))
    close = f"firm session close {s.bob.session.id}"
    lifted_by = f"end it first: {close}; or its supervisor opens the next one in its place"
    assert refusal == Refusal(code=Code.SESSION_LIVE, about=f"session/{s.bob.session.id}", lifted_by=lifted_by)
    await report(s, s.bob.session, SessionCause.CLOSED)
    bound = await node.ok(BindSession(agent_member_id=AgentMemberRef("bob"), pid=os.getppid()))
    assert bound.driver is Driver.USER_DRIVEN
    refusal = await node.refused(cancel(s.run))
    assert not isinstance(await node.follow(refusal), Refusal)
    await node.ok(cancel(s.run))


async def test_team_run_cancel_version_conflict(node: InProcessNode) -> None:
    s = await stage(node)
    conflict = refusals.conflict(f"team-run/{s.run.id}", s.run.version)
    assert await node.refused(cancel(s.run, 1)) == conflict


async def test_a_run_that_is_over_is_waited_for_and_takes_nothing(node: InProcessNode) -> None:
    _, run = await over(node, TeamRunState.COMPLETED)
    late = node.send(create(run))
    await wait_all_tasks_blocked()
    refusal = await late.outcome()
    assert isinstance(refusal, Refusal)
    assert refusal.code is Code.TEAM_RUN_NOT_OPEN
