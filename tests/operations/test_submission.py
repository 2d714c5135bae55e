"""What a submission has to bring, what its receipt says, and how large it may be."""

from __future__ import annotations

import json
from typing import Any

import attrs
import pytest

from client.protocol.attempt import Custody, Outcome, Receipt
from client.protocol.ids import ReceiptId
from client.protocol.refusals import Code, Refusal
from client.protocol.work import Phase, Work
from client.protocol.work_asks import SubmitWork
from tests.support import works
from tests.support.node import InProcessNode
from tests.support.run import Stage, stage

COMMIT = "0123456789abcdef" * 2 + "01234567"


def submit(work: Work, **more: object) -> SubmitWork:
    fields: dict[str, object] = {"result_summary": "done", "report_only": True, **more}
    return SubmitWork(work_id=work.id, expected_version=work.version, **fields)  # type: ignore[arg-type]


async def receipt(s: Stage, work: Work) -> tuple[Receipt, dict[str, Any]]:
    found = (await s.shown(work)).receipts[-1]
    return found, json.loads(found.body)


async def test_work_submit_ok(node: InProcessNode) -> None:
    """In review, with a receipt in canonical JSON that says everything it is about; the attempt is completed."""
    s = await stage(node)
    work = await s.started(s.bob, completion_criteria="it works\nit is fast", checks=["unit=make unit"])
    ask = submit(
        work,
        report_only=False,
        candidate_revision=COMMIT,
        criteria=["1=met:seen", "unit=not_met:two fail"],
        artifact_refs=["name@sha256:1"],
        check_refs=["make unit exit 0"],
        outcome=Outcome.FAILED,
    )
    after = await works.bob(s).ok(ask)
    assert after == attrs.evolve(
        work,
        version=4,
        phase=Phase.REVIEW,
        result_summary="done",
        receipt_id=after.receipt_id,
        updated_at=after.updated_at,
    )
    found, body = await receipt(s, work)
    assert body == {
        "artifact_refs": ["name@sha256:1"],
        "candidate_revision": COMMIT,
        "check_refs": ["make unit exit 0"],
        "checks": [{"check": "unit", "answer": "not_met", "note": "two fail"}],
        "created_by": s.bob.agent.id,
        "criteria": [
            {"criterion": "it works", "answer": "met", "note": "seen"},
            {"criterion": "it is fast", "answer": "unanswered", "note": ""},
        ],
        "fence": 1,
        "number": 1,
        "outcome": "failed",
        "receipt_id": after.receipt_id,
        "report_only": False,
        "result_summary": "done",
        "work_id": work.id,
        "work_version": 3,
    }
    assert found.body == json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    assert (found.outcome, found.created_by) == (Outcome.FAILED, s.bob.agent.id)
    assert [b.custody for b in (await s.shown(work)).bindings] == [Custody.COMPLETED]


@pytest.mark.parametrize(
    ("candidate", "report_only", "said"),
    [
        ("", False, "give --candidate-revision COMMIT, or --report-only where there is no commit; not both"),
        (COMMIT, True, "give --candidate-revision COMMIT, or --report-only where there is no commit; not both"),
        (COMMIT[:39], False, "give the whole commit: 40 or 64 hex digits, lower case"),
        (COMMIT + "0", False, "give the whole commit: 40 or 64 hex digits, lower case"),
        (COMMIT.upper(), False, "give the whole commit: 40 or 64 hex digits, lower case"),
        ("HEAD", False, "give the whole commit: 40 or 64 hex digits, lower case"),
    ],
)
async def test_work_submit_evidence_required(
    node: InProcessNode, candidate: str, said: str, *, report_only: bool
) -> None:
    s = await stage(node)
    work = await s.started(s.bob)
    ask = submit(work, candidate_revision=candidate, report_only=report_only)
    refusal = await works.bob(s).refused(ask)
    assert refusal == Refusal(code=Code.EVIDENCE_REQUIRED, about="submission", lifted_by=said)


@pytest.mark.parametrize("candidate", [COMMIT, COMMIT + "0123456789abcdef01234567"])
async def test_a_commit_has_forty_or_sixty_four_digits(node: InProcessNode, candidate: str) -> None:
    s = await stage(node)
    work = await s.started(s.bob)
    await works.bob(s).ok(submit(work, report_only=False, candidate_revision=candidate))
    assert (await receipt(s, work))[1]["candidate_revision"] == candidate


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("0=met", "answer criteria 1 to 1 or checks unit as N=met, N=not_met or N=not_applicable[:note]"),
        ("2=met", "answer criteria 1 to 1 or checks unit as N=met, N=not_met or N=not_applicable[:note]"),
        ("01=met", "answer criteria 1 to 1 or checks unit as N=met, N=not_met or N=not_applicable[:note]"),
        ("lint=met", "answer criteria 1 to 1 or checks unit as N=met, N=not_met or N=not_applicable[:note]"),
        ("1=perhaps", "answer criteria 1 to 1 or checks unit as N=met, N=not_met or N=not_applicable[:note]"),
        ("1", "answer criteria 1 to 1 or checks unit as N=met, N=not_met or N=not_applicable[:note]"),
    ],
)
async def test_an_answer_is_to_a_line_or_a_named_check(node: InProcessNode, given: str, said: str) -> None:
    s = await stage(node)
    work = await s.started(s.bob, checks=["unit=make unit"])
    refusal = await works.bob(s).refused(submit(work, criteria=[given]))
    assert refusal == Refusal(code=Code.EVIDENCE_REQUIRED, about="submission", lifted_by=said)


