"""``member-run.*``, one test an outcome that the table declares: a member's place in a run."""

from __future__ import annotations

import subprocess

import attrs
import pytest

from client.protocol.attempt import Finding, RecoverWork, Responsibility
from client.protocol.ids import AgentMemberRef, MemberRunId, MembershipId, RunGen, TeamRef, TeamRunId
from client.protocol.membership import GuestRole
from client.protocol.operation import Plane, Request
from client.protocol.refusals import Code, Refusal
from client.protocol.session import BindSession, SessionCause, UnbindSession
from client.protocol.team_run import (
    AddMemberRun,
    CloseMemberRun,
    CompleteTeamRun,
    Coordination,
    CreateTeamRun,
    MemberRun,
    ReopenMemberRun,
    RetireMemberRun,
    ShowTeamRun,
    TeamRun,
)
from client.protocol.work_asks import ShowWork
from tests.support import refusals, scene
from tests.support.node import InProcessNode
from tests.support.refusals import refused_while_spoilt
from tests.support.run import Member, Stage, session, stage
from tests.support.supervised import close_all, report

Move = type[CloseMemberRun] | type[ReopenMemberRun] | type[RetireMemberRun]
NO_PLACE = MemberRunId("nothing")


@attrs.frozen
class Scene:
    """A planned run with Ann's and Bob's places, and nobody's session."""

    crew: scene.Crew
    run: TeamRun
    bob: MemberRun


async def planned(node: InProcessNode) -> Scene:
    crew = await scene.crew(node)
    run = await node.ok(CreateTeamRun(team_id=TeamRef(crew.team.id)))
    shown = await node.ok(ShowTeamRun(team_run_id=run.id))
    (bob,) = [each.member_run for each in shown.members if each.name == "bob"]
    return Scene(crew, run, bob)


def add(run: TeamRun, membership: str, role: str = "") -> AddMemberRun:
    return AddMemberRun(team_run_id=run.id, membership_id=MembershipId(membership), role=role)


async def at(node: InProcessNode, place: MemberRun, *moves: Move) -> MemberRun:
    for move in moves:
        place = await node.ok(move(member_run_id=place.id, expected_version=place.version))
    return place


async def completed(node: InProcessNode, run: TeamRun) -> TeamRun:
    return await node.ok(CompleteTeamRun(team_run_id=run.id, expected_version=run.version))


async def test_member_run_add_ok(node: InProcessNode) -> None:
    """Whoever joins later is added; its role in the run may be another than its agent's. Numbers go on."""
    s = await planned(node)
    membership = await scene.joined(node, s.crew.team, s.crew.eve)
    made = await node.ok(add(s.run, membership.id, "member"))
    assert made == MemberRun(
        id=made.id,
        version=1,
        team_run_id=s.run.id,
        membership_id=membership.id,
        agent_member_id=s.crew.eve.id,
        role="member",
        number=2,
        coordination=Coordination.ACTIVE,
        run_gen=made.run_gen,
        created_at=made.created_at,
        updated_at=made.created_at,
    )
    assert made.run_gen == 1
    assert (await node.ok(ShowTeamRun(team_run_id=s.run.id))).members[-1].member_run == made


async def test_the_host_adds_to_its_own_run_and_nobody_else_does(node: InProcessNode) -> None:
    s = await stage(node)
    membership = await scene.joined(node, s.team, await scene.agent(node, "dan"), GuestRole.OBSERVER)
    refusal = await node.refused(add(s.run, membership.id), plane=Plane.HOST, actor=s.bob.session)
    assert (refusal.code, refusal.about) == (Code.NOT_AUTHORIZED, f"team/{s.team.id}")
    made = await node.ok(add(s.run, membership.id), plane=Plane.HOST, actor=s.ann.session)
    assert (made.role, made.number) == ("observer", 1)


async def test_member_run_add_invalid_state_transition(node: InProcessNode) -> None:
    """Who is only invited, or has left, has no place."""
    s = await planned(node)
    invited = await scene.invited(node, s.crew.team, s.crew.eve)
    left = await scene.left(node, s.crew.member)
    for each in (invited, left):
        refusal = await node.refused(add(s.run, each.id))
        assert refusal == Refusal(
            code=Code.INVALID_STATE_TRANSITION,
            about=f"membership/{each.id}",
            lifted_by=f"it is {each.state.value}; only an active membership has a place in a run",
        )


async def test_member_run_add_member_run_exists(node: InProcessNode) -> None:
    """Also while it is closed; one that was retired is no place any more, and its number stays its own."""
    s = await planned(node)
    place = s.bob
    for closed in (False, True):
        place = await at(node, place, CloseMemberRun) if closed else place
        refusal = await node.refused(add(s.run, s.crew.member.id))
        assert (refusal.code, refusal.about) == (Code.MEMBER_RUN_EXISTS, f"member-run/{place.id}")
        assert refusal.lifted_by == f"use its place {place.id}, which is {place.coordination.value}"
    await at(node, place, RetireMemberRun)
    again = await node.ok(add(s.run, s.crew.member.id))
    assert (again.number, again.id != place.id) == (2, True)


