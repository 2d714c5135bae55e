"""Handlers for ``team.*``."""

from __future__ import annotations

from typing import Any

from client.protocol.ids import MemberGen, MembershipId, TeamId, TeamRef, new_id
from client.protocol.membership import MembershipRole, MembershipState, TeamMembership
from client.protocol.operation import Plane
from client.protocol.refusals import Refusal
from client.protocol.team import (
    ActivateTeam,
    CreateTeam,
    DeactivateTeam,
    HandOverTeam,
    ListTeams,
    Participant,
    RestoreTeam,
    ShowTeam,
    Team,
    TeamPage,
    TeamShown,
    TeamState,
    TrashTeam,
    UpdateTeam,
)
from daemon.call import Call
from daemon.kernel import cursor
from daemon.kernel.agent import available
from daemon.kernel.team import TEAM, TeamCause, can_activate, can_host, can_restore, kept, may_run
from daemon.kernel.version import moved
from daemon.operations import find, project
from store import membership as memberships
from store import team as teams
from store.agent import AGENTS
from store.membership import MEMBERSHIPS
from store.team import TEAMS
from store.tx import Tx


def create(tx: Tx, call: Call, ask: CreateTeam) -> Team | Refusal:
    agent = find.agent(tx, ask.host_agent_id)
    if isinstance(agent, Refusal):
        return agent
    if refusal := available(agent):
        return refusal
    team = Team(
        id=TeamId(new_id()),
        version=1,
        name=ask.name,
        description=ask.description,
        project_id=project.at(tx, call).id,
        node_id=call.node_id,
        state=TeamState.ACTIVE,
        created_by=call.actor,
        created_at=call.now,
        updated_at=call.now,
    )
    TEAMS.insert(tx, team, kind="created", actor=call.actor, at=call.now)
    host = TeamMembership(
        id=MembershipId(new_id()),
        version=1,
        team_id=team.id,
        agent_member_id=agent.id,
        role=MembershipRole.HOST,
        state=MembershipState.ACTIVE,
        member_gen=MemberGen(memberships.last_gen(tx, team.id, agent.id) + 1),
        created_by=call.actor,
        created_at=call.now,
        updated_at=call.now,
        joined_at=call.now,
        left_at=None,
    )
    MEMBERSHIPS.insert(tx, host, kind="joined as host", actor=call.actor, at=call.now)
    memberships.subscribe(tx, host)
    return team


def list_(tx: Tx, call: Call, ask: ListTeams) -> TeamPage | Refusal:
    query = ("team.list", ask.state)
    after = cursor.read(ask.cursor, call.store_id, *query)
    if isinstance(after, Refusal):
        return after
    items, last = teams.list_page(tx, state=ask.state, after=after, limit=ask.limit)
    return TeamPage(items=items, next=cursor.write(last, call.store_id, *query) if last else None)


def show(tx: Tx, call: Call, ask: ShowTeam) -> TeamShown | Refusal:
    team = find.team(tx, ask.team_id)
    return team if isinstance(team, Refusal) else _shown(tx, team)


def _shown(tx: Tx, team: Team) -> TeamShown:
    members: list[Participant] = []
    for membership in memberships.open_of_team(tx, team.id):
        agent = AGENTS.load(tx, membership.agent_member_id)
        members.append(
            Participant(
                name=agent.name if agent else "",
                membership=membership,
                profile=agent.profile if agent else "",
                ceiling=agent.ceiling if agent else None,
                workspace=agent.workspace if agent else None,
            )
        )
    return TeamShown(team=team, members=members)


def may(tx: Tx, call: Call, ask: UpdateTeam | DeactivateTeam | HandOverTeam) -> Refusal | None:
    """Who may run this team: the operator, and its own Host."""
    if call.plane is Plane.OPERATOR:
        return None
    team = find.team(tx, ask.team_id)
    if isinstance(team, Refusal):
        return team
    return may_run(call.plane, call.agent_member_id, team, memberships.host(tx, team.id))


def update(tx: Tx, call: Call, ask: UpdateTeam) -> Team | Refusal:
    team = _seen(tx, ask.team_id, ask.expected_version)
    if isinstance(team, Refusal):
        return team
    if refusal := kept(team):
        return refusal
    changes: dict[str, Any] = {
        name: value for name in ("name", "description") if (value := getattr(ask, name)) is not None
    }
    return TEAMS.change(tx, team, kind="updated", actor=call.actor, at=call.now, **changes)


def activate(tx: Tx, call: Call, ask: ActivateTeam) -> Team | Refusal:
    return _move(tx, call, ask.team_id, ask.expected_version, TeamCause.ACTIVATE)


def deactivate(tx: Tx, call: Call, ask: DeactivateTeam) -> Team | Refusal:
    return _move(tx, call, ask.team_id, ask.expected_version, TeamCause.DEACTIVATE)


def trash(tx: Tx, call: Call, ask: TrashTeam) -> Team | Refusal:
    return _move(tx, call, ask.team_id, ask.expected_version, TeamCause.TRASH)


def restore(tx: Tx, call: Call, ask: RestoreTeam) -> Team | Refusal:
    return _move(tx, call, ask.team_id, ask.expected_version, TeamCause.RESTORE)


def hand_over(tx: Tx, call: Call, ask: HandOverTeam) -> TeamShown | Refusal:
    team = _seen(tx, ask.team_id, ask.expected_version)
    agent = find.agent(tx, ask.to_agent_id)
    if isinstance(team, Refusal):
        return team
    if isinstance(agent, Refusal):
        return agent
    successor = memberships.open_of(tx, team.id, agent.id)
    if refusal := kept(team) or can_host(team, agent, successor):
        return refusal
    assert successor is not None, "can_host refuses a member that does not take part"
    former = memberships.host(tx, team.id)
    if former is not None and former.id != successor.id:
        # First one down, then the other up: the index admits one Host at every statement.
        MEMBERSHIPS.change(tx, former, kind="handed over", actor=call.actor, at=call.now, role=MembershipRole.MEMBER)
    if former is None or former.id != successor.id:
        MEMBERSHIPS.change(tx, successor, kind="became host", actor=call.actor, at=call.now, role=MembershipRole.HOST)
        team = TEAMS.change(tx, team, kind="handed over", actor=call.actor, at=call.now)
    return _shown(tx, team)


def _seen(tx: Tx, ref: TeamRef, expected: int) -> Team | Refusal:
    team = find.team(tx, ref)
    if isinstance(team, Refusal):
        return team
    return moved(f"team/{team.id}", current=team.version, expected=expected) or team


def _move(tx: Tx, call: Call, ref: TeamRef, expected: int, cause: TeamCause) -> Team | Refusal:
    team = _seen(tx, ref, expected)
    if isinstance(team, Refusal):
        return team
    state = TEAM.after(team.state, cause, f"team/{team.id}")
    if isinstance(state, Refusal):
        return state
    if refusal := _with_its_host(tx, team, cause):
        return refusal
    return TEAMS.change(tx, team, kind=cause.value, actor=call.actor, at=call.now, state=state)


def _with_its_host(tx: Tx, team: Team, cause: TeamCause) -> Refusal | None:
    """A team comes back with the Host it has kept, so that one must be able to."""
    if cause not in {TeamCause.ACTIVATE, TeamCause.RESTORE}:
        return None
    host = memberships.host(tx, team.id)
    agent = AGENTS.load(tx, host.agent_member_id) if host else None
    return can_activate(team, agent) if cause is TeamCause.ACTIVATE else can_restore(host, agent)
