"""``firm work list``: one line a Work."""

from __future__ import annotations

from typing import Any

from client.cli.eyes import names, standing
from client.cli.eyes.sheet import clean, columns, head
from client.cli.render import ago


def lay(page: dict[str, Any]) -> str:
    items = page["items"]
    if not items:
        return "None."
    runs = {work["team_run_id"] for work in items if work["owner_id"]}
    known = {owner: place for run in sorted(runs) for owner, place in names.places(run).items()}
    rows = [("id", "version", "state", "title", "owner", "changed")]
    for work in items:
        owner = known[work["owner_id"]]["name"] if work["owner_id"] in known else work["owner_id"]
        since = ago(work["updated_at"]) + ("" if work["priority"] == "normal" else f", {work['priority']}")
        stands = standing.marked(standing.word(work))
        rows.append((work["id"], str(work["version"]), stands, clean(work["title"]), clean(owner), since))
    first, *rest = columns(rows, 3)
    onward = [f"Continue with --cursor {page['next']}"] if page["next"] else []
    return "\n".join([head(first), *rest, *onward])
