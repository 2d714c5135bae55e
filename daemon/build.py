"""Which build this is, and what it does not do yet."""

from __future__ import annotations

import subprocess
from importlib import metadata
from pathlib import Path

VERSION = metadata.version("firm-node")

#: Said by ``node.status`` and the README instead of pretending.
NOT_BUILT = [
    "sessions in tmux: nothing starts an agent yet; a person's own process becomes a session with firm session bind",
    "supervisors of processes: Works are admitted to sessions, but no cycle is started and no lost process recovered",
    "wake and digest rules: mail and Works wait until somebody asks for them",
    "the envelope of a member: nothing sets FIRM_WORK_ID for a process",
    "the verifier: the result of a named check can be recorded and gates acceptance, but nothing runs the check",
    "effects outside the node",
    "Role Fabric: plans, reducer, certification",
    "ownership lanes and confinement",
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
