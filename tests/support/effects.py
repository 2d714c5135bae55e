"""Effects at every stage of their way, made by the same requests that a supervisor makes them with."""

from __future__ import annotations

import attrs

from client.protocol.effect import (
    Certainty,
    CloseSession,
    EffectKind,
    InterruptSession,
    PrepareEffect,
    RuntimeEffect,
    SettleEffect,
    ShowEffect,
    StartedEffect,
)
from client.protocol.session import AgentSession, ShowSession
from tests.support.node import InProcessNode
from tests.support.run import Stage, stage
from tests.support.supervised import open_, supervised

#: A process that is nobody's: what is asked about it is answered from the records.
PID, TICKS, BOOT = 4242, 99, "this boot"
#: Where a launch works.
CWD = "/tmp"  # noqa: S108 — a folder


async def cold(node: InProcessNode) -> Stage:
    """Bob's session has no process yet."""
    s = await stage(node)
    return await again(s)


async def again(s: Stage) -> Stage:
    """The next session of Bob's place, which has no process yet."""
    made = await supervised(s, open_(s.bob.place, s.sup_gen, supersede=True))
    return attrs.evolve(s, bob=attrs.evolve(s.bob, session=made))


def prepare(s: Stage, *, sup_gen: int = 0, session_gen: int = 0, cwd: str = CWD) -> PrepareEffect:
    of = s.bob.session
    return PrepareEffect(
        session_id=of.id, session_gen=session_gen or of.session_gen, sup_gen=sup_gen or s.sup_gen, cwd=cwd
    )


def started(s: Stage, effect: RuntimeEffect, *, sup_gen: int = 0, pid: int = PID) -> StartedEffect:
    return StartedEffect(
        effect_id=effect.id, sup_gen=sup_gen or s.sup_gen, pane="%0", pid=pid, start_ticks=TICKS, boot_id=BOOT
    )


def settle(
    s: Stage, effect: RuntimeEffect, certainty: Certainty = Certainty.APPLIED, readback: str = "seen", sup_gen: int = 0
) -> SettleEffect:
    return SettleEffect(effect_id=effect.id, sup_gen=sup_gen or s.sup_gen, certainty=certainty, readback=readback)


async def prepared(s: Stage) -> RuntimeEffect:
    """A launch of Bob's that was prepared."""
    return await supervised(s, prepare(s))


async def begun(s: Stage) -> RuntimeEffect:
    """A launch of Bob's whose process is known."""
    return await supervised(s, started(s, await prepared(s)))


async def unread(s: Stage) -> RuntimeEffect:
    """A launch of Bob's that could not be read back."""
    return await supervised(s, settle(s, await begun(s), Certainty.UNKNOWN, "nothing answers"))


async def live(node: InProcessNode) -> Stage:
    """Bob's process was launched and proven."""
    s = await cold(node)
    await supervised(s, settle(s, await begun(s)))
    return attrs.evolve(s, bob=attrs.evolve(s.bob, session=await session_now(s)))


async def control(s: Stage, kind: EffectKind, reason: str = "") -> RuntimeEffect:
    """What the operator asks of Bob's process."""
    ask = CloseSession if kind is EffectKind.STOP else InterruptSession
    return await s.node.ok(ask(session_id=s.bob.session.id, reason=reason))


async def session_now(s: Stage, of: AgentSession | None = None) -> AgentSession:
    return (await s.node.ok(ShowSession(session_id=(of or s.bob.session).id))).session


async def now(s: Stage, effect: RuntimeEffect) -> RuntimeEffect:
    return await s.node.ok(ShowEffect(effect_id=effect.id))
