"""What holds for all mail: admission, claims by one, mail that waits, mail that is lost, and Works it never touches."""

from __future__ import annotations

import hashlib
import itertools
from typing import Any

import attrs
import pytest
from trio.testing import wait_all_tasks_blocked

from client.protocol.attempt import Outcome
from client.protocol.board import ListDue, ShowBoard
from client.protocol.event import ListEvents, WaitForEvent
from client.protocol.ids import TeamRef, TeamRunId
from client.protocol.message import (
    AcknowledgeMail,
    ClaimMail,
    Intent,
    MailCause,
    MailState,
    MessageDelivery,
    ReceiveMail,
    RespondMail,
    Response,
    SendMessage,
    Sent,
    ShowInbox,
    ShowMessage,
)
from client.protocol.operation import Plane
from client.protocol.refusals import Code, Refusal
from client.protocol.team_run import AddMemberRun, CreateTeamRun
from client.protocol.work import Phase
from client.protocol.work_asks import AcceptWork, ShowWork
from tests.support import mail, scene
from tests.support.mail import also, now, ok, refused, reported, sent, taken, to
from tests.support.node import InProcessNode, rows_of
from tests.support.run import Member, session, stage


async def test_recipients_and_digest_are_fixed_when_a_message_is_admitted(node: InProcessNode) -> None:
    """I26: who joins later, is renamed or leaves changes nothing of it, and neither does its way."""
    s = await stage(node)
    body = "größer\n" * 3
    made = await sent(s, s.bob, s.ann, s.cid, body=body)
    assert made.message.digest == hashlib.sha256(body.encode()).hexdigest()
    kept = node.rows()["messages"]
    await also(s, "dan")
    await mail.left(s, s.cid)
    await mail.acknowledged(s, s.ann, made.deliveries[0])
    shown = await node.ok(ShowMessage(message_id=made.message.id))
    assert shown.message == made.message
    assert [each.recipient_id for each in shown.deliveries] == [each.recipient_id for each in made.deliveries]
    assert node.rows()["messages"] == kept


async def test_a_message_and_all_its_deliveries_are_written_together_or_not_at_all(node: InProcessNode) -> None:
    """I26: the third delivery fails as a bug would."""
    s = await stage(node)
    dan = await also(s, "dan")
    fails = f"WHEN new.recipient_id = '{dan.membership.id}' BEGIN SELECT no_function(); END"
    node.execute(f"CREATE TRIGGER fails BEFORE INSERT ON message_deliveries {fails}")
    refusal = await refused(s, s.bob, to(s.ann, s.cid, dan))
    assert refusal.code is Code.INTERNAL
    node.execute("DROP TRIGGER fails")
    made = await sent(s, s.bob, s.ann, s.cid, dan)
    assert len(made.deliveries) == len(node.rows()["message_deliveries"]) == 3


async def test_what_is_fanned_out_becomes_visible_in_one_step(node: InProcessNode) -> None:
    """The events of all deliveries stand in one commit, before anybody is answered."""
    s = await stage(node)
    before = node.store.seq
    made = await sent(s, s.bob, s.ann, s.cid)
    events = (await node.ok(ListEvents(team_run_id=s.run.id, limit=500))).items
    mine = [(each.stream, each.kind, each.actor) for each in events if each.seq > before]
    assert mine == [(f"mail/{each.id}", "queued", f"agent/{s.bob.agent.id}") for each in made.deliveries]


async def test_a_delivery_is_the_fold_of_its_events_and_no_event_holds_a_body(node: InProcessNode) -> None:
    s = await stage(node)
    made = await sent(s, s.bob, s.cid, body="a secret word")
    delivery = await mail.acknowledged(s, s.cid, made.deliveries[0])
    folded: dict[str, Any] = {}
    for event in (await node.ok(ListEvents(stream=f"mail/{delivery.id}"))).items:
        assert "a secret word" not in str(event.body)
        folded |= event.body
        assert event.version == folded["version"]
    assert folded == {name: getattr(value, "value", value) for name, value in attrs.asdict(delivery).items()}


async def test_team_mail_is_claimed_by_one_of_many_and_the_others_change_nothing(node: InProcessNode) -> None:
    """I25: eight claims in one batch; the row and its events say one winner."""
    s = await stage(node)
    made = await ok(s, s.ann, SendMessage(body="who can?", to_team=True))
    ask = ClaimMail(delivery_id=made.deliveries[0].id)
    who = [s.bob, s.cid, *[await also(s, f"dan {n}") for n in range(6)]]
    waiting = [(each, node.send(ask, plane=Plane.MEMBER, actor=each.session)) for each in who]
    outcomes = [(each, await exchange.outcome()) for each, exchange in waiting]
    ((winner, won),) = [(each, found) for each, found in outcomes if not isinstance(found, Refusal)]
    assert isinstance(won, MessageDelivery)
    assert won.recipient_id == winner.membership.id
    assert {found.code for _, found in outcomes if isinstance(found, Refusal)} == {Code.CLAIM_LOST}
    assert await now(s, won) == won
    events = (await node.ok(ListEvents(stream=f"mail/{won.id}"))).items
    assert [each.kind for each in events] == ["queued", "claimed"]
    before = node.rows()
    await refused(s, next(each for each in who if each is not winner), ask)
    assert node.rows() == before


