"""Verdicts: what the verifier of a Work says of a submission. Records, requests and rows."""

from __future__ import annotations

import enum
from typing import Annotated

import attrs

from client.protocol.attempt import REFERENCES
from client.protocol.ids import MembershipId, ReceiptId, TeamRunId, UnixMs, VerdictId, WorkId
from client.protocol.operation import MEMBERS, Effect, Operation, Request
from client.protocol.refusals import Code
from client.protocol.shape import ID, VERSION, Bounds
from client.protocol.work import Work


class Verification(enum.StrEnum):
    """Whether a submission holds, in the eyes of its verifier."""

    PASSED = "passed"
    FAILED = "failed"


@attrs.frozen(kw_only=True)
class Verdict:
    """What a verifier said of one submission, once; it never changes. ``snapshot`` is what every named check had passed
    on by then, empty where there was none; ``revision`` is the commit that was looked at.
    """

    id: VerdictId
    version: int
    team_run_id: TeamRunId
    work_id: WorkId
    receipt_id: ReceiptId
    membership_id: MembershipId
    outcome: Verification
    revision: str
    snapshot: str
    reason: str
    evidence: list[str]
    created_at: UnixMs


@attrs.frozen(kw_only=True)
class VerifyWork(Request[Work]):
    """Say, as its verifier, whether a submission holds; once every named check passed on it. Accepts nothing."""

    work_id: Annotated[WorkId, "the Work", ID]
    expected_version: Annotated[int, "version last read", VERSION]
    receipt_id: Annotated[ReceiptId, "the submission that was looked at", ID]
    outcome: Annotated[Verification, "whether it holds"]
    reason: Annotated[str, "what was found, and how it was looked for", Bounds(least=1, most=16384)]
    revision: Annotated[
        str, "the commit that was looked at; none where the submission names none", Bounds(most=64, line=True)
    ] = ""
    evidence_refs: Annotated[list[str], "what shows it", REFERENCES] = attrs.Factory(list)


OPERATIONS = (
    Operation(
        "work.verify",
        VerifyWork,
        planes=MEMBERS,
        effect=Effect.WRITE,
        refuses=(
            Code.NOT_FOUND,
            Code.ROW_QUARANTINED,
            Code.FENCE_STALE,
            Code.GATE_NOT_PASSED,
            Code.INVALID_STATE_TRANSITION,
            Code.RECEIPT_CHAIN_BROKEN,
            Code.VERSION_CONFLICT,
            Code.WORK_ON_HOLD,
        ),
    ),
)
