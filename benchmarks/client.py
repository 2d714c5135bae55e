"""A lean client for measuring: prepared frames over blocking or polled sockets, so that the daemon is what is timed."""

from __future__ import annotations

import select
import socket
import time
from pathlib import Path
from typing import Any

import msgpack

#: What a good answer has, and a refusal has not.
_ANSWER: bytes = msgpack.packb("answer")


def framed(message: object) -> bytes:
    payload: bytes = msgpack.packb(message)
    return len(payload).to_bytes(4, "big") + payload


class Client:
    """One connection that has said hello."""

    def __init__(self, path: str, **shown: str) -> None:
        """``shown`` is a key or a capability."""
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(path)
        self.socket.sendall(framed({"hello": {"protocol": 1, **shown}}))
        self._buffer = b""
        self._asked = 0
        welcome = self.read()
        assert "hello" in welcome, welcome

    def packed(self, op: str, body: dict[str, Any], *, keyed: bool) -> bytes:
        """The next request as it goes over the wire."""
        self._asked += 1
        key = f"{id(self)}-{self._asked}" if keyed else ""
        return framed({"id": self._asked, "op": op, "body": body, "key": key})

    def read(self) -> Any:
        return msgpack.unpackb(self.payload())

    def payload(self) -> bytes:
        while True:
            if len(self._buffer) >= 4:
                size = int.from_bytes(self._buffer[:4], "big")
                if len(self._buffer) >= 4 + size:
                    payload, self._buffer = self._buffer[4 : 4 + size], self._buffer[4 + size :]
                    return payload
            data = self.socket.recv(1 << 16)
            assert data, "the daemon went away"
            self._buffer += data

    def ask(self, op: str, body: dict[str, Any], *, keyed: bool = False) -> Any:
        self.socket.sendall(self.packed(op, body, keyed=keyed))
        reply = self.read()
        assert "answer" in reply, reply
        return reply["answer"]


def throughput(clients: list[Client], frames: list[list[bytes]]) -> float:
    """Answers a second with one request of each client on its way. What is sent was packed before: the daemon is what
    is timed, not this process.
    """
    poll = select.epoll()
    by_fd = {client.socket.fileno(): (client, frames[n][::-1]) for n, client in enumerate(clients)}
    for fd in by_fd:
        poll.register(fd, select.EPOLLIN)
    on_the_way = len(clients)
    began = time.perf_counter()
    for client, left in by_fd.values():
        client.socket.sendall(left.pop())
    while on_the_way:
        for fd, _ in poll.poll():
            client, left = by_fd[fd]
            payload = client.payload()
            assert _ANSWER in payload, msgpack.unpackb(payload)
            if left:
                client.socket.sendall(left.pop())
            else:
                on_the_way -= 1
    poll.close()
    return sum(map(len, frames)) / (time.perf_counter() - began)


def home_key(home: Path) -> str:
    return (home / "operator.key").read_text("ascii").strip()
