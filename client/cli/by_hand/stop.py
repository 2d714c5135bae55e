"""``firm node stop``: drain, end, and wait until the process is gone. The sockets of installed units stop too."""

from __future__ import annotations

import argparse
import os
import select
import sys

from client import paths
from client.cli import ask as door
from client.cli import service
from client.cli.index import DIGEST
from client.cli.main import refused

_SECONDS = 75


def run(_: str, arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(
        "firm node stop", description="Drain the daemon, end it and wait until it is gone."
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args(arguments)
    home = paths.home()
    if service.installed(home):
        # The kernel names the process that listened first, systemd, as the peer of its sockets: ask systemd who serves.
        pid = int(service.systemctl("show", "--value", "--property=MainPID", "firm.service").stdout or 0)
        service.systemctl("stop", *service.UNITS)  # returns when the process is gone
        if pid:
            _say(f"The daemon, pid {pid}, has ended.", {"stopped": True, "pid": pid}, as_json=options.json)
            return 0
    return _stop(home, as_json=options.json)


def _stop(home: str, *, as_json: bool) -> int:
    try:
        conversation = door.Conversation(home, DIGEST)
    except door.Unavailable:
        _say("No daemon runs.", {"stopped": False, "pid": None}, as_json=as_json)
        return 0
    pid = conversation.peer_pid()
    try:
        process = os.pidfd_open(pid)
    except ProcessLookupError:
        _say("The daemon has just ended.", {"stopped": True, "pid": pid}, as_json=as_json)
        return 0
    try:
        answer = conversation.ask("node.stop", {})
    except door.Unavailable:
        answer = {}  # it ended before its answer left; the process tells
    refusal = answer.get("refusal")
    if isinstance(refusal, dict) and refusal["code"] != "NODE_DAEMON_DRAINING":
        return refused(refusal, conversation.welcome, as_json=as_json)
    if not _gone(process):
        print(
            f"firm: The daemon, pid {pid}, still runs after {_SECONDS} s. [NODE_DAEMON_DRAINING]",
            file=sys.stderr,
        )
        print("  To lift it: read why with firm node logs, then ask again.", file=sys.stderr)
        return 3
    _say(f"The daemon, pid {pid}, has ended.", {"stopped": True, "pid": pid}, as_json=as_json)
    return 0


def _gone(process: int) -> bool:
    poll = select.poll()
    poll.register(process, select.POLLIN)
    return bool(poll.poll(_SECONDS * 1000))


def _say(text: str, found: dict[str, object], *, as_json: bool) -> None:
    if as_json:
        import json

        text = json.dumps(found)
    print(text)
