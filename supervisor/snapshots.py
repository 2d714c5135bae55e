"""Commits as files: what a submission names, proven to be there, and laid out in a folder while it is looked at."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import attrs
import trio

from client.git import CHECKOUT_SECONDS, GitRefused, GitUnusable, commit_exists, git, must, one_line
from client.protocol.refusals import Code, Refusal
from supervisor.workspaces import throw_away, unusable


@attrs.frozen(kw_only=True)
class Snapshot:
    """A commit and what exactly it holds: the same ``tree`` is the same content."""

    revision: str
    tree: str


async def snapshot(folder: Path, revision: str) -> Snapshot | Refusal:
    """What a submission names, proven to be there."""
    try:
        if not await commit_exists(folder, revision):
            return _no_commit(folder, revision)
        return Snapshot(revision=revision, tree=(await must(folder, "rev-parse", f"{revision}^{{tree}}")).line)
    except (GitRefused, GitUnusable) as fault:
        return unusable(folder, f"correct what git says and ask again: {one_line(str(fault))}")


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
        yield unusable(folder, f"correct what git says and ask again: {one_line(why)}") if why else path
    finally:
        with trio.CancelScope(shield=True):
            await trio.to_thread.run_sync(throw_away, scratch)
            # Git forgets it, now that its folder is gone; where it never knew it, there is nothing to forget.
            await git(folder, "worktree", "remove", "--force", "--", os.fspath(path))


def _scratch(under: Path) -> str:
    under.mkdir(mode=0o700, parents=True, exist_ok=True)
    return tempfile.mkdtemp(prefix="snapshot-", dir=under)


def _no_commit(folder: Path, revision: str) -> Refusal:
    lifted_by = f"there is no commit {one_line(revision, most=80)} there; name a whole commit id of this repository"
    return Refusal(code=Code.FILE_UNUSABLE, about=one_line(os.fspath(folder)), lifted_by=lifted_by)