async def test_mail_waits_for_a_role_instance_until_it_exists(node: InProcessNode) -> None:
    """Nobody else gets it, it wakes whoever waits, and it is received once."""
    s = await stage(node)
    one = (await ok(s, s.ann, SendMessage(body="first", to_role="tester", to_number=1))).deliveries[0]
    two = (await ok(s, s.ann, SendMessage(body="second", to_role="tester", to_number=2))).deliveries[0]
    any_of_them = (await ok(s, s.ann, SendMessage(body="any", to_role="tester"))).deliveries[0]
    assert {(await now(s, each)).state for each in (one, two, any_of_them)} == {MailState.QUEUED}
    assert await taken(s, s.bob) == []
    tess = await also(s, "tess", place="tester")
    assert (tess.place.role, tess.place.number) == ("tester", 1)
    addressed = await now(s, one)
    assert (addressed.recipient_id, addressed.state) == (tess.membership.id, MailState.QUEUED)
    assert addressed.subscription_id is not None
    wait = WaitForEvent(predicate="inbox", timeout_ms=0)
    assert not (await ok(s, tess, wait)).timed_out
    assert [each.message.body for each in await taken(s, tess)] == ["first", "any"]
    assert (await ok(s, tess, wait)).timed_out
    assert (await now(s, two)).recipient_id is None
    tom = await also(s, "tom", place="tester")
    assert [each.message.body for each in await taken(s, tom)] == ["second"]


async def test_mail_to_any_of_several_is_not_given_to_the_one_that_comes_last(node: InProcessNode) -> None:
    s = await stage(node)
    await also(s, "tess", place="tester")
    await also(s, "tom", place="tester")
    shared = (await ok(s, s.ann, SendMessage(body="any", to_role="tester"))).deliveries[0]
    await also(s, "tim", place="tester")
    assert (await now(s, shared)).recipient_id is None


async def test_an_agent_that_is_asleep_finds_its_mail_when_it_begins(node: InProcessNode) -> None:
    """Mail to a member without a session, even without a place in the run, waits for both."""
    s = await stage(node)
    agent = await scene.agent(node, "dan")
    membership = await scene.joined(node, s.team, agent)
    await ok(s, s.bob, SendMessage(body="hello", recipients=["dan"]))
    place = await node.ok(AddMemberRun(team_run_id=s.run.id, membership_id=membership.id))
    dan = Member(agent, membership, place, await session(node, s.run, place))
    assert [each.message.body for each in await taken(s, dan)] == ["hello"]


async def test_a_session_receives_the_mail_of_its_own_run_only(node: InProcessNode) -> None:
    s = await mail.with_person(await stage(node))
    other = await node.ok(CreateTeamRun(team_id=TeamRef(s.team.id)))
    there = await node.ok(SendMessage(team_run_id=other.id, body="there", recipients=["bob"]))
    here = await sent(s, s.ann, s.bob, body="here")
    assert [each.message.id for each in await taken(s, s.bob)] == [here.message.id]
    assert (await ok(s, s.bob, WaitForEvent(predicate="inbox", timeout_ms=0))).timed_out
    assert (await now(s, there.deliveries[0])).state is MailState.QUEUED
    board = await node.ok(ShowBoard(team_run_id=s.run.id))
    assert [each.mail for each in board.members] == [0, 0, 0]


async def test_send_delivery_receive_response_and_acceptance_are_five_facts(node: InProcessNode) -> None:
    """Each step moves the delivery alone; the Work moves only by operations on the Work."""
    s = await stage(node)
    work = await s.submitted(s.bob)
    receipt = await s.receipt(work)
    works = {"works", "bindings", "work_deliveries", "receipts", "work_needs", "check_results"}

    def of_works() -> dict[str, object]:
        return {table: rows for table, rows in node.rows().items() if table in works}

    before = of_works()
    made = await sent(s, s.bob, s.ann, body="done, accept it", work_id=work.id, response_required=True)
    (delivery,) = made.deliveries
    steps: list[tuple[MailState, Response]] = [(delivery.state, delivery.response)]
    for after in (
        await reported(s, delivery, MailCause.ROUTE, session_id=s.ann.session.id),
        await mail.received(s, s.ann, delivery),
        await mail.acknowledged(s, s.ann, delivery),
        await ok(s, s.ann, RespondMail(delivery_id=delivery.id, response=Response.COMPLETED)),
    ):
        steps.append((after.state, after.response))
        assert of_works() == before
    assert steps == [
        (MailState.QUEUED, Response.NONE),
        (MailState.ROUTED, Response.NONE),
        (MailState.PROVIDER_RECEIVED, Response.NONE),
        (MailState.ACKNOWLEDGED, Response.NONE),
        (MailState.ACKNOWLEDGED, Response.COMPLETED),
    ]
    mail_before = await now(s, delivery)
    await ok(s, s.ann, AcceptWork(work_id=work.id, expected_version=work.version, receipt_id=receipt))
    assert await now(s, delivery) == mail_before


