"""AgentSession and Capability: one proven process, and the credential it holds. Records, requests and rows."""

from __future__ import annotations

import enum
from typing import Annotated

import attrs

from client.protocol.ceiling import Ceiling
from client.protocol.ids import (
    AgentMemberId,
    AgentMemberRef,
    CapabilityId,
    DaemonGen,
    MemberRunId,
    RunGen,
    SessionGen,
    SessionId,
    SupGen,
    TeamRunId,
    UnixMs,
)
from client.protocol.operation import MEMBERS, OPERATOR, READERS, SUPERVISOR, Effect, Operation, Request
from client.protocol.refusals import Code
from client.protocol.shape import ID, LABEL, LINE, PAGE, VERSION, Bounds

#: Of hooks: what grows with each; a clock in nanoseconds fits.
SEQUENCE = Bounds(least=1, most=2**62)


class SessionState(enum.StrEnum):
    """Waiting is not a state: it is active with the activity ``waiting_input``."""

    COLD = "cold"
    IDLE = "idle"
    ACTIVE = "active"
    INTERRUPTED = "interrupted"
    RECOVERY_REQUIRED = "recovery_required"
    CLOSED = "closed"


class SessionCause(enum.StrEnum):
    """What a supervisor may report of a session."""

    READY = "ready"
    CYCLE_STARTED = "cycle_started"
    CYCLE_ENDED = "cycle_ended"
    INTERRUPTED = "interrupted"
    REOPENED = "reopened"
    ADOPTED = "adopted"
    EXITED = "exited"
    LOST = "lost"
    RESOLVED = "resolved"
    CLOSED = "closed"
    DEGRADED = "degraded"


class Driver(enum.StrEnum):
    """Who starts cycles: the supervisor, or a person whom we only answer."""

    HOST_DRIVEN = "host_driven"
    USER_DRIVEN = "user_driven"


class Liveness(enum.StrEnum):
    """What is known of the process. Never guessed: a process nobody looked at is unknown."""

    LIVE = "live"
    STOPPED = "stopped"
    UNKNOWN = "unknown"


class Ending(enum.StrEnum):
    """How a cycle ended, as far as its terminal, its hooks and its records show it."""

    COMPLETED = "completed"
    EMPTY_OUTPUT = "empty_output"  # its member asked the daemon for nothing and moved no Work
    INTERRUPTED_BY_HOST = "interrupted_by_host"  # by an interrupt of ours
    INTERRUPTED_BY_PROVIDER = "interrupted_by_provider"  # by whomever else; the program says so by itself
    CLOSED = "closed"
    PROVIDER_FAILED = "provider_failed"  # its failure says how
    TRANSPORT_LOST = "transport_lost"  # its terminal was lost
    TERMINAL_UNOBSERVED = "terminal_unobserved"  # nobody saw all of it


class Failure(enum.StrEnum):
    """How a provider failed a cycle, by the structured records of its program."""

    QUOTA_EXHAUSTED = "quota_exhausted"
    UNAUTHORIZED = "unauthorized"
    OUTPUT_LIMIT = "output_limit"
    REFUSAL = "refusal"
    TURN_REQUEST_LIMIT = "turn_request_limit"
    RUNNER_ERROR = "runner_error"  # its process ended
    TURN_FAILED = "turn_failed"  # whatever else


class Activity(enum.StrEnum):
    """Whether a turn goes on in a session. What nobody said is unknown, and never taken for idle."""

    UNKNOWN = "unknown"
    RUNNING = "running"
    WAITING_INPUT = "waiting_input"
    IDLE = "idle"


class Source(enum.StrEnum):
    """What said it: a hook of the program, or its terminal, which a text was typed to or which fell quiet."""

    HOOK = "hook"
    TERMINAL = "terminal"


class Heard(enum.StrEnum):
    """What a hook of a program means, as its profile says."""

    BEGUN = "begun"
    ENDED = "ended"
    WAITING = "waiting"


class Capacity(enum.StrEnum):
    """What the provider of a session still gives it. Unknown where nothing fresh says it."""

    AVAILABLE = "available"
    LIMITED = "limited"
    EXHAUSTED = "exhausted"
    UNAUTHORIZED = "unauthorized"
    UNKNOWN = "unknown"


