"""The daemon as a ``Node`` for its own loops: the same table, checks and units as for any peer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
import trio

from client.protocol import codec
from client.protocol.codec import Ask
from client.protocol.operation import R, Request
from client.protocol.refusals import Refusal
from client.protocol.table import BY_REQUEST
from daemon.call import Call
from daemon.dispatch import Dispatcher, Task


@attrs.frozen
class Inside:
    """Asks as one fixed caller. ``call`` makes the caller anew for each question, so that its clock is right."""

    dispatcher: Dispatcher
    call: Callable[[], Call]

    async def ask(self, request: Request[R], *, key: str = "") -> R | Refusal:
        op = BY_REQUEST[type(request)]
        answered = trio.Event()
        replies: list[bytes] = []

        def reply(payload: bytes) -> None:
            replies.append(payload)
            answered.set()

        async with trio.open_nursery() as waits:

            def spawn(task: Task) -> None:
                waits.start_soon(task)

            ask = Ask(1, op.name, codec.to_plain(request), key)
            self.dispatcher.ask(self.call(), ask, reply, spawn, trio.lowlevel.checkpoint)
            await answered.wait()
        outcome: Any = codec.outcome(op, codec.unpackb(replies[0]))
        return outcome  # type: ignore[no-any-return]