async def test_member_run_add_not_found(node: InProcessNode) -> None:
    """A membership of another team is none here."""
    s = await planned(node)
    other = await scene.team(node, s.crew.eve, "other")
    stranger = await scene.host(node, other)
    for wanted in ("nothing", stranger.id):
        assert await node.refused(add(s.run, wanted)) == refusals.not_found("membership", wanted)
    ask = AddMemberRun(team_run_id=TeamRunId("nothing"), membership_id=s.crew.member.id)
    assert await node.refused(ask) == refusals.not_found("team-run", "nothing")


async def test_member_run_add_row_quarantined(node: InProcessNode) -> None:
    s = await planned(node)
    membership = await scene.joined(node, s.crew.team, s.crew.eve)
    await refused_while_spoilt(node, add(s.run, membership.id), "memberships", membership.id)


async def test_member_run_add_team_run_not_open(node: InProcessNode) -> None:
    s = await stage(node)
    await close_all(s)
    run = await completed(node, s.run)
    membership = await scene.joined(node, s.team, await scene.agent(node, "dan"))
    refusal = await node.refused(add(run, membership.id))
    assert (refusal.code, refusal.about) == (Code.TEAM_RUN_NOT_OPEN, f"team-run/{run.id}")


MOVES: dict[Move, tuple[Coordination, tuple[Move, ...], str]] = {
    CloseMemberRun: (Coordination.CLOSED, (), "active"),
    ReopenMemberRun: (Coordination.ACTIVE, (CloseMemberRun,), "closed"),
    RetireMemberRun: (Coordination.RETIRED, (), "active or closed"),
}


async def moves(node: InProcessNode, move: Move, *, run_gen: int = 1) -> None:
    s = await planned(node)
    to, before, _ = MOVES[move]
    place = await at(node, s.bob, *before)
    after = await at(node, place, move)
    assert after == attrs.evolve(
        place, version=place.version + 1, coordination=to, run_gen=RunGen(run_gen), updated_at=after.updated_at
    )


async def refuses_from(node: InProcessNode, move: Move, *before: Move) -> None:
    s = await planned(node)
    place = await at(node, s.bob, *before)
    refusal = await node.refused(move(member_run_id=place.id, expected_version=place.version))
    assert refusal == refusals.no_move(f"member-run/{place.id}", place.coordination.value, MOVES[move][2])


async def refuses_the_common_ways(node: InProcessNode, move: Move, code: Code) -> None:
    s = await planned(node)
    place = await at(node, s.bob, *MOVES[move][1])
    good = move(member_run_id=place.id, expected_version=place.version)
    if code is Code.NOT_FOUND:
        ask = move(member_run_id=NO_PLACE, expected_version=1)
        lifted_by = "see what there is: firm team-run show RUN"
        expected = Refusal(code=Code.NOT_FOUND, about="member-run/nothing", lifted_by=lifted_by)
        assert await node.refused(ask) == expected
    elif code is Code.VERSION_CONFLICT:
        ask = move(member_run_id=place.id, expected_version=place.version + 1)
        assert await node.refused(ask) == refusals.conflict(f"member-run/{place.id}", place.version)
    else:
        await refused_while_spoilt(node, good, "member_runs", place.id)


async def test_member_run_close_ok(node: InProcessNode) -> None:
    await moves(node, CloseMemberRun)


async def test_member_run_close_invalid_state_transition(node: InProcessNode) -> None:
    await refuses_from(node, CloseMemberRun, CloseMemberRun)


async def test_member_run_close_not_found(node: InProcessNode) -> None:
    await refuses_the_common_ways(node, CloseMemberRun, Code.NOT_FOUND)


async def test_member_run_close_row_quarantined(node: InProcessNode) -> None:
    await refuses_the_common_ways(node, CloseMemberRun, Code.ROW_QUARANTINED)


async def test_member_run_close_version_conflict(node: InProcessNode) -> None:
    await refuses_the_common_ways(node, CloseMemberRun, Code.VERSION_CONFLICT)


async def refuses_under_a_session(s: Stage, ask: Request[MemberRun]) -> None:
    refusal = await s.node.refused(ask)
    assert (refusal.code, refusal.about) == (Code.SESSION_LIVE, f"session/{s.bob.session.id}")
    await report(s, s.bob.session, SessionCause.CLOSED)
    await s.node.ok(ask)


async def test_member_run_close_session_live(node: InProcessNode) -> None:
    s = await stage(node)
    await refuses_under_a_session(s, CloseMemberRun(member_run_id=s.bob.place.id, expected_version=1))


