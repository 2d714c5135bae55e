"""A real daemon, started as a person's would be, in a FIRM_HOME of its own. Fixtures: ``home``, ``daemon``, ``shared``.

    def test_it_answers(daemon: Daemon) -> None:
        with daemon.client() as client:
            assert client.ask("team.list")["answer"]["items"] == []

Every daemon is ended and reaped whatever happens, and one that logged an error or a traceback fails its test, unless
``daemon.expect(text)`` said that the line would come. Nothing here sleeps: waits are for pipes, pidfds and lines.
"""

from __future__ import annotations

import fcntl
import itertools
import os
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import pytest

from tests.support.wire import PATIENCE, Client

COMMAND = (sys.executable, "-I", "-m", "daemon", "run")
#: What a daemon would read from the shell, the service manager or the agent that runs the tests.
_NOT_OURS = re.compile(r"(FIRM|XDG|LISTEN|WATCHDOG)_|(NOTIFY_SOCKET|JOURNAL_STREAM|TMPDIR)$")
_BAD = re.compile(r" (ERROR|CRITICAL) \d+ |Traceback \(most recent call last\)")


class Log:
    """The lines of a process, read as they come by a thread of their own."""

    def __init__(self, pipe: IO[bytes]) -> None:
        self.lines: list[str] = []
        self._pipe = pipe
        self._over = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        for line in self._pipe:
            with self._changed:
                self.lines.append(line.decode(errors="replace").rstrip("\n"))
                self._changed.notify_all()
        with self._changed:
            self._over = True
            self._changed.notify_all()

    def until(self, text: str, seconds: float = PATIENCE, *, nth: int = 1) -> str:
        """The first line that has ``text`` in it, or a later one of them, once it has come."""

        def found() -> str:
            return next(itertools.islice((line for line in self.lines if text in line), nth - 1, None), "")

        with self._changed:
            self._changed.wait_for(lambda: found() or self._over, seconds)
            if line := found():
                return line
        raise AssertionError(f"no line with {text!r}:\n{self}")

    def finish(self) -> None:
        """After the end of the process: take in its last lines."""
        self._thread.join(PATIENCE)
        self._pipe.close()

    def __str__(self) -> str:
        return "\n".join(self.lines)


class Daemon:
    """One process. ``log`` is what it wrote to stderr; ``fd`` is its pidfd, readable once it has ended."""

    def __init__(self, home: Home, process: subprocess.Popen[bytes], ready: int) -> None:
        assert process.stderr is not None
        self.home = home
        self.process = process
        self.pid = process.pid
        self.fd = os.pidfd_open(process.pid)
        self.log = Log(process.stderr)
        self._ready = ready
        self._expected: list[str] = []
        self._reaped = False
        self._closed = False

    @property
    def key(self) -> str:
        return (self.home.folder / "operator.key").read_text().strip()

    @property
    def socket(self) -> Path:
        return self.home.run / "node.sock"

    @property
    def member_socket(self) -> Path:
        return self.home.run / "member.sock"

    def until_ready(self) -> Daemon:
        """Wait until it serves. Raises ``AssertionError`` with its log if it ends first."""
        readable, _, _ = select.select([self._ready, self.fd], [], [], PATIENCE)
        if self._ready in readable and os.read(self._ready, 64) == b"ready\n":
            return self
        if self.fd in readable:
            self.wait()
        raise AssertionError(f"the daemon did not become ready:\n{self.log}")

    def client(self) -> Client:
        """A new connection that has said hello with the operator key."""
        client = Client(self.socket)
        assert "hello" in client.hello(self.key)
        return client

    def expect(self, text: str) -> None:
        """An error whose line has ``text`` in it may be logged; its traceback too."""
        self._expected.append(text)

    def signal(self, number: signal.Signals) -> None:
        signal.pidfd_send_signal(self.fd, number)

    def stopped(self) -> None:
        """Send SIGSTOP and wait until it stands."""
        self.signal(signal.SIGSTOP)
        os.waitid(os.P_PID, self.pid, os.WSTOPPED)

    def stop(self) -> int:
        """SIGTERM; its exit status."""
        self.signal(signal.SIGTERM)
        return self.wait()

    def kill(self) -> None:
        """``kill -9``, and reaped."""
        self.signal(signal.SIGKILL)
        assert self.wait() == -signal.SIGKILL

    def wait(self, seconds: float = PATIENCE) -> int:
        """Wait for its end; its exit status, negative for a signal."""
        if not select.select([self.fd], [], [], seconds)[0]:
            raise TimeoutError(f"the daemon still runs after {seconds} s:\n{self.log}")
        status = self.process.wait()
        self.log.finish()
        self._reaped = True
        return status

    def complaints(self) -> list[str]:
        """Errors and tracebacks in the log that nobody expected."""
        found: list[str] = []
        allowed = False
        for line in self.log.lines:
            if not (bad := _BAD.search(line)):
                continue
            if bad[1]:
                allowed = any(text in line for text in self._expected)
            if not allowed:
                found.append(line)
        return found

    def close(self) -> None:
        """End it if it runs, in good order if it can. Raises if it could not, or complained."""
        if self._closed:
            return
        self._closed, status = True, 0
        if not self._reaped:
            self.signal(signal.SIGCONT)
            self.signal(signal.SIGTERM)
            if not select.select([self.fd], [], [], PATIENCE)[0]:
                self.signal(signal.SIGKILL)
            status = self.wait()
        os.close(self._ready)
        os.close(self.fd)
        assert status == 0, f"the daemon ended on SIGTERM with {status}:\n{self.log}"
        assert not self.complaints(), f"the daemon complained:\n{self.log}"


