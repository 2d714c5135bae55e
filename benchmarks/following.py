"""The events of a run from one moment on: how long something takes is told by its commit."""

from __future__ import annotations

from benchmarks.client import Client


class Following:
    """Goes on under the next daemon of the same store."""

    def __init__(self, client: Client, run: str) -> None:
        self._run = run
        self._seq = 0
        self._cursor = client.ask("event.wait", {"predicate": f"team-run:{run}.seq>0"})["cursor"]

    def until(self, client: Client, kind: str, count: int) -> None:
        """Until so many sessions have said so."""
        said: set[str] = set()
        while len(said) < count:
            body = {"predicate": f"team-run:{self._run}.seq>{self._seq}", "cursor": self._cursor, "timeout_ms": 60_000}
            waited = client.ask("event.wait", body)
            assert not waited["timed_out"], f"{len(said)} of {count} are {kind}"
            self._cursor, self._seq = waited["cursor"], waited["events"][-1]["seq"]
            changed = {e["stream"] for e in waited["events"] if e["kind"].partition(":")[0] == kind}
            said |= {stream for stream in changed if stream.startswith("session/")}
