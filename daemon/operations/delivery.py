"""Handlers for ``effect.deliver``, ``effect.words`` and ``session.steer``: what is typed at a member's terminal."""

from __future__ import annotations

import attrs

from client.protocol.attempt import Binding, Custody, DeliveryCause, DeliveryState
from client.protocol.board import Waking
from client.protocol.effect import (
    DeliverEffect,
    EffectKind,
    EffectState,
    RuntimeEffect,
    ShowWords,
    SteerSession,
    Wake,
    Words,
)
from client.protocol.message import Intent, MailCause, MailState, MessageDelivery
from client.protocol.refusals import Code, Refusal
from client.protocol.session import AgentSession
from client.protocol.team_run import TeamRun
from client.protocol.work import Condition, Phase, Work
from daemon.call import Call
from daemon.kernel.effect import admits, steerable, stepped_in, tellable
from daemon.kernel.session import current
from daemon.kernel.team_run import fenced, takes_claims, tells
from daemon.kernel.words import words
from daemon.operations import attempt, cycle, effect, find, inbox, mail
from providers import profiles
from store import attempt as attempts
from store import board
from store import effect as effects
from store import message as messages
from store import work as works
from store.message import MAIL
from store.session import SESSIONS
from store.team_run import MEMBER_RUNS, TEAM_RUNS
from store.tx import Tx
from store.work import WORKS

_NOT_TAKEN = frozenset({MailState.QUEUED, MailState.ROUTED})


@attrs.frozen
class _Held:
    """A Work that a session holds, with its attempt."""

    work: Work
    binding: Binding
    queued: bool


def _held(tx: Tx, of: AgentSession) -> _Held | None:
    """The Work that its member is to begin or goes on with: never one in review, blocked, on hold or closed."""
    found: _Held | None = None
    for binding in attempts.live_of_session(tx, of.id):
        work, told = WORKS.held(tx, binding.work_id), attempts.delivery_of(tx, binding)
        if binding.custody is not Custody.CLAIMED or work.condition is not Condition.NORMAL or told is None:
            continue
        if work.phase is Phase.OPEN and told.state is DeliveryState.QUEUED:
            return _Held(work, binding, queued=True)
        if work.phase in {Phase.OPEN, Phase.ACTIVE} and told.state is DeliveryState.PROVIDER_RECEIVED:
            found = _Held(work, binding, queued=False)
    return found


def _mail(tx: Tx, run: TeamRun, of: AgentSession) -> list[MessageDelivery]:
    place = MEMBER_RUNS.held(tx, of.member_run_id)
    at_work = bool(attempts.live_of_session(tx, of.id)) or board.does(tx, run.id, place.membership_id) is not None
    if not tells(run, at_work=at_work):
        return []
    waiting = messages.waiting(tx, place.membership_id, of.team_run_id, cycle.MOST_MAIL)
    return [each for each in waiting if each.state in _NOT_TAKEN]


def _claimable(tx: Tx, of: AgentSession) -> list[Work]:
    """What its member may claim, by the list of it; whether a claim is admitted is asked when it is made."""
    return works.claimable(tx, MEMBER_RUNS.held(tx, of.member_run_id))[0]


def _unblocking(tx: Tx, of: AgentSession) -> Work | None:
    """A blocked Work of its member, once for each time that another of its Works is accepted."""
    place = MEMBER_RUNS.held(tx, of.member_run_id)
    return works.unblocking(tx, of.team_run_id, place.membership_id, place.id)


def waking(tx: Tx, call: Call, run: TeamRun, of: AgentSession) -> Waking | None:
    """What could be told now, or None while nothing can be."""
    if tellable(of) is not None or effects.unsettled(tx, of.id):
        return None
    held, intents = _held(tx, of), messages.intents(tx, [each.message_id for each in _mail(tx, run, of)])
    free = held is None and not attempts.live_of_session(tx, of.id) and takes_claims(run) is None
    newest = max((work.updated_at for work in _claimable(tx, of)), default=0) if free else 0
    return Waking(
        queued=held is not None and held.queued,
        asked=intents.count(Intent.RESPONSE_REQUIRED),
        told=intents.count(Intent.INFORMATIONAL),
        doing=held is not None and not held.queued,
        changed=held is not None and not held.queued and held.binding.told_version != held.work.version,
        claimable=newest > (of.hinted_at or 0),
        idle_ms=max(0, call.now - of.updated_at),
        accepted=_unblocking(tx, of) is not None,
        last=effects.last_delivery(tx, of.id),
    )