@attrs.frozen(kw_only=True)
class AgentSession:
    """One incarnation of a member in a run. ``pid``, ``start_ticks`` and ``boot_id`` prove its process; 0 and empty
    until it was proven. ``streak`` counts cycles in a row that came to nothing; a degraded session gets no more of them
    until its member does something. ``typist`` is who has stepped in at its terminal; empty: nobody. ``ceiling`` is
    that of its member when it was opened, and stays; no process is held to it yet. ``native_session`` is the
    conversation that its program, of ``profile``, keeps beyond its process, by the program's own id; empty where it
    keeps none. ``resumed_from`` is the session whose conversation it goes on with; None where it began its own.
    ``activity`` is what was last said of its turn, by what and when; ``turn`` is the program's own id of that,
    ``turn_begun`` and ``turn_ended`` mark the last begin and the last end that its hooks told of. ``capacity`` is what
    a record of its program said, by which rule.
    """

    id: SessionId
    version: int
    agent_member_id: AgentMemberId
    member_run_id: MemberRunId
    team_run_id: TeamRunId
    session_gen: SessionGen
    run_gen: RunGen
    sup_gen: SupGen
    daemon_gen: DaemonGen
    state: SessionState
    driver: Driver
    process: Liveness
    pid: int
    start_ticks: int
    boot_id: str
    native_session: str
    created_at: UnixMs
    updated_at: UnixMs
    closed_at: UnixMs | None
    streak: int
    degraded_at: UnixMs | None
    hinted_at: UnixMs | None
    typist: str
    ceiling: Ceiling
    profile: str = ""
    resumed_from: SessionId | None = None
    activity: Activity = Activity.UNKNOWN
    activity_at: UnixMs | None = None
    activity_source: Source | None = None
    turn: str = ""
    turn_begun: int = 0
    turn_ended: int = 0
    capacity: Capacity = Capacity.UNKNOWN
    capacity_at: UnixMs | None = None
    capacity_source: str = ""


class CapabilityState(enum.StrEnum):
    """``expired`` is derived at a stated moment and stored nowhere."""

    ACTIVE = "active"
    REPLACED = "replaced"
    REVOKED = "revoked"


@attrs.frozen(kw_only=True)
class Capability:
    """What a session's process shows. Only the SHA-256 of the token is kept; it can be derived again."""

    id: CapabilityId
    version: int
    session_id: SessionId
    token_sha256: str
    daemon_gen: DaemonGen
    sup_gen: SupGen
    state: CapabilityState
    accepts_new_claims: bool
    expires_at: UnixMs | None
    created_at: UnixMs
    updated_at: UnixMs


@attrs.frozen(kw_only=True)
class SessionPage:
    items: list[AgentSession]
    next: str | None


@attrs.frozen(kw_only=True)
class SessionShown:
    """A session with its capability; an external one is proven by its process alone and has none."""

    session: AgentSession
    capability: Capability | None


@attrs.frozen(kw_only=True)
class OpenSession(Request[AgentSession]):
    """Open the next session of a place; a former one that is not closed is superseded when asked so."""

    member_run_id: Annotated[MemberRunId, "the place", ID]
    sup_gen: Annotated[int, "the supervisor generation that asks", VERSION]
    driver: Annotated[Driver, "who starts its cycles"] = Driver.HOST_DRIVEN
    supersede: Annotated[bool, "end a former session that is not closed"] = False
    cwd: Annotated[str, "the folder in which it will work, where that is known", Bounds(most=4096)] = ""


@attrs.frozen(kw_only=True)
class ReportSession(Request[AgentSession]):
    """Report what became of a session."""

    session_id: Annotated[SessionId, "the session", ID]
    session_gen: Annotated[int, "its generation", VERSION]
    sup_gen: Annotated[int, "the supervisor generation that reports", VERSION]
    cause: Annotated[SessionCause, "what happened"]
    reason: Annotated[str, "why, for the record", LABEL] = ""
    native_session: Annotated[str, "the provider's own session id, once known", LABEL] = ""
    ending: Annotated[Ending | None, "how its cycle ended"] = None
    failure: Annotated[Failure | None, "how its provider failed the cycle"] = None
    capacity: Annotated[Capacity | None, "what the records of its program say that its provider gives"] = None
    capacity_source: Annotated[str, "which rule read that", LABEL] = ""


@attrs.frozen(kw_only=True)
class HookSession(Request[AgentSession]):
    """Say what a hook of the caller's own program was run for; what is late or told twice changes nothing."""

    event: Annotated[str, "the program's name for it; the caller's profile says what that means", LINE]
    sequence: Annotated[int, "a number that grows with each hook, such as nanoseconds of a clock", SEQUENCE]
    turn: Annotated[str, "the program's own id of the turn", LABEL] = ""


