"""One question over the socket, blocking: connect, hello and request in one send, read two frames."""

from __future__ import annotations

import _socket
import os
import sys

import msgpack

from client import paths

PROTOCOL = 1
#: Seconds until a daemon that takes connections and says nothing counts as one that does not answer. It greets at
#: once; behind units that start it, it may have to open and migrate its store first.
PATIENCE = 60
LARGEST_REQUEST = 256 * 1024
LARGEST_ANSWER = 64 * 1024 * 1024


class Unavailable(Exception):
    """No daemon answers. ``sent`` tells whether a request may have reached one, ``silent`` that it hangs."""

    def __init__(self, why: str, *, sent: bool = False, silent: bool = False) -> None:
        super().__init__(why)
        self.sent = sent
        self.silent = silent


class TooLarge(Exception):
    """A request that no daemon takes; its size in bytes."""


class Conversation:
    """A connection to the daemon of ``home``, or to the one that the environment names. ``welcome`` is what it said of
    itself.
    """

    def __init__(self, table: str, *, home: str = "", patience: float = PATIENCE) -> None:
        self.welcome: dict[str, object] = {}
        try:
            where, shown = paths.door(home)
        except paths.NoDaemon as none:
            raise Unavailable(f"no daemon has run in {none}") from None
        self._socket = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM | _socket.SOCK_CLOEXEC)
        # A blocking connect waits while the accept queue is full; the send timeout bounds it.
        self._timeout(_socket.SO_SNDTIMEO, patience)
        self._timeout(_socket.SO_RCVTIMEO, patience)
        try:
            self._socket.connect(where)
        except OSError as error:
            self._socket.close()
            said = ", which FIRM_SOCKET names" if not home and paths.told() else ""
            raise Unavailable(f"nobody answers at {where} ({error.strerror or error}){said}") from None
        self._buffer = b""
        self._hello = _frame({"hello": {"protocol": PROTOCOL, "table": table, **shown}})
        self._ids = 0

    def _timeout(self, option: int, seconds: float) -> None:
        whole, part = int(seconds), int(seconds % 1 * 1_000_000)
        timeval = whole.to_bytes(8, sys.byteorder) + part.to_bytes(8, sys.byteorder)
        self._socket.setsockopt(_socket.SOL_SOCKET, option, timeval)

    def peer_pid(self) -> int:
        """The daemon's pid, from the kernel."""
        raw = self._socket.getsockopt(_socket.SOL_SOCKET, _socket.SO_PEERCRED, 12)
        return int.from_bytes(raw[:4], sys.byteorder)

    def begin(self, op: str, body: dict[str, object], key: str = "") -> None:
        """Send a request; ``next`` reads its answers. Raises ``TooLarge``."""
        self._ids += 1
        request: dict[str, object] = {"id": self._ids, "op": op, "body": body}
        if key:
            request["key"] = key
        frame = _frame(request)
        if len(frame) > LARGEST_REQUEST:
            raise TooLarge(len(frame))
        try:
            self._socket.sendall(self._hello + frame)
        except OSError as error:
            raise Unavailable(f"the daemon went away ({error.strerror})", sent=True) from None

    def next(self) -> dict[str, object]:
        """The next answer. A refusal of the hello is an answer too."""
        if self._hello:
            self._hello = b""
            first = self._read()
            hello = first.get("hello")
            if not isinstance(hello, dict):
                return first
            self.welcome = hello
            self._timeout(_socket.SO_RCVTIMEO, 0)  # from here on it answers when it is done
        return self._read()

    def ask(self, op: str, body: dict[str, object], key: str = "") -> dict[str, object]:
        self.begin(op, body, key)
        return self.next()

    def outlive_exec(self) -> None:
        """The program that this process becomes holds the connection, and ends it with its own end."""
        os.set_inheritable(self._socket.fileno(), True)  # noqa: FBT003 — it has no name

    def close(self) -> None:
        self._socket.close()

    def _read(self) -> dict[str, object]:
        size = int.from_bytes(self._exactly(4), "big")
        try:
            found = msgpack.unpackb(self._exactly(size)) if size <= LARGEST_ANSWER else None
        except ValueError:
            found = None
        if not isinstance(found, dict):
            raise Unavailable("what answers there is no daemon of ours", sent=True, silent=True)
        return found

    def _exactly(self, size: int) -> bytes:
        while len(self._buffer) < size:
            try:
                data = self._socket.recv(1 << 16)
            except BlockingIOError:
                raise Unavailable("the daemon takes connections and says nothing", sent=True, silent=True) from None
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
    table: str, op: str, body: dict[str, object], key: str, *, home: str = ""
) -> tuple[dict[str, object], dict[str, object]]:
    """The answer and the welcome. An answer that was lost is asked for again, once, under the same key."""
    try:
        return _once(home, table, op, body, key)
    except Unavailable as lost:
        if lost.silent or not lost.sent:
            raise
    try:
        return _once(home, table, op, body, key)
    except Unavailable as again:
        raise Unavailable(str(again), sent=True) from None


def _once(
    home: str, table: str, op: str, body: dict[str, object], key: str
) -> tuple[dict[str, object], dict[str, object]]:
    conversation = Conversation(table, home=home)
    try:
        return conversation.ask(op, body, key), conversation.welcome
    finally:
        conversation.close()
