"""A raw client: one blocking socket on which a test says exactly the bytes it wants, whole or broken."""

from __future__ import annotations

import contextlib
import itertools
import os
import select
import socket
import struct
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import msgpack

from client.protocol.frames import MAX_ANSWER, Frames, frame
from client.protocol.hello import PROTOCOL

#: Seconds before a test gives up on something that should have happened long ago.
PATIENCE = 30.0

Message = dict[str, Any]


def packed(*messages: Message) -> bytes:
    """Whole frames, one behind the other."""
    return b"".join(frame(msgpack.packb(message)) for message in messages)


def hello(key: str = "", **more: object) -> Message:
    return {"hello": {"protocol": PROTOCOL, "key": key, **more}}


def request(number: int, op: str, body: Message | None = None, key: str = "") -> Message:
    found: Message = {"id": number, "op": op, "body": body or {}}
    return {**found, "key": key} if key else found


class Client:
    """A connection. Everything waits at most ``PATIENCE`` seconds; reading past the end gives ``EOFError``."""

    def __init__(self, path: Path | None = None, *, sock: socket.socket | None = None) -> None:
        self.sock = sock or socket.socket(socket.AF_UNIX)
        self._frames = Frames(MAX_ANSWER)
        self._heard: list[Message] = []
        self._ids = itertools.count(1)
        if path is not None:
            # Blocking: where the queue is full it waits, and no longer than the send timeout.
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", int(PATIENCE), 0))
            try:
                self.sock.connect(os.fspath(path))
            except OSError:
                self.sock.close()
                raise
        self.sock.settimeout(PATIENCE)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.sock.close()

    def send(self, data: bytes) -> None:
        self.sock.sendall(data)

    def say(self, *messages: Message) -> None:
        """Send frames in one piece."""
        self.send(packed(*messages))

    def half_close(self) -> None:
        """Say no more, and go on listening."""
        self.sock.shutdown(socket.SHUT_WR)

    def hear(self) -> Message:
        """The next frame."""
        while not self._heard:
            try:
                data = self.sock.recv(1 << 16)
            except ConnectionResetError:  # it hung up over something we had sent and it had not read
                data = b""
            if not data:
                raise EOFError("the daemon hung up")
            self._heard += [_message(payload) for payload in self._frames.feed(data)]
        return self._heard.pop(0)

    def rest(self) -> list[Message]:
        """Every frame until the daemon hangs up."""
        found: list[Message] = []
        with contextlib.suppress(EOFError):
            while True:
                found.append(self.hear())
        return found

    def silent(self, seconds: float = 0) -> bool:
        """Whether nothing comes within ``seconds``."""
        return not self._heard and not select.select([self.sock], [], [], seconds)[0]

    def hello(self, key: str = "", **more: object) -> Message:
        self.say(hello(key, **more))
        return self.hear()

    def begin(self, op: str, body: Message | None = None, key: str = "") -> int:
        """Send a request; its id."""
        number = next(self._ids)
        self.say(request(number, op, body, key))
        return number

    def ask(self, op: str, body: Message | None = None, key: str = "") -> Message:
        """Send a request and take the next frame, which must be its answer."""
        number = self.begin(op, body, key)
        found = self.hear()
        assert found["id"] == number, found
        return found


def _message(payload: bytes) -> Message:
    found = msgpack.unpackb(payload)
    assert isinstance(found, dict)
    return found
