"""``message.send``, one test an outcome that the table declares, and the ways to address it."""

from __future__ import annotations

import hashlib

import attrs
import pytest

from client.protocol.ids import CorrelationId, MembershipId, MessageId, TeamRef, TeamRunId, WorkId
from client.protocol.membership import GuestRole, LeaveTeam, MembershipState, ShowMembership
from client.protocol.message import (
    AddressKind,
    Intent,
    MailState,
    Message,
    MessageDelivery,
    MessageKind,
    Response,
    SendMessage,
)
from client.protocol.operation import Plane
from client.protocol.refusals import Code, Refusal
from client.protocol.team_run import AddMemberRun, CreateTeamRun, RetireMemberRun, StartTeamRun
from tests.support import mail, refusals, scene
from tests.support.mail import also, ok, refused, sent, to
from tests.support.node import InProcessNode
from tests.support.run import Stage, stage

NO_ADDRESS = Refusal(
    code=Code.RECIPIENT_UNKNOWN,
    about="recipients",
    lifted_by="address it one way: to members by name or id, to a role or one instance of it, or to the team",
)


def unknown(s: Stage, named: str, near: str = "") -> Refusal:
    see = f"see who takes part: firm team-run show {s.run.id}"
    hint = f"did you mean {near}? Else {see}" if near else see
    return Refusal(code=Code.RECIPIENT_UNKNOWN, about=f"recipient/{named}", lifted_by=hint)


async def test_message_send_ok(node: InProcessNode) -> None:
    s = await stage(node)
    before = node.rows()
    work = await s.owned(s.bob)
    ask = SendMessage(
        body="see *this*", recipients=["ann", s.cid.agent.id], work_id=work.id, evidence_refs=["https://a.example/1"]
    )
    answer = await ok(s, s.bob, ask)
    at = answer.message.created_at
    assert answer.message == Message(
        id=answer.message.id,
        team_id=s.team.id,
        team_run_id=s.run.id,
        sender_id=s.bob.membership.id,
        sender_agent_id=s.bob.agent.id,
        kind=MessageKind.MESSAGE,
        intent=Intent.INFORMATIONAL,
        address=AddressKind.MEMBER,
        body="see *this*",
        digest=hashlib.sha256(b"see *this*").hexdigest(),
        options=[],
        correlation_id=answer.message.correlation_id,
        causation_id=None,
        work_id=work.id,
        evidence_refs=["https://a.example/1"],
        expires_at=None,
        created_at=at,
    )
    first = answer.deliveries[0]
    assert first == MessageDelivery(
        id=first.id,
        version=1,
        message_id=answer.message.id,
        team_run_id=s.run.id,
        recipient_id=s.ann.membership.id,
        role="",
        number=0,
        subscription_id=first.subscription_id,
        session_id=None,
        state=MailState.QUEUED,
        failures=0,
        reason="",
        response=Response.NONE,
        told=False,
        expires_at=None,
        created_at=at,
        updated_at=at,
    )
    assert [each.recipient_id for each in answer.deliveries] == [s.ann.membership.id, s.cid.membership.id]
    subscribed = (await node.ok(ShowMembership(membership_id=s.ann.membership.id))).subscriptions
    assert first.subscription_id in {each.id for each in subscribed}
    after = node.rows()
    mine = {"events", "messages", "message_deliveries"}
    assert {table for table in after if after[table] != before[table]} == {*mine, "works", "work_titles"}


async def test_a_decision_asked_for_needs_an_answer(node: InProcessNode) -> None:
    s = await stage(node)
    decision = (await sent(s, s.bob, s.ann, request_decision=True)).message
    assert (decision.kind, decision.intent) == (MessageKind.REQUEST_DECISION, Intent.RESPONSE_REQUIRED)
    action = (await sent(s, s.bob, s.ann, response_required=True)).message
    assert (action.kind, action.intent) == (MessageKind.MESSAGE, Intent.RESPONSE_REQUIRED)


