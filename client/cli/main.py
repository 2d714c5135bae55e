"""The light door: find the verb, read its arguments, ask, say, exit.

Exit status: 0 done, 1 refused, 2 usage, 3 ask again, 4 no daemon, 5 needs recovery.
"""

from __future__ import annotations

import os
import sys
from types import ModuleType

from client import paths
from client.cli import arguments, say
from client.cli import ask as door
from client.cli.arguments import Usage, Verb
from client.cli.index import DIGEST, NOUNS

#: What people type most, in one word.
ALIASES = {
    "board": ("team-run", "board"),
    "events": ("event", "list"),
    "hook": ("session", "hook"),
    "inbox": ("message", "inbox"),
    "wait": ("event", "wait"),
    "watch": ("event", "watch"),
}

#: Words that may stand before a noun, as agents are taught to type them: the daemon knows who asks without them.
DOORS = ("member", "team-run")

#: Commands that are not one operation: module under client.cli.by_hand, and help. Their FIELDS are in the module.
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
    ("node", "purge"): (
        "purge",
        "Export what was said in a run that is over to a file, then remove it from the database.",
    ),
    ("event", "watch"): ("watch", "Follow events as they are committed."),
    ("work", "graph"): ("graph", "Draw the Works of a run and what they need of each other."),
    ("work", "submit"): (
        "submit",
        "Submit a Work with its evidence for review. Only acceptance makes it done.",
    ),
    ("workspace", "archive"): (
        "archive",
        "Take a member's worktree away, unless something in it is in no commit; its branch stays.",
    ),
    ("session", "hook"): ("hook", "Say what an agent's own hook was run for; silent, and 0 whatever comes of it."),
    ("session", "type"): ("typing", "Step in at a member's terminal; until you leave, nobody else types there."),
    ("up", ""): ("up", "Start what a team file describes, and follow it until it is done."),
    ("down", ""): ("down", "End the processes of a run, and prove that they ended."),
    ("ps", ""): ("ps", "Show who runs, in which process, and what it does."),
    ("attach", ""): ("attach", "Look at a member's terminal; with --type, step in there."),
    ("logs", ""): ("screen", "Print what stands on a member's terminal, or stood there last."),
    ("interrupt", ""): ("member", "Interrupt what a member does now."),
    ("close", ""): ("member", "End a member's process and close its place."),
    ("reopen", ""): ("reopen", "Take a closed member back."),
    ("send", ""): ("send", "Send a member a message, as the Host of its team."),
    ("recover", ""): ("recover", "Say what a lost attempt left behind, and open its Work again."),
    ("resolve", ""): ("resolve", "Decide what was done to a process and could not be read back."),
    ("completion", ""): ("completion", "Print the shell completion for bash, zsh or fish."),
}
#: Those of them that are one word.
ONE_WORD = [noun for noun, verb in BY_HAND if not verb]

#: What the first help begins with.
_OFTEN = {
    "up FILE, down, ps": "Start a team file, end its run, see who runs.",
    "attach, logs NAME": "Look at the terminal of a member; print it.",
    "interrupt, close, reopen": "A member by its name: what it does; its process.",
    "send, recover, resolve": "Mail to a member; what was lost; what is not known.",
    "board, inbox, watch, wait": "Where a run stands; mail; what happens.",
}
_HELP = {"-h", "--help", "help"}
_INTERRUPTED = 130


def main(words: list[str]) -> int:
    status = _ended(words)
    if "client.cli.editor" in sys.modules:
        load("client.cli.editor").settle(status)
    return status


def _ended(words: list[str]) -> int:
    as_json = "--json" in words
    if words[:1] == ["hook"] or words[:2] in (["member", "hook"], ["session", "hook"]):
        return int(load("client.cli.by_hand.hook").harmless(_main, words))
    try:
        return _main(words)
    except Usage as wrong:
        return say.misused(wrong, as_json=as_json)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # else the interpreter complains at its end
        return 0
    except say.Unheard as why:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return say.declined(
            "ANSWER_LOST",
            "",
            f"The answer could not be written: {why}.",
            "look at where standard output goes; what was asked for is done, and firm events shows it",
            as_json=as_json,
        )
    except paths.NoHome as none:
        return say.declined("USAGE", "", none.meaning, none.lifted_by, as_json=as_json)
    except KeyboardInterrupt:
        return _INTERRUPTED


