"""One member of a run by its name: interrupt it, end it."""

from __future__ import annotations

from typing import Any

from client.cli import say
from client.cli.arguments import JSON, Field
from client.cli.crew import Node, guarded

FIELDS: tuple[Field, ...] = (
    ("member", "--member", "str", True, None, None, False, "", "the member, by its name"),
    ("reason", "--reason", "str", False, "", None, False, "", "why, for the record"),
    JSON,
)
#: Seconds in which an interrupt or an end has to be read back.
_SECONDS = 75


def run(verb: str, given: dict[str, object]) -> int:
    as_json = bool(given.get("_json"))
    name, reason = str(given["member"]), str(given.get("reason", ""))
    return guarded(lambda: _control(Node(), verb, name, reason, as_json=as_json), as_json=as_json)


def _control(node: Node, verb: str, name: str, reason: str, *, as_json: bool) -> int:
    effect = node.read_back(node.ask(f"session.{verb}", session_id=node.session(name)["id"], reason=reason), _SECONDS)
    done = effect["certainty"] == "applied"
    say.out(say.dumps({"effect": effect}) if as_json else _said(verb, name, effect))
    return 0 if done else 1


def _said(verb: str, name: str, effect: Any) -> str:
    if effect["certainty"] == "applied":
        return f"{name} was {'ended' if verb == 'close' else 'interrupted'}: {effect['readback']}"
    certainty, readback = effect["certainty"].replace("_", " "), effect["readback"] or "not read back"
    return f"{name}: {certainty}: {readback} (effect {effect['id']})"
