"""For every operation a request that is answered, and what must be there for it; a test counts them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from client.protocol import codec
from client.protocol.agent import (
    CreateAgent,
    ListAgents,
    PauseAgent,
    ResumeAgent,
    RetireAgent,
    ShowAgent,
    UpdateAgent,
)
from client.protocol.effect import SweepSessions
from client.protocol.event import ListEvents, WaitForEvent, WatchEvents
from client.protocol.ids import AgentMemberRef, FilePath, Folder, TeamRef
from client.protocol.membership import InviteMember, JoinTeam, LeaveTeam, ListMemberships, ShowMembership
from client.protocol.node import BackUpNode, ListQuarantine, ReleaseQuarantine, ShowStatus, StopNode
from client.protocol.operation import Operation, Plane, Request
from client.protocol.project import AddProject, ListProjects, ShowProject
from client.protocol.refusals import Refusal
from client.protocol.shape import Shape, shapes
from client.protocol.team import (
    ActivateTeam,
    CreateTeam,
    DeactivateTeam,
    HandOverTeam,
    ListTeams,
    RestoreTeam,
    ShowTeam,
    TrashTeam,
    UpdateTeam,
)
from tests.support import scene
from tests.support.node import InProcessNode
from tests.support.samples_of_runs import ON_STAGE, Asked, on_stage
from tests.support.scene import Crew
from tests.support.works import Voice

#: Some samples need a step before: those are coroutines.
Sample = Callable[[InProcessNode, Crew], "Request[Any] | Awaitable[Request[Any]]"]


async def _resume(node: InProcessNode, crew: Crew) -> Request[Any]:
    await scene.paused(node, crew.eve)
    return ResumeAgent(agent_member_id=AgentMemberRef(crew.eve.id), expected_version=2)


async def _join(node: InProcessNode, crew: Crew) -> Request[Any]:
    invitation = await scene.invited(node, crew.team, crew.eve)
    return JoinTeam(membership_id=invitation.id, expected_version=1)


async def _activate(node: InProcessNode, crew: Crew) -> Request[Any]:
    await scene.inactive(node, crew.team)
    return ActivateTeam(team_id=TeamRef(crew.team.id), expected_version=2)


async def _trash(node: InProcessNode, crew: Crew) -> Request[Any]:
    await scene.inactive(node, crew.team)
    return TrashTeam(team_id=TeamRef(crew.team.id), expected_version=2)


async def _restore(node: InProcessNode, crew: Crew) -> Request[Any]:
    await scene.trashed(node, crew.team)
    return RestoreTeam(team_id=TeamRef(crew.team.id), expected_version=3)


def _release(node: InProcessNode, crew: Crew) -> Request[Any]:
    record = f"agents/{crew.eve.id}"
    node.execute("INSERT INTO quarantine (record, why, since) VALUES (?, 'was damaged', 1)", record)
    return ReleaseQuarantine(record=record)


def _eve(crew: Crew) -> AgentMemberRef:
    return AgentMemberRef(crew.eve.id)


def _team(crew: Crew) -> TeamRef:
    return TeamRef(crew.team.id)


SAMPLES: Mapping[str, Sample] = {
    "agent.create": lambda _, __: CreateAgent(name="zoe"),
    "agent.list": lambda _, __: ListAgents(),
    "agent.pause": lambda _, crew: PauseAgent(agent_member_id=_eve(crew), expected_version=1),
    "agent.resume": _resume,
    "agent.retire": lambda _, crew: RetireAgent(agent_member_id=_eve(crew), expected_version=1),
    "agent.show": lambda _, crew: ShowAgent(agent_member_id=_eve(crew)),
    "agent.update": lambda _, crew: UpdateAgent(agent_member_id=_eve(crew), expected_version=1, role="r"),
    "event.list": lambda _, __: ListEvents(),
    "event.wait": lambda _, __: WaitForEvent(predicate="seq>0"),
    "event.watch": lambda _, __: WatchEvents(),
    "membership.invite": lambda _, crew: InviteMember(team_id=_team(crew), agent_member_id=_eve(crew)),
    "membership.join": _join,
    "membership.leave": lambda _, crew: LeaveTeam(membership_id=crew.member.id, expected_version=2),
    "membership.list": lambda _, __: ListMemberships(),
    "membership.show": lambda _, crew: ShowMembership(membership_id=crew.member.id),
    "node.backup": lambda node, _: BackUpNode(file=FilePath(str(node.home / "copy.db"))),
    "node.quarantine": lambda _, __: ListQuarantine(),
    "node.release": _release,
    "node.status": lambda _, __: ShowStatus(),
    "session.sweep": lambda _, __: SweepSessions(),
    "node.stop": lambda _, __: StopNode(),
    "project.add": lambda node, _: AddProject(root=Folder(str(node.home.parent))),
    "project.list": lambda _, __: ListProjects(),
    "project.show": lambda _, crew: ShowProject(project_id=crew.team.project_id),
    "team.activate": _activate,
    "team.create": lambda node, crew: CreateTeam(
        name="other", host_agent_id=_eve(crew), project=Folder(str(node.home))
    ),
    "team.deactivate": lambda _, crew: DeactivateTeam(team_id=_team(crew), expected_version=1),
    "team.hand-over": lambda _, crew: HandOverTeam(
        team_id=_team(crew), expected_version=1, to_agent_id=AgentMemberRef(crew.bob.id)
    ),
    "team.list": lambda _, __: ListTeams(),
    "team.restore": _restore,
    "team.show": lambda _, crew: ShowTeam(team_id=_team(crew)),
    "team.trash": _trash,
    "team.update": lambda _, crew: UpdateTeam(team_id=_team(crew), expected_version=1, name="new"),
}


async def sample(node: InProcessNode, operation: str) -> Asked:  # noqa: ASYNC124 — like those that prepare something
    """A request of that operation that ``node`` answers now, and who asks it."""
    if operation in ON_STAGE:
        return await on_stage(node, operation)
    made = SAMPLES[operation](node, await scene.crew(node))
    request = made if isinstance(made, Request) else await made
    return Voice(node, Plane.OPERATOR, ""), request


def well_formed(op: Operation) -> dict[str, Any]:
    """A body of that operation that only its form can be told of: nothing of what it names exists."""
    least = {shape.name: _of_its_shape(shape) for shape in shapes(op.request) if shape.required}
    record = codec.from_plain(least, op.request)
    assert not isinstance(record, Refusal), record
    body: dict[str, Any] = codec.to_plain(record)
    return body


def _of_its_shape(shape: Shape) -> object:
    if shape.choices is not None:
        return shape.choices[0]
    if shape.kind is str:
        return [] if shape.many else "x"
    return True if shape.kind is bool else shape.bounds.least or 1
