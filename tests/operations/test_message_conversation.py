"""``message.reply``, ``ask`` and ``answer``, one test an outcome that the table declares."""

from __future__ import annotations

import pytest

from client.protocol.ids import CorrelationId, MessageId, TeamRef, WorkId
from client.protocol.message import (
    AnswerInteraction,
    AskInteraction,
    Intent,
    ListMessages,
    MailState,
    MessageKind,
    ReplyMessage,
    SendMessage,
    Sent,
)
from client.protocol.operation import Plane
from client.protocol.refusals import Code, Refusal
from client.protocol.team_run import CreateTeamRun
from tests.support import mail, refusals
from tests.support.mail import ok, question, refused, sent
from tests.support.node import InProcessNode
from tests.support.run import Member, Stage, stage


def reply(to: Sent, **more: object) -> ReplyMessage:
    return ReplyMessage(causation_id=to.message.id, body="indeed", **more)  # type: ignore[arg-type]


def answer(to: Sent, option: str = "", words: str = "") -> AnswerInteraction:
    return AnswerInteraction(message_id=to.message.id, option=option, response_text=words)


def nobody(s: Stage, whom: Member) -> Refusal:
    return Refusal(
        code=Code.RECIPIENT_UNKNOWN,
        about=f"recipient/{whom.membership.id}",
        lifted_by=f"see who takes part: firm team-run show {s.run.id}",
    )


async def test_message_reply_ok(node: InProcessNode) -> None:
    """It goes to the sender, on the same conversation, and needs an answer only where it says so."""
    s = await stage(node)
    work = await s.owned(s.bob)
    first = await sent(s, s.bob, s.ann, s.cid, work_id=work.id)
    second = await ok(s, s.cid, reply(first, correlation_id=first.message.correlation_id))
    assert (second.message.kind, second.message.intent) == (MessageKind.REPLY, Intent.INFORMATIONAL)
    assert second.message.sender_id == s.cid.membership.id
    assert second.message.causation_id == first.message.id
    assert second.message.correlation_id == first.message.correlation_id
    assert second.message.work_id == work.id
    assert [each.recipient_id for each in second.deliveries] == [s.bob.membership.id]
    third = await ok(s, s.bob, reply(second, response_required=True))
    assert third.message.intent is Intent.RESPONSE_REQUIRED
    assert third.message.correlation_id == first.message.correlation_id
    assert [each.recipient_id for each in third.deliveries] == [s.cid.membership.id]


async def test_message_reply_causation_invalid(node: InProcessNode) -> None:
    s = await stage(node)
    first, other = await sent(s, s.bob, s.ann), await sent(s, s.bob, s.ann)
    refusal = await refused(s, s.ann, reply(first, correlation_id=other.message.correlation_id))
    assert (refusal.code, refusal.about) == (Code.CAUSATION_INVALID, f"message/{first.message.id}")
    assert first.message.correlation_id in refusal.lifted_by


async def test_message_reply_not_found(node: InProcessNode) -> None:
    """Also a message of others, and one of another run: nobody replies where it does not take part."""
    s = await mail.with_person(await stage(node))
    private = await sent(s, s.bob, s.ann)
    unknown = ReplyMessage(causation_id=MessageId("nothing"), body="indeed")
    assert await refused(s, s.cid, unknown) == refusals.not_found("message", "nothing")
    assert await refused(s, s.cid, reply(private)) == refusals.not_found("message", private.message.id)
    other = await node.ok(CreateTeamRun(team_id=TeamRef(s.team.id)))
    there = await node.ok(SendMessage(team_run_id=other.id, body="hello", recipients=["cid"]))
    assert await refused(s, s.cid, reply(there)) == refusals.not_found("team-run", other.id)


async def test_message_reply_queue_full(node: InProcessNode) -> None:
    s = await stage(node)
    first = await sent(s, s.bob, s.ann)
    mail.filled(s, (await sent(s, s.ann, s.bob)).deliveries[0])
    refusal = await refused(s, s.ann, reply(first))
    assert (refusal.code, refusal.about) == (Code.QUEUE_FULL, f"membership/{s.bob.membership.id}")


async def test_message_reply_recipient_unknown(node: InProcessNode) -> None:
    """Its sender is gone, or about to go."""
    s = await stage(node)
    first, second = await sent(s, s.bob, s.ann), await sent(s, s.cid, s.ann)
    await mail.left(s, s.bob)
    assert await refused(s, s.ann, reply(first)) == nobody(s, s.bob)
    await s.started(s.cid)
    await mail.left(s, s.cid)
    assert await refused(s, s.ann, reply(second)) == nobody(s, s.cid)


async def test_message_reply_row_quarantined(node: InProcessNode) -> None:
    s = await stage(node)
    first = await sent(s, s.bob, s.ann)
    await mail.refused_while_spoilt(s, s.ann, reply(first), "messages", first.message.id)


