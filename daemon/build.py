"""Which build this is, and what it does not do yet."""

from __future__ import annotations

import subprocess
from importlib import metadata
from pathlib import Path

VERSION = metadata.version("firm-node")

#: Said by ``node.status`` and the README instead of pretending.
NOT_BUILT = [
    "profiles shipped for agents with a model: write your own, or they join by firm session bind",
    "firm doctor and firm top",
    "Role Fabric: plans, reducer, certification",
    "staged workspaces: a member has a worktree of its own or the project's folder",
    "ownership lanes and confinement: a ceiling is recorded in each session, and no process is held to it",
    "MCP, HTTP and console",
    "a second machine",
]


def _commit() -> str:
    """The commit of a checkout; empty for an installed copy."""
    root = Path(__file__).parent.parent
    if not (root / ".git").exists():
        return ""
    try:
        done = subprocess.run(
            ["git", "-C", str(root), "rev-parse", "HEAD"],  # noqa: S607 — git is found like every tool
            capture_output=True,
            text=True,
            timeout=5,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


COMMIT = _commit()
