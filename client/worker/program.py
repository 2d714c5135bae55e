"""The program of a Work: which one, its process group, its output to the terminal and to a log, and its end.

It runs in a session and a process group of its own, without a terminal: nothing in it can prompt, and a signal to it
reaches its children too. Whatever happens here, the group is ended before ``run`` returns.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import signal
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Protocol

import attrs
import trio

_CHUNK = 64 * 1024
#: Bytes of the end of the output that are kept to be shown.
_TAIL = 4096
#: Seconds that a program has to end after SIGTERM.
GRACE = 5.0
#: Seconds that what a program left running may still write after its own end, and after it was killed.
_LINGER = 2.0

NEITHER = (
    "nothing says which program runs: begin the Work's context with #! and an interpreter, which makes it a script, or "
    'start the worker with FIRM_COMMAND set to a JSON list of words, such as ["make", "check"]'
)


@attrs.frozen(kw_only=True)
class Program:
    """``argv`` of a command that reads ``stdin``, or a ``script`` that is run as one."""

    argv: tuple[str, ...] = ()
    stdin: bytes = b""
    script: bytes = b""

    @property
    def name(self) -> str:
        return "the script in its context" if self.script else json.dumps(list(self.argv), ensure_ascii=False)


@attrs.frozen(kw_only=True)
class Ended:
    """How a program ended, and what it wrote. ``whole`` is false where the log has not all of it."""

    status: int  # negative: the signal that ended it
    log: Path
    digest: str
    size: int
    tail: bytes
    whole: bool

    @property
    def how(self) -> str:
        if self.status >= 0:
            return f"exit status {self.status}"
        try:
            return f"ended by {signal.Signals(-self.status).name}"
        except ValueError:
            return f"ended by signal {-self.status}"


@attrs.frozen
class NotStarted:
    why: str


def choose(context: str, command: str) -> Program | NotStarted:
    """The program of a Work with this context, where FIRM_COMMAND is ``command``."""
    if context.startswith("#!"):
        return Program(script=context.encode())
    if not command:
        return NotStarted(NEITHER)
    try:
        words = json.loads(command)
    except ValueError:
        words = None
    if not isinstance(words, list) or not words or not all(isinstance(word, str) for word in words):
        return NotStarted(
            'FIRM_COMMAND is no JSON list of words, such as ["make", "check"]; start the worker again with one'
        )
    return Program(argv=tuple(words), stdin=context.encode())


class Log(Protocol):
    def write(self, data: bytes | bytearray, /) -> int | None: ...


class _Output:
    """Takes output as it comes, and keeps no more than its end in memory, and of it all no more than ``most`` bytes."""

    def __init__(self, log: Log, screen: int | None, most: int | None = None) -> None:
        self._log: Log | None = log
        self._screen: int | None = screen
        self._most = most
        self._cut = False
        self._sha = hashlib.sha256()
        self.size = 0
        self.tail = b""
        self.ended = False

    @property
    def whole(self) -> bool:
        return self.ended and self._log is not None and not self._cut

    @property
    def digest(self) -> str:
        return self._sha.hexdigest()

    def take(self, data: bytes | bytearray) -> None:
        """Blocks as long as the terminal does. A full disk ends the log, a closed terminal the showing; not the run."""
        if self._log is not None:
            kept = data if self._most is None else data[: self._most - self.size]
            self._cut |= len(kept) < len(data)
            try:
                self._log.write(kept)
            except OSError:
                self._log = None
            else:
                self._sha.update(kept)
                self.size += len(kept)
        self.tail = (self.tail + data)[-_TAIL:]
        try:
            rest = memoryview(data)
            while rest and self._screen is not None:
                rest = rest[os.write(self._screen, rest) :]
        except OSError:
            self._screen = None


async def run(  # noqa: PLR0913 — what a program is given
    program: Program,
    *,
    env: Mapping[str, str],
    folder: Path,
    log: Path,
    screen: int | None = 1,
    grace: float = GRACE,
    most: int | None = None,
) -> Ended | NotStarted:
    """Run it to its end. Cancelled, it ends the program first: TERM, and KILL after ``grace`` seconds.

    Its log takes ``most`` bytes, and what comes after them is read and thrown away.
    """
    try:
        file = await trio.to_thread.run_sync(_open, log)
    except OSError as error:
        return NotStarted(f"its log {log} cannot be written: {error.strerror or error}")
    with file:
        output = _Output(file, screen, most)
        with _argv(program) as (argv, needed):
            try:
                process = await trio.lowlevel.open_process(
                    argv,
                    stdin=subprocess.PIPE if program.stdin else subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                    pass_fds=needed,
                    env=dict(env),
                    cwd=folder,
                )
            except (OSError, ValueError, subprocess.SubprocessError) as error:
                return NotStarted(f"{program.name} cannot be started: {error}")
            status = await _to_its_end(process, program.stdin, output, grace)
    return Ended(status=status, log=log, digest=output.digest, size=output.size, tail=output.tail, whole=output.whole)


def _open(log: Path) -> io.FileIO:
    log.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    fd = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    return io.FileIO(fd, "wb")


@contextlib.contextmanager
def _argv(program: Program) -> Iterator[tuple[list[str], tuple[int, ...]]]:
    """The words to run, and what they need open. A script is a file without a name: a worker that is killed leaves
    nothing behind of it.
    """
    if not program.script:
        yield list(program.argv), ()
        return
    fd = _written(program.script)
    try:
        yield [f"/proc/self/fd/{fd}"], (fd,)
    finally:
        os.close(fd)


def _written(script: bytes) -> int:
    with os.fdopen(os.memfd_create("firm-script"), "wb") as file:
        file.write(script)
        file.flush()
        # Only to be read: what somebody may still write to is not executed.
        return os.open(f"/proc/self/fd/{file.fileno()}", os.O_RDONLY | os.O_CLOEXEC)


async def _to_its_end(process: trio.Process, stdin: bytes, output: _Output, grace: float) -> int:
    # Its own pidfd: a process that was not reaped keeps its number, and so its group can be signalled to the last.
    pidfd = os.pidfd_open(process.pid)
    pouring, poured = trio.CancelScope(shield=True), trio.Event()
    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_pour, process.stdout, output, pouring, poured)
            if process.stdin is not None:
                nursery.start_soon(_feed, process.stdin, stdin)
            try:
                await trio.lowlevel.wait_readable(pidfd)
            except trio.Cancelled:
                with trio.CancelScope(shield=True):
                    await _end(process.pid, pidfd, grace)
                raise
            finally:
                with trio.CancelScope(shield=True):
                    await _end_the_rest(process.pid, poured, grace)
                    await process.wait()
                pouring.cancel()
                nursery.cancel_scope.cancel()
    finally:
        os.close(pidfd)
        with trio.CancelScope(shield=True):
            await process.stdout.aclose() if process.stdout is not None else None
    assert process.returncode is not None, "it was waited for"
    return process.returncode


async def _end(group: int, pidfd: int, grace: float) -> None:
    """End the program itself."""
    _signal(group, signal.SIGTERM)
    with trio.move_on_after(grace) as scope:
        await trio.lowlevel.wait_readable(pidfd)
    if scope.cancelled_caught:
        _signal(group, signal.SIGKILL)
        await trio.lowlevel.wait_readable(pidfd)


async def _end_the_rest(group: int, poured: trio.Event, grace: float) -> None:
    """End what the program left in its group. One that writes the last of the output may still do so for a moment."""
    for seconds, number in ((_LINGER, signal.SIGTERM), (grace, signal.SIGKILL), (_LINGER, None)):
        with trio.move_on_after(seconds):
            await poured.wait()
        if number is not None:
            _signal(group, number)


def _signal(group: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):  # nobody is left in it
        os.killpg(group, number)


async def _pour(
    stream: trio.abc.ReceiveStream | None, output: _Output, scope: trio.CancelScope, poured: trio.Event
) -> None:
    assert stream is not None, "asked for"
    with scope:
        while data := await stream.receive_some(_CHUNK):
            await trio.to_thread.run_sync(output.take, data, abandon_on_cancel=True)
        output.ended = True
    poured.set()


async def _feed(stream: trio.abc.SendStream, data: bytes) -> None:
    # A program need not read what it is given.
    with contextlib.suppress(trio.BrokenResourceError):
        await stream.send_all(data)
    await stream.aclose()
