"""Attempts at a Work: bindings, deliveries, receipts, and what becomes of a lost one. Records, requests and rows."""

from __future__ import annotations

import enum
from typing import Annotated

import attrs

from client.protocol.ids import (
    DELIVERED_WORK,
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
    WorkDeliveryId,
    WorkId,
)
from client.protocol.operation import HOST_OR_OPERATOR, MEMBERS, READERS, SUPERVISOR, Effect, Operation, Request
from client.protocol.refusals import Code
from client.protocol.shape import ID, LABEL, VERSION, Bounds
from client.protocol.work import Work

#: Without one, the Work delivered to the caller is meant.
OWN_ID = Bounds(most=200, line=True)
#: A URL, a command with its exit status, name@sha256:HEX
REFERENCES = Bounds(most=64, item=2048)


class Custody(enum.StrEnum):
    """Who holds an attempt. Orphaned is not failed: nobody knows yet what that process did."""

    CLAIMED = "claimed"
    RELEASED = "released"
    COMPLETED = "completed"
    ORPHANED_UNVERIFIED = "orphaned_unverified"
    HANDED_OVER = "handed_over"


@attrs.frozen(kw_only=True)
class Binding:
    """One attempt: which proven process may act for a Work now. ``lease_ms`` is awake time without a heartbeat.
    ``told_version`` is the version of the Work that its process was told at its terminal, or made itself.
    """

    id: BindingId
    version: int
    team_run_id: TeamRunId
    work_id: WorkId
    fence: Fence
    membership_id: MembershipId
    member_run_id: MemberRunId
    run_gen: RunGen
    session_id: SessionId
    session_gen: SessionGen
    custody: Custody
    lease_ms: int
    reason: str
    created_at: UnixMs
    updated_at: UnixMs
    told_version: int


class DeliveryState(enum.StrEnum):
    QUEUED = "queued"
    CLAIMED = "claimed"
    PROVIDER_RECEIVED = "provider_received"
    FAILED = "failed"


@attrs.frozen(kw_only=True)
class WorkDelivery:
    """How a Work reaches the session of its binding."""

    id: WorkDeliveryId
    version: int
    team_run_id: TeamRunId
    work_id: WorkId
    binding_id: BindingId
    session_id: SessionId
    state: DeliveryState
    failure: str
    created_at: UnixMs
    updated_at: UnixMs


class Outcome(enum.StrEnum):
    """Whether the attempt was done; whether it is good is another question."""

    COMPLETED = "completed"
    FAILED = "failed"


@attrs.frozen(kw_only=True)
class Receipt:
    """What an attempt returned. ``body`` is canonical JSON; ``previous`` is the digest of the receipt before it."""

    id: ReceiptId
    work_id: WorkId
    fence: Fence
    number: int
    outcome: Outcome
    body: str
    digest: str
    previous: str
    created_by: AgentMemberId
    created_at: UnixMs


class Finding(enum.StrEnum):
    """What a custody review found that the lost attempt left behind."""

    NO_SIDE_EFFECTS = "NO_SIDE_EFFECTS"
    SIDE_EFFECTS_KEPT = "SIDE_EFFECTS_KEPT"
    SIDE_EFFECTS_REVERTED = "SIDE_EFFECTS_REVERTED"


class Responsibility(enum.StrEnum):
    """Whether the owner keeps the Work after a custody review."""

    KEEP = "keep"
    RELEASE = "release"


@attrs.frozen(kw_only=True)
class RecoverWork(Request[Work]):
    """Review the custody of a lost attempt: say what it left behind, and open the Work again."""

    work_id: Annotated[WorkId, "the Work", ID]
    expected_version: Annotated[int, "version last read", VERSION]
    fence: Annotated[int, "the fence of the lost attempt", VERSION]
    finding: Annotated[Finding, "what was found"]
    responsibility: Annotated[Responsibility, "whether its owner keeps it"]
    reason: Annotated[str, "why", Bounds(least=1, most=4096)]
    evidence_refs: Annotated[list[str], "what shows it", REFERENCES] = attrs.Factory(list)


@attrs.frozen(kw_only=True)
class RedeliverWork(Request[Work]):
    """Let a Work that never started be delivered again."""

    work_id: Annotated[WorkId, "the Work", ID]
    expected_version: Annotated[int, "version last read", VERSION]
    reason: Annotated[str, "why, for the record", LABEL] = ""


@attrs.frozen(kw_only=True)
class AdmitWork(Request[Binding]):
    """Admit one attempt: binding and delivery in one transaction."""

    work_id: Annotated[WorkId, "the Work", ID]
    session_id: Annotated[SessionId, "the session that shall act for it", ID]
    sup_gen: Annotated[int, "the supervisor generation that admits", VERSION]
    lease_ms: Annotated[int, "awake milliseconds without a heartbeat", Bounds(least=1000, most=3_600_000)] = 900_000


class DeliveryCause(enum.StrEnum):
    """What a supervisor may report of a delivery."""

    TAKEN = "taken"
    HELD = "held"
    RECEIVED = "received"
    FAILED = "failed"


