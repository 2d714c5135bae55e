"""What is wrong with this daemon, since when, and what lifts it."""

from __future__ import annotations

import time

from client.protocol.ids import UnixMs
from client.protocol.node import Trouble
from client.protocol.refusals import Code
from store import faults


def now() -> UnixMs:
    """The wall clock, for people. No rule orders by it."""
    return UnixMs(time.time_ns() // 1_000_000)


class Health:
    """Troubles by code and what they are about. The first occurrence of one keeps its time until it is over."""

    def __init__(self) -> None:
        self._troubles: dict[tuple[str, str], Trouble] = {}

    def meet(self, code: str, what: str, lifted_by: str, *, about: str = "") -> None:
        """Later words replace earlier ones."""
        met = self._troubles.get((code, about))
        since = met.since if met is not None else now()
        self._troubles[code, about] = Trouble(code=code, what=what, since=since, lifted_by=lifted_by)

    def over(self, code: str, *, about: str = "") -> None:
        self._troubles.pop((code, about), None)

    @property
    def troubles(self) -> list[Trouble]:
        return sorted(self._troubles.values(), key=lambda t: (t.since, t.code))

    def batch_ended(self, fault: Code | None, stopped: Code | None) -> None:
        """Called after every group commit: a good one ends the troubles of the disk."""
        if fault is None and stopped is None:
            for code in (Code.STORE_BUSY, Code.STORE_FULL, Code.STORE_IO_ERROR, Code.STORE_READ_ONLY):
                self.over(code)
        for met in {fault, stopped} - {None}:
            code = Code(str(met))
            if (code, "") not in self._troubles:
                self.meet(code, _WHAT[code], faults.refusal(code).lifted_by)


_WHAT = {
    Code.OUTCOME_UNKNOWN: "a commit failed and may come back; nothing more is written",
    Code.STORE_BUSY: "another program holds the database locked",
    Code.STORE_CORRUPT: "the database is damaged; nothing more is written",
    Code.STORE_FULL: "the disk is full",
    Code.STORE_IO_ERROR: "the disk failed",
    Code.STORE_READ_ONLY: "the disk is read-only",
}
