"""``firm recover``: the Works whose process was lost; what one left behind, and who goes on with it."""

from __future__ import annotations

from typing import Any

from client.cli import say
from client.cli.arguments import JSON, Field, Usage
from client.cli.crew import IN_RUN, Node, choices, guarded, one_of, optional
from client.cli.index.work import VERBS

#: What a person has to have found out. Not required by the parser: what is missing is said beside what was lost.
SAYS = ("finding", "responsibility", "reason")
_NAMED = "the Work, by id or title, or who had it, by name; all that were lost when left out"
_STILL = "do it only while that is the attempt that was lost"
_OWN: dict[str, Field] = {field[0]: field for field in VERBS["recover"][3]}
FIELDS: tuple[Field, ...] = (
    ("work", "--work", "str", False, "", None, False, "", _NAMED),
    *(optional(_OWN[name]) for name in (*SAYS, "evidence_refs")),
    ("fence", "--fence", "int", False, None, None, False, "", _STILL),
    IN_RUN,
    JSON,
)
_MEANS = {
    "NO_SIDE_EFFECTS": "it did nothing that stayed",
    "SIDE_EFFECTS_KEPT": "it did something, and that stays",
    "SIDE_EFFECTS_REVERTED": "it did something, and that was undone",
    "keep": "its owner gets it again",
    "release": "whoever may, takes it",
}


def run(_: str, given: dict[str, object]) -> int:
    as_json = bool(given.pop("_json", False))
    return guarded(lambda: _recover(given, as_json=as_json), as_json=as_json)


def _recover(given: dict[str, Any], *, as_json: bool) -> int:
    node = Node()
    lost = [each for run_ in node.runs(given.get("team_run_id", "")) for each in _lost(node, run_["id"])]
    if not given.get("work"):
        return _list(lost, as_json=as_json)
    one = one_of(lost, given["work"], "Work with a lost attempt")
    if any(not given.get(name) for name in SAYS):
        raise Usage(f"what became of {one['title']!r} is not said", _command(one["id"], one["fence"]))
    work = node.ask(
        "work.recover",
        work_id=one["id"],
        expected_version=one["version"],
        fence=given.get("fence", one["fence"]),
        evidence_refs=given.get("evidence_refs", []),
        **{name: given[name] for name in SAYS},
    )
    if as_json:
        say.out(say.dumps({"work": work}))
    else:
        from client.cli.eyes import text

        say.out(text("work.recover", work))
    return 0


def _lost(node: Node, run_id: str) -> list[dict[str, Any]]:
    """Also those that somebody has looked at already: their attention is silent, and they are lost all the same."""
    begun = node.every("work.list", team_run_id=run_id, phase="active")
    begun += [work for work in node.every("work.list", team_run_id=run_id, phase="open") if work["owner_id"]]
    if not begun:
        return []
    places = node.ask("team-run.show", team_run_id=run_id)["members"]
    members = {each["member_run"]["id"]: each["name"] for each in places}
    found: list[dict[str, Any]] = []
    for work in begun:
        last = next(iter(node.ask("work.show", work_id=work["id"])["bindings"][-1:]), None)
        if last is None or last["custody"] != "orphaned_unverified":
            continue
        member = members[last["member_run_id"]]
        found.append(
            {
                "id": work["id"],
                "version": work["version"],
                "title": work["title"],
                "member": member,
                "fence": last["fence"],
                "reason": last["reason"],
                "since": last["updated_at"],
                "names": [work["id"], work["title"], member],
                "says": f"{work['title']!r} of {member}",
            }
        )
    return found


def _command(work: str, fence: object) -> str:
    says = " ".join(choices(FIELDS, name) for name in SAYS)
    return f"firm recover {work} --fence {fence} {says}"


def _list(lost: list[dict[str, Any]], *, as_json: bool) -> int:
    if as_json:
        kept = ("id", "version", "title", "member", "fence", "reason", "since")
        given = {name: list(_OWN[name][5] or ()) for name in SAYS if _OWN[name][5]}
        say.out(say.dumps({"lost": [{name: each[name] for name in kept} for each in lost], "choices": given}))
        return 0
    if not lost:
        say.out("Nothing was lost: every attempt has its process, or was reviewed.")
        return 0
    from client.cli.eyes.sheet import clean, columns, section

    head = ("WORK", "MEMBER", "FENCE", "TITLE", "WHY")
    rows = [tuple(clean(each[name]) for name in ("id", "member", "fence", "title", "reason")) for each in lost]
    lines = columns([head, *rows], 3)
    lines += section("Look at what it left, then say one of each", columns(list(_MEANS.items()), 1, "  "))
    say.out("\n".join([*lines, "", _command("WORK", "N")]))
    return 0
