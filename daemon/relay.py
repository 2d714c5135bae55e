"""After a commit: wake whoever waits on a stream that changed. Never blocks the writer, holds no data."""

from __future__ import annotations

from collections.abc import Iterable

import trio

#: The topic of everything.
ALL = ""


class Relay:
    """One event a topic, made when somebody waits, set and dropped when the topic changes."""

    def __init__(self) -> None:
        self._waiting: dict[str, trio.Event] = {}

    def announce(self, streams: Iterable[str], _seq: int) -> None:
        for topic in {ALL, *streams}:
            if event := self._waiting.pop(topic, None):
                event.set()

    def next(self, topic: str) -> trio.Event:
        """Set at the next commit that touches ``topic``. Take it before looking, so that no commit is missed."""
        if topic not in self._waiting:
            self._waiting[topic] = trio.Event()
        return self._waiting[topic]

    def forget(self, topic: str, event: trio.Event) -> None:
        """Drop the event of a waiter that gave up, when nobody else waits on it."""
        if not event.is_set() and event.statistics().tasks_waiting == 0 and self._waiting.get(topic) is event:
            del self._waiting[topic]
