"""``message.ack``, ``claim``, ``delivery``, ``receive`` and ``respond``, one test an outcome of the table."""

from __future__ import annotations

import attrs
import pytest

from client.protocol.ids import MessageDeliveryId, SessionId
from client.protocol.membership import LeaveTeam, ShowMembership
from client.protocol.message import (
    AcknowledgeMail,
    ClaimMail,
    Mail,
    MailCause,
    MailState,
    MessageDelivery,
    ReceiveMail,
    RespondMail,
    Response,
    SendMessage,
)
from client.protocol.operation import Plane
from client.protocol.refusals import Code, Refusal
from client.protocol.team_run import TakeTeamRun
from tests.support import mail, refusals
from tests.support.mail import also, ok, refused, reported, sent, taken
from tests.support.node import InProcessNode
from tests.support.run import Stage, session, stage
from tests.support.spoil import spoil


def unknown(delivery_id: str) -> Refusal:
    lifted_by = "see what there is for you: firm message inbox"
    return Refusal(code=Code.NOT_FOUND, about=f"mail/{delivery_id}", lifted_by=lifted_by)


def no_move(delivery: MessageDelivery, why: str) -> Refusal:
    return Refusal(code=Code.INVALID_STATE_TRANSITION, about=f"mail/{delivery.id}", lifted_by=why)


def ack(delivery: MessageDelivery) -> AcknowledgeMail:
    return AcknowledgeMail(delivery_id=delivery.id)


def claim(delivery: MessageDelivery) -> ClaimMail:
    return ClaimMail(delivery_id=delivery.id)


def respond(delivery: MessageDelivery, response: Response = Response.COMPLETED) -> RespondMail:
    return RespondMail(delivery_id=delivery.id, response=response)


async def to_team(s: Stage) -> MessageDelivery:
    return (await ok(s, s.ann, SendMessage(body="who can?", to_team=True))).deliveries[0]


async def to_cid(s: Stage) -> MessageDelivery:
    return (await sent(s, s.bob, s.cid)).deliveries[0]


async def test_message_ack_ok(node: InProcessNode) -> None:
    """Seen, by its recipient: what was not received before is received with it."""
    s = await stage(node)
    first = await mail.received(s, s.cid, await to_cid(s))
    seen = await ok(s, s.cid, ack(first))
    assert seen == attrs.evolve(
        first, version=first.version + 1, state=MailState.ACKNOWLEDGED, updated_at=seen.updated_at
    )
    second = await to_cid(s)
    at_once = await ok(s, s.cid, ack(second))
    assert (at_once.state, at_once.version, at_once.session_id) == (MailState.ACKNOWLEDGED, 3, s.cid.session.id)


async def test_its_sender_acknowledges_what_will_not_arrive(node: InProcessNode) -> None:
    s = await stage(node)
    lost = await mail.failed(s, await to_cid(s))
    seen = await ok(s, s.bob, ack(lost))
    assert seen == attrs.evolve(lost, version=lost.version + 1, told=True, updated_at=seen.updated_at)
    assert await refused(s, s.bob, ack(lost)) == no_move(lost, "its sender has noticed it already")


async def test_a_recipient_does_not_silence_the_sender(node: InProcessNode) -> None:
    """What will not arrive is told to the sender until the sender says so, whatever the recipient does."""
    s = await stage(node)
    lost = await mail.failed(s, await to_cid(s))
    assert await refused(s, s.cid, ack(lost)) == refusals.no_move(f"mail/{lost.id}", "failed", "provider_received")
    assert not (await mail.now(s, lost)).told


async def test_message_ack_invalid_state_transition(node: InProcessNode) -> None:
    s = await stage(node)
    delivery = await to_cid(s)
    waits = no_move(delivery, "it is queued; its recipient acknowledges it")
    assert await refused(s, s.bob, ack(delivery)) == waits
    await ok(s, s.cid, ack(delivery))
    again = refusals.no_move(f"mail/{delivery.id}", "acknowledged", "provider_received")
    assert await refused(s, s.cid, ack(delivery)) == again


