"""Work: requests and rows. The records are in ``work``."""

from __future__ import annotations

from typing import Annotated

import attrs

from client.protocol.attempt import OWN_ID, REFERENCES, Binding, CheckResult, Outcome, Receipt, WorkDelivery
from client.protocol.ids import DELIVERED_WORK, OWN_RUN, MembershipId, ReceiptId, TeamRunId, WorkId
from client.protocol.operation import (
    HOST_OR_OPERATOR,
    MEMBER_OR_ABOVE,
    MEMBERS,
    READERS,
    Effect,
    Operation,
    Plane,
    Request,
)
from client.protocol.refusals import Code
from client.protocol.shape import ID, LABEL, LINE, PAGE, TEXT, VERSION, WORDS, Bounds
from client.protocol.verdict import Verdict
from client.protocol.work import ClaimMode, Condition, Phase, Priority, Readiness, Work, WorkPage

#: The prerequisites one Work may have.
NEEDS = Bounds(most=128)
#: So much that a receipt can repeat every criterion.
CRITERIA = Bounds(least=1, most=8192)
#: Named checks, as NAME=COMMAND or NAME=limit=SECONDS COMMAND.
CHECKS = Bounds(most=64, item=2048)
#: One answer a criterion, one a named check.
ANSWERS = Bounds(most=128, item=600)


@attrs.frozen(kw_only=True)
class WorkShown:
    """One Work with everything that hangs on it, and whether it could be started. ``checks`` are the results of its
    named checks for the last submission, ``verdict`` what its verifier said of it.
    """

    work: Work
    readiness: Readiness
    waits_for: list[str]
    successors: list[str]
    owner: str
    bindings: list[Binding]
    deliveries: list[WorkDelivery]
    receipts: list[Receipt]
    checks: list[CheckResult] = attrs.Factory(list)
    verifier: str = ""
    verdict: Verdict | None = None


@attrs.frozen(kw_only=True)
class GraphNode:
    """One Work in the graph, with what it needs."""

    id: WorkId
    title: str
    phase: Phase
    condition: Condition
    resolution: str
    owner: str
    needs: list[str]


@attrs.frozen(kw_only=True)
class WorkGraph:
    """Every Work of a run, each after everything that it needs."""

    nodes: list[GraphNode]


@attrs.frozen(kw_only=True)
class CreateWork(Request[Work]):
    """Create an open Work that nobody answers for yet."""

    team_run_id: Annotated[TeamRunId, "the run it is done in; a member's own when empty", OWN_ID] = OWN_RUN
    title: Annotated[str, "one bounded responsibility", LINE]
    completion_criteria: Annotated[str, "what a reviewer can check, one criterion a line", CRITERIA]
    context: Annotated[str, "why it exists, mental model, boundary", TEXT] = ""
    claim_mode: Annotated[ClaimMode, "who gives it away"] = ClaimMode.TEAM_CLAIM
    eligible_member_ids: Annotated[list[str], "who may claim it; everybody when none is named", WORDS] = attrs.Factory(
        list
    )
    required_role: Annotated[str, "only a member with this role in the run may answer for it", LABEL] = ""
    prerequisite_work_ids: Annotated[list[str], "Works that have to be accepted first", NEEDS] = attrs.Factory(list)
    priority: Annotated[Priority, "how urgent it is"] = Priority.NORMAL
    checks: Annotated[
        list[str],
        "checks that must pass on the submission, as NAME=COMMAND or NAME=limit=SECONDS COMMAND; words, no shell",
        CHECKS,
    ] = attrs.Factory(list)
    duplicate_ok: Annotated[bool, "allow an open Work of the same title"] = False
    verifier_id: Annotated[
        MembershipId | None, "the member without whose word no submission is accepted; it never does this Work", ID
    ] = None


@attrs.frozen(kw_only=True)
class ListWorks(Request[WorkPage]):
    """List Works, the most urgent first, then the oldest."""

    team_run_id: Annotated[TeamRunId, "the run; a member's own when empty", OWN_ID] = OWN_RUN
    phase: Annotated[Phase | None, "only in this phase"] = None
    condition: Annotated[Condition | None, "only in this condition"] = None
    owner_id: Annotated[MembershipId | None, "only of this membership", ID] = None
    claimable_by: Annotated[
        MembershipId | None, "only what this membership may claim: ready, open to it, nobody answers for it", ID
    ] = None
    limit: Annotated[int, "most rows", PAGE] = 100
    cursor: Annotated[str, "continue after an earlier page", Bounds(most=500)] = ""


