"""Stands in for the tmux server over one terminal of the fake. Run as ``python -I -S /abs/fake_keeper.py PROGRAM …``,
with the terminal as its stdin and a pipe as its stdout.

Starts the program as the first process of that terminal, says its pid, reaps whatever loses its parent below, says how
the first process ended, and ends when nothing is left below it.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import signal
import sys
import termios

_PR_SET_CHILD_SUBREAPER = 36


def first(argv: list[str], told: int) -> None:
    """Becomes the program, in a session whose terminal is stdin."""
    os.setsid()
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    os.dup2(0, 1)
    os.dup2(0, 2)
    os.close(told)
    for number in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    os.execv(argv[0], argv)  # noqa: S606 — no shell is what we want


def main(argv: list[str]) -> int:
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    told = os.dup(1)
    pid = os.fork()
    if pid == 0:
        try:
            first(argv, told)
        except OSError as error:
            os.write(2, f"{argv[0]}: {error.strerror}\n".encode())
        os._exit(1)
    os.write(told, f"pid {pid}\n".encode())
    while True:
        try:
            ended, status = os.wait()
        except ChildProcessError:
            return 0
        if ended == pid:
            os.write(told, f"ended {os.waitstatus_to_exitcode(status)}\n".encode())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
