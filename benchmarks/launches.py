"""P6 and P7: ten members from the start of their run to the proof that each became its program, and from the death of a
process to the commit that says so.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import trio

from benchmarks.client import Client
from benchmarks.figures import Figure, median, ms
from benchmarks.following import Following
from benchmarks.node import Daemon

MEMBERS = 10
ROUNDS = 5


def launches(daemon: Daemon) -> list[Figure]:
    client, ours, floors, deaths = daemon.client(), list[float](), list[float](), list[float]()
    try:
        for number in range(ROUNDS):
            floors.append(_bare())
            run = _run(client, number)
            ours.append(_start(client, run))
            deaths += _deaths(client)
            _close(client)
    finally:
        _close(client)
        client.ask("session.sweep", {})
    what = f"{MEMBERS} members from the start of their run to proven processes"
    p6 = Figure("P6", what, ms(median(ours)), ms(median(floors)), median(ours) / median(floors), 2, at_most=True)
    worst, wake = max(deaths), median(_wakes())
    # Its bar is one of time, 50 ms, whatever the floor: the ratio is to that.
    p7 = Figure(
        "P7",
        f"death of a process in a run at rest to the commit that says so, worst of {len(deaths)}",
        ms(worst),
        f"{ms(wake)} (pidfd in bare trio)",
        worst / 0.050,
        1,
        at_most=True,
    )
    return [p6, p7]


def _ask(client: Client, op: str, **body: Any) -> Any:
    return client.ask(op, body, keyed=True)


def _run(client: Client, number: int) -> Any:
    """A planned run with ten members of the profile ``command`` in one folder."""
    host = _ask(client, "agent.create", name=f"host {number}", profile="me")
    team = _ask(client, "team.create", name=f"launch {number}", host_agent_id=host["id"], project=tempfile.gettempdir())
    for each in range(MEMBERS):
        agent = _ask(client, "agent.create", name=f"m{number}-{each}", profile="command", workspace="shared")
        invited = _ask(client, "membership.invite", team_id=team["id"], agent_member_id=agent["id"])
        _ask(client, "membership.join", membership_id=invited["id"], expected_version=invited["version"])
    return _ask(client, "team-run.create", team_id=team["id"])


def _start(client: Client, run: Any) -> float:
    following = Following(client, run["id"])
    began = time.perf_counter()
    _ask(client, "team-run.start", team_run_id=run["id"], expected_version=run["version"])
    following.until(client, "ready", MEMBERS)
    return time.perf_counter() - began


def _seq(client: Client) -> int:
    return int(client.ask("node.status", {})["seq"])


def _open(client: Client) -> list[Any]:
    return [s for s in client.ask("session.list", {"limit": 500})["items"] if s["state"] != "closed"]


def _live(client: Client) -> list[Any]:
    return [s for s in _open(client) if (s["state"], s["process"]) == ("idle", "live")]


def _deaths(client: Client) -> list[float]:
    """One of each member, each in a run at rest: the successor of the last is proven, and nothing more is committed.
    Of so few the 99th percentile is the worst.
    """
    found: list[float] = []
    for session in _live(client):
        while not _rests(client):
            pass
        began = time.perf_counter()
        os.kill(session["pid"], signal.SIGKILL)
        predicate = f"session:{session['id']}.version>{session['version']}"
        client.ask("event.wait", {"predicate": predicate, "timeout_ms": 60_000})
        found.append(time.perf_counter() - began)
    return found


def _rests(client: Client) -> bool:
    """Whether all members are there, and half a second went by in which nothing was committed and none of them used the
    processor: a worker is proven long before it has imported what it needs.
    """
    live = _live(client)
    used = [_used(session["pid"]) for session in live]
    waited = client.ask("event.wait", {"predicate": f"seq>{_seq(client)}", "timeout_ms": 500})
    return len(live) == MEMBERS and waited["timed_out"] and used == [_used(session["pid"]) for session in live]


def _used(pid: int) -> int:
    """Ticks of the processor that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


def _close(client: Client) -> None:
    for session in _open(client):
        effect = _ask(client, "session.close", session_id=session["id"])
        client.ask("event.wait", {"predicate": f"effect:{effect['id']}.state=settled", "timeout_ms": 60_000})


def _bare() -> float:
    """Ten sessions of a bare tmux, one after the other, and ten starts of the interpreter."""
    with tempfile.TemporaryDirectory(prefix="firm-bench-") as folder:
        tmux = ["tmux", "-S", str(Path(folder) / "s"), "-f", "/dev/null"]
        subprocess.run([*tmux, "new-session", "-d", "-s", "first", "cat"], check=True)
        try:
            began = time.perf_counter()
            for number in range(MEMBERS):
                subprocess.run([*tmux, "new-session", "-d", "-s", f"s{number}", "cat"], check=True)
                subprocess.run([sys.executable, "-c", "pass"], check=True)
            return time.perf_counter() - began
        finally:
            subprocess.run([*tmux, "kill-server"], check=True)


def _wakes() -> list[float]:
    """Seconds from a kill to the wake of a task that waits for the pidfd."""

    async def one() -> float:
        process = subprocess.Popen(["cat"], stdin=subprocess.PIPE)  # noqa: ASYNC220 — the floor itself
        fd = os.pidfd_open(process.pid)
        began = time.perf_counter()
        process.kill()
        await trio.lowlevel.wait_readable(fd)
        took = time.perf_counter() - began
        os.close(fd)
        process.communicate()
        return took

    async def many() -> list[float]:
        return [await one() for _ in range(20)]

    return trio.run(many)
