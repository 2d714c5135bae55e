"""Handlers for ``membership.*``."""

from __future__ import annotations

from client.protocol.ids import MemberGen, MembershipId, new_id
from client.protocol.membership import (
    InviteMember,
    JoinTeam,
    LeaveTeam,
    ListMemberships,
    MembershipPage,
    MembershipRole,
    MembershipShown,
    MembershipState,
    ShowMembership,
    TeamMembership,
)
from client.protocol.refusals import Refusal
from daemon.call import Call
from daemon.kernel import cursor
from daemon.kernel.agent import available, name_taken, retired
from daemon.kernel.membership import (
    MEMBERSHIP,
    MembershipCause,
    already_there,
    stays_as_host,
)
from daemon.kernel.membership import (
    may_join as join_rule,
)
from daemon.kernel.membership import (
    may_leave as leave_rule,
)
from daemon.kernel.team import kept, may_run
from daemon.kernel.version import moved
from daemon.kernel.work import WorkCause
from daemon.operations import find, mail
from store import attempt as attempts
from store import membership as memberships
from store import message as messages
from store import work as works
from store.agent import AGENTS
from store.membership import MEMBERSHIPS
from store.team import TEAMS
from store.tx import Tx
from store.work import WORKS


def may_invite(tx: Tx, call: Call, ask: InviteMember) -> Refusal | None:
    team = find.team(tx, ask.team_id)
    if isinstance(team, Refusal):
        return team
    return may_run(call.plane, call.agent_member_id, team, memberships.host(tx, team.id))


def invite(tx: Tx, call: Call, ask: InviteMember) -> TeamMembership | Refusal:
    team = find.team(tx, ask.team_id)
    agent = find.agent(tx, ask.agent_member_id)
    if isinstance(team, Refusal):
        return team
    if isinstance(agent, Refusal):
        return agent
    if refusal := kept(team) or retired(agent):
        return refusal
    if there := memberships.open_of(tx, team.id, agent.id):
        return already_there(there)
    made = TeamMembership(
        id=MembershipId(new_id()),
        version=1,
        team_id=team.id,
        agent_member_id=agent.id,
        role=MembershipRole(ask.role.value),
        state=MembershipState.INVITED,
        member_gen=MemberGen(memberships.last_gen(tx, team.id, agent.id) + 1),
        created_by=call.actor,
        created_at=call.now,
        updated_at=call.now,
        joined_at=None,
        left_at=None,
    )
    return MEMBERSHIPS.insert(tx, made, kind="invited", actor=call.actor, at=call.now)


def _seen(tx: Tx, ask: JoinTeam | LeaveTeam) -> TeamMembership | Refusal:
    """The membership that is meant, at the version that the caller saw."""
    membership = find.membership(tx, ask.membership_id)
    if isinstance(membership, Refusal):
        return membership
    about = f"membership/{membership.id}"
    return moved(about, current=membership.version, expected=ask.expected_version) or membership


def may_join(tx: Tx, call: Call, ask: JoinTeam) -> Refusal | None:
    membership = find.membership(tx, ask.membership_id)
    return membership if isinstance(membership, Refusal) else join_rule(call.plane, call.agent_member_id, membership)


def join(tx: Tx, call: Call, ask: JoinTeam) -> TeamMembership | Refusal:
    membership = _seen(tx, ask)
    if isinstance(membership, Refusal):
        return membership
    state = MEMBERSHIP.after(membership.state, MembershipCause.JOIN, f"membership/{membership.id}")
    if isinstance(state, Refusal):
        return state
    team, agent = TEAMS.held(tx, membership.team_id), AGENTS.held(tx, membership.agent_member_id)
    if refusal := kept(team) or available(agent):
        return refusal
    if other := memberships.namesake(tx, team.id, agent.id, agent.name):
        return name_taken(agent.name, other, team.id)
    joined = MEMBERSHIPS.change(
        tx, membership, kind="joined", actor=call.actor, at=call.now, state=state, joined_at=call.now
    )
    memberships.subscribe(tx, joined)
    return joined


