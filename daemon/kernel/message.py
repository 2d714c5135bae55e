"""What may happen to a message on its way, and what an answer has to be."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from client.protocol.ids import SessionId, TeamRunId, UnixMs
from client.protocol.message import AddressKind, MailCause, MailState, Message, MessageDelivery, Response
from client.protocol.refusals import Code, Refusal
from client.protocol.team_run import MemberRun
from daemon.kernel.machine import Lifecycle

_S, _C = MailState, MailCause
_LOSS = {_C.FAIL: _S.FAILED, _C.EXPIRE: _S.EXPIRED, _C.INVALIDATE: _S.INVALIDATED}

MAIL_LIFE = Lifecycle(
    "message delivery",
    start=_S.QUEUED,
    moves={
        _S.QUEUED: {_C.ROUTE: _S.ROUTED, _C.CLAIM: _S.CLAIMED, _C.RECEIVE: _S.PROVIDER_RECEIVED, **_LOSS},
        _S.ROUTED: {_C.CLAIM: _S.CLAIMED, _C.RECEIVE: _S.PROVIDER_RECEIVED, **_LOSS},
        _S.CLAIMED: {_C.RECEIVE: _S.PROVIDER_RECEIVED, **_LOSS},
        _S.PROVIDER_RECEIVED: {_C.ACKNOWLEDGE: _S.ACKNOWLEDGED},
        _S.ACKNOWLEDGED: {},
        _S.FAILED: {},
        _S.EXPIRED: {},
        _S.INVALIDATED: {},
    },
)

#: How often a provider may refuse a message before it has failed.
ATTEMPTS = 3
#: Deliveries that may wait for one recipient.
MOST_QUEUED = 1_000

#: States in which the recipient's process has the message.
HAS_IT = frozenset({MailState.PROVIDER_RECEIVED, MailState.ACKNOWLEDGED})
#: States in which it has not got it yet.
ON_ITS_WAY = frozenset({MailState.QUEUED, MailState.ROUTED, MailState.CLAIMED})
#: States in which it will never get it; the sender is told.
LOST = frozenset(_LOSS.values())


def unknown_recipient(named: str, known: Iterable[str], run_id: TeamRunId) -> Refusal:
    near = difflib.get_close_matches(named, list(known), 3, 0.5)
    see = f"see who takes part: firm team-run show {run_id}"
    return Refusal(
        code=Code.RECIPIENT_UNKNOWN,
        about=f"recipient/{named}",
        lifted_by=f"did you mean {' or '.join(near)}? Else {see}" if near else see,
    )


def is_for(role: str, number: int, place: MemberRun) -> bool:
    """Whether mail that nobody has taken is for the holder of this place: to the team, or to its role."""
    return not role or (role == place.role and number in {0, place.number})


def may_take(message: Message, delivery: MessageDelivery, place: MemberRun) -> bool:
    """Whether the holder of a place could ever have taken this delivery, or was sent it."""
    if delivery.recipient_id == place.membership_id:
        return True
    return message.address is not AddressKind.MEMBER and is_for(delivery.role, delivery.number, place)


def overdue(delivery: MessageDelivery, now: UnixMs) -> bool:
    """Whether it was not received in time, also where nobody has noted that yet."""
    return delivery.state in ON_ITS_WAY and delivery.expires_at is not None and delivery.expires_at <= now


def too_late(delivery: MessageDelivery, cause: MailCause, now: UnixMs) -> Refusal | None:
    """Why overdue mail goes no further, or None."""
    if cause not in {_C.ROUTE, _C.CLAIM, _C.RECEIVE} or not overdue(delivery, now):
        return None
    lifted_by = "it was not received in time and expires; its sender is told and may send it again"
    return Refusal(code=Code.INVALID_STATE_TRANSITION, about=f"mail/{delivery.id}", lifted_by=lifted_by)


def reportable(delivery: MessageDelivery, cause: MailCause, session_id: SessionId | None) -> Refusal | None:
    """Why a supervisor cannot report this of a delivery, or None."""
    why = (
        "that is noted by the daemon itself, from the clock or with the end of a membership or a run"
        if cause in {_C.EXPIRE, _C.INVALIDATE}
        else "nobody has taken it yet: a member claims it, or its role instance comes to be"
        if delivery.recipient_id is None
        else "name the session that it was routed to"
        if cause is _C.ROUTE and session_id is None
        else ""
    )
    if not why:
        return None
    return Refusal(code=Code.INVALID_STATE_TRANSITION, about=f"mail/{delivery.id}", lifted_by=why)


def causation(cause: Message | None, named: str, run_id: str, correlation_id: str | None) -> Refusal | None:
    """Why a message cannot follow from that one, or None."""
    why = (
        f"there is no message {named} in this run"
        if cause is None or cause.team_run_id != run_id
        else f"it belongs to the conversation {cause.correlation_id}"
        if correlation_id is not None and correlation_id != cause.correlation_id
        else ""
    )
    return (
        Refusal(code=Code.CAUSATION_INVALID, about=f"message/{named}", lifted_by=f"name another: {why}")
        if why
        else None
    )


def answer(question: Message, option: str, text: str) -> str | Refusal:
    """The body of the answer, or why it is none."""
    about = f"message/{question.id}"
    if question.options and (text or option not in question.options):
        lifted_by = f"choose one of its options: {', '.join(question.options)}"
        return Refusal(code=Code.ANSWER_INVALID, about=about, lifted_by=lifted_by)
    if not question.options and (option or not text):
        return Refusal(code=Code.ANSWER_INVALID, about=about, lifted_by="answer it in words, without an option")
    return option or text


def respond(state: MailState, given: Response, wanted: Response, about: str) -> Refusal | None:
    """Why a response cannot be given now, or None. It is given once, by a recipient that has the message."""
    why = (
        "give completed or rejected"
        if wanted is Response.NONE
        else f"it was {given.value} already"
        if given is not Response.NONE
        else f"it is {state.value}; receive it first"
        if state not in HAS_IT
        else ""
    )
    return Refusal(code=Code.INVALID_STATE_TRANSITION, about=about, lifted_by=why) if why else None
