"""Waiting for what a terminal shows, or stops showing. tmux tells: its alerts run a hook, which wakes a waiting call.

An alert is raised once until it is cleared (`kill-session -C`), so it is cleared before each look, and a look comes
before each wait: what happens in between is told at once.
"""

from __future__ import annotations

import math
import secrets

import trio

from providers.port import Handle, Typing
from providers.process import Process, boot_id, in_front
from providers.screen import held, still
from providers.tmux.keyboard import PaneKeyboard
from providers.tmux.server import Server

#: Seconds between two looks at least: a spinner shows something all the time.
_BREATH = 0.2


async def clear(keyboard: PaneKeyboard, typing: Typing, reason: str) -> None:
    """Wait until nothing would hold a text, or something of another kind than ``reason``. Output, a client that leaves
    and the end of what is in front are told.
    """
    server, handle = keyboard.server, keyboard.handle
    session, channel = f"={handle.launch_id}:", f"clear-{secrets.token_hex(6)}"
    wake = f"wait-for -S {channel}"
    while True:
        await server.ask(
            *("set-option", "-t", session, "activity-action", "any", ";"),
            *("set-option", "-w", "-t", session, "monitor-activity", "on", ";"),
            *("set-hook", "-t", session, "alert-activity", wake, ";"),
            *("set-hook", "-t", session, "client-detached", wake, ";"),
            *("kill-session", "-C", "-t", f"={handle.launch_id}"),
        )
        ahead = in_front(handle.pid)
        if not still(await held(keyboard, typing), reason):
            return
        await trio.sleep(_BREATH)
        if in_front(handle.pid) != ahead:
            continue
        async with trio.open_nursery() as any_of_them:

            async def first(process: Process | None) -> None:
                await (server.told(channel) if process is None else process.ended())
                any_of_them.cancel_scope.cancel(reason="something may hold it no more")

            any_of_them.start_soon(first, None)
            any_of_them.start_soon(first, Process(handle.pid, handle.start_ticks))
            if ahead is not None:
                any_of_them.start_soon(first, ahead)


async def quiet(server: Server, handle: Handle, seconds: float) -> None:
    """Wait until nothing was shown for so many seconds. tmux counts whole ones."""
    session, channel = f"={handle.launch_id}:", f"quiet-{secrets.token_hex(6)}"
    await server.ask(
        *("set-option", "-t", session, "silence-action", "any", ";"),
        *("set-hook", "-t", session, "alert-silence", f"wait-for -S {channel}", ";"),
        *("kill-session", "-C", "-t", f"={handle.launch_id}", ";"),
        *("set-option", "-w", "-t", session, "monitor-silence", str(max(1, math.ceil(seconds)))),
    )
    first_process = Process(handle.pid, handle.start_ticks if handle.boot_id == boot_id() else -1)
    async with trio.open_nursery() as either:

        async def ended() -> None:
            await first_process.ended()
            either.cancel_scope.cancel(reason="it has ended")

        either.start_soon(ended)
        await server.told(channel)
        either.cancel_scope.cancel(reason="it is quiet")
