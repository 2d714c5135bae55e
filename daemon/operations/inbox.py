"""Handlers for ``message.*`` on the recipient's side: inbox, receive, claim, ack, respond; transport reports."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import attrs

from client.protocol.ids import MembershipId, MessageDeliveryId, SessionId
from client.protocol.membership import MembershipState, SubscriptionSource
from client.protocol.message import (
    AcknowledgeMail,
    ClaimMail,
    Inbox,
    Mail,
    MailCause,
    MessageDelivery,
    Received,
    ReceiveMail,
    ReportMail,
    RespondMail,
    ShowInbox,
)
from client.protocol.refusals import Code, Refusal
from daemon.call import Call
from daemon.kernel import cursor
from daemon.kernel.message import ATTEMPTS, LOST, MAIL_LIFE, may_take, overdue, reportable, respond
from daemon.kernel.team_run import fenced
from daemon.operations import actor, mail
from store import membership as memberships
from store import message as messages
from store.agent import AGENTS
from store.message import MAIL
from store.session import SESSIONS
from store.team_run import MEMBER_RUNS, TEAM_RUNS
from store.tx import Tx, Unreadable


def whose(tx: Tx, call: Call) -> list[MembershipId]:
    """Whose mail the caller's is: the calling member's; a person's as the Host of active teams, wherever it is one."""
    caller = actor.actor(tx, call)
    return [caller.membership.id] if caller is not None else [host.id for host in memberships.personal(tx)]


def has_mail(tx: Tx, call: Call) -> bool:
    """Whether mail waits that the caller would receive now."""
    caller = actor.actor(tx, call)
    if caller is not None:
        return messages.queued_in_run(tx, caller.membership.id, caller.place.team_run_id) > 0
    return any(messages.queued(tx, reader) > 0 for reader in whose(tx, call))


def with_words(tx: Tx, found: Iterable[MessageDelivery]) -> list[Mail]:
    """Deliveries with what they carry. A message that does not decode is named and left out."""
    items: list[Mail] = []
    for delivery in found:
        try:
            message = messages.load(tx, delivery.message_id)
            assert message is not None, "a foreign key holds it"
            agent = AGENTS.load(tx, message.sender_agent_id)
        except Unreadable as error:
            tx.unreadable.append(error)
        else:
            items.append(Mail(delivery=delivery, sender=agent.name if agent else "", message=message))
    return items


def inbox(tx: Tx, call: Call, ask: ShowInbox) -> Inbox | Refusal:
    readers, caller = whose(tx, call), actor.actor(tx, call)
    query = ("message.inbox", ",".join(readers), ask.all_mail)
    after = cursor.read(ask.cursor, call.store_id, *query)
    if isinstance(after, Refusal):
        return after
    found, last = messages.inbox(tx, readers, everything=ask.all_mail, after=after, limit=ask.limit)
    untaken: list[MessageDelivery] = []
    if caller is not None and not after:
        place = caller.place
        untaken = messages.to_take(tx, place.team_run_id, place.role, place.number)
    run_id = caller.place.team_run_id if caller is not None else None
    lost = [delivery for reader in readers for delivery in messages.untold(tx, reader, run_id)]
    return Inbox(
        items=with_words(tx, [*found, *untaken]),
        undelivered=with_words(tx, lost),
        next=cursor.write(last, call.store_id, *query) if last else None,
    )


def receive(tx: Tx, call: Call, ask: ReceiveMail) -> Received:
    caller = actor.actor(tx, call)
    assert caller is not None, "only members have this operation"
    arrived: list[MessageDelivery] = []
    for each in with_words(tx, messages.waiting(tx, caller.membership.id, caller.place.team_run_id, ask.limit)):
        if overdue(each.delivery, call.now):
            mail.expire_one(tx, call, each.delivery)
            continue
        after = mail.move(tx, call, each.delivery, MailCause.RECEIVE, session_id=caller.session.id)
        assert not isinstance(after, Refusal), "what waits can be received"
        arrived.append(after)
    return Received(items=with_words(tx, arrived))


def claim(tx: Tx, call: Call, ask: ClaimMail) -> MessageDelivery | Refusal:
    """Take mail that nobody has; the first to come has it, on the same row."""
    caller, delivery = actor.actor(tx, call), MAIL.load(tx, ask.delivery_id)
    assert caller is not None, "only members have this operation"
    if delivery is None or delivery.team_run_id != caller.place.team_run_id:
        return mail.unknown(ask.delivery_id)
    message = messages.load(tx, delivery.message_id)
    if message is None or not may_take(message, delivery, caller.place):
        return mail.unknown(ask.delivery_id)
    if delivery.recipient_id is not None and delivery.recipient_id != caller.membership.id:
        lifted_by = f"{delivery.recipient_id} has it; do nothing for it"
        return Refusal(code=Code.CLAIM_LOST, about=f"mail/{delivery.id}", lifted_by=lifted_by)
    if caller.membership.state is not MembershipState.ACTIVE:
        lifted_by = "its member is leaving the team and takes no new mail; another member claims it"
        return Refusal(code=Code.INVALID_STATE_TRANSITION, about=f"mail/{delivery.id}", lifted_by=lifted_by)
    source = SubscriptionSource.AGENT if delivery.role else SubscriptionSource.TEAM
    return mail.move(
        tx,
        call,
        delivery,
        MailCause.CLAIM,
        recipient_id=caller.membership.id,
        subscription_id=delivery.subscription_id or mail.subscription(tx, caller.membership.id, source),
        session_id=caller.session.id,
    )


