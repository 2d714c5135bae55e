"""The Unix sockets: peers in, frames in, answers out. A peer can hurt nobody but itself.

A connection is two tasks, one that reads what the intake leaves it and one that sends, and one more for each request
that waits. Reads of the database are answered as they arrive, writes after the commit that holds them. An answer that
cannot be delivered undoes nothing: the client asks again with the same key.
"""

from __future__ import annotations

import logging
import os
import select
from collections.abc import Awaitable, Callable
from typing import Any

import attrs
import trio

from client.protocol import codec
from client.protocol.codec import Ask
from client.protocol.frames import MAX_REQUEST, PREFIX, TOO_LARGE, Frames
from client.protocol.hello import Hello
from client.protocol.refusals import Code, Refusal
from daemon.call import Call
from daemon.dispatch import Dispatcher, Task
from daemon.instance import Door
from daemon.intake import CHUNK, Intake
from daemon.outbox import Outbox
from daemon.peer import Peer, PeerProcess, process_of, read_hello

log = logging.getLogger(__name__)

#: Seconds: to say hello, to finish a frame that has begun, to end after a half-close.
HELLO_SECONDS = 5
FRAME_SECONDS = 10
LINGER_SECONDS = 10
#: Requests of one connection: that wait at a time, and that are not answered yet.
MAX_WAITS = 100
MAX_UNANSWERED = 1000
#: What a launcher says after its hello at most; one that says more is cut off.
_LAUNCHER_SAYS = 4
_ENVELOPE = {"id", "op", "body", "key"}

#: Serves one launcher: its process, the launch it names, how to answer, and what else it says.
Launching = Callable[
    [PeerProcess, str, Callable[[bytes], None], trio.MemoryReceiveChannel[dict[Any, Any]]], Awaitable[None]
]


@attrs.define
class Counts:
    """What ``node.status`` says about connections."""

    connections: int = 0
    waits: int = 0


@attrs.frozen
class Server:
    """What every connection shares. ``welcome`` packs the answer to a good hello."""

    dispatcher: Dispatcher
    admit: Callable[[PeerProcess, Hello, Door], Peer | Refusal]
    welcome: Callable[[Peer], bytes]
    call: Callable[[Peer], Call]
    stopping: trio.Event
    launching: Launching
    intake: Intake
    counts: Counts = attrs.Factory(Counts)


