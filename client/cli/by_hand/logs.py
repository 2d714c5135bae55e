"""``firm node logs``: the log file of a detached daemon, or the journal of the unit."""

from __future__ import annotations

import os
import sys

from client import paths
from client.cli import say, service
from client.cli.arguments import Field
from client.cli.by_hand.start import LOG

FIELDS: tuple[Field, ...] = (
    ("lines", "--lines", "int", False, 40, None, False, "", "how many of the last lines"),
    ("follow", "--follow", "switch", False, None, None, False, "", "go on as more is written"),
)


def run(_: str, given: dict[str, object]) -> int:
    lines = str(given.get("lines", 40)).lstrip("-")  # with or without, as people know it from tail
    home = paths.home()
    if service.installed(home):
        follow = ["-f"] if given.get("follow") else ["--no-pager"]
        return _exec(["journalctl", "--user", "-u", "firm.service", "-n", lines, *follow])
    path = os.path.join(home, LOG)
    if not os.path.exists(path):
        lifted_by = "firm node start; a daemon that was started in the foreground logs to its own terminal"
        return say.declined("NO_LOG", "", f"No daemon has logged to {path}.", lifted_by)
    return _exec(["tail", "-n", lines, *(["-F"] if given.get("follow") else []), path])


def _exec(command: list[str]) -> int:
    sys.stdout.flush()
    try:
        os.execvp(command[0], command)  # noqa: S606 — our own argument list, no shell
    except OSError as error:
        meaning = f"{command[0]} cannot be run: {error.strerror}."
        return say.declined("NO_LOG", "", meaning, f"install {command[0]}, then ask again")
