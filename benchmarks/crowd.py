"""P11: many commands at once that write. The bar is a time, not a ratio: its floor is the bar itself."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.client import Client
from benchmarks.figures import Figure, median, ms
from benchmarks.node import Daemon

AT_ONCE = 50
SECONDS = 2.5
ROUNDS = 5


def crowd(daemon: Daemon) -> list[Figure]:
    client = daemon.client()
    run = _run(client)
    seconds: list[float] = []
    errors = 0
    with subprocess.Popen(
        ["bash", "--norc", "--noprofile"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "FIRM_HOME": str(daemon.home)},
        text=True,
    ) as shell:
        client.ask("session.bind", {"agent_member_id": "ann", "pid": shell.pid}, keyed=True)
        for n in range(ROUNDS):
            taken, failed = _round(shell, n)
            seconds.append(taken)
            errors += failed
        assert shell.stdin is not None
        shell.stdin.close()
        shell.wait()
    sent = _delivered(client, run)
    what = f"{AT_ONCE} firm message send at once: {sent // ROUNDS} delivered, {errors} errors"
    mine = median(seconds) if sent == AT_ONCE * ROUNDS and not errors else float("inf")
    return [Figure("P11", what, ms(mine), f"{SECONDS} s", mine / SECONDS, 1, at_most=True)]


def _run(client: Client) -> str:
    """A run of Ann's team with Bob in it."""

    def ask(op: str, **body: Any) -> Any:
        return client.ask(op, body, keyed=True)

    for name in ("ann", "bob"):
        ask("agent.create", name=name)
    team = ask("team.create", name="crowd", host_agent_id="ann", project="/")["id"]
    invited = ask("membership.invite", team_id=team, agent_member_id="bob")
    ask("membership.join", membership_id=invited["id"], expected_version=1)
    run: str = ask("team-run.create", team_id=team)["id"]
    ask("team-run.start", team_run_id=run, expected_version=1)
    return run


def _round(shell: subprocess.Popen[str], number: int) -> tuple[float, int]:
    """Seconds until all have ended, and how many did not end with 0."""
    firm = Path(sys.executable).parent / "firm"
    assert shell.stdin is not None
    assert shell.stdout is not None
    with tempfile.TemporaryDirectory(prefix="firm-bench-") as folder:
        one = f'{firm} message send "round {number}: $n" --recipient bob --json >/dev/null || : >"{folder}/$n"'
        began = time.perf_counter()
        shell.stdin.write(f"for n in $(seq {AT_ONCE}); do {{ {one}; }} & done; wait; echo ended\n")
        shell.stdin.flush()
        assert shell.stdout.readline() == "ended\n"
        return time.perf_counter() - began, len(list(Path(folder).iterdir()))


def _delivered(client: Client, run: str) -> int:
    """The mail that waits for Bob."""
    (bob,) = [each for each in client.ask("team-run.board", {"team_run_id": run})["members"] if each["name"] == "bob"]
    return int(bob["mail"])
