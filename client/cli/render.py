"""Answers for eyes: aligned tables of lists, aligned fields of records, times as people say them.

Knows preferences, not operations: what nobody named here is shown all the same.
"""

from __future__ import annotations

import os
import sys
import textwrap
import time
from collections.abc import Iterable, Iterator
from typing import Any

#: Columns of a list, by noun or by the name of the list inside a record. Where none are named: all that fit a line.
COLUMNS = {
    "agent": ("id", "name", "role", "profile", "status", "version", "updated_at", "description"),
    "event": ("seq", "at", "stream", "version", "kind", "actor"),
    "members": ("name", "role", "state", "membership_id", "version", "agent_member_id"),
    "membership": ("id", "team_id", "agent_member_id", "role", "state", "member_gen", "version"),
    "node": ("record", "since", "why"),
    "project": ("id", "root", "git_dir"),
    "subscriptions": ("source", "source_id", "state"),
    "team": ("id", "name", "state", "version", "updated_at", "description"),
}
#: Columns that may be cut where a terminal is too narrow, and how little of them is still of use.
_CUT = {"actor", "description", "git_dir", "kind", "name", "role", "root", "why"}
_LEAST = 6
_GAP = "  "
#: Marks of our own that take one column: no reason to load the tables of all characters.
NARROW = "…├─└│↓✓✗◆▶○·‖●"
_OURS = str.maketrans(NARROW, "." * len(NARROW))
#: Format characters that belong to words and emoji and move nothing on a screen: the two joiners.
_JOINERS = "\u200c\u200d"


def text(noun: str, body: Any) -> str:
    """One answer as text. Control characters never reach the terminal."""
    if "timed_out" in body:
        said = "Timed out; it is not true yet." if body["timed_out"] else "It is true."
        shown = table("event", body["events"]) if body["events"] else ""
        return "\n".join(part for part in (said, shown, _onward(body)) if part)
    if "items" in body:
        return "\n".join(
            part for part in (table(noun, body["items"]) if body["items"] else "None.", _onward(body)) if part
        )
    return "\n\n".join(_parts(body))


def _onward(body: Any) -> str:
    onward = body.get("next") or body.get("cursor")
    return f"Continue with --cursor {onward}" if onward and (body.get("items") or "timed_out" in body) else ""


def _parts(body: dict[str, Any]) -> Iterator[str]:
    """What stands in a record itself, then each record inside it, then each list of records."""
    inner = {name: value for name, value in body.items() if isinstance(value, dict)}
    lists = {name: value for name, value in body.items() if _is_table(value)}
    own = {name: value for name, value in body.items() if name not in inner and name not in lists}
    if own:
        yield fields(own)
    yield from (fields(value) for value in inner.values())
    yield from (table(name, [_flat(row) for row in rows]) for name, rows in lists.items())


def _is_table(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], dict)


def _flat(row: dict[str, Any]) -> dict[str, Any]:
    """The fields of a record inside a row, among the row's own; its id under its name."""
    found: dict[str, Any] = {}
    for name, value in row.items():
        if isinstance(value, dict):
            found.update({f"{name}_id" if key == "id" else key: each for key, each in value.items()})
        else:
            found[name] = value
    return found


def fields(record: dict[str, Any]) -> str:
    side = max((len(name) for name in record), default=0) + 2
    lines: list[str] = []
    for name, value in record.items():
        shown = moment(value) if _is_time(name, value) else cell(name, value)
        first, *more = shown.splitlines() or ["-"]
        lines.append(f"{name:<{side}}{first}")
        lines += [" " * side + line for line in more]
    return "\n".join(lines)


