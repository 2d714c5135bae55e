"""The port, over a private tmux server. How a launch is started is in ``launching.py``, how processes are ended in
``providers/ending.py``, how is typed in ``providers/screen.py``.
"""

from __future__ import annotations

import math
import signal
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

import attrs
import trio

from client.protocol.boundary import Crash, no_crash
from providers.ending import end_all
from providers.port import Delivered, Exit, Handle, Launch, NotStarted, Pane, Seen, Stopped, Taken, Typing, Unreachable
from providers.process import Process, boot_id, over, under
from providers.screen import last_lines, type_into
from providers.tmux import alerts, group, launching
from providers.tmux.keyboard import PaneKeyboard
from providers.tmux.listing import Row, look, look_closely
from providers.tmux.server import Places, Scope, Server, locked, no_place, open_server
from providers.together import Together

#: Seconds that a close takes at most, whatever does not answer or does not end; and those of them that are kept for
#: the server itself, once everything below it was ended.
CLOSE_SECONDS = 12.0
_FOR_THE_SERVER = 3.0
_STATUS_WITHIN = 1.0
_ASK_AGAIN = 0.02
_NOT_OPEN = Unreachable(detail="the tmux server of this provider was not opened")
_UNKNOWN = Exit(status=None, signal=None, screen="")


@attrs.frozen(kw_only=True)
class Opened:
    """The server that answers, and whether it ran before."""

    server: Process
    adopted: bool


