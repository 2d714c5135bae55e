"""Boards: where a run stands, recomputed at every question. Records, requests and rows."""

from __future__ import annotations

import enum
from typing import Annotated

import attrs

from client.protocol.agent import WorkspacePolicy
from client.protocol.effect import RuntimeEffect
from client.protocol.ids import (
    OWN_RUN,
    AgentMemberId,
    Fence,
    MemberRunId,
    ProjectId,
    ReceiptId,
    RunGen,
    SessionId,
    SupGen,
    TeamRunId,
    UnixMs,
    WorkId,
)
from client.protocol.operation import MEMBER_OR_ABOVE, READERS, SUPERVISOR, Effect, Operation, Request
from client.protocol.refusals import Code
from client.protocol.session import Activity, AgentSession, Capacity, SessionState, Source
from client.protocol.shape import ID, OPTIONAL_ID, VERSION
from client.protocol.team_run import CYCLES, TeamRun
from client.protocol.verdict import Verification
from client.protocol.work import Condition, Phase, Priority


@attrs.frozen(kw_only=True)
class Counts:
    """Works of a run. ``ready`` are open, normal and wait for nothing."""

    open: int
    active: int
    blocked: int
    on_hold: int
    review: int
    accepted: int
    cancelled: int
    failed: int
    assigned: int
    unassigned: int
    ready: int


class Doing(enum.StrEnum):
    """What a member does, from its Works and its session; ``absent`` has no session."""

    WORKING = "working"
    AWAITING_REVIEW = "awaiting-review"
    IDLE = "idle"
    ABSENT = "absent"
    RECOVERY = "recovery-required"


@attrs.frozen(kw_only=True)
class BoardMember:
    """``session`` is how its session that is not closed is, None where it has none; ``native_session`` the conversation
    of its program in there, and ``resumed`` whether it goes on with that of a former session. ``activity`` is whether a
    turn goes on there, by what and since when; ``waits`` what it waits for before it is told what waits for it.
    """

    member_run_id: MemberRunId
    name: str
    role: str
    number: int
    doing: Doing
    session: SessionState | None
    work_id: WorkId | None
    work_title: str
    mail: int
    native_session: str = ""
    resumed: bool = False
    activity: Activity = Activity.UNKNOWN
    activity_at: UnixMs | None = None
    activity_source: Source | None = None
    capacity: Capacity = Capacity.UNKNOWN
    waits: str = ""


@attrs.frozen(kw_only=True)
class BoardWork:
    """A Work that is not closed; ``ready`` tells of an open one that it waits for nothing, ``verdict`` of one in review
    what its verifier said.
    """

    work_id: WorkId
    title: str
    phase: Phase
    condition: Condition
    priority: Priority
    owner: str
    ready: bool
    updated_at: UnixMs
    verifier: str = ""
    verdict: Verification | None = None


class AttentionKind(enum.StrEnum):
    """What somebody has to look at."""

    REVIEW = "review_requested"
    VERIFY = "verification_requested"
    VERIFIER = "verifier_missing"
    BLOCKED = "blocked"
    ORPHANED = "orphaned"
    STOPPED = "member_stopped"
    PREREQUISITE = "prerequisite_not_accepted"
    MAIL = "mail_undelivered"
    DEGRADED = "member_degraded"
    HELD = "delivery_held"
    UNSUBMITTED = "delivery_unsubmitted"
    NOT_ENDED = "member_not_ended"
    UNINTERRUPTED = "interrupt_unread"
    CAPACITY = "capacity_unavailable"
    DELEGATION = "delegation"


@attrs.frozen(kw_only=True)
class Attention:
    """One thing to look at. The same ``key`` is the same incident: acknowledged once, it stays silent."""

    key: str
    kind: AttentionKind
    about: str
    what: str
    lifted_by: str
    since: UnixMs


@attrs.frozen(kw_only=True)
class Board:
    """``works`` has fifty of each phase but closed, the most urgent first, then the oldest; ``counts`` has all."""

    run: TeamRun
    counts: Counts
    works: list[BoardWork]
    members: list[BoardMember]
    attention: list[Attention]


@attrs.frozen(kw_only=True)
class Summary:
    """At most 500 characters."""

    text: str


@attrs.frozen(kw_only=True)
class AttentionList:
    items: list[Attention]


@attrs.frozen(kw_only=True)
class Due:
    """A Work that can be admitted now, the session to admit it to, and how many of its deliveries in a row failed."""

    work_id: WorkId
    work_version: int
    session_id: SessionId
    session_gen: int
    failed: int = 0


