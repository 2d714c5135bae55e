"""``firm reopen``: a closed member takes part again, and goes on with its conversation or begins a new one."""

from __future__ import annotations

from client.cli import say
from client.cli.arguments import JSON, Field, Usage
from client.cli.crew import GOES_ON_BY, Node, guarded
from client.cli.index.member_run import VERBS

(_FRESH,) = (field for field in VERBS["reopen"][3] if field[0] == "fresh")
FIELDS: tuple[Field, ...] = (
    ("member", "--member", "str", True, None, None, False, "", "the member, by its name"),
    _FRESH,
    JSON,
)


def run(_: str, given: dict[str, object]) -> int:
    as_json = bool(given.get("_json"))
    return guarded(lambda: _reopen(str(given["member"]), bool(given.get("fresh")), as_json), as_json=as_json)


def _reopen(name: str, fresh: bool, as_json: bool) -> int:  # noqa: FBT001 — as they were given
    node = Node()
    run_, found = node.place(name)
    place = found["member_run"]
    if place["coordination"] != "closed":
        raise Usage(f"{name!r} has no closed place in run {run_['id']}", "see who takes part: firm ps")
    body = {"member_run_id": place["id"], "expected_version": place["version"]}
    opened = node.ask("member-run.reopen", **body, fresh=fresh)
    said = f"{name} takes part again; its process is started{', in a new conversation' if fresh else ''}"
    if verb := GOES_ON_BY.get(run_["state"]):
        command = f"firm team-run {verb} {run_['id']} --expected-version {run_['version']}"
        said = f"{said} once the run, which is {run_['state']}, goes on: {command}"
    say.out(say.dumps({"member_run": opened}) if as_json else f"{said}{'' if verb else '.'}")
    return 0
