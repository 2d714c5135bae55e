"""Waiting for what a terminal shows, or stops showing. tmux tells: its alerts run a hook, which wakes a waiting call.

An alert is raised once until it is cleared (`kill-session -C`), so it is cleared before each look, and a look comes
before each wait: what happens in between is told at once.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Awaitable, Callable

import trio

from providers.port import Handle, Typing
from providers.process import Process, boot_id, in_front
from providers.screen import held, rests, still
from providers.tmux.keyboard import PaneKeyboard

#: Seconds between two looks at least: a spinner shows something all the time.
_BREATH = 0.2


async def clear(keyboard: PaneKeyboard, typing: Typing, reason: str) -> None:
    """Wait until nothing would hold a text, or something of another kind than ``reason``."""

    async def free() -> bool:
        return not still(await held(keyboard, typing), reason)

    while not await _seen(keyboard, free):
        pass


async def quiet(keyboard: PaneKeyboard, seconds: float, resting: Typing | None) -> None:
    """Wait until nothing was shown for so many seconds; with ``resting``, also until it is then seen to rest."""
    first = _first(keyboard.handle)

    async def at_rest() -> bool:
        return not first.lives() or (resting is not None and await rests(keyboard, resting))

    await _silent(keyboard, seconds)
    while resting is not None and not await _seen(keyboard, at_rest):
        if not keyboard.server.process.lives():  # it shows nothing any more, and nothing would be waited for
            await first.ended()
        await _silent(keyboard, seconds)


async def _seen(keyboard: PaneKeyboard, look: Callable[[], Awaitable[bool]]) -> bool:
    """Whether a look saw what was wanted. If not, it may the next time: something was shown since, a client left, or
    what was in front has ended.
    """
    server, handle = keyboard.server, keyboard.handle
    session, channel = f"={handle.launch_id}:", f"clear-{secrets.token_hex(6)}"
    wake = f"wait-for -S {channel}"
    await server.ask(
        *("set-option", "-t", session, "activity-action", "any", ";"),
        *("set-option", "-w", "-t", session, "monitor-activity", "on", ";"),
        *("set-hook", "-t", session, "alert-activity", wake, ";"),
        *("set-hook", "-t", session, "client-detached", wake, ";"),
        *("kill-session", "-C", "-t", f"={handle.launch_id}"),
    )
    ahead = in_front(handle.pid)
    if await look():
        return True
    await trio.sleep(_BREATH)
    if in_front(handle.pid) != ahead:
        return False
    async with trio.open_nursery() as any_of_them:

        async def first(process: Process | None) -> None:
            await (server.told(channel) if process is None else process.ended())
            any_of_them.cancel_scope.cancel(reason="something may hold it no more")

        any_of_them.start_soon(first, None)
        any_of_them.start_soon(first, _first(handle))
        if ahead is not None:
            any_of_them.start_soon(first, ahead)
    return False


async def _silent(keyboard: PaneKeyboard, seconds: float) -> None:
    """Wait until nothing was shown for so many seconds. tmux counts whole ones."""
    server, handle = keyboard.server, keyboard.handle
    session, channel = f"={handle.launch_id}:", f"quiet-{secrets.token_hex(6)}"
    await server.ask(
        *("set-option", "-t", session, "silence-action", "any", ";"),
        *("set-hook", "-t", session, "alert-silence", f"wait-for -S {channel}", ";"),
        *("kill-session", "-C", "-t", f"={handle.launch_id}", ";"),
        *("set-option", "-w", "-t", session, "monitor-silence", str(max(1, math.ceil(seconds)))),
    )
    async with trio.open_nursery() as either:

        async def ended() -> None:
            await _first(handle).ended()
            either.cancel_scope.cancel(reason="it has ended")

        either.start_soon(ended)
        await server.told(channel)
        either.cancel_scope.cancel(reason="it is quiet")


def _first(handle: Handle) -> Process:
    return Process(handle.pid, handle.start_ticks if handle.boot_id == boot_id() else -1)