def _moved(fd: int) -> int:
    try:
        return fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 10)
    finally:
        os.close(fd)


_ACTIVATE = """
import os, sys
doors, command = sys.argv[1].split(","), sys.argv[2:]
for number, door in enumerate(map(int, doors), start=3):
    os.dup2(door, number)
    os.close(door)
os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS=str(len(doors)))
os.execv(command[0], command)
"""


def _activated(doors: Sequence[int]) -> list[str]:
    """What to put before a command so that it finds ``doors`` where systemd would leave them."""
    return [sys.executable, "-I", "-S", "-c", _ACTIVATE, ",".join(map(str, doors))] if doors else []


class Home:
    """A FIRM_HOME and all daemons that were started in it. ``folder`` does not exist before the first of them."""

    def __init__(self, folder: Path, temporary: Path) -> None:
        self.folder = folder
        self.temporary = temporary
        self._daemons: list[Daemon] = []

    @property
    def run(self) -> Path:
        """Where its sockets are when its path is not too long."""
        return self.folder / "run"

    @property
    def database(self) -> Path:
        return self.folder / "node.db"

    @property
    def environment(self) -> dict[str, str]:
        """What every process of this home is given: nothing of the shell that runs the tests which firm reads."""
        clean = {name: value for name, value in os.environ.items() if not _NOT_OURS.match(name)}
        return {**clean, "FIRM_HOME": str(self.folder), "TMPDIR": str(self.temporary)}

    def start(self, *, command: Sequence[str] = COMMAND, env: Mapping[str, str] | None = None) -> Daemon:
        """A daemon that serves."""
        return self.launch(command=command, env=env).until_ready()

    def launch(
        self,
        *,
        command: Sequence[str] = COMMAND,
        env: Mapping[str, str] | None = None,
        sockets: Sequence[socket.socket] = (),
    ) -> Daemon:
        """A daemon that was only started. ``sockets`` are given to it as a service manager would."""
        ready, tell = os.pipe()
        # Out of the way of the numbers that the sockets get.
        tell, *doors = (_moved(fd) for fd in (tell, *(os.dup(sock.fileno()) for sock in sockets)))
        try:
            process = subprocess.Popen(
                [*_activated(doors), *command],
                stdin=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                env={**self.environment, "FIRM_READY_FD": str(tell), **(env or {})},
                pass_fds=(tell, *doors),
            )
        finally:
            for fd in (tell, *doors):
                os.close(fd)
        self._daemons.append(Daemon(self, process, ready))
        return self._daemons[-1]

    def refuses(self, *, env: Mapping[str, str] | None = None) -> str:
        """Start a daemon that must end by itself with status 1 and one line: that line."""
        daemon = self.launch(env=env)
        status = daemon.wait()
        assert (status, len(daemon.log.lines)) == (1, 1), f"status {status}:\n{daemon.log}"
        return daemon.log.lines[0]

    def close(self) -> None:
        """End every daemon; raise what the first that ended badly has to say."""
        faults: list[Exception] = []
        for daemon in self._daemons:
            try:
                daemon.close()
            except (AssertionError, TimeoutError) as fault:
                faults.append(fault)
        if faults:
            raise faults[0]


@contextmanager
def new_home(*parts: str) -> Generator[Home]:
    """A home in a short folder of its own (a socket's path has 107 bytes); ``parts`` lengthen its path."""
    base = Path(tempfile.mkdtemp(prefix="firm-", dir=min(tempfile.gettempdir(), "/tmp", key=len)))  # noqa: S108
    (base / "tmp").mkdir(mode=0o700)
    home = Home(base.joinpath(*parts, "home"), base / "tmp")
    try:
        yield home
    finally:
        try:
            home.close()
        finally:
            shutil.rmtree(base)


@pytest.fixture
def home() -> Generator[Home]:
    """A FIRM_HOME that does not exist yet."""
    with new_home() as fresh:
        yield fresh


@pytest.fixture
def daemon(home: Home) -> Daemon:
    """A daemon of this test alone."""
    return home.start()


@pytest.fixture(scope="session")
def shared() -> Generator[Daemon]:
    """One daemon for all tests that neither end it nor mind what others wrote."""
    with new_home() as fresh:
        yield fresh.start()