def _main(words: list[str]) -> int:
    if words[:1] == ["help"]:
        words = [*words[1:], "--help"]
    if not words or words[0] in _HELP:
        say.out(_help())
        return 0
    if words[0] in {"-V", "--version", "version"}:
        from importlib.metadata import version

        say.out(f"firm {version('firm-node')}")
        return 0
    if words[:3] == ["completion", "words", "--"]:
        return int(load("client.cli.by_hand.completion").offer(words[3:]))
    noun, verb, rest = _command(words)
    if verb in _HELP:
        say.out(_noun_help(noun))
        return 0
    command = f"firm {noun} {verb}".strip()
    if (noun, verb) in BY_HAND:
        name, summary = BY_HAND[noun, verb]
        module = load(f"client.cli.by_hand.{name}")
        if _wants_help(rest):
            return _verb_help(command, summary, module.FIELDS, getattr(module, "MORE", ""))
        return int(module.run(verb or noun, arguments.take(command, module.FIELDS, rest)))
    row = verbs_of(noun)[verb]
    if _wants_help(rest):
        return _verb_help(command, row[2], arguments.with_options(row[1], row[3]))
    return _operation(noun, verb, row, rest)


def load(name: str) -> ModuleType:
    __import__(name)
    return sys.modules[name]


def verbs_of(noun: str) -> dict[str, Verb]:
    found: dict[str, Verb] = load(f"client.cli.index.{noun.replace('-', '_')}").VERBS
    return found


def known_verbs(noun: str) -> dict[str, str]:
    """Every verb of a noun with its help, those by hand too."""
    rows = {verb: row[2] for verb, row in verbs_of(noun).items()}
    rows.update({verb: text for (n, verb), (_, text) in BY_HAND.items() if n == noun})
    return rows


def _command(words: list[str]) -> tuple[str, str, list[str]]:
    """Noun, verb and the rest. Raises ``Usage`` where there is no such command."""
    noun, *rest = words
    if noun in DOORS and rest and (rest[0] in ALIASES or (rest[0] in NOUNS and rest[0] not in DOORS)):
        return _command(rest)
    if noun in ALIASES:
        return *ALIASES[noun], rest
    if (noun, "") in BY_HAND:
        return noun, "", rest
    if noun.startswith("-"):
        raise Usage(f"{arguments.quoted(noun)} stands before the command", f"write firm NOUN VERB {noun}")
    if noun not in NOUNS:
        raise Usage(f"there is no command {arguments.quoted(noun)}", _instead_of(noun))
    verb, rest = (rest[0], rest[1:]) if rest else ("", [])
    if verb in _HELP:
        return noun, "help", []
    if (noun, verb) not in BY_HAND and verb not in verbs_of(noun):
        raise Usage(*_no_verb(noun, verb))
    return (noun, verb, ["--help"]) if rest[:1] == ["help"] else (noun, verb, rest)


def _instead_of(word: str) -> str:
    owners = [noun for noun in NOUNS if word in known_verbs(noun)]
    if owners:
        return f"{word} is a verb; say of what: " + arguments.listing(tuple(f"firm {noun} {word}" for noun in owners))
    meant = arguments.near(word, [*NOUNS, *ALIASES, *ONE_WORD])
    return f"did you mean firm {meant}? All commands: firm --help" if meant else "see all commands: firm --help"


def _no_verb(noun: str, verb: str) -> tuple[str, str]:
    known = sorted(known_verbs(noun))
    if not verb or verb.startswith("-"):
        return f"firm {noun} needs a verb", f"{arguments.listing(tuple(known))}; firm {noun} --help explains them"
    meant = arguments.near(verb, known)
    hint = f"did you mean firm {noun} {meant}? All verbs" if meant else "see its verbs"
    return f"firm {noun} has no verb {arguments.quoted(verb)}", f"{hint}: firm {noun} --help"


def _wants_help(rest: list[str]) -> bool:
    own = rest[: rest.index("--")] if "--" in rest else rest
    return "-h" in own or "--help" in own


def _operation(noun: str, verb: str, row: Verb, rest: list[str]) -> int:
    op, effect, _, _ = row
    body, options = arguments.parse(noun, verb, row, rest)
    as_json = bool(options["json"])
    key = str(options["key"] or (door.new_key() if effect == "write" else ""))
    try:
        answer, welcome = door.once(DIGEST, op, body, key)
    except door.Unavailable as gone:
        return say.unavailable(gone, key, as_json=as_json)
    except door.TooLarge as size:
        return say.too_large(size, as_json=as_json)
    return say.answered(op, answer, welcome, key, as_json=as_json)


def _help() -> str:
    from client.cli import manual

    return manual.whole(_OFTEN, NOUNS)


def _noun_help(noun: str) -> str:
    from client.cli import manual

    return manual.noun(noun, NOUNS[noun], known_verbs(noun))


def _verb_help(command: str, summary: str, fields: tuple[arguments.Field, ...], more: str = "") -> int:
    """``more`` is what a command by hand has to say beside its arguments."""
    from client.cli import manual

    say.out(manual.verb(command, summary, fields) + more)
    return 0