async def serve(
    server: Server,
    door: Door,
    connections: trio.Nursery,
    *,
    task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Accept on one door until cancelled; connections live on in ``connections``."""
    listener = trio.SocketListener(trio.socket.from_stdlib_socket(door.sock))

    async def connection(stream: trio.SocketStream) -> None:
        server.counts.connections += 1
        try:
            await _converse(server, stream, door)
        except Exception:
            log.exception("a connection failed")
        finally:
            server.counts.connections -= 1

    task_status.started()
    await trio.serve_listeners(connection, [listener], handler_nursery=connections)


async def _converse(server: Server, stream: trio.SocketStream, door: Door) -> None:
    process = process_of(stream.socket)
    async with stream:
        if process is None:
            return
        try:
            if process.uid != os.geteuid():
                return  # not a word to another user
            async with trio.open_nursery() as nursery:
                outbox = Outbox(stream)
                connection = _Connection(server, stream, nursery, process, door, outbox)
                nursery.start_soon(outbox.send, nursery.cancel_scope)
                nursery.start_soon(connection.end_with_daemon)
                try:
                    await connection.receive()
                finally:
                    outbox.gone = True
                nursery.cancel_scope.cancel()
        finally:
            process.close()


class _Connection:
    def __init__(
        self,
        server: Server,
        stream: trio.SocketStream,
        nursery: trio.Nursery,
        process: PeerProcess,
        door: Door,
        outbox: Outbox,
    ) -> None:
        self._server = server
        self._stream = stream
        self._fd = stream.socket.fileno()
        self._nursery = nursery
        self._process = process
        self._door = door
        self._peer: Peer | None = None
        self._named = False  # it has said who it is
        self._frames = Frames(MAX_REQUEST)
        self._outbox = outbox
        self._in_hand = 0  # frames that have come and were not looked at yet
        self._unanswered = 0
        self._waits: dict[int, trio.CancelScope] = {}
        self._launch: trio.MemorySendChannel[dict[Any, Any]] | None = None

    async def receive(self) -> None:
        """Read until the peer ends, misbehaves, or is too slow; then let go of it in good order."""
        deadline = trio.current_time() + HELLO_SECONDS
        while not self._frames.too_large:
            try:
                data = await self._data(deadline)
            except OSError:
                return
            if not data:
                break  # the end, or too slow
            await self._outbox.room()
            whole = self._frames.feed(data)
            self._in_hand = len(whole)
            for payload in whole:
                self._in_hand -= 1
                if not self._take(payload):
                    self._in_hand = 0
                    await self._finish()
                    return
                if len(whole) > 1:
                    await self._turn()
            if self._named and (whole or deadline == float("inf")):
                deadline = trio.current_time() + FRAME_SECONDS if self._frames.partial else float("inf")
        if self._frames.too_large:
            self._refuse(0, Code.FRAME_TOO_LARGE, "frame", TOO_LARGE)
        await self._finish()

    async def _data(self, deadline: float) -> bytes:
        """What comes next and was not taken at once; nothing at the end, or when it is too late.

        Raises ``OSError`` on a broken connection.
        """
        if deadline == float("inf"):
            return await self._server.intake.more(self._fd, self._take_at_once)
        with trio.move_on_at(deadline):
            await trio.lowlevel.wait_readable(self._fd)
            return os.read(self._fd, CHUNK)
        return b""

    def _take_at_once(self, data: bytes) -> bytes | None:
        """Handle one whole frame whose answer has room. Called only between frames."""
        if self._outbox.full or int.from_bytes(data[:PREFIX], "big") != len(data) - PREFIX:
            return data
        return None if self._take(data[PREFIX:]) else b""

    def _take(self, payload: bytes) -> bool:
        """Handle one frame; False ends the conversation."""
        try:
            message = codec.unpackb(payload)
        except ValueError:
            return self._malformed("send msgpack")
        if not isinstance(message, dict):
            return self._malformed("send a map")
        if self._launch is not None:
            return _said_by_launcher(self._launch, message)
        if self._peer is None:
            return self._hello(message)
        if message.keys() == {"cancel"} and type(message["cancel"]) is int:
            # Its place is free at once; its id is not: what had begun may still be answered under it.
            if (scope := self._waits.pop(message["cancel"], None)) is not None:
                scope.cancel(reason="its peer no longer waits")
            return True
        ask_id, op, key = message.get("id"), message.get("op"), message.get("key", "")
        if type(ask_id) is not int or not 0 < ask_id < 2**63 or not isinstance(op, str) or not isinstance(key, str):
            return self._malformed("send id (a positive integer), op, body and key")
        if len(key) > 200 or not message.keys() <= _ENVELOPE:  # noqa: PLR2004 — the limit of every label
            return self._malformed("send id, op, body and a key of at most 200 characters, nothing else")
        self._ask(Ask(ask_id, op, message.get("body", {}), key), self._peer)
        return True

    def _hello(self, message: dict[Any, Any]) -> bool:
        hello = read_hello(message)
        if not isinstance(hello, Refusal) and hello.launch:
            self._named = True
            self._launch, heard = trio.open_memory_channel[dict[Any, Any]](_LAUNCHER_SAYS)
            self._unanswered += 1
            self._nursery.start_soon(self._serve_launch, hello.launch, heard)
            return True
        peer = hello if isinstance(hello, Refusal) else self._server.admit(self._process, hello, self._door)
        if isinstance(peer, Refusal):
            self._outbox.put(codec.refusal_frame(0, peer))
            return False
        self._peer, self._named = peer, True
        self._outbox.put(self._server.welcome(peer))
        return True

    async def _serve_launch(self, launch_id: str, heard: trio.MemoryReceiveChannel[dict[Any, Any]]) -> None:
        try:
            await self._server.launching(self._process, launch_id, self._outbox.put, heard)
        finally:
            self._unanswered -= 1
            self._outbox.stir()

    def _malformed(self, lifted_by: str) -> bool:
        self._refuse(0, Code.MALFORMED, "frame", lifted_by)
        return False

    def _refuse(self, ask_id: int, code: Code, about: str, lifted_by: str) -> None:
        """``ask_id`` is 0 for what is about the conversation itself."""
        self._outbox.put(codec.refusal_frame(ask_id, Refusal(code=code, about=about, lifted_by=lifted_by)))

    def _ask(self, ask: Ask, peer: Peer) -> None:
        if self._unanswered >= MAX_UNANSWERED:
            self._too_many(ask)
            return
        self._unanswered += 1
        settled = False

        def settle() -> None:
            nonlocal settled
            if not settled:
                settled = True
                self._unanswered -= 1

        def reply(payload: bytes) -> None:
            settle()
            self._outbox.put(payload)

        def spawn(task: Task) -> None:
            if len(self._waits) >= MAX_WAITS or ask.id in self._waits:
                settle()
                self._too_many(ask)
                return
            # Entered here: its cancel, its twin or the daemon's end may come before the task has begun.
            self._waits[ask.id] = scope = trio.CancelScope()
            self._server.counts.waits += 1
            self._nursery.start_soon(self._wait, ask, task, scope, settle)

        self._server.dispatcher.ask(self._server.call(peer), ask, reply, spawn, self._outbox.room)

    def _too_many(self, ask: Ask) -> None:
        lifted_by = (
            f"let some end first: {MAX_WAITS} waits and {MAX_UNANSWERED} requests at a time, each with its own id"
        )
        self._refuse(ask.id, Code.TOO_MANY_REQUESTS, ask.op[:200], lifted_by)

    async def _wait(self, ask: Ask, task: Task, scope: trio.CancelScope, settle: Callable[[], None]) -> None:
        """Run a request that waits, so that its peer or the daemon's end can cancel it."""
        try:
            with scope:
                await task()
        finally:
            self._server.counts.waits -= 1
            if self._waits.get(ask.id) is scope:
                del self._waits[ask.id]
        if not scope.cancelled_caught:
            return
        settle()
        self._outbox.stir()
        if self._server.stopping.is_set():
            lifted_by = "ask again when it has started: firm node start"
            self._refuse(ask.id, Code.NODE_DAEMON_DRAINING, "node", lifted_by)

    async def _turn(self) -> None:
        """Between two requests that came in one piece: others go first, and nobody's answers pile up."""
        self._outbox.stir()
        await trio.lowlevel.checkpoint()
        await self._outbox.room()

    async def _finish(self) -> None:
        """The peer sends no more: answer what it asked, unless it is gone altogether. A launcher's end is its exec."""
        if self._launch is not None:
            self._launch.close()
        with trio.move_on_after(0 if _hung_up(self._fd) and self._launch is None else LINGER_SECONDS):
            while not self._outbox.empty or self._in_hand or self._waits or self._unanswered:
                await self._outbox.stirred()

    async def end_with_daemon(self) -> None:
        """When the daemon stops: refuse what waits, answer what was begun, then let go."""
        await self._server.stopping.wait()
        await trio.lowlevel.checkpoint()  # after it nothing that waits is let in any more
        for scope in list(self._waits.values()):
            scope.cancel(reason="the daemon stops")
        await self._finish()
        self._nursery.cancel_scope.cancel()


def _hung_up(fd: int) -> bool:
    poll = select.poll()
    poll.register(fd, 0)
    return any(events & (select.POLLHUP | select.POLLERR) for _, events in poll.poll(0))


def _said_by_launcher(launch: trio.MemorySendChannel[dict[Any, Any]], message: dict[Any, Any]) -> bool:
    """Whether it may go on: a launcher says little, and nothing once its launch was refused."""
    try:
        launch.send_nowait(message)
    except (trio.WouldBlock, trio.BrokenResourceError):
        return False
    return True
