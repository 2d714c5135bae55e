"""P4: a whole ``firm`` command against the bare interpreter, bytecode compiled."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from benchmarks.figures import Figure, laps, median, ms
from benchmarks.node import Daemon
from benchmarks.store import Place

ROUNDS = 60
ROWS = 50


def light(daemon: Daemon) -> list[Figure]:
    client = daemon.client()
    place = Place(lambda op, body: client.ask(op, body, keyed=True))
    for _ in range(ROWS):
        place.work()
    firm = Path(sys.executable).parent / "firm"
    environment = {**os.environ, "FIRM_HOME": str(daemon.home)}

    def whole() -> None:
        subprocess.run([firm, "work", "list", "--json"], env=environment, stdout=subprocess.DEVNULL, check=True)

    def bare() -> None:
        subprocess.run([sys.executable, "-c", "pass"], env=environment, check=True)

    ours: list[float] = []
    floors: list[float] = []
    for _ in range(ROUNDS):
        floors += laps(bare, 1)
        ours += laps(whole, 1)
    mine, floor = median(ours), median(floors)
    what = f"firm work list --json, {ROWS} rows, whole process"
    return [Figure("P4", what, ms(mine), ms(floor), mine / floor, 5, at_most=True)]