def may_leave(tx: Tx, call: Call, ask: LeaveTeam) -> Refusal | None:
    membership = find.membership(tx, ask.membership_id)
    if isinstance(membership, Refusal):
        return membership
    return leave_rule(call.plane, call.agent_member_id, membership, memberships.host(tx, membership.team_id))


def leave(tx: Tx, call: Call, ask: LeaveTeam) -> TeamMembership | Refusal:
    membership = _seen(tx, ask)
    if isinstance(membership, Refusal):
        return membership
    bound = attempts.live_of_membership(tx, membership.id)
    after = end(tx, call, membership, MembershipCause.LEAVE_BOUND if bound else MembershipCause.LEAVE, ask.reason)
    if not isinstance(after, Refusal):
        _release(tx, call, after)
    return after


def _release(tx: Tx, call: Call, membership: TeamMembership) -> None:
    """What a member that leaves has not begun is nobody's again; the attempt that it still has goes on."""
    for work in works.not_begun(tx, membership.id):
        kind, reason = WorkCause.RELEASE.value, "its member left the team"
        WORKS.change(tx, work, kind=kind, actor=call.actor, at=call.now, owner_id=None, reason=reason)


def end(
    tx: Tx, call: Call, membership: TeamMembership, cause: MembershipCause, reason: str
) -> TeamMembership | Refusal:
    """End a membership and, with it, its subscriptions."""
    state = MEMBERSHIP.after(membership.state, cause, f"membership/{membership.id}")
    if isinstance(state, Refusal):
        return state
    team = TEAMS.held(tx, membership.team_id)
    if refusal := stays_as_host(membership, team):
        return refusal
    if state is MembershipState.LEAVING:
        return MEMBERSHIPS.change(tx, membership, kind="leaving", actor=call.actor, at=call.now, state=state)
    memberships.revoke(tx, membership.id)
    mail.invalidate(tx, call, messages.unsettled_of(tx, membership.id), "its recipient left the team")
    kind = f"left: {reason}" if reason else "left"
    return MEMBERSHIPS.change(tx, membership, kind=kind, actor=call.actor, at=call.now, state=state, left_at=call.now)


def unbound(tx: Tx, call: Call, membership_id: MembershipId) -> None:
    """The last attempt of a membership may have ended: one that was leaving ends with it."""
    membership = MEMBERSHIPS.held(tx, membership_id)
    if membership.state is MembershipState.LEAVING and not attempts.live_of_membership(tx, membership_id):
        end(tx, call, membership, MembershipCause.UNBOUND, "last attempt ended")


def list_(tx: Tx, call: Call, ask: ListMemberships) -> MembershipPage | Refusal:
    team_id = agent_id = None
    if ask.team_id is not None:
        team = find.team(tx, ask.team_id)
        if isinstance(team, Refusal):
            return team
        team_id = team.id
    if ask.agent_member_id is not None:
        agent = find.agent(tx, ask.agent_member_id)
        if isinstance(agent, Refusal):
            return agent
        agent_id = agent.id
    query = ("membership.list", team_id, agent_id, ask.state)
    after = cursor.read(ask.cursor, call.store_id, *query)
    if isinstance(after, Refusal):
        return after
    items, last = memberships.list_page(
        tx, team_id=team_id, agent_id=agent_id, state=ask.state, after=after, limit=ask.limit
    )
    return MembershipPage(items=items, next=cursor.write(last, call.store_id, *query) if last else None)


def show(tx: Tx, call: Call, ask: ShowMembership) -> MembershipShown | Refusal:
    membership = find.membership(tx, ask.membership_id)
    if isinstance(membership, Refusal):
        return membership
    return MembershipShown(membership=membership, subscriptions=memberships.subscriptions(tx, membership.id))
