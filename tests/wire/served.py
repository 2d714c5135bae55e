"""The daemon's side of a connection in this process, on real sockets: for what a mock clock has to see.

Its peers are the ends of socket pairs, so nothing is ever on its way when the clock jumps.
"""

from __future__ import annotations

import contextlib
import socket
from collections.abc import AsyncIterator
from pathlib import Path

import attrs
import msgpack
import trio

from client.protocol.frames import MAX_ANSWER, Frames
from client.protocol.operation import Plane
from daemon import main
from daemon.config import Config
from daemon.instance import Door
from daemon.launches import Launches
from daemon.peer import Peer
from daemon.socket import Server, _converse
from store.database import QUICK, Run
from supervisor.folders import Folders
from tests.support.node import InProcessNode, in_process, inline
from tests.support.wire import Message, hello, packed, request


@attrs.define(eq=False)
class Line:
    """A client's end."""

    stream: trio.SocketStream
    _frames: Frames = attrs.Factory(lambda: Frames(MAX_ANSWER))
    _heard: list[bytes] = attrs.Factory(list)

    async def say(self, *messages: Message) -> None:
        await self.stream.send_all(packed(*messages))

    async def hear(self) -> Message | None:
        """The next frame; None once the other side has hung up."""
        while not self._heard:
            try:
                data = await self.stream.receive_some()
            except trio.BrokenResourceError:
                return None
            if not data:
                return None
            self._heard += self._frames.feed(data)
        found = msgpack.unpackb(self._heard.pop(0))
        assert isinstance(found, dict)
        return found

    async def greet(self) -> None:
        await self.say(hello("any"))
        assert (await self.hear() or {}).keys() == {"hello"}

    async def alive(self) -> bool:
        """Whether it still gets answers."""
        await self.say(request(9_999, "team.list"))
        answer = await self.hear()
        return answer is not None and "answer" in answer


@attrs.frozen
class Served:
    """A node that takes connections. ``ended`` counts those it has let go of."""

    node: InProcessNode
    server: Server
    connections: trio.Nursery
    _lines: list[Line] = attrs.Factory(list)

    def dial(self, *, greedy: bool = True) -> Line:
        """A new connection. One that is not ``greedy`` has room for hardly any unread answers."""
        ours, theirs = socket.socketpair()
        if not greedy:
            theirs.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        door = Door(theirs, Path("node.sock"), None, member=False)
        stream = trio.SocketStream(trio.socket.from_stdlib_socket(theirs))
        self.connections.start_soon(_converse, self.server, stream, door)
        self._lines.append(Line(trio.SocketStream(trio.socket.from_stdlib_socket(ours))))
        return self._lines[-1]

    async def line(self, *, greedy: bool = True) -> Line:
        """A new connection that has said hello."""
        line = self.dial(greedy=greedy)
        await line.greet()
        return line


@contextlib.asynccontextmanager
async def served(home: Path, *, run: Run = inline, quick: float = QUICK) -> AsyncIterator[Served]:
    """A node whose every peer is the operator: who may be that is tested with real processes."""
    async with (
        in_process(home, run=run, quick=quick) as node,
        trio.open_nursery() as services,
        trio.open_nursery() as connections,
    ):
        config = Config(home=home, crash_at="", ready_fd=None, environment={})
        launches = Launches(store=node.store, relay=node.relay, call=node.call, environment={}, folder=Folders(home).of)
        real = main._server(config, "", node.live, node.dispatcher, lambda peer: node.call(peer.plane), launches)
        server = attrs.evolve(real, admit=lambda process, _, __: Peer(Plane.OPERATOR, "operator", process.pid))
        await services.start(server.intake.serve)
        running = Served(node, server, connections)
        yield running
        connections.cancel_scope.cancel(reason="the test is over")
        for line in running._lines:
            line.stream.socket.close()
        services.cancel_scope.cancel(reason="the test is over")
