"""A supervisor of a run in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager

import attrs

from tests.support.daemon import Log
from tests.support.runs import Field
from tests.support.wire import PATIENCE


@attrs.frozen
class Apart:
    """One that runs; ``log`` is what it says, ``sup_gen`` the generation under which it first held the run."""

    process: subprocess.Popen[bytes]
    log: Log
    sup_gen: int

    def wait(self) -> int:
        status = self.process.wait(PATIENCE)
        self.log.finish()
        return status


@contextmanager
def apart(field: Field, run_id: str, *, lease: int, **env: str) -> Generator[Apart]:
    """One that has taken the run, for so many seconds at a time; none is left afterwards."""
    process = subprocess.Popen(
        [sys.executable, "-I", "-m", "daemon", "supervise", run_id, str(lease)],
        env={**field.environment, **env},
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    assert process.stderr is not None
    log = Log(process.stderr)
    try:
        held = log.until("holding run=")
        yield Apart(process, log, int(held.rpartition("sup_gen=")[2]))
    finally:
        process.kill()
        process.wait()
        log.finish()


def until_adopted(field: Field, session_id: str, sup_gen: int) -> None:
    while field.held_by(session_id) != sup_gen:
        seq = field.seq()
        if field.held_by(session_id) != sup_gen:
            field.wait(f"seq>{seq}")
