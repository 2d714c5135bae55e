"""``effect.deliver`` and ``effect.words``: what waits for a member, before it is typed, and what comes of it."""

from __future__ import annotations

import attrs
import pytest

from client.protocol.attempt import DeliveryState, WorkDelivery
from client.protocol.board import Waking
from client.protocol.effect import (
    Certainty,
    DeliverEffect,
    EffectFinding,
    EffectKind,
    EffectState,
    ResolveEffect,
    RuntimeEffect,
    ShowWords,
    Wake,
)
from client.protocol.ids import EffectId, SessionId, UnixMs
from client.protocol.message import MailState, Sent
from client.protocol.refusals import Code, Refusal
from client.protocol.session import AgentSession, Ending, ReportSession, SessionCause, SessionState
from client.protocol.work import ClaimMode, Work
from client.protocol.work_asks import ShowWork, StartWork, UpdateWork
from daemon.operations import delivery
from store.team_run import TEAM_RUNS
from tests.support import effects, mail, refusals
from tests.support.node import InProcessNode
from tests.support.run import Stage
from tests.support.supervised import declined, declined_while_spoilt, fenced, supervised
from tests.support.works import ann, bob, held

A, N, U = Certainty.APPLIED, Certainty.NOT_APPLIED, Certainty.UNKNOWN


def deliver(s: Stage, wake: Wake = Wake.DELIVERY, *, sup_gen: int = 0, session_gen: int = 0) -> DeliverEffect:
    of = s.bob.session
    return DeliverEffect(
        session_id=of.id, session_gen=session_gen or of.session_gen, sup_gen=sup_gen or s.sup_gen, wake=wake
    )


def words(s: Stage, effect: RuntimeEffect, *, sup_gen: int = 0) -> ShowWords:
    return ShowWords(effect_id=effect.id, sup_gen=sup_gen or s.sup_gen)


async def given(node: InProcessNode) -> tuple[Stage, Work]:
    """A Work waits for Bob, whose process lives."""
    s = await effects.live(node)
    work = await s.owned(s.bob)
    await s.admit(work, s.bob)
    return s, work


async def to_bob(s: Stage, body: str = "which one?", *, asked: bool = True) -> Sent:
    return await mail.sent(s, s.ann, s.bob, body=body, response_required=asked)


async def told(
    s: Stage, certainty: Certainty = A, readback: str = "submitted", wake: Wake = Wake.DELIVERY
) -> RuntimeEffect:
    return await supervised(s, effects.settle(s, await supervised(s, deliver(s, wake)), certainty, readback))


async def way(s: Stage, work: Work) -> WorkDelivery:
    return (await s.node.ok(ShowWork(work_id=work.id))).deliveries[-1]


async def cycle_ended(s: Stage, ending: Ending | None, cause: SessionCause = SessionCause.CYCLE_ENDED) -> AgentSession:
    of = s.bob.session
    ask = ReportSession(session_id=of.id, session_gen=of.session_gen, sup_gen=s.sup_gen, cause=cause, ending=ending)
    return await supervised(s, ask)


def waking(s: Stage, of: AgentSession, *, at: int = 0) -> Waking | None:
    """What a supervisor would see of Bob, if his program took text."""
    call = s.node.call(now=UnixMs(at or of.updated_at))
    return s.node.store.look(lambda tx: delivery.waking(tx, call, TEAM_RUNS.held(tx, of.team_run_id), of))


async def test_effect_deliver_ok(node: InProcessNode) -> None:
    """The Work and the mail that wait are on their way with it, before anything is typed."""
    s, work = await given(node)
    sent = await to_bob(s)
    made = await supervised(s, deliver(s))
    assert (made.kind, made.state, made.certainty) == (EffectKind.DELIVER, EffectState.PREPARED, U)
    assert (made.wake, made.work_id, made.work_version) == (Wake.DELIVERY, work.id, work.version)
    assert (await way(s, work)).state is DeliveryState.CLAIMED
    carried = await mail.now(s, sent.deliveries[0])
    assert (carried.state, carried.session_id) == (MailState.ROUTED, s.bob.session.id)
    assert await effects.session_now(s) == s.bob.session


async def test_effect_deliver_not_found(node: InProcessNode) -> None:
    s, _ = await given(node)
    asked = attrs.evolve(deliver(s), session_id=SessionId("nothing"))
    assert await declined(s, asked) == refusals.not_found("session", "nothing")


async def test_effect_deliver_row_quarantined(node: InProcessNode) -> None:
    s, _ = await given(node)
    await declined_while_spoilt(s, deliver(s), "sessions", s.bob.session.id)


async def test_effect_deliver_supervisor_generation_fenced(node: InProcessNode) -> None:
    s, _ = await given(node)
    assert await declined(s, deliver(s, sup_gen=9)) == fenced(s, 9)