@attrs.frozen(kw_only=True)
class ShowWork(Request[WorkShown]):
    """Show one Work with its attempts, deliveries and receipts."""

    work_id: Annotated[WorkId, "the Work; without one, the one delivered to the caller", OWN_ID] = DELIVERED_WORK


@attrs.frozen(kw_only=True)
class DrawWorks(Request[WorkGraph]):
    """Show the Works of a run and what they need of each other."""

    team_run_id: Annotated[TeamRunId, "the run; a member's own when empty", OWN_ID] = OWN_RUN


@attrs.frozen(kw_only=True)
class AssignWork(Request[Work]):
    """Make a member answer for an open Work; that starts nothing."""

    work_id: Annotated[WorkId, "the Work", ID]
    expected_version: Annotated[int, "version last read", VERSION]
    membership_id: Annotated[MembershipId, "who shall answer for it", ID]


@attrs.frozen(kw_only=True)
class ClaimWork(Request[Work]):
    """Answer for an open Work oneself; that starts nothing."""

    work_id: Annotated[WorkId, "the Work", ID]
    expected_version: Annotated[int, "version last read", VERSION]


@attrs.frozen(kw_only=True)
class ReleaseWork(Request[Work]):
    """Give the responsibility for an open Work back."""

    work_id: Annotated[WorkId, "the Work", ID]
    expected_version: Annotated[int, "version last read", VERSION]
    reason: Annotated[str, "why, for the record", LABEL] = ""


@attrs.frozen(kw_only=True)
class StartWork(Request[Work]):
    """Start the Work that was delivered to the caller."""

    work_id: Annotated[WorkId, "the Work; without one, the one delivered to the caller", OWN_ID] = DELIVERED_WORK
    expected_version: Annotated[int, "version last read", VERSION]


@attrs.frozen(kw_only=True)
class BlockWork(Request[Work]):
    """Say that the Work cannot go on, and why."""

    work_id: Annotated[WorkId, "the Work; without one, the one delivered to the caller", OWN_ID] = DELIVERED_WORK
    expected_version: Annotated[int, "version last read", VERSION]
    reason: Annotated[str, "what stands in the way", Bounds(least=1, most=4096)]


@attrs.frozen(kw_only=True)
class ResumeWork(Request[Work]):
    """Say that a blocked Work goes on, and what resolved it."""

    work_id: Annotated[WorkId, "the Work; without one, the one delivered to the caller", OWN_ID] = DELIVERED_WORK
    expected_version: Annotated[int, "version last read", VERSION]
    resolution: Annotated[str, "what resolved it", Bounds(least=1, most=4096)]


@attrs.frozen(kw_only=True)
class HoldWork(Request[Work]):
    """Put a Work on hold: no admission, start, submission or acceptance until it is taken off."""

    work_id: Annotated[WorkId, "the Work", ID]
    expected_version: Annotated[int, "version last read", VERSION]
    reason: Annotated[str, "why", Bounds(least=1, most=4096)]


@attrs.frozen(kw_only=True)
class UnholdWork(Request[Work]):
    """Take a Work off hold; it is again what it was before."""

    work_id: Annotated[WorkId, "the Work", ID]
    expected_version: Annotated[int, "version last read", VERSION]


@attrs.frozen(kw_only=True)
class SubmitWork(Request[Work]):
    """Submit a Work with its evidence for review. Only acceptance makes it done."""

    work_id: Annotated[WorkId, "the Work; without one, the one delivered to the caller", OWN_ID] = DELIVERED_WORK
    expected_version: Annotated[int, "version last read", VERSION]
    result_summary: Annotated[str, "result, summary, coverage, worktree, artifacts", Bounds(least=1, most=16384)]
    candidate_revision: Annotated[str, "the commit submitted, 40 or 64 hex digits", Bounds(most=64, line=True)] = ""
    report_only: Annotated[bool, "there is no commit; the report is the result"] = False
    outcome: Annotated[Outcome, "whether the attempt was done"] = Outcome.COMPLETED
    criteria: Annotated[
        list[str], "answers, as N=met|not_met|not_applicable[:note]; N is a line or a named check", ANSWERS
    ] = attrs.Factory(list)
    artifact_refs: Annotated[list[str], "what came of it: URL or name@sha256:HEX", REFERENCES] = attrs.Factory(list)
    check_refs: Annotated[list[str], "what was run, with its exit status; or review:NAME@COMMIT", REFERENCES] = (
        attrs.Factory(list)
    )


