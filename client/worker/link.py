"""A connection that outlives the daemon: what was asked and not answered is asked again, the same and with its key.

The worker and its program go on meanwhile. There is an end to patience: then ``Gone`` ends the worker.
"""

from __future__ import annotations

from collections.abc import Callable

import attrs
import trio

from client.connection import Connection, Disconnected, connect
from client.protocol.hello import Welcome
from client.protocol.operation import R, Request
from client.protocol.refusals import ROWS, Code, Refusal, Retry

#: Seconds without a daemon, or with one that cannot do what it is asked, before the worker gives up.
PATIENCE = 600.0
#: Seconds before the first and between the later attempts.
_FIRST, _LATER = 0.05, 5.0
#: After these this process is nobody here any more.
_ENDS = frozenset({Code.AGENT_SESSION_GENERATION_FENCED, Code.CAPABILITY_DENIED, Code.NOT_AUTHORIZED})


class Gone(Exception):
    """This worker cannot go on. ``status`` is how its process ends."""

    def __init__(self, why: str, status: int) -> None:
        super().__init__(why)
        self.status = status


def told(refusal: Refusal) -> str:
    """A refusal as people are told it."""
    about = f" about {refusal.about}" if refusal.about else ""
    return f"{refusal.code}{about}: {ROWS[refusal.code].meaning} {refusal.lifted_by}"


@attrs.define(eq=False)
class Link:
    """``keep`` holds the connection and runs as a task; ``ask`` uses whichever there is."""

    socket: str
    capability: str
    say: Callable[[str], None]
    patience: float = PATIENCE
    _now: Connection | None = None
    _changed: trio.Event = attrs.Factory(trio.Event)

    async def keep(self) -> None:
        """Connect, and again whenever the connection was lost. Raises ``Gone``."""
        lost_at, delay = trio.current_time(), _FIRST
        while True:
            try:
                async with connect(self.socket, "", self.capability) as connection:
                    began = trio.current_time()
                    self._set(connection)
                    while self._now is connection:
                        await self._changed.wait()
                lost_at = trio.current_time()
                delay = _FIRST if lost_at - began > _LATER else delay
                self.say("the daemon went away; what runs goes on while it is looked for")
            except Disconnected as why:
                if why.refusal is not None and ROWS[why.refusal.code].retry is not Retry.SAME:
                    raise Gone(told(why.refusal), ROWS[why.refusal.code].exit) from why
                if trio.current_time() - lost_at > self.patience:
                    raise Gone(f"no daemon for {self.patience:g} seconds: {why}", 4) from why
            await trio.sleep(delay)
            delay = min(delay * 2, _LATER)

    def _set(self, connection: Connection | None) -> None:
        self._now = connection
        self._changed.set()
        self._changed = trio.Event()

    async def _connection(self) -> Connection:
        while self._now is None:
            await self._changed.wait()
        return self._now

    async def welcome(self) -> Welcome:
        return (await self._connection()).welcome

    async def ask(self, request: Request[R], *, key: str = "") -> R | Refusal:
        return (await self.ask_at(request, key=key))[0]

    async def ask_at(self, request: Request[R], *, key: str = "") -> tuple[R | Refusal, int]:
        """The outcome, and what was committed then. Raises ``Gone`` where this session is over."""
        until, delay = trio.current_time() + self.patience, _FIRST
        while True:
            connection = await self._connection()
            try:
                answered = await connection.ask_at(request, key=key)
            except Disconnected:
                # Said by ``keep``, which finds the next one or gives up.
                if self._now is connection:
                    self._set(None)
                continue
            outcome = answered[0]
            if not isinstance(outcome, Refusal):
                return answered
            if outcome.code in _ENDS:
                raise Gone(told(outcome), ROWS[outcome.code].exit)
            if ROWS[outcome.code].retry is not Retry.SAME or trio.current_time() > until:
                return answered
            await trio.sleep(delay)
            delay = min(delay * 2, _LATER)
