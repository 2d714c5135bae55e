"""``team-run.*`` but its boards, one test an outcome that the table declares; and how a run ends."""

from __future__ import annotations

import attrs
import pytest

from client.protocol.agent import CreateAgent, UpdateAgent
from client.protocol.ids import AgentMemberRef, TeamId, TeamRef, TeamRunId
from client.protocol.membership import GuestRole
from client.protocol.operation import Plane, Request
from client.protocol.refusals import Code, Refusal
from client.protocol.team import TrashTeam
from client.protocol.team_run import (
    CancelTeamRun,
    CompleteTeamRun,
    Coordination,
    CreateTeamRun,
    DrainTeamRun,
    ListTeamRuns,
    ResumeTeamRun,
    ShowTeamRun,
    StartTeamRun,
    TakeTeamRun,
    TeamRun,
    TeamRunState,
)
from tests.support import refusals, scene
from tests.support.node import InProcessNode
from tests.support.refusals import refused_while_spoilt
from tests.support.run import Stage, stage
from tests.support.spoil import mend, spoil
from tests.support.supervised import drained, run_now, started

NO_RUN = TeamRunId("nothing")
CREW = TeamRef("crew")
Move = type[StartTeamRun] | type[DrainTeamRun] | type[ResumeTeamRun] | type[CompleteTeamRun]


async def planned(node: InProcessNode) -> TeamRun:
    await scene.crew(node)
    return await node.ok(CreateTeamRun(team_id=CREW, objective="ship it"))


async def running(node: InProcessNode) -> TeamRun:
    return await started(node, await planned(node))


def cancel(run: TeamRun, version: int | None = None) -> CancelTeamRun:
    return CancelTeamRun(team_run_id=run.id, expected_version=version or run.version, reason="no use")


def ended(run: TeamRun) -> Refusal:
    lifted_by = f"it is {run.state.value}; use another run of the team, or create one"
    return Refusal(code=Code.TEAM_RUN_NOT_OPEN, about=f"team-run/{run.id}", lifted_by=lifted_by)


async def test_team_run_create_ok(node: InProcessNode) -> None:
    """Whoever is active in the team gets its place: by the role of its agent, or else of its membership, numbered."""
    crew = await scene.crew(node)
    await node.ok(UpdateAgent(agent_member_id=AgentMemberRef("bob"), expected_version=1, role="builder"))
    dev = await node.ok(CreateAgent(name="dev", role="builder"))
    await scene.joined(node, crew.team, dev)
    await scene.joined(node, crew.team, await scene.agent(node, "obs"), GuestRole.OBSERVER)
    await scene.invited(node, crew.team, crew.eve)
    made = await node.ok(CreateTeamRun(team_id=CREW, objective="ship it"))
    assert made == TeamRun(
        id=made.id,
        version=1,
        team_id=crew.team.id,
        objective="ship it",
        state=TeamRunState.PLANNED,
        sup_gen=made.sup_gen,
        created_by="operator",
        created_at=made.created_at,
        updated_at=made.created_at,
        ended_at=None,
    )
    assert made.sup_gen == 0
    shown = await node.ok(ShowTeamRun(team_run_id=made.id))
    assert shown.run == made
    places = {each.name: each.member_run for each in shown.members}
    assert {name: (p.role, p.number) for name, p in places.items()} == {
        "ann": ("host", 1),
        "bob": ("builder", 1),
        "dev": ("builder", 2),
        "obs": ("observer", 1),
    }
    assert {each.membership_role for each in shown.members} == {"host", "member", "observer"}
    assert {(p.coordination, p.run_gen, p.version) for p in places.values()} == {(Coordination.ACTIVE, 1, 1)}


async def test_only_the_host_of_the_team_or_the_operator_plans_a_run(node: InProcessNode) -> None:
    crew = await scene.crew(node)
    await scene.team(node, crew.bob, "other")
    ask = CreateTeamRun(team_id=CREW)
    refusal = await node.refused(ask, plane=Plane.HOST, actor=crew.bob.id)
    assert (refusal.code, refusal.about) == (Code.NOT_AUTHORIZED, f"team/{crew.team.id}")
    assert (await node.ok(ask, plane=Plane.HOST, actor=crew.ann.id)).created_by == f"agent/{crew.ann.id}"


async def test_team_run_create_invalid_state_transition(node: InProcessNode) -> None:
    crew = await scene.crew(node)
    aside = await scene.inactive(node, crew.team)
    refusal = await node.refused(CreateTeamRun(team_id=CREW))
    activate = f"firm team activate {crew.team.id} --expected-version {aside.version}"
    lifted_by = f"activate the team first: {activate}"
    code = Code.INVALID_STATE_TRANSITION
    assert refusal == Refusal(code=code, about=f"team/{crew.team.id}", lifted_by=lifted_by)
    assert not isinstance(await node.follow(refusal), Refusal)
    await node.ok(CreateTeamRun(team_id=CREW))


