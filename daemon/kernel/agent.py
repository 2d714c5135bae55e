"""What may happen to an agent member."""

from __future__ import annotations

import enum
from collections.abc import Sequence

from client.protocol.agent import AgentMember, AgentStatus
from client.protocol.refusals import Code, Refusal
from client.protocol.team import Team
from daemon.kernel.machine import Lifecycle


class AgentCause(enum.StrEnum):
    PAUSE = "pause"
    RESUME = "resume"
    RETIRE = "retire"


AGENT = Lifecycle(
    "agent member",
    start=AgentStatus.ACTIVE,
    moves={
        AgentStatus.ACTIVE: {AgentCause.PAUSE: AgentStatus.PAUSED, AgentCause.RETIRE: AgentStatus.RETIRED},
        AgentStatus.PAUSED: {AgentCause.RESUME: AgentStatus.ACTIVE, AgentCause.RETIRE: AgentStatus.RETIRED},
        AgentStatus.RETIRED: {},
    },
)


def available(agent: AgentMember) -> Refusal | None:
    """Why this member cannot take something up now, or None."""
    return retired(agent) or (
        Refusal(
            code=Code.AGENT_MEMBER_PAUSED,
            about=f"agent/{agent.id}",
            lifted_by=f"the operator resumes it: firm agent resume {agent.id} --expected-version {agent.version}",
        )
        if agent.status is AgentStatus.PAUSED
        else None
    )


def retired(agent: AgentMember) -> Refusal | None:
    """Why nothing new may be given to this member, or None."""
    if agent.status is not AgentStatus.RETIRED:
        return None
    return Refusal(
        code=Code.AGENT_MEMBER_RETIRED,
        about=f"agent/{agent.id}",
        lifted_by="choose another member, or create one",
    )


def sole_host(hosted: Sequence[Team]) -> Refusal | None:
    """Why a member that is Host of active teams cannot go, or None."""
    if not hosted:
        return None
    team = hosted[0]
    return Refusal(
        code=Code.SOLE_HOST,
        about=f"team/{team.id}",
        lifted_by="hand the team over or deactivate it first: "
        f"firm team hand-over {team.id} --expected-version {team.version} --to-agent-id MEMBER",
    )


def name_taken(name: str, other: str, team: str) -> Refusal:
    return Refusal(
        code=Code.NAME_TAKEN,
        about=f"agent/{other}",
        lifted_by=f"team {team} has an active member called {name!r}; give one of the two another name",
    )
