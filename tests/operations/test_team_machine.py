"""Agents, teams and memberships, driven at random beside a model in memory; hypothesis shrinks what differs."""

from __future__ import annotations

import collections
import contextlib
import shutil
import tempfile
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from client.protocol.agent import AgentStatus, CreateAgent, PauseAgent, ResumeAgent, RetireAgent, UpdateAgent
from client.protocol.ids import AgentMemberRef, Folder, MembershipId, TeamRef
from client.protocol.membership import (
    GuestRole,
    InviteMember,
    JoinTeam,
    LeaveTeam,
    MembershipRole,
    MembershipState,
    TeamMembership,
)
from client.protocol.operation import Plane, Request
from client.protocol.refusals import Refusal
from client.protocol.team import (
    ActivateTeam,
    CreateTeam,
    DeactivateTeam,
    HandOverTeam,
    RestoreTeam,
    Team,
    TeamState,
    TrashTeam,
    UpdateTeam,
)
from tests.support import fold
from tests.support.node import assembled, rows_of
from tests.support.team_model import Agent, Caller, Expected, Membership, Model
from tests.support.team_model import Team as TeamModel

#: Which of those that are there, counted from the newest.
which = st.integers(0, 7)
names = st.sampled_from(["ann", "bob", "eve"])
#: The version that is there, one that was, one that will be.
near = st.sampled_from([0] * 14 + [-1, 1])
#: The operator most of the time, else one of the agents.
callers = st.one_of(st.none(), st.none(), st.none(), which)

MOVES: dict[type[Any], tuple[TeamState, TeamState]] = {
    ActivateTeam: (TeamState.INACTIVE, TeamState.ACTIVE),
    DeactivateTeam: (TeamState.ACTIVE, TeamState.INACTIVE),
    RestoreTeam: (TeamState.TRASHED, TeamState.INACTIVE),
    TrashTeam: (TeamState.INACTIVE, TeamState.TRASHED),
}


#: Few, so that they meet.
MOST_AGENTS, MOST_TEAMS = 6, 3


def pick(of: dict[str, Any], number: int) -> str:
    there = list(of)
    return there[-1 - number % len(there)]


