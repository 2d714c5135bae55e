"""Who may do what, and what stands in the way: each rule over every plane, every caller and every state."""

from __future__ import annotations

import itertools

import attrs
import pytest

from client.protocol.agent import AgentMember, AgentStatus, WorkspacePolicy
from client.protocol.ceiling import Ceiling
from client.protocol.ids import AgentMemberId, MemberGen, MembershipId, NodeId, ProjectId, TeamId, UnixMs
from client.protocol.membership import MembershipRole, MembershipState, TeamMembership
from client.protocol.operation import Plane
from client.protocol.refusals import Code, Refusal
from client.protocol.team import Team, TeamState
from daemon.kernel.agent import available, name_taken, retired, sole_host
from daemon.kernel.membership import already_there, may_join, may_leave, stays_as_host
from daemon.kernel.team import can_activate, can_host, can_restore, kept, may_run
from daemon.kernel.version import moved

NOW = UnixMs(1)
ANN = AgentMember(
    id=AgentMemberId("ann"),
    version=3,
    name="Ann",
    description="",
    role="",
    capabilities=[],
    skills=[],
    profile="external",
    model="",
    workspace=WorkspacePolicy.WORKTREE,
    ceiling=Ceiling.READ_ONLY,
    status=AgentStatus.ACTIVE,
    created_by="operator",
    created_at=NOW,
    updated_at=NOW,
)
TEAM = Team(
    id=TeamId("crew"),
    version=5,
    name="Crew",
    description="",
    project_id=ProjectId("p"),
    node_id=NodeId("n"),
    state=TeamState.ACTIVE,
    created_by="operator",
    created_at=NOW,
    updated_at=NOW,
)


def membership(agent: str, role: MembershipRole, state: MembershipState = MembershipState.ACTIVE) -> TeamMembership:
    return TeamMembership(
        id=MembershipId(f"of-{agent}"),
        version=2,
        team_id=TEAM.id,
        agent_member_id=AgentMemberId(agent),
        role=role,
        state=state,
        member_gen=MemberGen(1),
        created_by="operator",
        created_at=NOW,
        updated_at=NOW,
        joined_at=NOW,
        left_at=None,
    )


HOST = membership("ann", MembershipRole.HOST)
BOB = membership("bob", MembershipRole.MEMBER)
#: Nobody (as every operator), the Host, the member itself, and somebody else.
CALLERS = [None, AgentMemberId("ann"), AgentMemberId("bob"), AgentMemberId("eve")]

for_each_caller = pytest.mark.parametrize(("plane", "caller"), list(itertools.product(Plane, CALLERS)))


def agent(status: AgentStatus) -> AgentMember:
    return attrs.evolve(ANN, status=status)


def team(state: TeamState) -> Team:
    return attrs.evolve(TEAM, state=state)


def denied(refusal: Refusal | None, about: str) -> bool:
    """Whether it was refused for who asked. Raises on any other refusal."""
    if refusal is None:
        return False
    assert (refusal.code, refusal.about) == (Code.NOT_AUTHORIZED, about)
    assert refusal.lifted_by
    return True


@for_each_caller
def test_an_invitation_is_accepted_by_its_member_or_the_operator(plane: Plane, caller: AgentMemberId | None) -> None:
    may = plane is Plane.OPERATOR or caller == "bob"
    assert denied(may_join(plane, caller, BOB), "membership/of-bob") != may


@for_each_caller
@pytest.mark.parametrize("host", [HOST, None], ids=["with a host", "without"])
def test_a_membership_is_ended_by_its_member_the_host_or_the_operator(
    plane: Plane, caller: AgentMemberId | None, host: TeamMembership | None
) -> None:
    may = plane is Plane.OPERATOR or caller == "bob" or (caller == "ann" and host is not None)
    assert denied(may_leave(plane, caller, BOB, host), "membership/of-bob") != may


@for_each_caller
@pytest.mark.parametrize("host", [HOST, None], ids=["with a host", "without"])
def test_a_team_is_run_by_its_host_or_the_operator(
    plane: Plane, caller: AgentMemberId | None, host: TeamMembership | None
) -> None:
    """The plane alone gives nothing: a Host is the Host of one team."""
    may = plane is Plane.OPERATOR or (caller == "ann" and host is not None)
    assert denied(may_run(plane, caller, TEAM, host), "team/crew") != may


