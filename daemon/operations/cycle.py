"""What happens at a member's terminal, for handlers of several nouns: cycles, begun by a text that was taken and ended
once, and persons that step in and leave.
"""

from __future__ import annotations

from typing import Any

from client.protocol.attempt import Custody, DeliveryCause, DeliveryState
from client.protocol.effect import Certainty, RuntimeEffect, Wake
from client.protocol.ids import SessionId
from client.protocol.message import MailCause, MailState, MessageDelivery
from client.protocol.refusals import Refusal
from client.protocol.session import AgentSession, Ending, Failure, ReportSession, SessionCause
from daemon.call import Call
from daemon.kernel.effect import left_alone
from daemon.kernel.session import ENDS, ORPHANING, SESSION, streak_after
from daemon.kernel.turn import UNHEARD, began, fell_quiet
from daemon.operations import attempt, mail
from store import attempt as attempts
from store import effect as effects
from store import message as messages
from store.attempt import DELIVERIES
from store.effect import EFFECTS
from store.message import MAIL
from store.session import SESSIONS
from store.team_run import MEMBER_RUNS
from store.tx import Tx

#: Messages of one delivery; the others come with the next.
MOST_MAIL = 20

#: What a program does by itself, whatever its member does: no sign that this one did something.
REFLEXES = frozenset({"session.hook"})

#: What becomes of a Work's delivery with the text that told of it.
_WORK = {Certainty.APPLIED: DeliveryCause.RECEIVED, Certainty.NOT_APPLIED: DeliveryCause.HELD}


def begun(tx: Tx, call: Call, of: AgentSession, effect: RuntimeEffect, certainty: Certainty, readback: str) -> None:
    """What a text that was taken, held or lost sight of makes of what it told of, and of its session."""
    for binding in attempts.live_of_session(tx, of.id):
        if binding.custody is not Custody.CLAIMED:
            continue
        delivery = attempts.delivery_of(tx, binding)
        if delivery is not None and delivery.state is DeliveryState.CLAIMED:
            if cause := _WORK.get(certainty):
                failure = "" if certainty is Certainty.APPLIED else readback
                attempt.deliver(tx, call, delivery, cause, failure)
            else:
                DELIVERIES.change(tx, delivery, kind="unsubmitted", actor=call.actor, at=call.now, failure=readback)
        if certainty is Certainty.APPLIED and binding.work_id == effect.work_id:
            attempt.knows(tx, call, binding, effect.work_version)
    for each in on_board(tx, of):
        _carry(tx, call, each, certainty, readback)
    if certainty is Certainty.APPLIED:
        _start(tx, call, of, effect)


def _carry(tx: Tx, call: Call, each: MessageDelivery, certainty: Certainty, readback: str) -> None:
    """Its sender sees how far it came, and why no further."""
    if certainty is not Certainty.APPLIED:
        kind = "held" if certainty is Certainty.NOT_APPLIED else "unsubmitted"
        MAIL.change(tx, each, kind=kind, actor=call.actor, at=call.now, reason=readback)
    elif isinstance(mail.move(tx, call, each, MailCause.RECEIVE, reason=""), Refusal):
        mail.expire_one(tx, call, each)


def _start(tx: Tx, call: Call, of: AgentSession, effect: RuntimeEffect) -> None:
    state = SESSION.after(of.state, SessionCause.CYCLE_STARTED, f"session/{of.id}")
    if isinstance(state, Refusal):
        return  # it has moved on since; the text is on record
    changes: dict[str, Any] = {"state": state, **began(of, call.now)}
    if effect.wake is Wake.CLAIMABLE:
        changes["hinted_at"] = effect.created_at
    SESSIONS.change(tx, of, kind=SessionCause.CYCLE_STARTED.value, actor=call.actor, at=call.now, **changes)


def on_board(tx: Tx, of: AgentSession) -> list[MessageDelivery]:
    """The messages that the delivery under way to this session carries."""
    place = MEMBER_RUNS.held(tx, of.member_run_id)
    waiting = messages.waiting(tx, place.membership_id, of.team_run_id, MOST_MAIL)
    return [each for each in waiting if each.state is MailState.ROUTED and each.session_id == of.id]


def ended(tx: Tx, call: Call, of: AgentSession, ending: Ending, failure: Failure | None = None) -> dict[str, Any]:
    """Record how the cycle of a session ended, where one is under way; what that changes of the session. ``failure`` is
    how its provider failed it.
    """
    effect = effects.cycle_of(tx, of.id)
    if effect is None:
        return {}
    how = ending.value if failure is None else f"{ending.value}, {failure.value}"
    EFFECTS.change(tx, effect, kind=f"ended: {how}", actor=call.actor, at=call.now, ending=ending, failure=failure)
    return {"streak": streak_after(of.streak, ending), **fell_quiet(of, effect.after_turn, call.now)}


def reported(tx: Tx, call: Call, of: AgentSession, ask: ReportSession) -> dict[str, Any]:
    """What a report makes of the cycle that it ends, and what that, and the records that were read with it, say of the
    session.
    """
    how, why = ENDS.get(ask.cause, (Ending.TERMINAL_UNOBSERVED, None))
    ending, failure = (ask.ending, ask.failure) if ask.ending else (how, ask.failure or why)
    changes = ended(tx, call, of, ending, failure if ending is Ending.PROVIDER_FAILED else None)
    if ask.cause in ORPHANING:
        changes |= UNHEARD
    if ask.capacity is not None:
        changes |= {"capacity": ask.capacity, "capacity_at": call.now, "capacity_source": ask.capacity_source}
    return changes


def spoke(tx: Tx, call: Call, operation: str) -> None:
    """A member did something: whatever came to nothing before counts no more."""
    known = call.session_id is not None and operation not in REFLEXES
    of = SESSIONS.load(tx, call.session_id or "") if known else None
    if of is not None and (of.streak or of.degraded_at is not None):
        SESSIONS.change(tx, of, kind="spoke", actor=call.actor, at=call.now, streak=0, degraded_at=None)


def stepped_in(tx: Tx, call: Call, session_id: SessionId) -> AgentSession | Refusal:
    """A person types at its terminal from now on, and nobody else."""
    session = SESSIONS.load(tx, session_id)
    assert session is not None, "its terminal was found"
    if refusal := left_alone(session):
        return refusal
    return SESSIONS.change(tx, session, kind="stepped in", actor=call.actor, at=call.now, typist=call.actor)


def stepped_out(tx: Tx, call: Call, session_id: SessionId) -> AgentSession | None:
    """They left. None where the session has ended meanwhile, or a later daemon has seen that they must have."""
    session = SESSIONS.load(tx, session_id)
    if session is None or not session.typist:
        return None
    return SESSIONS.change(tx, session, kind="stepped out", actor=call.actor, at=call.now, typist="")
