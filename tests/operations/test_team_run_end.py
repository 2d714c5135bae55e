"""``team-run.complete`` and ``cancel``: a run ends when none of its Works is left open, and no Work slips in."""

from __future__ import annotations

import os

import attrs
import pytest
from trio.testing import wait_all_tasks_blocked

from client.protocol.attempt import Custody
from client.protocol.board import ListDue
from client.protocol.effect import Certainty, CloseSession, EffectKind, ListEffects, RuntimeEffect
from client.protocol.ids import AgentMemberRef, TeamRunId
from client.protocol.operation import Plane
from client.protocol.refusals import Code, Refusal
from client.protocol.session import BindSession, Driver, SessionCause, SessionState
from client.protocol.team_run import CancelTeamRun, CompleteTeamRun, FinishTeamRun, ResumeTeamRun, TeamRun, TeamRunState
from client.protocol.work import Phase, Resolution, Work
from client.protocol.work_asks import AcceptWork, CancelWork, CreateWork, ListWorks, ShowWork
from tests.support import effects, refusals
from tests.support.node import Exchange, InProcessNode
from tests.support.refusals import refused_while_spoilt
from tests.support.run import Stage, stage
from tests.support.spoil import mend, spoil
from tests.support.supervised import (
    close_all,
    declined,
    declined_while_spoilt,
    drained,
    fenced,
    report,
    run_now,
    supervised,
)

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


async def asked_to_end(s: Stage) -> dict[str, RuntimeEffect]:
    """What was asked of each session that is not settled."""
    return {each.session_id: each for each in (await s.node.ok(ListEffects(team_run_id=s.run.id))).items}


async def due(s: Stage) -> bool:
    """Whether its supervisor goes on with the end of the run now."""
    return (await supervised(s, ListDue(team_run_id=s.run.id, sup_gen=s.sup_gen))).finishes


def finish(s: Stage, *, run: TeamRunId | None = None, sup_gen: int = 0) -> FinishTeamRun:
    return FinishTeamRun(team_run_id=run or s.run.id, sup_gen=sup_gen or s.sup_gen)


async def test_a_host_completes_its_run_and_its_own_session_is_ended_too(node: InProcessNode) -> None:
    """A process that goes on would work for a run that is over: each is asked to end, then the run is over."""
    s = await stage(node)
    draining = await node.ok(complete(s.run), plane=Plane.HOST, actor=s.ann.session)
    assert (draining.state, draining.completing, draining.ended_at) == (TeamRunState.DRAINING, True, None)
    refusal = await node.refused(create(s.run))
    assert refusal.code is Code.TEAM_RUN_NOT_OPEN, "no Work slips in meanwhile"
    stops = await asked_to_end(s)
    assert set(stops) == {each.session.id for each in (s.ann, s.bob, s.cid)}
    assert {each.kind for each in stops.values()} == {EffectKind.STOP}
    for stop in stops.values():
        assert not await due(s), "their ends are under way"
        await supervised(s, effects.settle(s, stop))
    assert await due(s)
    assert (await supervised(s, finish(s))).state is TeamRunState.COMPLETED


async def test_an_end_that_was_not_proven_keeps_a_run_from_being_completed(node: InProcessNode) -> None:
    """It is asked for once; who asks for it again, and proves it, completes the run."""
    s = await stage(node)
    await node.ok(complete(s.run))
    failed, *others = (await asked_to_end(s)).values()
    await supervised(s, effects.settle(s, failed, Certainty.NOT_APPLIED))
    for stop in others:
        await supervised(s, effects.settle(s, stop))
    assert not await due(s)
    again = await node.ok(CloseSession(session_id=failed.session_id))
    assert again.id != failed.id
    await supervised(s, effects.settle(s, again))
    assert await due(s)


async def test_a_run_that_was_told_so_is_completed_with_its_last_work(node: InProcessNode) -> None:
    """Works may still come until then; telling it twice changes nothing."""
    s = await stage(node)
    work = await s.submitted(s.bob)
    ask = attrs.evolve(complete(s.run), when_closed=True)
    told = await node.ok(ask)
    assert (told.state, told.completing) == (TeamRunState.RUNNING, True)
    assert await node.ok(attrs.evolve(ask, expected_version=told.version)) == told
    other = await node.ok(create(s.run, "another"))
    await accepted(s, work)
    assert not await due(s)
    last = CancelWork(work_id=other.id, expected_version=other.version, reason="no use")
    await node.ok(last, plane=Plane.HOST, actor=s.ann.session)
    assert await due(s)
    draining = await supervised(s, finish(s))
    assert (draining.state, draining.completing) == (TeamRunState.DRAINING, True)
    assert len(await asked_to_end(s)) == 3