@pytest.mark.parametrize("status", AgentStatus)
def test_who_is_paused_or_retired_takes_nothing_up(status: AgentStatus) -> None:
    codes = {AgentStatus.PAUSED: Code.AGENT_MEMBER_PAUSED, AgentStatus.RETIRED: Code.AGENT_MEMBER_RETIRED}
    refusal = available(agent(status))
    assert (refusal.code if refusal else None) == codes.get(status)
    assert refusal is None or refusal.about == "agent/ann"
    assert (retired(agent(status)) is None) == (status is not AgentStatus.RETIRED)


@pytest.mark.parametrize(("role", "state"), list(itertools.product(MembershipRole, TeamState)))
def test_only_the_host_of_an_active_team_must_stay(role: MembershipRole, state: TeamState) -> None:
    refusal = stays_as_host(membership("bob", role), team(state))
    assert (refusal is not None) == (role is MembershipRole.HOST and state is TeamState.ACTIVE)
    assert refusal is None or (refusal.code, refusal.about) == (Code.SOLE_HOST, "membership/of-bob")


def test_the_host_of_active_teams_is_told_of_the_first() -> None:
    assert sole_host([]) is None
    refusal = sole_host([TEAM, attrs.evolve(TEAM, id=TeamId("other"))])
    assert refusal is not None
    assert (refusal.code, refusal.about) == (Code.SOLE_HOST, "team/crew")
    assert "firm team hand-over crew --expected-version 5 --to-agent-id MEMBER" in refusal.lifted_by


@pytest.mark.parametrize("state", TeamState)
def test_only_a_team_in_the_trash_takes_no_change(state: TeamState) -> None:
    refusal = kept(team(state))
    assert (refusal is not None) == (state is TeamState.TRASHED)
    assert refusal is None or (refusal.code, refusal.about) == (Code.INVALID_STATE_TRANSITION, "team/crew")


@pytest.mark.parametrize("status", [*AgentStatus, None])
def test_a_team_comes_back_with_a_host_that_is_not_retired(status: AgentStatus | None) -> None:
    """To be restored it may have none; to be active it must have one."""
    who = agent(status) if status else None
    to_restore = can_restore(HOST if who else None, who)
    to_activate = can_activate(TEAM, who)
    gone = Code.AGENT_MEMBER_RETIRED if status is AgentStatus.RETIRED else None
    assert (to_restore.code if to_restore else None) == gone
    assert (to_activate.code if to_activate else None) == (Code.HOST_REQUIRED if status is None else gone)


@pytest.mark.parametrize(("status", "state"), list(itertools.product(AgentStatus, [*MembershipState, None])))
def test_only_an_active_member_becomes_host(status: AgentStatus, state: MembershipState | None) -> None:
    part = membership("ann", MembershipRole.MEMBER, state) if state else None
    refusal = can_host(TEAM, agent(status), part)
    if status is not AgentStatus.ACTIVE:
        assert refusal == available(agent(status))
    elif state is MembershipState.ACTIVE:
        assert refusal is None
    else:
        assert refusal is not None
        assert (refusal.code, refusal.about) == (Code.INVALID_STATE_TRANSITION, "agent/ann")
        assert refusal.lifted_by.startswith("only an active member can become Host")


@pytest.mark.parametrize(("current", "expected"), list(itertools.product([1, 2, 2**63 - 1], repeat=2)))
def test_a_change_names_exactly_the_version_that_is_there(current: int, expected: int) -> None:
    refusal = moved("team/crew", current=current, expected=expected)
    assert (refusal is None) == (current == expected)
    if refusal is not None:
        assert (refusal.code, refusal.about, refusal.current_version) == (Code.VERSION_CONFLICT, "team/crew", current)


@pytest.mark.parametrize("state", [state for state in MembershipState if state is not MembershipState.INACTIVE])
def test_who_takes_part_already_is_told_how(state: MembershipState) -> None:
    refusal = already_there(membership("bob", MembershipRole.OBSERVER, state))
    assert (refusal.code, refusal.about, refusal.current_version) == (Code.MEMBERSHIP_EXISTS, "membership/of-bob", 2)
    assert refusal.lifted_by.startswith(f"it is {state} as observer")


def test_a_name_is_refused_with_who_has_it_and_where() -> None:
    refusal = name_taken("Ann", "ann", "crew")
    assert (refusal.code, refusal.about) == (Code.NAME_TAKEN, "agent/ann")
    assert "team crew" in refusal.lifted_by
    assert "'Ann'" in refusal.lifted_by
