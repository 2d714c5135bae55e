"""Reads for all connections in one place, so that a request costs no task of its own.

trio's wait registers a descriptor, switches to a task and takes the registration back, for every message. A peer that
asks one thing at a time, as most do, needs none of that: its request is taken where it was read. Whatever is more than
one whole request goes to the connection's task.
"""

from __future__ import annotations

import os
import select
from collections.abc import Callable

import outcome
import trio

#: Bytes that are read at a time.
CHUNK = 64 * 1024
#: Connections that are read before others of the daemon's tasks go on.
_AT_A_TIME = 64

#: Takes what was read: None where nothing is left to do, else what the connection's task is to see.
Take = Callable[[bytes], bytes | None]


class Intake:
    def __init__(self) -> None:
        self._epoll = select.epoll()
        self._parked: dict[int, tuple[trio.lowlevel.Task, Take]] = {}

    async def serve(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Read for whoever is parked, until cancelled. Who is parked then stays so until it is cancelled too."""
        task_status.started()
        with self._epoll:
            while True:
                await trio.lowlevel.wait_readable(self._epoll.fileno())
                for fd, _ in self._epoll.poll(0, _AT_A_TIME):
                    self._read(fd)

    async def more(self, fd: int, take: Take) -> bytes:
        """What ``take`` left, or nothing at the end. Raises ``OSError`` on a broken connection."""
        self._epoll.register(fd, select.EPOLLIN)
        self._parked[fd] = trio.lowlevel.current_task(), take

        def abort(_: object) -> trio.lowlevel.Abort:
            self._leave(fd)
            return trio.lowlevel.Abort.SUCCEEDED

        left: bytes = await trio.lowlevel.wait_task_rescheduled(abort)
        return left

    def _read(self, fd: int) -> None:
        if (parked := self._parked.get(fd)) is None:
            return  # another one of this round has ended its connection
        task, take = parked
        left = outcome.capture(_taken, fd, take)
        if not isinstance(left, outcome.Value) or left.value is not None:
            self._leave(fd)
            trio.lowlevel.reschedule(task, left)

    def _leave(self, fd: int) -> None:
        del self._parked[fd]
        if not self._epoll.closed:
            self._epoll.unregister(fd)


def _taken(fd: int, take: Take) -> bytes | None:
    try:
        data = os.read(fd, CHUNK)
    except BlockingIOError:
        return None
    return take(data) if data else data
