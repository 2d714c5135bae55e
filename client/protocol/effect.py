"""RuntimeEffect: something done to a process, or to a worktree, recorded before it is done. Records, requests and rows.

It is born unknown. Whoever does it reads the world back and settles it; what cannot be read stays unknown, and visible.
"""

from __future__ import annotations

import enum
from typing import Annotated

import attrs

from client.protocol.ids import (
    OWN_RUN,
    EffectId,
    SessionGen,
    SessionId,
    SupGen,
    TeamRunId,
    UnixMs,
    WorkId,
)
from client.protocol.operation import HOST_OR_OPERATOR, OPERATOR, READERS, SUPERVISOR, Effect, Operation, Request
from client.protocol.refusals import Code
from client.protocol.session import Ending, Failure
from client.protocol.shape import ID, LABEL, LINE, OPTIONAL_ID, PAGE, PATH, TEXT, VERSION, Bounds


class EffectKind(enum.StrEnum):
    LAUNCH = "launch"
    INTERRUPT = "interrupt"
    STOP = "stop"
    DELIVER = "deliver"
    STEER = "steer"
    ARCHIVE = "archive"  # takes a worktree away; the only one that is not about a process


class EffectState(enum.StrEnum):
    """Unknown until it is settled; ``recovery_required`` says that reading it back failed."""

    PREPARED = "prepared"
    SETTLED = "settled"
    RECOVERY_REQUIRED = "recovery_required"


class Certainty(enum.StrEnum):
    UNKNOWN = "unknown"
    APPLIED = "applied"
    NOT_APPLIED = "not_applied"


class Wake(enum.StrEnum):
    """Why a member is told something at its terminal, which begins a cycle."""

    DELIVERY = "delivery"  # a Work waits for it, or mail that needs an answer
    CONTINUE = "continue"  # somebody else changed the Work that it does
    PROBATION = "probation"  # its last cycle came to nothing, and it has a Work to do
    ACCEPTED = "accepted"  # its Work is blocked, and another of its Works was accepted
    CLAIMABLE = "claimable"  # there are Works that it may claim
    MAIL = "mail"  # informational mail, once it was idle for long


class EffectFinding(enum.StrEnum):
    """What a person found out about an effect that nothing could read back."""

    CONFIRM_APPLIED = "confirm_applied"
    CONFIRM_NOT_APPLIED = "confirm_not_applied"
    KEEP = "keep"


@attrs.frozen(kw_only=True)
class RuntimeEffect:
    """``pane``, ``pid``, ``start_ticks`` and ``boot_id`` are what a launch started, once that was read. A launch, and
    whatever is typed, is found again by this record's id. A delivery says why it is made, which Work at which version
    it tells of, and how the cycle that it began has ended; ``after_turn`` is the last end of a turn that was told of
    before. ``text`` is what a steer types. ``cwd`` is where a launch works, and what an archive takes away. A launch
    that ``resumes`` goes on with the conversation of its session.
    """

    id: EffectId
    version: int
    team_run_id: TeamRunId
    session_id: SessionId
    session_gen: SessionGen
    sup_gen: SupGen
    kind: EffectKind
    state: EffectState
    certainty: Certainty
    cwd: str
    pane: str
    pid: int
    start_ticks: int
    boot_id: str
    readback: str
    created_by: str
    created_at: UnixMs
    updated_at: UnixMs
    settled_at: UnixMs | None
    wake: Wake | None
    work_id: WorkId | None
    work_version: int
    text: str
    ending: Ending | None
    resumes: bool = False
    failure: Failure | None = None
    after_turn: int = 0


@attrs.frozen(kw_only=True)
class EffectPage:
    items: list[RuntimeEffect]
    next: str | None


@attrs.frozen(kw_only=True)
class PrepareEffect(Request[RuntimeEffect]):
    """Record a launch before it is done. Asked again for a launch that is not settled, it is that very one."""

    session_id: Annotated[SessionId, "the session", ID]
    session_gen: Annotated[int, "its generation", VERSION]
    sup_gen: Annotated[int, "the supervisor generation that asks", VERSION]
    cwd: Annotated[str, "the folder in which the process will work", PATH]
    resumes: Annotated[bool, "whether the conversation of the session was found, and is gone on with"] = False