async def test_message_ack_not_found(node: InProcessNode) -> None:
    """Neither sent nor received: for the others there is no such mail, not even for a Host."""
    s = await stage(node)
    nothing = AcknowledgeMail(delivery_id=MessageDeliveryId("nothing"))
    assert await refused(s, s.bob, nothing) == unknown("nothing")
    delivery, open_to_all = await to_cid(s), await to_team(s)
    assert await refused(s, s.ann, ack(delivery)) == unknown(delivery.id)
    assert await node.refused(ack(delivery)) == unknown(delivery.id)
    assert await refused(s, s.bob, ack(open_to_all)) == unknown(open_to_all.id)


async def test_message_ack_row_quarantined(node: InProcessNode) -> None:
    s = await stage(node)
    delivery = await to_cid(s)
    await mail.refused_while_spoilt(s, s.cid, ack(delivery), "message_deliveries", delivery.id)


async def test_message_claim_ok(node: InProcessNode) -> None:
    """On the same row: nothing is sent again."""
    s = await stage(node)
    before = await to_team(s)
    won = await ok(s, s.cid, claim(before))
    assert won == attrs.evolve(
        before,
        version=2,
        state=MailState.CLAIMED,
        recipient_id=s.cid.membership.id,
        session_id=s.cid.session.id,
        subscription_id=won.subscription_id,
        updated_at=won.updated_at,
    )
    subscribed = (await node.ok(ShowMembership(membership_id=s.cid.membership.id))).subscriptions
    (source,) = [each.source.value for each in subscribed if each.id == won.subscription_id]
    assert source == "team"
    (arrived,) = await taken(s, s.cid)
    assert (arrived.delivery.id, arrived.delivery.state) == (before.id, MailState.PROVIDER_RECEIVED)
    assert await taken(s, s.bob) == []


async def test_message_claim_claim_lost(node: InProcessNode) -> None:
    s = await stage(node)
    delivery = await to_team(s)
    await ok(s, s.cid, claim(delivery))
    assert await refused(s, s.bob, claim(delivery)) == Refusal(
        code=Code.CLAIM_LOST,
        about=f"mail/{delivery.id}",
        lifted_by=f"{s.cid.membership.id} has it; do nothing for it",
    )


async def test_message_claim_invalid_state_transition(node: InProcessNode) -> None:
    s = await stage(node)
    delivery = await to_team(s)
    await ok(s, s.cid, claim(delivery))
    again = refusals.no_move(f"mail/{delivery.id}", "claimed", "queued or routed")
    assert await refused(s, s.cid, claim(delivery)) == again


async def test_a_member_that_is_leaving_claims_nothing(node: InProcessNode) -> None:
    s = await stage(node)
    delivery = await to_team(s)
    await s.started(s.cid)
    version = (await node.ok(ShowMembership(membership_id=s.cid.membership.id))).membership.version
    await node.ok(LeaveTeam(membership_id=s.cid.membership.id, expected_version=version))
    why = "its member is leaving the team and takes no new mail; another member claims it"
    assert await refused(s, s.cid, claim(delivery)) == no_move(delivery, why)
    await ok(s, s.bob, claim(delivery))


async def test_message_claim_not_found(node: InProcessNode) -> None:
    """Mail to others cannot be claimed, and neither can that of another run or of a role one has not."""
    s, other = await stage(node), await stage(node)
    private, foreign = await to_cid(s), await to_team(other)
    for_testers = (await ok(s, s.ann, SendMessage(body="hello", to_role="tester"))).deliveries[0]
    assert await refused(s, s.bob, ClaimMail(delivery_id=MessageDeliveryId("nothing"))) == unknown("nothing")
    for delivery in (private, foreign, for_testers):
        assert await refused(s, s.ann, claim(delivery)) == unknown(delivery.id)


async def test_mail_to_a_role_that_several_have_is_claimed_by_one_of_them(node: InProcessNode) -> None:
    s = await stage(node)
    delivery = (await ok(s, s.ann, SendMessage(body="hello", to_role="member"))).deliveries[0]
    assert await taken(s, s.bob) == []
    won = await ok(s, s.bob, claim(delivery))
    assert (won.recipient_id, won.role) == (s.bob.membership.id, "member")
    assert (await refused(s, s.cid, claim(delivery))).code is Code.CLAIM_LOST


async def test_message_claim_row_quarantined(node: InProcessNode) -> None:
    s = await stage(node)
    delivery = await to_team(s)
    await mail.refused_while_spoilt(s, s.cid, claim(delivery), "message_deliveries", delivery.id)


