"""Handlers for ``effect.*``, and for what a Host or operator asks of a session's process.

A launch goes through four hands, each in a transaction of its own: prepared and started by the supervisor, admitted and
settled when its process was proven at the door (``daemon/launches.py``).
"""

from __future__ import annotations

from typing import Any

import attrs

from client.protocol.effect import (
    Certainty,
    CloseSession,
    EffectFinding,
    EffectKind,
    EffectPage,
    EffectState,
    InterruptSession,
    ListEffects,
    PrepareEffect,
    ResolveEffect,
    RuntimeEffect,
    SettleEffect,
    ShowEffect,
    StartedEffect,
    SteerSession,
    Wake,
)
from client.protocol.ids import EffectId, SupGen, new_id
from client.protocol.refusals import Code, Refusal
from client.protocol.session import AgentSession, CapabilityState, Liveness, SessionCause, SessionState
from client.protocol.work import Work
from daemon.call import Call
from daemon.kernel import cursor
from daemon.kernel.effect import EFFECT, EffectCause, admits, controllable, held, launchable
from daemon.kernel.session import PROCESS, SESSION, current
from daemon.kernel.team_run import MEMBER_RUN, PlaceCause, fenced, goes_on, present
from daemon.kernel.turn import UNHEARD, in_turn
from daemon.kernel.version import moved
from daemon.operations import actor, cycle, find, session
from store import effect as effects
from store.effect import EFFECTS
from store.session import SESSIONS
from store.team_run import MEMBER_RUNS, TEAM_RUNS
from store.tx import Tx

#: What a Host or the operator asks of a session.
ByControl = CloseSession | InterruptSession | SteerSession


def prepare(tx: Tx, call: Call, ask: PrepareEffect) -> RuntimeEffect | Refusal:
    found = SESSIONS.load(tx, ask.session_id)
    if found is None or found.team_run_id != call.team_run_id:
        return find.not_found("session", ask.session_id)
    run = TEAM_RUNS.held(tx, found.team_run_id)
    if refusal := fenced(run, ask.sup_gen) or current(found, ask.session_gen):
        return refusal
    unsettled = effects.unsettled(tx, found.id)
    for effect in unsettled:
        if effect.kind is EffectKind.LAUNCH and effect.state is EffectState.PREPARED:
            return effect
    place = MEMBER_RUNS.held(tx, found.member_run_id)
    # Whoever is asked to end it closes its place first: after that nothing new begins.
    last = effects.launch_of(tx, found.id)
    if refusal := admits(unsettled, EffectKind.LAUNCH) or launchable(found, last) or present(place):
        return refusal
    return new(tx, call, found, EffectKind.LAUNCH, cwd=ask.cwd, resumes=ask.resumes)


def new(  # noqa: PLR0913 — what each kind says of itself
    tx: Tx,
    call: Call,
    of: AgentSession,
    kind: EffectKind,
    *,
    cwd: str = "",
    resumes: bool = False,
    reason: str = "",
    wake: Wake | None = None,
    work: Work | None = None,
    text: str = "",
) -> RuntimeEffect:
    made = RuntimeEffect(
        id=EffectId(new_id()),
        version=1,
        team_run_id=of.team_run_id,
        session_id=of.id,
        session_gen=of.session_gen,
        sup_gen=SupGen(TEAM_RUNS.held(tx, of.team_run_id).sup_gen),
        kind=kind,
        state=EffectState.PREPARED,
        certainty=Certainty.UNKNOWN,
        cwd=cwd,
        pane="",
        pid=0,
        start_ticks=0,
        boot_id="",
        readback="",
        created_by=call.actor,
        created_at=call.now,
        updated_at=call.now,
        settled_at=None,
        wake=wake,
        work_id=work.id if work else None,
        work_version=work.version if work else 0,
        text=text,
        ending=None,
        resumes=resumes,
        after_turn=of.turn_ended if kind is EffectKind.DELIVER else 0,
    )
    what = f"{kind.value} prepared: {reason}" if reason else f"{kind.value} prepared"
    return EFFECTS.insert(tx, made, kind=what, actor=call.actor, at=call.now)


def held_by(tx: Tx, call: Call, effect_id: EffectId, sup_gen: int) -> RuntimeEffect | Refusal:
    """An effect of the run that the calling supervisor holds."""
    effect = EFFECTS.load(tx, effect_id)
    if effect is None or effect.team_run_id != call.team_run_id:
        return find.not_found("effect", effect_id)
    return fenced(TEAM_RUNS.held(tx, effect.team_run_id), sup_gen) or effect


