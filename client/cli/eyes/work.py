"""``firm work show``: how a Work stands, the six headings it is given to its member under, and what is next."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from client.cli.eyes import names, standing
from client.cli.eyes.sheet import block, clean, columns, counted, head, section
from client.cli.render import ago

_LIVE = ("claimed", "orphaned_unverified")


def lay(shown: dict[str, Any]) -> str:
    work = shown["work"]
    around = work["needs"] or shown["successors"]
    shown = {**shown, "known": names.works(work["team_run_id"]) if around else {}}
    lines = [head(f"{work['id']}  {standing.word(work, _readiness(shown))}, version {work['version']}")]
    lines += _state(shown)
    lines += section("What", block(work["title"]))
    lines += section("Mental model", block(work["context"]) or ["  nothing said"])
    lines += section("Workspace", _workspace(shown))
    lines += section("Boundary", _boundary(shown))
    lines += section("Gates", _gates(shown))
    lines += section(
        "Evidence", [line for receipt in shown["receipts"] for line in _evidence(receipt)] or ["  none yet"]
    )
    return "\n".join([*lines, *section("Next", [f"  {line}" for line in _next(shown)])])


def _readiness(shown: dict[str, Any]) -> str:
    words = {"ready": standing.READY, "waiting_prerequisites": standing.WAITING}
    return words.get(shown["readiness"], standing.STUCK)


def _state(shown: dict[str, Any]) -> list[str]:
    work = shown["work"]
    owner = f"of {clean(shown['owner'])} ({work['owner_id']})" if work["owner_id"] else "nobody answers for it"
    priority = "" if work["priority"] == "normal" else f"; {work['priority']}"
    lines = [f"  phase {work['phase']}; {owner}{priority}; changed {ago(work['updated_at'])}"]
    return lines + (block(f"reason: {work['reason']}") if work["reason"] else [])


def _workspace(shown: dict[str, Any]) -> list[str]:
    """One line an attempt, the last one last: whoever shows another fence is refused."""
    delivered = {delivery["binding_id"]: delivery for delivery in shown["deliveries"]}
    rows: list[tuple[str, ...]] = []
    for binding in shown["bindings"]:
        delivery = delivered.get(binding["id"])
        state = f"delivery {delivery['state'].replace('_', ' ')}" if delivery else "no delivery"
        custody = binding["custody"].replace("_", " ")
        why = clean(binding["reason"]) if binding["reason"] else ""
        rows.append(
            (
                f"fence {binding['fence']}",
                custody,
                state,
                f"session {binding['session_id']}",
                ago(binding["created_at"]),
                why,
            )
        )
    return columns(rows, 5, "  ") or ["  no attempt yet"]


def _boundary(shown: dict[str, Any]) -> Iterator[str]:
    work = shown["work"]
    if work["needs"]:
        left = f"; waits for {_works(shown, shown['waits_for'])}" if shown["waits_for"] else "; all accepted"
        yield from block(f"needs {_works(shown, work['needs'])}{left}")
    if shown["successors"]:
        yield from block(f"needed by {_works(shown, shown['successors'])}")
    agents = names.agents() if work["eligible"] or work["owner_id"] else {}
    may = ["the Host assigns it"] if work["claim_mode"] == "host_assign" else ["whoever claims it"]
    may += [f"only the role {work['required_role']}"] if work["required_role"] else []
    eligible = [f"{clean(agents[id_]['name'])} ({id_})" if id_ in agents else id_ for id_ in work["eligible"]]
    may += [f"only {', '.join(eligible)}"] if eligible else []
    yield from block("; ".join(may))
    place = names.places(work["team_run_id"]).get(work["owner_id"]) if work["owner_id"] else None
    agent = agents.get(place["member_run"]["agent_member_id"]) if place else None
    if agent:
        ceiling = f"{agent['ceiling'].replace('_', ' ')} (recorded, not enforced)"
        yield f"  ceiling of its owner: {ceiling}, workspace {clean(agent['workspace'])}"


def _works(shown: dict[str, Any], ids: list[str]) -> str:
    """Works by their titles, each with its id."""
    known = shown["known"]
    return ", ".join(f"{clean(known[id_]['title'])} ({id_})" if id_ in known else id_ for id_ in ids)


#: Answers of an owner that say nothing of a check.
_SILENT = ("not answered yet", "unanswered")


def _gates(shown: dict[str, Any]) -> Iterator[str]:
    """Each criterion with what the last receipt answered, and each named check with what came of running it."""
    work, last = shown["work"], json.loads(shown["receipts"][-1]["body"]) if shown["receipts"] else {}
    for number, criterion in enumerate(work["criteria"], 1):
        first, *more = block(criterion, "     ") or ["     -"]
        yield f"  {number}. {first.strip()}: {_answered(last.get('criteria', []), 'criterion', number, criterion)}"
        yield from more
    for number, check in enumerate(work["checks"], 1):
        name, _, command = check.partition("=")
        said = _answered(last.get("checks", []), "check", number, name)
        yield f"  check {clean(name)}: {_ran(shown, check)}" + ("" if said in _SILENT else f"; its owner says: {said}")
        yield from block(command, "     ")
    if work["verifier_id"]:
        yield f"  verifier {clean(shown['verifier'])} ({work['verifier_id']}): {_verdict(shown['verdict'])}"
        if shown["verdict"]:
            yield from block(shown["verdict"]["reason"], "     ")
            for reference in shown["verdict"]["evidence"]:
                yield from block(f"evidence, as claimed: {reference}", "     ")


def _ran(shown: dict[str, Any], check: str) -> str:
    """What came of this very line on the last submission."""
    last = shown["receipts"][-1]["id"] if shown["receipts"] else ""
    for result in shown["checks"]:
        if (result["receipt_id"], result["line"]) == (last, check):
            where = f" on {clean(result['snapshot'])[:12]}" if result["snapshot"] else ""
            return f"{'passed' if result['passed'] else 'failed'}{where}, {ago(result['at'])}"
    return "not run yet"


def _verdict(verdict: dict[str, Any] | None) -> str:
    return f"{verdict['outcome']}, {ago(verdict['created_at'])}" if verdict else "nothing said yet"


def _answered(answers: list[dict[str, Any]], kind: str, number: int, wanted: str) -> str:
    """What the last submission said; what was changed since then was not answered."""
    each = answers[number - 1] if number <= len(answers) else {}
    return _answer(each) if each.get(kind) == wanted else "not answered yet"


def _answer(each: dict[str, Any]) -> str:
    note = f" ({clean(each['note'])})" if each.get("note") else ""
    return clean(each["answer"]).replace("_", " ") + note


def _evidence(receipt: dict[str, Any]) -> Iterator[str]:
    """What an attempt returned. References are claims until somebody has looked."""
    body = json.loads(receipt["body"])
    commit = body.get("candidate_revision")
    yield f"  {receipt['id']}: fence {receipt['fence']}, {receipt['outcome']}, {ago(receipt['created_at'])}"
    yield f"    commit {clean(commit)}" if commit else "    report only, no commit"
    yield from block(body.get("result_summary", ""), "    ")
    for name, words in (("artifact_refs", "artifact"), ("check_refs", "check")):
        for reference in body.get(name, ()):
            yield from block(f"{words}, as claimed: {reference}", "    ")


def _next(shown: dict[str, Any]) -> Iterator[str]:
    """The command that takes it on, as it can be copied; ``firm work`` refuses whoever may not."""
    work = shown["work"]
    named = f"{work['id']} --expected-version {work['version']}"
    live = next((b for b in reversed(shown["bindings"]) if b["custody"] in _LIVE), None)
    if work["phase"] == "closed":
        yield f"nothing: it is {work['resolution']}"
    elif work["condition"] == "on_hold":
        yield f"firm work unhold {named}"
    elif live and live["custody"] == "orphaned_unverified":
        yield f"firm work recover {named} --fence {live['fence']} --finding … --responsibility … --reason TEXT"
    elif work["condition"] == "blocked":
        yield f"firm work resume {named} --resolution TEXT"
    elif work["phase"] == "review":
        if work["verifier_id"] and shown["verdict"] is None:
            commit = json.loads(shown["receipts"][-1]["body"]).get("candidate_revision")
            revision = f" --revision {clean(commit)}" if commit else ""
            said = f"--receipt-id {work['receipt_id']}{revision} --outcome … --reason TEXT"
            yield f"firm member work verify {named} {said}"
        yield f"firm work accept {named} --receipt-id {work['receipt_id']}"
        yield f"firm work request-changes {named} --reason TEXT"
    elif work["phase"] == "active":
        yield f"firm member work submit {named} --result-summary TEXT"
    else:
        yield from _next_of_open(shown, named, live)


def _next_of_open(shown: dict[str, Any], named: str, live: dict[str, Any] | None) -> Iterator[str]:
    work = shown["work"]
    if live:
        yield f"firm member work start {named}"
    elif shown["readiness"] == "requires_host_attention":
        yield f"a prerequisite was not accepted: firm work replace-dependencies {named} or firm work cancel {named}"
    elif shown["waits_for"]:
        waits = counted(len(shown["waits_for"]), "prerequisite")
        yield f"it waits for {waits}: {_works(shown, shown['waits_for'])}"
    elif work["owner_id"]:
        yield f"it is given to the next session of {clean(shown['owner'])} that is idle"
    elif work["claim_mode"] == "host_assign":
        yield f"firm work assign {named} --membership-id ID"
    else:
        yield f"firm work claim {named}"
