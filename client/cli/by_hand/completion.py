"""``firm completion SHELL``: a script for the shell, and the words it asks for.

The shell calls ``firm completion words -- WORD…``; ids and names come from the daemon, and none where it does not run.
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

from client import paths
from client.cli import ask as door
from client.cli.index import DIGEST, NOUNS
from client.cli.main import ALIASES, BY_HAND

SCRIPTS = {
    "bash": """\
_firm() {
    local IFS=$'\\n'
    local known=$(firm completion words -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
    COMPREPLY=($(compgen -W "$known" -- "${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _firm firm
""",
    "zsh": """\
#compdef firm
_firm() {
    local -a found
    found=("${(@f)$(firm completion words -- "${(@)words[2,CURRENT]}" 2>/dev/null)}")
    compadd -a found
}
compdef _firm firm
""",
    "fish": """\
complete -c firm -f -a '(firm completion words -- (commandline -opc)[2..] (commandline -ct) 2>/dev/null)'
""",
}
#: Which list knows the values of a field.
_LISTS = {
    "agent_member_id": ("agent.list", "id"),
    "host_agent_id": ("agent.list", "id"),
    "membership_id": ("membership.list", "id"),
    "project_id": ("project.list", "id"),
    "record": ("node.quarantine", "record"),
    "team_id": ("team.list", "id"),
    "to_agent_id": ("agent.list", "id"),
}


def run(_: str, arguments: list[str]) -> int:
    if arguments[:2] == ["words", "--"]:
        print("\n".join(sorted(words(arguments[2:]))))
        return 0
    parser = argparse.ArgumentParser("firm completion", description="Print the completion script of a shell.")
    parser.add_argument("shell", choices=sorted(SCRIPTS), help='eval "$(firm completion bash)" turns it on')
    print(SCRIPTS[parser.parse_args(arguments).shell], end="")
    return 0


def words(typed: list[str]) -> list[str]:
    """What can stand where the last of ``typed`` stands; it may be empty or half a word."""
    *before, _ = typed or [""]
    if not before:
        return [*NOUNS, *ALIASES, "completion"]
    noun, *rest = before
    if noun == "completion":
        return sorted(SCRIPTS)
    if noun in ALIASES:
        noun, verb = ALIASES[noun]
    elif noun in NOUNS and rest:
        verb, *rest = rest
    elif noun in NOUNS:
        return [*_verbs(noun), *(v for n, v in BY_HAND if n == noun)]
    else:
        return []
    row = _verbs(noun).get(verb)
    return _of_verb(row, rest) if row else []


def _verbs(noun: str) -> dict[str, Any]:
    module = f"client.cli.index.{noun}"
    __import__(module)
    found: dict[str, Any] = sys.modules[module].VERBS
    return found


def _of_verb(row: Any, rest: list[str]) -> list[str]:
    fields = row[3]
    after = rest[-1] if rest else ""
    for name, flag, _, _, _, choices, _, _, _ in fields:
        if after == flag:
            return list(choices) if choices else _ids(name)
    flags = [flag for _, flag, *_ in fields if flag not in rest]
    first = next((field for field in fields if field[3] and not field[6]), None)
    if first and not rest:
        return [*flags, *(first[5] or _ids(first[0]))]
    return flags


def _ids(field: str) -> list[str]:
    if field not in _LISTS:
        return []
    op, column = _LISTS[field]
    body: dict[str, object] = {} if op == "node.quarantine" else {"limit": 200}
    try:
        answer, _ = door.once(paths.home(), DIGEST, op, body, "")
    except door.Unavailable:
        return []
    page: Any = answer.get("answer")
    return [str(item[column]) for item in page["items"]] if page else []