async def test_message_delivery_ok(node: InProcessNode) -> None:
    """Every step is a fact of its own, with its time and its session."""
    s = await stage(node)
    delivery = await to_cid(s)
    for cause, state in (
        (MailCause.ROUTE, MailState.ROUTED),
        (MailCause.CLAIM, MailState.CLAIMED),
        (MailCause.RECEIVE, MailState.PROVIDER_RECEIVED),
        (MailCause.ACKNOWLEDGE, MailState.ACKNOWLEDGED),
    ):
        after = await reported(s, delivery, cause, session_id=s.cid.session.id)
        assert after == attrs.evolve(
            delivery,
            version=delivery.version + 1,
            state=state,
            session_id=s.cid.session.id,
            updated_at=after.updated_at,
        )
        assert after.updated_at > delivery.updated_at
        delivery = after


async def test_message_delivery_invalid_state_transition(node: InProcessNode) -> None:
    s = await stage(node)
    delivery, open_to_all = await to_cid(s), await to_team(s)
    refusal = await mail.not_reported(s, delivery, MailCause.ACKNOWLEDGE)
    assert refusal == refusals.no_move(f"mail/{delivery.id}", "queued", "provider_received")
    refusal = await mail.not_reported(s, delivery, MailCause.ROUTE)
    assert refusal == no_move(delivery, "name the session that it was routed to")
    for cause in (MailCause.EXPIRE, MailCause.INVALIDATE):
        refusal = await mail.not_reported(s, delivery, cause)
        assert (refusal.code, refusal.about) == (Code.INVALID_STATE_TRANSITION, f"mail/{delivery.id}")
    for cause in (MailCause.CLAIM, MailCause.RECEIVE, MailCause.FAIL, MailCause.ROUTE):
        refusal = await mail.not_reported(s, open_to_all, cause, session_id=s.cid.session.id)
        why = "nobody has taken it yet: a member claims it, or its role instance comes to be"
        assert refusal == no_move(open_to_all, why)


@pytest.mark.parametrize("state", [MailState.PROVIDER_RECEIVED, MailState.ACKNOWLEDGED, MailState.FAILED])
async def test_a_failure_of_what_arrived_or_is_lost_is_no_failure(node: InProcessNode, state: MailState) -> None:
    s = await stage(node)
    delivery = await to_cid(s)
    if state is MailState.FAILED:
        await mail.failed(s, delivery)
    else:
        await reported(s, delivery, MailCause.RECEIVE)
    if state is MailState.ACKNOWLEDGED:
        await reported(s, delivery, MailCause.ACKNOWLEDGE)
    refusal = await mail.not_reported(s, delivery, MailCause.FAIL, reason="no")
    assert refusal == refusals.no_move(f"mail/{delivery.id}", state.value, "queued or routed or claimed")


async def test_mail_goes_only_to_a_session_of_its_recipient_that_is_open(node: InProcessNode) -> None:
    s = await stage(node)
    delivery, closed = await to_cid(s), s.cid.session
    await mail.closed(s, s.cid)
    for wrong in (SessionId("nothing"), s.bob.session.id, closed.id):
        refusal = await mail.not_reported(s, delivery, MailCause.RECEIVE, session_id=wrong)
        assert refusal == Refusal(
            code=Code.AGENT_SESSION_GENERATION_FENCED,
            about=f"session/{wrong}",
            lifted_by="it goes to its recipient's session of this run that is not closed",
        )
    again = await session(node, s.run, s.cid.place)
    assert (await reported(s, delivery, MailCause.RECEIVE, session_id=again.id)).session_id == again.id


async def test_message_delivery_not_found(node: InProcessNode) -> None:
    s, other = await stage(node), await stage(node)
    foreign = await to_cid(other)
    for delivery in (attrs.evolve(foreign, id=MessageDeliveryId("nothing")), foreign):
        assert await mail.not_reported(s, delivery, MailCause.RECEIVE) == unknown(delivery.id)