@pytest.mark.parametrize("response", [Response.COMPLETED, Response.REJECTED])
async def test_a_response_changes_no_work(node: InProcessNode, response: Response) -> None:
    """Not even one about the Work that waits for acceptance, and not before it was acknowledged either."""
    s = await stage(node)
    work = await s.submitted(s.bob)
    made = await sent(s, s.bob, s.ann, work_id=work.id, request_decision=True)
    delivery = await mail.received(s, s.ann, made.deliveries[0])
    answered = await ok(s, s.ann, RespondMail(delivery_id=delivery.id, response=response))
    assert answered.state is MailState.PROVIDER_RECEIVED
    shown = await node.ok(ShowWork(work_id=work.id))
    assert (shown.work, shown.work.phase) == (work, Phase.REVIEW)
    assert shown.receipts[-1].outcome is Outcome.COMPLETED


async def test_informational_mail_makes_nothing_due(node: InProcessNode) -> None:
    """I28, what the kernel has of it: the intent is kept as said, and mail admits no Work."""
    s = await stage(node)
    intents = [(await sent(s, s.bob, s.cid, response_required=needed)).message.intent for needed in (False, True)]
    assert intents == [Intent.INFORMATIONAL, Intent.RESPONSE_REQUIRED]
    ask = ListDue(team_run_id=s.run.id, sup_gen=s.sup_gen)
    assert (await node.ok(ask, plane=Plane.SUPERVISOR, actor=s.run.id)).items == []
    reply = await sent(s, s.cid, s.bob, body="thanks")
    assert reply.message.intent is Intent.INFORMATIONAL


async def test_who_comes_back_gets_no_mail_of_its_former_membership(node: InProcessNode) -> None:
    s = await stage(node)
    old = await mail.received(s, s.cid, (await sent(s, s.bob, s.cid)).deliveries[0])
    await mail.closed(s, s.cid)
    await mail.left(s, s.cid)
    membership = await scene.joined(node, s.team, s.cid.agent)
    place = await node.ok(AddMemberRun(team_run_id=s.run.id, membership_id=membership.id))
    again = Member(s.cid.agent, membership, place, await session(node, s.run, place))
    assert (await ok(s, again, ShowInbox(all_mail=True))).items == []
    assert (await refused(s, again, AcknowledgeMail(delivery_id=old.id))).code is Code.NOT_FOUND


async def test_fifty_members_send_at_once_and_nothing_is_lost(node: InProcessNode) -> None:
    s = await stage(node)
    asks = [
        node.send(to(s.ann, body=f"{who.agent.name} {n}"), plane=Plane.MEMBER, actor=who.session)
        for n, who in itertools.product(range(25), (s.bob, s.cid))
    ]
    outcomes = [await each.outcome() for each in asks]
    assert all(isinstance(each, Sent) for each in outcomes)
    seen: list[str] = []
    while more := (await ok(s, s.ann, ReceiveMail(limit=20))).items:
        seen += [each.message.body for each in more]
    assert seen == [f"{name} {n}" for n, name in itertools.product(range(25), ("bob", "cid"))]


async def test_a_wait_for_mail_ends_with_the_commit_that_brings_it(node: InProcessNode) -> None:
    s = await stage(node)
    waits = node.send(WaitForEvent(predicate="inbox"), plane=Plane.MEMBER, actor=s.cid.session)
    await wait_all_tasks_blocked()
    await sent(s, s.bob, s.ann)
    await wait_all_tasks_blocked()
    assert waits.nothing_yet()
    await sent(s, s.bob, s.cid)
    outcome = await waits.outcome()
    assert not isinstance(outcome, Refusal)


async def test_a_refused_message_leaves_no_trace(node: InProcessNode) -> None:
    """Not in any table, whichever rule refused it."""
    s = await stage(node)
    before = rows_of(node.store.path)
    for ask in (
        SendMessage(body="hello", recipients=["nobody"]),
        SendMessage(body="hello"),
        to(s.cid, team_run_id=TeamRunId("nothing")),
    ):
        await refused(s, s.bob, ask)
    assert rows_of(node.store.path) == before