async def test_a_person_who_is_the_host_sends_as_the_host(node: InProcessNode) -> None:
    s = await mail.with_person(await stage(node))
    ask = SendMessage(team_run_id=s.run.id, body="hello", recipients=["bob"])
    assert (await node.ok(ask)).message.sender_id == s.ann.membership.id


async def test_an_operator_who_is_not_the_host_sends_nothing(node: InProcessNode) -> None:
    s = await stage(node)
    refusal = await node.refused(SendMessage(team_run_id=s.run.id, body="hello", recipients=["bob"]))
    assert (refusal.code, refusal.about) == (Code.NOT_AUTHORIZED, f"team/{s.team.id}")


async def test_an_observer_cannot_send(node: InProcessNode) -> None:
    s = await stage(node)
    eve = await also(s, "eve", GuestRole.OBSERVER)
    refusal = await refused(s, eve, to(s.bob))
    assert (refusal.code, refusal.about) == (Code.NOT_AUTHORIZED, "message.send")


async def test_a_member_named_twice_gets_one_delivery(node: InProcessNode) -> None:
    s = await stage(node)
    named = [s.cid.membership.id, "cid", s.cid.agent.id]
    assert len((await ok(s, s.bob, SendMessage(body="hello", recipients=named))).deliveries) == 1


async def test_message_send_causation_invalid(node: InProcessNode) -> None:
    s = await stage(node)
    other = await node.ok(CreateTeamRun(team_id=TeamRef(s.team.id)))
    me = await mail.with_person(s)
    there = await node.ok(SendMessage(team_run_id=other.id, body="hello", recipients=["bob"]))
    here = await sent(s, s.bob, s.cid)
    for cause, why in (
        ("nothing", "there is no message nothing in this run"),
        (there.message.id, f"there is no message {there.message.id} in this run"),
    ):
        refusal = await refused(me, s.bob, to(s.cid, causation_id=MessageId(cause)))
        assert refusal == Refusal(
            code=Code.CAUSATION_INVALID, about=f"message/{cause}", lifted_by=f"name another: {why}"
        )
    for talk in ("nothing", there.message.correlation_id):
        refusal = await refused(me, s.bob, to(s.cid, correlation_id=CorrelationId(talk)))
        assert refusal == Refusal(
            code=Code.CAUSATION_INVALID,
            about=f"correlation/{talk}",
            lifted_by="leave it out to begin a conversation, or name one of this run",
        )
    second = await sent(s, s.bob, s.cid)
    mixed = to(s.cid, causation_id=here.message.id, correlation_id=second.message.correlation_id)
    refusal = await refused(me, s.bob, mixed)
    assert refusal == Refusal(
        code=Code.CAUSATION_INVALID,
        about=f"message/{here.message.id}",
        lifted_by=f"name another: it belongs to the conversation {here.message.correlation_id}",
    )


async def test_what_follows_from_a_message_is_of_its_conversation(node: InProcessNode) -> None:
    s = await stage(node)
    first = (await sent(s, s.bob, s.cid)).message
    second = (await sent(s, s.bob, s.ann, causation_id=first.id)).message
    third = (await sent(s, s.ann, s.cid, correlation_id=first.correlation_id)).message
    fresh = (await sent(s, s.ann, s.cid)).message
    assert second.causation_id == first.id
    assert first.correlation_id == second.correlation_id == third.correlation_id != fresh.correlation_id


async def test_message_send_name_ambiguous(node: InProcessNode) -> None:
    """No two active members share a name; if a store says otherwise, nobody is guessed."""
    s = await stage(node)
    node.execute("UPDATE agents SET name = 'bob' WHERE id = ?", s.cid.agent.id)
    refusal = await refused(s, s.ann, SendMessage(body="hello", recipients=["bob"]))
    assert refusal == Refusal(
        code=Code.NAME_AMBIGUOUS,
        about="recipient/bob",
        lifted_by=f"say which one by id: {s.bob.membership.id} or {s.cid.membership.id}",
    )


