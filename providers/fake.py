"""A provider without tmux, for tests of what stands above one: real processes on real ptys, one keeper over each.

It passes the contract suite. What it cannot do: it does not outlive its process, so nothing is ever adopted from it; it
knows no screen, only the last lines that were printed; nobody can attach, so nobody is ever typing; it is always
reachable, unless a test says otherwise through ``stalled``.
"""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import attrs
import trio

from providers.ending import end_all
from providers.keys import KEYS
from providers.port import (
    Delivered,
    Exit,
    Handle,
    Launch,
    NotStarted,
    Pane,
    Seen,
    Stopped,
    Taken,
    Typing,
    Unreachable,
    Why,
)
from providers.process import Process, boot_id, in_front, lost_below, process, shell_in_front, stat, under
from providers.screen import Screen, Step, held, last_lines, rests, still, type_into

_KEEPER = Path(__file__).with_name("fake_keeper.py")
_PASTE_ON, _PASTE_OFF = b"\x1b[?2004h", b"\x1b[?2004l"
_KEPT = 64 * 1024  # of what was printed
_BREATH = 0.02  # seconds between two looks at least
_GONE = Delivered(taken=Taken.GONE, reason="the first process of this terminal has ended")
_STALLED = Unreachable(detail="the fake was told not to answer")


@attrs.define(kw_only=True)
class _Terminal:
    """One pty, its keeper, and what was printed on it."""

    handle: Handle
    keeper: Process
    master: int
    printed: bytes = b""
    end: Exit | None = None
    over: trio.Event = attrs.field(factory=trio.Event)
    delivery: tuple[str, Step] = ("", Step.NOTHING)
    answered: str = ""
    #: Set when something is shown, or the first process has ended; then it is another.
    stirred: trio.Event = attrs.field(factory=trio.Event)
    writer: trio.Lock = attrs.field(factory=trio.Lock)

    @property
    def screen(self) -> str:
        return last_lines(self.printed.decode("utf-8", "replace"))

    def stir(self) -> None:
        self.stirred.set()
        self.stirred = trio.Event()


@attrs.frozen
class _Keys:
    terminal: _Terminal
    delivery_id: str = ""

    async def blocked(self) -> Delivered | None:
        await trio.lowlevel.checkpoint()
        if shell := shell_in_front(self.terminal.handle.pid):
            return Delivered(taken=Taken.HELD, reason=f"a shell ({shell}) is in front, and would run what is typed")
        return self._gone()

    async def paste(self, text: str) -> Delivered | None:
        self.terminal.delivery = (self.delivery_id, Step.PASTED)
        raw = text.replace("\n", "\r").encode("utf-8", "replace")
        printed = self.terminal.printed
        if printed.rfind(_PASTE_ON) > printed.rfind(_PASTE_OFF):  # the program asked for marks around a paste
            raw = b"\x1b[200~" + raw + b"\x1b[201~"
        return await self.write(raw)

    async def steps(self, keys: Sequence[str], step: Step) -> Delivered | None:
        self.terminal.delivery = (self.delivery_id, step)
        return await self.press(*keys)

    async def press(self, *keys: str) -> Delivered | None:
        return await self.write(b"".join(KEYS[key] for key in keys))

    async def answer(self, mark: str, *keys: str) -> Delivered | None:
        self.terminal.answered = mark
        return await self.press(*keys)

    async def answered(self) -> str:
        await trio.lowlevel.checkpoint()
        return self.terminal.answered

    async def step(self) -> Step | Delivered:
        await trio.lowlevel.checkpoint()
        delivery_id, step = self.terminal.delivery
        return self._gone() or (step if delivery_id == self.delivery_id else Step.NOTHING)

    async def submitted(self) -> Delivered | None:
        await trio.lowlevel.checkpoint()
        self.terminal.delivery = (self.delivery_id, Step.SUBMITTED)
        return None

    async def screen(self) -> Screen | Delivered:
        """The cursor stands where was printed last."""
        shown = await self.look()
        return Screen(shown, len(shown) - 1) if isinstance(shown, list) else shown

    async def look(self) -> list[str] | Delivered:
        await trio.lowlevel.checkpoint()
        return self._gone() or self.terminal.printed.decode("utf-8", "replace").split("\n")

    async def write(self, raw: bytes) -> Delivered | None:
        while raw:
            if (gone := self._gone()) is not None:
                return gone
            try:
                await trio.lowlevel.wait_writable(self.terminal.master)
                raw = raw[os.write(self.terminal.master, raw) :]
            except (OSError, trio.ClosedResourceError):
                return _GONE
        return None

    def _gone(self) -> Delivered | None:
        if Process(self.terminal.handle.pid, self.terminal.handle.start_ticks).lives():
            return None
        return _GONE