@attrs.frozen(kw_only=True)
class RequestChanges(Request[Work]):
    """Send a submitted Work back; its owner stays, the next attempt gets the next fence."""

    work_id: Annotated[WorkId, "the Work", ID]
    expected_version: Annotated[int, "version last read", VERSION]
    reason: Annotated[str, "what has to change", Bounds(least=1, most=16384)]


@attrs.frozen(kw_only=True)
class AcceptWork(Request[Work]):
    """Accept exactly the receipt that was reviewed. Grants no outside effect."""

    work_id: Annotated[WorkId, "the Work", ID]
    expected_version: Annotated[int, "version last read", VERSION]
    receipt_id: Annotated[ReceiptId, "the receipt that was reviewed", ID]


@attrs.frozen(kw_only=True)
class CancelWork(Request[Work]):
    """Close a Work as cancelled; nothing is concluded for the Works that need it."""

    work_id: Annotated[WorkId, "the Work", ID]
    expected_version: Annotated[int, "version last read", VERSION]
    reason: Annotated[str, "why", Bounds(least=1, most=4096)]


@attrs.frozen(kw_only=True)
class FailWork(Request[Work]):
    """Close a Work as failed; nothing is concluded for the Works that need it."""

    work_id: Annotated[WorkId, "the Work", ID]
    expected_version: Annotated[int, "version last read", VERSION]
    reason: Annotated[str, "why", Bounds(least=1, most=4096)]


@attrs.frozen(kw_only=True)
class ReplaceDependencies(Request[Work]):
    """Replace all prerequisites of a Work; none given clears them."""

    work_id: Annotated[WorkId, "the Work", ID]
    expected_version: Annotated[int, "version last read", VERSION]
    prerequisite_work_ids: Annotated[list[str], "Works that have to be accepted first", NEEDS] = attrs.Factory(list)


@attrs.frozen(kw_only=True)
class UpdateWork(Request[Work]):
    """Change what a Work says; what is not given stays."""

    work_id: Annotated[WorkId, "the Work", ID]
    expected_version: Annotated[int, "version last read", VERSION]
    title: Annotated[str | None, "new title", LINE] = None
    context: Annotated[str | None, "new context", TEXT] = None
    completion_criteria: Annotated[str | None, "new criteria, one a line", CRITERIA] = None
    priority: Annotated[Priority | None, "new priority"] = None
    add_checks: Annotated[
        list[str],
        "one more check that must pass, as NAME=COMMAND or NAME=limit=SECONDS COMMAND; words, no shell",
        CHECKS,
    ] = attrs.Factory(list)
    remove_check: Annotated[str | None, "take this named check away", LABEL] = None
    verifier_id: Annotated[
        MembershipId | None, "the member without whose word no submission is accepted; it never does this Work", ID
    ] = None
    remove_verifier: Annotated[bool, "let the named checks and the acceptance decide alone"] = False
    claim_mode: Annotated[ClaimMode | None, "who gives it away from now on; whoever answers for it stays"] = None
    eligible_member_ids: Annotated[list[str], "who may claim it, instead of those named before", WORDS] = attrs.Factory(
        list
    )
    remove_eligible: Annotated[bool, "name nobody any more: everybody may claim it"] = False


@attrs.frozen(kw_only=True)
class RetargetWork(Request[Work]):
    """Move a Work that is not closed to another run of the same team."""

    work_id: Annotated[WorkId, "the Work", ID]
    expected_version: Annotated[int, "version last read", VERSION]
    successor_team_run_id: Annotated[TeamRunId, "the run to move it to", ID]


_FIND = (Code.NOT_FOUND, Code.ROW_QUARANTINED)
_CAS = (*_FIND, Code.VERSION_CONFLICT)
_MOVE = (*_CAS, Code.INVALID_STATE_TRANSITION)
_OWN = (*_MOVE, Code.CLAIM_LOST, Code.FENCE_STALE, Code.WORK_NOT_ASSIGNED, Code.WORK_ON_HOLD, Code.WORK_UNCLEAR)
_MEMBER = (Code.AGENT_MEMBER_PAUSED, Code.AGENT_MEMBER_RETIRED, Code.MEMBER_RUN_CLOSED)
_NEEDS = (Code.PREREQUISITE_CYCLE, Code.PREREQUISITE_INVALID)


