"""``firm resolve``: what was done to a process and could not be read back; what a person found out of it."""

from __future__ import annotations

from typing import Any

from client.cli import say
from client.cli.arguments import JSON, Field, Usage
from client.cli.crew import IN_RUN, Node, choices, guarded, one_of, optional
from client.cli.index.effect import VERBS

#: What a person has to have found out. Not required by the parser: what is missing is said beside what is not known.
SAYS = ("finding", "reason")
_NAMED = "the effect, by id, or the member, by name; all that are not known when left out"
_OWN: dict[str, Field] = {field[0]: field for field in VERBS["resolve"][3]}
FIELDS: tuple[Field, ...] = (
    ("effect", "--effect", "str", False, "", None, False, "", _NAMED),
    *(optional(_OWN[name]) for name in SAYS),
    IN_RUN,
    JSON,
)
_MEANS = {
    "confirm_applied": "it was done",
    "confirm_not_applied": "it was not done",
    "keep": "nobody knows yet; it stays as it is",
}


def run(_: str, given: dict[str, object]) -> int:
    as_json = bool(given.pop("_json", False))
    return guarded(lambda: _resolve(given, as_json=as_json), as_json=as_json)


def _resolve(given: dict[str, Any], *, as_json: bool) -> int:
    node = Node()
    unknown = [each for run_ in node.runs(given.get("team_run_id", "")) for each in _unknown(node, run_["id"])]
    if not given.get("effect"):
        return _list(unknown, as_json=as_json)
    one = one_of(unknown, given["effect"], "effect that is not known")
    if any(not given.get(name) for name in SAYS):
        raise Usage(f"what became of the {one['says']} is not said", _command(one["id"]))
    said = {name: given[name] for name in SAYS}
    effect = node.ask("effect.resolve", effect_id=one["id"], expected_version=one["version"], **said)
    if as_json:
        say.out(say.dumps({"effect": effect}))
    else:
        state, certainty = (str(effect[name]).replace("_", " ") for name in ("state", "certainty"))
        say.out(f"The {one['says']} is {state}: {certainty}")
    return 0


def _unknown(node: Node, run_id: str) -> list[dict[str, Any]]:
    effects = node.every("effect.list", team_run_id=run_id, state="recovery_required")
    if not effects:
        return []
    names = {each["id"]: each["name"] for each in node.every("agent.list")}
    found: list[dict[str, Any]] = []
    for effect in effects:
        session = node.ask("session.show", session_id=effect["session_id"])["session"]
        member = names[session["agent_member_id"]]
        found.append(
            {
                "id": effect["id"],
                "version": effect["version"],
                "kind": effect["kind"],
                "member": member,
                "pid": effect["pid"] or None,
                "readback": effect["readback"],
                "since": effect["updated_at"],
                "names": [effect["id"], member],
                "says": f"{effect['kind']} of {member}",
            }
        )
    return found


def _command(effect: str) -> str:
    return f"firm resolve {effect} {' '.join(choices(FIELDS, name) for name in SAYS)}"


def _list(unknown: list[dict[str, Any]], *, as_json: bool) -> int:
    if as_json:
        kept = ("id", "version", "kind", "member", "pid", "readback", "since")
        found = [{name: each[name] for name in kept} for each in unknown]
        say.out(say.dumps({"unknown": found, "choices": {"finding": list(_OWN["finding"][5] or ())}}))
        return 0
    if not unknown:
        say.out("Nothing is unknown: whatever was done to a process was read back.")
        return 0
    from client.cli.eyes.sheet import clean, columns, section

    head = ("EFFECT", "MEMBER", "WHAT", "PID", "WHY")
    rows = [tuple(clean(each[name]) for name in ("id", "member", "kind", "pid", "readback")) for each in unknown]
    lines = columns([head, *rows], 4)
    lines += section("Look whether its process is there, then say one of", columns(list(_MEANS.items()), 1, "  "))
    say.out("\n".join([*lines, "", _command("EFFECT")]))
    return 0
