"""AgentMember: a durable identity. Records, requests and rows."""

from __future__ import annotations

import enum
from typing import Annotated

import attrs

from client.protocol.ceiling import Ceiling
from client.protocol.ids import AgentMemberId, AgentMemberRef, UnixMs
from client.protocol.operation import OPERATOR, READERS, Effect, Operation, Request
from client.protocol.refusals import Code
from client.protocol.shape import ID, LABEL, LINE, PAGE, TEXT, VERSION, WORDS, Bounds


class AgentStatus(enum.StrEnum):
    """Paused and retired members start no session and claim nothing; responsibility given to them stays."""

    ACTIVE = "active"
    PAUSED = "paused"
    RETIRED = "retired"


class WorkspacePolicy(enum.StrEnum):
    """Where a session of this member works."""

    SHARED = "shared"
    STAGED = "staged"
    WORKTREE = "worktree"


@attrs.frozen(kw_only=True)
class AgentMember:
    """A durable identity: it outlives every run, every session and every cycle."""

    id: AgentMemberId
    version: int
    name: str
    description: str
    role: str
    capabilities: list[str]
    skills: list[str]
    profile: str
    model: str
    workspace: WorkspacePolicy
    ceiling: Ceiling
    status: AgentStatus
    created_by: str
    created_at: UnixMs
    updated_at: UnixMs


@attrs.frozen(kw_only=True)
class AgentMemberPage:
    items: list[AgentMember]
    next: str | None


@attrs.frozen(kw_only=True)
class CreateAgent(Request[AgentMember]):
    """Create an agent member, a durable identity that may join teams."""

    name: Annotated[str, "what people call it", LINE]
    description: Annotated[str, "what it is for", TEXT] = ""
    role: Annotated[str, "what it usually does, such as builder", LABEL] = ""
    capabilities: Annotated[list[str], "what it can do", WORDS] = attrs.Factory(list)
    skills: Annotated[list[str], "skills it carries", WORDS] = attrs.Factory(list)
    profile: Annotated[str, "which program runs it", LINE] = "external"
    model: Annotated[str, "which model it prefers", LABEL] = ""
    workspace: Annotated[WorkspacePolicy, "where it works"] = WorkspacePolicy.WORKTREE
    ceiling: Annotated[Ceiling, "the most it may be allowed; recorded, not enforced yet"] = Ceiling.WORKSPACE_WRITE


@attrs.frozen(kw_only=True)
class ListAgents(Request[AgentMemberPage]):
    """List agent members, oldest first."""

    status: Annotated[AgentStatus | None, "only this status"] = None
    limit: Annotated[int, "most rows", PAGE] = 100
    cursor: Annotated[str, "continue after an earlier page", Bounds(most=500)] = ""


@attrs.frozen(kw_only=True)
class ShowAgent(Request[AgentMember]):
    """Show one agent member."""

    agent_member_id: Annotated[AgentMemberRef, "the member, by id or unique name", ID]


@attrs.frozen(kw_only=True)
class UpdateAgent(Request[AgentMember]):
    """Change what is written about an agent member; what is not given stays."""

    agent_member_id: Annotated[AgentMemberRef, "the member, by id or unique name", ID]
    expected_version: Annotated[int, "version last read", VERSION]
    name: Annotated[str | None, "new name", LINE] = None
    description: Annotated[str | None, "new description", TEXT] = None
    role: Annotated[str | None, "new usual role", LABEL] = None
    profile: Annotated[str | None, "new program", LINE] = None
    model: Annotated[str | None, "new preferred model", LABEL] = None
    workspace: Annotated[WorkspacePolicy | None, "new workspace policy"] = None
    ceiling: Annotated[Ceiling | None, "new ceiling, for sessions opened from now on"] = None


@attrs.frozen(kw_only=True)
class PauseAgent(Request[AgentMember]):
    """Pause an agent member: no new session and no claim until it is resumed."""

    agent_member_id: Annotated[AgentMemberRef, "the member, by id or unique name", ID]
    expected_version: Annotated[int, "version last read", VERSION]


@attrs.frozen(kw_only=True)
class ResumeAgent(Request[AgentMember]):
    """Resume a paused agent member."""

    agent_member_id: Annotated[AgentMemberRef, "the member, by id or unique name", ID]
    expected_version: Annotated[int, "version last read", VERSION]


@attrs.frozen(kw_only=True)
class RetireAgent(Request[AgentMember]):
    """Retire an agent member for good; it leaves every team in which it is not the Host."""

    agent_member_id: Annotated[AgentMemberRef, "the member, by id or unique name", ID]
    expected_version: Annotated[int, "version last read", VERSION]


_FIND = (Code.NAME_AMBIGUOUS, Code.NOT_FOUND, Code.ROW_QUARANTINED)
_MOVE = (*_FIND, Code.INVALID_STATE_TRANSITION, Code.VERSION_CONFLICT)

OPERATIONS = (
    Operation("agent.create", CreateAgent, planes=OPERATOR, effect=Effect.WRITE),
    Operation("agent.list", ListAgents, planes=READERS, effect=Effect.READ, refuses=(Code.CURSOR_INVALID,)),
    Operation("agent.pause", PauseAgent, planes=OPERATOR, effect=Effect.WRITE, refuses=_MOVE),
    Operation("agent.resume", ResumeAgent, planes=OPERATOR, effect=Effect.WRITE, refuses=_MOVE),
    Operation("agent.retire", RetireAgent, planes=OPERATOR, effect=Effect.WRITE, refuses=(*_MOVE, Code.SOLE_HOST)),
    Operation("agent.show", ShowAgent, planes=READERS, effect=Effect.READ, refuses=_FIND),
    Operation(
        "agent.update",
        UpdateAgent,
        planes=OPERATOR,
        effect=Effect.WRITE,
        refuses=(*_FIND, Code.AGENT_MEMBER_RETIRED, Code.NAME_TAKEN, Code.VERSION_CONFLICT),
    ),
)
