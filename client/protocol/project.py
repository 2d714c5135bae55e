"""Project: a folder this node knows. Records, requests and rows."""

from __future__ import annotations

from typing import Annotated

import attrs

from client.protocol.ids import Folder, ProjectId, UnixMs
from client.protocol.operation import OPERATOR, READERS, Effect, Operation, Request
from client.protocol.refusals import Code
from client.protocol.shape import ID, PAGE, PATH, Bounds


@attrs.frozen(kw_only=True)
class Project:
    """``git_dir`` is the common directory of its repository, the same in every worktree; empty without git."""

    id: ProjectId
    version: int
    root: str
    git_dir: str
    created_at: UnixMs
    updated_at: UnixMs


@attrs.frozen(kw_only=True)
class ProjectPage:
    items: list[Project]
    next: str | None


@attrs.frozen(kw_only=True)
class AddProject(Request[Project]):
    """Make a folder known to this node; adding it again answers the same project."""

    root: Annotated[Folder, "the folder", PATH]


@attrs.frozen(kw_only=True)
class ListProjects(Request[ProjectPage]):
    """List the projects of this node, oldest first."""

    limit: Annotated[int, "most rows", PAGE] = 100
    cursor: Annotated[str, "continue after an earlier page", Bounds(most=500)] = ""


@attrs.frozen(kw_only=True)
class ShowProject(Request[Project]):
    """Show one project."""

    project_id: Annotated[ProjectId, "the project", ID]


OPERATIONS = (
    Operation(
        "project.add",
        AddProject,
        planes=OPERATOR,
        effect=Effect.WRITE,
        refuses=(Code.FILE_UNUSABLE, Code.ROW_QUARANTINED),
    ),
    Operation("project.list", ListProjects, planes=READERS, effect=Effect.READ, refuses=(Code.CURSOR_INVALID,)),
    Operation(
        "project.show",
        ShowProject,
        planes=READERS,
        effect=Effect.READ,
        refuses=(Code.NOT_FOUND, Code.ROW_QUARANTINED),
    ),
)
