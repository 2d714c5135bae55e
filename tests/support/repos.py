"""Real git repositories for tests, made by the installed git, without the configuration of whoever runs them."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

import attrs

_AUTHOR = {"GIT_AUTHOR_NAME": "t", "GIT_AUTHOR_EMAIL": "t@t.invalid"}
ENVIRONMENT: Mapping[str, str] = {
    **{name: value for name, value in os.environ.items() if not name.startswith("GIT_")},
    **_AUTHOR,
    **{name.replace("AUTHOR", "COMMITTER"): value for name, value in _AUTHOR.items()},
}


@attrs.frozen
class Repo:
    root: Path

    def git(self, *words: str, at: Path | None = None) -> str:
        done = subprocess.run(
            ["git", "-C", str(at or self.root), *words], env=ENVIRONMENT, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, (words, done.stderr)
        return done.stdout.strip()

    def commit(self, name: str = "file", text: str = "text\n", *, at: Path | None = None) -> str:
        """Write a file and commit everything; the commit."""
        path = (at or self.root) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        self.git("add", "--all", at=at)
        self.git("commit", "-q", "-m", f"write {name}", at=at)
        return self.git("rev-parse", "HEAD", at=at)

    def hook(self, name: str, told: Path) -> None:
        """A hook that leaves a trace."""
        path = self.root / ".git" / "hooks" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\necho {name} >> '{told}'\nexit 1\n")
        path.chmod(0o755)

    def worktrees(self) -> list[str]:
        listed = self.git("worktree", "list", "--porcelain").splitlines()
        return [line.removeprefix("worktree ") for line in listed if line.startswith("worktree ")]

    def state(self) -> tuple[str, ...]:
        """Everything that a refusal must leave as it is."""
        config = (self.root / ".git" / "config").read_text()
        return (self.git("for-each-ref"), self.git("worktree", "list"), self.git("status", "--porcelain"), config)


def repo(root: Path, *, commits: bool = True) -> Repo:
    root.mkdir(parents=True, exist_ok=True)
    made = Repo(root)
    made.git("init", "-q", "-b", "main")
    if commits:
        made.commit()
    return made
