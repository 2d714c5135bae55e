"""A row equals the fold of its events, whatever was done and whatever was refused in between."""

from __future__ import annotations

import collections
import random
from pathlib import Path
from typing import Any

import attrs
import pytest

from client.protocol.agent import (
    CreateAgent,
    PauseAgent,
    ResumeAgent,
    RetireAgent,
    UpdateAgent,
    WorkspacePolicy,
)
from client.protocol.ceiling import Ceiling
from client.protocol.ids import AgentMemberRef, Folder, MembershipId, TeamRef
from client.protocol.membership import GuestRole, InviteMember, JoinTeam, LeaveTeam
from client.protocol.operation import Effect, Request
from client.protocol.project import AddProject
from client.protocol.refusals import Refusal
from client.protocol.table import BY_REQUEST, OPERATIONS
from client.protocol.team import (
    ActivateTeam,
    CreateTeam,
    DeactivateTeam,
    HandOverTeam,
    RestoreTeam,
    TrashTeam,
    UpdateTeam,
)
from tests.support import fold
from tests.support.crash import dice
from tests.support.node import InProcessNode

_AGENT = (PauseAgent, ResumeAgent, RetireAgent)
_TEAM = (ActivateTeam, DeactivateTeam, TrashTeam, RestoreTeam)
_PART = (JoinTeam, LeaveTeam)
NAMES = ["ann", "bob", "eve", "größer 字 🙂"]


@attrs.frozen
class Chance:
    """Requests at random about what is in a store; most of them possible, many not."""

    home: Path
    records: fold.Records
    moments: random.Random

    def request(self) -> Request[Any]:
        twice = [self._create, self._team, self._invite, self._part, self._part]
        once = [self._agent, self._update, self._rename, self._hand_over, self._project]
        return self.moments.choice([*twice, *twice, *once])()

    def _one(self, noun: str) -> tuple[str, int]:
        """Something that is there, with its version or a version near it."""
        there = [record for stream, record in self.records.items() if stream.startswith(noun)]
        if not there:
            return "nothing", 1
        record = self.moments.choice(there)
        near = self.moments.choice([0, 0, 0, 0, 0, 0, 0, 1, -1])
        return record["id"], max(1, record["version"] + near)

    def _agent_ref(self) -> AgentMemberRef:
        return AgentMemberRef(self._one("agent")[0])

    def _create(self) -> Request[Any]:
        if self.moments.random() < 0.6:
            words = self.moments.sample(NAMES, self.moments.randrange(3))
            return CreateAgent(name=self.moments.choice(NAMES), capabilities=words, skills=words)
        project = Folder(str(self.home))
        return CreateTeam(name=self.moments.choice(NAMES), host_agent_id=self._agent_ref(), project=project)

    def _agent(self) -> Request[Any]:
        who, version = self._one("agent")
        return self.moments.choice(_AGENT)(agent_member_id=AgentMemberRef(who), expected_version=version)

    def _update(self) -> Request[Any]:
        who, version = self._one("agent")
        changes: dict[str, Any] = {
            "name": self.moments.choice(NAMES),
            "role": self.moments.choice(NAMES),
            "workspace": self.moments.choice(list(WorkspacePolicy)),
            "ceiling": self.moments.choice(list(Ceiling)),
        }
        some = self.moments.sample(sorted(changes), self.moments.randrange(4))
        given = {name: changes[name] for name in some}
        return UpdateAgent(agent_member_id=AgentMemberRef(who), expected_version=version, **given)

    def _team(self) -> Request[Any]:
        which, version = self._one("team")
        return self.moments.choice(_TEAM)(team_id=TeamRef(which), expected_version=version)

    def _rename(self) -> Request[Any]:
        which, version = self._one("team")
        return UpdateTeam(team_id=TeamRef(which), expected_version=version, name=self.moments.choice(NAMES))

    def _invite(self) -> Request[Any]:
        role = self.moments.choice(list(GuestRole))
        return InviteMember(team_id=TeamRef(self._one("team")[0]), agent_member_id=self._agent_ref(), role=role)

    def _part(self) -> Request[Any]:
        which, version = self._one("membership")
        return self.moments.choice(_PART)(membership_id=MembershipId(which), expected_version=version)

    def _hand_over(self) -> Request[Any]:
        which, version = self._one("team")
        return HandOverTeam(team_id=TeamRef(which), expected_version=version, to_agent_id=self._agent_ref())

    def _project(self) -> Request[Any]:
        return AddProject(root=Folder(str(self.moments.choice([self.home, self.home.parent]))))


async def happen(node: InProcessNode, moments: random.Random, times: int) -> collections.Counter[str]:
    """Let ``times`` requests happen; how often each operation was done."""
    done = collections.Counter[str]()
    before = fold.stored(node.store.path)
    for _ in range(times):
        request = Chance(node.home, before, moments).request()
        outcome = await node.ask(request)
        after = fold.stored(node.store.path)
        if isinstance(outcome, Refusal):
            assert after == before, (request, outcome)
        else:
            before = after
            done[BY_REQUEST[type(request)].name] += 1
    return done


async def test_every_row_is_the_fold_of_its_events(node: InProcessNode) -> None:
    done = await happen(node, dice(), 400)
    assert fold.check(node.store.path) > 20
    assert sum(done.values()) > 100


@pytest.mark.soak
async def test_every_row_is_the_fold_of_its_events_after_thousands(node: InProcessNode) -> None:
    """Long enough that every operation on those nouns was done more than once; ``test_run_machine`` has the others."""
    done = await happen(node, dice(), 3000)
    writes = {op.name for op in OPERATIONS if op.effect is Effect.WRITE and op.noun in fold.TABLES}
    assert {name for name in writes if done[name] < 2} == set()
    assert fold.check(node.store.path) > 100


async def test_a_row_changed_behind_its_events_is_seen(node: InProcessNode) -> None:
    await happen(node, dice(), 40)
    node.execute("UPDATE agents SET model = 'other' WHERE n = 1")
    with pytest.raises(AssertionError):
        fold.check(node.store.path)


async def test_an_event_that_is_missing_is_seen(node: InProcessNode) -> None:
    made = await node.ok(CreateAgent(name="ann"))
    for version in (1, 2):
        ask = UpdateAgent(agent_member_id=AgentMemberRef(made.id), expected_version=version, role=str(version))
        await node.ok(ask)
    fold.check(node.store.path)
    node.execute("DELETE FROM events WHERE version = 2")
    with pytest.raises(AssertionError, match="goes from 1 to 3"):
        fold.check(node.store.path)
