"""Names for the ids in an answer, asked for when somebody's eyes will read it. Ids stay where nobody knows a name."""

from __future__ import annotations

from typing import Any

from client.cli import ask as door
from client.cli.index import DIGEST


def agents() -> dict[str, dict[str, Any]]:
    """Agent members by id, as far as one page goes."""
    found = _asked("agent.list", {"limit": 500})
    return {item["id"]: item for item in found.get("items", [])}


def places(team_run_id: str) -> dict[str, dict[str, Any]]:
    """The places of a run by membership: each has a name and a member run."""
    found = _asked("team-run.show", {"team_run_id": team_run_id})
    return {place["member_run"]["membership_id"]: place for place in found.get("members", [])}


def works(team_run_id: str) -> dict[str, dict[str, Any]]:
    """Works of a run by id, as far as one page goes."""
    found = _asked("work.list", {"team_run_id": team_run_id, "limit": 500})
    return {item["id"]: item for item in found.get("items", [])}


def run_goes_on() -> bool:
    """Whether one does, or nobody knows."""
    found = _asked("team-run.list", {"limit": 500})
    over = {"completed", "cancelled"}
    return "items" not in found or bool(found["next"]) or any(run["state"] not in over for run in found["items"])


def _asked(op: str, body: dict[str, object]) -> dict[str, Any]:
    """The answer, or nothing where the daemon is gone or refuses: a name is a courtesy, never a reason to fail."""
    try:
        answer, _ = door.once(DIGEST, op, body, "")
    except door.Unavailable:
        return {}
    found: Any = answer.get("answer") or {}
    return dict(found)