@attrs.frozen(kw_only=True)
class ReportDelivery(Request[WorkDelivery]):
    """Report how far the delivery of a Work came."""

    work_id: Annotated[WorkId, "the Work", ID]
    fence: Annotated[int, "the fence of the attempt", VERSION]
    sup_gen: Annotated[int, "the supervisor generation that reports", VERSION]
    cause: Annotated[DeliveryCause, "what happened"]
    failure: Annotated[str, "why it failed", LABEL] = ""


@attrs.frozen(kw_only=True)
class HeartbeatWork(Request[Binding]):
    """Say that the attempt is alive; an orphaned one that nobody reviewed comes back to its session."""

    work_id: Annotated[WorkId, "the Work; without one, the one delivered to the caller", OWN_ID] = DELIVERED_WORK
    fence: Annotated[int | None, "the fence of the attempt, to be certain which is meant", VERSION] = None


@attrs.frozen(kw_only=True)
class ReceiptPage:
    items: list[Receipt]


@attrs.frozen(kw_only=True)
class ListReceipts(Request[ReceiptPage]):
    """List the receipts of a Work after proving their chain."""

    work_id: Annotated[WorkId, "the Work", ID]


@attrs.frozen(kw_only=True)
class CheckResult:
    """What a named check said of one submission, run for the Host on the snapshot of ``snapshot`` digest. ``line`` is
    what was run: of another check under this name it says nothing.
    """

    receipt_id: ReceiptId
    name: str
    passed: bool
    snapshot: str
    log_digest: str
    at: UnixMs
    line: str


@attrs.frozen(kw_only=True)
class RecordCheck(Request[CheckResult]):
    """Record what a named check said of a submission."""

    work_id: Annotated[WorkId, "the Work", ID]
    receipt_id: Annotated[ReceiptId, "the submission it ran on", ID]
    sup_gen: Annotated[int, "the supervisor generation that reports", VERSION]
    line: Annotated[str, "the check that was run, as the Work says it", Bounds(least=1, most=2048)]
    passed: Annotated[bool, "whether it passed"]
    snapshot: Annotated[str, "digest of the frozen snapshot it ran on", LABEL] = ""
    revision: Annotated[str, "the commit it ran on; empty where the submission names none", LABEL] = ""
    log_digest: Annotated[str, "digest of its log", LABEL] = ""


_FIND = (Code.NOT_FOUND, Code.ROW_QUARANTINED)
_W = Effect.WRITE

OPERATIONS = (
    Operation(
        "work.admit",
        AdmitWork,
        planes=SUPERVISOR,
        effect=_W,
        refuses=(
            *_FIND,
            Code.INVALID_STATE_TRANSITION,
            Code.MEMBER_BUSY,
            Code.SUPERVISOR_GENERATION_FENCED,
            Code.TEAM_RUN_NOT_OPEN,
            Code.WORK_BINDING_LIVE,
            Code.WORK_NOT_ASSIGNED,
            Code.WORK_NOT_READY,
            Code.WORK_ON_HOLD,
        ),
    ),
    Operation(
        "work.check",
        RecordCheck,
        planes=SUPERVISOR,
        effect=_W,
        refuses=(*_FIND, Code.INVALID_STATE_TRANSITION, Code.SUPERVISOR_GENERATION_FENCED),
    ),
    Operation(
        "work.delivery",
        ReportDelivery,
        planes=SUPERVISOR,
        effect=_W,
        refuses=(*_FIND, Code.FENCE_STALE, Code.INVALID_STATE_TRANSITION, Code.SUPERVISOR_GENERATION_FENCED),
    ),
    Operation(
        "work.heartbeat",
        HeartbeatWork,
        planes=MEMBERS,
        effect=_W,
        refuses=(*_FIND, Code.FENCE_STALE, Code.WORK_UNCLEAR),
    ),
    Operation(
        "work.receipts", ListReceipts, planes=READERS, effect=Effect.READ, refuses=(*_FIND, Code.RECEIPT_CHAIN_BROKEN)
    ),
    Operation(
        "work.recover",
        RecoverWork,
        planes=HOST_OR_OPERATOR,
        effect=_W,
        refuses=(
            *_FIND,
            Code.FENCE_STALE,
            Code.INVALID_STATE_TRANSITION,
            Code.VERSION_CONFLICT,
            Code.WORK_NOT_LOST,
            Code.WORK_ON_HOLD,
        ),
    ),
    Operation(
        "work.redeliver",
        RedeliverWork,
        planes=HOST_OR_OPERATOR,
        effect=_W,
        refuses=(
            *_FIND,
            Code.DELIVERY_RECOVERY_UNCERTAIN,
            Code.INVALID_STATE_TRANSITION,
            Code.VERSION_CONFLICT,
            Code.WORK_BINDING_LIVE,
            Code.WORK_NOT_ASSIGNED,
            Code.WORK_ON_HOLD,
        ),
    ),
)
