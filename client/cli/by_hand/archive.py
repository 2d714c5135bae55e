"""``firm workspace archive``: take a member's worktree away, and say what came of it."""

from __future__ import annotations

from typing import Any

from client.cli import say
from client.cli.arguments import JSON, Field
from client.cli.crew import Node, guarded, one_of
from client.cli.index.workspace import VERBS

_OWN: dict[str, Field] = {field[0]: field for field in VERBS["archive"][3]}
_WHOSE = "the worktree, by its member's name or its path"
FIELDS: tuple[Field, ...] = (
    ("workspace", "--workspace", "str", True, None, None, False, "", _WHOSE),
    _OWN["reason"],
    JSON,
)
#: Seconds in which the folder has to be gone: it may be a large one.
_SECONDS = 600


def run(_: str, given: dict[str, object]) -> int:
    as_json = bool(given.get("_json"))
    named, reason = str(given["workspace"]), str(given.get("reason", ""))
    return guarded(lambda: _archive(named, reason, as_json=as_json), as_json=as_json)


def _archive(named: str, reason: str, *, as_json: bool) -> int:
    node = Node()
    there = [_named(each) for each in node.ask("workspace.list")["items"]]
    one = one_of(there, named, "worktree")
    effect = node.read_back(node.ask("workspace.archive", path=one["id"], reason=reason), _SECONDS)
    if effect["certainty"] == "not_applied":
        code, _, lifted_by = effect["readback"].partition(": ")
        refusal: dict[str, object] = {"code": code, "about": one["id"], "lifted_by": lifted_by, "current_version": None}
        return say.refused(refusal, {}, as_json=as_json)
    if as_json:
        say.out(say.dumps({"effect": effect}))
    elif effect["certainty"] == "applied":
        say.out(f"{one['id']}: {effect['readback']}")
    else:
        say.out(f"{one['id']}: not done within {_SECONDS} s (effect {effect['id']})")
    return 0 if effect["certainty"] == "applied" else 1


def _named(each: Any) -> dict[str, Any]:
    return {"id": each["path"], "names": [each["name"], each["path"]], "says": f"of {each['name']} in {each['team']}"}
