"""The light door: find the verb, parse its arguments, ask, print, exit.

Exit status: 0 done, 1 refused, 2 usage, 3 ask again, 4 no daemon, 5 needs recovery.
"""

from __future__ import annotations

import os
import sys
from types import ModuleType

from client.cli import ask as door
from client.cli.index import CODES, DIGEST, NOUNS

#: What people type most, in one word.
ALIASES = {"events": ("event", "list"), "wait": ("event", "wait"), "watch": ("event", "watch")}

#: Commands that are not one operation: module under client.cli.by_hand, and help.
BY_HAND = {
    ("node", "start"): ("start", "Start the daemon of this machine, or say that it runs."),
    ("node", "stop"): ("stop", "Drain the daemon, end it and wait until it is gone."),
    ("node", "status"): ("status", "Say what is wrong with the daemon, since when, and what lifts it."),
    ("node", "logs"): ("logs", "Show what the daemon logged."),
    ("node", "install"): (
        "install",
        "Install the systemd user units, so that the daemon outlives the login.",
    ),
    ("node", "uninstall"): ("install", "Remove the systemd user units."),
    ("node", "restore"): (
        "restore",
        "Put a backup in the place of the database; the daemon must be stopped.",
    ),
    ("event", "watch"): ("watch", "Follow events as they are committed."),
    ("completion", ""): ("completion", "Print the shell completion for bash, zsh or fish."),
}

Field = tuple[str, str, str, bool, object, "tuple[str, ...] | None", bool, str, str]
Verb = tuple[str, str, str, "tuple[Field, ...]"]


def main(arguments: list[str]) -> int:
    try:
        status = _main(arguments)
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 0
    except KeyboardInterrupt:
        return 130
    return status


def _main(arguments: list[str]) -> int:
    words = list(arguments)
    if words[:1] == ["--version"]:
        from importlib.metadata import version

        print("firm", version("firm-node"))
        return 0
    if not words or words[0] in {"-h", "--help", "help"}:
        print(_help())
        return 0
    noun, *rest = words
    if noun in ALIASES:
        noun, verb = ALIASES[noun]
    elif (noun, "") in BY_HAND:
        verb = ""
    else:
        verb, rest = (rest[0], rest[1:]) if rest else ("--help", [])
    if (noun, verb) in BY_HAND:
        module = _module(f"client.cli.by_hand.{BY_HAND[noun, verb][0]}")
        return int(module.run(verb, rest))
    if noun not in NOUNS:
        return usage(f"there is no command {noun!r}", near(noun, [*NOUNS, *ALIASES, "completion"]))
    verbs: dict[str, Verb] = _module(f"client.cli.index.{noun}").VERBS
    if verb in {"-h", "--help"}:
        print(_noun_help(noun, verbs))
        return 0
    if verb not in verbs:
        known = [*verbs, *(v for n, v in BY_HAND if n == noun)]
        return usage(f"{noun} has no verb {verb!r}", near(verb, known), f"firm {noun} --help")
    return _operation(noun, verb, verbs[verb], rest)


def _module(name: str) -> ModuleType:
    __import__(name)
    return sys.modules[name]


def _operation(noun: str, verb: str, row: Verb, rest: list[str]) -> int:
    from client.cli.arguments import parse

    op, effect, _, _ = row
    body, options = parse(noun, verb, row, rest)
    key = str(options.get("key") or (door.new_key() if effect == "write" else ""))
    from client import paths

    home = paths.home()
    try:
        answer, welcome = door.once(home, DIGEST, op, body, key)
    except door.Unavailable as gone:
        return unavailable(gone, key)
    return show(noun, answer, welcome, as_json=bool(options.get("json")))


def show(noun: str, answer: dict[str, object], welcome: dict[str, object], *, as_json: bool) -> int:
    """Print an answer for eyes or programs; the exit status."""
    refusal = answer.get("refusal")
    if isinstance(refusal, dict):
        return refused(refusal, welcome, as_json=as_json)
    body = answer["answer"]
    if as_json:
        import json

        whole = {"answer": body, "replayed": answer["replayed"], "seq": answer["seq"]}
        print(json.dumps(whole, ensure_ascii=False))
    else:
        from client.cli.render import text

        print(text(noun, body))
    return 3 if isinstance(body, dict) and body.get("timed_out") else 0


def refused(refusal: dict[str, object], welcome: dict[str, object], *, as_json: bool) -> int:
    """Print a refusal on stderr; its exit status."""
    code = str(refusal["code"])
    status, retry, meaning = CODES.get(code, (1, "never", "Refused."))
    if as_json:
        import json

        print(json.dumps({"refusal": {**refusal, "retry": retry}}, ensure_ascii=False), file=sys.stderr)
        return status
    about = f" {refusal['about']}" if refusal.get("about") else ""
    print(f"firm: {meaning} [{code}{about}]", file=sys.stderr)
    print(f"  To lift it: {refusal['lifted_by']}.", file=sys.stderr)
    if welcome and welcome.get("table") != DIGEST:
        print(
            f"  This firm and the daemon are different builds; the daemon's is {welcome['firm_bin']}.",
            file=sys.stderr,
        )
    return status


def unavailable(gone: door.Unavailable, key: str) -> int:
    print(f"firm: No daemon answers: {gone}. [NODE_DAEMON_UNAVAILABLE]", file=sys.stderr)
    if gone.sent and key:
        print(f"  The request may have been done. Ask again with --idempotency-key {key}", file=sys.stderr)
    print("  To lift it: firm node start", file=sys.stderr)
    return 4


def usage(what: str, hint: str = "", see: str = "firm --help") -> int:
    print(f"firm: {what}{hint}. See {see}.", file=sys.stderr)
    return 2


def near(word: str, known: list[str]) -> str:
    import difflib

    found = difflib.get_close_matches(word, known, 1)
    return f"; did you mean {found[0]!r}?" if found else ""


def _help() -> str:
    lines = [
        "firm: durable teams of coding agents on one machine.",
        "",
        "Usage: firm NOUN VERB [arguments] [--json]",
        "",
    ]
    lines += [f"  {noun:<12}{help_line}" for noun, help_line in NOUNS.items()]
    lines += ["", "Often used:"]
    lines += [f"  {'node ' + verb:<12}{text}" for (noun, verb), (_, text) in BY_HAND.items() if noun == "node"][:4]
    lines += ["  wait        Wait until something is true: firm wait team:ID.state=active"]
    lines += ["  events      List what was committed; firm watch follows it."]
    lines += ["  completion  Print the shell completion for bash, zsh or fish."]
    lines += ["", "firm NOUN --help lists its verbs, firm NOUN VERB --help their arguments."]
    lines += ["Exit status: 0 done, 1 refused, 2 usage, 3 ask again, 4 no daemon, 5 needs recovery."]
    return "\n".join(lines)


def _noun_help(noun: str, verbs: dict[str, Verb]) -> str:
    rows = {verb: row[2] for verb, row in verbs.items()}
    rows.update({verb: text for (n, verb), (_, text) in BY_HAND.items() if n == noun})
    wide = max(len(verb) for verb in rows) + 2
    lines = [f"firm {noun}: {NOUNS[noun]}", ""]
    lines += [f"  {verb:<{wide}}{rows[verb]}" for verb in sorted(rows)]
    return "\n".join([*lines, "", f"firm {noun} VERB --help shows its arguments."])
