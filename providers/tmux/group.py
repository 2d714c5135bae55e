"""Control groups (version 2): one for each launch, below the one in which a user manager put the tmux server for us.

The kernel ends everything in such a group at once, however it was started and whatever it calls itself, and says when
nothing is in it any more. Who is in one is whoever was put there, and all that it started.
"""

from __future__ import annotations

import logging
import os
import select
import time
from pathlib import Path

import trio

from providers.process import Process, process

log = logging.getLogger(__name__)

#: Seconds in which all of a group has to be gone after it was killed; longer is only what hangs in the kernel.
_EMPTY_WITHIN = 5.0


def group_of(pid: int) -> str:
    """The group of a process, as the kernel names it; empty where there is none."""
    try:
        lines = Path(f"/proc/{pid}/cgroup").read_text().splitlines()
    except OSError:
        return ""
    return next((line.removeprefix("0::") for line in lines if line.startswith("0::")), "")


def delegated(recorded: str, server: Process) -> Path | None:
    """The folder of the group that was recorded as given to the server: while it is in there, and groups can be made
    and killed below it.
    """
    if not recorded or group_of(server.pid) != recorded or (top := _mounted()) is None:
        return None
    folder = top / recorded.lstrip("/")
    return folder if (folder / "cgroup.kill").exists() and os.access(folder, os.W_OK) else None


def _mounted() -> Path | None:
    """Where the whole tree of groups can be seen."""
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        mount, _, filesystem = line.partition(" - ")
        if filesystem.startswith("cgroup2 ") and mount.split()[3] == "/":
            return Path(mount.split()[4])
    return None


def enter(group: Path, pid: int) -> None:
    """Put a process into a group, which is made. Where that cannot be, it stays where it is and is found as others."""
    try:
        group.mkdir(exist_ok=True)
        (group / "cgroup.procs").write_text(str(pid))
    except OSError as error:
        log.warning("no control group for launch=%s: %s", group.name, error.strerror)


def inside(group: Path) -> set[Process]:
    """Everything in a group and below it; nothing where there is none."""
    found: set[Process] = set()
    for folder, _, _ in os.walk(group):  # one that goes meanwhile is passed over
        try:
            pids = Path(folder, "cgroup.procs").read_text().split()
        except OSError:  # it went meanwhile
            continue
        found |= {each for each in (process(int(pid)) for pid in pids) if each is not None}
    return found


async def end(group: Path) -> bool:
    """Whether the kernel killed all of a group and says that nothing is in it any more; then the group is gone too."""
    try:
        return await trio.to_thread.run_sync(_kill, group, abandon_on_cancel=True)
    except OSError as error:
        log.warning("the control group of launch=%s is not ended: %s", group.name, error.strerror)
        return False


def _kill(group: Path) -> bool:
    (group / "cgroup.kill").write_text("1")
    if not _is_empty(group):
        return False
    for folder, _, _ in os.walk(group, topdown=False):
        Path(folder).rmdir()
    return True


def _is_empty(group: Path) -> bool:
    """Once the kernel says so. It tells of each change; nothing is asked again and again."""
    until = time.monotonic() + _EMPTY_WITHIN
    with (group / "cgroup.events").open("rb", buffering=0) as events:
        told = select.poll()
        told.register(events, select.POLLPRI)
        while b"populated 0" not in os.pread(events.fileno(), 4096, 0):
            if not told.poll(max(0.0, until - time.monotonic()) * 1000):
                return False
    return True
