"""P4: a whole ``firm`` command against the bare interpreter, bytecode compiled."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from benchmarks.figures import Figure, laps, median, ms
from benchmarks.node import Daemon

ROUNDS = 60
ROWS = 50


def light(daemon: Daemon) -> list[Figure]:
    client = daemon.client()
    agent = client.ask("agent.create", {"name": "host"}, keyed=True)
    for n in range(ROWS):
        client.ask("team.create", {"name": f"team {n}", "host_agent_id": agent["id"], "project": "/"}, keyed=True)
    firm = Path(sys.executable).parent / "firm"
    environment = {**os.environ, "FIRM_HOME": str(daemon.home)}

    def whole() -> None:
        subprocess.run([firm, "team", "list", "--json"], env=environment, stdout=subprocess.DEVNULL, check=True)

    def bare() -> None:
        subprocess.run([sys.executable, "-c", "pass"], env=environment, check=True)

    ours: list[float] = []
    floors: list[float] = []
    for _ in range(ROUNDS):
        floors += laps(bare, 1)
        ours += laps(whole, 1)
    mine, floor = median(ours), median(floors)
    what = f"firm team list --json, {ROWS}+ rows, whole process"
    return [Figure("P4", what, ms(mine), ms(floor), mine / floor, 5, at_most=True)]
