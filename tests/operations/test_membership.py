"""``membership.invite``, ``join`` and ``leave``, one test an outcome that the table declares; and who may do them."""

from __future__ import annotations

import attrs
import pytest

from client.protocol.agent import UpdateAgent
from client.protocol.ids import AgentMemberRef, MembershipId, TeamRef
from client.protocol.membership import (
    GuestRole,
    InviteMember,
    JoinTeam,
    LeaveTeam,
    MembershipRole,
    MembershipState,
    ShowMembership,
    SubscriptionSource,
    SubscriptionState,
    TeamMembership,
)
from client.protocol.operation import Plane
from client.protocol.refusals import Code, Refusal
from tests.support import refusals, scene
from tests.support.node import InProcessNode
from tests.support.refusals import refused_while_spoilt

NO_MEMBERSHIP = MembershipId("nothing")


def invite(team: str, who: str, role: GuestRole = GuestRole.MEMBER) -> InviteMember:
    return InviteMember(team_id=TeamRef(team), agent_member_id=AgentMemberRef(who), role=role)


def join(membership: TeamMembership, version: int = 1) -> JoinTeam:
    return JoinTeam(membership_id=membership.id, expected_version=version)


def leave(membership: TeamMembership, version: int | None = None, reason: str = "") -> LeaveTeam:
    return LeaveTeam(membership_id=membership.id, expected_version=version or membership.version, reason=reason)


async def subscriptions(node: InProcessNode, of: TeamMembership) -> set[tuple[SubscriptionSource, str, str]]:
    shown = await node.ok(ShowMembership(membership_id=of.id))
    assert shown.membership.id == of.id
    return {(s.source, s.source_id, s.state) for s in shown.subscriptions}


def all_of(crew: scene.Crew, who: str, state: SubscriptionState) -> set[tuple[SubscriptionSource, str, str]]:
    return {(SubscriptionSource.AGENT, who, state), (SubscriptionSource.TEAM, crew.team.id, state)}


@pytest.mark.parametrize("role", GuestRole)
async def test_membership_invite_ok(node: InProcessNode, role: GuestRole) -> None:
    crew = await scene.crew(node)
    made = await node.ok(invite("crew", "eve", role))
    assert made == TeamMembership(
        id=made.id,
        version=1,
        team_id=crew.team.id,
        agent_member_id=crew.eve.id,
        role=MembershipRole(role.value),
        state=MembershipState.INVITED,
        member_gen=crew.host.member_gen,
        created_by="operator",
        created_at=made.created_at,
        updated_at=made.created_at,
        joined_at=None,
        left_at=None,
    )
    assert made.member_gen == 1
    assert await subscriptions(node, made) == set()


async def test_membership_invite_agent_member_retired(node: InProcessNode) -> None:
    crew = await scene.crew(node)
    await scene.retired(node, crew.eve)
    assert await node.refused(invite("crew", crew.eve.id)) == refusals.retired(crew.eve.id)


async def test_who_is_paused_may_be_invited(node: InProcessNode) -> None:
    crew = await scene.crew(node)
    await scene.paused(node, crew.eve)
    assert (await node.ok(invite("crew", "eve"))).state is MembershipState.INVITED


async def test_membership_invite_invalid_state_transition(node: InProcessNode) -> None:
    crew = await scene.crew(node)
    await scene.trashed(node, crew.team)
    refusal = await node.refused(invite(crew.team.id, "eve"))
    assert refusal == refusals.in_the_trash(crew.team.id, 3)
    assert not isinstance(await node.follow(refusal), Refusal)
    await node.ok(invite("crew", "eve"))


async def test_membership_invite_membership_exists(node: InProcessNode) -> None:
    crew = await scene.crew(node)
    there = f"it is active as member; leave is the next step: firm membership leave {crew.member.id}"
    assert await node.refused(invite("crew", "bob")) == Refusal(
        code=Code.MEMBERSHIP_EXISTS,
        about=f"membership/{crew.member.id}",
        lifted_by=f"{there} --expected-version 2",
        current_version=2,
    )
    invitation = await node.ok(invite("crew", "eve", GuestRole.OBSERVER))
    refusal = await node.refused(invite("crew", "eve"))
    there = f"it is invited as observer; join is the next step: firm membership join {invitation.id}"
    assert refusal == Refusal(
        code=Code.MEMBERSHIP_EXISTS,
        about=f"membership/{invitation.id}",
        lifted_by=f"{there} --expected-version 1",
        current_version=1,
    )
    assert not isinstance(await node.follow(refusal), Refusal)