async def test_a_run_that_is_drained_is_not_completed_with_its_last_work(node: InProcessNode) -> None:
    """Whoever drains it has other plans, and says so again if not."""
    s = await stage(node)
    work = await s.submitted(s.bob)
    told = await node.ok(attrs.evolve(complete(s.run), when_closed=True))
    draining = await drained(node, told)
    assert not draining.completing
    await accepted(s, work)
    assert not await due(s)
    assert (await node.ok(complete(draining))).completing
    assert len(await asked_to_end(s)) == 3


async def test_a_run_that_is_resumed_is_not_completed(node: InProcessNode) -> None:
    s = await stage(node)
    draining = await node.ok(complete(s.run))
    resumed = await node.ok(ResumeTeamRun(team_run_id=s.run.id, expected_version=draining.version))
    assert (resumed.state, resumed.completing) == (TeamRunState.RUNNING, False)
    for stop in (await asked_to_end(s)).values():
        await supervised(s, effects.settle(s, stop))
    assert not await due(s)


async def test_team_run_finish_ok(node: InProcessNode) -> None:
    """Once its sessions were asked to end there is nothing more to ask for; with none left it is over."""
    s = await stage(node)
    draining = await node.ok(complete(s.run))
    stops = await asked_to_end(s)
    assert await supervised(s, finish(s)) == draining
    assert await asked_to_end(s) == stops
    for stop in stops.values():
        await supervised(s, effects.settle(s, stop))
    done = await supervised(s, finish(s))
    assert (done.state, done.ended_at) == (TeamRunState.COMPLETED, done.updated_at)


async def test_team_run_finish_invalid_state_transition(node: InProcessNode) -> None:
    """A supervisor ends no run that nobody told to."""
    s = await stage(node)
    assert not await due(s)
    refusal = await declined(s, finish(s))
    assert (refusal.code, refusal.about) == (Code.INVALID_STATE_TRANSITION, f"team-run/{s.run.id}")


async def test_team_run_finish_not_found(node: InProcessNode) -> None:
    s = await stage(node)
    assert await declined(s, finish(s, run=NO_RUN)) == refusals.not_found("team-run", "nothing")


async def test_team_run_finish_row_quarantined(node: InProcessNode) -> None:
    """Also while one of its Works cannot be read: nobody knows whether that is closed."""
    s = await stage(node)
    work = await s.work()
    run = await node.ok(attrs.evolve(complete(s.run), when_closed=True))
    await declined_while_spoilt(s, finish(s), "works", work.id, then=Code.WORK_NOT_CLOSED)
    ask = CancelWork(work_id=work.id, expected_version=work.version, reason="no use")
    await node.ok(ask, plane=Plane.HOST, actor=s.ann.session)
    await declined_while_spoilt(s, finish(s), "team_runs", run.id)


async def test_team_run_finish_supervisor_generation_fenced(node: InProcessNode) -> None:
    s = await stage(node)
    await node.ok(complete(s.run))
    assert await declined(s, finish(s, sup_gen=s.sup_gen + 1)) == fenced(s, s.sup_gen + 1)


async def test_team_run_finish_team_run_not_open(node: InProcessNode) -> None:
    s, run = await over(node, TeamRunState.COMPLETED)
    refusal = await declined(s, finish(s))
    assert (refusal.code, refusal.about) == (Code.TEAM_RUN_NOT_OPEN, f"team-run/{run.id}")


async def test_team_run_finish_work_not_closed(node: InProcessNode) -> None:
    s = await stage(node)
    work = await s.submitted(s.bob)
    await node.ok(attrs.evolve(complete(s.run), when_closed=True))
    assert not await due(s)
    refusal = await declined(s, finish(s))
    assert (refusal.code, refusal.about) == (Code.WORK_NOT_CLOSED, f"work/{work.id}")


async def test_a_session_that_a_person_bound_is_left_to_the_person(node: InProcessNode) -> None:
    s = await stage(node)
    await close_all(s)
    bound = await node.ok(BindSession(agent_member_id=AgentMemberRef("bob"), pid=os.getppid()))
    assert (await node.ok(complete(s.run))).state is TeamRunState.COMPLETED
    assert (await effects.session_now(s, bound)).state is SessionState.IDLE


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
    lifted_by = f"end it first: firm session close {s.bob.session.id}"
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
