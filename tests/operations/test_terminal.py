"""``session.terminal`` and ``session.sweep``, one test an outcome of the table."""

from __future__ import annotations

from typing import cast

import attrs
import trio

from client.protocol.effect import ShowTerminal, SweepSessions, Swept
from client.protocol.ids import SessionId
from client.protocol.refusals import Code, Refusal
from daemon.terminals import Terminals
from providers.fake import Fake
from providers.port import Stopped, Unreachable
from supervisor.means import Means
from tests.support import effects, refusals
from tests.support.node import InProcessNode
from tests.support.refusals import refused_while_spoilt
from tests.support.run import Stage, stage
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
        assert (shown.session_id, shown.screen) == (s.bob.session.id, "")
        assert shown.argv


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
