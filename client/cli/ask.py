"""One question over the socket, blocking: connect, hello and request in one send, read two frames."""

from __future__ import annotations

import _socket
import os
import sys

import msgpack

from client import paths

PROTOCOL = 1
_SECONDS = 10


class Unavailable(Exception):
    """No daemon answers. ``sent`` tells whether a request may have reached one."""

    def __init__(self, why: str, *, sent: bool = False) -> None:
        super().__init__(why)
        self.sent = sent


class Conversation:
    """A connection on the operator plane. ``welcome`` is what the daemon said of itself."""

    def __init__(self, home: str, table: str) -> None:
        self.home = home
        self.welcome: dict[str, object] = {}
        try:
            where = paths.node_file(home)["socket"]
        except (paths.NoDaemon, KeyError):
            raise Unavailable(f"no daemon has run in {home}") from None
        self._socket = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM | _socket.SOCK_CLOEXEC)
        # A blocking connect waits while the accept queue is full; the send timeout bounds it.
        timeval = _SECONDS.to_bytes(8, sys.byteorder) + bytes(8)
        self._socket.setsockopt(_socket.SOL_SOCKET, _socket.SO_SNDTIMEO, timeval)
        try:
            self._socket.connect(str(where))
        except OSError as error:
            raise Unavailable(f"nobody answers at {where} ({error.strerror})") from None
        self._buffer = b""
        self._hello = _frame({"hello": {"protocol": PROTOCOL, "table": table, "key": paths.operator_key(home)}})
        self._ids = 0

    def peer_pid(self) -> int:
        """The daemon's pid, from the kernel."""
        raw = self._socket.getsockopt(_socket.SOL_SOCKET, _socket.SO_PEERCRED, 12)
        return int.from_bytes(raw[:4], sys.byteorder)

    def begin(self, op: str, body: dict[str, object], key: str = "") -> None:
        """Send a request; ``next`` reads its answers."""
        self._ids += 1
        request: dict[str, object] = {"id": self._ids, "op": op, "body": body}
        if key:
            request["key"] = key
        try:
            self._socket.sendall(self._hello + _frame(request))
        except OSError as error:
            raise Unavailable(f"the daemon went away ({error.strerror})", sent=True) from None

    def next(self) -> dict[str, object]:
        """The next answer. A refusal of the hello is an answer too."""
        if self._hello:
            self._hello = b""
            first = self._read()
            if "hello" not in first:
                return first
            hello = first["hello"]
            assert isinstance(hello, dict)
            self.welcome = hello
        return self._read()

    def ask(self, op: str, body: dict[str, object], key: str = "") -> dict[str, object]:
        self.begin(op, body, key)
        return self.next()

    def close(self) -> None:
        self._socket.close()

    def _read(self) -> dict[str, object]:
        head = self._exactly(4)
        found = msgpack.unpackb(self._exactly(int.from_bytes(head, "big")))
        assert isinstance(found, dict)
        return found

    def _exactly(self, size: int) -> bytes:
        while len(self._buffer) < size:
            try:
                data = self._socket.recv(1 << 16)
            except OSError as error:
                raise Unavailable(f"the daemon went away ({error.strerror})", sent=True) from None
            if not data:
                raise Unavailable("the daemon went away before it answered", sent=True)
            self._buffer += data
        taken, self._buffer = self._buffer[:size], self._buffer[size:]
        return taken


def _frame(message: dict[str, object]) -> bytes:
    payload = msgpack.packb(message)
    return len(payload).to_bytes(4, "big") + payload


def new_key() -> str:
    """A key that makes a lost answer safe to ask again."""
    return os.urandom(12).hex()


def once(
    home: str, table: str, op: str, body: dict[str, object], key: str
) -> tuple[dict[str, object], dict[str, object]]:
    """The answer and the welcome. An answer that was lost is asked for again, once, under the same key."""
    try:
        return _once(home, table, op, body, key)
    except Unavailable as lost:
        if not lost.sent:
            raise
    try:
        return _once(home, table, op, body, key)
    except Unavailable as again:
        raise Unavailable(str(again), sent=True) from None


def _once(
    home: str, table: str, op: str, body: dict[str, object], key: str
) -> tuple[dict[str, object], dict[str, object]]:
    conversation = Conversation(home, table)
    try:
        return conversation.ask(op, body, key), conversation.welcome
    finally:
        conversation.close()