async def test_a_delivery_to_another_generation_of_a_session_is_refused(node: InProcessNode) -> None:
    s, _ = await given(node)
    assert (await declined(s, deliver(s, session_gen=99))).code is Code.AGENT_SESSION_GENERATION_FENCED


async def test_effect_deliver_effect_unsettled(node: InProcessNode) -> None:
    """One at a time, and none while it is unknown what became of the one before."""
    s, _ = await given(node)
    made = await supervised(s, deliver(s))
    refusal = await declined(s, deliver(s))
    assert (refusal.code, refusal.about) == (Code.EFFECT_UNSETTLED, f"effect/{made.id}")
    await supervised(s, effects.settle(s, made, U, "unsubmitted: nothing changed"))
    assert (await declined(s, deliver(s))).about == f"effect/{made.id}"
    assert waking(s, await effects.session_now(s)) is None


async def test_effect_deliver_invalid_state_transition(node: InProcessNode) -> None:
    """Nothing waits; or nobody can be told: its cycle is under way, or a person has stepped in."""
    s = await effects.live(node)
    for wake in Wake:
        refusal = await declined(s, deliver(s, wake))
        assert (refusal.code, refusal.about) == (Code.INVALID_STATE_TRANSITION, f"session/{s.bob.session.id}")
        assert refusal.lifted_by == "nothing waits for it by now; it is told when something does"
    await to_bob(s)
    assert (await declined(s, deliver(s, Wake.CLAIMABLE))).lifted_by.startswith("nothing waits")
    node.execute("UPDATE sessions SET typist = 'operator' WHERE id = ?", s.bob.session.id)
    said = "operator has stepped in there; it goes on when they leave"
    assert (await declined(s, deliver(s))).lifted_by == said
    node.execute("UPDATE sessions SET typist = '', process = 'unknown' WHERE id = ?", s.bob.session.id)
    assert (await declined(s, deliver(s))).lifted_by == "it has no process of ours that is known to live"
    node.execute("UPDATE sessions SET process = 'live' WHERE id = ?", s.bob.session.id)
    await told(s)
    await to_bob(s)
    said = "it is active; a member of ours is told something while it is idle"
    assert (await declined(s, deliver(s))).lifted_by == said


async def test_what_was_taken_is_received_and_begins_a_cycle(node: InProcessNode) -> None:
    s, work = await given(node)
    sent = await to_bob(s)
    await told(s)
    assert (await way(s, work)).state is DeliveryState.PROVIDER_RECEIVED
    assert (await mail.now(s, sent.deliveries[0])).state is MailState.PROVIDER_RECEIVED
    assert (await effects.session_now(s)).state is SessionState.ACTIVE
    assert (await s.shown(work)).bindings[-1].told_version == work.version


async def test_a_member_that_is_quick_is_not_told_of_its_own_start(node: InProcessNode) -> None:
    """It began before it was recorded that it had taken the text, which tells of the version before."""
    s, work = await given(node)
    text = await supervised(s, deliver(s))
    begun = await bob(s).ok(StartWork(work_id=work.id, expected_version=work.version))
    await supervised(s, effects.settle(s, text, A, "submitted"))
    assert (await s.shown(work)).bindings[-1].told_version == begun.version


async def test_what_was_held_waits_as_before_and_says_why(node: InProcessNode) -> None:
    s, work = await given(node)
    sent = await to_bob(s)
    await told(s, N, "held: draft")
    waits, letter = await way(s, work), await mail.now(s, sent.deliveries[0])
    assert (waits.state, waits.failure) == (DeliveryState.QUEUED, "held: draft")
    assert (letter.state, letter.reason) == (MailState.ROUTED, "held: draft")
    now = await effects.session_now(s)
    assert now == s.bob.session
    again = waking(s, now)
    assert again is not None
    assert (again.queued, again.asked) == (True, 1)
    await told(s)
    letter = await mail.now(s, sent.deliveries[0])
    assert (letter.state, letter.reason) == (MailState.PROVIDER_RECEIVED, "")


@pytest.mark.parametrize("applied", [True, False])
async def test_what_nobody_knows_is_decided_by_a_person(node: InProcessNode, *, applied: bool) -> None:
    """Then it was taken, or it waits as before and is typed again."""
    s, work = await given(node)
    sent = await to_bob(s)
    lost = await told(s, U, "unsubmitted: nothing changed")
    assert (await way(s, work)).failure == "unsubmitted: nothing changed"
    assert (await mail.now(s, sent.deliveries[0])).reason == "unsubmitted: nothing changed"
    finding = EffectFinding.CONFIRM_APPLIED if applied else EffectFinding.CONFIRM_NOT_APPLIED
    await node.ok(ResolveEffect(effect_id=lost.id, expected_version=lost.version, finding=finding, reason="looked"))
    assert (await way(s, work)).state is (DeliveryState.PROVIDER_RECEIVED if applied else DeliveryState.QUEUED)
    assert (await effects.session_now(s)).state is (SessionState.ACTIVE if applied else SessionState.IDLE)


