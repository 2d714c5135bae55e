"""``session.terminal`` and ``session.sweep``, one test an outcome of the table."""

from __future__ import annotations

from contextlib import aclosing
from typing import cast

import attrs
import pytest
import trio

from client.protocol.effect import Certainty, CloseSession, ShowTerminal, StepIn, SweepSessions, Swept, Terminal
from client.protocol.ids import SessionId
from client.protocol.refusals import Code, Refusal
from client.protocol.session import SessionCause
from daemon.loops import _sweep
from daemon.terminals import Terminals
from providers.fake import Fake
from providers.port import Handle, Pane, Seen, Stopped, Unreachable
from store import session as sessions
from store.effect import launch_of
from supervisor.means import Means, handle_of
from supervisor.screens import KEPT, UNREAD
from tests.support import effects, refusals
from tests.support.node import InProcessNode
from tests.support.refusals import refused_while_spoilt
from tests.support.run import Stage, stage
from tests.support.supervised import said, supervised
from tests.support.works import ann, cid


def of_bob(s: Stage) -> ShowTerminal:
    return ShowTerminal(session_id=s.bob.session.id)


def stall(node: InProcessNode) -> None:
    """What holds the terminals answers nothing from now on."""
    provider = _means_of(node).provider
    assert isinstance(provider, Fake)
    provider.stalled = True


def _means_of(node: InProcessNode) -> Means:
    found = cast("Terminals", node.dispatcher.live["session.sweep"].__self__).means  # type: ignore[attr-defined]
    assert found is not None
    return found


async def test_session_terminal_ok(node: InProcessNode) -> None:
    """Its Host and the operator see it."""
    s = await effects.cold(node)
    await effects.begun(s)
    for voice in (ann(s), None):
        shown = await (voice.ok(of_bob(s)) if voice else node.ok(of_bob(s)))
        assert (shown.session_id, shown.screen, shown.live) == (s.bob.session.id, "", True)
        assert (shown.ended, shown.ended_at, shown.no_screen) == ("", None, "")
        assert shown.argv
        assert shown.at


async def ended(
    node: InProcessNode, cause: SessionCause = SessionCause.EXITED, reason: str = "ended with status 3"
) -> Stage:
    """Bob's process is no more, and its last screen is kept."""
    s = await effects.live(node)
    await _means_of(node).screens.keep(s.bob.session, "the last words", [])
    await supervised(s, said(s.bob.session, cause, s.sup_gen, reason=reason))
    return s


async def test_once_its_process_has_ended_what_it_showed_last_is_shown_to_the_same(node: InProcessNode) -> None:
    s = await ended(node)
    for voice in (ann(s), None):
        shown = await (voice.ok(of_bob(s)) if voice else node.ok(of_bob(s)))
        assert (shown.live, shown.screen, shown.argv) == (False, "the last words", [])
        assert (shown.ended, shown.no_screen) == ("ended with status 3", "")
        assert shown.at
        assert shown.ended_at
    assert (await cid(s).refused(of_bob(s))).code is Code.NOT_AUTHORIZED
    assert (await ann(await stage(node)).refused(of_bob(s))).about == f"team/{s.team.id}", "of another team"


async def test_it_is_that_of_its_session_also_when_another_has_taken_its_place(node: InProcessNode) -> None:
    s = await ended(node)
    await effects.again(s)
    shown = await node.ok(of_bob(s))
    assert (shown.ended, shown.screen) == ("ended with status 3", "the last words")


@pytest.mark.parametrize("cause", [SessionCause.EXITED, SessionCause.LOST])
async def test_nobody_steps_in_where_there_is_no_process(node: InProcessNode, cause: SessionCause) -> None:
    s = await ended(node, cause)
    terminals = Terminals(node.store, _means_of(node))
    async with aclosing(terminals.step_in(node.call(), StepIn(session_id=s.bob.session.id))) as answers:
        refusal = await anext(answers)
    assert isinstance(refusal, Refusal)
    assert refusal.code is Code.INVALID_STATE_TRANSITION
    assert (await effects.session_now(s)).typist == ""


async def test_where_nothing_is_kept_it_says_why(node: InProcessNode) -> None:
    s = await effects.live(node)
    await supervised(s, said(s.bob.session, SessionCause.EXITED, s.sup_gen, reason="ended by signal 9"))
    shown = await node.ok(of_bob(s))
    assert (shown.ended, shown.screen, shown.at) == ("ended by signal 9", "", None)
    assert shown.no_screen == "it was blank, or could not be read or kept at its end"
    node.execute("UPDATE events SET at = at - ?", KEPT + 1000)
    assert (await node.ok(of_bob(s))).no_screen == "it was kept for seven days"


async def test_before_it_is_known_how_it_ended_nothing_is_said_of_a_blank_one(node: InProcessNode) -> None:
    s = await effects.live(node)
    await supervised(s, said(s.bob.session, SessionCause.EXITED, s.sup_gen, reason=UNREAD))
    shown = await node.ok(of_bob(s))
    assert shown.ended == UNREAD
    assert shown.no_screen.startswith("it is read together with how the process ended")


async def test_one_that_was_lost_and_ended_later_ended_then(node: InProcessNode) -> None:
    s = await ended(node, SessionCause.LOST, "lost: its terminal is gone, its process is not")
    stop = await node.ok(CloseSession(session_id=s.bob.session.id))
    await supervised(s, effects.settle(s, stop))
    shown = await node.ok(of_bob(s))
    assert (shown.live, shown.ended) == (False, "stopped")