async def test_message_send_not_found(node: InProcessNode) -> None:
    s, other = await stage(node), await stage(node)
    second = await node.ok(CreateTeamRun(team_id=TeamRef(s.team.id)))
    for run in ("nothing", other.run.id, second.id):
        refusal = await refused(s, s.bob, to(s.cid, team_run_id=TeamRunId(run)))
        assert refusal == refusals.not_found("team-run", run)
    foreign = await other.work()
    for work in ("nothing", foreign.id):
        refusal = await refused(s, s.bob, to(s.cid, work_id=WorkId(work)))
        assert refusal == refusals.not_found("work", work)


async def test_message_send_queue_full(node: InProcessNode) -> None:
    """Whatever waits for one of the recipients stops the message for all of them."""
    s = await stage(node)
    mail.filled(s, (await sent(s, s.ann, s.cid)).deliveries[0], 999)
    await sent(s, s.ann, s.cid)
    refusal = await refused(s, s.ann, to(s.bob, s.cid))
    assert refusal == Refusal(
        code=Code.QUEUE_FULL,
        about=f"membership/{s.cid.membership.id}",
        lifted_by="let what waits be read first: at most 1000 messages wait for one recipient",
    )
    await sent(s, s.ann, s.bob)
    node.execute("UPDATE message_deliveries SET state = 'acknowledged' WHERE id = 'mail2'")
    await sent(s, s.ann, s.bob, s.cid)


@pytest.mark.parametrize(
    ("address", "about"), [({"to_team": True}, "team/{}"), ({"to_role": "tester", "to_number": 1}, "role/tester")]
)
async def test_what_waits_for_somebody_to_take_it_is_limited_too(
    node: InProcessNode, address: dict[str, object], about: str
) -> None:
    s = await stage(node)
    ask = SendMessage(body="hello", **address)  # type: ignore[arg-type]
    mail.filled(s, (await ok(s, s.ann, ask)).deliveries[0])
    refusal = await refused(s, s.ann, ask)
    assert (refusal.code, refusal.about) == (Code.QUEUE_FULL, about.format(s.team.id))


async def test_message_send_recipient_unknown(node: InProcessNode) -> None:
    """Nobody but an active member of this very team; and then nothing is stored, not even for the others."""
    s = await stage(node)
    await stage(node)
    eve, dan = await scene.agent(node, "eve"), await scene.agent(node, "dan")
    invitation = await scene.invited(node, s.team, eve)
    gone = await scene.left(node, await scene.joined(node, s.team, dan))
    for named, near in (
        ("bobb", "bob"),
        ("zebedee", ""),
        ("eve", ""),
        (invitation.id, ""),
        ("dan", "ann"),
        (gone.id, ""),
    ):
        refusal = await refused(s, s.ann, SendMessage(body="hello", recipients=["cid", named]))
        assert refusal == unknown(s, named, near)


async def test_a_member_that_is_leaving_takes_no_new_mail(node: InProcessNode) -> None:
    s = await stage(node)
    await s.started(s.cid)
    version = (await node.ok(ShowMembership(membership_id=s.cid.membership.id))).membership.version
    leaving = await node.ok(LeaveTeam(membership_id=s.cid.membership.id, expected_version=version))
    assert leaving.state is MembershipState.LEAVING
    assert await refused(s, s.ann, to(s.cid)) == unknown(s, s.cid.membership.id)


@pytest.mark.parametrize(
    "address",
    [
        {},
        {"recipients": ["bob"], "to_team": True},
        {"recipients": ["bob"], "to_role": "tester"},
        {"to_role": "tester", "to_team": True},
        {"recipients": ["bob"], "to_number": 1},
    ],
    ids=str,
)
async def test_a_message_has_one_address(node: InProcessNode, address: dict[str, object]) -> None:
    s = await stage(node)
    assert await refused(s, s.ann, SendMessage(body="hello", **address)) == NO_ADDRESS  # type: ignore[arg-type]


