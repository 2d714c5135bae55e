"""A member that costs little: it connects with its capability and waits for its run to change, as our worker does when
it has nothing to do. Run as ``python -I -m benchmarks.idler``.
"""

from __future__ import annotations

import os
import select

from benchmarks.client import Client


def main() -> None:
    capability, path, run = (os.environ[f"FIRM_{name}"] for name in ("CAPABILITY", "SOCKET", "TEAM_RUN_ID"))
    while True:
        try:
            _wait(Client(path, capability=capability), run)
        except (OSError, AssertionError):  # the daemon is away; it is looked for as the worker does
            select.poll().poll(50)


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