async def test_message_delivery_row_quarantined(node: InProcessNode) -> None:
    s = await stage(node)
    delivery = await to_cid(s)
    node.execute("UPDATE message_deliveries SET state = 'nowhere' WHERE id = ?", delivery.id)
    refusal = await mail.not_reported(s, delivery, MailCause.RECEIVE)
    assert refusal == refusals.unreadable(f"message_deliveries/{delivery.id}")


async def test_message_delivery_supervisor_generation_fenced(node: InProcessNode) -> None:
    s = await stage(node)
    delivery = await to_cid(s)
    newer = await node.ok(TakeTeamRun(team_run_id=s.run.id), plane=Plane.SUPERVISOR, actor=s.run.id)
    refusal = await mail.not_reported(s, delivery, MailCause.RECEIVE)
    assert refusal.code is Code.SUPERVISOR_GENERATION_FENCED
    assert (await reported(attrs.evolve(s, run=newer), delivery, MailCause.RECEIVE)).version == 2


async def test_message_receive_ok(node: InProcessNode) -> None:
    """Oldest first, once, to the process that asks; and only what is the caller's."""
    s = await stage(node)
    first, second = await sent(s, s.bob, s.cid, body="one"), await sent(s, s.ann, s.cid, body="two")
    await sent(s, s.ann, s.bob)
    one = (await ok(s, s.cid, ReceiveMail(limit=1))).items
    assert one == [
        Mail(
            delivery=attrs.evolve(
                first.deliveries[0],
                version=2,
                state=MailState.PROVIDER_RECEIVED,
                session_id=s.cid.session.id,
                updated_at=one[0].delivery.updated_at,
            ),
            sender="bob",
            message=first.message,
        )
    ]
    assert [(each.sender, each.message) for each in await taken(s, s.cid)] == [("ann", second.message)]
    assert await taken(s, s.cid) == []


async def test_message_receive_row_quarantined(node: InProcessNode) -> None:
    s = await stage(node)
    await mail.refused_while_spoilt(s, s.cid, ReceiveMail(), "memberships", s.cid.membership.id)


@pytest.mark.parametrize("table", ["message_deliveries", "messages"])
async def test_mail_that_cannot_be_read_holds_up_no_other(node: InProcessNode, table: str) -> None:
    s = await stage(node)
    broken, good = await sent(s, s.bob, s.cid), await sent(s, s.bob, s.cid)
    row = broken.deliveries[0].id if table == "message_deliveries" else broken.message.id
    spoil(node.store.path, table, row)
    assert [each.message.id for each in await taken(s, s.cid)] == [good.message.id]
    assert await node.set_aside() == [f"{table}/{row}"]


async def test_message_respond_ok(node: InProcessNode) -> None:
    s = await stage(node)
    for response in (Response.COMPLETED, Response.REJECTED):
        delivery = await mail.received(s, s.cid, await to_cid(s))
        after = await ok(s, s.cid, respond(delivery, response))
        assert after == attrs.evolve(
            delivery, version=delivery.version + 1, response=response, updated_at=after.updated_at
        )


async def test_message_respond_invalid_state_transition(node: InProcessNode) -> None:
    s = await stage(node)
    delivery = await to_cid(s)
    assert await refused(s, s.cid, respond(delivery)) == no_move(delivery, "it is queued; receive it first")
    await taken(s, s.cid)
    refusal = await refused(s, s.cid, respond(delivery, Response.NONE))
    assert refusal == no_move(delivery, "give completed or rejected")
    await ok(s, s.cid, respond(delivery))
    refusal = await refused(s, s.cid, respond(delivery, Response.REJECTED))
    assert refusal == no_move(delivery, "it was completed already")


async def test_message_respond_not_found(node: InProcessNode) -> None:
    s = await stage(node)
    delivery = await mail.received(s, s.cid, await to_cid(s))
    nothing = RespondMail(delivery_id=MessageDeliveryId("nothing"), response=Response.COMPLETED)
    assert await refused(s, s.cid, nothing) == unknown("nothing")
    for who in (s.ann, s.bob, await also(s, "dan")):
        assert await refused(s, who, respond(delivery)) == unknown(delivery.id)


async def test_message_respond_row_quarantined(node: InProcessNode) -> None:
    s = await stage(node)
    delivery = await mail.received(s, s.cid, await to_cid(s))
    await mail.refused_while_spoilt(s, s.cid, respond(delivery), "message_deliveries", delivery.id)