async def test_member_run_reopen_ok(node: InProcessNode) -> None:
    """Under the next run generation: what was of the former one is not of this."""
    await moves(node, ReopenMemberRun, run_gen=2)


@pytest.mark.parametrize("before", [(), (RetireMemberRun,)], ids=["active", "retired"])
async def test_member_run_reopen_invalid_state_transition(node: InProcessNode, before: tuple[Move, ...]) -> None:
    await refuses_from(node, ReopenMemberRun, *before)


async def test_member_run_reopen_not_found(node: InProcessNode) -> None:
    await refuses_the_common_ways(node, ReopenMemberRun, Code.NOT_FOUND)


async def test_member_run_reopen_row_quarantined(node: InProcessNode) -> None:
    await refuses_the_common_ways(node, ReopenMemberRun, Code.ROW_QUARANTINED)


async def test_member_run_reopen_version_conflict(node: InProcessNode) -> None:
    await refuses_the_common_ways(node, ReopenMemberRun, Code.VERSION_CONFLICT)


async def test_member_run_reopen_team_run_not_open(node: InProcessNode) -> None:
    s = await stage(node)
    await close_all(s)
    place = await at(node, s.bob.place, CloseMemberRun)
    run = await completed(node, s.run)
    refusal = await node.refused(ReopenMemberRun(member_run_id=place.id, expected_version=place.version))
    assert (refusal.code, refusal.about) == (Code.TEAM_RUN_NOT_OPEN, f"team-run/{run.id}")


@pytest.mark.parametrize("before", [(), (CloseMemberRun,)], ids=["active", "closed"])
async def test_member_run_retire_ok(node: InProcessNode, before: tuple[Move, ...]) -> None:
    s = await planned(node)
    after = await at(node, s.bob, *before, RetireMemberRun)
    assert (after.coordination, after.run_gen) == (Coordination.RETIRED, 1)


async def test_member_run_retire_invalid_state_transition(node: InProcessNode) -> None:
    await refuses_from(node, RetireMemberRun, RetireMemberRun)


async def test_member_run_retire_not_found(node: InProcessNode) -> None:
    await refuses_the_common_ways(node, RetireMemberRun, Code.NOT_FOUND)


async def test_member_run_retire_row_quarantined(node: InProcessNode) -> None:
    await refuses_the_common_ways(node, RetireMemberRun, Code.ROW_QUARANTINED)


async def test_member_run_retire_version_conflict(node: InProcessNode) -> None:
    await refuses_the_common_ways(node, RetireMemberRun, Code.VERSION_CONFLICT)


async def test_member_run_retire_session_live(node: InProcessNode) -> None:
    s = await stage(node)
    await refuses_under_a_session(s, RetireMemberRun(member_run_id=s.bob.place.id, expected_version=1))


async def test_member_run_retire_work_binding_live(node: InProcessNode, living: subprocess.Popen[bytes]) -> None:
    """An attempt whose process is gone is still its, until somebody has looked at what it left behind."""
    s = await stage(node)
    await report(s, s.bob.session, SessionCause.CLOSED)
    bound = await node.ok(BindSession(agent_member_id=AgentMemberRef("bob"), pid=living.pid))
    bob = Member(s.bob.agent, s.bob.membership, s.bob.place, bound)
    work = await s.started(bob)
    await node.ok(UnbindSession(session_id=bound.id))
    ask = RetireMemberRun(member_run_id=bob.place.id, expected_version=1)
    refusal = await node.refused(ask)
    assert (refusal.code, refusal.about) == (Code.WORK_BINDING_LIVE, f"work/{work.id}")
    assert not isinstance(await node.follow(refusal), Refusal)
    (lost,) = (await node.ok(ShowWork(work_id=work.id))).bindings
    review = RecoverWork(
        work_id=work.id,
        expected_version=work.version,
        fence=lost.fence,
        finding=Finding.NO_SIDE_EFFECTS,
        responsibility=Responsibility.RELEASE,
        reason="looked",
    )
    await node.ok(review, plane=Plane.HOST, actor=s.ann.session)
    await node.ok(ask)


async def test_nothing_comes_to_a_place_that_is_closed(node: InProcessNode) -> None:
    """No session is opened there, and the next one after it was opened again is of the next run generation."""
    s = await stage(node)
    await report(s, s.bob.session, SessionCause.CLOSED)
    place = await at(node, s.bob.place, CloseMemberRun)
    refusal = await node.refused(BindSession(agent_member_id=AgentMemberRef("bob"), pid=1 << 21))
    assert refusal.code in {Code.MEMBER_RUN_CLOSED, Code.PROCESS_UNPROVEN}
    place = await at(node, place, ReopenMemberRun)
    again = await session(node, s.run, place)
    assert (again.run_gen, s.bob.session.run_gen) == (2, 1)
