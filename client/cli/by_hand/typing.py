"""``firm session type``, and ``firm attach --type``: a person steps in at a member's terminal."""

from __future__ import annotations

import os
from typing import Any

from client.cli import ask as door
from client.cli.arguments import JSON, Field, Usage
from client.cli.crew import Refused, guarded
from client.cli.index import DIGEST
from client.cli.index.session import VERBS

FIELDS: tuple[Field, ...] = (*VERBS["type"][3], JSON)


def run(_: str, given: dict[str, object]) -> int:
    as_json = bool(given.pop("_json", False))
    return guarded(lambda: step_in(str(given["session_id"])), as_json=as_json)


def step_in(session_id: str) -> int:
    """This process becomes the one that shows the terminal, and holds the connection: with its end, however that comes,
    the daemon knows that the person has left.
    """
    if not os.isatty(0):
        raise Usage("a person types on a terminal", f"send it something instead: firm session steer {session_id}")
    conversation = door.Conversation(DIGEST)
    answer = conversation.ask("session.type", {"session_id": session_id})
    refusal: Any = answer.get("refusal")
    if refusal is not None:
        raise Refused(refusal, conversation.welcome)
    conversation.outlive_exec()
    shown: Any = answer["answer"]
    argv: list[str] = shown["argv"]
    return os.execvp(argv[0], argv)  # noqa: S606 — the words are the daemon's own