@attrs.frozen(kw_only=True)
class DeliverEffect(Request[RuntimeEffect]):
    """Record that a member is told at its terminal what waits for it, before that is typed."""

    session_id: Annotated[SessionId, "the session", ID]
    session_gen: Annotated[int, "its generation", VERSION]
    sup_gen: Annotated[int, "the supervisor generation that asks", VERSION]
    wake: Annotated[Wake, "why it is told now"]


@attrs.frozen(kw_only=True)
class Words:
    """What is typed for an effect; ``held`` is why nothing is typed now, where that is known."""

    effect_id: EffectId
    text: str
    held: str


@attrs.frozen(kw_only=True)
class ShowWords(Request[Words]):
    """Show what is typed for a delivery or a steer."""

    effect_id: Annotated[EffectId, "the effect", ID]
    sup_gen: Annotated[int, "the supervisor generation that asks", VERSION]


@attrs.frozen(kw_only=True)
class StartedEffect(Request[RuntimeEffect]):
    """Record which process a launch started, as it was read back."""

    effect_id: Annotated[EffectId, "the launch", ID]
    sup_gen: Annotated[int, "the supervisor generation that reports", VERSION]
    pane: Annotated[str, "the provider's own name of the terminal", LINE]
    pid: Annotated[int, "its first process", Bounds(least=2, most=2**22)]
    start_ticks: Annotated[int, "when that began, in clock ticks of this boot", VERSION]
    boot_id: Annotated[str, "which boot", LINE]


@attrs.frozen(kw_only=True)
class SettleEffect(Request[RuntimeEffect]):
    """Settle an effect as applied or not, after reading it back; or say that it stays unknown."""

    effect_id: Annotated[EffectId, "the effect", ID]
    sup_gen: Annotated[int, "the supervisor generation that reports", VERSION]
    certainty: Annotated[Certainty, "what was read"]
    readback: Annotated[str, "what was seen, for the record", TEXT] = ""


@attrs.frozen(kw_only=True)
class ResolveEffect(Request[RuntimeEffect]):
    """Decide an effect that nothing could read back, by what a person found out."""

    effect_id: Annotated[EffectId, "the effect", ID]
    expected_version: Annotated[int, "version last read", VERSION]
    finding: Annotated[EffectFinding, "what was found out"]
    reason: Annotated[str, "how it was found out", LINE]


@attrs.frozen(kw_only=True)
class ListEffects(Request[EffectPage]):
    """List what was done to the processes of a run, oldest first."""

    team_run_id: Annotated[TeamRunId, "the run; the caller's own when empty", OPTIONAL_ID] = OWN_RUN
    state: Annotated[EffectState | None, "only in this state"] = None
    limit: Annotated[int, "most rows", PAGE] = 100
    cursor: Annotated[str, "continue after an earlier page", Bounds(most=500)] = ""


@attrs.frozen(kw_only=True)
class ShowEffect(Request[RuntimeEffect]):
    """Show one effect with what was read back."""

    effect_id: Annotated[EffectId, "the effect", ID]


@attrs.frozen(kw_only=True)
class CloseSession(Request[RuntimeEffect]):
    """End a member's process, with everything it started, and close its place in the run."""

    session_id: Annotated[SessionId, "the session", ID]
    reason: Annotated[str, "why, for the record", LABEL] = ""


@attrs.frozen(kw_only=True)
class InterruptSession(Request[RuntimeEffect]):
    """Interrupt what a member's process does now; the process and its Work stay."""

    session_id: Annotated[SessionId, "the session", ID]
    reason: Annotated[str, "why, for the record", LABEL] = ""


@attrs.frozen(kw_only=True)
class SteerSession(Request[RuntimeEffect]):
    """Put a text into the turn that a member is in now. It is no message, and changes no Work."""

    session_id: Annotated[SessionId, "the session", ID]
    text: Annotated[str, "what is typed", Bounds(least=1, most=32 * 1024)]
    reason: Annotated[str, "why, for the record", LABEL] = ""


@attrs.frozen(kw_only=True)
class Terminal:
    """``argv`` shows the terminal to a person, who can type into it once they have stepped in; ``screen`` is what it
    showed ``at`` that moment. While it is ``live`` that is now. Otherwise it is what it showed last before its process
    ended; ``ended`` is how that ended, or what is known of it, and ``no_screen`` why nothing is kept of it.
    """

    session_id: SessionId
    argv: list[str]
    screen: str
    live: bool
    at: UnixMs | None
    ended: str = ""
    ended_at: UnixMs | None = None
    no_screen: str = ""


