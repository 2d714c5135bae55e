"""Processes by what proves them: pid and start ticks of this boot, held by a pidfd while something is done to them."""

from __future__ import annotations

import errno
import functools
import os
import select
import signal
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

import attrs
import psutil
import trio

from providers.port import Handle

#: Stands in the environment of everything that a launch starts, unless it was taken out.
MARK = "FIRM_LAUNCH_ID"
_MARKED = f"{MARK}=".encode()
#: What the launcher calls itself until it becomes the program.
LAUNCHER_COMM = "firm-launch"

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_PF_EXITING = 0x4
_SHELLS = frozenset({"ash", "bash", "csh", "dash", "fish", "ksh", "mksh", "nu", "sh", "tcsh", "zsh"})


@functools.cache
def boot_id() -> str:
    """Which start of this machine it is."""
    return _BOOT_ID.read_text("ascii").strip()


@attrs.frozen
class Stat:
    """What the kernel says in one line. ``foreground`` is the process group that its terminal reads for."""

    comm: str
    parent: int
    foreground: int
    flags: int
    start_ticks: int


def stat(pid: int) -> Stat | None:
    """None when there is no such process. One that nobody has reaped yet still has a line."""
    try:
        line = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return None
    head, _, tail = line.rpartition(b")")  # the name may hold anything, brackets too
    fields = tail.split()
    return Stat(
        comm=head.partition(b"(")[2].decode("utf-8", "replace"),
        parent=int(fields[1]),
        foreground=int(fields[5]),
        flags=int(fields[6]),
        start_ticks=int(fields[19]),
    )


@attrs.frozen
class Process:
    """A process, and no other that gets its number later."""

    pid: int
    start_ticks: int

    @contextmanager
    def held(self) -> Iterator[int | None]:
        """Its pidfd, or None when it has ended and been reaped. The ticks are read after opening: only then is the
        number pinned.
        """
        try:
            fd = os.pidfd_open(self.pid)
        except OSError as error:
            if error.errno not in {errno.ESRCH, errno.EINVAL}:  # EINVAL: the number is a thread's by now
                raise
            yield None
            return
        try:
            found = stat(self.pid)
            yield fd if found is not None and found.start_ticks == self.start_ticks else None
        finally:
            os.close(fd)

    def lives(self) -> bool:
        """Whether any thread of it still runs. A zombie does not."""
        with self.held() as fd:
            return fd is not None and not _readable(fd)

    def signal(self, number: signal.Signals) -> bool:
        """Whether it was there to be signalled."""
        with self.held() as fd:
            if fd is None:
                return False
            try:
                signal.pidfd_send_signal(fd, number)
            except ProcessLookupError:
                return False
            return True

    async def ended(self) -> None:
        with self.held() as fd:
            if fd is None:
                await trio.lowlevel.checkpoint()
            else:
                await trio.lowlevel.wait_readable(fd)


async def over(handle: Handle) -> None:
    """Wait for the end of the first process of a terminal. At once when it has ended, or was of an earlier boot."""
    if handle.boot_id == boot_id():
        await Process(handle.pid, handle.start_ticks).ended()
    else:
        await trio.lowlevel.checkpoint()


def process(pid: int) -> Process | None:
    """The process that has this number now."""
    found = stat(pid)
    return None if found is None else Process(pid, found.start_ticks)


def start_ticks_of(pid: int) -> int | None:
    found = stat(pid)
    return None if found is None else found.start_ticks


def environment_of(pid: int) -> list[bytes]:
    """What its environment was when it began, each as ``NAME=VALUE``; nothing where it has ended or may not be read."""
    try:
        return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return []


def _readable(fd: int) -> bool:
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    return bool(poll.poll(0))


def has_execd(pid: int, start_ticks: int) -> bool:
    """Whether the launcher became the program, asked after it said that it execs and its socket closed.

    A closed socket alone proves nothing: a process that is being killed closes it before it shows as ended.
    """
    found = stat(pid)
    return (
        found is not None
        and found.start_ticks == start_ticks
        and not found.flags & _PF_EXITING
        and found.comm != LAUNCHER_COMM
    )


def under(*roots: Process) -> set[Process]:
    """Everything below these processes, without them. Reads all of /proc once: call it in a thread."""
    seen = {pid: found for pid in psutil.pids() if (found := stat(pid)) is not None}
    children: dict[int, list[int]] = {}
    for pid, found in seen.items():
        children.setdefault(found.parent, []).append(pid)
    wanted = [root.pid for root in roots if root.pid in seen and seen[root.pid].start_ticks == root.start_ticks]
    below: set[Process] = set()
    while wanted:
        for pid in children.get(wanted.pop(), ()):
            each = Process(pid, seen[pid].start_ticks)
            if each not in below:
                below.add(each)
                wanted.append(pid)
    return below


def since(first: Process) -> set[Process]:
    """Everything on this machine that is no older than a process. Call it in a thread."""
    found = (process(pid) for pid in psutil.pids())
    return {each for each in found if each is not None and each.start_ticks >= first.start_ticks}


def marked(candidates: set[Process], launch_id: str) -> set[Process]:
    """Those that carry the mark of this launch. One whose environment may not be read carries none that we know of."""
    wanted = f"{MARK}={launch_id}".encode()
    return {each for each in candidates if wanted in environment_of(each.pid)}


def lost_below(roots: Collection[Process], firsts: Collection[int]) -> tuple[int, ...]:
    """The pids of the children of ``roots`` that are none of the ``firsts`` and carry the mark of no launch. Call it in
    a thread.
    """
    parents = {root.pid for root in roots}
    return tuple(sorted(each.pid for each in under(*roots) if each.pid not in firsts and _is_lost(each, parents)))


def _is_lost(each: Process, parents: Collection[int]) -> bool:
    """What is ending shows no mark any more, and is not meant: that is asked last."""
    if any(value.startswith(_MARKED) for value in environment_of(each.pid)):
        return False
    found = stat(each.pid)
    return found is not None and found.parent in parents and not found.flags & _PF_EXITING and each.lives()


def in_front(pid: int) -> Process | None:
    """The leader of the process group that the terminal of ``pid`` reads for, when that is not ``pid`` itself."""
    first = stat(pid)
    if first is None or first.foreground in {pid, -1, 0}:
        return None
    return process(first.foreground)


def shell_in_front(pid: int) -> str:
    """The name of the shell that the terminal of ``pid`` reads for, when ``pid`` is not itself a shell; else empty."""
    first = stat(pid)
    if first is None or first.comm in _SHELLS or first.foreground in {pid, -1, 0}:
        return ""
    front = stat(first.foreground)
    return front.comm if front is not None and front.comm in _SHELLS else ""
