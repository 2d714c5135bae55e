"""TeamMembership: one agent member's part in one team. Records, requests and rows."""

from __future__ import annotations

import enum
from typing import Annotated

import attrs

from client.protocol.ids import (
    AgentMemberId,
    AgentMemberRef,
    MemberGen,
    MembershipId,
    SubscriptionId,
    TeamId,
    TeamRef,
    UnixMs,
)
from client.protocol.operation import HOST_OR_OPERATOR, MEMBER_OR_ABOVE, READERS, Effect, Operation, Request
from client.protocol.refusals import Code
from client.protocol.shape import ID, LABEL, PAGE, VERSION, Bounds


class MembershipRole(enum.StrEnum):
    """What the member is in this team. Exactly one active Host while the team is active."""

    HOST = "host"
    MEMBER = "member"
    OBSERVER = "observer"


class GuestRole(enum.StrEnum):
    """The roles one can be invited to; the Host changes by ``team.hand-over`` alone."""

    MEMBER = "member"
    OBSERVER = "observer"


class MembershipState(enum.StrEnum):
    """``leaving`` is left by the transaction that ends the member's last attempt at a Work."""

    INVITED = "invited"
    ACTIVE = "active"
    LEAVING = "leaving"
    INACTIVE = "inactive"


@attrs.frozen(kw_only=True)
class TeamMembership:
    """Rejoining is a new record with the next ``member_gen`` of that pair."""

    id: MembershipId
    version: int
    team_id: TeamId
    agent_member_id: AgentMemberId
    role: MembershipRole
    state: MembershipState
    member_gen: MemberGen
    created_by: str
    created_at: UnixMs
    updated_at: UnixMs
    joined_at: UnixMs | None
    left_at: UnixMs | None


class SubscriptionSource(enum.StrEnum):
    """Whose messages a subscription admits: those to the member itself, or to its whole team."""

    AGENT = "agent"
    TEAM = "team"


class SubscriptionState(enum.StrEnum):
    """Revoked in the transaction that ends the membership."""

    ACTIVE = "active"
    REVOKED = "revoked"


@attrs.frozen(kw_only=True)
class MessageSubscription:
    """What an active membership may receive."""

    id: SubscriptionId
    membership_id: MembershipId
    source: SubscriptionSource
    source_id: str
    state: SubscriptionState


@attrs.frozen(kw_only=True)
class MembershipPage:
    items: list[TeamMembership]
    next: str | None


@attrs.frozen(kw_only=True)
class MembershipShown:
    """One membership with the subscriptions that came and went with it."""

    membership: TeamMembership
    subscriptions: list[MessageSubscription]


@attrs.frozen(kw_only=True)
class InviteMember(Request[TeamMembership]):
    """Invite an agent member to a team; it takes part once it joins."""

    team_id: Annotated[TeamRef, "the team, by id or unique name", ID]
    agent_member_id: Annotated[AgentMemberRef, "the member, by id or unique name", ID]
    role: Annotated[GuestRole, "as what"] = GuestRole.MEMBER


@attrs.frozen(kw_only=True)
class JoinTeam(Request[TeamMembership]):
    """Accept an invitation: the membership and its subscriptions become active together."""

    membership_id: Annotated[MembershipId, "the invitation", ID]
    expected_version: Annotated[int, "version last read", VERSION]


@attrs.frozen(kw_only=True)
class LeaveTeam(Request[TeamMembership]):
    """End a membership or decline an invitation; its subscriptions are revoked with it."""

    membership_id: Annotated[MembershipId, "the membership", ID]
    expected_version: Annotated[int, "version last read", VERSION]
    reason: Annotated[str, "why, for the record", LABEL] = ""


@attrs.frozen(kw_only=True)
class ListMemberships(Request[MembershipPage]):
    """List memberships, oldest first."""

    team_id: Annotated[TeamRef | None, "only of this team", ID] = None
    agent_member_id: Annotated[AgentMemberRef | None, "only of this member", ID] = None
    state: Annotated[MembershipState | None, "only in this state"] = None
    limit: Annotated[int, "most rows", PAGE] = 100
    cursor: Annotated[str, "continue after an earlier page", Bounds(most=500)] = ""


@attrs.frozen(kw_only=True)
class ShowMembership(Request[MembershipShown]):
    """Show one membership and its subscriptions."""

    membership_id: Annotated[MembershipId, "the membership", ID]


_FIND = (Code.NOT_FOUND, Code.ROW_QUARANTINED)

OPERATIONS = (
    Operation(
        "membership.invite",
        InviteMember,
        planes=HOST_OR_OPERATOR,
        effect=Effect.WRITE,
        refuses=(
            *_FIND,
            Code.AGENT_MEMBER_RETIRED,
            Code.INVALID_STATE_TRANSITION,
            Code.MEMBERSHIP_EXISTS,
            Code.NAME_AMBIGUOUS,
        ),
    ),
    Operation(
        "membership.join",
        JoinTeam,
        planes=MEMBER_OR_ABOVE,
        effect=Effect.WRITE,
        refuses=(
            *_FIND,
            Code.AGENT_MEMBER_PAUSED,
            Code.AGENT_MEMBER_RETIRED,
            Code.INVALID_STATE_TRANSITION,
            Code.NAME_TAKEN,
            Code.VERSION_CONFLICT,
        ),
    ),
    Operation(
        "membership.leave",
        LeaveTeam,
        planes=MEMBER_OR_ABOVE,
        effect=Effect.WRITE,
        refuses=(*_FIND, Code.INVALID_STATE_TRANSITION, Code.SOLE_HOST, Code.VERSION_CONFLICT),
    ),
    Operation(
        "membership.list",
        ListMemberships,
        planes=READERS,
        effect=Effect.READ,
        refuses=(*_FIND, Code.CURSOR_INVALID, Code.NAME_AMBIGUOUS),
    ),
    Operation("membership.show", ShowMembership, planes=READERS, effect=Effect.READ, refuses=_FIND),
)
