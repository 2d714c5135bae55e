"""What a member's workspace has to submit: a commit, nothing but a report, or changes that are in no commit.

Asks git in the current folder and changes nothing there. What is new is what the folder's own log of HEAD says was
committed since the attempt began.
"""

from __future__ import annotations

import os
import subprocess

#: Files that are named at most; the others are counted.
_NAMED = 10


class Dirty(Exception):
    """There are changes in no commit. ``files`` names them."""

    def __init__(self, files: list[str]) -> None:
        left = len(files) - _NAMED
        super().__init__(", ".join(files[:_NAMED]) + (f" and {left} more" if left > 0 else ""))
        self.files = files


class Unclear(Exception):
    """Git does not say what is there."""


def candidate(since: float) -> str:
    """The commit to submit; empty where nothing was committed since then. Raises ``Dirty``, ``Unclear``."""
    if not _in_repository():
        return ""
    if files := _changes():
        raise Dirty(files)
    head = _git("rev-parse", "--verify", "--quiet", "HEAD", may_fail=True).strip()
    if not head:
        return ""
    base = _base(since)
    if base is None:
        return head
    return head if int(_git("rev-list", "--count", f"{base}..{head}")) else ""


def _in_repository() -> bool:
    try:
        done = _run("rev-parse", "--is-inside-work-tree")
    except FileNotFoundError:  # no git here, so nobody made a repository either
        return False
    if done.returncode and "not a git repository" in done.stderr:
        return False
    if done.returncode:
        raise Unclear(_first_line(done.stderr))
    return done.stdout.strip() == "true"


def _changes() -> list[str]:
    """Files that differ from HEAD, and those that git does not know and was not told to ignore."""
    entries = iter(_git("status", "--porcelain=v1", "-z", "--untracked-files=all").split("\0"))
    files: list[str] = []
    for entry in entries:
        if entry:
            files.append(entry[3:])
            if "R" in entry[:2] or "C" in entry[:2]:
                next(entries, None)  # the name it had before
    return files


def _base(since: float) -> str | None:
    """Where HEAD stood at that second; None where the repository itself is younger."""
    log = _git("log", "--walk-reflogs", "--date=unix", "--format=%H %gd %gs", "HEAD", may_fail=True).splitlines()
    oldest: str | None = None
    for line in log:
        commit, _, rest = line.partition(" ")
        moment, _, how = rest.partition("} ")
        if int(moment.rpartition("{")[2]) < int(since):
            return commit
        oldest = None if how.startswith("commit (initial)") else commit
    return oldest


def _git(*words: str, may_fail: bool = False) -> str:
    done = _run(*words)
    if done.returncode and not may_fail:
        raise Unclear(_first_line(done.stderr))
    return done.stdout


def _run(*words: str) -> subprocess.CompletedProcess[str]:
    # In English, because one of its sentences is read; without locks, because the member may be using git itself.
    env = {**os.environ, "LC_ALL": "C", "GIT_OPTIONAL_LOCKS": "0"}
    return subprocess.run(
        ["git", *words],  # noqa: S607 — the git that the member uses
        env=env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        errors="replace",
        text=True,
        check=False,
    )


def _first_line(said: str) -> str:
    return next(iter(said.splitlines()), "git failed")
