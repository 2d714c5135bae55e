"""A connection to the daemon for programs that run on trio: many requests at a time, each answered by its id.

    async with connect(path, key) as node:
        teams = await node.ask(ListTeams())

It is as strict as the daemon: a refusal that a row does not declare raises ``codec.Undeclared``. The command line has
a lighter door of its own, ``client/cli/ask.py``; both put the same bytes on the wire.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import os
import select
import socket
import struct
from collections.abc import AsyncIterator, Iterator
from typing import Any, Generic

import attrs
import trio

from client.protocol import codec
from client.protocol.digest import DIGEST
from client.protocol.frames import MAX_ANSWER, MAX_REQUEST, TOO_LARGE, Frames, frame
from client.protocol.hello import PROTOCOL, Welcome
from client.protocol.operation import Operation, R, Request, row
from client.protocol.refusals import Code, Refusal

_CHUNK = 64 * 1024
#: Seconds that a connect waits for room in the daemon's queue.
_QUEUE_SECONDS = 10

_Replies = trio.MemoryReceiveChannel[dict[str, Any]]


class Disconnected(Exception):
    """No connection, or none any more. ``refusal`` is the daemon's last word, where it said one.

    What was asked and not answered may have been done: ask again with the same key.
    """

    def __init__(self, why: str, refusal: Refusal | None = None) -> None:
        super().__init__(f"{why}: {refusal.code}, {refusal.lifted_by}" if refusal else why)
        self.refusal = refusal


@contextlib.asynccontextmanager
async def connect(
    path: str | os.PathLike[str], key: str, capability: str = "", *, supervises: str = ""
) -> AsyncIterator[Connection]:
    """Connect and say hello; as the supervisor of the run ``supervises``, where one is named. Raises ``Disconnected``
    where nobody answers or the hello is refused.
    """
    async with await _open(os.fspath(path)) as stream:
        frames = Frames(MAX_ANSWER)
        shown = {"capability": capability} if capability else {"key": key}
        if supervises:
            shown["supervises"] = supervises
        connection = Connection(stream, await _greet(stream, frames, shown))
        failure: Exception | None = None
        async with trio.open_nursery() as nursery:
            nursery.start_soon(connection.send)
            nursery.start_soon(connection.receive, frames)
            try:
                yield connection
            except Exception as error:  # noqa: BLE001 — the tasks raise only over a bug; a group would hide this
                failure = error
            nursery.cancel_scope.cancel()
        if failure is not None:
            raise failure


async def _open(path: str) -> trio.SocketStream:
    with contextlib.ExitStack() as unless_open:
        sock = unless_open.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC))
        sock.setblocking(False)  # noqa: FBT003 — the standard library's own signature
        try:
            try:
                sock.connect(path)
            except BlockingIOError:
                # The queue is full. Only a blocking connect waits for room; what trio would call connected is not.
                sock.setblocking(True)  # noqa: FBT003
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", _QUEUE_SECONDS, 0))
                await trio.to_thread.run_sync(sock.connect, path)
        except OSError as error:
            raise Disconnected(f"nobody answers at {path} ({error.strerror or error})") from error
        stream = trio.SocketStream(trio.socket.from_stdlib_socket(sock))
        unless_open.pop_all()
    return stream


async def _greet(stream: trio.SocketStream, frames: Frames, shown: dict[str, str]) -> Welcome:
    heard: list[bytes] = []
    try:
        await stream.send_all(_packed({"hello": {"protocol": PROTOCOL, "table": DIGEST, **shown}}))
        while not heard and (data := await stream.receive_some(_CHUNK)):
            heard = frames.feed(data)
    except trio.BrokenResourceError as error:
        raise Disconnected("the daemon went away") from error
    if not heard:
        raise Disconnected("the daemon hung up without a word")
    message = codec.unpackb(heard[0])
    if "refusal" in message:
        raise Disconnected("not let in", codec.structure(message["refusal"], Refusal))
    return codec.structure(message["hello"], Welcome)


def _packed(message: dict[str, Any]) -> bytes:
    return frame(codec.packb(message))


class Connection:
    """Made by ``connect``. ``welcome`` is what the daemon said of itself."""

    def __init__(self, stream: trio.SocketStream, welcome: Welcome) -> None:
        self.welcome = welcome
        self._stream = stream
        self._ids = itertools.count(1)
        self._open: dict[int, trio.MemorySendChannel[dict[str, Any]]] = {}
        self._unsent: list[bytes] = []
        self._something = trio.Event()
        self._ended = ""  # why, once it has
        self._last_word: Refusal | None = None

    async def ask(self, request: Request[R], *, key: str = "") -> R | Refusal:
        """The answer or a declared refusal. Raises ``Disconnected`` when neither can come any more.

        Cancelled, it drops a wait; a write may still be done.
        """
        return (await self.ask_at(request, key=key))[0]

    async def ask_at(self, request: Request[R], *, key: str = "") -> tuple[R | Refusal, int]:
        """The same, and what was committed when it was answered: wait for more behind it. A refusal says 0."""
        op = row(type(request))
        with self._asked(op, request, key) as replies:
            reply = await self.next(replies)
            outcome: R | Refusal = codec.outcome(op, reply)
        return outcome, reply.get("seq", 0)

    def lives(self) -> bool:
        """Whether the daemon still has its end, as the kernel says at this moment."""
        poll = select.poll()
        poll.register(self._stream.socket.fileno(), select.POLLRDHUP)
        return not poll.poll(0)

    @contextlib.contextmanager
    def watch(self, request: Request[R]) -> Iterator[Watch[R]]:
        """The answers of a stream, until the block ends. What is not taken from it waits here, without bound."""
        op = row(type(request))
        with self._asked(op, request, "") as replies:
            yield Watch(self, op, replies)

    @contextlib.contextmanager
    def _asked(self, op: Operation, request: Request[Any], key: str) -> Iterator[_Replies]:
        """Send a request; cancel it at the end of the block if its last answer has not come."""
        if self._ended:
            raise self._gone()
        number = next(self._ids)
        put, replies = trio.open_memory_channel[dict[str, Any]](math.inf)
        message = {"id": number, "op": op.name, "body": codec.to_plain(request)}
        payload = codec.packb({**message, "key": key} if key else message)
        if len(payload) > MAX_REQUEST:
            # Said here: the daemon would have to end a connection that others may use.
            refusal = Refusal(code=Code.FRAME_TOO_LARGE, about="frame", lifted_by=TOO_LARGE)
            put.send_nowait({"refusal": codec.to_plain(refusal)})
        else:
            self._open[number] = put
            self._put(frame(payload))
        try:
            yield replies
        finally:
            if self._open.pop(number, None) is not None:
                self._put(_packed({"cancel": number}))

    async def next(self, replies: _Replies) -> dict[str, Any]:
        """The next reply to one request."""
        try:
            return await replies.receive()
        except trio.EndOfChannel:
            raise self._gone() from None

    def _gone(self) -> Disconnected:
        return Disconnected(self._ended, self._last_word)

    def _put(self, whole: bytes) -> None:
        """Queue one frame: a caller that is cancelled never leaves half of it on the wire."""
        self._unsent.append(whole)
        self._something.set()

    async def send(self) -> None:
        """Send what is queued. A task of ``connect``."""
        while True:
            await self._something.wait()
            self._something = trio.Event()
            data, self._unsent = b"".join(self._unsent), []
            try:
                await self._stream.send_all(data)
            except trio.BrokenResourceError:
                return  # what the daemon still said before it went is read by the other task

    async def receive(self, frames: Frames) -> None:
        """Hand every reply to whoever asked, until the daemon says no more. A task of ``connect``."""
        ended = "the daemon hung up"
        try:
            while not frames.too_large and (data := await self._stream.receive_some(_CHUNK)):
                for payload in frames.feed(data):
                    self._take(codec.unpackb(payload))
            if frames.too_large:
                ended = f"the daemon announced {frames.too_large} bytes"
        except trio.BrokenResourceError:
            ended = "the daemon went away"
        except ValueError as error:
            ended = f"the daemon sent what cannot be read ({error})"
        self._ended = ended
        for put in self._open.values():
            put.close()
        self._open.clear()

    def _take(self, message: dict[str, Any]) -> None:
        number = message["id"]
        if number == 0:  # about the connection itself; its end follows
            self._last_word = codec.structure(message["refusal"], Refusal)
            return
        put = self._open.get(number) if message.get("more") else self._open.pop(number, None)
        if put is not None:  # else it came after the cancel
            put.send_nowait(message)


@attrs.define(eq=False)
class Watch(Generic[R]):
    """An asynchronous iterator over a stream's answers. A refusal, such as of a daemon that stops, is the last."""

    _connection: Connection
    _op: Operation
    _replies: _Replies
    _over: bool = False

    def __aiter__(self) -> Watch[R]:
        return self

    async def __anext__(self) -> R | Refusal:
        if self._over:
            raise StopAsyncIteration
        reply = await self._connection.next(self._replies)
        self._over = not reply.get("more")
        outcome: R | Refusal = codec.outcome(self._op, reply)
        return outcome
