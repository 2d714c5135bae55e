"""Answers for eyes: aligned tables of lists, aligned fields of records, times as people say them."""

from __future__ import annotations

import time
from typing import Any

#: Columns of a list, by noun; what is not named here shows with --json.
COLUMNS = {
    "agent": ("id", "name", "role", "profile", "status", "version", "updated_at"),
    "event": ("seq", "at", "stream", "version", "kind", "actor"),
    "membership": ("id", "team_id", "agent_member_id", "role", "state", "member_gen", "version"),
    "node": ("record", "why", "since"),
    "project": ("id", "root", "git_dir"),
    "team": ("id", "name", "state", "version", "updated_at", "description"),
}
_TIMES = {"at", "since", "created_at", "updated_at", "joined_at", "left_at", "started_at"}


def text(noun: str, body: Any) -> str:
    """One answer as text. Control characters never reach the terminal."""
    if "items" in body:
        return _list(noun, body)
    if "members" in body:
        rows = [{"name": m["name"], **m["membership"]} for m in body["members"]]
        return fields(body["team"]) + "\n\n" + table(("name", "role", "state", "id", "agent_member_id"), rows)
    if "subscriptions" in body:
        rows = body["subscriptions"]
        return fields(body["membership"]) + "\n\n" + table(("source", "source_id", "state"), rows)
    if "timed_out" in body:
        said = "Timed out; it is not true yet." if body["timed_out"] else "It is true."
        shown = table(COLUMNS["event"], body["events"]) if body["events"] else ""
        return "\n".join(part for part in (said, shown, f"Continue with --cursor {body['cursor']}") if part)
    return fields(body)


def _list(noun: str, body: Any) -> str:
    if not body["items"]:
        return "None."
    shown = table(COLUMNS[noun], body["items"])
    onward = body.get("next") or body.get("cursor")
    return f"{shown}\nContinue with --cursor {onward}" if onward else shown


def fields(record: dict[str, Any]) -> str:
    wide = max(len(name) for name in record) + 2
    lines: list[str] = []
    for name, value in record.items():
        shown = cell(name, value)
        first, *more = shown.splitlines() or [""]
        lines.append(f"{name:<{wide}}{first}")
        lines += [" " * wide + line for line in more]
    return "\n".join(lines)


def table(columns: tuple[str, ...], rows: list[dict[str, Any]]) -> str:
    """Aligned columns as wide as they need to be; cut to the terminal where there is one."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    drawn = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for name in columns:
        drawn.add_column(name, no_wrap=True, overflow="ellipsis")
    for row in rows:
        drawn.add_row(*(Text(" ".join(cell(name, row.get(name)).split())) for name in columns))
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = 10_000
    with console.capture() as captured:
        console.print(drawn)
    return "\n".join(line.rstrip() for line in captured.get().splitlines())


def cell(name: str, value: Any) -> str:
    if value is None or value == []:
        return "-"
    if name in _TIMES and isinstance(value, int):
        return ago(value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    shown = ", ".join(str(item) for item in value) if isinstance(value, list) else str(value)
    return "".join(c if c.isprintable() or c == "\n" else "\N{REPLACEMENT CHARACTER}" for c in shown)


def ago(ms: int) -> str:
    """``3 min ago``; the clock may have been set, so the future is possible and said."""
    seconds = time.time() - ms / 1000
    ending = "ago" if seconds >= 0 else "from now"
    seconds = abs(seconds)
    if seconds < 1:
        return "now"
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60), ("s", 1)):
        if seconds >= length:
            return f"{int(seconds // length)} {unit} {ending}"
    return "now"
