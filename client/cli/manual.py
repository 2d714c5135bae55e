"""Help: of the whole command, of a noun, of a verb. Loaded when somebody asks, or typed something wrong."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Mapping

from client.cli.arguments import KEY, PROSE, SHORT, SWITCHES, TEXT, Field, leading, listing

_METAVAR = {"int": "N", "float": "X"}


def whole(often: Mapping[str, str], nouns: Mapping[str, str]) -> str:
    """``firm --help``: one screen of 24 lines, what is typed every day first."""
    lines = ["firm: durable teams of coding agents on one machine.", *_rows(often)]
    lines += ["Everything: firm NOUN VERB [arguments] [--json]", *_rows(nouns)]
    lines += ["firm NOUN --help lists its verbs, firm NOUN VERB --help their arguments."]
    return "\n".join([*lines, "Exit: 0 done, 1 refused, 2 usage, 3 ask again, 4 no daemon, 5 needs recovery."])


def noun(name: str, about: str, verbs: Mapping[str, str]) -> str:
    """``firm NOUN --help``."""
    lines = [f"Usage: firm {name} VERB [arguments] [--json]", "", *textwrap.wrap(about, _columns()), ""]
    lines += _rows({verb: verbs[verb] for verb in sorted(verbs)})
    return "\n".join([*lines, "", f"firm {name} VERB --help shows its arguments."])


def verb(command: str, summary: str, fields: tuple[Field, ...]) -> str:
    """``firm NOUN VERB --help``."""
    first = leading(fields)
    ordered = sorted(fields, key=lambda field: (field is not first, not field[3]))
    usage = f"Usage: {signature(command, fields)}" + (" [options]" if any(not f[3] for f in fields) else "")
    lines = [*textwrap.wrap(usage, _columns(), subsequent_indent=" " * 7, break_on_hyphens=False), ""]
    lines += textwrap.wrap(summary, _columns())
    lines += ["", *_rows({_left(field, first): _right(field, first) for field in ordered})] if fields else []
    by_noun = command.count(" ") > 1  # the commands of one word take their words as they are
    if by_noun and any(
        f[2] in {"str", PROSE} and not (f[5] or f[6] or f[7]) for f in fields if f is not KEY and f[1] != "--cursor"
    ):
        lines += ["", "A text of - is read from standard input."]
    if asked := [
        f[0].upper() if f is first or f[2] == TEXT else f[1] for f in fields if f[3] and f[2] in {PROSE, TEXT}
    ]:
        lines += [f"Without {' and '.join(asked)}, EDITOR opens at a terminal."]
    return "\n".join(lines)


def signature(command: str, fields: tuple[Field, ...]) -> str:
    """The command with what it must be given."""
    first = leading(fields)
    words = [command]
    if first is not None:
        words.append(f"[{first[0].upper()}]" if first[7] == "folder" or not first[3] else first[0].upper())
    words += [f[0].upper() for f in fields if f[2] == TEXT]
    words += [f"{f[1]} {_metavar(f)}" for f in fields if f[3] and f is not first and f[7] != "folder" and f[2] != TEXT]
    return " ".join(words)


def _rows(table: Mapping[str, str]) -> list[str]:
    """Two columns; a left side that is too long has a line of its own."""
    columns = _columns()
    side = min(max((len(left) for left in table), default=0) + 4, 30)
    lines: list[str] = []
    for left, right in table.items():
        text = textwrap.wrap(right, columns - side, break_long_words=False, break_on_hyphens=False) or [""]
        if len(left) + 4 > side:
            lines.append(f"  {left}")
            lines += [" " * side + line for line in text]
        else:
            lines.append(f"  {left:<{side - 2}}{text[0]}".rstrip())
            lines += [" " * side + line for line in text[1:]]
    return lines


def _metavar(field: Field) -> str:
    name, _, kind, _, _, choices, _, path, _ = field
    if choices:
        return "CHOICE"
    return "PATH" if path else _METAVAR.get(kind) or ("ID" if name.endswith("_id") else "TEXT")


def _left(field: Field, first: Field | None) -> str:
    _, flag, kind, *_ = field
    if field is first or kind == TEXT:
        return field[0].upper()
    short = next((f"{s}, " for s, long in SHORT.items() if long == flag), "")
    if kind == "bool":
        return f"{flag}, --no-{flag[2:]}"
    return short + flag if kind in SWITCHES else f"{short}{flag} {_metavar(field)}"


def _right(field: Field, first: Field | None) -> str:
    _, flag, _, required, default, choices, many, path, text = field
    stands = field is first or field[2] == TEXT
    parts = [text, f": {listing(choices)}" if choices else "", f"; also {flag}" if stands else ""]
    if path == "folder":
        parts.append(" (default: the current folder)")
    elif required and not stands:
        parts.append("; required")
    elif default not in (None, "", (), False):
        parts.append(f" (default {default})")
    return "".join([*parts, "; may be given more than once" if many else ""])


def _columns() -> int:
    """Those of the terminal, at most 80, at least 50."""
    try:
        columns = os.get_terminal_size(1).columns
    except OSError:
        columns = 0
    return min(max(columns or 80, 50), 80)
