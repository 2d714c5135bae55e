"""WorkDelegation: one team asks another, never a hierarchy. Records, requests and rows."""

from __future__ import annotations

import enum
from typing import Annotated

import attrs

from client.protocol.ids import DelegationId, TeamId, TeamRef, TeamRunId, UnixMs, WorkId
from client.protocol.operation import HOST_OR_OPERATOR, Effect, Operation, Request
from client.protocol.refusals import Code
from client.protocol.shape import ID, LABEL, LINE, PAGE, TEXT, VERSION, Bounds


class DelegationState(enum.StrEnum):
    """What the target decided. How its Work goes on is its own business, told as attention."""

    PROPOSED = "proposed"
    ACCEPTED = "accepted"
    DECLINED = "declined"
    WITHDRAWN = "withdrawn"


@attrs.frozen(kw_only=True)
class WorkDelegation:
    """``target_work_id`` is the Work that the target made itself; it never accepts the source Work."""

    id: DelegationId
    version: int
    team_run_id: TeamRunId
    source_work_id: WorkId
    source_team_id: TeamId
    target_team_id: TeamId
    target_work_id: WorkId | None
    title: str
    context: str
    criteria: list[str]
    state: DelegationState
    reason: str
    created_by: str
    created_at: UnixMs
    updated_at: UnixMs


@attrs.frozen(kw_only=True)
class DelegationPage:
    items: list[WorkDelegation]
    next: str | None


@attrs.frozen(kw_only=True)
class ProposeDelegation(Request[WorkDelegation]):
    """Propose to another team that it does something for one of our Works."""

    work_id: Annotated[WorkId, "our Work that needs it", ID]
    target_team_id: Annotated[TeamRef, "the other team, by id or unique name", ID]
    title: Annotated[str, "what they should answer for", LINE]
    completion_criteria: Annotated[str, "what we shall check, one criterion a line", Bounds(least=1, most=32768)]
    context: Annotated[str, "why, and what they need to know", TEXT] = ""


@attrs.frozen(kw_only=True)
class AcceptDelegation(Request[WorkDelegation]):
    """Accept a proposal: our team makes a Work of its own for it, in a run of ours."""

    delegation_id: Annotated[DelegationId, "the proposal", ID]
    expected_version: Annotated[int, "version last read", VERSION]
    team_run_id: Annotated[TeamRunId, "our run in which it is done", ID]


@attrs.frozen(kw_only=True)
class DeclineDelegation(Request[WorkDelegation]):
    """Decline a proposal."""

    delegation_id: Annotated[DelegationId, "the proposal", ID]
    expected_version: Annotated[int, "version last read", VERSION]
    reason: Annotated[str, "why", LINE]


@attrs.frozen(kw_only=True)
class WithdrawDelegation(Request[WorkDelegation]):
    """Withdraw our own proposal that was not answered."""

    delegation_id: Annotated[DelegationId, "the proposal", ID]
    expected_version: Annotated[int, "version last read", VERSION]
    reason: Annotated[str, "why, for the record", LABEL] = ""


@attrs.frozen(kw_only=True)
class ListDelegations(Request[DelegationPage]):
    """List proposals from and to a team, oldest first."""

    team_id: Annotated[TeamRef, "the team, by id or unique name", ID]
    limit: Annotated[int, "most rows", PAGE] = 100
    cursor: Annotated[str, "continue after an earlier page", Bounds(most=500)] = ""


_FIND = (Code.NOT_FOUND, Code.ROW_QUARANTINED)
_MOVE = (*_FIND, Code.INVALID_STATE_TRANSITION, Code.VERSION_CONFLICT)
_W = Effect.WRITE

OPERATIONS = (
    Operation(
        "delegation.accept",
        AcceptDelegation,
        planes=HOST_OR_OPERATOR,
        effect=_W,
        refuses=(*_MOVE, Code.TEAM_RUN_NOT_OPEN),
    ),
    Operation("delegation.decline", DeclineDelegation, planes=HOST_OR_OPERATOR, effect=_W, refuses=_MOVE),
    Operation(
        "delegation.list",
        ListDelegations,
        planes=HOST_OR_OPERATOR,
        effect=Effect.READ,
        refuses=(*_FIND, Code.CURSOR_INVALID, Code.NAME_AMBIGUOUS),
    ),
    Operation(
        "delegation.propose",
        ProposeDelegation,
        planes=HOST_OR_OPERATOR,
        effect=_W,
        refuses=(*_FIND, Code.INVALID_STATE_TRANSITION, Code.NAME_AMBIGUOUS),
    ),
    Operation("delegation.withdraw", WithdrawDelegation, planes=HOST_OR_OPERATOR, effect=_W, refuses=_MOVE),
)
