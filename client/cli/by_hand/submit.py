"""``firm work submit``: with neither a commit nor ``--report-only`` the workspace decides, before anything is sent."""

from __future__ import annotations

from typing import Any

from client.cli import arguments, say
from client.cli import ask as door
from client.cli.arguments import Field
from client.cli.index import DIGEST
from client.cli.index.work import VERBS

OP, EFFECT, _, OWN = VERBS["submit"]
TEMPLATE: Field = (
    "_template",
    "--template",
    "instead",
    False,
    None,
    None,
    False,
    "",
    "print the headings of a result summary, and submit nothing",
)
FIELDS: tuple[Field, ...] = (*arguments.with_options(EFFECT, OWN), TEMPLATE)
HEADINGS = """\
## RESULT
Done, or what is missing.

## SUMMARY
What changed, and why so.

## COVERAGE
Each criterion, and what shows that it is met.

## WORKTREE
Branch, commit, and what is in no commit.

## ARTIFACTS
What came of it, where it is, its digest."""


def run(_: str, given: dict[str, object]) -> int:
    if given.pop("_template", False):
        say.out(HEADINGS)
        return 0
    as_json, key = bool(given.pop("_json", False)), str(given.pop("_key", None) or door.new_key())
    body, chosen = arguments.body(OWN, given), dict[str, object]()
    try:
        if not body.get("candidate_revision") and not body.get("report_only"):
            decided = _decide(str(body.get("work_id", "")), as_json=as_json)
            if isinstance(decided, int):
                return decided
            chosen = decided
        answer, welcome = door.once(DIGEST, OP, {**body, **chosen}, key)
    except door.Unavailable as gone:
        return say.unavailable(gone, key, as_json=as_json)
    except door.TooLarge as size:
        return say.too_large(size, as_json=as_json)
    if chosen and not as_json and "answer" in answer:
        commit = chosen.get("candidate_revision")
        say.out(f"Submitted commit {commit}." if commit else "Nothing was committed here: submitted the report only.")
    return say.answered(OP, answer, welcome, key, as_json=as_json, chosen=chosen)


def _decide(work_id: str, *, as_json: bool) -> dict[str, object] | int:
    """What the workspace says is submitted; the exit status where it cannot say."""
    shown, welcome = door.once(DIGEST, "work.show", {"work_id": work_id}, "")
    if "refusal" in shown:
        return say.answered("work.show", shown, welcome, as_json=as_json)
    found: Any = shown["answer"]
    if not found["bindings"]:
        return {}  # nothing was begun, and the daemon says so best
    from client.cli import workspace

    both = "give --candidate-revision COMMIT or --report-only"
    try:
        commit = workspace.candidate(found["bindings"][-1]["created_at"] / 1000)
    except workspace.Dirty as changes:
        meaning = f"The workspace has changes that are in no commit: {changes}."
        lifted_by = f"commit them, or {both}"
        return say.declined("WORKSPACE_DIRTY", "workspace", meaning, lifted_by, as_json=as_json)
    except workspace.Unclear as why:
        meaning = f"Git does not say what is in the workspace: {why}."
        return say.declined("WORKSPACE_UNCLEAR", "workspace", meaning, both, as_json=as_json)
    return {"candidate_revision": commit} if commit else {"report_only": True}