@pytest.mark.parametrize(
    ("endings", "streak"),
    [
        ([Ending.EMPTY_OUTPUT], 1),
        ([Ending.EMPTY_OUTPUT, Ending.EMPTY_OUTPUT], 2),
        ([Ending.EMPTY_OUTPUT, Ending.INTERRUPTED_BY_HOST, Ending.TERMINAL_UNOBSERVED, None], 1),
        ([Ending.EMPTY_OUTPUT, Ending.COMPLETED], 0),
    ],
)
async def test_cycles_that_came_to_nothing_are_counted(
    node: InProcessNode, endings: list[Ending | None], streak: int
) -> None:
    s = await effects.live(node)
    now = s.bob.session
    for ending in endings:
        await to_bob(s)
        made = await told(s)
        now = await cycle_ended(s, ending)
        assert (await effects.now(s, made)).ending is (ending or Ending.TERMINAL_UNOBSERVED)
    assert (now.state, now.streak) == (SessionState.IDLE, streak)


@pytest.mark.parametrize(
    ("cause", "ending"),
    [(SessionCause.EXITED, Ending.PROVIDER_FAILED), (SessionCause.LOST, Ending.TRANSPORT_LOST)],
)
async def test_a_cycle_ends_with_what_is_reported_of_its_session(
    node: InProcessNode, cause: SessionCause, ending: Ending
) -> None:
    s = await effects.live(node)
    await to_bob(s)
    made = await told(s)
    await cycle_ended(s, None, cause)
    assert (await effects.now(s, made)).ending is ending


async def test_a_cycle_ends_closed_with_its_session(node: InProcessNode) -> None:
    s = await effects.live(node)
    await to_bob(s)
    made = await told(s)
    await supervised(s, effects.settle(s, await effects.control(s, EffectKind.STOP)))
    assert (await effects.now(s, made)).ending is Ending.CLOSED


async def test_a_member_that_does_something_is_not_degraded_any_more(node: InProcessNode) -> None:
    """Whatever it moves; to look at something moves nothing."""
    s, work = await given(node)
    for _ in range(3):
        await to_bob(s)
        await told(s)
        await cycle_ended(s, Ending.EMPTY_OUTPUT)
    now = await cycle_ended(s, None, SessionCause.DEGRADED)
    assert (now.streak, now.degraded_at is not None, now.state) == (3, True, SessionState.IDLE)
    await bob(s).ok(ShowWork(work_id=work.id))
    assert await effects.session_now(s) == now
    await s.start(work, s.bob)
    now = await effects.session_now(s)
    assert (now.streak, now.degraded_at) == (0, None)


def facts(s: Stage, of: AgentSession, *, at: int = 0) -> Waking:
    """The same, but for the number of the last delivery."""
    found = waking(s, of, at=at)
    assert found is not None
    return attrs.evolve(found, last=0)


async def test_waking_is_told_by_what_waits(node: InProcessNode) -> None:
    s = await effects.live(node)
    of = s.bob.session
    nothing = Waking(queued=False, asked=0, told=0, doing=False, changed=False, claimable=False, idle_ms=0)
    assert facts(s, of) == nothing
    assert facts(s, of, at=of.updated_at + 500) == attrs.evolve(nothing, idle_ms=500)
    await to_bob(s)
    await to_bob(s, asked=False)
    assert facts(s, of) == attrs.evolve(nothing, asked=1, told=1)
    await told(s)
    await cycle_ended(s, Ending.COMPLETED)
    of = await effects.session_now(s)
    work = await s.owned(s.bob)
    await s.admit(work, s.bob)
    assert facts(s, of) == attrs.evolve(nothing, queued=True)
    await told(s)
    await cycle_ended(s, Ending.COMPLETED)
    of = await effects.session_now(s)
    assert facts(s, of) == attrs.evolve(nothing, doing=True)
    started = await s.start(work, s.bob)
    assert facts(s, of) == attrs.evolve(nothing, doing=True)  # what it made itself it knows
    changed = await ann(s).ok(UpdateWork(work_id=work.id, expected_version=started.version, context="more"))
    assert facts(s, of) == attrs.evolve(nothing, doing=True, changed=True)
    made = await told(s, wake=Wake.CONTINUE)
    assert (made.work_id, made.work_version) == (work.id, changed.version)
    await cycle_ended(s, Ending.COMPLETED)
    of = await effects.session_now(s)
    assert facts(s, of) == attrs.evolve(nothing, doing=True)


