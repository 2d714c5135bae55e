"""What somebody asked of a member's process: to interrupt it, to end it. Done, read back, settled."""

from __future__ import annotations

import trio

from client.protocol.boundary import Boundary
from client.protocol.effect import Certainty, EffectKind, EffectState, RuntimeEffect, ShowEffect
from client.protocol.event import WaitForEvent
from providers.port import Handle, Unreachable
from supervisor.decide import Control
from supervisor.desk import HANDSHAKE_SECONDS, Desk, lasting
from supervisor.means import end, handle_of
from supervisor.telling import concluded, tell


async def control(desk: Desk, action: Control) -> None:
    """Do what somebody asked for and settle it with what was read."""
    effect, launch = action.effect, action.launch
    desk.means.crash(Boundary(f"{effect.kind.value}-prepared"))
    await desk.means.ready()
    if effect.kind is EffectKind.STOP:
        await _stop(desk, effect, launch)
        return
    if effect.kind in {EffectKind.DELIVER, EffectKind.STEER}:
        await tell(desk, action)
        return
    handle = handle_of(launch) if launch is not None else None
    if handle is None:
        await desk.settle(effect, Certainty.NOT_APPLIED, "there is no process")
    else:
        done = await desk.means.provider.interrupt(handle)
        desk.means.crash(Boundary.INTERRUPT_DONE)
        if isinstance(done, Unreachable):
            await desk.settle(effect, Certainty.UNKNOWN, done.detail)
        else:
            if done:
                desk.interrupted.add(effect.session_id)
                desk.prods.pop(effect.session_id, trio.Event()).set()
            read = "the key was sent" if done else "its process has ended"
            await desk.settle(effect, Certainty.APPLIED if done else Certainty.NOT_APPLIED, read)


async def _stop(desk: Desk, effect: RuntimeEffect, launch: RuntimeEffect | None) -> None:
    """A launch that is under way is waited for: it is refused at the door, and ends by itself."""
    if launch is not None and launch.state is not EffectState.SETTLED:
        settled = f"effect:{launch.id}.state={EffectState.SETTLED.value}"
        await lasting(desk.node, WaitForEvent(predicate=settled, timeout_ms=int(HANDSHAKE_SECONDS * 1000), limit=0))
        launch = await desk.ask(ShowEffect(effect_id=launch.id))
    handle = await _process_of(desk, launch)
    if isinstance(handle, Unreachable):
        await desk.settle(effect, Certainty.UNKNOWN, handle.detail)
        return
    if handle is None:
        await desk.means.folders.drop(effect.session_id)
        await desk.settle(effect, Certainty.APPLIED, "it has no process")
        return
    await concluded(desk, effect)
    desk.stopping.add(effect.session_id)
    stopped = await end(desk.means, handle, effect.session_id)
    desk.means.crash(Boundary.STOP_DONE)
    if isinstance(stopped, Unreachable):
        await desk.settle(effect, Certainty.UNKNOWN, stopped.detail)
    elif stopped.left:
        pids = ", ".join(str(pid) for pid in stopped.left)
        await desk.settle(effect, Certainty.NOT_APPLIED, f"still there: {pids}")
    else:
        proof = "its control group is empty, and " if stopped.grouped else ""
        await desk.settle(effect, Certainty.APPLIED, f"{proof}nothing of it is left below our server")


async def _process_of(desk: Desk, launch: RuntimeEffect | None) -> Handle | Unreachable | None:
    """What a launch started, also when nobody recorded it."""
    if launch is None:
        return None
    if (handle := handle_of(launch)) is not None:
        return handle
    seen = await desk.means.provider.observe()
    if isinstance(seen, Unreachable):
        return seen
    pane = seen.panes.get(launch.id)
    return None if pane is None else pane.handle
