"""The worktrees that members were given, as a person sees them: what stands there now, and taking one away.

One is taken away only as what was made, with nothing in it that is in no commit, and its branch stays. It first goes
aside, under a name that no member has, and from there for good: whoever dies in between leaves nothing that looks like
a change, and the next attempt goes on from there.
"""

from __future__ import annotations

import os
from pathlib import Path

import attrs
import trio

from client.git import GitRefused, GitUnusable, dirty, git, must, one_line
from client.protocol.boundary import Boundary, Crash, no_crash
from client.protocol.refusals import Code, Refusal
from client.protocol.workspace import WorkspaceState
from supervisor.workspaces import (
    Entry,
    Place,
    Workspaces,
    adoptable,
    conflict,
    entries_of,
    real,
    repository_of,
    throw_away,
    unfinished,
    unusable,
)

#: Files that are named of those that changed.
NAMED = 10


@attrs.frozen(kw_only=True)
class Archived:
    """What became of a worktree. Its branch is kept; ``revision`` is its last commit, None where there is no branch."""

    removed: bool
    branch: str
    revision: str | None


@attrs.frozen(kw_only=True)
class Standing:
    """What stands at a place: ``changed`` is in no commit, ``ahead`` commits of its branch are not in what the
    project's folder has checked out. ``why`` says what is wrong and what lifts it.
    """

    state: WorkspaceState
    changed: list[str]
    ahead: int
    revision: str
    why: str


@attrs.frozen
class Worktrees:
    """``base`` is the folder of all of them; ``crash`` ends this process at a boundary, for tests."""

    workspaces: Workspaces
    base: Path
    crash: Crash = no_crash

    async def place(self, *, root: Path, cwd: Path, member_id: str) -> Place | None:
        """The worktree in which a process was that worked in ``cwd``; None where that was no worktree of ours."""
        base = Path(await trio.Path(self.base).resolve())
        match cwd.relative_to(base).parts if cwd.is_relative_to(base) else ():
            case (project, team, member, *_):
                path = base / project / team / member
                return Place(root=root, path=path, branch=f"firm/{team}/{member}", member_id=member_id)
            case _:
                return None

    async def look(self, place: Place) -> Standing | None:
        """What stands there; None where there is nothing (any more)."""
        try:
            return await _look(await real(place))
        except (GitRefused, GitUnusable, OSError) as fault:
            return _wrong(WorkspaceState.CONFLICT, f"correct what git says: {one_line(str(fault))}")

    async def archive(self, place: Place) -> Archived | Refusal:
        """Take the member's worktree away if nothing would be lost with it; its branch stays. What the repository
        ignores goes with it.
        """
        async with self.workspaces.turn:
            try:
                return await self._archive(await real(place))
            except (GitRefused, GitUnusable, OSError) as fault:
                return unusable(place.root, f"correct what git says and ask again: {one_line(str(fault))}")

    async def _archive(self, place: Place) -> Archived | Refusal:
        finished = await self._finish(place)
        entries = await entries_of(place.root)
        entry = next((entry for entry in entries if entry.path == place.path), None)
        if entry is None:
            wrong = await _elsewhere(place, entries)
            return wrong or Archived(removed=finished, branch=place.branch, revision=await _last(place))
        if refusal := await _removable(place, entry):
            return refusal
        await trio.Path(place.path).rename(_aside(place))
        self.crash(Boundary.ARCHIVE_ASIDE)
        await self._finish(place)
        return Archived(removed=True, branch=place.branch, revision=await _last(place))

    async def _finish(self, place: Place) -> bool:
        """Whether one that was put aside is gone now, and git knows of none that has no folder."""
        aside = _aside(place)
        if not await trio.Path(aside).exists():
            return False
        if not await trio.Path(place.path).exists() and any(
            entry.path == place.path for entry in await entries_of(place.root)
        ):
            await must(place.root, "worktree", "remove", "--", os.fspath(place.path))
        self.crash(Boundary.ARCHIVE_FORGOTTEN)
        await trio.to_thread.run_sync(throw_away, aside)
        return True


