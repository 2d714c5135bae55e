"""What a managed Host does with a submission. Pure: the same submission and results are always judged the same."""

from __future__ import annotations

import json
from collections.abc import Mapping

import attrs

from client.git import one_line
from client.protocol.attempt import Outcome, Receipt
from client.protocol.checks import named
from client.protocol.ids import MembershipId
from client.protocol.verdict import Verdict, Verification
from client.protocol.work import Condition, Phase
from client.protocol.work_asks import WorkShown

#: Attempts at one Work before a person has to look.
MOST_ATTEMPTS = 3
#: Characters of a reason, by the bounds of its request; of the end of one log and of a verdict in it.
_REASON, _TAIL, _VERDICT = 4000, 1500, 2000


@attrs.frozen
class Accept:
    receipt: Receipt


@attrs.frozen
class SendBack:
    receipt: Receipt
    reason: str


@attrs.frozen
class PutOnHold:
    receipt: Receipt
    reason: str


@attrs.frozen
class Leave:
    """Nothing now. ``why`` is said, once: a person has to look, or something is waited for."""

    why: str


Judgement = Accept | SendBack | PutOnHold | Leave


def judge(shown: WorkShown, own: MembershipId, *, logs: Mapping[str, str]) -> Judgement | None:
    """None for what is not this Host's to judge. ``logs`` holds the end of the log of each check, by name."""
    work, receipt = shown.work, _in_review(shown)
    if work.phase is not Phase.REVIEW or work.condition is not Condition.NORMAL or work.owner_id == own:
        return None
    answers = _answers(receipt) if receipt else None
    if receipt is None or answers is None:
        return Leave("its receipt cannot be read; a person has to look")
    results = {result.name: result for result in shown.checks if result.line in work.checks}
    names = [named(line) for line in work.checks]
    if missing := [name for name in names if name not in results]:
        return Leave(f"waits for the result of: {', '.join(missing)}")
    failed = [name for name in names if not results[name].passed]
    not_met = [text for text, answer in answers if answer == "not_met"]
    refuted = shown.verdict if shown.verdict and shown.verdict.outcome is Verification.FAILED else None
    if failed or not_met or refuted:
        said = _said(failed, not_met, logs, {n: results[n].log_digest for n in failed})
        return _not_good(shown, receipt, "\n".join(filter(None, [said, _refuted(shown.verifier, refuted)])))
    if open_ := [text for text, answer in answers if answer not in {"met", "not_applicable"}]:
        return Leave(f"a person has to look: nobody answered {one_line('; '.join(open_))}")
    if work.verifier_id is not None and shown.verdict is None:
        return Leave(f"waits for the verdict of {one_line(shown.verifier)}")
    if receipt.outcome is not Outcome.COMPLETED:
        return Leave("a person has to look: it says that it failed, and that every criterion is met")
    if not names and not shown.verdict:
        return Leave("nobody but its member says that it is done: a person names a check or a verifier, as the Host")
    return Accept(receipt)


def _not_good(shown: WorkShown, receipt: Receipt, what: str) -> SendBack | PutOnHold:
    """Back to its member, or after so many attempts to a person. One who takes it off hold sends it back once more."""
    attempts = len(shown.bindings)
    held = f"on hold after {attempts} attempts, {receipt.id} was the last:"
    if attempts < MOST_ATTEMPTS or shown.work.reason.startswith(held):
        return SendBack(receipt, what[:_REASON])
    lifts = (
        "a person decides, as the Host: change what it asks for, cancel it, or unhold it, and it is sent back once more"
    )
    return PutOnHold(receipt, f"{held} {lifts}.\n{what}"[:_REASON])


def _said(failed: list[str], not_met: list[str], logs: Mapping[str, str], digests: Mapping[str, str]) -> str:
    found = [f"not met: {one_line(text)}" for text in not_met]
    for name in failed:
        end = f"the end of its log:\n{logs[name][-_TAIL:]}" if name in logs else "its log is not here"
        found.append(f"check {name} failed, log sha256:{digests[name]}; {end}")
    return "\n".join(found)


def _refuted(verifier: str, verdict: Verdict | None) -> str:
    if verdict is None:
        return ""
    evidence = f"\nevidence: {', '.join(map(one_line, verdict.evidence))}" if verdict.evidence else ""
    return f"verified by {one_line(verifier)}, who says that it does not hold: {verdict.reason[:_VERDICT]}{evidence}"


def _in_review(shown: WorkShown) -> Receipt | None:
    return next((receipt for receipt in shown.receipts if receipt.id == shown.work.receipt_id), None)


def _answers(receipt: Receipt) -> list[tuple[str, str]] | None:
    """Each criterion, and met, not_met, not_applicable or unanswered. None where it is not what a submission writes:
    acceptance would be refused as well.
    """
    try:
        return [(str(each["criterion"]), str(each["answer"])) for each in json.loads(receipt.body)["criteria"]]
    except (ValueError, KeyError, TypeError):
        return None
