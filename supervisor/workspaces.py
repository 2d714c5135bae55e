"""Workspaces of members: the project's own folder, or a worktree on a branch of the member's own.

A worktree is made once and adopted from then on, if it is still what was made: of the same repository, on the same
branch, of the same member. Anything else is a refusal that says what stands there and what lifts it, and nothing was
changed. Nothing that has a change which is in no commit is ever removed.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import stat
from pathlib import Path

import attrs
import trio

from client.git import (
    CHECKOUT_SECONDS,
    GitRefused,
    GitUnusable,
    Said,
    branch,
    git,
    head,
    must,
    one_line,
)
from client.protocol.refusals import Code, Refusal

#: Characters of a name that a branch and a folder keep as they are.
_PLAIN = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_-]{0,38}[A-Za-z0-9])?")
_OTHERS = re.compile(r"[^A-Za-z0-9_]+")
#: The end of every slug that is not the name itself, so that no name is the slug of another.
_MARKED = re.compile(r"-[0-9a-f]{12}")

#: What git itself locks a worktree with until it has written all of its files.
_UNFINISHED = "initializing"
#: Seconds in which another git, begun by a daemon that died over it, may finish one; and between two looks.
_FINISHED_WITHIN, _LOOK_AGAIN = 30.0, 0.2


@attrs.frozen(kw_only=True)
class Place:
    """Where a member works, before anybody looked: pure. ``path`` and ``branch`` are of its worktree."""

    root: Path
    path: Path
    branch: str
    member_id: str


@attrs.frozen(kw_only=True)
class Workspace:
    """A workspace that is there. ``cwd`` is the project's folder in it; ``branch`` is a worktree's own, ``base`` the
    commit that it stood on when asked.
    """

    cwd: Path
    top: Path
    branch: str | None
    base: str | None
    adopted: bool


@attrs.frozen(kw_only=True)
class Repository:
    common: str
    prefix: str  # from the top of the checkout to the project's folder: empty, or with a slash at its end
    head: str


@attrs.frozen(kw_only=True)
class Entry:
    """One line of git's own list of worktrees."""

    path: Path
    branch: str
    locked: str | None


def slug(name: str) -> str:
    """A name as one part of a branch and of a path. Two names never give the same one."""
    if _PLAIN.fullmatch(name) and not _MARKED.search(name[-13:]):
        return name
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:12]
    kept = _OTHERS.sub("-", name)[:26].strip("-_")
    return f"{kept or 'x'}-{digest}"


def plan(*, root: Path, base: Path, project_id: str, team: str, member: str, member_id: str) -> Place:
    """Where the worktree of a member is. ``base`` is the folder of all worktrees."""
    path = base / slug(project_id) / slug(team) / slug(member)
    return Place(root=root, path=path, branch=f"firm/{slug(team)}/{slug(member)}", member_id=member_id)


class Workspaces:
    """All worktrees that this process prepares; one at a time, since git locks its configuration without waiting:
    whoever changes one holds ``turn``.
    """

    def __init__(self) -> None:
        self.turn = trio.Lock()

    async def shared(self, root: Path) -> Workspace | Refusal:
        """The project's own folder, with or without git, which is not asked: every launch would wait for it."""
        if not await trio.Path(root).is_dir():
            return unusable(root, "it is no folder; make it, or name another project")
        return Workspace(cwd=root, top=root, branch=None, base=None, adopted=True)

    async def worktree(self, place: Place) -> Workspace | Refusal:
        """The member's worktree, made if there is none."""
        async with self.turn:
            try:
                return await _worktree(await real(place))
            except (GitRefused, GitUnusable, OSError) as fault:
                return unusable(place.root, f"correct what git says and ask again: {one_line(str(fault))}")


async def real(place: Place) -> Place:
    """With its path as git writes it down: no link above the worktree itself."""
    return attrs.evolve(place, path=Path(await trio.Path(place.path.parent).resolve(), place.path.name))


