"""Mail that will not arrive: failed, expired, invalidated; and how its sender is told, once."""

from __future__ import annotations

import pytest

from client.protocol.board import AcknowledgeAttention, AttentionKind, ListAttention
from client.protocol.message import (
    AcknowledgeMail,
    ClaimMail,
    MailCause,
    MailState,
    MessageDelivery,
    SendMessage,
    Sent,
    ShowInbox,
    ShowMessage,
)
from client.protocol.refusals import Code, Refusal
from client.protocol.team_run import CancelTeamRun, ShowTeamRun
from daemon.operations import mail as transport
from tests.support import mail
from tests.support.mail import failed, now, ok, refused, reported, sent, taken, to
from tests.support.node import InProcessNode
from tests.support.run import Member, Stage, stage


async def undelivered(s: Stage, by: Member) -> list[MessageDelivery]:
    return [each.delivery for each in (await ok(s, by, ShowInbox())).undelivered]


async def attention(s: Stage, by: Member) -> list[tuple[AttentionKind, str]]:
    return [(each.kind, each.what) for each in (await ok(s, by, ListAttention())).items]


async def test_mail_has_failed_after_the_third_refusal_and_not_before(node: InProcessNode) -> None:
    s = await stage(node)
    delivery = (await sent(s, s.bob, s.cid)).deliveries[0]
    await reported(s, delivery, MailCause.ROUTE, session_id=s.cid.session.id)
    for n in (1, 2):
        after = await reported(s, delivery, MailCause.FAIL, reason=f"busy {n}")
        assert (after.state, after.failures, after.reason) == (MailState.ROUTED, n, f"busy {n}")
        assert await undelivered(s, s.bob) == []
    lost = await reported(s, delivery, MailCause.FAIL, reason="no such tool")
    assert (lost.state, lost.failures, lost.reason) == (MailState.FAILED, 3, "no such tool")
    assert await taken(s, s.cid) == []


async def test_mail_that_was_refused_twice_may_still_arrive(node: InProcessNode) -> None:
    s = await stage(node)
    delivery = (await sent(s, s.bob, s.cid)).deliveries[0]
    for _ in range(2):
        await reported(s, delivery, MailCause.FAIL, reason="busy")
    arrived = await mail.received(s, s.cid, delivery)
    assert (arrived.state, arrived.failures) == (MailState.PROVIDER_RECEIVED, 2)


async def expired(s: Stage, made: Sent) -> MessageDelivery:
    """That delivery, once the daemon's own look at the clock has come."""
    assert made.message.expires_at is not None
    call = s.node.call(now=made.message.expires_at)
    await s.node.store.write(lambda tx: transport.expire(tx, call))
    return await now(s, made.deliveries[0])


async def test_mail_expires_when_it_is_not_received_in_time(node: InProcessNode) -> None:
    s = await stage(node)
    made = await sent(s, s.bob, s.cid, s.ann, expires_in_ms=5000)
    assert made.message.expires_at == made.message.created_at + 5000
    assert {each.expires_at for each in made.deliveries} == {made.message.expires_at}
    early = node.call(now=made.message.created_at)
    assert await node.store.write(lambda tx: transport.expire(tx, early)) == 0
    await mail.received(s, s.ann, made.deliveries[1])
    lost = await expired(s, made)
    assert (lost.state, lost.reason) == (MailState.EXPIRED, "not received in time")
    assert (await now(s, made.deliveries[1])).state is MailState.PROVIDER_RECEIVED
    assert await taken(s, s.cid) == []


async def test_mail_that_is_overdue_is_not_received_before_somebody_noted_it(node: InProcessNode) -> None:
    """The moment decides, not when the daemon looks at the clock."""
    s = await stage(node)
    late, team = [
        (await ok(s, s.bob, ask)).deliveries[0]
        for ask in (to(s.cid, expires_in_ms=1000), SendMessage(body="who?", to_team=True, expires_in_ms=1000))
    ]
    for _ in range(1000):
        next(node._ids)
    no = "it was not received in time and expires; its sender is told and may send it again"
    for refusal in (
        await refused(s, s.cid, ClaimMail(delivery_id=team.id)),
        await refused(s, s.cid, AcknowledgeMail(delivery_id=late.id)),
        await mail.not_reported(s, late, MailCause.ROUTE, session_id=s.cid.session.id),
        await mail.not_reported(s, late, MailCause.RECEIVE),
    ):
        assert (refusal.code, refusal.lifted_by) == (Code.INVALID_STATE_TRANSITION, no)
    assert await taken(s, s.cid) == []
    assert (await now(s, late)).state is MailState.EXPIRED


