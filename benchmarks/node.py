"""A daemon of its own for a measurement, in a temporary home."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import attrs

from benchmarks.client import Client, home_key


@attrs.frozen
class Daemon:
    home: Path
    pid: int

    def client(self) -> Client:
        where = json.loads((self.home / "node.json").read_text("utf-8"))["socket"]
        return Client(where, key=home_key(self.home))


@contextlib.contextmanager
def daemon() -> Iterator[Daemon]:
    """Started, ready, and ended with its home."""
    with tempfile.TemporaryDirectory(prefix="firm-bench-") as folder, started(Path(folder) / "home") as running:
        yield running


@contextlib.contextmanager
def started(home: Path, *words: str) -> Iterator[Daemon]:
    """Of a home that may be there already; it stays. ``words`` run another daemon than the usual one."""
    ready, tell = os.pipe()
    environment = {**os.environ, "FIRM_HOME": str(home), "FIRM_READY_FD": str(tell), "FIRM_LOG": "ERROR"}
    words = words or ("-m", "daemon", "run")
    running = subprocess.Popen([sys.executable, "-I", *words], env=environment, pass_fds=(tell,), cwd="/")
    os.close(tell)
    try:
        with os.fdopen(ready, "rb") as pipe:
            assert pipe.read(6) == b"ready\n", "the daemon did not start"
        yield Daemon(home, running.pid)
    finally:
        running.terminate()
        running.wait(60)
