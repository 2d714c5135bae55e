"""Work: who answers for what, and how far it is. Records."""

from __future__ import annotations

import enum

import attrs

from client.protocol.ids import (
    MembershipId,
    ReceiptId,
    TeamId,
    TeamRunId,
    UnixMs,
    WorkId,
)


class Phase(enum.StrEnum):
    OPEN = "open"
    ACTIVE = "active"
    REVIEW = "review"
    CLOSED = "closed"


class Condition(enum.StrEnum):
    """An overlay; it changes no phase."""

    NORMAL = "normal"
    BLOCKED = "blocked"
    ON_HOLD = "on_hold"


class Resolution(enum.StrEnum):
    """Exists exactly when the Work is closed."""

    ACCEPTED = "accepted"
    CANCELLED = "cancelled"
    FAILED = "failed"


class ClaimMode(enum.StrEnum):
    """Whether a Host gives the Work away, or an eligible member takes it."""

    HOST_ASSIGN = "host_assign"
    TEAM_CLAIM = "team_claim"


class Priority(enum.StrEnum):
    LOW = "low"
    NORMAL = "normal"
    HIGH = "high"
    URGENT = "urgent"


@attrs.frozen(kw_only=True)
class Work:
    """Responsibility. ``version`` counts its changes, one event each. ``held`` is the condition before a hold,
    ``verifier_id`` the member without whose word no submission is accepted.
    """

    id: WorkId
    version: int
    team_id: TeamId
    team_run_id: TeamRunId
    owner_id: MembershipId | None
    title: str
    context: str
    criteria: list[str]
    phase: Phase
    condition: Condition
    held: Condition | None
    resolution: Resolution | None
    claim_mode: ClaimMode
    eligible: list[str]
    required_role: str
    priority: Priority
    needs: list[str]
    checks: list[str]
    reason: str
    result_summary: str
    receipt_id: ReceiptId | None
    created_by: str
    created_at: UnixMs
    updated_at: UnixMs
    verifier_id: MembershipId | None


@attrs.frozen(kw_only=True)
class WorkPage:
    items: list[Work]
    next: str | None


class Readiness(enum.StrEnum):
    """Derived, never stored."""

    READY = "ready"
    WAITING = "waiting_prerequisites"
    NEEDS_HOST = "requires_host_attention"
    NOT_OPEN = "not_open"