async def lose(s: Stage, how: str) -> MessageDelivery:
    """A message of Bob to Cid that will not arrive."""
    made = await sent(s, s.bob, s.cid, expires_in_ms=60_000)
    delivery = made.deliveries[0]
    if how == "failed":
        return await failed(s, delivery)
    if how == "expired":
        return await expired(s, made)
    await mail.left(s, s.cid)
    return await now(s, delivery)


LOST = {
    "failed": "failed, no such tool",
    "expired": "expired, not received in time",
    "invalidated": "invalidated, its recipient left the team",
}


@pytest.mark.parametrize("how", LOST)
async def test_a_sender_is_told_once_of_mail_that_will_not_arrive(node: InProcessNode, how: str) -> None:
    """In its inbox and as attention, until it says so; then it stays silent. Nobody else is told."""
    s = await stage(node)
    lost = await lose(s, how)
    told = (AttentionKind.MAIL, f"your message will not arrive: {LOST[how]}")
    assert await undelivered(s, s.bob) == [lost]
    assert await attention(s, s.bob) == [told]
    assert await attention(s, s.ann) == []
    (item,) = (await ok(s, s.bob, ListAttention())).items
    mail.typed(item.lifted_by)
    await ok(s, s.bob, AcknowledgeMail(delivery_id=lost.id))
    assert await undelivered(s, s.bob) == []
    assert await attention(s, s.bob) == []


async def test_an_incident_that_was_acknowledged_is_silent_and_the_next_speaks(node: InProcessNode) -> None:
    s = await stage(node)
    await lose(s, "failed")
    (first,) = (await ok(s, s.bob, ListAttention())).items
    assert (await ok(s, s.bob, AcknowledgeAttention(key=first.key))).items == []
    second = await lose(s, "expired")
    (item,) = (await ok(s, s.bob, ListAttention())).items
    assert item.about == f"message/{second.message_id}"


async def test_a_person_who_is_the_host_is_told_and_an_operator_who_is_not_is_spared(node: InProcessNode) -> None:
    s = await stage(node)
    await failed(s, (await sent(s, s.ann, s.cid)).deliveries[0])
    ask = ListAttention(team_run_id=s.run.id)
    assert (await node.ok(ask)).items == []
    await mail.with_person(s)
    (item,) = (await node.ok(ask)).items
    assert item.kind is AttentionKind.MAIL
    assert not isinstance(await node.follow(Refusal(code=Code.INTERNAL, lifted_by=item.lifted_by)), Refusal)
    assert (await node.ok(ask)).items == []


@pytest.mark.parametrize("how", ["completed", "cancelled"])
async def test_the_end_of_a_run_ends_the_mail_that_has_not_arrived(node: InProcessNode, how: str) -> None:
    s = await mail.with_person(await stage(node))
    waits = (await sent(s, s.ann, s.cid)).deliveries[0]
    team = (await ok(s, s.ann, SendMessage(body="who can?", to_team=True))).deliveries[0]
    arrived = await mail.received(s, s.bob, (await sent(s, s.ann, s.bob)).deliveries[0])
    if how == "completed":
        await mail.over(s)
    else:
        await cancelled(s)
    for each in (waits, team):
        lost = await now(s, each)
        assert (lost.state, lost.reason) == (MailState.INVALIDATED, f"the run was {how}")
    assert await now(s, arrived) == arrived
    told = [each.delivery.id for each in (await node.ok(ShowInbox())).undelivered]
    assert told == [waits.id, team.id]


async def cancelled(s: Stage) -> None:
    for who in (s.ann, s.bob, s.cid):
        await mail.closed(s, who)
    version = (await s.node.ok(ShowTeamRun(team_run_id=s.run.id))).run.version
    await s.node.ok(CancelTeamRun(team_run_id=s.run.id, expected_version=version, reason="enough"))


async def test_a_membership_that_ends_takes_only_its_own_mail_along(node: InProcessNode) -> None:
    s = await stage(node)
    seen = await mail.received(s, s.cid, (await sent(s, s.bob, s.cid)).deliveries[0])
    made = await sent(s, s.bob, s.ann, s.cid)
    await mail.left(s, s.cid)
    states = [each.state for each in (await node.ok(ShowMessage(message_id=made.message.id))).deliveries]
    assert states == [MailState.QUEUED, MailState.INVALIDATED]
    assert await now(s, seen) == seen
