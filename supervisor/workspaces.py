"""Workspaces of members: the project's own folder, or a worktree on a branch of the member's own.

A worktree is made once and adopted from then on, if it is still what was made: of the same repository, on the same
branch, of the same member. Anything else is a refusal that says what stands there and what lifts it, and nothing was
changed. Nothing that has a change which is in no commit is ever removed.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
import stat
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import attrs
import trio

from client.git import (
    CHECKOUT_SECONDS,
    GitRefused,
    GitUnusable,
    Said,
    branch,
    commit_exists,
    dirty,
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
#: Files that a refusal names.
_NAMED = 10


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
class Archived:
    """What became of a worktree. Its branch is kept; ``revision`` is its last commit."""

    removed: bool
    branch: str
    revision: str | None


@attrs.frozen(kw_only=True)
class Snapshot:
    """A commit and what exactly it holds: the same ``tree`` is the same content."""

    revision: str
    tree: str


@attrs.frozen(kw_only=True)
class _Repository:
    common: str
    prefix: str  # from the top of the checkout to the project's folder: empty, or with a slash at its end
    head: str


@attrs.frozen(kw_only=True)
class _Entry:
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
    """All worktrees that this process prepares; one at a time, since git locks its configuration without waiting."""

    def __init__(self) -> None:
        self._turn = trio.Lock()

    async def shared(self, root: Path) -> Workspace | Refusal:
        """The project's own folder, with or without git, which is not asked: every launch would wait for it."""
        if not await trio.Path(root).is_dir():
            return _unusable(root, "it is no folder; make it, or name another project")
        return Workspace(cwd=root, top=root, branch=None, base=None, adopted=True)

    async def worktree(self, place: Place) -> Workspace | Refusal:
        """The member's worktree, made if there is none."""
        async with self._turn:
            try:
                return await _worktree(await _real(place))
            except (GitRefused, GitUnusable, OSError) as fault:
                return _unusable(place.root, f"correct what git says and ask again: {one_line(str(fault))}")

    async def archive(self, place: Place) -> Archived | Refusal:
        """Remove the member's worktree if nothing would be lost with it; its branch stays."""
        async with self._turn:
            try:
                return await _archive(await _real(place))
            except (GitRefused, GitUnusable) as fault:
                return _unusable(place.root, f"correct what git says and ask again: {one_line(str(fault))}")


async def _real(place: Place) -> Place:
    """With its path as git writes it down: no link above the worktree itself."""
    return attrs.evolve(place, path=Path(await trio.Path(place.path.parent).resolve(), place.path.name))


async def _worktree(place: Place) -> Workspace | Refusal:
    repository = await _repository(place.root)
    if isinstance(repository, Refusal):
        return repository
    entries = await _entries(place.root)
    registered = next((entry for entry in entries if entry.path == place.path), None)
    refusal = await (_adoptable(place, repository, registered) if registered else _creatable(place, entries))
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


async def _repository(root: Path) -> _Repository | Refusal:
    """The repository that the project's folder belongs to, or why no worktree of it can be made."""
    if not await trio.Path(root).is_dir():
        return _unusable(root, "it is no folder; make it, or name another project")
    bare = await git(root, "rev-parse", "--is-bare-repository")
    if bare.status != 0:
        return _unusable(root, f"make a repository of it with git init, or let its members share it: {bare.why}")
    if bare.line == "true":
        return _unusable(root, "it is a bare repository, which has no files: name a checkout of it as the project")
    if (await must(root, "rev-parse", "--is-inside-work-tree")).line != "true":
        return _unusable(root, "it lies in the .git folder of a repository: name its checkout as the project")
    commit = await head(root)
    if commit is None:
        return _unusable(root, "its repository has no commit to begin from: make the first one")
    prefix = (await must(root, "rev-parse", "--show-prefix")).line
    if prefix and (await git(root, "cat-file", "-e", f"HEAD:{prefix.rstrip('/')}")).status != 0:
        return _unusable(root, "its last commit has nothing of this folder: commit something in it")
    return _Repository(common=await _common(root), prefix=prefix, head=commit)


async def _common(folder: Path) -> str:
    """Where the repository itself is; empty where the folder belongs to none."""
    said = await git(folder, "rev-parse", "--path-format=absolute", "--git-common-dir")
    return os.fspath(await trio.Path(said.line).resolve()) if said.status == 0 else ""