def started(tx: Tx, call: Call, ask: StartedEffect) -> RuntimeEffect | Refusal:
    effect = held_by(tx, call, ask.effect_id, ask.sup_gen)
    if isinstance(effect, Refusal):
        return effect
    process = (ask.pid, ask.start_ticks, ask.boot_id)
    if effect.pid and process == (effect.pid, effect.start_ticks, effect.boot_id):
        return effect
    if effect.kind is not EffectKind.LAUNCH or effect.state is not EffectState.PREPARED or effect.pid:
        lifted_by = f"it is a {effect.kind.value} that is {effect.state.value}; a launch is started once"
        return Refusal(code=Code.INVALID_STATE_TRANSITION, about=f"effect/{effect.id}", lifted_by=lifted_by)
    return EFFECTS.change(
        tx,
        effect,
        kind="started",
        actor=call.actor,
        at=call.now,
        pane=ask.pane,
        pid=ask.pid,
        start_ticks=ask.start_ticks,
        boot_id=ask.boot_id,
    )


def settle(tx: Tx, call: Call, ask: SettleEffect) -> RuntimeEffect | Refusal:
    effect = held_by(tx, call, ask.effect_id, ask.sup_gen)
    if isinstance(effect, Refusal):
        return effect
    return settled(tx, call, effect, ask.certainty, ask.readback)


def settled(
    tx: Tx,
    call: Call,
    effect: RuntimeEffect,
    certainty: Certainty,
    readback: str,
    cause: EffectCause = EffectCause.SETTLE,
) -> RuntimeEffect | Refusal:
    cause = EffectCause.LOSE if certainty is Certainty.UNKNOWN else cause
    state = EFFECT.after(effect.state, cause, f"effect/{effect.id}")
    if isinstance(state, Refusal):
        return state
    _follow(tx, call, effect, certainty, readback)
    return EFFECTS.change(
        tx,
        effect,
        kind=certainty.value,
        actor=call.actor,
        at=call.now,
        state=state,
        certainty=certainty,
        readback=readback,
        settled_at=call.now if state is EffectState.SETTLED else None,
    )


def _follow(tx: Tx, call: Call, effect: RuntimeEffect, certainty: Certainty, readback: str) -> None:
    """What an effect that is settled makes of its session."""
    of = SESSIONS.held(tx, effect.session_id)
    if current(of, effect.session_gen) is not None:
        return  # another took its place meanwhile; what this one did is on record
    if effect.kind is EffectKind.DELIVER:
        cycle.begun(tx, call, of, effect, certainty, readback)
    if effect.kind is EffectKind.INTERRUPT and certainty is Certainty.APPLIED and of.state is SessionState.IDLE:
        # It was no turn of ours, and some programs tell of no end that was made so.
        if in_turn(of):
            SESSIONS.change(tx, of, kind="interrupted", actor=call.actor, at=call.now, **UNHEARD)
    elif effect.kind is EffectKind.STOP and certainty is Certainty.APPLIED:
        session.orphan(tx, call, of, "session stopped")
        session.close_(tx, call, of, "stopped", CapabilityState.REVOKED, Liveness.STOPPED)
    elif effect.kind is EffectKind.LAUNCH and certainty is Certainty.APPLIED:
        _ready(tx, call, of, effect)
    elif effect.kind is EffectKind.LAUNCH and certainty is Certainty.NOT_APPLIED and of.pid:
        nobody: dict[str, Any] = {"pid": 0, "start_ticks": 0, "boot_id": "", "process": Liveness.STOPPED}
        SESSIONS.change(tx, of, kind="launch failed", actor=call.actor, at=call.now, **nobody)


def _ready(tx: Tx, call: Call, of: AgentSession, effect: RuntimeEffect) -> None:
    state = SESSION.after(of.state, SessionCause.READY, f"session/{of.id}")
    if isinstance(state, Refusal):
        return  # it was reported ready before
    proven = {"pid": effect.pid, "start_ticks": effect.start_ticks, "boot_id": effect.boot_id}
    process = PROCESS[SessionCause.READY]
    session.renew(tx, call, of, TEAM_RUNS.held(tx, of.team_run_id).sup_gen)  # it may have been opened under others
    SESSIONS.change(tx, of, kind="ready", actor=call.actor, at=call.now, state=state, process=process, **proven)


