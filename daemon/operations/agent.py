"""Handlers for ``agent.*``."""

from __future__ import annotations

from typing import Any

from client.protocol.agent import (
    AgentMember,
    AgentMemberPage,
    AgentStatus,
    CreateAgent,
    ListAgents,
    PauseAgent,
    ResumeAgent,
    RetireAgent,
    ShowAgent,
    UpdateAgent,
)
from client.protocol.ids import AgentMemberId, new_id
from client.protocol.membership import MembershipRole, MembershipState
from client.protocol.refusals import Refusal
from daemon.call import Call
from daemon.kernel import cursor
from daemon.kernel.agent import AGENT, AgentCause, name_taken, retired, sole_host
from daemon.kernel.membership import MembershipCause
from daemon.kernel.version import moved
from daemon.operations import find, membership
from store import agent as agents
from store import attempt as attempts
from store import membership as memberships
from store import team as teams
from store import team_run as runs
from store.agent import AGENTS
from store.team_run import MEMBER_RUNS
from store.tx import Tx


def create(tx: Tx, call: Call, ask: CreateAgent) -> AgentMember:
    made = AgentMember(
        id=AgentMemberId(new_id()),
        version=1,
        name=ask.name,
        description=ask.description,
        role=ask.role,
        capabilities=ask.capabilities,
        skills=ask.skills,
        profile=ask.profile,
        model=ask.model,
        workspace=ask.workspace,
        ceiling=ask.ceiling,
        status=AgentStatus.ACTIVE,
        created_by=call.actor,
        created_at=call.now,
        updated_at=call.now,
    )
    return AGENTS.insert(tx, made, kind="created", actor=call.actor, at=call.now)


def list_(tx: Tx, call: Call, ask: ListAgents) -> AgentMemberPage | Refusal:
    query = ("agent.list", ask.status)
    after = cursor.read(ask.cursor, call.store_id, *query)
    if isinstance(after, Refusal):
        return after
    items, last = agents.list_page(tx, status=ask.status, after=after, limit=ask.limit)
    return AgentMemberPage(items=items, next=cursor.write(last, call.store_id, *query) if last else None)


def show(tx: Tx, call: Call, ask: ShowAgent) -> AgentMember | Refusal:
    return find.agent(tx, ask.agent_member_id)


_UPDATABLE = ("name", "description", "role", "profile", "model", "workspace", "ceiling")


def update(tx: Tx, call: Call, ask: UpdateAgent) -> AgentMember | Refusal:
    agent = _seen(tx, ask)
    if isinstance(agent, Refusal):
        return agent
    if refusal := retired(agent):
        return refusal
    changes: dict[str, Any] = {name: value for name in _UPDATABLE if (value := getattr(ask, name)) is not None}
    if ask.name is not None:
        for part in memberships.open_of_agent(tx, agent.id):
            if part.state is MembershipState.INVITED:
                continue  # joining looks at the name again
            other = memberships.namesake(tx, part.team_id, agent.id, ask.name)
            if other is not None:
                return name_taken(ask.name, other, part.team_id)
    return AGENTS.change(tx, agent, kind="updated", actor=call.actor, at=call.now, **changes)


def pause(tx: Tx, call: Call, ask: PauseAgent) -> AgentMember | Refusal:
    return _move(tx, call, ask, AgentCause.PAUSE)


def resume(tx: Tx, call: Call, ask: ResumeAgent) -> AgentMember | Refusal:
    return _move(tx, call, ask, AgentCause.RESUME)


def retire(tx: Tx, call: Call, ask: RetireAgent) -> AgentMember | Refusal:
    after = _move(tx, call, ask, AgentCause.RETIRE)
    if isinstance(after, Refusal):
        return after
    if refusal := sole_host(teams.active_hosted_by(tx, after.id)):
        return refusal
    for part in memberships.open_of_agent(tx, after.id):
        if part.role is MembershipRole.HOST:
            continue  # the Host of a team that is set aside stays its Host, until somebody takes over
        bound = attempts.live_of_membership(tx, part.id)
        cause = MembershipCause.LEAVE_BOUND if bound else MembershipCause.LEAVE
        ended = membership.end(tx, call, part, cause, "retired")
        if isinstance(ended, Refusal):
            return ended
    return after


def _seen(tx: Tx, ask: UpdateAgent | PauseAgent | ResumeAgent | RetireAgent) -> AgentMember | Refusal:
    """The member that is meant, at the version that the caller saw."""
    agent = find.agent(tx, ask.agent_member_id)
    if isinstance(agent, Refusal):
        return agent
    return moved(f"agent/{agent.id}", current=agent.version, expected=ask.expected_version) or agent


def _move(tx: Tx, call: Call, ask: PauseAgent | ResumeAgent | RetireAgent, cause: AgentCause) -> AgentMember | Refusal:
    agent = _seen(tx, ask)
    if isinstance(agent, Refusal):
        return agent
    status = AGENT.after(agent.status, cause, f"agent/{agent.id}")
    if isinstance(status, Refusal):
        return status
    for place in runs.open_places(tx, agent.id):
        # What its runs can give it changes with it: their supervisors and boards hear of that in the run.
        MEMBER_RUNS.change(tx, place, kind=f"its member: {cause.value}", actor=call.actor, at=call.now)
    return AGENTS.change(tx, agent, kind=cause.value, actor=call.actor, at=call.now, status=status)
