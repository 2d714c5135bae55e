"""``firm watch``: events as they are committed, one line each, until interrupted."""

from __future__ import annotations

from typing import Any

from client.cli import ask as door
from client.cli import say
from client.cli.arguments import JSON, Field
from client.cli.index import DIGEST
from client.cli.index.event import VERBS
from client.cli.render import cell

FIELDS: tuple[Field, ...] = (*VERBS["watch"][3], JSON)


def run(_: str, given: dict[str, object]) -> int:
    as_json = bool(given.pop("_json", False))
    try:
        conversation = door.Conversation(DIGEST)
        conversation.begin("event.watch", given)
        while True:
            answer = conversation.next()
            refusal = answer.get("refusal")
            if isinstance(refusal, dict):
                return say.refused(refusal, conversation.welcome, as_json=as_json)
            page: Any = answer["answer"]
            for event in page["items"]:
                say.out(say.dumps(event) if as_json else _line(event))
    except door.Unavailable as gone:
        return say.unavailable(gone, as_json=as_json)


def _line(event: dict[str, Any]) -> str:
    shown = [cell(name, event[name]) for name in ("seq", "stream", "version", "kind", "actor")]
    return "{:>8}  {:<24}  v{:<4} {:<16} {}".format(*shown)
