"""What a managed Host does with a submission, as a table: it accepts, sends back, puts on hold, or leaves it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import attrs
import pytest

from client.protocol.attempt import Binding, CheckResult, Custody, Outcome, Receipt
from client.protocol.ids import (
    AgentMemberId,
    BindingId,
    Fence,
    MemberRunId,
    MembershipId,
    ReceiptId,
    RunGen,
    SessionGen,
    SessionId,
    TeamRunId,
    UnixMs,
    VerdictId,
    WorkId,
)
from client.protocol.verdict import Verdict, Verification
from client.protocol.work import Condition, Phase, Readiness
from client.protocol.work_asks import WorkShown
from client.worker.judge import MOST_ATTEMPTS, Accept, Judgement, Leave, PutOnHold, SendBack, judge
from tests.support import records

HOST, BOB = MembershipId("host"), MembershipId("bob")
COMMIT, NOW = "a" * 40, UnixMs(1)


def answered(*answers: str) -> list[dict[str, str]]:
    return [{"criterion": f"line {n}", "answer": answer, "note": ""} for n, answer in enumerate(answers, 1)]


#: Of Bob's, in review.
WORK = attrs.evolve(records.WORK, version=4, owner_id=BOB, criteria=[], phase=Phase.REVIEW, receipt_id=ReceiptId("rr1"))


def shown(  # noqa: PLR0913 — what a case says of a submission
    *,
    answers: tuple[str, ...] = ("met",),
    checks: Mapping[str, bool | None] | None = None,
    attempts: int = 1,
    outcome: Outcome = Outcome.COMPLETED,
    body: str | None = None,
    receipt: str = "rr1",
    work: dict[str, Any] | None = None,
    **claims: object,
) -> WorkShown:
    """A Work of Bob's in review. ``checks`` says of each named check whether it passed, None without a result."""
    named = checks or {}
    said = {
        "criteria": answered(*answers),
        "candidate_revision": COMMIT,
        "artifact_refs": [],
        "check_refs": [],
        **claims,
    }
    record = attrs.evolve(
        WORK,
        criteria=[each["criterion"] for each in answered(*answers)],
        checks=[f"{name}=make {name}" for name in named],
        **(work or {}),
    )
    return WorkShown(
        work=record,
        readiness=Readiness.NOT_OPEN,
        waits_for=[],
        successors=[],
        owner="bob",
        bindings=[binding(fence) for fence in range(1, attempts + 1)],
        deliveries=[],
        receipts=[
            Receipt(
                id=ReceiptId(receipt),
                work_id=record.id,
                fence=Fence(attempts),
                number=1,
                outcome=outcome,
                body=json.dumps(said) if body is None else body,
                digest="d" * 64,
                previous="",
                created_by=AgentMemberId("a1"),
                created_at=NOW,
            )
        ],
        checks=[result(name, passed=passed) for name, passed in named.items() if passed is not None],
    )


def binding(fence: int) -> Binding:
    return Binding(
        id=BindingId(f"b{fence}"),
        version=1,
        team_run_id=TeamRunId("r1"),
        work_id=WorkId("w1"),
        fence=Fence(fence),
        membership_id=BOB,
        member_run_id=MemberRunId("p1"),
        run_gen=RunGen(1),
        session_id=SessionId("s1"),
        session_gen=SessionGen(1),
        custody=Custody.COMPLETED,
        lease_ms=1000,
        reason="",
        created_at=NOW,
        updated_at=NOW,
        told_version=0,
    )


def result(name: str, *, passed: bool) -> CheckResult:
    return CheckResult(
        receipt_id=ReceiptId("rr1"),
        name=name,
        passed=passed,
        snapshot="tree",
        log_digest=f"of-{name}",
        at=NOW,
        line=f"{name}=make {name}",
    )


def judged(seen: WorkShown, *, logs: dict[str, str] | None = None) -> Judgement | None:
    return judge(seen, HOST, logs=logs or {})


@pytest.mark.parametrize(
    "seen",
    [
        shown(checks={"unit": True}),
        shown(checks={"unit": True, "lint": True}, answers=("met", "not_applicable")),
        shown(checks={"unit": True}, attempts=MOST_ATTEMPTS + 1),
        shown(checks={"unit": True}, candidate_revision="", check_refs=["make exit 0"]),
    ],
)
def test_what_passed_its_checks_is_accepted(seen: WorkShown) -> None:
    """Exactly the receipt that was judged."""
    assert judged(seen) == Accept(seen.receipts[0])


@pytest.mark.parametrize(
    ("seen", "why"),
    [
        (shown(checks={"unit": None}), "waits for the result of: unit"),
        (shown(checks={"unit": False, "lint": None}), "waits for the result of: lint"),
        (shown(checks={"unit": True}, answers=("met", "unanswered")), "nobody answered line 2"),
        (shown(checks={"unit": True}, outcome=Outcome.FAILED), "it says that it failed"),
        (shown(), "nobody but its member says that it is done"),
        (shown(candidate_revision="", check_refs=["make exit 0"]), "nobody but its member says that it is done"),
        (shown(body="{"), "cannot be read"),
        (shown(body="[]"), "cannot be read"),
        (shown(body="{}"), "cannot be read"),
        (shown(receipt="rr0"), "cannot be read"),
    ],
)
def test_what_nothing_decides_is_left_and_says_why(seen: WorkShown, why: str) -> None:
    left = judged(seen)
    assert isinstance(left, Leave)
    assert why in left.why


