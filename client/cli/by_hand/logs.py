"""``firm node logs``: the log file of a detached daemon, or the journal of the unit."""

from __future__ import annotations

import argparse
import os
import sys

from client import paths
from client.cli import service
from client.cli.by_hand.start import LOG


def run(_: str, arguments: list[str]) -> int:
    parser = argparse.ArgumentParser("firm node logs", description="Show what the daemon logged.")
    parser.add_argument(
        "-n", "--lines", type=int, default=40, metavar="N", help="how many of the last lines (default 40)"
    )
    parser.add_argument("-f", "--follow", action="store_true", help="go on as more is written")
    options = parser.parse_args(arguments)
    lines = str(max(options.lines, 0))
    home = paths.home()
    if service.installed(home):
        follow = ["-f"] if options.follow else ["--no-pager"]
        return _exec(["journalctl", "--user", "-u", "firm.service", "-n", lines, *follow])
    path = os.path.join(home, LOG)
    if not os.path.exists(path):
        print(f"firm: No daemon has logged to {path}.", file=sys.stderr)
        print("  A daemon that was started in the foreground logs to its own terminal.", file=sys.stderr)
        return 1
    return _exec(["tail", "-n", lines, *(["-F"] if options.follow else []), path])


def _exec(command: list[str]) -> int:
    sys.stdout.flush()
    try:
        os.execvp(command[0], command)  # noqa: S606 — our own argument list, no shell
    except OSError as error:
        print(f"firm: {command[0]} cannot be run: {error.strerror}. Install it and ask again.", file=sys.stderr)
        return 1
