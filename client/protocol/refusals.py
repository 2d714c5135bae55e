"""The closed catalogue of refusals.

A refusal is what the daemon answers when it understood a request and declined it. It is a value, never an
exception: bugs raise, refusals return. Every code stands here once, with what each surface does about it.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping

import attrs


class Retry(enum.StrEnum):
    """What asking again is good for."""

    NEVER = "never"  # the same question will be refused again
    REREAD = "reread"  # load again, decide again, ask with a new key
    SAME = "same"  # ask exactly this again, with the same key


class Code(enum.StrEnum):
    """Every reason the daemon or its command line declines something."""

    ADOPTION_PENDING = "ADOPTION_PENDING"
    AGENT_MEMBER_PAUSED = "AGENT_MEMBER_PAUSED"
    AGENT_MEMBER_RETIRED = "AGENT_MEMBER_RETIRED"
    AGENT_SESSION_EXISTS = "AGENT_SESSION_EXISTS"
    AGENT_SESSION_GENERATION_FENCED = "AGENT_SESSION_GENERATION_FENCED"
    ANSWERED_ALREADY = "ANSWERED_ALREADY"
    ANSWER_INVALID = "ANSWER_INVALID"
    CAPABILITY_DENIED = "CAPABILITY_DENIED"
    CAUSATION_INVALID = "CAUSATION_INVALID"
    CLAIM_LOST = "CLAIM_LOST"
    CURSOR_INVALID = "CURSOR_INVALID"
    DELIVERY_NOT_DISPATCHED = "DELIVERY_NOT_DISPATCHED"
    DELIVERY_RECOVERY_UNCERTAIN = "DELIVERY_RECOVERY_UNCERTAIN"
    DUPLICATE_TITLE = "DUPLICATE_TITLE"
    EFFECT_UNSETTLED = "EFFECT_UNSETTLED"
    EVIDENCE_REQUIRED = "EVIDENCE_REQUIRED"
    FENCE_STALE = "FENCE_STALE"
    FILE_EXISTS = "FILE_EXISTS"
    FILE_UNUSABLE = "FILE_UNUSABLE"
    FRAME_TOO_LARGE = "FRAME_TOO_LARGE"
    GATE_NOT_PASSED = "GATE_NOT_PASSED"
    HOOK_UNKNOWN = "HOOK_UNKNOWN"
    HOST_REQUIRED = "HOST_REQUIRED"
    IDEMPOTENCY_KEY_REUSED = "IDEMPOTENCY_KEY_REUSED"
    INTERNAL = "INTERNAL"
    INVALID_STATE_TRANSITION = "INVALID_STATE_TRANSITION"
    LAUNCH_DENIED = "LAUNCH_DENIED"
    LIMIT_EXCEEDED = "LIMIT_EXCEEDED"
    MALFORMED = "MALFORMED"
    MEMBERSHIP_EXISTS = "MEMBERSHIP_EXISTS"
    MEMBER_BUSY = "MEMBER_BUSY"
    MEMBER_RUN_CLOSED = "MEMBER_RUN_CLOSED"
    MEMBER_RUN_EXISTS = "MEMBER_RUN_EXISTS"
    NAME_AMBIGUOUS = "NAME_AMBIGUOUS"
    NAME_TAKEN = "NAME_TAKEN"
    NATIVE_SESSION_MISSING = "NATIVE_SESSION_MISSING"
    NATIVE_SESSION_TAKEN = "NATIVE_SESSION_TAKEN"
    NODE_DAEMON_DRAINING = "NODE_DAEMON_DRAINING"
    NOT_AUTHORIZED = "NOT_AUTHORIZED"
    NOT_ELIGIBLE = "NOT_ELIGIBLE"
    NOT_FOUND = "NOT_FOUND"
    NO_ACCEPTOR = "NO_ACCEPTOR"
    NO_TURN_RUNNING = "NO_TURN_RUNNING"
    OUTCOME_UNKNOWN = "OUTCOME_UNKNOWN"
    PREREQUISITE_CYCLE = "PREREQUISITE_CYCLE"
    PREREQUISITE_INVALID = "PREREQUISITE_INVALID"
    PROCESS_UNPROVEN = "PROCESS_UNPROVEN"
    PROTOCOL_UNSUPPORTED = "PROTOCOL_UNSUPPORTED"
    PROVIDER_UNREACHABLE = "PROVIDER_UNREACHABLE"
    QUEUE_FULL = "QUEUE_FULL"
    RECEIPT_CHAIN_BROKEN = "RECEIPT_CHAIN_BROKEN"
    RECIPIENT_UNKNOWN = "RECIPIENT_UNKNOWN"
    ROW_QUARANTINED = "ROW_QUARANTINED"
    SESSION_LIVE = "SESSION_LIVE"
    SOLE_HOST = "SOLE_HOST"
    STEER_UNSUPPORTED = "STEER_UNSUPPORTED"
    STORE_BUSY = "STORE_BUSY"
    STORE_CORRUPT = "STORE_CORRUPT"
    STORE_FULL = "STORE_FULL"
    STORE_IO_ERROR = "STORE_IO_ERROR"
    STORE_READ_ONLY = "STORE_READ_ONLY"
    SUPERVISOR_GENERATION_FENCED = "SUPERVISOR_GENERATION_FENCED"
    SUPERVISOR_LEASE_HELD = "SUPERVISOR_LEASE_HELD"
    TEAM_RUN_DORMANT = "TEAM_RUN_DORMANT"
    TEAM_RUN_NOT_OPEN = "TEAM_RUN_NOT_OPEN"
    TOO_MANY_REQUESTS = "TOO_MANY_REQUESTS"
    UNKNOWN_OPERATION = "UNKNOWN_OPERATION"
    VERSION_CONFLICT = "VERSION_CONFLICT"
    WORKSPACE_CONFLICT = "WORKSPACE_CONFLICT"
    WORKSPACE_DIRTY = "WORKSPACE_DIRTY"
    WORK_ALREADY_ASSIGNED = "WORK_ALREADY_ASSIGNED"
    WORK_BINDING_LIVE = "WORK_BINDING_LIVE"
    WORK_NOT_ASSIGNED = "WORK_NOT_ASSIGNED"
    WORK_NOT_CLOSED = "WORK_NOT_CLOSED"
    WORK_NOT_LOST = "WORK_NOT_LOST"
    WORK_NOT_READY = "WORK_NOT_READY"
    WORK_ON_HOLD = "WORK_ON_HOLD"
    WORK_UNCLEAR = "WORK_UNCLEAR"


@attrs.frozen
class Row:
    """What the surfaces do with a code: HTTP status, exit status, retry rule, one sentence."""

    http: int
    exit: int
    retry: Retry
    meaning: str


_NEVER, _REREAD, _SAME = Retry.NEVER, Retry.REREAD, Retry.SAME

ROWS: Mapping[Code, Row] = {
    Code.ADOPTION_PENDING: Row(503, 3, _SAME, "The session has not been adopted yet after a restart of the daemon."),
    Code.AGENT_MEMBER_PAUSED: Row(409, 1, _REREAD, "The agent member is paused."),
    Code.AGENT_MEMBER_RETIRED: Row(409, 1, _NEVER, "The agent member is retired for good."),
    Code.AGENT_SESSION_EXISTS: Row(409, 1, _REREAD, "The agent member has a session that is not closed."),
    Code.AGENT_SESSION_GENERATION_FENCED: Row(409, 1, _NEVER, "A newer session of this member took over; stop."),
    Code.ANSWERED_ALREADY: Row(409, 1, _REREAD, "Another answer came first."),
    Code.ANSWER_INVALID: Row(400, 1, _REREAD, "That is no answer to this question."),
    Code.CAPABILITY_DENIED: Row(401, 1, _NEVER, "The credential shown proves nobody here."),
    Code.CAUSATION_INVALID: Row(409, 1, _REREAD, "The message or conversation named is not one of this run."),
    Code.CLAIM_LOST: Row(409, 1, _NEVER, "Another member answers for this Work; do nothing for it."),
    Code.CURSOR_INVALID: Row(400, 1, _REREAD, "The cursor belongs to another query or another store."),
    Code.DELIVERY_NOT_DISPATCHED: Row(409, 3, _SAME, "The Work is yours, and not delivered to your session yet."),
    Code.DELIVERY_RECOVERY_UNCERTAIN: Row(409, 1, _REREAD, "The delivery may have reached a process."),
    Code.DUPLICATE_TITLE: Row(409, 1, _REREAD, "An open Work of this run has the same title."),
    Code.EFFECT_UNSETTLED: Row(409, 3, _SAME, "Something begun for this session is not settled yet."),
    Code.EVIDENCE_REQUIRED: Row(400, 1, _NEVER, "Evidence is missing or contradicts itself."),
    Code.FENCE_STALE: Row(409, 1, _NEVER, "A later attempt at this Work has begun; stop."),
    Code.FILE_EXISTS: Row(409, 1, _NEVER, "A file of that name exists and is not overwritten."),
    Code.FILE_UNUSABLE: Row(400, 1, _REREAD, "The path cannot be used as asked."),
    Code.FRAME_TOO_LARGE: Row(413, 2, _NEVER, "The request is larger than a frame may be."),
    Code.GATE_NOT_PASSED: Row(409, 1, _REREAD, "A named check or the verifier has not passed this submission."),
    Code.HOOK_UNKNOWN: Row(409, 1, _NEVER, "The profile of this member gives that hook no meaning."),
    Code.HOST_REQUIRED: Row(409, 1, _REREAD, "An active team needs exactly one active Host."),
    Code.IDEMPOTENCY_KEY_REUSED: Row(409, 1, _NEVER, "The key was used for another request."),
    Code.INTERNAL: Row(500, 1, _SAME, "The daemon failed; its log says where."),
    Code.INVALID_STATE_TRANSITION: Row(409, 1, _REREAD, "The lifecycle has no such move from here."),
    Code.LAUNCH_DENIED: Row(403, 1, _NEVER, "The process that connected is not the one that was launched."),
    Code.LIMIT_EXCEEDED: Row(413, 2, _NEVER, "A value is larger than its limit."),
    Code.MALFORMED: Row(400, 2, _NEVER, "The request does not have the declared shape."),
    Code.MEMBERSHIP_EXISTS: Row(409, 1, _REREAD, "The agent member already takes part in this team."),
    Code.MEMBER_BUSY: Row(409, 1, _REREAD, "The member already works on another Work of this run."),
    Code.MEMBER_RUN_CLOSED: Row(409, 1, _REREAD, "The member takes no part in this run now."),
    Code.MEMBER_RUN_EXISTS: Row(409, 1, _REREAD, "The membership already takes part in this run."),
    Code.NAME_AMBIGUOUS: Row(409, 1, _REREAD, "The name fits more than one record."),
    Code.NAME_TAKEN: Row(409, 1, _REREAD, "An active member of the team has this name."),
    Code.NATIVE_SESSION_MISSING: Row(409, 1, _REREAD, "The conversation that a member should go on with is not there."),
    Code.NATIVE_SESSION_TAKEN: Row(409, 1, _REREAD, "Another session has this conversation, or may have it."),
    Code.NODE_DAEMON_DRAINING: Row(503, 3, _SAME, "The daemon is stopping and takes nothing new."),
    Code.NOT_AUTHORIZED: Row(403, 1, _NEVER, "The caller may not do this."),
    Code.NOT_ELIGIBLE: Row(403, 1, _NEVER, "This Work is not for the caller to claim."),
    Code.NOT_FOUND: Row(404, 1, _REREAD, "No such record, or not one the caller may see."),
    Code.NO_ACCEPTOR: Row(409, 1, _REREAD, "Nobody could accept this Work now."),
    Code.NO_TURN_RUNNING: Row(409, 1, _REREAD, "This member is in no turn that a text could be put into."),
    Code.OUTCOME_UNKNOWN: Row(503, 5, _SAME, "The write may or may not have been kept."),
    Code.PREREQUISITE_CYCLE: Row(409, 1, _REREAD, "The prerequisites would form a cycle."),
    Code.PREREQUISITE_INVALID: Row(409, 1, _REREAD, "A prerequisite cannot be one."),
    Code.PROCESS_UNPROVEN: Row(409, 1, _REREAD, "The process cannot be proven to be the one that is meant."),
    Code.PROTOCOL_UNSUPPORTED: Row(400, 2, _NEVER, "The two sides speak different protocol versions."),
    Code.PROVIDER_UNREACHABLE: Row(503, 3, _SAME, "What holds the terminals does not answer."),
    Code.QUEUE_FULL: Row(429, 3, _SAME, "Too much mail waits for this member already."),
    Code.RECEIPT_CHAIN_BROKEN: Row(500, 5, _REREAD, "A receipt of this Work is missing, doubled or altered."),
    Code.RECIPIENT_UNKNOWN: Row(404, 1, _REREAD, "Nobody of that name can receive mail here; nothing was stored."),
    Code.ROW_QUARANTINED: Row(500, 5, _REREAD, "The stored record cannot be read and was set aside."),
    Code.SESSION_LIVE: Row(409, 1, _REREAD, "A session that is not closed stands in the way."),
    Code.SOLE_HOST: Row(409, 1, _REREAD, "The member is the only Host of an active team."),
    Code.STEER_UNSUPPORTED: Row(409, 1, _NEVER, "The program of this member takes no text while it works."),
    Code.STORE_BUSY: Row(503, 3, _SAME, "Another program holds the database locked; nothing was written."),
    Code.STORE_CORRUPT: Row(503, 5, _REREAD, "The database is damaged; writes have stopped."),
    Code.STORE_FULL: Row(507, 3, _SAME, "The disk is full; nothing was written."),
    Code.STORE_IO_ERROR: Row(503, 3, _SAME, "The disk failed; nothing was written."),
    Code.STORE_READ_ONLY: Row(503, 3, _SAME, "The disk is read-only; nothing was written."),
    Code.SUPERVISOR_GENERATION_FENCED: Row(409, 1, _NEVER, "A newer supervisor took over; stop."),
    Code.SUPERVISOR_LEASE_HELD: Row(409, 3, _SAME, "Another supervisor holds this run and may still act."),
    Code.TEAM_RUN_DORMANT: Row(409, 1, _REREAD, "No supervisor holds this run, so nobody would act."),
    Code.TEAM_RUN_NOT_OPEN: Row(409, 1, _REREAD, "The run takes nothing new now."),
    Code.TOO_MANY_REQUESTS: Row(429, 3, _SAME, "The connection holds as many open requests as it may."),
    Code.UNKNOWN_OPERATION: Row(404, 2, _NEVER, "This daemon has no such operation."),
    Code.VERSION_CONFLICT: Row(412, 1, _REREAD, "The record moved since it was read."),
    Code.WORKSPACE_CONFLICT: Row(409, 1, _REREAD, "The member's workspace cannot be had as it stands."),
    Code.WORKSPACE_DIRTY: Row(409, 1, _REREAD, "The workspace has changes that are in no commit."),
    Code.WORK_ALREADY_ASSIGNED: Row(409, 1, _REREAD, "The Work is assigned to that member already."),
    Code.WORK_BINDING_LIVE: Row(409, 1, _REREAD, "An attempt at this Work is live."),
    Code.WORK_NOT_ASSIGNED: Row(409, 1, _REREAD, "Nobody answers for this Work."),
    Code.WORK_NOT_CLOSED: Row(409, 1, _REREAD, "A Work of this run is not closed."),
    Code.WORK_NOT_LOST: Row(409, 1, _REREAD, "No attempt at this Work is proven lost."),
    Code.WORK_NOT_READY: Row(409, 1, _REREAD, "A prerequisite of this Work is not accepted."),
    Code.WORK_ON_HOLD: Row(409, 1, _REREAD, "The Work is on hold."),
    Code.WORK_UNCLEAR: Row(409, 1, _REREAD, "Which Work is meant is not clear."),
}

#: Any operation may refuse with these; rows of the table list only the others.
COMMON = (
    Code.ADOPTION_PENDING,
    Code.AGENT_SESSION_GENERATION_FENCED,
    Code.CAPABILITY_DENIED,
    Code.FRAME_TOO_LARGE,
    Code.INTERNAL,
    Code.LIMIT_EXCEEDED,
    Code.MALFORMED,
    Code.NODE_DAEMON_DRAINING,
    Code.NOT_AUTHORIZED,
    Code.STORE_BUSY,  # a read meets the faults of the disk and the file as a write does
    Code.STORE_CORRUPT,
    Code.STORE_FULL,
    Code.STORE_IO_ERROR,
    Code.STORE_READ_ONLY,
    Code.TOO_MANY_REQUESTS,
    Code.UNKNOWN_OPERATION,
)

#: Every operation that writes may also refuse with these.
WRITING = (
    Code.IDEMPOTENCY_KEY_REUSED,
    Code.OUTCOME_UNKNOWN,
)

#: The answer to a hello; after one of these the daemon closes the connection.
HELLO = (Code.CAPABILITY_DENIED, Code.LAUNCH_DENIED, Code.MALFORMED, Code.NOT_AUTHORIZED, Code.PROTOCOL_UNSUPPORTED)

#: Of what a member needs before it is launched, its workspace and its conversation, and of a workspace that is
#: archived. No operation answers with these: they stand in what was read back of the effect.
LAUNCHES = (Code.NATIVE_SESSION_MISSING, Code.WORKSPACE_CONFLICT, Code.WORKSPACE_DIRTY)


@attrs.frozen(kw_only=True)
class Refusal:
    """What was refused, about what, and what would lift it."""

    code: Code
    about: str = ""  # "<noun>/<id>", or a field name
    lifted_by: str = ""  # one sentence a person or an agent can act on
    current_version: int | None = None
