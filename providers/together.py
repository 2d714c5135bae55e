"""One call for all who ask at the same time."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

import attrs
import trio

T = TypeVar("T")


@attrs.define(eq=False)
class Together(Generic[T]):
    """Who asks while a call goes on gets the next one: no answer is older than its question. All who waited for it go
    on in the same moment, so that what they do then is together too.
    """

    _call: Callable[[], Awaitable[T]]
    _begun: int = 0
    _ended: tuple[int, T] | None = None  # the number of the last call that ended, and its answer
    _going: trio.Event | None = None

    async def ask(self) -> T:
        begun = self._begun
        while self._ended is None or self._ended[0] <= begun:
            if self._going is None:
                await self._go()
            else:
                await self._going.wait()
        return self._ended[1]

    async def _go(self) -> None:
        """Cancelled, it answers nobody: the first of those who wait calls for itself."""
        self._begun += 1
        number, self._going = self._begun, trio.Event()
        try:
            self._ended = number, await self._call()
        finally:
            self._going.set()
            self._going = None
