"""For which sessions a supervisor is starting a process right now.

From before the launch is recorded until what it started is recorded too, or it came to nothing. Until then nobody can
say that such a session has no process.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import attrs
import trio

from client.protocol.ids import SessionId


@attrs.define
class Starts:
    """Those of one supervisor. What a predecessor was starting is looked up in the world by its launch."""

    _under_way: dict[SessionId, trio.Event] = attrs.Factory(dict)

    @contextmanager
    def begun(self, session_id: SessionId) -> Iterator[None]:
        """It is under way until ``over`` says otherwise, at the latest until the end of this block."""
        self._under_way[session_id] = trio.Event()
        try:
            yield
        finally:
            self.over(session_id)

    def over(self, session_id: SessionId) -> None:
        """From here on the record says what was started, or the world does."""
        if (done := self._under_way.pop(session_id, None)) is not None:
            done.set()

    async def awaited(self, session_id: SessionId) -> None:
        """Wait until none is under way for this session. Each of its steps ends by itself."""
        while (done := self._under_way.get(session_id)) is not None:
            await done.wait()

    async def all_awaited(self) -> None:
        """The same for all sessions."""
        while self._under_way:
            await next(iter(self._under_way.values())).wait()