async def test_membership_invite_name_ambiguous(node: InProcessNode) -> None:
    crew = await scene.crew(node)
    eve = await scene.agent(node, "eve")
    expected = refusals.ambiguous("agent", "eve", crew.eve.id, eve.id)
    assert await node.refused(invite("crew", "eve")) == expected
    other = await scene.team(node, crew.ann)
    expected = refusals.ambiguous("team", "crew", crew.team.id, other.id)
    assert await node.refused(invite("crew", "bob")) == expected


async def test_membership_invite_not_found(node: InProcessNode) -> None:
    await scene.crew(node)
    assert await node.refused(invite("nothing", "eve")) == refusals.not_found("team", "nothing")
    assert await node.refused(invite("crew", "nobody")) == refusals.not_found("agent", "nobody")


async def test_membership_invite_row_quarantined(node: InProcessNode) -> None:
    crew = await scene.crew(node)
    await refused_while_spoilt(node, invite("crew", "eve"), "agents", crew.eve.id)


async def test_membership_join_ok(node: InProcessNode) -> None:
    crew = await scene.crew(node)
    invitation = await scene.invited(node, crew.team, crew.eve)
    joined = await node.ok(join(invitation), plane=Plane.MEMBER, actor=crew.eve.id)
    assert joined == attrs.evolve(
        invitation,
        version=2,
        state=MembershipState.ACTIVE,
        joined_at=joined.updated_at,
        updated_at=joined.updated_at,
    )
    assert joined.updated_at > invitation.updated_at
    assert await subscriptions(node, joined) == all_of(crew, crew.eve.id, SubscriptionState.ACTIVE)


async def test_membership_join_agent_member_paused(node: InProcessNode) -> None:
    crew = await scene.crew(node)
    invitation = await scene.invited(node, crew.team, crew.eve)
    await scene.paused(node, crew.eve)
    refusal = await node.refused(join(invitation))
    assert refusal == refusals.paused(crew.eve.id, 2)
    assert not isinstance(await node.follow(refusal), Refusal)
    await node.ok(join(invitation))


async def test_membership_join_agent_member_retired(node: InProcessNode) -> None:
    """Retiring gives up invitations, so only a store that was written by something else gets here."""
    crew = await scene.crew(node)
    invitation = await scene.invited(node, crew.team, crew.eve)
    node.execute("UPDATE agents SET status = 'retired' WHERE id = ?", crew.eve.id)
    assert await node.refused(join(invitation)) == refusals.retired(crew.eve.id)


async def test_membership_join_invalid_state_transition(node: InProcessNode) -> None:
    crew = await scene.crew(node)
    invitation = await scene.invited(node, crew.team, crew.eve)
    about = f"membership/{crew.member.id}"
    assert await node.refused(join(crew.member, 2)) == refusals.no_move(about, "active", "invited")
    gone = await scene.left(node, crew.member)
    assert await node.refused(join(gone, 3)) == refusals.no_move(about, "inactive", "invited")
    await scene.trashed(node, crew.team)
    refusal = await node.refused(join(invitation))
    assert refusal == refusals.in_the_trash(crew.team.id, 3)
    assert not isinstance(await node.follow(refusal), Refusal)
    await node.ok(join(invitation))


async def test_membership_join_name_taken(node: InProcessNode) -> None:
    crew = await scene.crew(node)
    bob = await scene.agent(node, "bob")
    invitation = await scene.invited(node, crew.team, bob)
    refusal = await node.refused(join(invitation))
    assert refusal == Refusal(
        code=Code.NAME_TAKEN,
        about=f"agent/{crew.bob.id}",
        lifted_by=f"team {crew.team.id} has an active member called 'bob'; give one of the two another name",
    )
    await node.ok(UpdateAgent(agent_member_id=AgentMemberRef(bob.id), expected_version=1, name="rob"))
    await node.ok(join(invitation))


async def test_membership_join_not_found(node: InProcessNode) -> None:
    refusal = await node.refused(JoinTeam(membership_id=NO_MEMBERSHIP, expected_version=1))
    assert refusal == refusals.not_found("membership", "nothing")


async def test_membership_join_row_quarantined(node: InProcessNode) -> None:
    crew = await scene.crew(node)
    invitation = await scene.invited(node, crew.team, crew.eve)
    await refused_while_spoilt(node, join(invitation), "memberships", invitation.id)


async def test_membership_join_version_conflict(node: InProcessNode) -> None:
    crew = await scene.crew(node)
    refusal = await node.refused(join(crew.member, 1))
    assert refusal == refusals.conflict(f"membership/{crew.member.id}", 2)


async def test_membership_leave_ok(node: InProcessNode) -> None:
    crew = await scene.crew(node)
    gone = await node.ok(leave(crew.member, reason="done"), plane=Plane.MEMBER, actor=crew.bob.id)
    assert gone == attrs.evolve(
        crew.member, version=3, state=MembershipState.INACTIVE, left_at=gone.updated_at, updated_at=gone.updated_at
    )
    assert await subscriptions(node, gone) == all_of(crew, crew.bob.id, SubscriptionState.REVOKED)


