"""A person at a shell: the real ``firm`` script, a FIRM_HOME of their own, pipes or a terminal."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import attrs

FIRM = str(Path(sys.executable).with_name("firm"))
PATIENCE = 60.0
#: What a developer's own shell may carry and a test must not see.
_DROPPED = ("FIRM_", "PYTHON", "NO_COLOR", "XDG_", "COLUMNS", "TERM")


@attrs.frozen
class Done:
    """How a command ended, and what it said."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        """The one JSON object on standard output."""
        (line,) = self.out.splitlines()
        found: dict[str, Any] = json.loads(line)
        return found

    @property
    def refusal(self) -> dict[str, Any]:
        """The one JSON object on standard error, as the refusal in it."""
        (line,) = self.err.splitlines()
        found: dict[str, Any] = json.loads(line)
        assert set(found) == {"refusal"}
        refusal: dict[str, Any] = found["refusal"]
        return refusal


def complaints(err: str) -> str:
    """What a command said on standard error, but for that it still waits: a machine may be busy."""
    waits = "firm: waiting for the daemon ("
    return "".join(line for line in err.splitlines(keepends=True) if not line.startswith(waits))


@attrs.frozen
class Shell:
    """Runs ``firm``. ``environment`` is added to a clean one; ``cwd`` is where the person stands."""

    home: Path
    cwd: Path
    environment: Mapping[str, str] = attrs.Factory(dict)

    def env(self, **more: str) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(_DROPPED)}
        return {**kept, "LC_ALL": "C.UTF-8", "FIRM_HOME": str(self.home), **self.environment, **more}

    def at(self, cwd: Path) -> Shell:
        return attrs.evolve(self, cwd=cwd)

    def having(self, **environment: str) -> Shell:
        return attrs.evolve(self, environment={**self.environment, **environment})

    def begin(self, *words: str | bytes, stdin: int | None = subprocess.DEVNULL) -> subprocess.Popen[bytes]:
        """Start a command whose output is read later."""
        return subprocess.Popen(
            [FIRM, *words],
            env=self.env(),
            cwd=self.cwd,
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def tries(self, *words: str | bytes, stdin: bytes = b"") -> Done:
        done = subprocess.run(
            [FIRM, *words],
            env=self.env(),
            cwd=self.cwd,
            input=stdin,
            capture_output=True,
            timeout=PATIENCE,
            check=False,
        )
        return Done(done.returncode, done.stdout.decode(), done.stderr.decode())

    def firm(self, *words: str, stdin: bytes = b"") -> str:
        """What a command that works says."""
        done = self.tries(*words, stdin=stdin)
        assert (done.status, complaints(done.err)) == (0, ""), (words, done)
        return done.out

    def answer(self, *words: str, stdin: bytes = b"") -> dict[str, Any]:
        """The answer in what ``--json`` prints."""
        found: dict[str, Any] = json.loads(self.firm(*words, "--json", stdin=stdin))["answer"]
        return found

    def bash(self, script: str) -> Done:
        """A script in which ``firm`` is the real one."""
        path = f"{Path(FIRM).parent}{os.pathsep}{os.environ['PATH']}"
        done = subprocess.run(
            ["bash", "-c", script],
            env=self.env(PATH=path),
            cwd=self.cwd,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        return Done(done.returncode, done.stdout, done.stderr)

    def terminal(self, *words: str, columns: int = 80, typed: bool = False) -> Done:
        """Run a command on a terminal of that width; both streams are in ``out``, as the terminal gets them.

        Its input is the terminal too where somebody could have ``typed`` there.
        """
        leader, follower = pty.openpty()
        try:
            fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("4H", 24, columns, 0, 0))
            with subprocess.Popen(
                [FIRM, *words],
                env={"TERM": "xterm-256color", **self.env()},
                cwd=self.cwd,
                stdin=follower if typed else subprocess.DEVNULL,
                stdout=follower,
                stderr=follower,
            ) as process:
                os.close(follower)
                heard = _until_closed(leader)
                status = process.wait(PATIENCE)
        finally:
            os.close(leader)
        return Done(status, heard.decode().replace("\r\n", "\n"), "")

    @contextmanager
    def running(self) -> Generator[int]:
        """A daemon of this home: its pid. It is gone at the end, whatever the test did to it."""
        self.firm("node", "start")
        pid = self.pid()
        try:
            yield pid
        finally:
            self.tries("node", "stop")

    def pid(self) -> int:
        """The pid of the daemon that answers."""
        status: dict[str, Any] = json.loads(self.firm("node", "status", "--json"))
        return int(status["pid"])


def _until_closed(leader: int) -> bytes:
    heard, deadline = b"", time.monotonic() + PATIENCE
    while select.select([leader], [], [], max(deadline - time.monotonic(), 0))[0]:
        try:
            data = os.read(leader, 1 << 16)
        except OSError:  # nobody holds the other end any more
            return heard
        heard += data
    raise TimeoutError(heard)


@contextmanager
def watched(pid: int) -> Generator[int]:
    """A pidfd, readable once the process has ended."""
    handle = os.pidfd_open(pid)
    try:
        yield handle
    finally:
        os.close(handle)


def has_ended(handle: int, within: float = 0) -> bool:
    return bool(select.select([handle], [], [], within)[0])
