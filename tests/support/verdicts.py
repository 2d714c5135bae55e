"""A Work with a verifier at the stages of its way: submitted, checked, verified."""

from __future__ import annotations

from typing import Any

import attrs

from client.protocol.attempt import RecordCheck
from client.protocol.ids import ReceiptId
from client.protocol.refusals import Code, Refusal
from client.protocol.verdict import Verification, VerifyWork
from client.protocol.work import Work
from client.protocol.work_asks import AcceptWork, RequestChanges, SubmitWork
from tests.support import works
from tests.support.run import Stage

COMMIT, OTHER = "a" * 40, "b" * 40
UNIT = "unit=make unit"


async def submitted(s: Stage, work: Work | None = None, **more: object) -> Work:
    """A Work of Bob's in review with a commit, which Cid is to verify unless something else is said."""
    named: dict[str, Any] = {"verifier_id": s.cid.membership.id, **more}
    begun = work or await s.started(s.bob, **named)
    ask = SubmitWork(work_id=begun.id, expected_version=begun.version, result_summary="done", candidate_revision=COMMIT)
    return await works.bob(s).ok(ask)


async def again(s: Stage, work: Work) -> Work:
    """The next submission, after the Host sent the last one back."""
    back = await works.ann(s).ok(RequestChanges(work_id=work.id, expected_version=work.version, reason="again"))
    await s.admit(back, s.bob)
    return await submitted(s, await s.start(back, s.bob))


def says(work: Work, outcome: Verification = Verification.PASSED, **more: object) -> VerifyWork:
    ask: Any = VerifyWork(
        work_id=work.id,
        expected_version=work.version,
        receipt_id=work.receipt_id or ReceiptId("none"),
        outcome=outcome,
        reason="read it and ran it",
        revision=COMMIT,
        evidence_refs=["make exit 0"],
    )
    asked: VerifyWork = attrs.evolve(ask, **more)
    return asked


def accept(work: Work) -> AcceptWork:
    return AcceptWork(work_id=work.id, expected_version=work.version, receipt_id=work.receipt_id or ReceiptId("none"))


def checked(s: Stage, work: Work, line: str = UNIT, *, passed: bool = True, snapshot: str = "tree") -> RecordCheck:
    assert work.receipt_id is not None
    return RecordCheck(
        work_id=work.id,
        receipt_id=work.receipt_id,
        sup_gen=s.sup_gen,
        line=line,
        passed=passed,
        snapshot=snapshot,
        revision=COMMIT,
        log_digest="log",
    )


def shut(work: Work, said: str, *, what: str = "verifier") -> Refusal:
    lifted_by = (
        f"its verifier {work.verifier_id} {said}; a new attempt lifts it, or the Host takes the {what} away: "
        f"firm work update {work.id} --expected-version {work.version} --remove-verifier"
    )
    return Refusal(code=Code.GATE_NOT_PASSED, about=f"work/{work.id}", lifted_by=lifted_by)