async def test_an_invitation_can_be_declined(node: InProcessNode) -> None:
    crew = await scene.crew(node)
    invitation = await scene.invited(node, crew.team, crew.eve)
    declined = await node.ok(leave(invitation), plane=Plane.MEMBER, actor=crew.eve.id)
    assert declined.state is MembershipState.INACTIVE
    assert declined.joined_at is None
    assert await subscriptions(node, declined) == set()


async def test_who_comes_back_is_a_new_membership_of_the_next_generation(node: InProcessNode) -> None:
    crew = await scene.crew(node)
    gone = await scene.left(node, crew.member)
    again = await scene.joined(node, crew.team, crew.bob, GuestRole.OBSERVER)
    assert again.id != gone.id
    assert (gone.member_gen, again.member_gen) == (1, 2)
    assert again.role is MembershipRole.OBSERVER


async def test_membership_leave_invalid_state_transition(node: InProcessNode) -> None:
    crew = await scene.crew(node)
    gone = await scene.left(node, crew.member)
    expected = refusals.no_move(f"membership/{gone.id}", "inactive", "invited or active")
    assert await node.refused(leave(gone)) == expected


async def test_membership_leave_not_found(node: InProcessNode) -> None:
    refusal = await node.refused(LeaveTeam(membership_id=NO_MEMBERSHIP, expected_version=1))
    assert refusal == refusals.not_found("membership", "nothing")


async def test_membership_leave_row_quarantined(node: InProcessNode) -> None:
    crew = await scene.crew(node)
    await refused_while_spoilt(node, leave(crew.member), "memberships", crew.member.id)


async def test_membership_leave_sole_host(node: InProcessNode) -> None:
    crew = await scene.crew(node)
    refusal = await node.refused(leave(crew.host))
    assert refusal == Refusal(
        code=Code.SOLE_HOST,
        about=f"membership/{crew.host.id}",
        lifted_by="hand the team over or deactivate it first: "
        f"firm team hand-over {crew.team.id} --expected-version 1 --to-agent-id MEMBER",
    )
    assert not isinstance(await node.follow(refusal, MEMBER="bob"), Refusal)
    await node.ok(leave(crew.host, 2))


async def test_the_host_of_a_team_that_is_set_aside_may_leave(node: InProcessNode) -> None:
    crew = await scene.crew(node)
    await scene.inactive(node, crew.team)
    assert (await node.ok(leave(crew.host))).state is MembershipState.INACTIVE


async def test_membership_leave_version_conflict(node: InProcessNode) -> None:
    crew = await scene.crew(node)
    refusal = await node.refused(leave(crew.member, 1))
    assert refusal == refusals.conflict(f"membership/{crew.member.id}", 2)


async def test_only_the_invited_member_or_the_operator_accepts_an_invitation(node: InProcessNode) -> None:
    crew = await scene.crew(node)
    invitation = await scene.invited(node, crew.team, crew.eve)
    expected = Refusal(
        code=Code.NOT_AUTHORIZED,
        about=f"membership/{invitation.id}",
        lifted_by="the invited member or the operator accepts it",
    )
    for plane, actor in ((Plane.HOST, crew.ann), (Plane.MEMBER, crew.bob)):
        assert await node.refused(join(invitation), plane=plane, actor=actor.id) == expected
    await node.ok(join(invitation), plane=Plane.HOST, actor=crew.eve.id)


async def test_only_the_member_its_host_or_the_operator_ends_a_membership(node: InProcessNode) -> None:
    crew = await scene.crew(node)
    dev = await scene.agent(node, "dev")
    await scene.team(node, dev, "other")
    third = await scene.joined(node, crew.team, crew.eve)
    expected = Refusal(
        code=Code.NOT_AUTHORIZED,
        about=f"membership/{third.id}",
        lifted_by="that member, the Host of its team or the operator ends it",
    )
    for plane, actor in ((Plane.MEMBER, crew.bob), (Plane.HOST, dev), (Plane.HOST, crew.bob)):
        assert await node.refused(leave(third), plane=plane, actor=actor.id) == expected
    await node.ok(leave(third), plane=Plane.HOST, actor=crew.ann.id)


async def test_only_the_host_or_the_operator_invites(node: InProcessNode) -> None:
    crew = await scene.crew(node)
    refusal = await node.refused(invite("crew", "eve"), plane=Plane.HOST, actor=crew.bob.id)
    assert refusal == refusals.not_run_by_caller(crew.team.id)
    made = await node.ok(invite("crew", "eve"), plane=Plane.HOST, actor=crew.ann.id)
    assert made.created_by == f"agent/{crew.ann.id}"