async def test_a_team_in_the_trash_has_no_new_run(node: InProcessNode) -> None:
    crew = await scene.crew(node)
    aside = await scene.inactive(node, crew.team)
    await node.ok(TrashTeam(team_id=TeamRef(aside.id), expected_version=aside.version))
    refusal = await node.refused(CreateTeamRun(team_id=TeamRef(aside.id)))
    assert refusal.code is Code.INVALID_STATE_TRANSITION
    assert not isinstance(await node.follow(refusal), Refusal)  # it comes out of the trash; the next says activate
    again = await node.refused(CreateTeamRun(team_id=CREW))
    assert not isinstance(await node.follow(again), Refusal)
    await node.ok(CreateTeamRun(team_id=CREW))


async def test_team_run_create_name_ambiguous(node: InProcessNode) -> None:
    crew = await scene.crew(node)
    other = await scene.team(node, crew.ann)
    expected = refusals.ambiguous("team", "crew", crew.team.id, other.id)
    assert await node.refused(CreateTeamRun(team_id=CREW)) == expected


async def test_team_run_create_not_found(node: InProcessNode) -> None:
    assert await node.refused(CreateTeamRun(team_id=CREW)) == refusals.not_found("team", "crew")


async def test_team_run_create_row_quarantined(node: InProcessNode) -> None:
    crew = await scene.crew(node)
    await refused_while_spoilt(node, CreateTeamRun(team_id=CREW), "memberships", crew.member.id)


async def test_team_run_list_ok(node: InProcessNode) -> None:
    crew = await scene.crew(node)
    one, two, three = [await node.ok(CreateTeamRun(team_id=CREW)) for _ in range(3)]
    other = await scene.team(node, crew.ann, "other")
    theirs = await node.ok(CreateTeamRun(team_id=TeamRef(other.id)))
    two = await started(node, two)
    first = await node.ok(ListTeamRuns(limit=2))
    assert first.items == [one, two]
    assert first.next is not None
    rest = await node.ok(ListTeamRuns(limit=2, cursor=first.next))
    assert (rest.items, rest.next) == ([three, theirs], None)
    assert (await node.ok(ListTeamRuns(team_id=CREW))).items == [one, two, three]
    assert (await node.ok(ListTeamRuns(team_id=CREW, state=TeamRunState.RUNNING))).items == [two]


async def test_a_member_and_a_supervisor_see_the_runs_of_their_own_team_only(node: InProcessNode) -> None:
    s = await stage(node)
    other = await scene.team(node, s.ann.agent, "other")
    theirs = await node.ok(CreateTeamRun(team_id=TeamRef(other.id)))
    for plane, who in ((Plane.MEMBER, s.bob.session), (Plane.HOST, s.ann.session), (Plane.SUPERVISOR, s.run.id)):
        assert (await node.ok(ListTeamRuns(), plane=plane, actor=who)).items == [s.run]
        refusal = await node.refused(ListTeamRuns(team_id=TeamRef("other")), plane=plane, actor=who)
        assert refusal == refusals.not_found("team", "other")
        refusal = await node.refused(ShowTeamRun(team_run_id=theirs.id), plane=plane, actor=who)
        assert refusal == refusals.not_found("team-run", theirs.id)


async def test_team_run_list_cursor_invalid(node: InProcessNode) -> None:
    await scene.crew(node)
    for _ in range(2):
        await node.ok(CreateTeamRun(team_id=CREW))
    onward = (await node.ok(ListTeamRuns(limit=1))).next
    assert onward is not None
    for ask in (ListTeamRuns(team_id=CREW, cursor=onward), ListTeamRuns(cursor="nonsense")):
        assert await node.refused(ask) == refusals.stale_cursor()


async def test_team_run_list_name_ambiguous(node: InProcessNode) -> None:
    crew = await scene.crew(node)
    other = await scene.team(node, crew.ann)
    expected = refusals.ambiguous("team", "crew", crew.team.id, other.id)
    assert await node.refused(ListTeamRuns(team_id=CREW)) == expected


async def test_team_run_list_not_found(node: InProcessNode) -> None:
    assert await node.refused(ListTeamRuns(team_id=CREW)) == refusals.not_found("team", "crew")


async def test_team_run_list_row_quarantined(node: InProcessNode) -> None:
    """The team that is named has to be read; a run that cannot is left out and named."""
    crew = await scene.crew(node)
    one, two = [await node.ok(CreateTeamRun(team_id=CREW)) for _ in range(2)]
    await refused_while_spoilt(node, ListTeamRuns(team_id=TeamRef(crew.team.id)), "teams", crew.team.id)
    spoil(node.store.path, "team_runs", one.id)
    assert (await node.ok(ListTeamRuns())).items == [two]
    assert await node.set_aside() == [f"team_runs/{one.id}"]


