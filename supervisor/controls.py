"""What somebody asked of a member's process: to interrupt it, to end it. Done, read back, settled."""

from __future__ import annotations

import trio

from client.protocol.boundary import Boundary
from client.protocol.effect import Certainty, EffectKind, EffectState, RuntimeEffect, ShowEffect
from client.protocol.session import ShowSession
from providers.port import Handle, Unreachable
from supervisor.decide import Control
from supervisor.desk import NO_TERMINAL, Desk, keep_screen
from supervisor.means import end, handle_of
from supervisor.telling import concluded, tell

#: Seconds before a stop is begun again whose launch cannot be read.
_AGAIN = 10.0


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
    """A launch that is under way here is waited for until what it started is on record. Whoever else began one is
    gone, and what is there of it bears its id. A launcher that is not told yet what to become is refused at the door.
    """
    await desk.starts.awaited(effect.session_id)
    if launch is not None and launch.state is not EffectState.SETTLED:
        shown = await desk.ask(ShowEffect(effect_id=launch.id))
        if shown is None:  # its record cannot be read now, so nobody knows what was started
            await trio.sleep(_AGAIN)
            return
        launch = shown
    handle = await _process_of(desk, launch)
    if isinstance(handle, Unreachable):
        await desk.settle(effect, Certainty.UNKNOWN, handle.detail)
        return
    if handle is None:
        await _over(desk, launch, NO_TERMINAL)
        await desk.means.folders.drop(effect.session_id)
        await desk.settle(effect, Certainty.APPLIED, _without(launch))
        return
    await concluded(desk, effect)
    desk.stopping.add(effect.session_id)
    await _seen_last(desk, effect, handle)
    stopped = await end(desk.means, handle, effect.session_id)
    desk.means.crash(Boundary.STOP_DONE)
    if isinstance(stopped, Unreachable):
        await desk.settle(effect, Certainty.UNKNOWN, stopped.detail)
    elif stopped.left:
        pids = ", ".join(str(pid) for pid in stopped.left)
        await desk.settle(effect, Certainty.NOT_APPLIED, f"still there: {pids}")
    else:
        await _over(desk, launch, "it was ended before it was proven")
        proof = "its control group is empty, and " if stopped.grouped else ""
        await desk.settle(effect, Certainty.APPLIED, f"{proof}nothing of it is left below our server")


async def _seen_last(desk: Desk, effect: RuntimeEffect, handle: Handle) -> None:
    """What a process showed when it was ended: afterwards its terminal is gone."""
    screen = await desk.means.provider.capture(handle)
    if (shown := await desk.ask(ShowSession(session_id=effect.session_id))) is not None:
        await keep_screen(desk, shown.session, screen)


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


async def _over(desk: Desk, launch: RuntimeEffect | None, readback: str) -> None:
    """Nothing of a launch is there, or can come: so nobody has to find out what became of it."""
    if launch is None or launch.state is EffectState.SETTLED:
        return
    shown = await desk.ask(ShowEffect(effect_id=launch.id))  # the door, or who waits for it, may have settled it
    if shown is not None and shown.state is not EffectState.SETTLED:
        await desk.settle(launch, Certainty.NOT_APPLIED, readback)


def _without(launch: RuntimeEffect | None) -> str:
    """What was read back of a session that has no process."""
    if launch is None:
        return "it has no process: it was never launched"
    if launch.state is EffectState.SETTLED:
        return f"it has no process: its launch came to nothing, {launch.readback}"
    return f"it has no process: {NO_TERMINAL}"