def _aside(place: Place) -> Path:
    """No member has it: a slug begins with no dot."""
    return place.path.with_name(f".{place.path.name}.archived")


async def _removable(place: Place, entry: Entry) -> Refusal | None:
    """Why the worktree that git has registered there is not taken away, or None."""
    if refusal := unfinished(place, entry):
        return refusal
    if entry.locked is not None:
        why = f" ({one_line(entry.locked)})" if entry.locked else ""
        return conflict(place, f"somebody locked it{why}: git worktree unlock lifts that")
    repository = await repository_of(place.root)
    if isinstance(repository, Refusal):
        return repository
    if refusal := await adoptable(place, repository, entry):
        return refusal
    if await trio.Path(place.path).is_symlink():
        return conflict(place, "a link stands there: move it away")
    if not await trio.Path(place.path / ".git").is_file():
        return conflict(place, "it is the repository itself, not a worktree of it: it stays")
    if changed := await dirty(place.path):
        return _dirty(place.path, changed)
    if await _has_submodules(place.path):
        return conflict(place, "its submodules may hold commits of their own: remove it by hand, git worktree remove")
    return None


async def _has_submodules(folder: Path) -> bool:
    listed = (await must(folder, "ls-files", "--stage", "-z")).out
    return any(line.startswith(b"160000 ") for line in listed.split(b"\0"))


async def _look(place: Place) -> Standing | None:
    there = await trio.Path(place.path).exists()
    repository = await repository_of(place.root)
    if isinstance(repository, Refusal):
        return _wrong(WorkspaceState.CONFLICT, f"the project has changed: {repository.lifted_by}") if there else None
    entries = await entries_of(place.root)
    entry = next((entry for entry in entries if entry.path == place.path), None)
    if entry is None:
        if (wrong := await _elsewhere(place, entries)) is None:
            return None
        return _wrong(WorkspaceState.CONFLICT if there else WorkspaceState.MOVED, wrong.lifted_by)
    if refusal := await adoptable(place, repository, entry):
        return _wrong(WorkspaceState.CONFLICT if there else WorkspaceState.GONE, refusal.lifted_by)
    changed = await dirty(place.path)
    ahead = (await must(place.root, "rev-list", "--count", f"HEAD..refs/heads/{place.branch}")).line
    return Standing(
        state=WorkspaceState.DIRTY if changed else WorkspaceState.CLEAN,
        changed=[one_line(name, most=120) for name in changed],
        ahead=int(ahead),
        revision=await _last(place) or "",
        why=_dirty(place.path, changed).lifted_by if changed else "",
    )


def _wrong(state: WorkspaceState, why: str) -> Standing:
    return Standing(state=state, changed=[], ahead=0, revision="", why=why)


async def _elsewhere(place: Place, entries: list[Entry]) -> Refusal | None:
    """Why there is something although git has no worktree registered at that place, or None."""
    for entry in entries:
        if entry.branch == place.branch:
            there = one_line(os.fspath(entry.path))
            return conflict(place, f"it was moved to {there}: bring it back with git worktree move, or remove it there")
    if await trio.Path(place.path).exists():
        return conflict(place, "what stands there is no worktree of the project: move it away")
    return None


async def _last(place: Place) -> str | None:
    said = await git(place.root, "rev-parse", "--verify", "--quiet", f"refs/heads/{place.branch}^{{commit}}")
    return said.line if said.status == 0 else None


def _dirty(folder: Path, changed: list[str]) -> Refusal:
    named = ", ".join(one_line(name, most=120) for name in changed[:NAMED])
    more = f" and {len(changed) - NAMED} more" if len(changed) > NAMED else ""
    lifted_by = f"commit or remove what is in no commit: {named}{more}"
    return Refusal(code=Code.WORKSPACE_DIRTY, about=one_line(os.fspath(folder)), lifted_by=lifted_by)
