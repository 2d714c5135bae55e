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

    AGENT_MEMBER_PAUSED = "AGENT_MEMBER_PAUSED"
    AGENT_MEMBER_RETIRED = "AGENT_MEMBER_RETIRED"
    CAPABILITY_DENIED = "CAPABILITY_DENIED"
    CURSOR_INVALID = "CURSOR_INVALID"
    FILE_EXISTS = "FILE_EXISTS"
    FILE_UNUSABLE = "FILE_UNUSABLE"
    FRAME_TOO_LARGE = "FRAME_TOO_LARGE"
    HOST_REQUIRED = "HOST_REQUIRED"
    IDEMPOTENCY_KEY_REUSED = "IDEMPOTENCY_KEY_REUSED"
    INTERNAL = "INTERNAL"
    INVALID_STATE_TRANSITION = "INVALID_STATE_TRANSITION"
    LIMIT_EXCEEDED = "LIMIT_EXCEEDED"
    MALFORMED = "MALFORMED"
    MEMBERSHIP_EXISTS = "MEMBERSHIP_EXISTS"
    NAME_AMBIGUOUS = "NAME_AMBIGUOUS"
    NAME_TAKEN = "NAME_TAKEN"
    NODE_DAEMON_DRAINING = "NODE_DAEMON_DRAINING"
    NOT_AUTHORIZED = "NOT_AUTHORIZED"
    NOT_FOUND = "NOT_FOUND"
    OUTCOME_UNKNOWN = "OUTCOME_UNKNOWN"
    PROTOCOL_UNSUPPORTED = "PROTOCOL_UNSUPPORTED"
    ROW_QUARANTINED = "ROW_QUARANTINED"
    SOLE_HOST = "SOLE_HOST"
    STORE_BUSY = "STORE_BUSY"
    STORE_CORRUPT = "STORE_CORRUPT"
    STORE_FULL = "STORE_FULL"
    STORE_IO_ERROR = "STORE_IO_ERROR"
    STORE_READ_ONLY = "STORE_READ_ONLY"
    TOO_MANY_REQUESTS = "TOO_MANY_REQUESTS"
    UNKNOWN_OPERATION = "UNKNOWN_OPERATION"
    VERSION_CONFLICT = "VERSION_CONFLICT"


@attrs.frozen
class Row:
    """What the surfaces do with a code: HTTP status, exit status, retry rule, one sentence."""

    http: int
    exit: int
    retry: Retry
    meaning: str


_NEVER, _REREAD, _SAME = Retry.NEVER, Retry.REREAD, Retry.SAME

ROWS: Mapping[Code, Row] = {
    Code.AGENT_MEMBER_PAUSED: Row(409, 1, _REREAD, "The agent member is paused."),
    Code.AGENT_MEMBER_RETIRED: Row(409, 1, _NEVER, "The agent member is retired for good."),
    Code.CAPABILITY_DENIED: Row(401, 1, _NEVER, "The credential shown proves nobody here."),
    Code.CURSOR_INVALID: Row(400, 1, _REREAD, "The cursor belongs to another query or another store."),
    Code.FILE_EXISTS: Row(409, 1, _NEVER, "A file of that name exists and is not overwritten."),
    Code.FILE_UNUSABLE: Row(400, 1, _REREAD, "The path cannot be used as asked."),
    Code.FRAME_TOO_LARGE: Row(413, 2, _NEVER, "The request is larger than a frame may be."),
    Code.HOST_REQUIRED: Row(409, 1, _REREAD, "An active team needs exactly one active Host."),
    Code.IDEMPOTENCY_KEY_REUSED: Row(409, 1, _NEVER, "The key was used for another request."),
    Code.INTERNAL: Row(500, 1, _SAME, "The daemon failed; its log says where."),
    Code.INVALID_STATE_TRANSITION: Row(409, 1, _REREAD, "The lifecycle has no such move from here."),
    Code.LIMIT_EXCEEDED: Row(413, 2, _NEVER, "A value is larger than its limit."),
    Code.MALFORMED: Row(400, 2, _NEVER, "The request does not have the declared shape."),
    Code.MEMBERSHIP_EXISTS: Row(409, 1, _REREAD, "The agent member already takes part in this team."),
    Code.NAME_AMBIGUOUS: Row(409, 1, _REREAD, "The name fits more than one record."),
    Code.NAME_TAKEN: Row(409, 1, _REREAD, "An active member of the team has this name."),
    Code.NODE_DAEMON_DRAINING: Row(503, 3, _SAME, "The daemon is stopping and takes nothing new."),
    Code.NOT_AUTHORIZED: Row(403, 1, _NEVER, "The caller may not do this."),
    Code.NOT_FOUND: Row(404, 1, _REREAD, "No such record, or not one the caller may see."),
    Code.OUTCOME_UNKNOWN: Row(503, 5, _SAME, "The write may or may not have been kept."),
    Code.PROTOCOL_UNSUPPORTED: Row(400, 2, _NEVER, "The two sides speak different protocol versions."),
    Code.ROW_QUARANTINED: Row(500, 5, _REREAD, "The stored record cannot be read and was set aside."),
    Code.SOLE_HOST: Row(409, 1, _REREAD, "The member is the only Host of an active team."),
    Code.STORE_BUSY: Row(503, 3, _SAME, "Another program holds the database locked; nothing was written."),
    Code.STORE_CORRUPT: Row(503, 5, _REREAD, "The database is damaged; writes have stopped."),
    Code.STORE_FULL: Row(507, 3, _SAME, "The disk is full; nothing was written."),
    Code.STORE_IO_ERROR: Row(503, 3, _SAME, "The disk failed; nothing was written."),
    Code.STORE_READ_ONLY: Row(503, 3, _SAME, "The disk is read-only; nothing was written."),
    Code.TOO_MANY_REQUESTS: Row(429, 3, _SAME, "The connection holds as many open requests as it may."),
    Code.UNKNOWN_OPERATION: Row(404, 2, _NEVER, "This daemon has no such operation."),
    Code.VERSION_CONFLICT: Row(412, 1, _REREAD, "The record moved since it was read."),
}

#: Any operation may refuse with these; rows of the table list only the others.
COMMON = (
    Code.FRAME_TOO_LARGE,
    Code.INTERNAL,
    Code.LIMIT_EXCEEDED,
    Code.MALFORMED,
    Code.NODE_DAEMON_DRAINING,
    Code.NOT_AUTHORIZED,
    Code.STORE_CORRUPT,
    Code.STORE_IO_ERROR,
    Code.TOO_MANY_REQUESTS,
    Code.UNKNOWN_OPERATION,
)

#: Every operation that writes may also refuse with these.
WRITING = (
    Code.IDEMPOTENCY_KEY_REUSED,
    Code.OUTCOME_UNKNOWN,
    Code.STORE_BUSY,
    Code.STORE_FULL,
    Code.STORE_READ_ONLY,
)

#: The answer to a hello; after one of these the daemon closes the connection.
HELLO = (Code.CAPABILITY_DENIED, Code.MALFORMED, Code.NOT_AUTHORIZED, Code.PROTOCOL_UNSUPPORTED)


@attrs.frozen(kw_only=True)
class Refusal:
    """What was refused, about what, and what would lift it."""

    code: Code
    about: str = ""  # "<noun>/<id>", or a field name
    lifted_by: str = ""  # one sentence a person or an agent can act on
    current_version: int | None = None