def may_decide(tx: Tx, call: Call, ask: ResolveEffect) -> Refusal | None:
    effect = EFFECTS.load(tx, ask.effect_id)
    if effect is None:
        return find.not_found("effect", ask.effect_id)
    return actor.may_host_or_operate(tx, call, TEAM_RUNS.held(tx, effect.team_run_id).team_id)


def resolve(tx: Tx, call: Call, ask: ResolveEffect) -> RuntimeEffect | Refusal:
    effect = EFFECTS.load(tx, ask.effect_id)
    if effect is None:
        return find.not_found("effect", ask.effect_id)
    if refusal := moved(f"effect/{effect.id}", current=effect.version, expected=ask.expected_version):
        return refusal
    state = EFFECT.after(effect.state, EffectCause.RESOLVE, f"effect/{effect.id}")
    if isinstance(state, Refusal):
        return state
    if ask.finding is EffectFinding.KEEP:
        return EFFECTS.change(tx, effect, kind=f"kept: {ask.reason}", actor=call.actor, at=call.now)
    applied = ask.finding is EffectFinding.CONFIRM_APPLIED
    certainty = Certainty.APPLIED if applied else Certainty.NOT_APPLIED
    return settled(tx, call, effect, certainty, ask.reason, EffectCause.RESOLVE)


def list_(tx: Tx, call: Call, ask: ListEffects) -> EffectPage | Refusal:
    run = actor.run(tx, call, ask.team_run_id)
    if isinstance(run, Refusal):
        return run
    query = ("effect.list", run.id, ask.state)
    after = cursor.read(ask.cursor, call.store_id, *query)
    if isinstance(after, Refusal):
        return after
    items, last = effects.list_page(tx, run.id, state=ask.state, after=after, limit=ask.limit)
    return EffectPage(items=items, next=cursor.write(last, call.store_id, *query) if last else None)


def show(tx: Tx, call: Call, ask: ShowEffect) -> RuntimeEffect | Refusal:
    effect = EFFECTS.load(tx, ask.effect_id)
    if effect is None or isinstance(actor.run(tx, call, effect.team_run_id), Refusal):
        return find.not_found("effect", ask.effect_id)
    return effect


def may_control(tx: Tx, call: Call, ask: ByControl) -> Refusal | None:
    found = SESSIONS.load(tx, ask.session_id)
    if found is None:
        return find.not_found("session", ask.session_id)
    return actor.may_host_or_operate(tx, call, TEAM_RUNS.held(tx, found.team_run_id).team_id)


def close(tx: Tx, call: Call, ask: CloseSession) -> RuntimeEffect | Refusal:
    found = controlled(tx, ask)
    return found if isinstance(found, Refusal) else stop(tx, call, found, ask.reason)


def stop(tx: Tx, call: Call, found: AgentSession, reason: str) -> RuntimeEffect | Refusal:
    """The place is closed at once, so that nothing new begins while its process is being ended."""
    again = [e for e in effects.unsettled(tx, found.id) if e.kind is EffectKind.STOP]
    if again and again[0].state is EffectState.PREPARED:
        return again[0]
    made = _control(tx, call, found, EffectKind.STOP, reason)
    place = MEMBER_RUNS.held(tx, found.member_run_id)
    closed = MEMBER_RUN.after(place.coordination, PlaceCause.CLOSE, f"member-run/{place.id}")
    if not isinstance(made, Refusal) and not isinstance(closed, Refusal):
        MEMBER_RUNS.change(tx, place, kind="closed", actor=call.actor, at=call.now, coordination=closed)
    return made


def interrupt(tx: Tx, call: Call, ask: InterruptSession) -> RuntimeEffect | Refusal:
    found = controlled(tx, ask)
    return found if isinstance(found, Refusal) else _control(tx, call, found, EffectKind.INTERRUPT, ask.reason)


def controlled(tx: Tx, ask: ByControl) -> AgentSession | Refusal:
    found = SESSIONS.load(tx, ask.session_id)
    if found is None:
        return find.not_found("session", ask.session_id)
    run = TEAM_RUNS.held(tx, found.team_run_id)
    over = goes_on(run)
    dormant = held(run) or (attrs.evolve(over, code=Code.TEAM_RUN_DORMANT) if over else None)
    return controllable(found) or dormant or found


def _control(tx: Tx, call: Call, of: AgentSession, kind: EffectKind, reason: str) -> RuntimeEffect | Refusal:
    if refusal := admits(effects.unsettled(tx, of.id), kind):
        return refusal
    return new(tx, call, of, kind, reason=reason)
