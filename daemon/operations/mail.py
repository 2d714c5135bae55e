"""Moving mail along, for handlers of several nouns. Which move is legal stands in the kernel."""

from __future__ import annotations

from client.protocol.ids import MembershipId, SubscriptionId, TeamRunId
from client.protocol.membership import MembershipState, SubscriptionSource, SubscriptionState
from client.protocol.message import MailCause, Message, MessageDelivery, Response
from client.protocol.refusals import Code, Refusal
from client.protocol.team_run import Coordination, MemberRun
from daemon.call import Call
from daemon.kernel.message import MAIL_LIFE, ON_ITS_WAY, too_late
from store import membership as memberships
from store import message as messages
from store import team_run as runs
from store.membership import MEMBERSHIPS
from store.message import MAIL
from store.tx import Tx


def unknown(delivery_id: str) -> Refusal:
    """No such delivery, or not one of the caller's."""
    lifted_by = "see what there is for you: firm message inbox"
    return Refusal(code=Code.NOT_FOUND, about=f"mail/{delivery_id}", lifted_by=lifted_by)


def move(
    tx: Tx, call: Call, delivery: MessageDelivery, cause: MailCause, **changes: object
) -> MessageDelivery | Refusal:
    state = MAIL_LIFE.after(delivery.state, cause, f"mail/{delivery.id}")
    if isinstance(state, Refusal):
        return state
    if refusal := too_late(delivery, cause, call.now):
        return refusal
    return MAIL.change(tx, delivery, kind=cause.value, actor=call.actor, at=call.now, state=state, **changes)


def acknowledge(tx: Tx, call: Call, delivery: MessageDelivery) -> MessageDelivery | Refusal:
    """Its recipient has seen it; what was still on its way has been received by that."""
    if delivery.state in ON_ITS_WAY:
        received = move(tx, call, delivery, MailCause.RECEIVE, session_id=call.session_id)
        if isinstance(received, Refusal):
            return received
        delivery = received
    return move(tx, call, delivery, MailCause.ACKNOWLEDGE)


def answered(tx: Tx, call: Call, by: Message) -> None:
    """Who answers a message has seen it, so nothing asks for the answer again."""
    for delivery in messages.deliveries(tx, by.causation_id) if by.causation_id else []:
        if delivery.recipient_id == by.sender_id:
            acknowledge(tx, call, delivery)  # refused where it was seen before, or is lost: it stays what it is


def invalidate(tx: Tx, call: Call, found: list[MessageDelivery], reason: str) -> None:
    """Mail whose recipient or run has ended will not arrive; its sender is told."""
    for delivery in found:
        move(tx, call, delivery, MailCause.INVALIDATE, reason=reason)


def withdraw_questions(tx: Tx, call: Call, place: MemberRun, reason: str) -> None:
    """Nobody waits any more for the answers to what a session asked: its questions are cancelled.

    One that was not received yet does not arrive; one that was received is answered by nobody.
    """
    for delivery in messages.unanswered(tx, place.membership_id, place.team_run_id):
        if delivery.state in ON_ITS_WAY:
            move(tx, call, delivery, MailCause.INVALIDATE, reason=reason)
        else:
            changes = {"response": Response.REJECTED, "reason": reason}
            MAIL.change(tx, delivery, kind="cancelled", actor=call.actor, at=call.now, **changes)


def expire(tx: Tx, call: Call) -> int:
    """Mail that was not received in time; how many."""
    found = messages.expired(tx, call.now)
    for delivery in found:
        expire_one(tx, call, delivery)
    return len(found)


def expire_one(tx: Tx, call: Call, delivery: MessageDelivery) -> None:
    move(tx, call, delivery, MailCause.EXPIRE, reason="not received in time")


def subscription(tx: Tx, membership_id: MembershipId, source: SubscriptionSource) -> SubscriptionId | None:
    """What entitles a membership to mail to itself, or to its team."""
    found = memberships.subscriptions(tx, membership_id)
    return next((s.id for s in found if s.source is source and s.state is SubscriptionState.ACTIVE), None)


def instances(tx: Tx, run_id: TeamRunId, role: str) -> list[MemberRun]:
    """Everybody who has this role in the run and can be sent mail."""
    found = [p for p in runs.places(tx, run_id) if p.role == role and p.coordination is not Coordination.RETIRED]
    return [place for place in found if _active(tx, place.membership_id)]


def _active(tx: Tx, membership_id: MembershipId) -> bool:
    membership = MEMBERSHIPS.load(tx, membership_id)
    return membership is not None and membership.state is MembershipState.ACTIVE


def arrived(tx: Tx, call: Call, place: MemberRun) -> None:
    """A role instance has come to be: mail that waited for it gets its recipient.

    Mail to a role that several have by now stays queued, until one of them claims it.
    """
    alone = len(instances(tx, place.team_run_id, place.role)) == 1
    subscribed = subscription(tx, place.membership_id, SubscriptionSource.AGENT)
    for delivery in messages.for_role(tx, place.team_run_id, place.role, place.number):
        if delivery.number or alone:
            MAIL.change(
                tx,
                delivery,
                kind="addressed",
                actor=call.actor,
                at=call.now,
                recipient_id=place.membership_id,
                subscription_id=subscribed,
            )