async def test_what_was_said_in_a_run_that_was_purged_is_not_shown_and_does_not_stay(node: InProcessNode) -> None:
    s = await ended(node)
    of, nobody = s.bob.session.id, SessionId("nobody")
    screens = _means_of(node).screens
    await _sweep(screens, node.store)
    assert [each.stem for each in screens.base.iterdir()] == [of]
    assert node.store.look(lambda tx: sessions.unpurged(tx, {of, nobody})) == {of}
    node.execute("UPDATE team_runs SET purged_at = 1")
    shown = await node.ok(of_bob(s))
    assert (shown.screen, shown.at, shown.no_screen) == ("", None, "what was said in its run was purged")
    await _sweep(screens, node.store)
    assert [*screens.base.iterdir()] == []


async def test_a_launch_that_came_to_nothing_shows_what_its_launcher_said(node: InProcessNode) -> None:
    s = await effects.cold(node)
    effect = await effects.begun(s)
    await _means_of(node).screens.keep(s.bob.session, "I do not know you", [])
    await supervised(s, effects.settle(s, effect, Certainty.NOT_APPLIED, "it did not become its program"))
    shown = await node.ok(of_bob(s))
    assert (shown.live, shown.ended, shown.screen) == (False, "it did not become its program", "I do not know you")


async def test_one_that_was_lost_is_live_where_its_terminal_still_stands(node: InProcessNode) -> None:
    s = await ended(node, SessionCause.LOST, "lost: its terminal is gone, its process is not")
    shown = await node.ok(of_bob(s))
    assert (shown.live, shown.ended) == (False, "lost: its terminal is gone, its process is not")
    handle = handle_of(node.store.look(lambda tx: launch_of(tx, s.bob.session.id)))
    assert handle is not None
    means = _means_of(node)
    async with trio.open_nursery() as nobody:
        standing = Terminals(node.store, attrs.evolve(means, provider=_Standing(nobody, handle)))
        found = await standing.show(node.call(), of_bob(s))
        assert isinstance(found, Terminal)
        assert (found.live, found.screen) == (True, "it stands")
    stall(node)
    assert (await node.refused(of_bob(s))).code is Code.PROVIDER_UNREACHABLE


async def test_a_member_does_not_look_at_the_terminal_of_another(node: InProcessNode) -> None:
    s = await effects.cold(node)
    await effects.begun(s)
    assert (await cid(s).refused(of_bob(s))).code is Code.NOT_AUTHORIZED


async def test_session_terminal_not_found(node: InProcessNode) -> None:
    refusal = await node.refused(ShowTerminal(session_id=SessionId("nothing")))
    assert refusal == refusals.not_found("session", "nothing")


async def test_session_terminal_row_quarantined(node: InProcessNode) -> None:
    s = await effects.cold(node)
    await effects.begun(s)
    await refused_while_spoilt(node, of_bob(s), "sessions", s.bob.session.id)


async def test_session_terminal_invalid_state_transition(node: InProcessNode) -> None:
    """A person's own process has no terminal of ours, and one that was not started has none yet."""
    s = await effects.cold(node)
    refusal = await node.refused(of_bob(s))
    assert (refusal.code, refusal.about) == (Code.INVALID_STATE_TRANSITION, f"session/{s.bob.session.id}")
    await effects.prepared(s)
    assert (await node.refused(of_bob(s))).code is Code.INVALID_STATE_TRANSITION


async def test_session_terminal_provider_unreachable(node: InProcessNode) -> None:
    s = await effects.cold(node)
    await effects.begun(s)
    stall(node)
    assert (await node.refused(of_bob(s))).code is Code.PROVIDER_UNREACHABLE


async def test_session_sweep_ok(node: InProcessNode) -> None:
    assert await node.ok(SweepSessions()) == Swept(left=[], strays=[])


async def test_while_a_session_of_any_run_needs_the_terminals_they_stay_and_what_is_lost_is_named(
    node: InProcessNode,
) -> None:
    await stage(node)
    means = _means_of(node)
    async with trio.open_nursery() as nobody:
        lost = attrs.evolve(means, provider=_Silent(nobody, lost=(7,)))
        assert await Terminals(node.store, lost).sweep(node.call(), SweepSessions()) == Swept(left=[], strays=[7])


async def test_session_sweep_provider_unreachable(node: InProcessNode) -> None:
    means = _means_of(node)
    async with trio.open_nursery() as nobody:
        gone = attrs.evolve(means, provider=_Silent(nobody))
        refusal = await Terminals(node.store, gone).sweep(node.call(), SweepSessions())
    assert isinstance(refusal, Refusal)
    assert refusal.code is Code.PROVIDER_UNREACHABLE


class _Silent(Fake):
    """A fake whose processes nobody can look for, but for those that are ``lost``."""

    def __init__(self, nursery: trio.Nursery, *, lost: tuple[int, ...] = ()) -> None:
        super().__init__(nursery)
        self._lost = lost

    async def strays(self) -> tuple[int, ...] | Unreachable:
        await trio.lowlevel.checkpoint()
        return self._lost

    async def close(self) -> Stopped | Unreachable:
        await trio.lowlevel.checkpoint()
        return Unreachable(detail="it does not answer")


class _Standing(Fake):
    """A fake with one terminal, of which it knows only that it stands."""

    def __init__(self, nursery: trio.Nursery, handle: Handle) -> None:
        super().__init__(nursery)
        self._handle = handle

    async def observe(self) -> Seen | Unreachable:
        await trio.lowlevel.checkpoint()
        return Seen(panes={self._handle.launch_id: Pane(handle=self._handle, ended=None)})

    async def capture(self, handle: Handle) -> str | Unreachable:
        await trio.lowlevel.checkpoint()
        assert handle == self._handle
        return "it stands"
