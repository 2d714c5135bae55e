"""P8 and P9: a hundred sessions in a store of ten thousand Works. The daemon is killed, and the next one adopts them
all; then it has nothing to do, and what that costs is measured.

The sessions are real: launched through the daemon, each in a terminal of its own, proven at the door, and each of its
processes holds a connection and waits for its run, as our worker does. Only what they would do with a Work is missing.
"""

from __future__ import annotations

import os
import select
import signal
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.client import Client
from benchmarks.figures import Figure, median
from benchmarks.following import Following
from benchmarks.node import Daemon, started
from benchmarks.scale import make

SESSIONS = 100
SIZE = 10_000, 100_000
ROUNDS = 3
SECONDS = 2.0
#: Seconds in which nothing is asked of the daemon; more than one tick of its leases.
IDLE = 30
CPU = 0.01
RSS = 60
_IDLERS = "-m", "benchmarks.idle_daemon"


def restart() -> Iterator[Figure]:
    with tempfile.TemporaryDirectory(prefix="firm-bench-") as folder:
        home = Path(folder) / "home"
        make(home, *SIZE)
        with started(home, *_IDLERS) as daemon:
            following = _launched(daemon)
            os.kill(daemon.pid, signal.SIGKILL)
        seconds: list[float] = []
        for left in reversed(range(ROUNDS)):
            began = time.perf_counter()
            with started(home, *_IDLERS) as daemon:
                following.until(daemon.client(), "adopted", SESSIONS)
                seconds.append(time.perf_counter() - began)
                if left:
                    os.kill(daemon.pid, signal.SIGKILL)
                    continue
                yield _took(seconds)
                yield from _idle(daemon)
                _end(daemon.client())


def _took(seconds: list[float]) -> Figure:
    mine = median(seconds)
    what = f"kill -9 and restart with {SESSIONS} sessions, {SIZE[0]} Works, {SIZE[1]} events until all are adopted"
    return Figure("P8", what, f"{mine:.2f} s", f"{SECONDS:g} s", mine / SECONDS, 1, at_most=True)


def _idle(daemon: Daemon) -> Iterator[Figure]:
    client = daemon.client()
    while client.ask("node.status", {})["connections"] <= SESSIONS:  # the members look for it every now and then
        _rest(0.2)
    client.socket.close()
    _rest(2)
    before = _cpu(daemon.pid)
    _rest(IDLE)
    used = (_cpu(daemon.pid) - before) / IDLE
    what = f"idle daemon with {SESSIONS} sessions"
    yield Figure("P9", f"{what}, CPU", f"{used:.2%}", f"{CPU:.0%} of a core", used / CPU, 1, at_most=True)
    rss = _rss(daemon.pid)
    yield Figure("P9", f"{what}, RSS", f"{rss:.1f} MiB", f"{RSS} MiB", rss / RSS, 1, at_most=True)


def _rest(seconds: float) -> None:
    select.poll().poll(seconds * 1000)


def _cpu(pid: int) -> float:
    """Seconds that a process has used, in all its threads."""
    fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _rss(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text("ascii", "replace").splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS:"))


def _launched(daemon: Daemon) -> Following:
    """The run of that store, with a hundred members whose processes were proven."""
    client = daemon.client()
    (run,) = client.ask("team-run.list", {})["items"]
    following = Following(client, run["id"])
    for number in range(SESSIONS):
        agent = _ask(client, "agent.create", name=f"idler {number}", profile="idler", workspace="shared")
        invited = _ask(client, "membership.invite", team_id=run["team_id"], agent_member_id=agent["id"])
        joined = _ask(client, "membership.join", membership_id=invited["id"], expected_version=invited["version"])
        _ask(client, "member-run.add", team_run_id=run["id"], membership_id=joined["id"])
    following.until(client, "ready", SESSIONS)
    return following


def _end(client: Client) -> None:
    sessions = [s for s in client.ask("session.list", {"limit": 500})["items"] if s["state"] != "closed"]
    for effect in [_ask(client, "session.close", session_id=each["id"]) for each in sessions]:
        client.ask("event.wait", {"predicate": f"effect:{effect['id']}.state=settled", "timeout_ms": 60_000})
    client.ask("session.sweep", {})


def _ask(client: Client, op: str, **body: Any) -> Any:
    return client.ask(op, body, keyed=True)