class Teams(RuleBasedStateMachine):
    """Each rule asks the node and tells the model; the two must agree on the outcome and on everything after it."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="teams-"))
        self.ends = contextlib.ExitStack()
        self.ends.callback(shutil.rmtree, self.folder)
        self.node = self.ends.enter_context(assembled(self.folder / "home"))
        self.path = self.node.store.path
        self.model = Model()

    def teardown(self) -> None:
        try:
            fold.check(self.path)
        finally:
            self.ends.close()

    # --- asking ---

    def asks(self, request: Request[Any], expected: Expected, caller: Caller | None = None) -> Any:  # noqa: ANN401
        """The answer, once it is the one that the model expects."""
        actor = caller.agent if caller else None
        plane = Plane.HOST if actor else Plane.OPERATOR
        outcome: object = self.node.now(request, plane=plane, actor=actor or "")
        assert (outcome.code if isinstance(outcome, Refusal) else None) == expected, (request, outcome)
        return outcome

    def caller(self, number: int | None) -> Caller:
        return Caller(None if number is None else pick(self.model.agents, number))

    def version(self, of: Agent | TeamModel | Membership, off: int) -> int:
        return max(1, of.version + off)

    @initialize()
    def begin(self) -> None:
        """Two teams and enough people: what is interesting begins where they meet."""
        for name in ("ann", "bob", "eve", "ann"):
            self.create_agent(name)
        for host in (0, 1):
            self.create_team(host, "crew")

    # --- agents ---

    @precondition(lambda self: len(self.model.agents) < MOST_AGENTS)
    @rule(name=names)
    def create_agent(self, name: str) -> None:
        made = self.asks(CreateAgent(name=name), None)
        self.model.agents[made.id] = Agent(name)

    @rule(number=which, off=near, pausing=st.booleans())
    def pause_or_resume(self, number: int, off: int, pausing: bool) -> None:  # noqa: FBT001 — drawn by hypothesis
        who = pick(self.model.agents, number)
        version = self.version(self.model.agents[who], off)
        to, source = AgentStatus.PAUSED, AgentStatus.ACTIVE
        if not pausing:
            to, source = source, to
        expected = self.model.set_status(who, version, to, {source})
        verb = PauseAgent if pausing else ResumeAgent
        self.asks(verb(agent_member_id=AgentMemberRef(who), expected_version=version), expected)

    @rule(number=which, off=near)
    def retire(self, number: int, off: int) -> None:
        who = pick(self.model.agents, number)
        version = self.version(self.model.agents[who], off)
        expected = self.model.retire(who, version)
        self.asks(RetireAgent(agent_member_id=AgentMemberRef(who), expected_version=version), expected)

    @rule(number=which, off=near, name=names)
    def rename_agent(self, number: int, off: int, name: str) -> None:
        who = pick(self.model.agents, number)
        version = self.version(self.model.agents[who], off)
        expected = self.model.rename_agent(who, version, name)
        self.asks(UpdateAgent(agent_member_id=AgentMemberRef(who), expected_version=version, name=name), expected)

    # --- teams ---

    @precondition(lambda self: len(self.model.teams) < MOST_TEAMS)
    @rule(number=which, name=names)
    def create_team(self, number: int, name: str) -> None:
        host = pick(self.model.agents, number)
        expected = self.model.unavailable(host)
        project = Folder(str(self.folder))
        made = self.asks(CreateTeam(name=name, host_agent_id=AgentMemberRef(host), project=project), expected)
        if isinstance(made, Team):
            self.model.teams[made.id] = TeamModel(name)
            (part,) = [row["id"] for row in fold.stored(self.path).values() if row.get("team_id") == made.id]
            self.model.parts[part] = Membership(made.id, host, MembershipRole.HOST, MembershipState.ACTIVE, gen=1)

    @rule(number=which, off=near, verb=st.sampled_from(list(MOVES)))
    def move_team(self, number: int, off: int, verb: type[Any]) -> None:
        team = pick(self.model.teams, number)
        version = self.version(self.model.teams[team], off)
        expected = self.model.move_team(team, version, *MOVES[verb])
        self.asks(verb(team_id=TeamRef(team), expected_version=version), expected)

    @rule(number=which)
    def to_the_trash(self, number: int) -> None:
        """Both steps at once, as ``admit``."""
        for verb in (DeactivateTeam, TrashTeam):
            self.move_team(number, 0, verb)

    @rule(number=which, off=near, name=names, by=callers)
    def rename_team(self, number: int, off: int, name: str, by: int | None) -> None:
        team, caller = pick(self.model.teams, number), self.caller(by)
        version = self.version(self.model.teams[team], off)
        expected = self.model.rename_team(caller, team, version, name)
        self.asks(UpdateTeam(team_id=TeamRef(team), expected_version=version, name=name), expected, caller)

    @rule(number=which, off=near, to=which, by=callers)
    def hand_over(self, number: int, off: int, to: int, by: int | None) -> None:
        team, agent, caller = pick(self.model.teams, number), pick(self.model.agents, to), self.caller(by)
        version = self.version(self.model.teams[team], off)
        expected = self.model.hand_over(caller, team, version, agent)
        ask = HandOverTeam(team_id=TeamRef(team), expected_version=version, to_agent_id=AgentMemberRef(agent))
        self.asks(ask, expected, caller)

    # --- memberships ---

    @rule(number=which, whom=which, role=st.sampled_from(GuestRole))
    def admit(self, number: int, whom: int, role: GuestRole) -> None:
        """Both steps at once: else few get far enough in to be in each other's way."""
        before = len(self.model.parts)
        self.invite(number, whom, role, None)
        if len(self.model.parts) > before:
            self.join(0, 0, None)

    @rule(number=which, whom=which, role=st.sampled_from(GuestRole), by=callers)
    def invite(self, number: int, whom: int, role: GuestRole, by: int | None) -> None:
        team, agent, caller = pick(self.model.teams, number), pick(self.model.agents, whom), self.caller(by)
        expected = self.model.may_invite(caller, team, agent)
        gen = self.model.next_gen(team, agent)
        ask = InviteMember(team_id=TeamRef(team), agent_member_id=AgentMemberRef(agent), role=role)
        made = self.asks(ask, expected, caller)
        if isinstance(made, TeamMembership):
            self.model.parts[made.id] = Membership(
                team, agent, MembershipRole(role.value), MembershipState.INVITED, gen
            )

    @rule(number=which, off=near, by=callers)
    def join(self, number: int, off: int, by: int | None) -> None:
        part, caller = pick(self.model.parts, number), self.caller(by)
        version = self.version(self.model.parts[part], off)
        expected = self.model.join(caller, part, version)
        self.asks(JoinTeam(membership_id=MembershipId(part), expected_version=version), expected, caller)

    @rule(number=which, off=near, by=callers)
    def leave(self, number: int, off: int, by: int | None) -> None:
        part, caller = pick(self.model.parts, number), self.caller(by)
        version = self.version(self.model.parts[part], off)
        expected = self.model.leave(caller, part, version)
        self.asks(LeaveTeam(membership_id=MembershipId(part), expected_version=version), expected, caller)

    # --- what holds after every step ---

    @invariant()
    def everything_holds(self) -> None:
        rows = fold.stored(self.path)
        self.rows_are_what_the_model_says(rows)
        self.teams_are_whole(rows)
        self.subscriptions_come_and_go_with_the_membership()

    def rows_are_what_the_model_says(self, rows: fold.Records) -> None:
        agents, teams, parts = {}, {}, {}
        for stream, row in rows.items():
            noun, _, record_id = stream.partition("/")
            if noun == "agent":
                agents[record_id] = Agent(row["name"], AgentStatus(row["status"]), row["version"])
            elif noun == "team":
                teams[record_id] = TeamModel(row["name"], TeamState(row["state"]), row["version"])
            elif noun == "membership":
                role, state = MembershipRole(row["role"]), MembershipState(row["state"])
                pair = row["team_id"], row["agent_member_id"]
                parts[record_id] = Membership(*pair, role, state, row["member_gen"], row["version"])
        assert Model(agents, teams, parts) == self.model

    def teams_are_whole(self, rows: fold.Records) -> None:
        """Said of the rows alone, so that a mistake which the model shares is seen all the same."""
        parts = [row for stream, row in rows.items() if stream.startswith("membership/")]
        for team in (row for stream, row in rows.items() if stream.startswith("team/")):
            active = [row for row in parts if row["team_id"] == team["id"] and row["state"] == "active"]
            hosts = [row for row in active if row["role"] == "host"]
            assert len(hosts) == 1 if team["state"] == "active" else len(hosts) <= 1
            called = [rows[f"agent/{row['agent_member_id']}"]["name"] for row in active]
            assert len(set(called)) == len(called), "two active members of one name"
        pairs = collections.defaultdict[tuple[str, str], list[dict[str, Any]]](list)
        for row in parts:
            pairs[row["team_id"], row["agent_member_id"]].append(row)
        for past in pairs.values():
            assert [row["member_gen"] for row in past] == list(range(1, len(past) + 1))
            assert all(row["state"] == "inactive" for row in past[:-1]), "two that have not ended"

    def subscriptions_come_and_go_with_the_membership(self) -> None:
        rows = rows_of(self.path)
        states = {row[1]: row[6] for row in rows["memberships"]}
        active = collections.Counter(row[2] for row in rows["subscriptions"] if row[5] == "active")
        assert active == {part: 2 for part, state in states.items() if state == "active"}


BOUNDED = settings(max_examples=20, stateful_step_count=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@pytest.mark.timeout(600)  # it takes seconds; but where something differs, time to find the shortest way there
def test_teams_do_what_the_model_says() -> None:
    run_state_machine_as_test(Teams, settings=BOUNDED)


@pytest.mark.soak
def test_teams_do_what_the_model_says_for_thousands_of_steps() -> None:
    run_state_machine_as_test(Teams, settings=settings(BOUNDED, max_examples=200, stateful_step_count=100))