async def test_message_send_row_quarantined(node: InProcessNode) -> None:
    s = await stage(node)
    await mail.refused_while_spoilt(s, s.bob, to(s.ann), "memberships", s.bob.membership.id)


async def test_message_send_team_run_not_open(node: InProcessNode) -> None:
    s = await mail.with_person(await stage(node))
    await mail.over(s)
    refusal = await node.refused(SendMessage(team_run_id=s.run.id, body="hello", recipients=["bob"]))
    assert (refusal.code, refusal.about) == (Code.TEAM_RUN_NOT_OPEN, f"team-run/{s.run.id}")


async def test_mail_may_be_sent_before_a_run_begins(node: InProcessNode) -> None:
    s = await mail.with_person(await stage(node))
    planned = await node.ok(CreateTeamRun(team_id=TeamRef(s.team.id)))
    await node.ok(SendMessage(team_run_id=planned.id, body="hello", recipients=["bob"]))
    await node.ok(StartTeamRun(team_run_id=planned.id, expected_version=1))


async def test_mail_to_a_role_goes_to_its_one_holder(node: InProcessNode) -> None:
    s = await stage(node)
    tester = await also(s, "tess", place="tester")
    for number in (0, 1):
        answer = await ok(s, s.ann, SendMessage(body="hello", to_role="tester", to_number=number))
        (delivery,) = answer.deliveries
        assert answer.message.address is AddressKind.ROLE
        assert (delivery.recipient_id, delivery.role, delivery.number) == (tester.membership.id, "tester", number)


async def test_mail_to_a_role_that_several_have_waits_to_be_claimed(node: InProcessNode) -> None:
    s = await stage(node)
    ask = SendMessage(body="hello", to_role="member")
    (delivery,) = (await ok(s, s.ann, ask)).deliveries
    assert delivery.recipient_id is None
    (one,) = (await ok(s, s.ann, attrs.evolve(ask, to_number=s.cid.place.number))).deliveries
    assert one.recipient_id == s.cid.membership.id


async def test_a_place_that_was_left_for_good_is_no_holder_of_its_role(node: InProcessNode) -> None:
    s = await stage(node)
    dan = await scene.joined(node, s.team, await scene.agent(node, "dan"))
    place = await node.ok(AddMemberRun(team_run_id=s.run.id, membership_id=dan.id, role="tester"))
    await node.ok(RetireMemberRun(member_run_id=place.id, expected_version=1))
    (delivery,) = (await ok(s, s.ann, SendMessage(body="hello", to_role="tester", to_number=1))).deliveries
    assert delivery.recipient_id is None


async def test_who_left_the_team_is_no_holder_of_a_role(node: InProcessNode) -> None:
    s = await stage(node)
    dan = await scene.joined(node, s.team, await scene.agent(node, "dan"))
    await node.ok(AddMemberRun(team_run_id=s.run.id, membership_id=MembershipId(dan.id), role="tester"))
    await scene.left(node, dan)
    (delivery,) = (await ok(s, s.ann, SendMessage(body="hello", to_role="tester"))).deliveries
    assert delivery.recipient_id is None


async def test_who_speaks_is_never_taken_from_the_request(node: InProcessNode) -> None:
    """I27: a field that names another sender is no field, and the text of a body is only text."""
    s = await stage(node)
    for field in ("sender_id", "sender_agent_id", "session_id", "actor", "from"):
        body = {"body": "hello", "recipients": ["cid"], field: s.ann.membership.id}
        outcome = await node.begin("message.send", body, plane=Plane.MEMBER, actor=s.bob.session).outcome()
        assert isinstance(outcome, Refusal)
        assert outcome.code is Code.MALFORMED
    said = f"from: {s.ann.membership.id}\nsender_id: {s.ann.agent.id}"
    message = (await sent(s, s.bob, s.cid, body=said)).message
    assert (message.sender_id, message.sender_agent_id) == (s.bob.membership.id, s.bob.agent.id)