class Fake:
    def __init__(self, nursery: trio.Nursery) -> None:
        self._nursery = nursery
        self._terminals: dict[str, _Terminal] = {}
        self._one_start = trio.Lock()
        self.stalled = False

    async def start(self, launch: Launch) -> Handle | NotStarted:
        async with self._one_start:
            if self.stalled:
                return NotStarted(why=Why.UNREACHABLE, detail=_STALLED.detail)
            if (found := self._terminals.get(launch.launch_id)) is not None:
                return found.handle
            if not await trio.Path(launch.cwd).is_dir():
                return NotStarted(why=Why.WORKSPACE_MISSING, detail=f"there is no folder {launch.cwd!r}")
            try:
                master, slave = pty.openpty()
            except OSError as error:
                return NotStarted(why=Why.TERMINAL_LIMIT, detail=str(error))
            os.set_blocking(master, False)
            command = [sys.executable, "-I", "-S", str(_KEEPER), *launch.argv]
            try:
                keeper = await trio.lowlevel.open_process(
                    command, stdin=slave, stdout=subprocess.PIPE, stderr=slave, cwd=launch.cwd, start_new_session=True
                )
            except OSError as error:
                os.close(master)
                return NotStarted(why=Why.PROCESS_LIMIT, detail=str(error))
            finally:
                os.close(slave)
            started: Handle | NotStarted = await self._nursery.start(self._tend, launch, keeper, master)
            return started

    async def _tend(
        self,
        launch: Launch,
        keeper: trio.Process,
        master: int,
        task_status: trio.TaskStatus[Handle | NotStarted],
    ) -> None:
        """Follow a terminal until nothing is left in it. What is cancelled here, ``close`` has ended before."""
        assert keeper.stdout is not None
        terminal: _Terminal | None = None
        kept = process(keeper.pid)
        try:
            line = bytes(await keeper.stdout.receive_some())
            pid = int(line.split()[1]) if line else 0  # nothing, when the keeper itself was killed
            first = stat(pid)
            if kept is None or first is None:
                task_status.started(NotStarted(why=Why.ENDED_AT_ONCE, detail=""))
                return
            handle = Handle(
                launch_id=launch.launch_id,
                pane=f"fake-{pid}",
                pid=pid,
                start_ticks=first.start_ticks,
                boot_id=boot_id(),
            )
            terminal = _Terminal(handle=handle, keeper=kept, master=master)
            self._terminals[launch.launch_id] = terminal
            task_status.started(handle)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(_read, terminal)
                await _follow(terminal, line.partition(b"\n")[2], keeper.stdout)
                nursery.cancel_scope.cancel()
        finally:
            trio.lowlevel.notify_closing(master)
            os.close(master)
            if terminal is not None and terminal.end is None:
                terminal.end = Exit(status=None, signal=None, screen="")
                terminal.over.set()
            with trio.CancelScope(shield=True):  # ends when nothing is left below it, and that is ended before
                await keeper.wait()
                await keeper.stdout.aclose()

    async def observe(self) -> Seen | Unreachable:
        await trio.lowlevel.checkpoint()
        if self.stalled:
            return _STALLED
        return Seen(
            panes={
                each: Pane(handle=found.handle, ended=found.end and attrs.evolve(found.end, screen=""))
                for each, found in self._terminals.items()
            }
        )

    async def strays(self) -> tuple[int, ...] | Unreachable:
        keepers = [found.keeper for found in self._terminals.values()]
        firsts = {found.handle.pid for found in self._terminals.values()}
        return await trio.to_thread.run_sync(lost_below, keepers, firsts)

    async def died(self) -> None:
        await trio.sleep_forever()  # it ends with whoever asks

    async def ended(self, handle: Handle) -> Exit:
        found = self._terminals.get(handle.launch_id)
        if found is None or found.handle != handle:
            await trio.lowlevel.checkpoint()
            return Exit(status=None, signal=None, screen="")
        await found.over.wait()
        assert found.end is not None
        return attrs.evolve(found.end, screen=found.screen)

    async def stop(self, handle: Handle) -> Stopped | Unreachable:
        if self.stalled:
            return _STALLED
        found = self._terminals.get(handle.launch_id)
        if found is None or found.handle != handle:
            return Stopped(left=())
        left = await end_all(lambda: under(found.keeper))
        if isinstance(left, Unreachable):
            return left
        if not left:
            self._terminals.pop(handle.launch_id, None)  # two may end the same at once
        return Stopped(left=left)

    async def deliver(self, handle: Handle, text: str, typing: Typing, delivery_id: str) -> Delivered | Unreachable:
        found = self._terminals.get(handle.launch_id)
        if self.stalled:
            return _STALLED
        if found is None or found.handle != handle or found.end is not None:
            return _GONE
        async with found.writer:
            return await type_into(_Keys(found, delivery_id), text, typing)

    async def clear(self, handle: Handle, typing: Typing, reason: str = "") -> None:
        found = self._terminals.get(handle.launch_id)
        while found is not None and found.handle == handle:
            stirred, ahead = found.stirred, in_front(handle.pid)
            if not still(await held(_Keys(found), typing), reason):
                return
            await _changed(found, stirred, ahead)

    async def quiet(self, handle: Handle, seconds: float, resting: Typing | None = None) -> None:
        found = self._terminals.get(handle.launch_id)
        while found is not None and found.handle == handle and found.end is None:
            with trio.move_on_after(seconds) as shown:
                await found.stirred.wait()
            if not shown.cancelled_caught:
                continue
            stirred, ahead = found.stirred, in_front(handle.pid)
            if resting is None or await rests(_Keys(found), resting):
                return
            await _changed(found, stirred, ahead)

    async def interrupt(self, handle: Handle) -> bool | Unreachable:
        found = self._terminals.get(handle.launch_id)
        if self.stalled:
            return _STALLED
        if found is None or found.handle != handle or found.end is not None:
            return False
        return await _Keys(found).write(b"\x03") is None

    async def capture(self, handle: Handle) -> str | Unreachable:
        await trio.lowlevel.checkpoint()
        found = self._terminals.get(handle.launch_id)
        return _STALLED if self.stalled else found.screen if found is not None else ""

    def attach_command(self, handle: Handle, *, read_only: bool) -> list[str]:
        return ["echo", f"nobody can attach to {handle.pane}" + (", not even to look" if read_only else "")]

    async def close(self) -> Stopped | Unreachable:
        """Also when it does not answer, as a server can be ended that does not."""
        keepers = [found.keeper for found in self._terminals.values()]
        left = await end_all(lambda: under(*keepers)) if keepers else ()
        if isinstance(left, Unreachable):
            return left
        self._terminals.clear()
        return Stopped(left=left)