async def _entries(root: Path) -> list[_Entry]:
    said = await must(root, "worktree", "list", "--porcelain", "-z")
    found: list[_Entry] = []
    for record in said.out.split(b"\0\0"):
        fields = dict(_field(line) for line in record.strip(b"\0").split(b"\0"))
        if "worktree" in fields:
            entry = _Entry(
                path=Path(fields["worktree"]),
                branch=fields.get("branch", "").removeprefix("refs/heads/"),
                locked=fields.get("locked"),
            )
            found.append(entry)
    return found


def _field(line: bytes) -> tuple[str, str]:
    name, _, value = os.fsdecode(line).partition(" ")
    return name, value


async def _adoptable(place: Place, repository: _Repository, entry: _Entry) -> Refusal | None:
    """Why the worktree that git has registered there is not taken for the member's, or None."""
    if not await trio.Path(place.path).is_dir():
        if entry.locked is not None:
            why = f"its folder is gone and it is locked{f' ({one_line(entry.locked)})' if entry.locked else ''}"
            return _conflict(place, f"{why}: bring the folder back, or git worktree unlock it and prune it")
        return _conflict(place, "its folder is gone, and git still knows it: run git worktree prune in the project")
    if not await trio.Path(place.path / ".git").exists() or await _common(place.path) != repository.common:
        return _conflict(place, "what stands there belongs to another repository, or to none: move it away")
    on = await branch(place.path)
    if on != place.branch:
        where = f"on the branch {one_line(on)}" if on else "on no branch"
        return _conflict(place, f"it is {where}: switch it back with git switch {place.branch}")
    return await _of_another(place)


async def _of_another(place: Place) -> Refusal | None:
    """Why an existing branch is not this member's, or None. A name may be given again to somebody else."""
    owner = await git(place.root, "config", "--local", "--get", _mark(place))
    if owner.status == 0 and owner.line == place.member_id:
        return None
    whose = f"of the member {one_line(owner.line)}" if owner.status == 0 else "not made for a member"
    return _conflict(place, f"the branch {place.branch} is {whose}: rename that branch or delete it")


def _mark(place: Place) -> str:
    """Whose branch it is, where git itself forgets it together with the branch."""
    return f"branch.{place.branch}.firmMember"


async def _creatable(place: Place, entries: list[_Entry]) -> Refusal | None:
    """Why no worktree can be made there, or None."""
    for entry in entries:
        if entry.branch == place.branch:
            there = one_line(os.fspath(entry.path))
            gone = "" if await trio.Path(entry.path).exists() else ", which is gone: run git worktree prune first"
            return _conflict(place, f"the branch {place.branch} is checked out at {there}{gone or ': free it there'}")
    if refusal := await trio.to_thread.run_sync(_in_the_way, place):
        return refusal
    return await _of_another(place) if await _has_branch(place) else None


async def _has_branch(place: Place) -> bool:
    return (await git(place.root, "rev-parse", "--verify", "--quiet", f"refs/heads/{place.branch}")).status == 0


def _in_the_way(place: Place) -> Refusal | None:
    """Why the path cannot become a worktree: git would take an empty folder, and follow a link."""
    for parent in (place.path, *place.path.parents):
        try:
            mode = parent.lstat().st_mode
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            return _conflict(place, f"{parent} cannot be looked at ({error.strerror}): correct that")
        if parent != place.path:
            return None if parent.is_dir() else _conflict(place, f"{parent} is no folder: move it away")
        if not stat.S_ISDIR(mode):
            return _conflict(place, "something that is no folder stands there: move it away")
        if any(parent.iterdir()):
            return _conflict(place, "a folder with something in it stands there: move it away")
    return None


async def _create(place: Place, repository: _Repository) -> Refusal | None:
    await trio.Path(place.path.parent).mkdir(mode=0o700, parents=True, exist_ok=True)
    add = ("worktree", "add", "--quiet")
    if await _has_branch(place):
        said = await git(place.root, *add, "--", os.fspath(place.path), place.branch, seconds=CHECKOUT_SECONDS)
        return None if said.status == 0 else _not_made(place, said)
    # Marked before it exists: a branch without its mark would be taken for somebody else's.
    await must(place.root, "config", "--local", _mark(place), place.member_id)
    new = ("--no-track", "-b", place.branch, "--", os.fspath(place.path), repository.head)
    said = await git(place.root, *add, *new, seconds=CHECKOUT_SECONDS)
    if said.status == 0:
        return None
    if not await _has_branch(place):
        await must(place.root, "config", "--local", "--unset-all", _mark(place))
    return _not_made(place, said)


def _not_made(place: Place, said: Said) -> Refusal:
    return _conflict(place, f"correct what git says of the branch {place.branch} and ask again: {said.why}")