@attrs.frozen
class _Own:
    """A delivery, and whether the caller is its recipient, the sender of its message, or both."""

    delivery: MessageDelivery
    received: bool
    sent: bool


def _own(tx: Tx, call: Call, delivery_id: MessageDeliveryId) -> _Own | Refusal:
    readers, delivery = whose(tx, call), MAIL.load(tx, delivery_id)
    message = messages.load(tx, delivery.message_id) if delivery is not None else None
    if delivery is None or message is None:
        return mail.unknown(delivery_id)
    found = _Own(delivery, delivery.recipient_id in readers, message.sender_id in readers)
    return found if found.received or found.sent else mail.unknown(delivery_id)


def acknowledge(tx: Tx, call: Call, ask: AcknowledgeMail) -> MessageDelivery | Refusal:
    found = _own(tx, call, ask.delivery_id)
    if isinstance(found, Refusal):
        return found
    delivery = found.delivery
    if found.sent and (delivery.state in LOST or not found.received):
        return _noticed(tx, call, delivery)
    return mail.acknowledge(tx, call, delivery)


def _noticed(tx: Tx, call: Call, delivery: MessageDelivery) -> MessageDelivery | Refusal:
    """The sender has noticed that its mail will not arrive: it is told no more."""
    why = (
        f"it is {delivery.state.value}; its recipient acknowledges it"
        if delivery.state not in LOST
        else "its sender has noticed it already"
        if delivery.told
        else ""
    )
    if why:
        return Refusal(code=Code.INVALID_STATE_TRANSITION, about=f"mail/{delivery.id}", lifted_by=why)
    return MAIL.change(tx, delivery, kind="noticed", actor=call.actor, at=call.now, told=True)


def respond_(tx: Tx, call: Call, ask: RespondMail) -> MessageDelivery | Refusal:
    found = _own(tx, call, ask.delivery_id)
    if isinstance(found, Refusal):
        return found
    if not found.received:
        return mail.unknown(ask.delivery_id)
    delivery = found.delivery
    if refusal := respond(delivery.state, delivery.response, ask.response, f"mail/{delivery.id}"):
        return refusal
    return MAIL.change(tx, delivery, kind=ask.response.value, actor=call.actor, at=call.now, response=ask.response)


def report(tx: Tx, call: Call, ask: ReportMail) -> MessageDelivery | Refusal:
    delivery = MAIL.load(tx, ask.delivery_id)
    if delivery is None or delivery.team_run_id != call.team_run_id:
        return mail.unknown(ask.delivery_id)
    run = TEAM_RUNS.held(tx, delivery.team_run_id)
    refusal = (
        fenced(run, ask.sup_gen)
        or reportable(delivery, ask.cause, ask.session_id)
        or _not_its_session(tx, delivery, ask.session_id)
    )
    if refusal:
        return refusal
    changes: dict[str, Any] = {"session_id": ask.session_id} if ask.session_id else {}
    if ask.reason:
        changes["reason"] = ask.reason
    if ask.cause is MailCause.FAIL:
        changes["failures"] = delivery.failures + 1
        if delivery.failures + 1 < ATTEMPTS:
            return _refused_by_provider(tx, call, delivery, changes)
    return mail.move(tx, call, delivery, ask.cause, **changes)


def _refused_by_provider(
    tx: Tx, call: Call, delivery: MessageDelivery, changes: dict[str, Any]
) -> MessageDelivery | Refusal:
    """Count it; the message goes on waiting where it is."""
    state = MAIL_LIFE.after(delivery.state, MailCause.FAIL, f"mail/{delivery.id}")
    if isinstance(state, Refusal):
        return state
    return MAIL.change(tx, delivery, kind="refused by the provider", actor=call.actor, at=call.now, **changes)


def _not_its_session(tx: Tx, delivery: MessageDelivery, session_id: SessionId | None) -> Refusal | None:
    """Why mail cannot have gone to that session, or None: it goes to its recipient's open one of its run."""
    if session_id is None:
        return None
    session = SESSIONS.load(tx, session_id)
    place = MEMBER_RUNS.load(tx, session.member_run_id) if session else None
    fits = (
        session is not None
        and session.closed_at is None
        and place is not None
        and place.team_run_id == delivery.team_run_id
        and place.membership_id == delivery.recipient_id
    )
    if fits:
        return None
    lifted_by = "it goes to its recipient's session of this run that is not closed"
    return Refusal(code=Code.AGENT_SESSION_GENERATION_FENCED, about=f"session/{session_id}", lifted_by=lifted_by)
