"""Agents, teams and memberships as plain values, with what should become of every request. Knows no database.

Written from the design, not from the product: a test drives both and compares.
"""

from __future__ import annotations

import attrs

from client.protocol.agent import AgentStatus
from client.protocol.membership import MembershipRole, MembershipState
from client.protocol.refusals import Code
from client.protocol.team import TeamState

#: What should come back: None when it is done.
Expected = Code | None


@attrs.define
class Agent:
    name: str
    status: AgentStatus = AgentStatus.ACTIVE
    version: int = 1


@attrs.define
class Team:
    name: str
    state: TeamState = TeamState.ACTIVE
    version: int = 1


@attrs.define
class Membership:
    team: str
    agent: str
    role: MembershipRole
    state: MembershipState
    gen: int
    version: int = 1

    @property
    def open(self) -> bool:
        return self.state is not MembershipState.INACTIVE


@attrs.define
class Caller:
    """Who asks: the operator, or an agent."""

    agent: str | None


@attrs.define
class Model:
    agents: dict[str, Agent] = attrs.Factory(dict)
    teams: dict[str, Team] = attrs.Factory(dict)
    parts: dict[str, Membership] = attrs.Factory(dict)

    # --- what is asked of the state ---

    def host(self, team: str) -> Membership | None:
        hosts = [p for p in self.parts.values() if p.team == team and p.role is MembershipRole.HOST and p.open]
        return hosts[0] if hosts else None

    def open_part(self, team: str, agent: str) -> Membership | None:
        found = [part for part in self.parts.values() if (part.team, part.agent) == (team, agent) and part.open]
        return found[0] if found else None

    def next_gen(self, team: str, agent: str) -> int:
        return 1 + sum((part.team, part.agent) == (team, agent) for part in self.parts.values())

    def name_taken(self, team: str, agent: str, name: str) -> bool:
        active = [p for p in self.parts.values() if p.team == team and p.state is MembershipState.ACTIVE]
        return any(part.agent != agent and self.agents[part.agent].name == name for part in active)

    def hosts(self, caller: Caller, team: str) -> bool:
        host = self.host(team)
        return caller.agent is None or (host is not None and host.agent == caller.agent)

    def unavailable(self, agent: str) -> Expected:
        status = self.agents[agent].status
        codes = {AgentStatus.PAUSED: Code.AGENT_MEMBER_PAUSED, AgentStatus.RETIRED: Code.AGENT_MEMBER_RETIRED}
        return codes.get(status)

    # --- agents ---

    def set_status(self, agent: str, version: int, wanted: AgentStatus, good: set[AgentStatus]) -> Expected:
        """Pause and resume."""
        found = self.agents[agent]
        if found.version != version:
            return Code.VERSION_CONFLICT
        if found.status not in good:
            return Code.INVALID_STATE_TRANSITION
        found.status, found.version = wanted, version + 1
        return None

    def retire(self, agent: str, version: int) -> Expected:
        found = self.agents[agent]
        if found.version != version:
            return Code.VERSION_CONFLICT
        if found.status is AgentStatus.RETIRED:
            return Code.INVALID_STATE_TRANSITION
        mine = [part for part in self.parts.values() if part.agent == agent and part.open]
        hosting = [part for part in mine if part.role is MembershipRole.HOST]
        if any(self.teams[part.team].state is TeamState.ACTIVE for part in hosting):
            return Code.SOLE_HOST
        found.status, found.version = AgentStatus.RETIRED, version + 1
        for part in mine:
            if part not in hosting:
                part.state, part.version = MembershipState.INACTIVE, part.version + 1
        return None

    def rename_agent(self, agent: str, version: int, name: str) -> Expected:
        found = self.agents[agent]
        if found.version != version:
            return Code.VERSION_CONFLICT
        if found.status is AgentStatus.RETIRED:
            return Code.AGENT_MEMBER_RETIRED
        mine = [p for p in self.parts.values() if p.agent == agent and p.state is MembershipState.ACTIVE]
        if any(self.name_taken(part.team, agent, name) for part in mine):
            return Code.NAME_TAKEN
        found.name, found.version = name, version + 1
        return None

    # --- teams ---

    def rename_team(self, caller: Caller, team: str, version: int, name: str) -> Expected:
        found = self.teams[team]
        if not self.hosts(caller, team):
            return Code.NOT_AUTHORIZED
        if found.version != version:
            return Code.VERSION_CONFLICT
        if found.state is TeamState.TRASHED:
            return Code.INVALID_STATE_TRANSITION
        found.name, found.version = name, version + 1
        return None

    def move_team(self, team: str, version: int, source: TeamState, to: TeamState) -> Expected:
        """Activate, deactivate, trash and restore, for the operator."""
        found = self.teams[team]
        if found.version != version:
            return Code.VERSION_CONFLICT
        if found.state is not source:
            return Code.INVALID_STATE_TRANSITION
        comes_back = to is TeamState.ACTIVE or source is TeamState.TRASHED
        host = self.host(team)
        if to is TeamState.ACTIVE and host is None:
            return Code.HOST_REQUIRED
        if comes_back and host is not None and self.agents[host.agent].status is AgentStatus.RETIRED:
            return Code.AGENT_MEMBER_RETIRED
        found.state, found.version = to, version + 1
        return None

    def hand_over(self, caller: Caller, team: str, version: int, agent: str) -> Expected:
        found, successor, former = self.teams[team], self.open_part(team, agent), self.host(team)
        if not self.hosts(caller, team):
            return Code.NOT_AUTHORIZED
        if found.version != version:
            return Code.VERSION_CONFLICT
        if found.state is TeamState.TRASHED:
            return Code.INVALID_STATE_TRANSITION
        if refused := self.unavailable(agent):
            return refused
        if successor is None or successor.state is not MembershipState.ACTIVE:
            return Code.INVALID_STATE_TRANSITION
        if successor is not former:
            for part, role in ((former, MembershipRole.MEMBER), (successor, MembershipRole.HOST)):
                if part is not None:
                    part.role, part.version = role, part.version + 1
            found.version += 1
        return None

    # --- memberships ---

    def may_invite(self, caller: Caller, team: str, agent: str) -> Expected:
        if not self.hosts(caller, team):
            return Code.NOT_AUTHORIZED
        if self.teams[team].state is TeamState.TRASHED:
            return Code.INVALID_STATE_TRANSITION
        if self.agents[agent].status is AgentStatus.RETIRED:
            return Code.AGENT_MEMBER_RETIRED
        return Code.MEMBERSHIP_EXISTS if self.open_part(team, agent) else None

    def join(self, caller: Caller, membership: str, version: int) -> Expected:
        part = self.parts[membership]
        if caller.agent not in {None, part.agent}:
            return Code.NOT_AUTHORIZED
        if part.version != version:
            return Code.VERSION_CONFLICT
        if part.state is not MembershipState.INVITED or self.teams[part.team].state is TeamState.TRASHED:
            return Code.INVALID_STATE_TRANSITION
        if refused := self.unavailable(part.agent):
            return refused
        if self.name_taken(part.team, part.agent, self.agents[part.agent].name):
            return Code.NAME_TAKEN
        part.state, part.version = MembershipState.ACTIVE, version + 1
        return None

    def leave(self, caller: Caller, membership: str, version: int) -> Expected:
        part = self.parts[membership]
        if caller.agent != part.agent and not self.hosts(caller, part.team):
            return Code.NOT_AUTHORIZED
        if part.version != version:
            return Code.VERSION_CONFLICT
        if not part.open:
            return Code.INVALID_STATE_TRANSITION
        if part.role is MembershipRole.HOST and self.teams[part.team].state is TeamState.ACTIVE:
            return Code.SOLE_HOST
        part.state, part.version = MembershipState.INACTIVE, version + 1
        return None
