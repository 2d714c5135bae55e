"""What one peer is still to be sent: at once where it takes it, else in order, and never without bound."""

from __future__ import annotations

import os

import trio

from client.protocol.frames import frame

#: Seconds in which a peer has to take an answer.
SEND_SECONDS = 10
#: Bytes of answers a peer may leave unread before no more of its requests are read.
MAX_UNSENT = 1024 * 1024


class Outbox:
    """What one peer is still to be sent."""

    def __init__(self, stream: trio.SocketStream) -> None:
        self._stream = stream
        self._fd = stream.socket.fileno()
        self._unsent: list[bytes] = []
        self._unsent_bytes = 0
        self._something = trio.Event()
        self._sending = False
        self._moved: trio.Event | None = None  # made by who waits for it: most answers are sent while nobody does
        #: The stream is closed, and its descriptor may be another's: answers that come now have nobody to go to.
        self.gone = False

    @property
    def empty(self) -> bool:
        return not self._unsent and not self._sending

    def put(self, payload: bytes) -> None:
        """Send one frame to the peer, or queue what it does not take at once. Never blocks."""
        whole = frame(payload)
        if not self._unsent and not self._sending:
            whole = whole[self._at_once(whole) :]
            if not whole:
                self.stir()
                return
        self._unsent.append(whole)
        self._unsent_bytes += len(whole)
        self._something.set()

    def _at_once(self, data: bytes) -> int:
        """How much of ``data`` went out. Most answers do whole: waking a task for each would cost more than they do."""
        if self.gone:
            return len(data)
        try:
            return os.write(self._fd, data)
        except OSError:
            return 0  # full, or broken: the sender finds out which

    async def send(self, connection: trio.CancelScope) -> None:
        """Send what is queued; a peer that does not take it in time loses its connection."""
        while True:
            await self._something.wait()
            data = b"".join(self._unsent)
            self._unsent.clear()
            self._something = trio.Event()
            self._sending = True
            with trio.move_on_after(SEND_SECONDS) as slow:
                try:
                    await self._stream.send_all(data)
                except trio.BrokenResourceError:
                    slow.cancel()
                    await trio.lowlevel.checkpoint()
            if slow.cancelled_caught:
                connection.cancel()
            self._sending = False
            self._unsent_bytes -= len(data)
            self.stir()

    def stir(self) -> None:
        """Something was sent, or some request ended."""
        if self._moved is not None:
            self._moved.set()
            self._moved = None

    async def stirred(self) -> None:
        """Wait until something was sent or some request ended."""
        if self._moved is None:
            self._moved = trio.Event()
        await self._moved.wait()

    @property
    def full(self) -> bool:
        """Whether the peer leaves too many of its answers unread to be asked more."""
        return self._unsent_bytes > MAX_UNSENT

    async def room(self) -> None:
        """Wait until the peer has taken enough of its answers."""
        while self.full:
            await self.stirred()
