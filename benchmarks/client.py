"""A lean client for measuring: prepared frames over blocking or polled sockets, so that the daemon is what is timed."""

from __future__ import annotations

import select
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgpack

#: Makes the next request of one connection out of the answer to the one before.
Next = Callable[[Any], tuple[str, dict[str, Any]]]


def framed(message: object) -> bytes:
    payload: bytes = msgpack.packb(message)
    return len(payload).to_bytes(4, "big") + payload


class Client:
    """One connection that has said hello."""

    def __init__(self, path: str, key: str) -> None:
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(path)
        self.socket.sendall(framed({"hello": {"protocol": 1, "key": key}}))
        self._buffer = b""
        self._asked = 0
        self.read()

    def send(self, op: str, body: dict[str, Any], *, keyed: bool) -> None:
        self._asked += 1
        key = f"{id(self)}-{self._asked}" if keyed else ""
        self.socket.sendall(framed({"id": self._asked, "op": op, "body": body, "key": key}))

    def read(self) -> Any:
        while True:
            if len(self._buffer) >= 4:
                size = int.from_bytes(self._buffer[:4], "big")
                if len(self._buffer) >= 4 + size:
                    payload, self._buffer = self._buffer[4 : 4 + size], self._buffer[4 + size :]
                    return msgpack.unpackb(payload)
            data = self.socket.recv(1 << 16)
            assert data, "the daemon went away"
            self._buffer += data

    def ask(self, op: str, body: dict[str, Any], *, keyed: bool = False) -> Any:
        self.send(op, body, keyed=keyed)
        reply = self.read()
        assert "answer" in reply, reply
        return reply["answer"]


def throughput(clients: list[Client], following: list[Next], seeds: list[Any], count: int) -> float:
    """Answers a second with one request of each client on its way, until ``count`` are answered."""
    poll = select.epoll()
    by_fd = {client.socket.fileno(): n for n, client in enumerate(clients)}
    for fd in by_fd:
        poll.register(fd, select.EPOLLIN)
    began = time.perf_counter()
    for n, client in enumerate(clients):
        client.send(*following[n](seeds[n]), keyed=True)
    answered = 0
    on_the_way = len(clients)
    while on_the_way:
        for fd, _ in poll.poll():
            n = by_fd[fd]
            reply = clients[n].read()
            seeds[n] = reply["answer"]
            answered += 1
            if answered + on_the_way <= count:
                clients[n].send(*following[n](seeds[n]), keyed=True)
            else:
                on_the_way -= 1
    poll.close()
    return answered / (time.perf_counter() - began)


def home_key(home: Path) -> str:
    return (home / "operator.key").read_text("ascii").strip()
