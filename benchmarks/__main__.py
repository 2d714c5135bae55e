"""Measure, print, and write ``benchmarks/README.md``."""

from __future__ import annotations

import os
import platform
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import apsw
import trio

from benchmarks.commands import light
from benchmarks.crowd import crowd
from benchmarks.figures import HEAD, Figure, ms
from benchmarks.launches import launches
from benchmarks.node import daemon
from benchmarks.restart import restart
from benchmarks.scale import scale
from benchmarks.store import bare_fdatasync, reads, writes


def main() -> int:
    lines = [_machine()]
    print(lines[0])
    print(HEAD)
    rows: list[str] = []
    held = True
    for figure in _figures():
        print(figure.row(), flush=True)
        rows.append(figure.row())
        held = held and figure.holds
    text = "\n".join(["# Benchmarks\n", *lines, "", HEAD, *rows, "", _NOTE])
    Path(__file__).with_name("README.md").write_text(text, "utf-8")
    return 0 if held else 1


def _figures() -> Iterator[Figure]:
    for measure in (writes, reads, light, crowd, launches):
        with daemon() as running:
            yield from measure(running)
    yield from restart()
    yield from scale()


_NOTE = """Written by `make bench`: medians, ratios against a floor measured in the same run. The load of P1 is one
process with 32 connections, each with one request on its way. P7 to P9 and P11 have a bar of their own as their floor.
Members of P8 and P9 are real processes in real terminals that hold a connection and wait, without our worker's imports.
The floor of P10 is the same question in a small store.
Machines differ and are noisy: read the ratios. No
figure here is asserted by the tests.
"""


def _machine() -> str:
    with tempfile.TemporaryDirectory(prefix="firm-bench-", dir=Path.cwd()) as folder:
        sync = bare_fdatasync(Path(folder))
    lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    cpu = next((line.partition(":")[2].strip() for line in lines if "model name" in line), platform.machine())
    return (
        f"{cpu}, {len(os.sched_getaffinity(0))} cores, Linux {platform.release()}, "
        f"Python {platform.python_version()}, SQLite {apsw.sqlite_lib_version()}, trio {trio.__version__}; "
        f"bare write and fdatasync {ms(sync)}."
    )


if __name__ == "__main__":
    sys.exit(main())