class Tmux:
    """One private server in ``folder``. Several objects, in several processes, may share it.

    ``open`` before anything else, and again after ``died``. Nothing runs in the background, so there is nothing of
    this object to close: ``close`` ends the server itself and every terminal in it.
    """

    def __init__(
        self,
        folder: Path,
        *,
        patience: float = 5.0,
        scope: Scope | None = None,
        crash: Crash = no_crash,
    ) -> None:
        self._places = Places(folder=folder, scope=scope)
        self._crash = crash  # ends this process at a boundary of a delivery, for tests
        self._patience = patience
        self._server: Server | None = None
        self._opening = Together(lambda: open_server(self._places, self._patience))
        self._looking = Together(lambda: _look(self._server))
        self._writers: defaultdict[str, trio.Lock] = defaultdict(trio.Lock)

    async def open(self) -> Opened | Unreachable:
        """Start the server, or adopt the one that runs. Nothing to do while the one that was opened can be asked."""
        if self._server is not None and self._server.process.lives() and self._places.socket.exists():
            await trio.lowlevel.checkpoint()
            return Opened(server=self._server.process, adopted=True)
        server = await self._opening.ask()
        if isinstance(server, Unreachable):
            return server
        self._server = server
        return Opened(server=server.process, adopted=server.adopted)

    async def died(self) -> None:
        """Wait for the end of the server. At once when there is none."""
        if self._server is None:
            await trio.lowlevel.checkpoint()
        else:
            await self._server.process.ended()

    async def start(self, launch: Launch) -> Handle | NotStarted:
        if self._server is None:
            return launching.unreachable(_NOT_OPEN)
        return await launching.start(self._server, launch)

    async def observe(self) -> Seen | Unreachable:
        seen = await self._looking.ask()
        if isinstance(seen, Unreachable):
            return seen
        return Seen(
            panes={each: Pane(handle=launching.handle_of(row), ended=_ended(row, "")) for each, row in seen.items()}
        )

    async def ended(self, handle: Handle) -> Exit:
        await over(handle)
        server = self._server
        if server is None:
            return _UNKNOWN
        deadline = trio.current_time() + _STATUS_WITHIN
        while True:
            found = await look_closely(server, handle.pane)
            if found is None or (found[0].launch_id, found[0].pid) != (handle.launch_id, handle.pid):
                return _UNKNOWN
            row, screen = found[0], last_lines(found[1])
            if row.known or trio.current_time() >= deadline:
                return _ended(row, screen) or attrs.evolve(_UNKNOWN, screen=screen)
            # libutempter, in the tmux of some systems, loses SIGCHLD while its helper runs; one more is enough.
            server.process.signal(signal.SIGCHLD)
            await trio.sleep(_ASK_AGAIN)

    async def stop(self, handle: Handle) -> Stopped | Unreachable:
        server = self._server
        if server is None:
            return _NOT_OPEN
        first = Process(handle.pid, handle.start_ticks if handle.boot_id == boot_id() else -1)
        lived = server.process.lives()
        if handle.boot_id == boot_id() and (not lived or await _elsewhere(server, handle)):
            left = await launching.end_left(handle.launch_id, first)
        else:
            left = await launching.end_launch(server, handle.launch_id, first)
        if isinstance(left, Unreachable):
            return left
        own = server.group / handle.launch_id if lived and server.group is not None else None
        grouped = own is not None and own.is_dir() and await group.end(own)
        if grouped and left:  # the kernel was more thorough: look again
            left = await launching.end_launch(server, handle.launch_id, first)
            if isinstance(left, Unreachable):
                return left
        if not lived:
            return Stopped(left=left)  # it took its terminals along
        # That there is no such session is no error here: what counts is what is seen after.
        said = await server.ask("kill-session", "-t", f"={handle.launch_id}")
        seen = said if isinstance(said, Unreachable) else await self._looking.ask()
        if isinstance(seen, Unreachable):
            return seen if server.process.lives() else await self.stop(handle)  # it died meanwhile
        if handle.launch_id in seen:
            return Unreachable(detail=f"tmux still has the terminal of {handle.launch_id}")
        self._writers.pop(handle.launch_id, None)
        return Stopped(left=left, grouped=grouped)

    async def strays(self) -> tuple[int, ...] | Unreachable:
        return _NOT_OPEN if self._server is None else await launching.strays(self._server)

    async def deliver(self, handle: Handle, text: str, typing: Typing, delivery_id: str) -> Delivered | Unreachable:
        if self._server is None:
            return _NOT_OPEN
        keyboard = PaneKeyboard(server=self._server, handle=handle, delivery_id=delivery_id, crash=self._crash)
        async with self._writers[handle.launch_id]:
            said = await type_into(keyboard, text, typing)
        if isinstance(said, Unreachable) and not keyboard.server.process.lives():
            return Delivered(taken=Taken.GONE, reason="its terminal ended with the tmux server")
        return said

    async def clear(self, handle: Handle, typing: Typing, reason: str = "") -> None:
        if self._server is not None:
            await alerts.clear(PaneKeyboard(server=self._server, handle=handle), typing, reason)
        else:
            await trio.lowlevel.checkpoint()

    async def quiet(self, handle: Handle, seconds: float, resting: Typing | None = None) -> None:
        if self._server is not None:
            await alerts.quiet(PaneKeyboard(server=self._server, handle=handle), seconds, resting)
        else:
            await trio.lowlevel.checkpoint()

    async def interrupt(self, handle: Handle) -> bool | Unreachable:
        if self._server is None:
            return _NOT_OPEN
        pressed = await PaneKeyboard(server=self._server, handle=handle).press("C-c")
        return pressed if isinstance(pressed, Unreachable) else pressed is None

    async def capture(self, handle: Handle) -> str | Unreachable:
        if self._server is None:
            return _NOT_OPEN
        seen = await self._looking.ask()
        if isinstance(seen, Unreachable):
            return seen
        row = seen.get(handle.launch_id)
        return "" if row is None else await launching.screen(self._server, row.pane)

    def attach_command(self, handle: Handle, *, read_only: bool) -> list[str]:
        """Without TMUX, so that it can be called inside a tmux of one's own."""
        tmux = ["env", "-u", "TMUX", "tmux", "-u", "-S", str(self._places.socket), "attach-session"]
        return [*tmux, *(["-r"] if read_only else []), "-t", f"={handle.launch_id}"]

    async def close(self) -> Stopped | Unreachable:
        """Also ends what no terminal and no mark leads to: after the server it could not be found any more."""
        if (refused := self._places.make()) is not None:
            return refused
        until = trio.current_time() + CLOSE_SECONDS
        with trio.CancelScope(deadline=min(trio.current_time() + self._patience, until)) as scope:
            try:
                async with locked(self._places):
                    scope.deadline = math.inf  # only the wait for the lock; what follows keeps to its time by itself
                    return await _close(self._places, until)
            except OSError as error:
                return no_place(self._places, error)
        return Unreachable(detail=f"a start of the server in {self._places.folder} has not ended")


async def _look(server: Server | None) -> Mapping[str, Row] | Unreachable:
    return _NOT_OPEN if server is None else await look(server)


def _ended(row: Row, screen: str) -> Exit | None:
    return Exit(status=row.status, signal=row.signal, screen=screen) if row.dead else None


async def _elsewhere(server: Server, handle: Handle) -> bool:
    """Whether it was another server that had this terminal."""
    seen = await look(server)
    return not isinstance(seen, Unreachable) and handle.launch_id not in seen


async def _close(places: Places, until: float) -> Stopped | Unreachable:
    server = places.recorded()
    if server is None or not server.lives():
        return Stopped(left=())
    below = await end_all(lambda: under(server), until=until - _FOR_THE_SERVER)
    if isinstance(below, Unreachable):
        return below  # the server stays: after it, nothing below it could be found
    left = await end_all(lambda: {server} | under(server), until=until)
    if isinstance(left, Unreachable):
        return left
    if not server.lives():
        places.socket.unlink(missing_ok=True)
        places.record.unlink(missing_ok=True)
    return Stopped(left=tuple(sorted({*below, *left})))
