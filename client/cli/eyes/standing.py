"""How a Work stands, in one word and one mark; the same on boards, in lists and in graphs."""

from __future__ import annotations

from typing import Any

from client.cli.eyes.sheet import mark

READY, WAITING, STUCK = "ready", "waiting", "stuck"
_MARKS = {
    "accepted": "✓",
    "cancelled": "✗",
    "failed": "✗",
    "review": "◆",
    "active": "▶",
    "blocked": "!",
    "on hold": "‖",
    READY: "○",
    STUCK: "!",
}


def word(work: dict[str, Any], readiness: str = "") -> str:
    """Its resolution, else its condition where that is not normal, else its phase; ``readiness`` says more of open."""
    if work.get("resolution"):
        return str(work["resolution"])
    if work["condition"] != "normal":
        return str(work["condition"]).replace("_", " ")
    return readiness if work["phase"] == "open" and readiness else str(work["phase"])


def marked(said: str) -> str:
    return f"{mark(_MARKS.get(said, '·'))} {said}"
