"""Ends processes and reads back that they ended: TERM, a grace, then KILL, until a look finds none left."""

from __future__ import annotations

import math
import signal
from collections.abc import Callable

import trio

from providers.port import Unreachable
from providers.process import Process

GRACE = 2.0
_PATIENCE = 5.0  # after KILL; longer is only what hangs in the kernel
_ROUND = 0.05
_LOOK_WITHIN = 2.0
_QUIET = 2  # looks in a row that found nothing


async def end_all(
    find: Callable[[], set[Process]], *, grace: float = GRACE, until: float = math.inf
) -> tuple[int, ...] | Unreachable:
    """End whatever ``find`` sees, again and again, since what is ended may start something first. Answers with the
    pids that were still there at the end. Reading /proc can wait for a process that hangs in the kernel; then a look
    is given up, and that nothing is left is not said. ``until`` is on trio's clock: where less time is left than all of
    that may take, half of it is grace.

    What was seen once stays on the list: a child whose parent ended is no longer where it was seen. A look is not one
    instant: what starts another and ends while it goes on leads to neither. So only looks count that began when all
    that was known had ended, and it takes two of them.
    """
    known: set[Process] = set()
    asked: set[Process] = set()
    living: set[Process] = set()
    now = trio.current_time()
    kill_at = now + min(grace, (until - now) / 2)
    over_at = min(kill_at + _PATIENCE, until)
    quiet = 0
    while True:
        before, looked = living, False
        with trio.move_on_at(min(now + _LOOK_WITHIN, until)):
            known |= await trio.to_thread.run_sync(find, abandon_on_cancel=True)
            looked = True
        living = {each for each in known if each.lives()}
        now = trio.current_time()
        quiet = quiet + 1 if looked and not living and not before else 0
        if quiet == _QUIET or now >= over_at:
            left = tuple(sorted(each.pid for each in living))
            return left if quiet or left else Unreachable(detail="the processes of this machine could not be read")
        for each in living - asked if now < kill_at else living:
            each.signal(signal.SIGTERM if now < kill_at else signal.SIGKILL)
        asked |= living
        await _first_end(living)


async def _first_end(living: set[Process]) -> None:
    """Until one of them has ended, or a round is over."""
    with trio.move_on_after(_ROUND):
        async with trio.open_nursery() as nursery:
            for each in living:
                nursery.start_soon(_then_cancel, each, nursery.cancel_scope)


async def _then_cancel(each: Process, scope: trio.CancelScope) -> None:
    await each.ended()
    scope.cancel()