async def _follow(terminal: _Terminal, begun: bytes, told: trio.abc.ReceiveStream) -> None:
    """What the keeper says, until it has ended."""
    while part := await told.receive_some():
        begun += part
        while b"\n" in begun:
            line, _, begun = begun.partition(b"\n")
            code = int(line.split()[1])
            end = Exit(status=None if code < 0 else code, signal=-code if code < 0 else None, screen="")
            terminal.end = end
            await trio.lowlevel.checkpoint()  # what it printed last may still have to be read
            _drain(terminal)
            terminal.over.set()
            terminal.stir()


async def _changed(terminal: _Terminal, stirred: trio.Event, ahead: Process | None) -> None:
    """Wait until something is shown, or what was in front is not there any more."""
    if in_front(terminal.handle.pid) != ahead:
        return
    async with trio.open_nursery() as either:
        if ahead is not None:
            either.start_soon(_ended, ahead, either.cancel_scope)
        await stirred.wait()
        either.cancel_scope.cancel(reason="something was shown")
    await trio.sleep(_BREATH)


async def _ended(process: Process, scope: trio.CancelScope) -> None:
    await process.ended()
    scope.cancel(reason="what was in front has ended")


async def _read(terminal: _Terminal) -> None:
    while True:
        await trio.lowlevel.wait_readable(terminal.master)
        if not _drain(terminal):
            return


def _drain(terminal: _Terminal) -> bool:
    """Whether more can come. The kernel says EIO when nobody has the terminal open any more."""
    while True:
        try:
            part = os.read(terminal.master, _KEPT)
        except BlockingIOError:
            return True
        except OSError:
            return False
        terminal.printed = (terminal.printed + part)[-_KEPT:]
        terminal.stir()


@asynccontextmanager
async def running() -> AsyncIterator[Fake]:
    """A fake, and nothing of it afterwards."""
    async with trio.open_nursery() as nursery:
        provider = Fake(nursery)
        try:
            yield provider
        finally:
            with trio.CancelScope(shield=True):
                await provider.close()
            nursery.cancel_scope.cancel()