def deliver(tx: Tx, call: Call, ask: DeliverEffect) -> RuntimeEffect | Refusal:
    of = SESSIONS.load(tx, ask.session_id)
    if of is None or of.team_run_id != call.team_run_id:
        return find.not_found("session", ask.session_id)
    run = TEAM_RUNS.held(tx, of.team_run_id)
    refusal = (
        fenced(run, ask.sup_gen)
        or current(of, ask.session_gen)
        or admits(effects.unsettled(tx, of.id), EffectKind.DELIVER)
        or tellable(of)
    )
    if refusal:
        return refusal
    held, letters = _held(tx, of), _mail(tx, run, of)
    if held is not None and not held.queued and ask.wake not in {Wake.CONTINUE, Wake.PROBATION}:
        held = None  # it knows of that one
    unblocking = _unblocking(tx, of) if ask.wake is Wake.ACCEPTED else None
    waits = (
        held is not None
        or unblocking is not None
        or (letters if ask.wake is not Wake.CLAIMABLE else _claimable(tx, of))
    )
    if not waits:
        lifted_by = "nothing waits for it by now; it is told when something does"
        return Refusal(code=Code.INVALID_STATE_TRANSITION, about=f"session/{of.id}", lifted_by=lifted_by)
    if held is not None and held.queued:
        told = attempts.delivery_of(tx, held.binding)
        assert told is not None, "it was found by it"
        attempt.deliver(tx, call, told, DeliveryCause.TAKEN, "")
    for each in letters:
        if each.state is MailState.QUEUED or each.session_id != of.id:
            _route(tx, call, of, each)
    work = held.work if held is not None else unblocking
    return effect.new(tx, call, of, EffectKind.DELIVER, wake=ask.wake, work=work, reason=ask.wake.value)


def _route(tx: Tx, call: Call, of: AgentSession, each: MessageDelivery) -> None:
    if each.state is MailState.ROUTED:  # to a session of before
        MAIL.change(tx, each, kind="routed", actor=call.actor, at=call.now, session_id=of.id)
    elif isinstance(mail.move(tx, call, each, MailCause.ROUTE, session_id=of.id), Refusal):
        mail.expire_one(tx, call, each)


def text(tx: Tx, call: Call, ask: ShowWords) -> Words | Refusal:
    found = effect.held_by(tx, call, ask.effect_id, ask.sup_gen)
    if isinstance(found, Refusal):
        return found
    if found.state is not EffectState.PREPARED or found.kind not in {EffectKind.DELIVER, EffectKind.STEER}:
        lifted_by = f"it is a {found.kind.value} that is {found.state.value}; only what is still to be typed has words"
        return Refusal(code=Code.INVALID_STATE_TRANSITION, about=f"effect/{found.id}", lifted_by=lifted_by)
    of = SESSIONS.held(tx, found.session_id)
    return Words(effect_id=found.id, text=_text(tx, call, of, found), held=stepped_in(of))


def _text(tx: Tx, call: Call, of: AgentSession, found: RuntimeEffect) -> str:
    if found.wake is None:
        return found.text
    work = WORKS.load(tx, found.work_id) if found.work_id else None
    claimable = _claimable(tx, of) if found.wake is Wake.CLAIMABLE else []
    return words(found.wake, work, inbox.with_words(tx, cycle.on_board(tx, of)), claimable, firm=call.firm)


def steer(tx: Tx, call: Call, ask: SteerSession) -> RuntimeEffect | Refusal:
    """What profiles can is data: one that cannot is told before anything about its turn."""
    of = effect.controlled(tx, ask)
    if isinstance(of, Refusal):
        return of
    refusal = steerable(of, able=profiles.steers(of.profile)) or admits(effects.unsettled(tx, of.id), EffectKind.STEER)
    return refusal or effect.new(tx, call, of, EffectKind.STEER, text=ask.text, reason=ask.reason)