async def _archive(place: Place) -> Archived | Refusal:
    entry = next((entry for entry in await _entries(place.root) if entry.path == place.path), None)
    if entry is None:
        return Archived(removed=False, branch=place.branch, revision=await _last(place))
    if entry.locked is not None:
        why = f" ({one_line(entry.locked)})" if entry.locked else ""
        return _conflict(place, f"somebody locked it{why}: git worktree unlock lifts that")
    repository = await _repository(place.root)
    if isinstance(repository, Refusal):
        return repository
    if refusal := await _adoptable(place, repository, entry):
        return refusal
    if changed := await dirty(place.path):
        return _dirty(place.path, changed)
    said = await git(place.root, "worktree", "remove", "--", os.fspath(place.path), seconds=CHECKOUT_SECONDS)
    if said.status != 0:
        return _conflict(place, f"correct what git says and ask again: {said.why}")
    return Archived(removed=True, branch=place.branch, revision=await _last(place))


async def _last(place: Place) -> str | None:
    said = await git(place.root, "rev-parse", "--verify", "--quiet", f"refs/heads/{place.branch}^{{commit}}")
    return said.line if said.status == 0 else None


async def snapshot(folder: Path, revision: str) -> Snapshot | Refusal:
    """What a submission names, proven to be there."""
    try:
        if not await commit_exists(folder, revision):
            return _no_commit(folder, revision)
        return Snapshot(revision=revision, tree=(await must(folder, "rev-parse", f"{revision}^{{tree}}")).line)
    except (GitRefused, GitUnusable) as fault:
        return _unusable(folder, f"correct what git says and ask again: {one_line(str(fault))}")


@contextlib.asynccontextmanager
async def checked_out(folder: Path, revision: str, under: Path) -> AsyncIterator[Path | Refusal]:
    """Exactly that commit in a folder of its own below ``under``, for as long as the block lasts.

    What was done to it is thrown away with it.
    """
    found = await snapshot(folder, revision)
    if isinstance(found, Refusal):
        yield found
        return
    scratch = Path(await trio.to_thread.run_sync(_scratch, under))
    path = scratch / "checkout"
    try:
        add = ("worktree", "add", "--quiet", "--detach", "--", os.fspath(path), revision)
        try:
            said = await git(folder, *add, seconds=CHECKOUT_SECONDS)
            why = "" if said.status == 0 else said.why
        except GitUnusable as fault:
            why = str(fault)
        yield _unusable(folder, f"correct what git says and ask again: {one_line(why)}") if why else path
    finally:
        with trio.CancelScope(shield=True):
            await trio.to_thread.run_sync(_throw_away, scratch)
            # Git forgets it, now that its folder is gone; where it never knew it, there is nothing to forget.
            await git(folder, "worktree", "remove", "--force", "--", os.fspath(path))


def _scratch(under: Path) -> str:
    under.mkdir(mode=0o700, parents=True, exist_ok=True)
    return tempfile.mkdtemp(prefix="snapshot-", dir=under)


def _throw_away(scratch: Path) -> None:
    """Remove a folder in which a program may have taken the right to write away. Links are not followed."""
    for folder, names, _ in os.walk(scratch):
        for path in (Path(folder, name) for name in names):
            if not path.is_symlink():
                path.chmod(0o700)
    shutil.rmtree(scratch)


def _unusable(folder: Path, lifted_by: str) -> Refusal:
    return Refusal(code=Code.FILE_UNUSABLE, about=one_line(os.fspath(folder)), lifted_by=lifted_by)


def _no_commit(folder: Path, revision: str) -> Refusal:
    lifted_by = f"there is no commit {one_line(revision, most=80)} there; name a whole commit id of this repository"
    return Refusal(code=Code.FILE_UNUSABLE, about=one_line(os.fspath(folder)), lifted_by=lifted_by)


def _conflict(place: Place, lifted_by: str) -> Refusal:
    return Refusal(code=Code.WORKSPACE_CONFLICT, about=one_line(os.fspath(place.path)), lifted_by=lifted_by)


def _dirty(folder: Path, changed: list[str]) -> Refusal:
    named = ", ".join(one_line(name, most=120) for name in changed[:_NAMED])
    more = f" and {len(changed) - _NAMED} more" if len(changed) > _NAMED else ""
    lifted_by = f"commit or remove what is in no commit: {named}{more}"
    return Refusal(code=Code.WORKSPACE_DIRTY, about=one_line(os.fspath(folder)), lifted_by=lifted_by)
