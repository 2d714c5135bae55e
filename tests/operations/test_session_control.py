"""``session.close`` and ``session.interrupt``: what a Host or the operator asks of a member's process."""

from __future__ import annotations

import re

import pytest

from client.protocol.effect import Certainty, CloseSession, EffectKind, EffectState, InterruptSession
from client.protocol.event import ListEvents, WaitForEvent
from client.protocol.ids import SessionId, TeamRef
from client.protocol.refusals import Code, Refusal
from client.protocol.session import CapabilityState, Liveness
from client.protocol.team_run import Coordination, CreateTeamRun, ReopenMemberRun
from tests.support import effects, refusals
from tests.support.node import InProcessNode
from tests.support.refusals import refused_while_spoilt
from tests.support.run import Stage, stage
from tests.support.supervised import capability, declined, drained, place_now, run_now, supervised
from tests.support.works import ann, bob

Ask = type[CloseSession] | type[InterruptSession]
NOTHING = SessionId("nothing")
STOP, INTERRUPT = EffectKind.STOP, EffectKind.INTERRUPT


def of_bob(s: Stage, ask: Ask) -> CloseSession | InterruptSession:
    return ask(session_id=s.bob.session.id)


async def test_session_close_ok(node: InProcessNode) -> None:
    """The place takes nothing new from that moment; the session ends once its process is proven to have."""
    s = await effects.live(node)
    made = await ann(s).ok(CloseSession(session_id=s.bob.session.id, reason="no need"))
    assert (made.kind, made.state, made.certainty) == (STOP, EffectState.PREPARED, Certainty.UNKNOWN)
    assert (made.session_id, made.session_gen, made.sup_gen) == (
        s.bob.session.id,
        s.bob.session.session_gen,
        s.sup_gen,
    )
    assert (await place_now(node, s.bob.place)).coordination is Coordination.CLOSED
    now = await effects.session_now(s)
    assert now == s.bob.session
    assert (await capability(node, now)).state is CapabilityState.ACTIVE
    (event,) = (await node.ok(ListEvents(stream=f"effect/{made.id}"))).items
    assert event.kind == "stop prepared: no need"


async def test_a_session_that_is_being_closed_is_closed_once(node: InProcessNode) -> None:
    s = await effects.live(node)
    first = await effects.control(s, STOP)
    before = node.rows()["effects"]
    assert await effects.control(s, STOP) == first
    assert node.rows()["effects"] == before


async def test_of_a_session_that_was_stopped_it_is_known_that_its_process_has(node: InProcessNode) -> None:
    s = await effects.live(node)
    await supervised(s, effects.settle(s, await effects.control(s, STOP)))
    assert (await effects.session_now(s)).process is Liveness.STOPPED


async def test_a_place_that_was_closed_with_its_session_is_opened_again(node: InProcessNode) -> None:
    s = await effects.live(node)
    await supervised(s, effects.settle(s, await effects.control(s, STOP)))
    place = await place_now(node, s.bob.place)
    await node.ok(ReopenMemberRun(member_run_id=place.id, expected_version=place.version))
    s = await effects.again(s)
    await effects.prepared(s)


async def test_session_interrupt_ok(node: InProcessNode) -> None:
    """Nothing of the session is touched by it, also not once it was done."""
    s = await effects.live(node)
    made = await ann(s).ok(InterruptSession(session_id=s.bob.session.id))
    assert (made.kind, made.state) == (INTERRUPT, EffectState.PREPARED)
    done = await supervised(s, effects.settle(s, made, readback="the key was sent"))
    assert (done.state, done.readback) == (EffectState.SETTLED, "the key was sent")
    assert await effects.session_now(s) == s.bob.session
    assert (await place_now(node, s.bob.place)).coordination is Coordination.ACTIVE


@pytest.mark.parametrize("launched", ["prepared", "begun", "unread"])
async def test_while_a_launch_is_unknown_its_session_takes_an_interrupt_and_a_stop_only(
    node: InProcessNode, launched: str
) -> None:
    s = await effects.cold(node)
    launch = await {"prepared": effects.prepared, "begun": effects.begun, "unread": effects.unread}[launched](s)
    interrupt = await effects.control(s, INTERRUPT)
    stop = await effects.control(s, STOP)
    assert {launch.kind, interrupt.kind, stop.kind} == {EffectKind.LAUNCH, INTERRUPT, STOP}
    if launched == "unread":
        assert (await declined(s, effects.prepare(s))).code is Code.EFFECT_UNSETTLED


async def test_session_close_effect_unsettled(node: InProcessNode) -> None:
    """While it is unknown whether the former one was done, a second one would hide that."""
    s = await effects.live(node)
    lost = await supervised(s, effects.settle(s, await effects.control(s, STOP), Certainty.UNKNOWN))
    refusal = await node.refused(of_bob(s, CloseSession))
    said = f"find out what it did, then say it: firm resolve {lost.id}"
    assert refusal == Refusal(code=Code.EFFECT_UNSETTLED, about=f"effect/{lost.id}", lifted_by=said)


