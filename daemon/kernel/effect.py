"""What may happen to an effect, and what an effect that is not settled keeps from happening."""

from __future__ import annotations

import enum
from collections.abc import Sequence

from client.protocol.effect import Certainty, EffectKind, EffectState, RuntimeEffect
from client.protocol.refusals import Code, Refusal
from client.protocol.session import AgentSession, Driver, Liveness, SessionState
from client.protocol.team_run import TeamRun
from daemon.kernel.machine import Lifecycle
from daemon.kernel.turn import in_turn


class EffectCause(enum.StrEnum):
    SETTLE = "settle"
    LOSE = "lose"
    RESOLVE = "resolve"


_S, _C = EffectState, EffectCause

EFFECT = Lifecycle(
    "runtime effect",
    start=_S.PREPARED,
    moves={
        _S.PREPARED: {_C.SETTLE: _S.SETTLED, _C.LOSE: _S.RECOVERY_REQUIRED},
        _S.RECOVERY_REQUIRED: {_C.SETTLE: _S.SETTLED, _C.RESOLVE: _S.SETTLED},
        _S.SETTLED: {},
    },
)


def admits(unsettled: Sequence[RuntimeEffect], kind: EffectKind) -> Refusal | None:
    """Why an effect of this kind may not begin beside those that are not settled, or None.

    While one is unknown its session takes only an interrupt and a stop, and one of each.
    """
    alone = kind not in {EffectKind.INTERRUPT, EffectKind.STOP}
    for effect in unsettled:
        if alone or effect.kind is kind:
            return Refusal(
                code=Code.EFFECT_UNSETTLED,
                about=f"effect/{effect.id}",
                lifted_by=f"wait for it: firm wait 'effect:{effect.id}.version>{effect.version}'"
                if effect.state is EffectState.PREPARED
                else f"find out what it did, then say it: firm resolve {effect.id}",
            )
    return None


def launchable(session: AgentSession, last: RuntimeEffect | None) -> Refusal | None:
    """Why no process can be launched for this session, or None. ``last`` is its last launch: what came of that may have
    been found out when the session had moved on, and knows of no process.
    """
    had = session.pid != 0 or (last is not None and last.certainty is Certainty.APPLIED)
    if session.driver is Driver.HOST_DRIVEN and session.state is SessionState.COLD and not had:
        return None
    lifted_by = "open the next session of its place; one that had a process gets no second one"
    return Refusal(code=Code.INVALID_STATE_TRANSITION, about=f"session/{session.id}", lifted_by=lifted_by)


def controllable(session: AgentSession) -> Refusal | None:
    """Why a supervisor does not end or interrupt this session, or None."""
    if session.driver is Driver.HOST_DRIVEN and session.state is not SessionState.CLOSED:
        return None
    about = f"session/{session.id}"
    if session.state is SessionState.CLOSED:
        return Refusal(code=Code.INVALID_STATE_TRANSITION, about=about, lifted_by="it is closed already")
    lifted_by = f"it is a person's own process; let go of it: firm session unbind {session.id}"
    return Refusal(code=Code.INVALID_STATE_TRANSITION, about=about, lifted_by=lifted_by)


def stepped_in(session: AgentSession) -> str:
    """Who has stepped in at the terminal of this session, as a reason to type nothing; empty where nobody has."""
    return f"{session.typist} has stepped in there" if session.typist else ""


def steerable(session: AgentSession, *, able: bool) -> Refusal | None:
    """Why no text is put into a turn of this session, or None."""
    about, message = f"session/{session.id}", "send it as a message: firm message send --recipient MEMBER --body TEXT"
    if not able:
        return Refusal(code=Code.STEER_UNSUPPORTED, about=about, lifted_by=message)
    if session.state is not SessionState.ACTIVE:
        lifted_by = f"it is {session.state.value}; {message}"
        return Refusal(code=Code.NO_TURN_RUNNING, about=about, lifted_by=lifted_by)
    return left_alone(session)


def left_alone(session: AgentSession) -> Refusal | None:
    """Why nobody but a person types into this terminal now, or None."""
    if not (reason := stepped_in(session)):
        return None
    lifted_by = f"{reason}; it goes on when they leave"
    return Refusal(code=Code.INVALID_STATE_TRANSITION, about=f"session/{session.id}", lifted_by=lifted_by)


def tellable(session: AgentSession) -> Refusal | None:
    """Why nothing is typed into the terminal of this session now, or None."""
    if refusal := left_alone(session):
        return refusal
    ours = session.driver is Driver.HOST_DRIVEN and session.process is Liveness.LIVE
    own_turn = session.state is SessionState.IDLE and in_turn(session)
    if ours and session.state is SessionState.IDLE and not own_turn:
        return None
    lifted_by = (
        f"its hooks say that a turn goes on ({session.activity.value}) that we did not begin; it is told when that "
        f"ends, or: firm session interrupt {session.id}"
        if ours and own_turn
        else f"it is {session.state.value}; a member of ours is told something while it is idle"
        if ours
        else "it has no process of ours that is known to live"
    )
    return Refusal(code=Code.INVALID_STATE_TRANSITION, about=f"session/{session.id}", lifted_by=lifted_by)


def held(run: TeamRun) -> Refusal | None:
    """Why nobody would act for this run now, or None."""
    if run.sup_gen > 0:
        return None
    lifted_by = f"start it first: firm team-run start {run.id} --expected-version {run.version}"
    return Refusal(code=Code.TEAM_RUN_DORMANT, about=f"team-run/{run.id}", lifted_by=lifted_by)
