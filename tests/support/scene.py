"""The people and teams a test begins with: made by the same requests that anybody makes them with."""

from __future__ import annotations

import attrs

from client.protocol.agent import AgentMember, CreateAgent, PauseAgent, RetireAgent, ShowAgent
from client.protocol.ids import AgentMemberRef, Folder, TeamRef
from client.protocol.membership import GuestRole, InviteMember, JoinTeam, LeaveTeam, TeamMembership
from client.protocol.team import CreateTeam, DeactivateTeam, ShowTeam, Team, TrashTeam
from tests.support.node import InProcessNode


@attrs.frozen
class Crew:
    """An active team ``crew`` with Ann as its Host, Bob as a member, and Eve who is in no team."""

    team: Team
    ann: AgentMember
    bob: AgentMember
    eve: AgentMember
    host: TeamMembership
    member: TeamMembership


async def crew(node: InProcessNode) -> Crew:
    ann, bob, eve = [await agent(node, name) for name in ("ann", "bob", "eve")]
    made = await team(node, ann)
    member = await joined(node, made, bob)
    return Crew(team=made, ann=ann, bob=bob, eve=eve, host=await host(node, made), member=member)


async def agent(node: InProcessNode, name: str = "ann") -> AgentMember:
    return await node.ok(CreateAgent(name=name))


async def paused(node: InProcessNode, who: AgentMember) -> AgentMember:
    return await node.ok(PauseAgent(agent_member_id=AgentMemberRef(who.id), expected_version=who.version))


async def retired(node: InProcessNode, who: AgentMember) -> AgentMember:
    ref = AgentMemberRef(who.id)
    now = await node.ok(ShowAgent(agent_member_id=ref))
    return await node.ok(RetireAgent(agent_member_id=ref, expected_version=now.version))


async def team(node: InProcessNode, by: AgentMember, name: str = "crew") -> Team:
    project = Folder(str(node.home))
    return await node.ok(CreateTeam(name=name, host_agent_id=AgentMemberRef(by.id), project=project))


async def host(node: InProcessNode, of: Team) -> TeamMembership:
    return (await node.ok(ShowTeam(team_id=TeamRef(of.id)))).members[0].membership


async def invited(
    node: InProcessNode, to: Team, who: AgentMember, role: GuestRole = GuestRole.MEMBER
) -> TeamMembership:
    ask = InviteMember(team_id=TeamRef(to.id), agent_member_id=AgentMemberRef(who.id), role=role)
    return await node.ok(ask)


async def joined(node: InProcessNode, to: Team, who: AgentMember, role: GuestRole = GuestRole.MEMBER) -> TeamMembership:
    invitation = await invited(node, to, who, role)
    return await node.ok(JoinTeam(membership_id=invitation.id, expected_version=1))


async def left(node: InProcessNode, membership: TeamMembership) -> TeamMembership:
    return await node.ok(LeaveTeam(membership_id=membership.id, expected_version=membership.version))


async def inactive(node: InProcessNode, which: Team) -> Team:
    return await node.ok(DeactivateTeam(team_id=TeamRef(which.id), expected_version=which.version))


async def trashed(node: InProcessNode, which: Team) -> Team:
    aside = await inactive(node, which)
    return await node.ok(TrashTeam(team_id=TeamRef(which.id), expected_version=aside.version))
