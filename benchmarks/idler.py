"""A member that costs little: it connects with its capability and waits for its run to change, as our worker does when
it has nothing to do. Run as ``python -I -m benchmarks.idler``.
"""

from __future__ import annotations

import os
import select

from benchmarks.client import Client

#: Milliseconds before the daemon is looked for again, doubled each time, as our worker does; and when it is given up.
_FIRST, _LATER, _PATIENCE = 50, 5_000, 60_000


def main() -> None:
    capability, path, run = (os.environ[f"FIRM_{name}"] for name in ("CAPABILITY", "SOCKET", "TEAM_RUN_ID"))
    away = 0
    while away < _PATIENCE:
        try:
            client = Client(path, capability=capability)
            away = 0
            _wait(client, run)
        except (OSError, AssertionError):  # it is away
            delay = min(max(away, _FIRST), _LATER)
            select.poll().poll(delay)
            away += delay


def _wait(client: Client, run: str) -> None:
    """Until the daemon goes away."""
    seq = 0
    while True:
        client.socket.sendall(client.packed("event.wait", {"predicate": f"team-run:{run}.seq>{seq}"}, keyed=False))
        answer = client.read()
        assert "answer" in answer, answer
        seq = answer["seq"]


if __name__ == "__main__":
    main()
