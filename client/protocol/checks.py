"""What the line of a named check says: ``NAME=COMMAND``, or ``NAME=limit=SECONDS COMMAND``. Pure.

The command is split into words as a shell would split it, and never given to one.
"""

from __future__ import annotations

import re
import shlex

import attrs

#: Seconds that a check may take, where its line names no limit of its own; and the most that a line may name.
SECONDS = 600
MOST_SECONDS = 86_400

_LIMIT = re.compile(r"limit=(\S*)\s*(.*)", re.DOTALL)


@attrs.frozen
class NamedCheck:
    name: str
    argv: tuple[str, ...]
    seconds: int


def named(line: str) -> str:
    """The name of a check."""
    return line.partition("=")[0]


def read(line: str) -> NamedCheck | str:
    """What to run and for how long, or what is wrong with the line."""
    name, _, command = line.partition("=")
    seconds = SECONDS
    if limited := _LIMIT.fullmatch(command.lstrip()):
        said, command = limited.groups()
        if not re.fullmatch(r"[0-9]{1,5}", said) or not 1 <= int(said) <= MOST_SECONDS:
            return f"limit={said[:20]} is no number of seconds from 1 to {MOST_SECONDS}"
        seconds = int(said)
    try:
        argv = tuple(shlex.split(command))
    except ValueError as error:
        return f"its command cannot be split into words: {error}"
    if not argv or not argv[0]:
        return "it names no program"
    return NamedCheck(name, argv, seconds)
