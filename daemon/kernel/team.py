"""What may happen to a team, and who may do it."""

from __future__ import annotations

import enum

from client.protocol.agent import AgentMember, AgentStatus
from client.protocol.ids import AgentMemberId
from client.protocol.membership import MembershipState, TeamMembership
from client.protocol.operation import Plane
from client.protocol.refusals import Code, Refusal
from client.protocol.team import Team, TeamState
from daemon.kernel.agent import available
from daemon.kernel.machine import Lifecycle


class TeamCause(enum.StrEnum):
    ACTIVATE = "activate"
    DEACTIVATE = "deactivate"
    TRASH = "trash"
    RESTORE = "restore"


TEAM = Lifecycle(
    "team",
    start=TeamState.ACTIVE,
    moves={
        TeamState.ACTIVE: {TeamCause.DEACTIVATE: TeamState.INACTIVE},
        TeamState.INACTIVE: {TeamCause.ACTIVATE: TeamState.ACTIVE, TeamCause.TRASH: TeamState.TRASHED},
        TeamState.TRASHED: {TeamCause.RESTORE: TeamState.INACTIVE},
    },
)


def may_run(plane: Plane, caller: AgentMemberId | None, team: Team, host: TeamMembership | None) -> Refusal | None:
    """A team is run by the operator and by its own Host."""
    if plane is Plane.OPERATOR or (host is not None and caller is not None and host.agent_member_id == caller):
        return None
    return Refusal(
        code=Code.NOT_AUTHORIZED,
        about=f"team/{team.id}",
        lifted_by="the Host of this team or the operator does it",
    )


def kept(team: Team) -> Refusal | None:
    """Why a team in the trash takes no change, or None."""
    if team.state is not TeamState.TRASHED:
        return None
    return Refusal(
        code=Code.INVALID_STATE_TRANSITION,
        about=f"team/{team.id}",
        lifted_by=f"take it out of the trash first: firm team restore {team.id} --expected-version {team.version}",
    )


def can_restore(host: TeamMembership | None, agent: AgentMember | None) -> Refusal | None:
    """Why a team cannot come out of the trash with the Host it has kept, or None. It may have none."""
    if host is None or agent is None or agent.status is not AgentStatus.RETIRED:
        return None
    return Refusal(
        code=Code.AGENT_MEMBER_RETIRED,
        about=f"agent/{agent.id}",
        lifted_by="its Host is retired; end its membership first: "
        f"firm membership leave {host.id} --expected-version {host.version}",
    )


def can_activate(team: Team, agent: AgentMember | None) -> Refusal | None:
    """Why a team cannot be active with the Host it has kept, or None."""
    if agent is not None and agent.status is not AgentStatus.RETIRED:
        return None
    give = f"give it a Host: firm team hand-over {team.id} --expected-version {team.version} --to-agent-id MEMBER"
    if agent is None:
        return Refusal(code=Code.HOST_REQUIRED, about=f"team/{team.id}", lifted_by=give)
    lifted_by = f"its Host is retired; {give}"
    return Refusal(code=Code.AGENT_MEMBER_RETIRED, about=f"agent/{agent.id}", lifted_by=lifted_by)


def can_host(team: Team, agent: AgentMember, membership: TeamMembership | None) -> Refusal | None:
    """Why ``agent`` cannot become the Host of ``team``, or None."""
    if refusal := available(agent):
        return refusal
    if membership is None:
        first = f": firm membership invite --team-id {team.id} --agent-member-id {agent.id}, then join"
    elif membership.state is MembershipState.ACTIVE:
        return None
    elif membership.state is MembershipState.INVITED:
        first = f": firm membership join {membership.id} --expected-version {membership.version}"
    else:
        first = f"; this one is {membership.state.value}"
    return Refusal(
        code=Code.INVALID_STATE_TRANSITION,
        about=f"agent/{agent.id}",
        lifted_by=f"only an active member can become Host{first}",
    )
