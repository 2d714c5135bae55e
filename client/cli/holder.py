"""Who holds FIRM_HOME, when nobody answers there: a daemon that starts, ends or hangs. From the kernel's own list."""

from __future__ import annotations

import os
import select


def holder(home: str) -> int:
    """The pid of the process with the lock on the folder; 0 where nobody has it or it cannot be seen.

    Looked up, not tried: a try would hold the lock for a moment, and a daemon that starts just then would give up.
    """
    try:
        found = os.stat(home)
        with open("/proc/locks", encoding="ascii") as file:
            lines = [line.split() for line in file]
    except OSError:
        return 0
    place = f"{os.major(found.st_dev):02x}:{os.minor(found.st_dev):02x}:{found.st_ino}"
    return next((int(w[4]) for w in lines if w[1:2] == ["FLOCK"] and w[3] == "WRITE" and w[5] == place), 0)


def ends(process: int, seconds: float) -> bool:
    """Whether the process of a pidfd ends within this time."""
    poll = select.poll()
    poll.register(process, select.POLLIN)
    return bool(poll.poll(seconds * 1000))


def gone(pid: int, seconds: float) -> bool:
    """Whether that process ends within this time."""
    try:
        process = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return ends(process, seconds)
    finally:
        os.close(process)