@pytest.mark.parametrize("certainty", [Certainty.APPLIED, Certainty.UNKNOWN])
async def test_session_interrupt_effect_unsettled(node: InProcessNode, certainty: Certainty) -> None:
    """What is waited for comes also when nobody can read back what was done; then a person has to say it."""
    s = await effects.live(node)
    made = await effects.control(s, INTERRUPT)
    refusal = await node.refused(of_bob(s, InterruptSession))
    assert (refusal.code, refusal.about) == (Code.EFFECT_UNSETTLED, f"effect/{made.id}")
    (predicate,) = re.findall("^wait for it: firm wait '(.*)'$", refusal.lifted_by)
    assert (await node.ok(WaitForEvent(predicate=predicate, timeout_ms=0))).timed_out
    await supervised(s, effects.settle(s, made, certainty))
    assert not (await node.ok(WaitForEvent(predicate=predicate, timeout_ms=0))).timed_out
    if certainty is Certainty.APPLIED:
        await effects.control(s, INTERRUPT)
    else:
        assert "firm resolve" in (await node.refused(of_bob(s, InterruptSession))).lifted_by


async def closed_or_a_persons(node: InProcessNode, ask: Ask) -> None:
    s = await effects.live(node)
    node.execute("UPDATE sessions SET driver = 'user_driven' WHERE id = ?", s.bob.session.id)
    about = f"session/{s.bob.session.id}"
    said = f"it is a person's own process; let go of it: firm session unbind {s.bob.session.id}"
    assert await node.refused(of_bob(s, ask)) == Refusal(
        code=Code.INVALID_STATE_TRANSITION, about=about, lifted_by=said
    )
    node.execute("UPDATE sessions SET driver = 'host_driven' WHERE id = ?", s.bob.session.id)
    await supervised(s, effects.settle(s, await effects.control(s, STOP)))
    assert await node.refused(of_bob(s, ask)) == Refusal(
        code=Code.INVALID_STATE_TRANSITION, about=about, lifted_by="it is closed already"
    )


async def test_session_close_invalid_state_transition(node: InProcessNode) -> None:
    await closed_or_a_persons(node, CloseSession)


async def test_session_interrupt_invalid_state_transition(node: InProcessNode) -> None:
    await closed_or_a_persons(node, InterruptSession)


async def test_session_close_not_found(node: InProcessNode) -> None:
    s = await stage(node)
    assert await ann(s).refused(CloseSession(session_id=NOTHING)) == refusals.not_found("session", NOTHING)


async def test_session_interrupt_not_found(node: InProcessNode) -> None:
    s = await stage(node)
    assert await ann(s).refused(InterruptSession(session_id=NOTHING)) == refusals.not_found("session", NOTHING)


async def test_session_close_row_quarantined(node: InProcessNode) -> None:
    s = await stage(node)
    await refused_while_spoilt(node, of_bob(s, CloseSession), "sessions", s.bob.session.id)


async def test_session_interrupt_row_quarantined(node: InProcessNode) -> None:
    s = await stage(node)
    await refused_while_spoilt(node, of_bob(s, InterruptSession), "sessions", s.bob.session.id)


async def dormant(node: InProcessNode, ask: Ask) -> None:
    """Nobody holds the run: it never began, or it is over. What is refused says what starts one."""
    s = await stage(node)
    planned = await node.ok(CreateTeamRun(team_id=TeamRef(s.team.id)))
    node.execute("UPDATE sessions SET team_run_id = ? WHERE id = ?", planned.id, s.bob.session.id)
    refusal = await node.refused(of_bob(s, ask))
    assert (refusal.code, refusal.about) == (Code.TEAM_RUN_DORMANT, f"team-run/{planned.id}")
    assert not isinstance(await node.follow(refusal), Refusal)
    node.execute("UPDATE sessions SET team_run_id = ? WHERE id = ?", s.run.id, s.bob.session.id)
    node.execute("UPDATE team_runs SET state = 'completed', ended_at = 1 WHERE id = ?", s.run.id)
    refusal = await node.refused(of_bob(s, ask))
    assert (refusal.code, refusal.about) == (Code.TEAM_RUN_DORMANT, f"team-run/{s.run.id}")


async def test_session_close_team_run_dormant(node: InProcessNode) -> None:
    await dormant(node, CloseSession)


async def test_session_interrupt_team_run_dormant(node: InProcessNode) -> None:
    await dormant(node, InterruptSession)


@pytest.mark.parametrize("ask", [CloseSession, InterruptSession])
async def test_a_draining_run_takes_controls(node: InProcessNode, ask: Ask) -> None:
    s = await effects.live(node)
    await drained(node, await run_now(node, s.run))
    assert (await ann(s).ok(of_bob(s, ask))).state is EffectState.PREPARED


@pytest.mark.parametrize("ask", [CloseSession, InterruptSession])
async def test_only_the_host_of_its_team_controls_a_session(node: InProcessNode, ask: Ask) -> None:
    s, other = await effects.live(node), await stage(node)
    for who, code in ((ann(other), Code.NOT_AUTHORIZED), (bob(s), Code.NOT_AUTHORIZED)):
        refusal = await who.refused(of_bob(s, ask))
        assert refusal.code is code


async def test_a_stop_of_a_session_that_was_superseded_changes_nothing_any_more(node: InProcessNode) -> None:
    """Neither of the one that took its place, nor of the former one, which ended before."""
    s = await effects.live(node)
    made = await effects.control(s, STOP)
    node.execute("UPDATE member_runs SET coordination = 'active' WHERE id = ?", s.bob.place.id)
    newer = await effects.again(s)
    former = await effects.session_now(s)
    await supervised(s, effects.settle(s, made))
    assert await effects.session_now(s) == former
    assert await effects.session_now(newer) == newer.bob.session
    assert (await capability(node, newer.bob.session)).state is CapabilityState.ACTIVE