async def test_a_line_is_answered_once(node: InProcessNode) -> None:
    s = await stage(node)
    work = await s.started(s.bob)
    refusal = await works.bob(s).refused(submit(work, criteria=["1=met", "1=not_met"]))
    assert refusal == Refusal(code=Code.EVIDENCE_REQUIRED, about="submission", lifted_by="answer 1 once")


async def test_what_was_not_answered_is_shown_and_refuses_nothing(node: InProcessNode) -> None:
    s = await stage(node)
    work = await s.started(s.bob, completion_criteria="a\nb", checks=["unit=make unit"])
    await works.bob(s).ok(submit(work, criteria=["2=not_applicable"]))
    _, body = await receipt(s, work)
    assert [each["answer"] for each in body["criteria"]] == ["unanswered", "not_applicable"]
    assert [each["answer"] for each in body["checks"]] == ["unanswered"]


OTHER = "f" * 40


@pytest.mark.parametrize(
    ("candidate", "ref", "have"),
    [
        (COMMIT, f"review:security@{OTHER}", COMMIT),
        (COMMIT, f"review:security@{COMMIT[:12]}", COMMIT),
        (COMMIT, "review:security@", COMMIT),
        ("", f"review:security@{OTHER}", "what is submitted"),
    ],
)
async def test_a_review_of_another_commit_is_no_evidence(
    node: InProcessNode, candidate: str, ref: str, have: str
) -> None:
    s = await stage(node)
    work = await s.started(s.bob)
    ask = submit(work, candidate_revision=candidate, report_only=not candidate, check_refs=["make exit 0", ref])
    said = f"{ref} is of another commit than the one submitted: have {have} reviewed, or leave it out"
    refusal = await works.bob(s).refused(ask)
    assert refusal == Refusal(code=Code.EVIDENCE_REQUIRED, about="submission", lifted_by=said)


@pytest.mark.parametrize(
    "ref", [f"review:security@{COMMIT}", "https://example.org/review:1@main", "review: looked at it"]
)
async def test_a_review_of_the_submitted_commit_and_any_other_text_are_evidence(node: InProcessNode, ref: str) -> None:
    s = await stage(node)
    work = await s.started(s.bob)
    await works.bob(s).ok(submit(work, candidate_revision=COMMIT, report_only=False, check_refs=[ref]))
    assert (await receipt(s, work))[1]["check_refs"] == [ref]


async def test_a_reference_has_up_to_two_kilobytes(node: InProcessNode) -> None:
    s = await stage(node)
    work = await s.started(s.bob)
    refusal = await works.bob(s).refused(submit(work, artifact_refs=["x" * 2049]))
    assert (refusal.code, refusal.about) == (Code.LIMIT_EXCEEDED, "artifact_refs")
    await works.bob(s).ok(submit(work, artifact_refs=["x" * 2048]))


async def test_a_receipt_has_at_most_thirty_two_kilobytes(node: InProcessNode) -> None:
    """Counted in bytes as they are kept; the very last that fits is taken."""
    s = await stage(node)
    small = await s.submitted(s.cid, "same size")
    spare = 32 * 1024 - len((await receipt(s, small))[0].body.encode())
    work = await s.started(s.bob, "one byte more")
    # Each of 15 references costs its own bytes, two quotes and, but for the first, a comma.
    refs = ["x" * 2048] * 15
    rest = spare - 15 * 2051 + 1
    full = [*refs, "ü" * ((rest - 3) // 2) + "x" * ((rest - 3) % 2)]
    refusal = await works.bob(s).refused(submit(work, artifact_refs=[*full[:-1], full[-1] + "x"]))
    said = "32769 bytes, and a receipt has at most 32768: keep what is large elsewhere and name its digest"
    assert refusal == Refusal(code=Code.LIMIT_EXCEEDED, about="submission", lifted_by=said)
    await works.bob(s).ok(submit(work, artifact_refs=full))
    assert len((await receipt(s, work))[0].body.encode()) == 32 * 1024


async def test_a_work_of_the_longest_criteria_can_be_submitted(node: InProcessNode) -> None:
    s = await stage(node)
    work = await s.started(s.bob, completion_criteria="\n".join(["x" * 63] * 128))
    await works.bob(s).ok(submit(work, result_summary="y" * 4096, criteria=[f"{n}=met" for n in range(1, 129)]))


async def test_work_submit_receipt_chain_broken(node: InProcessNode) -> None:
    """Nothing is built on a chain that is broken."""
    s = await stage(node)
    first = await s.submitted(s.bob)
    back = await works.ann(s).ok(works.VERBS["request-changes"].request(s, first))
    await s.admit(back, s.bob)
    work = await s.start(back, s.bob)
    node.execute("UPDATE receipts SET digest = replace(digest, substr(digest, 1, 1), 'z')")
    said = "nothing here mends it: restore a backup, or cancel the Work and have it done again"
    assert await works.bob(s).refused(submit(work)) == Refusal(
        code=Code.RECEIPT_CHAIN_BROKEN, about=f"receipt/{first.receipt_id}", lifted_by=said
    )


async def test_a_submission_asked_again_with_its_key_is_the_same_one(node: InProcessNode) -> None:
    s = await stage(node)
    work = await s.started(s.bob)
    first = await works.bob(s).ok(submit(work), key="k")
    before = node.rows()
    assert await works.bob(s).ok(submit(work), key="k") == first
    assert node.rows() == before
    assert ReceiptId(str(first.receipt_id)).startswith("rr-")