async def test_message_reply_team_run_not_open(node: InProcessNode) -> None:
    s = await mail.with_person(await stage(node))
    first = await sent(s, s.bob, s.ann)
    await mail.over(s)
    refusal = await node.refused(reply(first))
    assert (refusal.code, refusal.about) == (Code.TEAM_RUN_NOT_OPEN, f"team-run/{s.run.id}")


async def test_message_ask_ok(node: InProcessNode) -> None:
    """It goes to the Host, and says what can be chosen: each option once, and none that is empty."""
    s = await stage(node)
    asked = await ok(s, s.bob, AskInteraction(body="which?", options=["red", "blue", " ", "", "red"]))
    assert asked.message.kind is MessageKind.INTERACTION_REQUEST
    assert asked.message.intent is Intent.RESPONSE_REQUIRED
    assert asked.message.options == ["red", "blue"]
    assert [each.recipient_id for each in asked.deliveries] == [s.ann.membership.id]


async def test_message_ask_not_found(node: InProcessNode) -> None:
    s = await stage(node)
    ask = AskInteraction(body="which?", work_id=WorkId("nothing"))
    assert await refused(s, s.bob, ask) == refusals.not_found("work", "nothing")


async def test_message_ask_queue_full(node: InProcessNode) -> None:
    s = await stage(node)
    mail.filled(s, (await sent(s, s.bob, s.ann)).deliveries[0])
    refusal = await refused(s, s.bob, AskInteraction(body="which?"))
    assert (refusal.code, refusal.about) == (Code.QUEUE_FULL, f"membership/{s.ann.membership.id}")


async def test_message_ask_recipient_unknown(node: InProcessNode) -> None:
    """A Host has no Host to ask."""
    s = await stage(node)
    refusal = await refused(s, s.ann, AskInteraction(body="which?"))
    assert (refusal.code, refusal.about) == (Code.RECIPIENT_UNKNOWN, "recipient/host")


async def test_message_ask_row_quarantined(node: InProcessNode) -> None:
    s = await stage(node)
    ask = AskInteraction(body="which?")
    await mail.refused_while_spoilt(s, s.bob, ask, "memberships", s.ann.membership.id)


async def test_message_ask_team_run_not_open(node: InProcessNode) -> None:
    s = await stage(node)
    await mail.over(s)
    refusal = await refused(s, s.bob, AskInteraction(body="which?"))
    assert (refusal.code, refusal.about) == (Code.TEAM_RUN_NOT_OPEN, f"team-run/{s.run.id}")


async def test_message_answer_ok(node: InProcessNode) -> None:
    s = await stage(node)
    asked = await question(s, s.bob, "red", "blue")
    given = await ok(s, s.ann, answer(asked, "blue"))
    assert (given.message.kind, given.message.body) == (MessageKind.INTERACTION_RESPONSE, "blue")
    assert given.message.causation_id == asked.message.id
    assert given.message.correlation_id == asked.message.correlation_id
    assert [each.recipient_id for each in given.deliveries] == [s.bob.membership.id]
    free = await question(s, s.bob)
    assert (await ok(s, s.ann, answer(free, words="as you like"))).message.body == "as you like"


async def test_a_person_who_is_the_host_answers(node: InProcessNode) -> None:
    s = await mail.with_person(await stage(node))
    asked = await question(s, s.bob, "red")
    assert (await node.ok(answer(asked, "red"))).message.sender_id == s.ann.membership.id


async def test_who_answers_a_message_has_seen_it(node: InProcessNode) -> None:
    """Its own delivery is acknowledged with the answer, so that no inbox asks for the answer again; no other is."""
    s = await mail.with_person(await stage(node))
    both = await sent(s, s.bob, s.cid, s.ann, response_required=True)
    await ok(s, s.cid, reply(both))
    of_cid, of_ann = [await mail.now(s, each) for each in both.deliveries]
    assert (of_cid.state, of_cid.session_id) == (MailState.ACKNOWLEDGED, s.cid.session.id)
    assert of_ann.state is MailState.QUEUED
    await node.ok(reply(both))
    assert (await mail.now(s, of_ann)).state is MailState.ACKNOWLEDGED
    asked = await question(s, s.bob, "red")
    await node.ok(answer(asked, "red"))
    assert (await mail.now(s, asked.deliveries[0])).state is MailState.ACKNOWLEDGED
    await node.ok(reply(both))  # a second word about what was seen already


@pytest.mark.parametrize(
    ("options", "option", "words"),
    [(("red",), "green", ""), (("red",), "", "red"), (("red",), "red", "why"), ((), "red", ""), ((), "", "")],
)
async def test_what_is_no_answer_leaves_the_question_open(
    node: InProcessNode, options: tuple[str, ...], option: str, words: str
) -> None:
    s = await stage(node)
    asked = await question(s, s.bob, *options)
    refusal = await refused(s, s.ann, answer(asked, option, words))
    assert (refusal.code, refusal.about) == (Code.ANSWER_INVALID, f"message/{asked.message.id}")
    await ok(s, s.ann, answer(asked, "red") if options else answer(asked, words="red"))