@attrs.frozen(kw_only=True)
class ShowTerminal(Request[Terminal]):
    """Show what stands on the terminal of a member's process, and how to look on; what stood there last if it ended."""

    session_id: Annotated[SessionId, "the session", ID]


@attrs.frozen(kw_only=True)
class StepIn(Request[Terminal]):
    """Step in at a member's terminal: until this is cancelled or its connection ends, nobody else types there."""

    session_id: Annotated[SessionId, "the session", ID]


@attrs.frozen(kw_only=True)
class Swept:
    """``left`` are the processes below our terminals that did not end. ``strays`` hang there without the mark of a
    launch, while a session still needs the terminals: of which run they are, nobody can say.
    """

    left: list[int]
    strays: list[int]


@attrs.frozen(kw_only=True)
class SweepSessions(Request[Swept]):
    """End what holds the terminals, and all below it; while a session needs it, name what is lost there.

    What is lost there is of this run or of another: no launch leads to it.
    """


_FIND = (Code.NOT_FOUND, Code.ROW_QUARANTINED)
_W = Effect.WRITE
_SUP = (*_FIND, Code.SUPERVISOR_GENERATION_FENCED)
_CONTROL = (*_FIND, Code.EFFECT_UNSETTLED, Code.INVALID_STATE_TRANSITION, Code.TEAM_RUN_DORMANT)

OPERATIONS = (
    Operation(
        "effect.deliver",
        DeliverEffect,
        planes=SUPERVISOR,
        effect=_W,
        refuses=(*_SUP, Code.EFFECT_UNSETTLED, Code.INVALID_STATE_TRANSITION),
    ),
    Operation("effect.list", ListEffects, planes=READERS, effect=Effect.READ, refuses=(*_FIND, Code.CURSOR_INVALID)),
    Operation(
        "effect.prepare",
        PrepareEffect,
        planes=SUPERVISOR,
        effect=_W,
        refuses=(*_SUP, Code.EFFECT_UNSETTLED, Code.INVALID_STATE_TRANSITION, Code.MEMBER_RUN_CLOSED),
    ),
    Operation(
        "effect.resolve",
        ResolveEffect,
        planes=HOST_OR_OPERATOR,
        effect=_W,
        refuses=(*_FIND, Code.INVALID_STATE_TRANSITION, Code.VERSION_CONFLICT),
    ),
    Operation(
        "effect.settle", SettleEffect, planes=SUPERVISOR, effect=_W, refuses=(*_SUP, Code.INVALID_STATE_TRANSITION)
    ),
    Operation("effect.show", ShowEffect, planes=READERS, effect=Effect.READ, refuses=_FIND),
    Operation(
        "effect.started", StartedEffect, planes=SUPERVISOR, effect=_W, refuses=(*_SUP, Code.INVALID_STATE_TRANSITION)
    ),
    Operation(
        "effect.words",
        ShowWords,
        planes=SUPERVISOR,
        effect=Effect.READ,
        refuses=(*_SUP, Code.INVALID_STATE_TRANSITION),
    ),
    Operation("session.close", CloseSession, planes=HOST_OR_OPERATOR, effect=_W, refuses=_CONTROL),
    Operation("session.interrupt", InterruptSession, planes=HOST_OR_OPERATOR, effect=_W, refuses=_CONTROL),
    Operation(
        "session.steer",
        SteerSession,
        planes=HOST_OR_OPERATOR,
        effect=_W,
        refuses=(*_CONTROL, Code.NO_TURN_RUNNING, Code.STEER_UNSUPPORTED),
    ),
    Operation(
        "session.sweep",
        SweepSessions,
        planes=OPERATOR,
        effect=Effect.LIVE,
        refuses=(Code.PROVIDER_UNREACHABLE,),
    ),
    Operation(
        "session.terminal",
        ShowTerminal,
        planes=HOST_OR_OPERATOR,
        effect=Effect.LIVE,
        refuses=(*_FIND, Code.INVALID_STATE_TRANSITION, Code.PROVIDER_UNREACHABLE),
    ),
    Operation(
        "session.type",
        StepIn,
        planes=HOST_OR_OPERATOR,
        effect=Effect.STREAM,
        refuses=(*_FIND, Code.INVALID_STATE_TRANSITION, Code.PROVIDER_UNREACHABLE),
    ),
)