async def test_team_run_show_ok(node: InProcessNode) -> None:
    s = await stage(node)
    shown = await node.ok(ShowTeamRun(team_run_id=s.run.id))
    assert shown.run == s.run
    assert [each.name for each in shown.members] == ["ann", "bob", "cid"]
    assert [each.member_run for each in shown.members] == [s.ann.place, s.bob.place, s.cid.place]
    for plane, who in ((Plane.MEMBER, s.bob.session), (Plane.SUPERVISOR, s.run.id)):
        assert await node.ok(ShowTeamRun(team_run_id=s.run.id), plane=plane, actor=who) == shown


async def test_team_run_show_not_found(node: InProcessNode) -> None:
    refusal = await node.refused(ShowTeamRun(team_run_id=NO_RUN))
    assert refusal == refusals.not_found("team-run", "nothing")
    assert not isinstance(await node.follow(refusal), Refusal)


async def test_team_run_show_row_quarantined(node: InProcessNode) -> None:
    run = await planned(node)
    await refused_while_spoilt(node, ShowTeamRun(team_run_id=run.id), "team_runs", run.id)


MOVES: dict[Move, tuple[TeamRunState, set[TeamRunState], str]] = {
    StartTeamRun: (TeamRunState.RUNNING, {TeamRunState.PLANNED}, "planned"),
    DrainTeamRun: (TeamRunState.DRAINING, {TeamRunState.RUNNING}, "running"),
    ResumeTeamRun: (TeamRunState.RUNNING, {TeamRunState.DRAINING}, "draining"),
    CompleteTeamRun: (
        TeamRunState.COMPLETED,
        {TeamRunState.RUNNING, TeamRunState.DRAINING},
        "running or draining",
    ),
}


async def in_state(node: InProcessNode, state: TeamRunState) -> TeamRun:
    run = await planned(node)
    if state is TeamRunState.CANCELLED:
        return await node.ok(cancel(run))
    if state is not TeamRunState.PLANNED:
        run = await started(node, run)
    if state is TeamRunState.DRAINING:
        run = await drained(node, run)
    if state is TeamRunState.COMPLETED:
        run = await node.ok(CompleteTeamRun(team_run_id=run.id, expected_version=run.version))
    return run


async def moves(node: InProcessNode, move: Move) -> None:
    to, good, _ = MOVES[move]
    run = await in_state(node, min(good))
    after = await node.ok(move(team_run_id=run.id, expected_version=run.version))
    over = after.updated_at if to is TeamRunState.COMPLETED else None
    expected = attrs.evolve(run, version=run.version + 1, state=to, updated_at=after.updated_at, ended_at=over)
    assert after == expected
    assert await run_now(node, run) == after


async def refuses_from_elsewhere(node: InProcessNode, move: Move, state: TeamRunState) -> None:
    run = await in_state(node, state)
    refusal = await node.refused(move(team_run_id=run.id, expected_version=run.version))
    assert refusal == refusals.no_move(f"team-run/{run.id}", state.value, MOVES[move][2])


async def refuses_another_version(node: InProcessNode, move: Move) -> None:
    run = await in_state(node, min(MOVES[move][1]))
    for version in (run.version - 1 or 7, run.version + 1):
        refusal = await node.refused(move(team_run_id=run.id, expected_version=version))
        assert refusal == refusals.conflict(f"team-run/{run.id}", run.version)


async def refuses_what_is_not_there(node: InProcessNode, ask: Request[TeamRun]) -> None:
    assert await node.refused(ask) == refusals.not_found("team-run", "nothing")


async def refuses_while_it_cannot_be_read(node: InProcessNode, move: Move) -> None:
    run = await in_state(node, min(MOVES[move][1]))
    await refused_while_spoilt(node, move(team_run_id=run.id, expected_version=run.version), "team_runs", run.id)


async def test_team_run_start_ok(node: InProcessNode) -> None:
    await moves(node, StartTeamRun)


@pytest.mark.parametrize("state", set(TeamRunState) - MOVES[StartTeamRun][1])
async def test_team_run_start_invalid_state_transition(node: InProcessNode, state: TeamRunState) -> None:
    await refuses_from_elsewhere(node, StartTeamRun, state)


async def test_team_run_start_not_found(node: InProcessNode) -> None:
    await refuses_what_is_not_there(node, StartTeamRun(team_run_id=NO_RUN, expected_version=1))


async def test_team_run_start_row_quarantined(node: InProcessNode) -> None:
    await refuses_while_it_cannot_be_read(node, StartTeamRun)


async def test_team_run_start_version_conflict(node: InProcessNode) -> None:
    await refuses_another_version(node, StartTeamRun)