async def test_message_answer_answer_invalid(node: InProcessNode) -> None:
    """Only a question takes an answer; other mail takes replies."""
    s = await stage(node)
    first = await sent(s, s.bob, s.ann)
    refusal = await refused(s, s.ann, answer(first, words="yes"))
    assert refusal == Refusal(
        code=Code.ANSWER_INVALID,
        about=f"message/{first.message.id}",
        lifted_by=f"it takes replies: firm message reply {first.message.id} --body TEXT",
    )


async def test_message_answer_answered_already(node: InProcessNode) -> None:
    """The first wins; the same question asked again with its key gets the first answer again."""
    s = await stage(node)
    asked = await question(s, s.bob, "red", "blue")
    given = await ok(s, s.ann, answer(asked, "red"), key="k")
    refusal = await refused(s, s.ann, answer(asked, "blue"))
    assert refusal == Refusal(
        code=Code.ANSWERED_ALREADY,
        about=f"message/{asked.message.id}",
        lifted_by=f"another answer came first: firm message show {given.message.id}",
    )
    assert not isinstance(await node.follow(refusal), Refusal)
    assert await ok(s, s.ann, answer(asked, "red"), key="k") == given


async def test_of_answers_given_at_once_one_is_kept(node: InProcessNode) -> None:
    s = await mail.with_person(await stage(node))
    asked = await question(s, s.bob, "red", "blue")
    options = ("red", "blue", "red", "blue")
    by_session = [node.send(answer(asked, each), plane=Plane.HOST, actor=s.ann.session) for each in options]
    by_person = [node.send(answer(asked, each)) for each in options]
    outcomes = [await each.outcome() for each in (*by_person, *by_session)]
    won = [each for each in outcomes if isinstance(each, Sent)]
    assert len(won) == 1
    assert {each.code for each in outcomes if isinstance(each, Refusal)} == {Code.ANSWERED_ALREADY}
    talk = CorrelationId(asked.message.correlation_id)
    kept = (await node.ok(ListMessages(team_run_id=s.run.id, correlation_id=talk))).items
    assert kept == [asked.message, won[0].message]


async def test_message_answer_not_found(node: InProcessNode) -> None:
    """Only the one who was asked answers; for others there is no such question."""
    s = await stage(node)
    asked = await question(s, s.bob, "red")
    unknown = AnswerInteraction(message_id=MessageId("nothing"), option="red")
    assert await refused(s, s.ann, unknown) == refusals.not_found("message", "nothing")
    for who in (s.bob, s.cid):
        assert await refused(s, who, answer(asked, "red")) == refusals.not_found("message", asked.message.id)


async def test_message_answer_queue_full(node: InProcessNode) -> None:
    s = await stage(node)
    asked = await question(s, s.bob, "red")
    mail.filled(s, (await sent(s, s.ann, s.bob)).deliveries[0])
    refusal = await refused(s, s.ann, answer(asked, "red"))
    assert (refusal.code, refusal.about) == (Code.QUEUE_FULL, f"membership/{s.bob.membership.id}")


async def test_message_answer_recipient_unknown(node: InProcessNode) -> None:
    """Who asked is gone; while it is only leaving it still gets the answer it waits for."""
    s = await stage(node)
    asked, late = await question(s, s.bob, "red"), await question(s, s.cid, "red")
    await s.started(s.cid)
    await mail.left(s, s.cid)
    assert [each.recipient_id for each in (await ok(s, s.ann, answer(late, "red"))).deliveries] == [s.cid.membership.id]
    await mail.left(s, s.bob)
    assert await refused(s, s.ann, answer(asked, "red")) == nobody(s, s.bob)


async def test_message_answer_row_quarantined(node: InProcessNode) -> None:
    s = await stage(node)
    asked = await question(s, s.bob, "red")
    await mail.refused_while_spoilt(s, s.ann, answer(asked, "red"), "messages", asked.message.id)


async def test_message_answer_team_run_not_open(node: InProcessNode) -> None:
    s = await mail.with_person(await stage(node))
    asked = await question(s, s.bob, "red")
    await mail.over(s)
    refusal = await node.refused(answer(asked, "red"))
    assert (refusal.code, refusal.about) == (Code.TEAM_RUN_NOT_OPEN, f"team-run/{s.run.id}")


async def test_whoever_handed_the_team_over_learns_nothing_from_a_key(node: InProcessNode) -> None:
    """I6: first who may speak, then the remembered answer."""
    s = await mail.with_person(await stage(node))
    ask = SendMessage(team_run_id=s.run.id, body="hello", recipients=["cid"])
    await node.ok(ask, key="k")
    node.execute("UPDATE agents SET profile = 'external' WHERE id = ?", s.ann.agent.id)
    assert (await node.refused(ask, key="k")).code is Code.NOT_AUTHORIZED
