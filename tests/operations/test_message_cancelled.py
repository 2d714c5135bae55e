"""A question whose asker is gone: nobody waits for its answer any more, and everybody can see so."""

from __future__ import annotations

import pytest

from client.protocol.message import AnswerInteraction, MailState, Response
from client.protocol.refusals import Code
from client.protocol.session import SessionCause
from tests.support import mail
from tests.support.mail import ok, question, refused
from tests.support.node import InProcessNode
from tests.support.run import stage
from tests.support.supervised import report

ENDS = [SessionCause.CLOSED, SessionCause.LOST, SessionCause.EXITED]
WHY = "the session that asked has ended"


@pytest.mark.parametrize("cause", ENDS)
async def test_a_question_that_was_not_received_does_not_arrive(node: InProcessNode, cause: SessionCause) -> None:
    """And the member's next session is told."""
    s = await stage(node)
    asked = await question(s, s.bob)
    await report(s, s.bob.session, cause)
    delivery = await mail.now(s, asked.deliveries[0])
    assert (delivery.state, delivery.reason) == (MailState.INVALIDATED, WHY)
    assert await mail.taken(s, s.ann) == []


@pytest.mark.parametrize("cause", ENDS)
async def test_a_question_that_was_received_takes_no_answer(node: InProcessNode, cause: SessionCause) -> None:
    s = await stage(node)
    asked = await question(s, s.bob, "red", "blue")
    await mail.received(s, s.ann, asked.deliveries[0])
    await report(s, s.bob.session, cause)
    delivery = await mail.now(s, asked.deliveries[0])
    assert (delivery.response, delivery.reason) == (Response.REJECTED, WHY)
    refusal = await refused(s, s.ann, AnswerInteraction(message_id=asked.message.id, option="red"))
    assert (refusal.code, refusal.about) == (Code.ANSWER_INVALID, f"message/{asked.message.id}")
    assert WHY in refusal.lifted_by


async def test_an_answered_question_and_those_of_others_stay_as_they_are(node: InProcessNode) -> None:
    s = await stage(node)
    answered, others = await question(s, s.bob), await question(s, s.cid)
    plain = await mail.sent(s, s.bob, s.ann)
    await mail.received(s, s.ann, answered.deliveries[0])
    await ok(s, s.ann, AnswerInteraction(message_id=answered.message.id, response_text="yes"))
    before = [await mail.now(s, each.deliveries[0]) for each in (answered, others, plain)]
    await report(s, s.bob.session, SessionCause.CLOSED)
    assert [await mail.now(s, each.deliveries[0]) for each in (answered, others, plain)] == before
