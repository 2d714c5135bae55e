"""What layouts are made of: clean text, columns that line up, marks that the terminal can print, headings."""

from __future__ import annotations

import functools
import sys
import textwrap
from collections.abc import Iterable, Sequence

from client.cli.render import cell, padded, styled, terminal, width

#: How little of a text that is cut is still of use.
LEAST = 12
GAP = "  "
#: What is said where somebody reads ceilings.
NOT_ENFORCED = "Ceilings are recorded and not enforced: each member may do what this user may."
#: Marks, and what stands for each where the encoding of standard output has no such character.
_PLAIN = {
    "├─ ": "|- ",
    "└─ ": "`- ",
    "│  ": "|  ",
    "↓ ": "v ",
    "✓": "+",
    "✗": "x",
    "◆": "?",
    "▶": ">",
    "○": "o",
    "·": ".",
    "!": "!",
    "‖": "=",
    "●": "*",
}


def mark(wanted: str) -> str:
    """A mark as this standard output can print it."""
    return wanted if _drawn(sys.stdout.encoding if sys.stdout is not None else "ascii") else _PLAIN[wanted]


@functools.cache
def _drawn(encoding: str) -> bool:
    try:
        "".join(_PLAIN).encode(encoding)
    except UnicodeEncodeError:
        return False
    return True


def clean(written: object) -> str:
    """What somebody wrote, as one harmless line; a dash where there is nothing."""
    return " ".join(cell("", written).split()) or "-"


def lines(written: object) -> list[str]:
    """What somebody wrote, as harmless lines; none where there is nothing."""
    return cell("", written).splitlines() if written else []


def block(written: object, indent: str = "  ") -> list[str]:
    """The same, indented, and wrapped where there is a terminal."""
    room = terminal()
    if not room:
        return [indent + line for line in lines(written)]
    wrap = textwrap.TextWrapper(max(room, 20), initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False)
    return [part for line in lines(written) for part in (wrap.wrap(line) or [""])]


def cut(shown: str, room: int) -> str:
    """At most ``room`` columns of it."""
    return shown if width(shown) <= room else padded(shown, max(room, 1)).rstrip()


def columns(rows: Sequence[Sequence[str]], narrow: int, indent: str = "") -> list[str]:
    """Clean cells, aligned. Where a terminal is too narrow, the column ``narrow`` is cut; no other ever is."""
    if not rows:
        return []
    widths = [max(width(row[at]) for row in rows) for at in range(len(rows[0]))]
    if room := terminal():
        others = sum(widths) - widths[narrow] + len(GAP) * (len(widths) - 1) + len(indent)
        widths[narrow] = min(widths[narrow], max(room - others, LEAST))
    return [(indent + GAP.join(map(padded, row, widths))).rstrip() for row in rows]


def head(words: str) -> str:
    return f"\x1b[1m{words}\x1b[0m" if styled() else words


def section(words: str, inside: Iterable[str]) -> list[str]:
    """A heading and what stands below it, after an empty line; nothing at all where nothing would stand below it."""
    found = list(inside)
    return ["", head(words), *found] if found else []


def counted(number: int, one: str, more: str = "") -> str:
    """``1 Work``, ``3 Works``."""
    return f"{number} {one if number == 1 else more or one + 's'}"