async def _worktree(place: Place) -> Workspace | Refusal:
    repository = await repository_of(place.root)
    if isinstance(repository, Refusal):
        return repository
    entries = await _finished(place)
    registered = next((entry for entry in entries if entry.path == place.path), None)
    refusal = await (adoptable(place, repository, registered) if registered else _creatable(place, entries))
    if refusal is not None:
        return refusal
    if registered is None:
        refusal = await _create(place, repository)
        if refusal is not None:
            return refusal
    return Workspace(
        cwd=place.path / repository.prefix,
        top=place.path,
        branch=place.branch,
        base=await head(place.path),
        adopted=registered is not None,
    )


async def repository_of(root: Path) -> Repository | Refusal:
    """The repository that the project's folder belongs to, or why no worktree of it can be made."""
    if not await trio.Path(root).is_dir():
        return unusable(root, "it is no folder; make it, or name another project")
    bare = await git(root, "rev-parse", "--is-bare-repository")
    if bare.status != 0:
        return unusable(root, f"make a repository of it with git init, or let its members share it: {bare.why}")
    if bare.line == "true":
        return unusable(root, "it is a bare repository, which has no files: name a checkout of it as the project")
    if (await must(root, "rev-parse", "--is-inside-work-tree")).line != "true":
        return unusable(root, "it lies in the .git folder of a repository: name its checkout as the project")
    commit = await head(root)
    if commit is None:
        return unusable(root, "its repository has no commit to begin from: make the first one")
    prefix = (await must(root, "rev-parse", "--show-prefix")).line
    if prefix and (await git(root, "cat-file", "-e", f"HEAD:{prefix.rstrip('/')}")).status != 0:
        return unusable(root, "its last commit has nothing of this folder: commit something in it")
    return Repository(common=await _common(root), prefix=prefix, head=commit)


async def _common(folder: Path) -> str:
    """Where the repository itself is; empty where the folder belongs to none."""
    said = await git(folder, "rev-parse", "--path-format=absolute", "--git-common-dir")
    return os.fspath(await trio.Path(said.line).resolve()) if said.status == 0 else ""


async def entries_of(root: Path) -> list[Entry]:
    said = await must(root, "worktree", "list", "--porcelain", "-z")
    found: list[Entry] = []
    for record in said.out.split(b"\0\0"):
        fields = dict(_field(line) for line in record.strip(b"\0").split(b"\0"))
        if "worktree" in fields:
            entry = Entry(
                path=Path(fields["worktree"]),
                branch=fields.get("branch", "").removeprefix("refs/heads/"),
                locked=fields.get("locked"),
            )
            found.append(entry)
    return found


def _field(line: bytes) -> tuple[str, str]:
    name, _, value = os.fsdecode(line).partition(" ")
    return name, value


async def adoptable(place: Place, repository: Repository, entry: Entry) -> Refusal | None:
    """Why the worktree that git has registered there is not taken for the member's, or None."""
    if not await trio.Path(place.path).is_dir():
        if entry.locked is not None:
            why = f"its folder is gone and it is locked{f' ({one_line(entry.locked)})' if entry.locked else ''}"
            return conflict(place, f"{why}: bring the folder back, or git worktree unlock it and prune it")
        return conflict(place, "its folder is gone, and git still knows it: run git worktree prune in the project")
    if refusal := unfinished(place, entry):
        return refusal
    if not await trio.Path(place.path / ".git").exists() or await _common(place.path) != repository.common:
        return conflict(place, "what stands there belongs to another repository, or to none: move it away")
    on = await branch(place.path)
    if on != place.branch:
        where = f"on the branch {one_line(on)}" if on else "on no branch"
        return conflict(place, f"it is {where}: switch it back with git switch {place.branch}")
    return await _of_another(place)


async def _finished(place: Place) -> list[Entry]:
    """Git's worktrees, once none of them is the one that is wanted and not finished, or that took too long."""
    entries = await entries_of(place.root)
    with trio.move_on_after(_FINISHED_WITHIN):
        while any(entry.path == place.path and unfinished(place, entry) for entry in entries):
            await trio.sleep(_LOOK_AGAIN)
            entries = await entries_of(place.root)
    return entries