@attrs.frozen(kw_only=True)
class BindSession(Request[AgentSession]):
    """Make a running process of a person's own the session of a member; its whole tree is that member from then on."""

    agent_member_id: Annotated[AgentMemberRef, "the member, by id or unique name", ID]
    pid: Annotated[int, "a running process, such as the shell's $$", Bounds(least=2, most=2**22)]
    team_run_id: Annotated[TeamRunId | None, "the run, where the member is in several", ID] = None


@attrs.frozen(kw_only=True)
class UnbindSession(Request[AgentSession]):
    """End the session of a person's own process; what it answers for stays with the member."""

    session_id: Annotated[SessionId, "the session", ID]


@attrs.frozen(kw_only=True)
class SessionToken:
    """What the session's process shows. Derived when asked, kept nowhere."""

    session_id: SessionId
    token: str


@attrs.frozen(kw_only=True)
class DeriveToken(Request[SessionToken]):
    """Derive the capability of a session again, for the process that is launched with it."""

    session_id: Annotated[SessionId, "the session", ID]
    sup_gen: Annotated[int, "the supervisor generation that asks", VERSION]


@attrs.frozen(kw_only=True)
class SetClaims(Request[Capability]):
    """Let a session take new claims, or no more; heartbeat and outcome of what it has stay."""

    session_id: Annotated[SessionId, "the session", ID]
    accepts_new_claims: Annotated[bool, "whether it may claim"]
    sup_gen: Annotated[int | None, "the supervisor generation that asks; the operator names none", VERSION] = None


@attrs.frozen(kw_only=True)
class ListSessions(Request[SessionPage]):
    """List sessions, oldest first."""

    team_run_id: Annotated[TeamRunId | None, "only of this run", ID] = None
    state: Annotated[SessionState | None, "only in this state"] = None
    limit: Annotated[int, "most rows", PAGE] = 100
    cursor: Annotated[str, "continue after an earlier page", Bounds(most=500)] = ""


@attrs.frozen(kw_only=True)
class ShowSession(Request[SessionShown]):
    """Show one session and its capability, never the token."""

    session_id: Annotated[SessionId, "the session", ID]


_FIND = (Code.NOT_FOUND, Code.ROW_QUARANTINED)
_W = Effect.WRITE
_SUP = (*_FIND, Code.SUPERVISOR_GENERATION_FENCED)

OPERATIONS = (
    Operation(
        "session.bind",
        BindSession,
        planes=OPERATOR,
        effect=_W,
        refuses=(
            *_FIND,
            Code.AGENT_MEMBER_PAUSED,
            Code.AGENT_MEMBER_RETIRED,
            Code.AGENT_SESSION_EXISTS,
            Code.MEMBER_RUN_CLOSED,
            Code.NAME_AMBIGUOUS,
            Code.PROCESS_UNPROVEN,
        ),
    ),
    Operation("session.claims", SetClaims, planes=OPERATOR | SUPERVISOR, effect=_W, refuses=_SUP),
    Operation(
        "session.hook",
        HookSession,
        planes=MEMBERS,
        effect=_W,
        refuses=(Code.HOOK_UNKNOWN, Code.ROW_QUARANTINED),
    ),
    Operation("session.list", ListSessions, planes=READERS, effect=Effect.READ, refuses=(*_FIND, Code.CURSOR_INVALID)),
    Operation(
        "session.open",
        OpenSession,
        planes=SUPERVISOR,
        effect=_W,
        refuses=(
            *_SUP,
            Code.AGENT_MEMBER_PAUSED,
            Code.AGENT_MEMBER_RETIRED,
            Code.AGENT_SESSION_EXISTS,
            Code.EFFECT_UNSETTLED,
            Code.MEMBER_RUN_CLOSED,
            Code.NATIVE_SESSION_TAKEN,
            Code.TEAM_RUN_NOT_OPEN,
        ),
    ),
    Operation(
        "session.report",
        ReportSession,
        planes=SUPERVISOR,
        effect=_W,
        refuses=(
            *_SUP,
            Code.INVALID_STATE_TRANSITION,
            Code.NATIVE_SESSION_TAKEN,
            Code.WORK_BINDING_LIVE,
        ),
    ),
    Operation("session.show", ShowSession, planes=READERS, effect=Effect.READ, refuses=_FIND),
    Operation("session.token", DeriveToken, planes=SUPERVISOR, effect=Effect.READ, refuses=_SUP),
    Operation(
        "session.unbind", UnbindSession, planes=OPERATOR, effect=_W, refuses=(*_FIND, Code.INVALID_STATE_TRANSITION)
    ),
)