@attrs.frozen(kw_only=True)
class DueCheck:
    """A named check without a result for the submission in review. ``line`` is as the Work says it, ``revision`` the
    commit submitted, empty where there is none; ``root`` is the project's folder.
    """

    work_id: WorkId
    receipt_id: ReceiptId
    fence: Fence
    line: str
    revision: str
    root: str


@attrs.frozen(kw_only=True)
class Waking:
    """What may be a reason to tell a member something at its terminal. ``queued``: a Work waits for it. ``asked`` and
    ``told`` count mail that waits, by whether it needs an answer. ``doing``: it has a Work that it was told of and that
    is neither blocked nor submitted; ``changed``: at another version than it was told. ``claimable``: there are Works
    that it may claim and was not told of. ``accepted``: its Work is blocked, and another of its Works was accepted
    since it was told so. ``last`` is the number of the last delivery to it: whoever was told longest ago comes first.
    """

    queued: bool
    asked: int
    told: int
    doing: bool
    changed: bool
    claimable: bool
    idle_ms: int
    accepted: bool = False
    last: int = 0


@attrs.frozen(kw_only=True)
class Seat:
    """A place of a run that a supervisor looks after: who sits there, where it works, its session that is not closed,
    the last launch of that, and the delivery whose cycle has not ended. ``waking`` is there while it could be told
    something at its terminal. For ``unavailable_ms`` from now on its provider is known to give it nothing.
    """

    member_run_id: MemberRunId
    run_gen: RunGen
    agent_member_id: AgentMemberId
    agent_name: str
    team_name: str
    profile: str
    workspace: WorkspacePolicy
    project_id: ProjectId
    root: str
    in_git: bool
    takes_sessions: bool
    session: AgentSession | None
    launch: RuntimeEffect | None
    waking: Waking | None = None
    cycle: RuntimeEffect | None = None
    unavailable_ms: int = 0


@attrs.frozen(kw_only=True)
class DueList:
    """``seq`` is what was committed when this was looked at: wait for more behind it. ``controls`` are what somebody
    asked for and nobody settled. A run that ``finishes`` was told to complete, and its supervisor goes on with it. At
    most ``cycles`` of its members are in a cycle at once.
    """

    items: list[Due]
    seats: list[Seat]
    controls: list[RuntimeEffect]
    sup_gen: SupGen
    seq: int
    checks: list[DueCheck] = attrs.Factory(list)
    finishes: bool = False
    cycles: int = CYCLES


@attrs.frozen(kw_only=True)
class ShowBoard(Request[Board]):
    """Show who does what, what is blocked and why, and what somebody has to look at."""

    team_run_id: Annotated[TeamRunId, "the run; the caller's own when empty", OPTIONAL_ID] = OWN_RUN


@attrs.frozen(kw_only=True)
class ShowSummary(Request[Summary]):
    """Say in at most 500 characters where a run stands."""

    team_run_id: Annotated[TeamRunId, "the run; the caller's own when empty", OPTIONAL_ID] = OWN_RUN


@attrs.frozen(kw_only=True)
class ListAttention(Request[AttentionList]):
    """List what the caller has to look at, oldest first."""

    team_run_id: Annotated[TeamRunId, "the run; the caller's own when empty", OPTIONAL_ID] = OWN_RUN


@attrs.frozen(kw_only=True)
class AcknowledgeAttention(Request[AttentionList]):
    """Say that an incident was seen: it is not raised again."""

    team_run_id: Annotated[TeamRunId, "the run; the caller's own when empty", OPTIONAL_ID] = OWN_RUN
    key: Annotated[str, "the incident, as the list names it", ID]


@attrs.frozen(kw_only=True)
class ListDue(Request[DueList]):
    """List what a supervisor has to look after now."""

    team_run_id: Annotated[TeamRunId, "the run", ID]
    sup_gen: Annotated[int, "the supervisor generation that asks", VERSION]


_FIND = (Code.NOT_FOUND, Code.ROW_QUARANTINED)

OPERATIONS = (
    Operation("attention.ack", AcknowledgeAttention, planes=MEMBER_OR_ABOVE, effect=Effect.WRITE, refuses=_FIND),
    Operation("attention.list", ListAttention, planes=READERS, effect=Effect.READ, refuses=_FIND),
    Operation("team-run.board", ShowBoard, planes=READERS, effect=Effect.READ, refuses=_FIND),
    Operation("team-run.board-summary", ShowSummary, planes=READERS, effect=Effect.READ, refuses=_FIND),
    Operation(
        "team-run.due",
        ListDue,
        planes=SUPERVISOR,
        effect=Effect.READ,
        refuses=(*_FIND, Code.SUPERVISOR_GENERATION_FENCED, Code.TEAM_RUN_NOT_OPEN),
    ),
)