@pytest.mark.parametrize(
    "work",
    [
        {"owner_id": HOST},
        {"phase": Phase.OPEN},
        {"phase": Phase.ACTIVE},
        {"phase": Phase.CLOSED},
        {"condition": Condition.ON_HOLD},
    ],
)
def test_its_own_work_and_what_is_not_in_review_is_not_its_to_judge(work: dict[str, Any]) -> None:
    for checks in ({"unit": True}, {"unit": False}, {"unit": None}):
        assert judged(shown(checks=checks, work=work)) is None


def test_a_failed_check_is_sent_back_with_its_name_and_the_end_of_its_log() -> None:
    seen = shown(checks={"unit": False, "lint": False, "docs": True}, answers=("not_met", "met"))
    back = judged(seen, logs={"unit": "x" * 5000 + "\nE   assert 1 == 2"})
    assert isinstance(back, SendBack)
    assert back.receipt is seen.receipts[0]
    first, second, *_ = back.reason.splitlines()
    assert first == "not met: line 1"
    assert second == "check unit failed, log sha256:of-unit; the end of its log:"
    assert "assert 1 == 2\ncheck lint failed, log sha256:of-lint; its log is not here" in back.reason
    assert "docs" not in back.reason
    assert len(back.reason) < 2000


def test_a_result_of_another_check_under_its_name_is_none() -> None:
    """The Host replaced the check: neither good nor bad is what the former one said."""
    for passed in (True, False):
        seen = shown(checks={"unit": passed})
        other = attrs.evolve(seen, checks=[attrs.evolve(seen.checks[0], line="unit=make less")])
        assert judged(other) == Leave("waits for the result of: unit")


def verdict(outcome: Verification) -> Verdict:
    return Verdict(
        id=VerdictId("v1"),
        version=1,
        team_run_id=TeamRunId("r1"),
        work_id=WorkId("w1"),
        receipt_id=ReceiptId("rr1"),
        membership_id=MembershipId("cid"),
        outcome=outcome,
        revision=COMMIT,
        snapshot="tree",
        reason="x" * 5000 if outcome is Verification.FAILED else "holds",
        evidence=["log@sha256:1"],
        created_at=NOW,
    )


def verified(seen: WorkShown, outcome: Verification | None = None) -> WorkShown:
    """Cid is to verify it, and has said so much."""
    work = attrs.evolve(seen.work, verifier_id=MembershipId("cid"))
    return attrs.evolve(seen, work=work, verifier="cid", verdict=verdict(outcome) if outcome else None)


def test_a_verdict_is_waited_for_and_then_decides() -> None:
    """It needs no check and no evidence besides it; a criterion that nobody answered is a person's all the same."""
    seen = shown(checks={"unit": True})
    assert judged(verified(seen)) == Leave("waits for the verdict of cid")
    assert judged(verified(seen, Verification.PASSED)) == Accept(seen.receipts[0])
    bare = shown(candidate_revision="")
    assert judged(verified(bare, Verification.PASSED)) == Accept(bare.receipts[0])
    open_ = shown(answers=("met", "unanswered"))
    assert isinstance(judged(verified(open_, Verification.PASSED)), Leave)


def test_nothing_is_waited_for_that_the_verifier_is_not_asked_before() -> None:
    """A check without a result is named first; a failed one sends back at once."""
    assert judged(verified(shown(checks={"unit": None}))) == Leave("waits for the result of: unit")
    assert isinstance(judged(verified(shown(checks={"unit": False}))), SendBack)
    assert isinstance(judged(verified(shown(answers=("not_met",)))), SendBack)


def test_what_does_not_hold_is_sent_back_as_for_a_failed_check_and_goes_on_hold_as_that_does() -> None:
    seen = verified(shown(checks={"unit": True}), Verification.FAILED)
    back = judged(seen)
    assert isinstance(back, SendBack)
    assert back.reason.startswith("verified by cid, who says that it does not hold: xxx")
    assert back.reason.endswith("xxx\nevidence: log@sha256:1")
    assert len(back.reason) < 2200
    assert isinstance(judged(verified(shown(attempts=3), Verification.FAILED)), PutOnHold)


def test_a_criterion_that_is_not_met_is_sent_back_though_every_check_passed() -> None:
    assert judged(shown(checks={"unit": True}, answers=("met", "not_met"))) == SendBack(
        shown(checks={"unit": True}, answers=("met", "not_met")).receipts[0], "not met: line 2"
    )


def test_after_so_many_attempts_it_goes_on_hold_for_a_person() -> None:
    for attempts in range(1, MOST_ATTEMPTS):
        assert isinstance(judged(shown(checks={"unit": False}, attempts=attempts)), SendBack)
    held = judged(shown(checks={"unit": False}, attempts=MOST_ATTEMPTS))
    assert isinstance(held, PutOnHold)
    assert held.reason.startswith("on hold after 3 attempts, rr1 was the last: a person decides")
    assert "check unit failed" in held.reason


def test_who_takes_it_off_hold_lets_it_be_sent_back_once_more() -> None:
    """The next attempt is another receipt, and goes on hold again."""
    held = judged(shown(checks={"unit": False}, attempts=3))
    assert isinstance(held, PutOnHold)
    off = {"reason": held.reason}
    assert isinstance(judged(shown(checks={"unit": False}, attempts=3, work=off)), SendBack)
    fourth = {**off, "receipt_id": ReceiptId("rr2")}
    assert isinstance(judged(shown(checks={"unit": False}, attempts=4, receipt="rr2", work=fourth)), PutOnHold)


def test_a_reason_keeps_its_bound() -> None:
    seen = shown(checks={f"c{n}": False for n in range(9)}, attempts=3)
    held = judged(seen, logs={f"c{n}": "x" * 9000 for n in range(9)})
    assert isinstance(held, PutOnHold)
    assert len(held.reason) <= 4096
