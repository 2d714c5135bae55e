"""``firm attach NAME``: look at a member's terminal, or with ``--type`` step in there."""

from __future__ import annotations

import os

from client.cli import say
from client.cli.arguments import JSON, Field, Usage
from client.cli.by_hand.typing import step_in
from client.cli.crew import Node, guarded

TYPE: Field = (
    "type",
    "--type",
    "switch",
    False,
    None,
    None,
    False,
    "",
    "step in: what you type reaches it, and nobody else types there until you leave",
)
FIELDS: tuple[Field, ...] = (
    ("member", "--member", "str", True, None, None, False, "", "the member, by its name"),
    TYPE,
    JSON,
)


def run(_: str, given: dict[str, object]) -> int:
    as_json = bool(given.get("_json"))
    name = str(given["member"])
    if given.get("type"):
        return guarded(lambda: step_in(Node().session(name)["id"]), as_json=as_json)
    return guarded(lambda: _look(Node(), name, as_json=as_json), as_json=as_json)


def _look(node: Node, name: str, *, as_json: bool) -> int:
    """This process becomes the one that shows the terminal; nothing that is typed reaches the member."""
    found = node.ask("session.terminal", session_id=node.session(name)["id"])
    if not found["live"]:
        raise Usage(f"{name!r} has no process any more", f"read what stood on its terminal last: firm logs {name}")
    if as_json:
        say.out(say.dumps({"argv": found["argv"]}))
        return 0
    if not os.isatty(0):
        raise Usage("a terminal is shown on a terminal", f"read it instead: firm logs {name}")
    argv: list[str] = found["argv"]
    return os.execvp(argv[0], argv)  # noqa: S606 — the words are the daemon's own
