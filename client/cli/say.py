"""What a command says: answers on standard output, refusals on standard error, and the exit status of each."""

from __future__ import annotations

import sys

from client import paths
from client.cli import ask as door
from client.cli.arguments import LIMIT, Usage
from client.cli.index import CODES, DIGEST

UNAVAILABLE = "NODE_DAEMON_UNAVAILABLE"
_AGAIN = 3
#: What only the command line says: exit status, retry. Everything else of its own is (1, "never").
_OWN = {"INTERRUPTED": (130, "same"), UNAVAILABLE: (4, "same"), "USAGE": (2, "never")}


class Unheard(Exception):
    """What was to be said could not be written."""


def out(text: str) -> None:
    """A line, or several, on standard output. Raises ``BrokenPipeError``, ``Unheard``."""
    if sys.stdout is None:
        return
    try:
        try:
            print(text, flush=True)
        except UnicodeEncodeError:
            print(text.encode("ascii", "backslashreplace").decode(), flush=True)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise Unheard(error.strerror) from None


def err(text: str) -> None:
    if sys.stderr is not None:
        print(text, file=sys.stderr)


def dumps(value: object) -> str:
    """One line of JSON. What could do something to a terminal is escaped, and all else with it."""
    import json

    text = json.dumps(value, ensure_ascii=False)
    plain = text.isprintable() and sys.stdout is not None and sys.stdout.encoding.lower() == "utf-8"
    return text if plain else json.dumps(value)


def answered(
    op: str,
    answer: dict[str, object],
    welcome: dict[str, object],
    key: str = "",
    *,
    as_json: bool,
    chosen: dict[str, object] | None = None,
) -> int:
    """Say the answer to an operation, for eyes or for programs. ``chosen`` is what the command itself decided."""
    refusal = answer.get("refusal")
    if isinstance(refusal, dict):
        return refused(refusal, welcome, key, as_json=as_json)
    body = answer["answer"]
    if as_json:
        whole = {"answer": body, "replayed": answer["replayed"], "seq": answer["seq"]}
        out(dumps({**whole, "chosen": chosen} if chosen else whole))
    else:
        from client.cli.eyes import text

        out(text(op, body))
    return _AGAIN if isinstance(body, dict) and body.get("timed_out") else 0


def refused(refusal: dict[str, object], welcome: dict[str, object], key: str = "", *, as_json: bool) -> int:
    """Say a refusal of the daemon's."""
    code = str(refusal["code"])
    status, retry, meaning = CODES.get(code, (1, "never", "Refused."))
    again = key if retry == "same" else ""
    whole: dict[str, object] = {**refusal, "meaning": meaning, "retry": retry, "idempotency_key": again or None}
    other = welcome and welcome.get("table") != DIGEST
    hint = f"This firm and the daemon are different builds; the daemon's is {welcome['firm_bin']}." if other else ""
    return _say(whole, hint, status, as_json=as_json)


def declined(code: str, about: str, meaning: str, lifted_by: str, *, as_json: bool = False) -> int:
    """Say a refusal of the command line's own, in the shape of the daemon's."""
    status, retry = CODES[code][:2] if code in CODES else _OWN.get(code, (1, "never"))
    return _say(_whole(code, about, meaning, lifted_by, retry), "", status, as_json=as_json)


def too_large(size: door.TooLarge, *, as_json: bool) -> int:
    _, _, meaning = CODES["FRAME_TOO_LARGE"]
    lifted_by = f"give less than {LIMIT} bytes, these are {size}; put large content in a file and name it"
    return declined("FRAME_TOO_LARGE", "request", meaning, lifted_by, as_json=as_json)


def misused(wrong: Usage, *, as_json: bool) -> int:
    what = wrong.what if wrong.what.startswith("firm ") else wrong.what[:1].upper() + wrong.what[1:]
    return declined("USAGE", "", what + ".", wrong.lifted_by, as_json=as_json)


def unavailable(gone: door.Unavailable, key: str = "", *, as_json: bool = False) -> int:
    status, retry = _OWN[UNAVAILABLE]
    again = key if gone.sent else ""
    # A member starts no daemon, least of all the one that it would take for its own.
    lifted_by = "ask the person at this machine: firm node start" if paths.told() else "firm node start"
    whole = _whole(UNAVAILABLE, "", f"No daemon answers: {gone}.", lifted_by, retry, again)
    return _say(whole, "The request may have been done." if again else "", status, as_json=as_json)


def _whole(code: str, about: str, meaning: str, lifted_by: str, retry: str, key: str = "") -> dict[str, object]:
    return {
        "code": code,
        "about": about,
        "lifted_by": lifted_by,
        "current_version": None,
        "meaning": meaning,
        "retry": retry,
        "idempotency_key": key or None,
    }


def last_words(text: str) -> tuple[str, str, str] | None:
    """Code, sentence and what lifts it, of a daemon process that gave up; None for any other text."""
    code, colon, rest = " ".join(text.split()).partition(": ")
    what, lifts, lifted_by = rest.rpartition(" To lift it: ")
    return (code, what, lifted_by.removesuffix(".")) if colon and lifts and code.isupper() else None


def _say(refusal: dict[str, object], hint: str, status: int, *, as_json: bool) -> int:
    if as_json:
        err(dumps({"refusal": refusal}))
        return status
    about = f" {refusal['about']}" if refusal.get("about") else ""
    # No full stop behind what lifts it: it may end in a command, and commands are copied.
    lines = [f"firm: {refusal['meaning']} [{refusal['code']}{about}]", f"  To lift it: {refusal['lifted_by']}"]
    if hint:
        lines.append(f"  {hint}")
    if key := refusal["idempotency_key"]:
        lines.append(f"  To ask again, and have it done once: the same command with --idempotency-key {key}")
    err("\n".join(_harmless(line) for line in lines))
    return status


def _harmless(line: str) -> str:
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in line)
