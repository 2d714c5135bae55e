"""Worktrees of members: what git says of each, and taking away those that somebody asked to take away.

One that the last daemon had begun is begun again: whatever that one had done, what comes of it is the same.
"""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Protocol, TypeVar

import attrs

from client.protocol.boundary import Boundary
from client.protocol.effect import Certainty, RuntimeEffect
from client.protocol.refusals import Code, Refusal
from client.protocol.workspace import ListWorkspaces, Workspace, WorkspaceList
from daemon.call import Call
from daemon.operations import workspace
from daemon.relay import Relay
from store import workspace as workspaces
from store.database import Store
from store.tx import Tx
from supervisor.means import Means
from supervisor.worktrees import NAMED, Archived

T = TypeVar("T")


class Seen(Protocol):
    """A look at the database that outlives its faults."""

    async def __call__(self, run: Callable[[Tx], T]) -> T: ...


#: A write that does.
Write = Callable[[Callable[[Tx], Any]], Awaitable[None]]


@attrs.frozen
class Archives:
    """``means`` is None, or has no worktrees, where no process is ever started."""

    store: Store
    means: Means | None

    async def list(self, _: Call, ask: ListWorkspaces) -> WorkspaceList | Refusal:
        used = await self.store.scan(lambda tx: workspace.used(tx, ask))
        if isinstance(used, Refusal):
            return used
        worktrees = self.means.worktrees if self.means is not None else None
        found: dict[Path, Workspace] = {}
        for cwd, root, agent_id, name, team_id, team, session_id in used if worktrees is not None else ():
            assert worktrees is not None, "there are none otherwise"
            place = await worktrees.place(root=Path(root), cwd=Path(cwd), member_id=agent_id)
            if place is None or place.path in found:  # a shared folder; or a project's folder in its repository
                continue
            if (stands := await worktrees.look(place)) is not None:
                found[place.path] = Workspace(
                    name=name,
                    agent_member_id=agent_id,
                    team=team,
                    team_id=team_id,
                    root=root,
                    path=str(place.path),
                    branch=place.branch,
                    state=stands.state,
                    changes=len(stands.changed),
                    changed=stands.changed[:NAMED],
                    ahead=stands.ahead,
                    revision=stands.revision,
                    session_id=session_id,
                    why=stands.why,
                )
        return WorkspaceList(items=[*found.values()])

    async def serve(self, relay: Relay, call: Callable[[], Call], seen: Seen, write: Write) -> None:
        """One at a time, as they were asked for."""
        while True:
            with relay.next("effect") as changed:
                for begun in await seen(workspaces.prepared):
                    outcome, said = await self._archive(begun, *await seen(functools.partial(_of, begun)))
                    await write(functools.partial(workspace.archived, call, begun.id, outcome, said))
                await changed.wait()

    async def _archive(self, begun: RuntimeEffect, root: str, member_id: str) -> tuple[Certainty, str]:
        assert self.means is not None, "this is served only where there are worktrees"
        assert self.means.worktrees is not None, "this is served only where there are worktrees"
        self.means.crash(Boundary.ARCHIVE_PREPARED)
        place = await self.means.worktrees.place(root=Path(root), cwd=Path(begun.cwd), member_id=member_id)
        if place is None or place.path != Path(begun.cwd):
            return Certainty.NOT_APPLIED, f"{Code.NOT_FOUND.value}: see what there is: firm workspace list"
        done = await self.means.worktrees.archive(place)
        self.means.crash(Boundary.ARCHIVE_DONE)
        if isinstance(done, Refusal):
            return Certainty.NOT_APPLIED, f"{done.code.value}: {done.lifted_by}"
        return Certainty.APPLIED, _said(done)


def _of(begun: RuntimeEffect, tx: Tx) -> tuple[str, str]:
    return workspaces.of(tx, begun.id)


def _said(done: Archived) -> str:
    if done.revision is None:
        return "there is none, and no branch of it"
    gone = "taken away" if done.removed else "there is none any more"
    return f"{gone}; its branch {done.branch} stays at {done.revision[:12]}"
