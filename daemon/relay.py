"""After a commit: wake whoever waits on a stream that changed. Never blocks the writer, holds no data."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator

import trio

#: The topic of everything. Others are a stream ("work/<id>"), its noun ("work"), and a run ("run/<id>").
ALL = ""


class Relay:
    """One event a topic, made when somebody waits, set and dropped when the topic changes."""

    def __init__(self) -> None:
        self._waiting: dict[str, trio.Event] = {}

    def announce(self, streams: Iterable[str], _seq: int) -> None:
        changed = set(streams)
        for topic in {ALL, *changed, *(stream.partition("/")[0] for stream in changed)}:
            if (event := self._waiting.pop(topic, None)) is not None:
                event.set()

    @contextlib.contextmanager
    def next(self, topic: str) -> Iterator[trio.Event]:
        """Set at the next commit that touches ``topic``. Look inside, then wait: so no commit is missed.

        It is dropped at the end when nobody else waits on it.
        """
        event = self._waiting.setdefault(topic, trio.Event())
        try:
            yield event
        finally:
            if self._waiting.get(topic) is event and event.statistics().tasks_waiting == 0:
                del self._waiting[topic]
