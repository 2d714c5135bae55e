"""``firm workspace list``: one line a worktree, and below them what is wrong with those that are not clean."""

from __future__ import annotations

from typing import Any

from client.cli.eyes.sheet import clean, columns, counted, head


def lay(answer: dict[str, Any]) -> str:
    items = answer["items"]
    if not items:
        return "None. A member gets its worktree with its first process; one that is archived leaves its branch."
    rows: list[tuple[str, ...]] = [("member", "team", "state", "ahead", "session", "branch", "path")]
    for each in items:
        state = f"{each['state']}, {counted(each['changes'], 'change')}" if each["changes"] else each["state"]
        shown = (each["name"], each["team"], state, each["ahead"], each["session_id"], each["branch"], each["path"])
        rows.append(tuple(map(clean, shown)))
    first, *rest = columns(rows, 5)
    wrong = [f"  {clean(each['name'])}: {clean(each['why'])}" for each in items if each["why"]]
    return "\n".join([head(first), *rest, *wrong])
