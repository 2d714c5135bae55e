"""Team: a durable, flat group on one node. Records, requests and rows."""

from __future__ import annotations

import enum
from typing import Annotated

import attrs

from client.protocol.agent import WorkspacePolicy
from client.protocol.ceiling import Ceiling
from client.protocol.ids import AgentMemberRef, Folder, NodeId, ProjectId, TeamId, TeamRef, UnixMs
from client.protocol.membership import TeamMembership
from client.protocol.operation import HOST_OR_OPERATOR, OPERATOR, READERS, Effect, Operation, Request
from client.protocol.refusals import Code
from client.protocol.shape import ID, LINE, PAGE, PATH, TEXT, VERSION, Bounds


class TeamState(enum.StrEnum):
    """Trashing and restoring keep everything the team has."""

    ACTIVE = "active"
    INACTIVE = "inactive"
    TRASHED = "trashed"


@attrs.frozen(kw_only=True)
class Team:
    """Lives on one node for good and belongs to one project. Its Host is a membership, not a field."""

    id: TeamId
    version: int
    name: str
    description: str
    project_id: ProjectId
    node_id: NodeId
    state: TeamState
    created_by: str
    created_at: UnixMs
    updated_at: UnixMs


@attrs.frozen(kw_only=True)
class TeamPage:
    items: list[Team]
    next: str | None


@attrs.frozen(kw_only=True)
class Participant:
    """One membership that has not ended, with what its agent member is: the name people know it by, the program that
    runs it, the most it may be allowed, and where it works.
    """

    name: str
    membership: TeamMembership
    profile: str
    ceiling: Ceiling | None
    workspace: WorkspacePolicy | None


@attrs.frozen(kw_only=True)
class TeamShown:
    """One team with everybody who takes part, the Host first."""

    team: Team
    members: list[Participant]


@attrs.frozen(kw_only=True)
class CreateTeam(Request[Team]):
    """Create an active team with its Host."""

    name: Annotated[str, "what people call it", LINE]
    host_agent_id: Annotated[AgentMemberRef, "its Host, by id or unique name", ID]
    project: Annotated[Folder, "the folder it works in", PATH]
    description: Annotated[str, "what it is for", TEXT] = ""


@attrs.frozen(kw_only=True)
class ListTeams(Request[TeamPage]):
    """List teams, oldest first."""

    state: Annotated[TeamState | None, "only in this state"] = None
    limit: Annotated[int, "most rows", PAGE] = 100
    cursor: Annotated[str, "continue after an earlier page", Bounds(most=500)] = ""


@attrs.frozen(kw_only=True)
class ShowTeam(Request[TeamShown]):
    """Show one team and its members."""

    team_id: Annotated[TeamRef, "the team, by id or unique name", ID]


@attrs.frozen(kw_only=True)
class UpdateTeam(Request[Team]):
    """Change a team's name or description; what is not given stays."""

    team_id: Annotated[TeamRef, "the team, by id or unique name", ID]
    expected_version: Annotated[int, "version last read", VERSION]
    name: Annotated[str | None, "new name", LINE] = None
    description: Annotated[str | None, "new description", TEXT] = None


@attrs.frozen(kw_only=True)
class ActivateTeam(Request[Team]):
    """Make an inactive team active again; it needs its Host."""

    team_id: Annotated[TeamRef, "the team, by id or unique name", ID]
    expected_version: Annotated[int, "version last read", VERSION]


@attrs.frozen(kw_only=True)
class DeactivateTeam(Request[Team]):
    """Set an active team aside; members and Host stay."""

    team_id: Annotated[TeamRef, "the team, by id or unique name", ID]
    expected_version: Annotated[int, "version last read", VERSION]


@attrs.frozen(kw_only=True)
class TrashTeam(Request[Team]):
    """Put an inactive team in the trash; nothing is deleted."""

    team_id: Annotated[TeamRef, "the team, by id or unique name", ID]
    expected_version: Annotated[int, "version last read", VERSION]


@attrs.frozen(kw_only=True)
class RestoreTeam(Request[Team]):
    """Take a team out of the trash; it comes back inactive."""

    team_id: Annotated[TeamRef, "the team, by id or unique name", ID]
    expected_version: Annotated[int, "version last read", VERSION]


@attrs.frozen(kw_only=True)
class HandOverTeam(Request[TeamShown]):
    """Make another active member the Host; the former Host becomes a member."""

    team_id: Annotated[TeamRef, "the team, by id or unique name", ID]
    expected_version: Annotated[int, "version last read", VERSION]
    to_agent_id: Annotated[AgentMemberRef, "the new Host, by id or unique name", ID]


_FIND = (Code.NAME_AMBIGUOUS, Code.NOT_FOUND, Code.ROW_QUARANTINED)
_MOVE = (*_FIND, Code.INVALID_STATE_TRANSITION, Code.VERSION_CONFLICT)
_HOST = (Code.AGENT_MEMBER_PAUSED, Code.AGENT_MEMBER_RETIRED)

OPERATIONS = (
    Operation(
        "team.activate",
        ActivateTeam,
        planes=OPERATOR,
        effect=Effect.WRITE,
        refuses=(*_MOVE, Code.AGENT_MEMBER_RETIRED, Code.HOST_REQUIRED),
    ),
    Operation(
        "team.create",
        CreateTeam,
        planes=OPERATOR,
        effect=Effect.WRITE,
        refuses=(*_FIND, *_HOST, Code.FILE_UNUSABLE),
    ),
    Operation("team.deactivate", DeactivateTeam, planes=HOST_OR_OPERATOR, effect=Effect.WRITE, refuses=_MOVE),
    Operation(
        "team.hand-over",
        HandOverTeam,
        planes=HOST_OR_OPERATOR,
        effect=Effect.WRITE,
        refuses=(*_MOVE, *_HOST),
    ),
    Operation("team.list", ListTeams, planes=READERS, effect=Effect.READ, refuses=(Code.CURSOR_INVALID,)),
    Operation(
        "team.restore",
        RestoreTeam,
        planes=OPERATOR,
        effect=Effect.WRITE,
        refuses=(*_MOVE, Code.AGENT_MEMBER_RETIRED),
    ),
    Operation("team.show", ShowTeam, planes=READERS, effect=Effect.READ, refuses=_FIND),
    Operation("team.trash", TrashTeam, planes=OPERATOR, effect=Effect.WRITE, refuses=_MOVE),
    Operation(
        "team.update",
        UpdateTeam,
        planes=HOST_OR_OPERATOR,
        effect=Effect.WRITE,
        refuses=(*_FIND, Code.INVALID_STATE_TRANSITION, Code.VERSION_CONFLICT),
    ),
)
