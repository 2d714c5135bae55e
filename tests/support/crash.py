"""Worker processes that are killed with ``kill -9``, and what they acknowledged before.

A worker is any command. What it writes to stdout, line by line and flushed, is what it acknowledged. To die
at an exact boundary it prints a marker and reads a line from stdin: ``until(marker)`` then finds it standing
there, and ``kill`` ends it there, while ``say`` lets it go on. A worker that prints and runs on is killed a
little later.

Nothing here sleeps: every wait is for the worker's pipe or its pidfd, with a deadline. Only the worker itself
is killed, as the kernel's OOM killer would; what it started lives on and is the caller's business.
"""

from __future__ import annotations

import contextlib
import os
import random
import select
import signal
import subprocess
import tempfile
import time
from collections.abc import Generator, Mapping, Sequence
from pathlib import Path
from typing import IO

_SEED = "FIRM_TEST_SEED"


class WorkerEnded(Exception):
    """The worker ended by itself, which a crash test must not take for a crash."""

    def __init__(self, status: int, lines: Sequence[str], errors: str) -> None:
        super().__init__(f"worker ended with {status}; last lines {list(lines[-3:])}; stderr:\n{errors}")
        self.status = status  # as subprocess gives it: negative for a signal


class Worker:
    """One child process. Made by ``worker``, which reaps it whatever happens."""

    def __init__(self, process: subprocess.Popen[bytes], errors: IO[bytes]) -> None:
        if process.stdin is None or process.stdout is None:
            raise ValueError("the worker needs pipes")
        self._process = process
        self._errors = errors
        self._stdin = process.stdin
        self._out = process.stdout.fileno()
        self._pidfd = os.pidfd_open(process.pid)
        self._torn = b""
        self._seen = 0
        self._watched = select.poll()
        self._watched.register(self._out, select.POLLIN)
        self._watched.register(self._pidfd, select.POLLIN)
        self.lines: list[str] = []
        os.set_blocking(self._out, False)

    @property
    def pid(self) -> int:
        """The process id; the number is its own until it is reaped."""
        return self._process.pid

    @property
    def errors(self) -> str:
        """What it wrote to stderr so far."""
        self._errors.seek(0)
        return self._errors.read().decode(errors="replace")

    def say(self, line: str) -> None:
        """Write one line to its stdin. If it has ended, the next ``until`` says so."""
        with contextlib.suppress(BrokenPipeError):
            self._stdin.write(line.encode() + b"\n")

    def until(self, marker: str, seconds: float = 20.0) -> list[str]:
        """Return the lines up to and including the next one that is ``marker``; each line is given once.

        Raises ``WorkerEnded`` if the worker ends first, ``TimeoutError`` if it takes longer than ``seconds``.
        """
        deadline = time.monotonic() + seconds
        start, more = self._seen, True
        while True:
            while self._seen < len(self.lines):
                self._seen += 1
                if self.lines[self._seen - 1] == marker:
                    return self.lines[start : self._seen]
            if not more:
                self._check_alive()
                raise TimeoutError(f"no {marker!r} in {seconds} s; {self.lines[-3:]}; stderr:\n{self.errors}")
            more = self._wait(deadline)

    def run_for(self, seconds: float) -> None:
        """Let it work for this long, reading along. Raises ``WorkerEnded`` if it ends before."""
        deadline = time.monotonic() + seconds
        while self._wait(deadline):
            pass
        self._check_alive()

    def kill(self) -> list[str]:
        """Kill it now with SIGKILL, reap it and return every whole line it ever wrote.

        A last line without its newline was torn by the kill and is no acknowledgement. Raises
        ``WorkerEnded`` if it had ended by itself.
        """
        with contextlib.suppress(ProcessLookupError):  # already reaped: its status speaks
            signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)
        status = self.finish()
        if status != -signal.SIGKILL:
            raise WorkerEnded(status, self.lines, self.errors)
        return self.lines

    def finish(self, seconds: float = 20.0) -> int:
        """Wait for its end, reap it and return its status. Raises ``TimeoutError`` if it goes on."""
        deadline = time.monotonic() + seconds
        while self._wait(deadline):
            pass
        if not self._ended():
            raise TimeoutError(f"still running after {seconds} s; last lines {self.lines[-3:]}")
        self._drain()
        return self._process.wait()

    def close(self) -> None:
        """Kill it if it runs, reap it and give every descriptor back."""
        if self._process.returncode is None:
            signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)
            self._process.wait()
        self._stdin.close()
        if self._process.stdout is not None:
            self._process.stdout.close()
        os.close(self._pidfd)

    def _wait(self, deadline: float) -> bool:
        """Take in what comes next. False when it has ended or the deadline has passed."""
        left = deadline - time.monotonic()
        if left <= 0:
            return False
        self._watched.poll(left * 1000)
        ended = self._ended()  # asked before reading, so that the last words are read
        self._drain()
        return not ended

    def _drain(self) -> None:
        """Read all that is in the pipe. Not to its end: what the worker started may hold it open."""
        while True:
            try:
                data = os.read(self._out, 1 << 16)
            except BlockingIOError:
                return
            if not data:
                with contextlib.suppress(KeyError):
                    self._watched.unregister(self._out)
                return
            *whole, self._torn = (self._torn + data).split(b"\n")
            self.lines += [line.decode() for line in whole]

    def _ended(self) -> bool:
        one = select.poll()
        one.register(self._pidfd, select.POLLIN)
        return bool(one.poll(0))

    def _check_alive(self) -> None:
        if self._ended():
            self._drain()  # whatever came between the deadline and its end
            raise WorkerEnded(self._process.wait(), self.lines, self.errors)


@contextlib.contextmanager
def worker(argv: Sequence[str], *, env: Mapping[str, str] | None = None, cwd: Path | None = None) -> Generator[Worker]:
    """Start a worker; at the end of the context it is dead and reaped."""
    with tempfile.TemporaryFile() as errors:  # a file cannot fill up as a pipe does
        process = subprocess.Popen(
            argv, bufsize=0, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, env=env, cwd=cwd
        )
        one = Worker(process, errors)
        try:
            yield one
        finally:
            one.close()


def killed_at(
    marker: str, argv: Sequence[str], *, env: Mapping[str, str] | None = None, cwd: Path | None = None
) -> list[str]:
    """Run a worker, kill it at its line ``marker`` and return all it acknowledged."""
    with worker(argv, env=env, cwd=cwd) as one:
        one.until(marker)
        return one.kill()


def killed_at_random(
    argv: Sequence[str],
    moments: random.Random,
    *,
    ready: str,
    within: float = 0.3,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
) -> list[str]:
    """Run a worker, kill it up to ``within`` seconds after its line ``ready``, return all it acknowledged.

    The worker must not end before. The seed gives the same delays again, not the same instruction.
    """
    with worker(argv, env=env, cwd=cwd) as one:
        one.until(ready)
        one.run_for(moments.uniform(0, within))
        return one.kill()


def dice() -> random.Random:
    """Return a generator whose seed is printed and can be given again as FIRM_TEST_SEED."""
    seed = int(os.environ.get(_SEED) or random.SystemRandom().randrange(1 << 32))
    print(f"{_SEED}={seed}")  # noqa: T201 - pytest shows it with the failure
    return random.Random(seed)
