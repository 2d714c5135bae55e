"""What may happen to a membership, and who may do it."""

from __future__ import annotations

import enum

from client.protocol.ids import AgentMemberId
from client.protocol.membership import MembershipRole, MembershipState, TeamMembership
from client.protocol.operation import Plane
from client.protocol.refusals import Code, Refusal
from client.protocol.team import Team, TeamState
from daemon.kernel.machine import Lifecycle


class MembershipCause(enum.StrEnum):
    JOIN = "join"
    LEAVE = "leave"
    LEAVE_BOUND = "leave while bound"
    UNBOUND = "last binding ended"


MEMBERSHIP = Lifecycle(
    "membership",
    start=MembershipState.INVITED,
    moves={
        MembershipState.INVITED: {
            MembershipCause.JOIN: MembershipState.ACTIVE,
            MembershipCause.LEAVE: MembershipState.INACTIVE,
        },
        MembershipState.ACTIVE: {
            MembershipCause.LEAVE: MembershipState.INACTIVE,
            MembershipCause.LEAVE_BOUND: MembershipState.LEAVING,
        },
        MembershipState.LEAVING: {MembershipCause.UNBOUND: MembershipState.INACTIVE},
        MembershipState.INACTIVE: {},
    },
)


def may_join(plane: Plane, caller: AgentMemberId | None, membership: TeamMembership) -> Refusal | None:
    """An invitation is accepted by that very member, or by the operator for it."""
    if plane is Plane.OPERATOR or caller == membership.agent_member_id:
        return None
    return Refusal(
        code=Code.NOT_AUTHORIZED,
        about=f"membership/{membership.id}",
        lifted_by="the invited member or the operator accepts it",
    )


def may_leave(
    plane: Plane, caller: AgentMemberId | None, membership: TeamMembership, host: TeamMembership | None
) -> Refusal | None:
    """A membership is ended by that very member, by the Host of its team, or by the operator."""
    own = caller is not None and caller == membership.agent_member_id
    hosting = caller is not None and host is not None and host.agent_member_id == caller
    if plane is Plane.OPERATOR or own or hosting:
        return None
    return Refusal(
        code=Code.NOT_AUTHORIZED,
        about=f"membership/{membership.id}",
        lifted_by="that member, the Host of its team or the operator ends it",
    )


def stays_as_host(membership: TeamMembership, team: Team) -> Refusal | None:
    """Why the only Host of an active team cannot leave, or None."""
    if membership.role is not MembershipRole.HOST or team.state is not TeamState.ACTIVE:
        return None
    return Refusal(
        code=Code.SOLE_HOST,
        about=f"membership/{membership.id}",
        lifted_by="hand the team over or deactivate it first: "
        f"firm team hand-over {team.id} --expected-version {team.version} --to-agent-id MEMBER",
    )


def already_there(membership: TeamMembership) -> Refusal:
    verb = "join" if membership.state is MembershipState.INVITED else "leave"
    return Refusal(
        code=Code.MEMBERSHIP_EXISTS,
        about=f"membership/{membership.id}",
        lifted_by=f"it is {membership.state.value} as {membership.role.value}; {verb} is the next step: "
        f"firm membership {verb} {membership.id} --expected-version {membership.version}",
        current_version=membership.version,
    )
