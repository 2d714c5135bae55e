"""Workspaces: the worktrees that members were given. Records, requests and rows.

None of it is stored: where members worked is what their launches say, and what stands there is asked of git.
"""

from __future__ import annotations

import enum
from typing import Annotated

import attrs

from client.protocol.effect import RuntimeEffect
from client.protocol.ids import AgentMemberId, Folder, SessionId, TeamId, TeamRef
from client.protocol.operation import OPERATOR, Effect, Operation, Request
from client.protocol.refusals import Code
from client.protocol.shape import ID, LABEL, PATH


class WorkspaceState(enum.StrEnum):
    """Only a clean one can be archived."""

    CLEAN = "clean"
    DIRTY = "dirty"  # something in it is in no commit
    GONE = "gone"  # its folder is gone, and git still knows it
    MOVED = "moved"  # its branch is checked out in another folder
    CONFLICT = "conflict"  # what stands there is not what was made


@attrs.frozen(kw_only=True)
class Workspace:
    """``ahead`` commits of its branch are not in what the project's folder has checked out. ``changed`` names some of
    the ``changes`` that are in no commit. ``session_id`` is who has it in use. ``why`` says what lifts a state that is
    not clean.
    """

    name: str
    agent_member_id: AgentMemberId
    team: str
    team_id: TeamId
    root: str
    path: str
    branch: str
    state: WorkspaceState
    changes: int
    changed: list[str]
    ahead: int
    revision: str
    session_id: SessionId | None
    why: str


@attrs.frozen(kw_only=True)
class WorkspaceList:
    items: list[Workspace]


@attrs.frozen(kw_only=True)
class ListWorkspaces(Request[WorkspaceList]):
    """List the worktrees that members were given and that were not archived, with what git says of each."""

    team_id: Annotated[TeamRef | None, "only of this team", ID] = None


@attrs.frozen(kw_only=True)
class ArchiveWorkspace(Request[RuntimeEffect]):
    """Take a member's worktree away, unless something in it is in no commit; its branch stays, with every commit.

    What the repository ignores goes with the folder.
    """

    path: Annotated[Folder, "the worktree, by its path as it is listed", PATH]
    reason: Annotated[str, "why, for the record", LABEL] = ""


OPERATIONS = (
    Operation(
        "workspace.archive",
        ArchiveWorkspace,
        planes=OPERATOR,
        effect=Effect.WRITE,
        refuses=(Code.EFFECT_UNSETTLED, Code.NOT_FOUND, Code.ROW_QUARANTINED, Code.SESSION_LIVE),
    ),
    Operation(
        "workspace.list",
        ListWorkspaces,
        planes=OPERATOR,
        effect=Effect.LIVE,
        refuses=(Code.NAME_AMBIGUOUS, Code.NOT_FOUND, Code.ROW_QUARANTINED),
    ),
)