def table(kind: str, rows: list[dict[str, Any]]) -> str:
    """Aligned columns. Cut to the terminal where there is one; ids and numbers never, so that they can be copied."""
    columns = COLUMNS.get(kind) or tuple(name for name, value in rows[0].items() if not isinstance(value, (dict, list)))
    cells = [[" ".join(cell(name, row.get(name)).split()) for name in columns] for row in rows]
    widths = [max(width(line[at]) for line in [list(columns), *cells]) for at in range(len(columns))]
    room = terminal()
    if room and not _shrink(columns, widths, room - len(_GAP) * (len(columns) - 1)):
        return "\n\n".join(fields({name: row.get(name) for name in columns}) for row in rows)
    head = _GAP.join(padded(name, wide) for name, wide in zip(columns, widths, strict=True)).rstrip()
    lines = [f"\x1b[1m{head}\x1b[0m" if styled() else head]
    lines += [_GAP.join(padded(c, w) for c, w in zip(line, widths, strict=True)).rstrip() for line in cells]
    return "\n".join(lines)


def _shrink(columns: tuple[str, ...], widths: list[int], room: int) -> bool:
    """Make the widest column that may be cut narrower until all fit. False when they cannot."""
    while sum(widths) > room:
        at = max((i for i, name in enumerate(columns) if name in _CUT), key=lambda i: widths[i], default=-1)
        if at < 0 or widths[at] <= _LEAST:
            return False
        widths[at] -= 1
    return True


def padded(shown: str, wide: int) -> str:
    if width(shown) <= wide:
        return shown + " " * (wide - width(shown))
    while width(shown) > wide - 1:
        shown = shown[:-1]
    return shown + "…" + " " * (wide - 1 - width(shown))


def width(shown: str) -> int:
    """Columns that a text takes on a screen."""
    if shown.isascii() or shown.translate(_OURS).isascii():
        return len(shown)
    from rich.cells import cell_len

    return cell_len(shown)


def terminal() -> int:
    """The columns of the terminal on standard output; 0 where there is none."""
    if sys.stdout is None or not sys.stdout.isatty():
        return 0
    named = os.environ.get("COLUMNS", "")
    return int(named) if named.isascii() and named.isdigit() else os.get_terminal_size(sys.stdout.fileno()).columns


def styled() -> bool:
    return bool(terminal()) and not os.environ.get("NO_COLOR") and os.environ.get("TERM", "dumb") != "dumb"


def wrapped(prose: str, first: str = "", rest: str = "") -> list[str]:
    """Lines of at most 80 columns."""
    columns = min(terminal() or 80, 80)
    return textwrap.wrap(prose, max(columns, 20), initial_indent=first, subsequent_indent=rest)


def cell(name: str, value: Any) -> str:
    if value is None or value in ([], ""):
        return "-"
    if _is_time(name, value):
        return ago(value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        return ", ".join(f"{key}={cell(key, each)}" for key, each in value.items()) or "-"
    return "".join(_harmless(", ".join(cell("", item) for item in value) if isinstance(value, list) else str(value)))


def _harmless(shown: str) -> Iterable[str]:
    """Nothing that moves a cursor, sets a colour or turns the direction of writing."""
    for c in shown:
        wide_space = c.isspace() and c > "\x9f" and c not in "\u2028\u2029"
        if c.isprintable() or c == "\n" or c in _JOINERS or wide_space:
            yield c
        else:
            yield " " if c == "\t" else "\N{REPLACEMENT CHARACTER}"


def _is_time(name: str, value: Any) -> bool:
    return type(value) is int and (name in {"at", "since"} or name.endswith("_at"))


def moment(ms: int) -> str:
    """``2026-01-31 14:05:09, 3 min ago``, in the time of this machine."""
    return f"{time.strftime('%Y-%m-%d %H:%M:%S', time.localtime(ms / 1000))}, {ago(ms)}"


def ago(ms: int) -> str:
    """``3 min ago``; the clock may have been set, so the future is possible and said."""
    seconds = time.time() - ms / 1000
    ending = "ago" if seconds >= 0 else "from now"
    seconds = abs(seconds)
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60), ("s", 1)):
        if seconds >= length:
            return f"{int(seconds // length)} {unit} {ending}"
    return "now"