async def test_team_run_drain_ok(node: InProcessNode) -> None:
    """What is claimed goes on; nothing is claimed, assigned, admitted or created any more."""
    await moves(node, DrainTeamRun)


@pytest.mark.parametrize("state", set(TeamRunState) - MOVES[DrainTeamRun][1])
async def test_team_run_drain_invalid_state_transition(node: InProcessNode, state: TeamRunState) -> None:
    await refuses_from_elsewhere(node, DrainTeamRun, state)


async def test_team_run_drain_not_found(node: InProcessNode) -> None:
    await refuses_what_is_not_there(node, DrainTeamRun(team_run_id=NO_RUN, expected_version=1))


async def test_team_run_drain_row_quarantined(node: InProcessNode) -> None:
    await refuses_while_it_cannot_be_read(node, DrainTeamRun)


async def test_team_run_drain_version_conflict(node: InProcessNode) -> None:
    await refuses_another_version(node, DrainTeamRun)


async def test_team_run_resume_ok(node: InProcessNode) -> None:
    await moves(node, ResumeTeamRun)


@pytest.mark.parametrize("state", set(TeamRunState) - MOVES[ResumeTeamRun][1])
async def test_team_run_resume_invalid_state_transition(node: InProcessNode, state: TeamRunState) -> None:
    await refuses_from_elsewhere(node, ResumeTeamRun, state)


async def test_team_run_resume_not_found(node: InProcessNode) -> None:
    await refuses_what_is_not_there(node, ResumeTeamRun(team_run_id=NO_RUN, expected_version=1))


async def test_team_run_resume_row_quarantined(node: InProcessNode) -> None:
    await refuses_while_it_cannot_be_read(node, ResumeTeamRun)


async def test_team_run_resume_version_conflict(node: InProcessNode) -> None:
    await refuses_another_version(node, ResumeTeamRun)


async def test_team_run_take_ok(node: InProcessNode) -> None:
    """Each supervisor gets a generation of its own; the state is as it was."""
    run = await running(node)
    for gen in (1, 2, 3):
        taken = await node.ok(TakeTeamRun(team_run_id=run.id), plane=Plane.SUPERVISOR, actor=run.id)
        assert (taken.sup_gen, taken.version, taken.state) == (gen, run.version + gen, run.state)


async def test_team_run_take_not_found(node: InProcessNode) -> None:
    """A supervisor holds one run; another one is not there for it."""
    run = await running(node)
    other = await node.ok(CreateTeamRun(team_id=CREW))
    for wanted in (NO_RUN, other.id):
        refusal = await node.refused(TakeTeamRun(team_run_id=wanted), plane=Plane.SUPERVISOR, actor=run.id)
        assert refusal == refusals.not_found("team-run", wanted)


async def test_team_run_take_row_quarantined(node: InProcessNode) -> None:
    run = await running(node)
    was = spoil(node.store.path, "team_runs", run.id)
    refusal = await node.refused(TakeTeamRun(team_run_id=run.id), plane=Plane.SUPERVISOR, actor=run.id)
    assert refusal == refusals.unreadable(f"team_runs/{run.id}")
    mend(node.store.path, "team_runs", run.id, was)
    assert not isinstance(await node.follow(refusal), Refusal)


@pytest.mark.parametrize("state", [TeamRunState.COMPLETED, TeamRunState.CANCELLED])
async def test_team_run_take_team_run_not_open(node: InProcessNode, state: TeamRunState) -> None:
    run = await in_state(node, state)
    refusal = await node.refused(TakeTeamRun(team_run_id=run.id), plane=Plane.SUPERVISOR, actor=run.id)
    assert refusal == ended(run)


def team_of(s: Stage) -> TeamId:
    return s.team.id


async def test_a_run_of_another_team_is_not_the_hosts(node: InProcessNode) -> None:
    """The Host of one team finds no run of another; a member of the team finds it and does not decide."""
    s = await stage(node)
    theirs = await scene.team(node, s.bob.agent, "other")
    run = await node.ok(CreateTeamRun(team_id=TeamRef(theirs.id)))
    ask = StartTeamRun(team_run_id=run.id, expected_version=1)
    refusal = await node.refused(ask, plane=Plane.HOST, actor=s.ann.session)
    assert refusal == refusals.not_found("team-run", run.id)
    drain = DrainTeamRun(team_run_id=s.run.id, expected_version=s.run.version)
    refusal = await node.refused(drain, plane=Plane.HOST, actor=s.bob.session)
    assert (refusal.code, refusal.about) == (Code.NOT_AUTHORIZED, f"team/{team_of(s)}")
    assert (await node.ok(drain, plane=Plane.HOST, actor=s.ann.session)).state is TeamRunState.DRAINING
