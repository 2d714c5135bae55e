"""Kills a starting daemon before the first change it makes to the file system, before the second, and so on to READY.

A program of its own: it imports the daemon once and forks for every start, so that a start costs milliseconds.

    python -I cut_starts.py kill|stop|none      how the daemon ends that runs between two of those

Prints the names of the steps, in order, as JSON. SQLite's own changes are no steps.
"""

from __future__ import annotations

import itertools
import json
import os
import select
import signal
import sys

from daemon.command import main

CHANGES = {"os.mkdir", "os.rename", "os.chmod", "os.remove", "os.link", "socket.bind"}
PATIENCE = 30.0


def start(cut_before: int = 0) -> tuple[int, str]:
    """Fork a daemon; wait until it is ready or gone. Its pid, and the step before which it was killed, if it was."""
    heard, tell = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(heard)
        os.set_inheritable(tell, True)  # noqa: FBT003 — the standard library's own signature
        os.environ["FIRM_READY_FD"] = str(tell)
        if cut_before:
            sys.addaudithook(Fuse(cut_before, tell).reach)
        os._exit(main(["run"]))
    os.close(tell)
    readable, _, _ = select.select([heard], [], [], PATIENCE)
    assert readable, "neither ready nor gone"
    with os.fdopen(heard, encoding="utf-8") as pipe:
        said = pipe.readline().strip()
    if said == "ready":
        return pid, ""
    assert os.waitpid(pid, 0)[1] == signal.SIGKILL, said
    return 0, said


class Fuse:
    """Burns down by one with each change, and then kills this process. Says before which."""

    def __init__(self, left: int, tell: int) -> None:
        self.left = left
        self.tell = tell

    def reach(self, event: str, details: tuple[object, ...]) -> None:
        flags = details[2] if event == "open" else 0
        if event in CHANGES or (isinstance(flags, int) and flags & (os.O_WRONLY | os.O_RDWR)):
            self.left -= 1
            if self.left == 0:
                os.write(self.tell, f"{event} {details[0]}\n".encode())
                os.kill(os.getpid(), signal.SIGKILL)


def end(pid: int, number: signal.Signals) -> None:
    os.kill(pid, number)
    _, status = os.waitpid(pid, 0)
    assert status in {0, signal.SIGKILL}, status


def sweep(between: str) -> list[str]:
    """Cut starts off until one gets through; between two of them a whole daemon lives and ends as ``between`` says."""
    steps: list[str] = []
    for step in itertools.count(1):
        if between != "none":
            whole, _ = start()
            end(whole, signal.SIGKILL if between == "kill" else signal.SIGTERM)
        pid, cut = start(step)
        if pid:
            end(pid, signal.SIGKILL)  # at once: its fuse still burns
            break
        steps.append(cut)
    return steps


if __name__ == "__main__":
    print(json.dumps(sweep(sys.argv[1])))  # noqa: T201 — what the test reads