def unfinished(place: Place, entry: Entry) -> Refusal | None:
    """Why one that git has not finished is no place to work in, or None: whatever is not there yet would look deleted.
    Nobody has ever worked in it.
    """
    if entry.locked != _UNFINISHED:
        return None
    away = f"git worktree remove --force --force {shlex.quote(os.fspath(place.path))}"
    lifted_by = f"git is still making it, or was ended over that: once none works there, in the project: {away}"
    return conflict(place, f"{lifted_by}; then it is made anew")


async def _of_another(place: Place) -> Refusal | None:
    """Why an existing branch is not this member's, or None. A name may be given again to somebody else."""
    owner = await git(place.root, "config", "--local", "--get", _mark(place))
    if owner.status == 0 and owner.line == place.member_id:
        return None
    whose = f"of the member {one_line(owner.line)}" if owner.status == 0 else "not made for a member"
    return conflict(place, f"the branch {place.branch} is {whose}: rename that branch or delete it")


def _mark(place: Place) -> str:
    """Whose branch it is, where git itself forgets it together with the branch."""
    return f"branch.{place.branch}.firmMember"


async def _creatable(place: Place, entries: list[Entry]) -> Refusal | None:
    """Why no worktree can be made there, or None."""
    for entry in entries:
        if entry.branch == place.branch:
            there = one_line(os.fspath(entry.path))
            gone = "" if await trio.Path(entry.path).exists() else ", which is gone: run git worktree prune first"
            return conflict(place, f"the branch {place.branch} is checked out at {there}{gone or ': free it there'}")
    if refusal := await trio.to_thread.run_sync(_in_the_way, place):
        return refusal
    return await _of_another(place) if await has_branch(place) else None


async def has_branch(place: Place) -> bool:
    return (await git(place.root, "rev-parse", "--verify", "--quiet", f"refs/heads/{place.branch}")).status == 0


def _in_the_way(place: Place) -> Refusal | None:
    """Why the path cannot become a worktree: git would take an empty folder, and follow a link."""
    for parent in (place.path, *place.path.parents):
        try:
            mode = parent.lstat().st_mode
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            return conflict(place, f"{parent} cannot be looked at ({error.strerror}): correct that")
        if parent != place.path:
            return None if parent.is_dir() else conflict(place, f"{parent} is no folder: move it away")
        if not stat.S_ISDIR(mode):
            return conflict(place, "something that is no folder stands there: move it away")
        if any(parent.iterdir()):
            return conflict(place, "a folder with something in it stands there: move it away")
    return None


async def _create(place: Place, repository: Repository) -> Refusal | None:
    await trio.Path(place.path.parent).mkdir(mode=0o700, parents=True, exist_ok=True)
    add = ("worktree", "add", "--quiet")
    if await has_branch(place):
        said = await git(place.root, *add, "--", os.fspath(place.path), place.branch, seconds=CHECKOUT_SECONDS)
        return None if said.status == 0 else _not_made(place, said)
    # Marked before it exists: a branch without its mark would be taken for somebody else's.
    await must(place.root, "config", "--local", _mark(place), place.member_id)
    new = ("--no-track", "-b", place.branch, "--", os.fspath(place.path), repository.head)
    said = await git(place.root, *add, *new, seconds=CHECKOUT_SECONDS)
    if said.status == 0:
        return None
    if not await has_branch(place):
        await must(place.root, "config", "--local", "--unset-all", _mark(place))
    return _not_made(place, said)


def _not_made(place: Place, said: Said) -> Refusal:
    return conflict(place, f"correct what git says of the branch {place.branch} and ask again: {said.why}")


def throw_away(folder: Path) -> None:
    """Remove a folder in which a program may have taken the right to write away. Links are not followed."""
    folder.chmod(0o700)
    for below, names, _ in os.walk(folder):
        for path in (Path(below, name) for name in names):
            if not path.is_symlink():
                path.chmod(0o700)
    shutil.rmtree(folder)


def unusable(folder: Path, lifted_by: str) -> Refusal:
    return Refusal(code=Code.FILE_UNUSABLE, about=one_line(os.fspath(folder)), lifted_by=lifted_by)


def conflict(place: Place, lifted_by: str) -> Refusal:
    return Refusal(code=Code.WORKSPACE_CONFLICT, about=one_line(os.fspath(place.path)), lifted_by=lifted_by)
