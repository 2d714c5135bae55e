"""The argument parser of one verb, built from its row in the index."""

from __future__ import annotations

import argparse
import os
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from client.cli.main import Field, Verb


def parse(noun: str, verb: str, row: Verb, arguments: list[str]) -> tuple[dict[str, object], dict[str, object]]:
    """The request body and the options of the command itself. Ends with status 2 on wrong usage."""
    _, effect, summary, fields = row
    parser = argparse.ArgumentParser(f"firm {noun} {verb}", description=summary, allow_abbrev=False)
    first = next((field for field in fields if field[3] and not field[6]), None)
    if first is not None:
        parser.add_argument("_first", metavar=first[0].upper(), nargs="?", help=f"{first[8]}; also {first[1]}")
    for field in fields:
        _add(parser, field, is_first=field is first)
    if effect == "write":
        parser.add_argument("--idempotency-key", dest="_key", metavar="KEY", help="repeat key; made when not given")
    parser.add_argument("--json", dest="_json", action="store_true", help="print one JSON object")
    found = vars(parser.parse_args(arguments))
    options = {"key": found.pop("_key", None), "json": found.pop("_json")}
    _take_first(parser, first, found)
    return _body(parser, fields, found), options


def _add(parser: argparse.ArgumentParser, field: Field, *, is_first: bool) -> None:
    name, flag, kind, required, default, choices, many, path, help_line = field
    text = help_line if required or default in {None, ""} or many else f"{help_line} (default {default})"
    text = f"{help_line} (default: the current folder)" if path == "folder" else text
    extra: dict[str, Any] = {"dest": name, "help": argparse.SUPPRESS if is_first else text, "default": None}
    if kind == "bool":
        parser.add_argument(flag, action=argparse.BooleanOptionalAction, **extra)
        return
    if choices:
        extra["choices"] = choices
    else:
        extra["metavar"] = "N" if kind == "int" else "TEXT" if kind == "str" and not path else "PATH"
        extra["type"] = {"int": int, "float": float}.get(kind, str)
    if many:
        extra["action"] = "append"
    extra["required"] = required and not is_first and path != "folder"
    parser.add_argument(flag, **extra)


def _take_first(parser: argparse.ArgumentParser, first: Field | None, found: dict[str, Any]) -> None:
    """The first required field may stand without its flag."""
    if first is None:
        return
    name, flag, kind, _, _, choices, _, path, _ = first
    given = found.pop("_first")
    if given is not None and found[name] is not None:
        parser.error(f"{name} is given twice, as {given!r} and with {flag}")
    if given is None and found[name] is None:
        if path == "folder":
            return
        parser.error(f"{name.upper()} is missing: firm … VALUE, or {flag} VALUE")
    if given is not None:
        if choices and given not in choices:
            parser.error(f"{name} is one of {', '.join(choices)}")
        if kind == "int" and not given.lstrip("-").isdigit():
            parser.error(f"{name} is a number")
        found[name] = int(given) if kind == "int" else given


def _body(parser: argparse.ArgumentParser, fields: tuple[Field, ...], found: dict[str, Any]) -> dict[str, object]:
    """What was given, texts read from stdin where they are ``-``, paths made absolute."""
    body: dict[str, object] = {}
    read = False
    for name, _, kind, required, _, choices, many, path, _ in fields:
        value = found[name]
        if value is None and path == "folder" and required:
            value = "."
        if value is None:
            continue
        if path:
            value = os.path.abspath(os.path.expanduser(value))
        elif value == "-" and kind == "str" and not choices and not many:
            if read:
                parser.error("only one text can be read from standard input")
            value, read = sys.stdin.read(), True
        body[name] = value
    return body
