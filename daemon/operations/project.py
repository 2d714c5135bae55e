"""Handlers for ``project.*``."""

from __future__ import annotations

import attrs

from client.protocol.ids import ProjectId, new_id
from client.protocol.project import AddProject, ListProjects, Project, ProjectPage, ShowProject
from client.protocol.refusals import Refusal
from daemon.call import Call
from daemon.kernel import cursor
from daemon.operations import find
from store import project as projects
from store.project import PROJECTS
from store.tx import Tx


@attrs.frozen
class FolderFacts:
    """What was seen of a folder before the unit began: its real path, and its repository's common directory."""

    root: str
    git_dir: str


def at(tx: Tx, call: Call) -> Project:
    """The project of the folder that was looked at; made when this node does not know it yet."""
    facts: FolderFacts = call.facts
    known = projects.by_root(tx, facts.root)
    if known is None:
        made = Project(
            id=ProjectId(new_id()),
            version=1,
            root=facts.root,
            git_dir=facts.git_dir,
            created_at=call.now,
            updated_at=call.now,
        )
        return PROJECTS.insert(tx, made, kind="added", actor=call.actor, at=call.now)
    if known.git_dir != facts.git_dir:
        return PROJECTS.change(tx, known, kind="git seen", actor=call.actor, at=call.now, git_dir=facts.git_dir)
    return known


def add(tx: Tx, call: Call, ask: AddProject) -> Project:
    return at(tx, call)


def list_(tx: Tx, call: Call, ask: ListProjects) -> ProjectPage | Refusal:
    query = ("project.list",)
    after = cursor.read(ask.cursor, call.store_id, *query)
    if isinstance(after, Refusal):
        return after
    items, last = projects.list_page(tx, after=after, limit=ask.limit)
    return ProjectPage(items=items, next=cursor.write(last, call.store_id, *query) if last else None)


def show(tx: Tx, call: Call, ask: ShowProject) -> Project | Refusal:
    return PROJECTS.load(tx, ask.project_id) or find.not_found("project", ask.project_id)