@pytest.mark.parametrize("where", ["review", "blocked", "on hold", "closed"])
async def test_nobody_is_woken_for_a_work_that_is_not_theirs_to_move(node: InProcessNode, where: str) -> None:
    s, work = await given(node)
    await told(s)
    await cycle_ended(s, Ending.COMPLETED)
    work = await s.start(work, s.bob)
    if where == "review":
        await s.submit(work, s.bob)
    elif where == "on hold":
        await held(s, work)
    elif where == "blocked":
        node.execute("UPDATE works SET condition = 'blocked', version = version + 1 WHERE id = ?", work.id)
    else:
        node.execute("UPDATE works SET phase = 'closed', resolution = 'failed' WHERE id = ?", work.id)
    found = waking(s, await effects.session_now(s))
    assert found is not None
    assert (found.queued, found.doing, found.changed) == (False, False, False)


async def test_works_that_may_be_claimed_are_told_once(node: InProcessNode) -> None:
    s = await effects.live(node)
    await s.work("assigned by its Host", claim_mode=ClaimMode.HOST_ASSIGN)
    await s.work("for Cid", eligible_member_ids=[s.cid.agent.id])
    first = waking(s, s.bob.session)
    assert first is not None
    assert not first.claimable
    one = await s.work("for anybody")
    found = waking(s, s.bob.session)
    assert found is not None
    assert found.claimable
    made = await supervised(s, deliver(s, Wake.CLAIMABLE))
    text = (await supervised(s, words(s, made))).text
    assert text == f"You may claim:\n- for anybody: firm work claim {one.id} --expected-version 1"
    await supervised(s, effects.settle(s, made))
    await cycle_ended(s, Ending.COMPLETED)
    known = waking(s, await effects.session_now(s))
    assert known is not None
    assert not known.claimable
    await s.work("another")
    later = waking(s, await effects.session_now(s))
    assert later is not None
    assert later.claimable


async def test_effect_words_ok(node: InProcessNode) -> None:
    """Everything that its reader needs to answer stands in it."""
    s, work = await given(node)
    sent, question = await to_bob(s), await to_bob(s, "so you know", asked=False)
    made = await supervised(s, deliver(s))
    found = await supervised(s, words(s, made))
    assert (found.effect_id, found.held) == (made.id, "")
    evidence = "--result-summary TEXT --candidate-revision COMMIT (or --report-only)"
    assert found.text == "\n".join(
        [
            f"Work {work.id}, version {work.version}: build it",
            f"read it: firm work show --work-id {work.id}",
            f"begin it: firm work start --work-id {work.id} --expected-version {work.version}",
            f"when it is done: firm work submit --work-id {work.id} --expected-version VERSION {evidence}",
            f"when you cannot go on: firm work block --work-id {work.id} --expected-version VERSION --reason TEXT",
            "",
            f"Message {sent.message.id} from ann, which needs an answer:",
            "which one?",
            f"answer it: firm message reply {sent.message.id} --body TEXT",
            f"when you have seen it: firm message ack {sent.deliveries[0].id}",
            "",
            f"Message {question.message.id} from ann:",
            "so you know",
            f"when you have seen it: firm message ack {question.deliveries[0].id}",
        ]
    )
    node.execute("UPDATE sessions SET typist = 'operator' WHERE id = ?", s.bob.session.id)
    assert (await supervised(s, words(s, made))).held == "operator has stepped in there"


async def test_effect_words_not_found(node: InProcessNode) -> None:
    s, _ = await given(node)
    asked = ShowWords(effect_id=EffectId("nothing"), sup_gen=s.sup_gen)
    assert await declined(s, asked) == refusals.not_found("effect", "nothing")


async def test_effect_words_row_quarantined(node: InProcessNode) -> None:
    s, _ = await given(node)
    made = await supervised(s, deliver(s))
    await declined_while_spoilt(s, words(s, made), "effects", made.id)


async def test_effect_words_supervisor_generation_fenced(node: InProcessNode) -> None:
    s, _ = await given(node)
    made = await supervised(s, deliver(s))
    assert await declined(s, words(s, made, sup_gen=9)) == fenced(s, 9)


async def test_effect_words_invalid_state_transition(node: InProcessNode) -> None:
    """What is settled is typed no more, and a launch has no words."""
    s, _ = await given(node)
    made = await told(s)
    about = f"effect/{made.id}"
    said = "it is a deliver that is settled; only what is still to be typed has words"
    refusal = Refusal(code=Code.INVALID_STATE_TRANSITION, about=about, lifted_by=said)
    assert await declined(s, words(s, made)) == refusal
    stop = await effects.control(s, EffectKind.STOP)
    assert (await declined(s, words(s, stop))).code is Code.INVALID_STATE_TRANSITION
