"""Git, asked without surprises: no hook runs, nothing prompts, nothing of the caller's ``GIT_*`` leaks in, and every
call has a deadline.

What git refuses is a value (``Said``); that it could not be asked at all is ``GitUnusable``.
"""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Mapping
from pathlib import Path

import attrs
import trio

#: Seconds for one call. A checkout of a large repository takes long; whoever makes one says so.
SECONDS = 30.0
CHECKOUT_SECONDS = 600.0
_REVISION = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
#: A repository's hooks and monitors are programs that somebody else wrote. Signing would ask for a passphrase.
_ALWAYS = (
    *("--no-pager", "-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false"),
    *("-c", "commit.gpgsign=false", "-c", "gc.auto=0", "-c", "maintenance.auto=false"),
)


class GitUnusable(Exception):
    """Git could not be run, or did not end in time."""


class GitRefused(Exception):
    """Git ended with an error where none is expected; its words."""


@attrs.frozen
class Said:
    """How a call ended."""

    status: int
    out: bytes
    err: str

    @property
    def line(self) -> str:
        """What was printed, as one value: git ends it with a line end, and the value itself may hold others."""
        return os.fsdecode(self.out.removesuffix(b"\n"))

    @property
    def why(self) -> str:
        """What git said of an error, as one line."""
        return one_line(self.err) or f"git ended with status {self.status}"


async def git(
    folder: Path, *words: str, stdin: bytes = b"", seconds: float = SECONDS, env: Mapping[str, str] | None = None
) -> Said:
    """Run git in ``folder``, an absolute path. Raises ``GitUnusable``."""
    with trio.move_on_after(seconds):
        try:
            done = await trio.run_process(
                ["git", *_ALWAYS, "-C", os.fspath(folder), *words],
                stdin=stdin,
                capture_stdout=True,
                capture_stderr=True,
                check=False,
                cwd="/",  # ours may have been removed
                env=_environment(env or {}),
            )
        except OSError as error:
            raise GitUnusable(f"git cannot be run: {error.strerror or error}") from error
        return Said(done.returncode, done.stdout, done.stderr.decode(errors="replace"))
    raise GitUnusable(f"git {words[0]} did not end within {seconds:g} seconds")


async def must(folder: Path, *words: str, stdin: bytes = b"", env: Mapping[str, str] | None = None) -> Said:
    """The same, for what has no reason to fail. Raises ``GitRefused`` too."""
    said = await git(folder, *words, stdin=stdin, env=env)
    if said.status != 0:
        raise GitRefused(f"git {words[0]}: {said.why}")
    return said


def _environment(more: Mapping[str, str]) -> dict[str, str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    # One language, since what git says is shown; no lock is taken for a mere look.
    return {**clean, "GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C", **more}


def one_line(text: str, most: int = 300) -> str:
    """Text of somebody else's as one harmless line."""
    spaced = "".join(" " if unicodedata.category(c) in {"Cc", "Zl", "Zp"} else c for c in text)
    found = " ".join(spaced.split())
    return found if len(found) <= most else found[: most - 1] + "…"


async def dirty(folder: Path) -> list[str]:
    """Every path with a change that is in no commit, untracked ones too; not what the repository ignores."""
    said = await must(
        folder, "status", "--porcelain=v1", "-z", "--no-renames", "--untracked-files=normal", "--ignore-submodules=none"
    )
    return [os.fsdecode(entry[3:]) for entry in said.out.split(b"\0") if entry]


async def head(folder: Path) -> str | None:
    """The commit that is checked out; None before the first one."""
    said = await git(folder, "rev-parse", "--verify", "--quiet", "HEAD^{commit}")
    return said.line if said.status == 0 else None


async def branch(folder: Path) -> str | None:
    """The branch that is checked out; None where HEAD is detached."""
    said = await git(folder, "symbolic-ref", "--quiet", "--short", "HEAD")
    return said.line if said.status == 0 else None


async def inside(folder: Path) -> bool:
    """Whether the folder belongs to a checkout."""
    said = await git(folder, "rev-parse", "--is-inside-work-tree")
    return said.status == 0 and said.line == "true"


def is_revision(text: str) -> bool:
    return _REVISION.fullmatch(text) is not None


async def commit_exists(folder: Path, revision: str) -> bool:
    """Whether that whole commit id names a commit here."""
    if not is_revision(revision):
        return False
    return (await git(folder, "cat-file", "-e", f"{revision}^{{commit}}")).status == 0


@attrs.frozen
class Author:
    """Who a commit is by. A name may be anything; git would refuse one that has nothing left after its own cleaning."""

    name: str
    email: str

    @property
    def environment(self) -> dict[str, str]:
        plain = one_line(self.name.replace("<", " ").replace(">", " "), most=100)
        name = plain if any(c.isalnum() for c in plain) else "member"
        return {f"GIT_{who}_{what}": value for who in ("AUTHOR", "COMMITTER") for what, value in self._of(name)}

    def _of(self, name: str) -> tuple[tuple[str, str], ...]:
        return ("NAME", name), ("EMAIL", self.email)


async def commit_all(folder: Path, message: str, author: Author) -> str | None:
    """Commit everything that changed; the commit, or None where there was nothing for one. Raises ``GitRefused``."""
    await must(folder, "add", "--all", "--", ":/")
    if (await git(folder, "diff", "--cached", "--quiet", "--ignore-submodules=none")).status == 0:
        return None
    words = ("commit", "--quiet", "--no-verify", "--no-gpg-sign", "--cleanup=whitespace", "--file=-")
    await must(folder, *words, stdin=message.encode(), env=author.environment)
    return await head(folder)
