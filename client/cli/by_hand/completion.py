"""``firm completion SHELL``: a script for the shell, and the words it asks for.

The shell calls ``firm completion words -- WORD…``; ids and names come from the daemon, and none where it does not
run. A word is offered only if it means itself in every shell: what somebody called a team is never run.
"""

from __future__ import annotations

from typing import Any

from client.cli import ask as door
from client.cli import say
from client.cli.arguments import KEY, SWITCHES, Field, leading, with_options
from client.cli.index import DIGEST, NOUNS
from client.cli.main import ALIASES, BY_HAND, ONE_WORD, known_verbs, load, verbs_of

# compgen -W would expand what it is given, so the words arrive filtered and are taken as they are.
SCRIPTS = {
    "bash": """\
_firm() {
    mapfile -t COMPREPLY < <(firm completion words -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -o default -F _firm firm
""",
    "zsh": """\
#compdef firm
_firm() {
    local -a found
    found=("${(@f)$(firm completion words -- "${(@)words[2,CURRENT]}" 2>/dev/null)}")
    if [[ -n "$found" ]]; then compadd -- "${found[@]}"; else _files; fi
}
compdef _firm firm
""",
    "fish": """\
function __firm_words
    set -l typed (commandline -opc)
    set -l found (firm completion words -- $typed[2..-1] (commandline -ct) 2>/dev/null)
    if set -q found[1]
        printf '%s\\n' $found
    else
        __fish_complete_path (commandline -ct)
    end
end
complete -c firm -f -a '(__firm_words)'
""",
}
FIELDS: tuple[Field, ...] = (
    (
        "shell",
        "--shell",
        "str",
        True,
        None,
        tuple(SCRIPTS),
        False,
        "",
        'which shell; eval "$(firm completion bash)" turns it on',
    ),
)
#: Seconds: somebody waits with a finger on the key.
_PATIENCE = 2
_SAFE = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-+/:=@,")
#: Which list knows the values of a field, where its name does not say it.
_LISTS = {
    "agent_member_id": ("agent.list", ("id", "name")),
    "effect": ("agent.list", ("name",)),
    "host_agent_id": ("agent.list", ("id", "name")),
    "member": ("agent.list", ("name",)),
    "record": ("node.quarantine", ("record",)),
    "team_id": ("team.list", ("id", "name")),
    "to_agent_id": ("agent.list", ("id", "name")),
    "work": ("agent.list", ("name",)),
}


def run(_: str, given: dict[str, object]) -> int:
    say.out(SCRIPTS[str(given["shell"])].rstrip())
    return 0


def offer(typed: list[str]) -> int:
    """``firm completion words -- WORD…``: one a line, as they are."""
    begun = typed[-1] if typed and typed[-1] != "=" else ""
    found = sorted({word for word in words(typed) if word.startswith(begun) and _safe(word)})
    if found:
        say.out("\n".join(found))
    return 0


def words(typed: list[str]) -> list[str]:
    """What can stand where the last of ``typed`` stands; it may be empty or half a word."""
    *before, begun = typed or [""]
    if not before:
        return [*NOUNS, *ALIASES, *ONE_WORD, "help"]
    noun, *rest = before
    if noun == "help":
        return words([*rest, ""])
    if noun == "completion":
        return [] if rest else list(SCRIPTS)
    if noun in ONE_WORD:
        verb = ""
    elif noun in ALIASES:
        noun, verb = ALIASES[noun]
    elif noun in NOUNS and rest:
        verb, *rest = rest
    else:
        return [*known_verbs(noun)] if noun in NOUNS else []
    return _of_verb(_fields(noun, verb), rest, begun)


def _fields(noun: str, verb: str) -> tuple[Field, ...]:
    if (noun, verb) in BY_HAND:
        found: tuple[Field, ...] = load(f"client.cli.by_hand.{BY_HAND[noun, verb][0]}").FIELDS
        return found
    row = verbs_of(noun).get(verb)
    return with_options(row[1], row[3]) if row else ()


def _of_verb(fields: tuple[Field, ...], rest: list[str], begun: str) -> list[str]:
    valued = {field[1]: field for field in fields if field[2] not in SWITCHES}
    flag, joined, _ = begun.partition("=")
    if joined and flag in valued:
        return [f"{flag}={value}" for value in _values(valued[flag])]
    if begun == "=" or rest[-1:] == ["="]:  # bash takes --flag=value apart
        rest = rest if begun == "=" else rest[:-1]
    if rest and rest[-1] in valued:
        return _values(valued[rest[-1]])
    first = leading(fields)
    if first and not rest and not begun.startswith("-") and (first[7] or _values(first)):
        return _values(first)  # nothing for a path: the shell knows those
    return [*(field[1] for field in fields if field[6] or field[1] not in rest), "--help"]


def _values(field: Field) -> list[str]:
    name, _, _, _, _, choices, _, _, _ = field
    if choices or field is KEY:
        return list(choices or ())
    noun = name.removesuffix("_id")
    guess = (f"{noun}.list", ("id",)) if noun != name and noun in NOUNS and "list" in verbs_of(noun) else None
    known = _LISTS.get(name) or guess
    return _known(*known) if known else []


def _known(op: str, columns: tuple[str, ...]) -> list[str]:
    body: dict[str, object] = {"limit": 200} if op.endswith(".list") else {}
    try:
        conversation = door.Conversation(DIGEST, patience=_PATIENCE)
        answer: dict[str, Any] = conversation.ask(op, body)
    except door.Unavailable:
        return []
    rows: list[dict[str, Any]] = (answer.get("answer") or {}).get("items", [])
    values = [str(row[column]) for column in columns for row in rows]
    return [value for value in values if values.count(value) == 1]


def _safe(word: str) -> bool:
    return bool(word) and _SAFE.issuperset(word)
