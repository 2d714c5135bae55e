"""Becomes the tmux server. Run as ``python -I -S /abs/wrapper.py FOLDER SOCKET CONFIG TMUX LOCK SCOPE``.

It leaves its parent, records itself beside the socket, and only then execs: whoever comes next finds either no server
or its record. LOCK is the descriptor of the starters' lock, which stays held until the record stands, also when the
starter is killed meanwhile. SCOPE is ``scope`` where it was given a control group for itself and what it starts, which
is then recorded; else ``none``.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
from pathlib import Path

_PR_SET_CHILD_SUBREAPER = 36


def record(folder: Path, *, scoped: bool) -> None:
    """Pid, start ticks and boot id of this process, and its control group; exec does not change them."""
    ticks = int(Path("/proc/self/stat").read_bytes().rpartition(b")")[2].split()[19])
    boot = Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
    groups = Path("/proc/self/cgroup").read_text().splitlines() if scoped else []
    group = next((line.removeprefix("0::") for line in groups if line.startswith("0::")), "")
    text = json.dumps({"pid": os.getpid(), "start_ticks": ticks, "boot_id": boot, "group": group})
    part = folder / f"server.json.{os.getpid()}"
    fd = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        os.write(fd, text.encode())
        os.fsync(fd)
    finally:
        os.close(fd)
    part.rename(folder / "server.json")


def become(folder: str, socket: str, config: str, tmux: str, lock: int, *, scoped: bool) -> None:
    """Whatever loses its parent below us becomes our child, and tmux reaps it: the bit survives exec."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "cannot become a subreaper")
    record(Path(folder), scoped=scoped)
    os.set_inheritable(lock, False)  # noqa: FBT003 — positional only
    for name in ("XDG_RUNTIME_DIR", "INVOCATION_ID"):  # of a scope; a terminal is told none of it
        os.environ.pop(name, None)
    # Python ignores these two, and what is ignored stays so for everything below.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    os.execv(tmux, [tmux, "-D", "-S", socket, "-f", config, "-u"])  # noqa: S606 — no shell is what we want


def main(folder: str, socket: str, config: str, tmux: str, lock: str, scope: str) -> int:
    """Returns in the parent once the child has become tmux: then the pipe closed without a word."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid:
        os.close(writing)
        said = os.read(reading, 4096)
        os.write(2, said)
        return 1 if said else 0
    os.close(reading)
    try:
        os.setsid()
        quiet = os.open(os.devnull, os.O_RDWR)
        for fd in (0, 1, 2):
            os.dup2(quiet, fd)
        become(folder, socket, config, tmux, int(lock), scoped=scope == "scope")
    except OSError as error:
        os.write(writing, str(error).encode())
    os._exit(1)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
