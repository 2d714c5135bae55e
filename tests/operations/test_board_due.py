"""``team-run.due``, one test an outcome of the table: what a supervisor can admit now."""

from __future__ import annotations

from client.protocol.agent import ResumeAgent
from client.protocol.board import (
    Due,
    DueList,
    ListDue,
)
from client.protocol.effect import Certainty, EffectKind
from client.protocol.ids import AgentMemberRef, SupGen
from client.protocol.operation import Plane
from client.protocol.refusals import Code
from client.protocol.team_run import DrainTeamRun, TakeTeamRun
from client.protocol.work_asks import AcceptWork, CancelWork, HoldWork
from tests.support import effects, mail, refusals, scene
from tests.support.mail import ok
from tests.support.node import InProcessNode
from tests.support.run import Stage, stage
from tests.support.supervised import run_now, supervised


async def due(s: Stage) -> list[str]:
    ask = ListDue(team_run_id=s.run.id, sup_gen=s.sup_gen)
    return [each.work_id for each in (await s.node.ok(ask, plane=Plane.SUPERVISOR, actor=s.run.id)).items]


async def test_team_run_due_ok(node: InProcessNode) -> None:
    s = await stage(node)
    work = await s.owned(s.bob)
    ask = ListDue(team_run_id=s.run.id, sup_gen=s.sup_gen)
    found = await node.ok(ask, plane=Plane.SUPERVISOR, actor=s.run.id)
    session = s.bob.session
    one = Due(
        work_id=work.id, work_version=work.version, session_id=session.id, session_gen=session.session_gen, failed=0
    )
    assert (found.items, found.sup_gen, found.seq) == ([one], SupGen(s.sup_gen), node.store.seq)
    assert {seat.agent_name: seat.session for seat in found.seats}["bob"] == session
    assert found.controls == []
    seats = [(each.agent_name, each.takes_sessions, each.launch) for each in found.seats]
    assert seats == [(each.agent.name, True, None) for each in (s.ann, s.bob, s.cid)]
    await s.admit(work, s.bob)
    assert await due(s) == []


async def seats(s: Stage) -> dict[str, tuple[bool, str]]:
    """Who takes a session now, and the last launch of the one it has."""
    found = await node_due(s)
    return {each.agent_name: (each.takes_sessions, each.launch.id if each.launch else "") for each in found.seats}


async def node_due(s: Stage) -> DueList:
    ask = ListDue(team_run_id=s.run.id, sup_gen=s.sup_gen)
    return await s.node.ok(ask, plane=Plane.SUPERVISOR, actor=s.run.id)


async def test_a_seat_says_what_was_launched_for_it_and_whether_more_may_be(node: InProcessNode) -> None:
    """Not of a member that is paused, of a place that is closed, or of a run that drains."""
    s = await effects.cold(node)
    launch = await effects.prepared(s)
    assert await seats(s) == {"ann": (True, ""), "bob": (True, launch.id), "cid": (True, "")}
    await scene.paused(node, s.cid.agent)
    await effects.control(s, EffectKind.STOP)
    assert await seats(s) == {"ann": (True, ""), "bob": (False, launch.id), "cid": (False, "")}
    run = await run_now(node, s.run)
    await node.ok(DrainTeamRun(team_run_id=run.id, expected_version=run.version))
    assert {name: takes for name, (takes, _) in (await seats(s)).items()} == dict.fromkeys(("ann", "bob", "cid"), False)


async def test_controls_are_what_was_asked_for_and_is_not_settled(node: InProcessNode) -> None:
    s = await effects.live(node)
    key, stop = await effects.control(s, EffectKind.INTERRUPT), await effects.control(s, EffectKind.STOP)
    assert (await node_due(s)).controls == [key, stop]
    await supervised(s, effects.settle(s, key))
    await supervised(s, effects.settle(s, stop, Certainty.UNKNOWN))
    assert (await node_due(s)).controls == [], "a person decides what nobody could read back"


async def test_nothing_is_due_that_could_not_be_admitted(node: InProcessNode) -> None:
    """Unowned, on hold, waiting for others, its member busy, paused or without a session; and due once that is over."""
    s = await stage(node)
    await s.work("nobody's")
    base = await s.submitted(s.cid, "base")
    waits = await s.owned(s.bob, "waits", prerequisite_work_ids=[base.id])
    held = await s.owned(s.bob, "held")
    held = await ok(s, s.ann, HoldWork(work_id=held.id, expected_version=held.version, reason="later"))
    assert await due(s) == []
    accept = AcceptWork(work_id=base.id, expected_version=base.version, receipt_id=await s.receipt(base))
    await ok(s, s.ann, accept)
    assert await due(s) == [waits.id]
    paused = await scene.paused(node, s.bob.agent)
    assert await due(s) == []
    await node.ok(ResumeAgent(agent_member_id=AgentMemberRef(paused.id), expected_version=paused.version))
    busy = await s.started(s.bob, "busy")
    assert await due(s) == []
    await ok(s, s.ann, CancelWork(work_id=busy.id, expected_version=busy.version, reason="enough"))
    assert await due(s) == [waits.id]
    await mail.closed(s, s.bob)
    assert await due(s) == []


async def test_the_most_urgent_is_due_first(node: InProcessNode) -> None:
    s = await stage(node)
    low = await s.owned(s.bob, "low", priority="low")
    first, second = await s.owned(s.bob, "first"), await s.owned(s.bob, "second")
    urgent = await s.owned(s.cid, "urgent", priority="urgent")
    assert await due(s) == [urgent.id, first.id, second.id, low.id]


async def test_team_run_due_not_found(node: InProcessNode) -> None:
    s, other = await stage(node), await stage(node)
    ask = ListDue(team_run_id=other.run.id, sup_gen=other.sup_gen)
    refusal = await node.refused(ask, plane=Plane.SUPERVISOR, actor=s.run.id)
    assert refusal == refusals.not_found("team-run", other.run.id)


async def test_team_run_due_row_quarantined(node: InProcessNode) -> None:
    s = await stage(node)
    node.execute("UPDATE team_runs SET state = 'nowhere' WHERE id = ?", s.run.id)
    ask = ListDue(team_run_id=s.run.id, sup_gen=s.sup_gen)
    refusal = await node.refused(ask, plane=Plane.SUPERVISOR, actor=s.run.id)
    assert refusal == refusals.unreadable(f"team_runs/{s.run.id}")


async def test_team_run_due_supervisor_generation_fenced(node: InProcessNode) -> None:
    s = await stage(node)
    await node.ok(TakeTeamRun(team_run_id=s.run.id), plane=Plane.SUPERVISOR, actor=s.run.id)
    ask = ListDue(team_run_id=s.run.id, sup_gen=s.sup_gen)
    refusal = await node.refused(ask, plane=Plane.SUPERVISOR, actor=s.run.id)
    assert refusal.code is Code.SUPERVISOR_GENERATION_FENCED


async def test_team_run_due_team_run_not_open(node: InProcessNode) -> None:
    s = await stage(node)
    await mail.over(s)
    ask = ListDue(team_run_id=s.run.id, sup_gen=s.sup_gen)
    refusal = await node.refused(ask, plane=Plane.SUPERVISOR, actor=s.run.id)
    assert (refusal.code, refusal.about) == (Code.TEAM_RUN_NOT_OPEN, f"team-run/{s.run.id}")