def _write(verb: str, request: type[Request[Work]], planes: frozenset[Plane], *codes: Code) -> Operation:
    return Operation(f"work.{verb}", request, planes=planes, effect=Effect.WRITE, refuses=codes)


OPERATIONS = (
    _write(
        "accept",
        AcceptWork,
        MEMBER_OR_ABOVE,
        *_MOVE,
        Code.FENCE_STALE,
        Code.GATE_NOT_PASSED,
        Code.NO_ACCEPTOR,
        Code.RECEIPT_CHAIN_BROKEN,
        Code.WORK_ON_HOLD,
    ),
    _write(
        "assign",
        AssignWork,
        HOST_OR_OPERATOR,
        *_MOVE,
        Code.AGENT_MEMBER_RETIRED,
        Code.DELIVERY_RECOVERY_UNCERTAIN,
        Code.MEMBER_RUN_CLOSED,
        Code.NOT_ELIGIBLE,
        Code.TEAM_RUN_NOT_OPEN,
        Code.WORK_ALREADY_ASSIGNED,
    ),
    _write("block", BlockWork, MEMBERS, *_OWN),
    _write("cancel", CancelWork, HOST_OR_OPERATOR, *_MOVE),
    _write(
        "claim",
        ClaimWork,
        MEMBERS,
        *_MOVE,
        *_MEMBER,
        Code.CLAIM_LOST,
        Code.NOT_ELIGIBLE,
        Code.TEAM_RUN_NOT_OPEN,
        Code.WORK_ALREADY_ASSIGNED,
        Code.WORK_NOT_READY,
        Code.WORK_ON_HOLD,
    ),
    _write(
        "create",
        CreateWork,
        MEMBER_OR_ABOVE,
        *_FIND,
        Code.DUPLICATE_TITLE,
        Code.MEMBER_RUN_CLOSED,
        Code.NOT_ELIGIBLE,
        Code.PREREQUISITE_INVALID,
        Code.TEAM_RUN_NOT_OPEN,
    ),
    _write("fail", FailWork, HOST_OR_OPERATOR, *_MOVE),
    Operation("work.graph", DrawWorks, planes=READERS, effect=Effect.SCAN, refuses=_FIND),
    _write("hold", HoldWork, HOST_OR_OPERATOR, *_MOVE),
    Operation("work.list", ListWorks, planes=READERS, effect=Effect.READ, refuses=(*_FIND, Code.CURSOR_INVALID)),
    _write("release", ReleaseWork, MEMBER_OR_ABOVE, *_MOVE, Code.DELIVERY_RECOVERY_UNCERTAIN, Code.WORK_NOT_ASSIGNED),
    _write("replace-dependencies", ReplaceDependencies, HOST_OR_OPERATOR, *_MOVE, *_NEEDS),
    _write("request-changes", RequestChanges, MEMBER_OR_ABOVE, *_MOVE, Code.NO_ACCEPTOR, Code.WORK_ON_HOLD),
    _write("resume", ResumeWork, MEMBER_OR_ABOVE, *_MOVE, Code.CLAIM_LOST, Code.WORK_ON_HOLD, Code.WORK_UNCLEAR),
    _write(
        "retarget", RetargetWork, HOST_OR_OPERATOR, *_MOVE, Code.DELIVERY_RECOVERY_UNCERTAIN, Code.TEAM_RUN_NOT_OPEN
    ),
    Operation("work.show", ShowWork, planes=READERS, effect=Effect.READ, refuses=(*_FIND, Code.WORK_UNCLEAR)),
    _write(
        "start",
        StartWork,
        MEMBERS,
        *_OWN,
        *_MEMBER,
        Code.DELIVERY_NOT_DISPATCHED,
        Code.MEMBER_BUSY,
        Code.TEAM_RUN_NOT_OPEN,
        Code.WORK_NOT_READY,
    ),
    _write("submit", SubmitWork, MEMBERS, *_OWN, Code.EVIDENCE_REQUIRED, Code.RECEIPT_CHAIN_BROKEN),
    _write("unhold", UnholdWork, HOST_OR_OPERATOR, *_MOVE),
    _write(
        "update",
        UpdateWork,
        HOST_OR_OPERATOR,
        *_MOVE,
        Code.DUPLICATE_TITLE,
        Code.MEMBER_RUN_CLOSED,
        Code.NOT_ELIGIBLE,
    ),
)
