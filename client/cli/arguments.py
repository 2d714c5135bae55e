"""The arguments of one verb, read and checked. What may be given is a row of plain tuples.

argparse reads the words; what it finds wrong is said here in the words of this command, with what to type instead.
Help is in ``client.cli.manual``.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

#: name, flag, kind, required, default, choices, many, path, help; as ``client.cli.index`` has them.
Field = tuple[str, str, str, bool, object, "tuple[str, ...] | None", bool, str, str]
#: operation, effect, help, fields.
Verb = tuple[str, str, str, "tuple[Field, ...]"]

#: The largest request there is, in bytes; a longer text need not be read to its end.
LIMIT = 256 * 1024

JSON: Field = ("_json", "--json", "switch", False, None, None, False, "", "print one JSON object")
KEY: Field = (
    "_key",
    "--idempotency-key",
    "str",
    False,
    None,
    None,
    False,
    "",
    "asks safely again: the same key gets the first answer; made when not given",
)
#: The short form of some flags, where a verb has them.
SHORT = {"-f": "--follow", "-n": "--lines"}
#: Kinds of a flag that has no value. With one that stands ``instead``, nothing else has to be given.
SWITCHES = {"bool", "switch", "instead"}
_SHOWN = 40
#: What may be left out, and still is what a command begins with: ``firm up FILE``, ``firm recover WORK``.
_BEGINS = ("file", "work", "effect")
#: A text that may stand without its flag behind what a command begins with: ``firm send MEMBER TEXT``.
TEXT = "text"
#: A text of many lines, for which ``$EDITOR`` opens where it is missing.
PROSE = "prose"
_DIGITS = 19


class Usage(Exception):
    """What was typed is no question. ``lifted_by`` says what to type."""

    def __init__(self, what: str, lifted_by: str) -> None:
        super().__init__(what)
        self.what = what
        self.lifted_by = lifted_by


def parse(noun: str, verb: str, row: Verb, words: list[str]) -> tuple[dict[str, object], dict[str, object]]:
    """The request body, and the options of the command itself: ``key`` and ``json``. Raises ``Usage``."""
    _, effect, _, fields = row
    given = take(f"firm {noun} {verb}", with_options(effect, fields), words)
    options = {"key": given.pop("_key", None), "json": given.pop("_json", False)}
    return body(fields, given), options


def with_options(effect: str, fields: tuple[Field, ...]) -> tuple[Field, ...]:
    """The fields of an operation, and what every command of its kind has."""
    return (*fields, KEY, JSON) if effect == "write" else (*fields, JSON)


def take(command: str, fields: tuple[Field, ...], words: list[str]) -> dict[str, object]:
    """The values that ``words`` give, by name. Raises ``Usage``."""
    import argparse

    parser = _parser(command, fields)
    end = words.index("--") if "--" in words else len(words)
    try:
        found, left = parser.parse_known_intermixed_args(words[:end])
    except argparse.ArgumentError as wrong:
        raise _unread(wrong) from None
    for word in left:
        if word.startswith("-") and word != "-":
            raise _no_flag(command, fields, word.partition("=")[0])
    given = {field[0]: _given(field, values) for field in fields if (values := getattr(found, field[0])) is not None}
    _stand(command, fields, given, [*found.WORDS, *words[end + 1 :]])
    if any(field[2] == "instead" and field[0] in given for field in fields):
        return given
    missing = [field for field in fields if field[3] and field[7] != "folder" and field[0] not in given]
    if missing and all(field[2] in {PROSE, TEXT} for field in missing):
        from client.cli import editor

        if opens := editor.program():
            return {**given, **{f[0]: editor.written(opens, command, f[1], f[8]) for f in missing}}
    if missing:
        from client.cli.manual import signature

        first = leading(fields)
        named = " and ".join(f"{f[0].upper() if f is first else f[1]} ({f[8]})" for f in missing)
        raise Usage(f"{named} {'is' if len(missing) == 1 else 'are'} missing", signature(command, fields))
    return given


def _parser(command: str, fields: tuple[Field, ...]) -> argparse.ArgumentParser:
    """Every flag may come many times and every loose word is collected: what is too much is said with its values."""
    import argparse

    parser = argparse.ArgumentParser(command, add_help=False, allow_abbrev=False, exit_on_error=False)
    parser.add_argument("WORDS", nargs="*")
    short = {flag: letter for letter, flag in SHORT.items()}
    for name, flag, kind, *_ in fields:
        flags = [flag, short[flag]] if flag in short else [flag]
        if kind in SWITCHES:
            parser.add_argument(*flags, dest=name, action="append_const", const=True)
            if kind == "bool":
                parser.add_argument(f"--no-{flag[2:]}", dest=name, action="append_const", const=False)
        else:
            parser.add_argument(*flags, dest=name, action="append")
    return parser


def _unread(wrong: argparse.ArgumentError) -> Usage:
    """What argparse says of one flag, in the words of this command."""
    flag = str(wrong.argument_name).partition("/")[0]
    if "expected one argument" in wrong.message:
        return Usage(f"{flag} has no value", f"write {flag} VALUE, or {flag}=VALUE")
    return Usage(f"{flag} takes no value", f"write {flag} alone")


def _given(field: Field, values: list[object]) -> object:
    """What a flag says in all; once is enough unless it lists."""
    _, flag, kind, _, _, _, many, _, _ = field
    read = values if kind in SWITCHES else [_value(field, str(word)) for word in values]
    if many:
        return read
    if len(read) > 1:
        raise Usage(f"{flag} is given twice", f"give {flag} once")
    return read[0]


def leading(fields: tuple[Field, ...]) -> Field | None:
    """The field that may stand without its flag: the id a command begins with, else the first that is required.

    A run may be left out where something else has to be said, so there it does not take that one's place.
    """
    if fields and fields[0][0] in _BEGINS:
        return fields[0]
    begins = fields[0] if fields and fields[0][0].endswith("_id") and not fields[0][6] else None
    if begins and (begins[0] != "team_run_id" or not any(field[3] for field in fields)):
        return begins
    return next((field for field in fields if field[3] and not field[6]), None)


def _stand(command: str, fields: tuple[Field, ...], given: dict[str, object], words: list[str]) -> None:
    """Add the words that have no flag: for the field that may stand without, then for the text behind it."""
    if not words:
        return
    first = leading(fields)
    if first is None:
        raise Usage(f"{quoted(words[0])} is one word too many", f"{command} takes flags only; see {command} --help")
    if first[0] in given:
        raise Usage(f"{first[1]} is given twice", f"give {first[1]} once")
    given[first[0]] = _value(first, words[0])
    behind = next((field for field in fields if field[2] == TEXT and field[0] not in given), None)
    if behind is not None and len(words) > 1:
        given[behind[0]] = _value(behind, words[1])
        words = [words[0], *words[2:]]
    if len(words) > 1:
        both = f"{first[1]} is {quoted(words[0])} already"
        raise Usage(f"{quoted(words[1])} is one word too many: {both}", f"quote what has spaces; see {command} --help")


def _no_flag(command: str, fields: tuple[Field, ...], flag: str) -> Usage:
    flag = SHORT.get(flag, flag)
    meant = near(flag, [field[1] for field in fields])
    hint = f"did you mean {meant}? Else see" if meant else "see"
    return Usage(
        f"{command} has no flag {quoted(flag)}", f"{hint} {command} --help; a value that begins with - goes behind --"
    )


def _value(field: Field, word: str) -> object:
    flag, kind, choices = field[1], field[2], field[5]
    _utf8(flag, word)
    if choices and word not in choices:
        meant = near(word, list(choices))
        hint = f"did you mean {meant}? Give" if meant else "give"
        raise Usage(f"{flag} cannot be {quoted(word)}", f"{hint} {listing(choices)}")
    if kind == "int":
        digits = word.removeprefix("-")
        if not (digits.isascii() and digits.isdigit() and len(digits) <= _DIGITS and -(2**63) <= int(word) < 2**63):
            raise Usage(f"{flag} cannot be {quoted(word)}", f"give a whole number: {flag} N")
        return int(word)
    if kind == "float":
        try:
            return float(word)
        except ValueError:
            raise Usage(f"{flag} cannot be {quoted(word)}", f"give a number: {flag} X") from None
    return word


def body(fields: tuple[Field, ...], given: dict[str, object]) -> dict[str, object]:
    """What was given, with texts read from standard input where they are ``-`` and paths made absolute."""
    made: dict[str, object] = {}
    read = ""
    for name, flag, kind, required, _, choices, many, path, _ in fields:
        value = given.get(name)
        if path and (value is not None or (path == "folder" and required)):
            made[name] = absolute(str("." if value is None else value))
        elif value == "-" and kind in {"str", TEXT, PROSE} and not choices and not many:
            if read:
                raise Usage(f"{read} and {flag} are both -", "only one text can be read from standard input")
            read, made[name] = flag, _standard_input(flag)
        elif value is not None:
            made[name] = value
    return made


def absolute(path: str) -> str:
    """Raises ``Usage`` for a path that leads on from a folder that is gone."""
    try:
        found = os.path.abspath(os.path.expanduser(path)) if path else ""
    except FileNotFoundError:
        raise Usage("the current folder has been removed", "go to another one, or give an absolute path") from None
    return _utf8("the path", found)


def _utf8(what: str, word: str) -> str:
    if any("\ud800" <= letter <= "\udfff" for letter in word):
        raise Usage(f"{what} is not UTF-8 text: {quoted(word)}", "give one that is")
    return word


def _standard_input(flag: str) -> str:
    """All of it, less one line end at its end: ``echo text`` gives ``text``."""
    if sys.stdin is None:
        raise Usage(f"{flag} is - and standard input is closed", f"give the text: {flag} TEXT")
    if sys.stdin.isatty():
        print(f"Reading {flag} from the terminal; Ctrl-D on a line of its own ends it.", file=sys.stderr)
    data = sys.stdin.buffer.read(LIMIT + 1)
    if len(data) > LIMIT:
        raise Usage("the text on standard input is larger than a request may be", f"give less than {LIMIT} bytes")
    try:
        return data.decode().removesuffix("\n")
    except UnicodeDecodeError:
        raise Usage("the text on standard input is not UTF-8", "convert it first, for example with iconv") from None


def near(word: str, known: list[str]) -> str:
    """The one of ``known`` that was probably meant, or an empty string."""
    import difflib

    found = difflib.get_close_matches(word, known, 1)
    return found[0] if found else ""


def quoted(word: str) -> str:
    """A word as it can stand in a message: short, and harmless to a terminal."""
    return repr(word if len(word) <= _SHOWN else word[: _SHOWN - 1] + "…")


def listing(words: tuple[str, ...]) -> str:
    return words[0] if len(words) == 1 else ", ".join(words[:-1]) + " or " + words[-1]
