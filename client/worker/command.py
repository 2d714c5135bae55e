"""The worker's process: signals, exit status, and what it says on its terminal.

Exit status: 1 refused, 2 usage, 4 no daemon, and 128 and the number of the signal that ended it.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import AsyncIterator, Iterator

import trio

from client.git import one_line
from client.worker.identity import identify
from client.worker.link import Gone, Link
from client.worker.serve import Worker
from client.worker.settings import Misused, Settings, read

_ENDING = (signal.SIGTERM, signal.SIGHUP)


def main() -> int:
    _open_the_first_three()
    try:
        settings = read(os.environ)
    except Misused as why:
        _say(str(why))
        return 2
    return trio.run(_main, settings)


def _open_the_first_three() -> None:
    """Where one is closed, the next file to be opened would get its number, and with it what programs write."""
    for fd in range(3):
        try:
            os.fstat(fd)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest number that is free


def _say(text: str) -> None:
    """On standard error: standard output is the programs'."""
    # A terminal that was closed ends the worker by SIGHUP; until that has come there is nobody to tell.
    with contextlib.suppress(OSError):
        os.write(2, f"firm worker: {one_line(text, most=6000)}\n".encode(errors="replace"))


async def _main(settings: Settings) -> int:
    ended: list[int] = []
    with trio.open_signal_receiver(signal.SIGINT, *_ENDING) as signals:
        try:
            async with trio.open_nursery() as nursery:
                link = Link(settings.socket, settings.capability, _say)
                worker: list[Worker] = []
                nursery.start_soon(link.keep)
                nursery.start_soon(_obey, signals, worker, nursery.cancel_scope, ended)
                me = await identify(link)
                worker.append(Worker(link, me, settings, _say))
                _say(f"serves {me.name} in {settings.folder}")
                if me.hosts:
                    from client.worker.host import Host  # noqa: PLC0415 — few do, and it costs each of them its nouns

                    nursery.start_soon(Host(link, me, settings, _say).serve)
                await worker[0].serve()
        except* Gone as group:
            first = next(_gone(group))
            _say(str(first))
            ended.append(first.status)
    return ended[0]


async def _obey(
    signals: AsyncIterator[int], worker: list[Worker], everything: trio.CancelScope, ended: list[int]
) -> None:
    """An interrupt ends the program that runs, or a worker that does not serve yet; the others end both."""
    async for number in signals:
        if number in _ENDING or not worker:
            _say(f"ends by {signal.Signals(number).name}")
            ended.append(128 + number)
            everything.cancel()
        else:
            worker[0].interrupt()


def _gone(group: BaseExceptionGroup[Gone]) -> Iterator[Gone]:
    for error in group.exceptions:
        if isinstance(error, BaseExceptionGroup):
            yield from _gone(error)
        else:
            yield error
