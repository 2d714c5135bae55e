"""``firm node logs``: the log file of a detached daemon, or the journal of the unit."""

from __future__ import annotations

import os
import subprocess
import sys

from client import paths
from client.cli import say, service
from client.cli.arguments import JSON, Field, Usage
from client.cli.by_hand.start import LOG

FIELDS: tuple[Field, ...] = (
    ("lines", "--lines", "int", False, 40, None, False, "", "how many of the last lines"),
    ("follow", "--follow", "switch", False, None, None, False, "", "go on as more is written"),
    JSON,
)


def run(_: str, given: dict[str, object]) -> int:
    as_json = bool(given.get("_json"))
    if as_json and given.get("follow"):
        raise Usage("--json and --follow do not go together", "leave one of them out")
    lines = str(given.get("lines", 40)).lstrip("-")  # with or without, as people know it from tail
    home = paths.home()
    if service.installed(home):
        follow = ["-f"] if given.get("follow") else ["--no-pager"]
        return _shown("journal", ["journalctl", "--user", "-u", "firm.service", "-n", lines, *follow], as_json=as_json)
    path = os.path.join(home, LOG)
    if not os.path.exists(path):
        lifted_by = "firm node start; a daemon that was started in the foreground logs to its own terminal"
        return say.declined("NO_LOG", "", f"No daemon has logged to {path}.", lifted_by, as_json=as_json)
    return _shown(path, ["tail", "-n", lines, *(["-F"] if given.get("follow") else []), path], as_json=as_json)


def _shown(log: str, command: list[str], *, as_json: bool) -> int:
    sys.stdout.flush()
    try:
        if not as_json:
            os.execvp(command[0], command)  # noqa: S606 — our own argument list, no shell
        done = subprocess.run(command, stdout=subprocess.PIPE, check=False)
    except OSError as error:
        meaning = f"{command[0]} cannot be run: {error.strerror}."
        return say.declined("NO_LOG", "", meaning, f"install {command[0]}, then ask again", as_json=as_json)
    lines = done.stdout.decode(errors="replace").splitlines()
    say.out(say.dumps({"log": log, "lines": lines}))
    return done.returncode
