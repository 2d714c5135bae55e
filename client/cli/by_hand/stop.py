"""``firm node stop``: drain, end, and wait until the process is gone. The sockets of installed units stop too."""

from __future__ import annotations

import os

from client import paths
from client.cli import ask as door
from client.cli import say, service
from client.cli.arguments import JSON, Field
from client.cli.holder import ends, gone, holder
from client.cli.index import DIGEST

FIELDS: tuple[Field, ...] = (JSON,)
#: More than a drain may take. One that holds the lock and has closed its doors is in the middle of it.
_SECONDS = 75
_CLOSED_SECONDS = 20
_READ_WHY = "read why, then ask again: firm node logs"


def run(_: str, given: dict[str, object]) -> int:
    as_json = bool(given.get("_json"))
    home = paths.home()
    if service.installed(home):
        # Who holds the lock; where the kernel's list names that file system otherwise, as systemd knows it.
        pid = holder(home) or service.main_pid()
        done = service.systemctl("stop", *service.UNITS, within=service.CHANGES)  # returns when the process is gone
        if done.returncode:
            meaning = f"systemd did not stop {' and '.join(service.UNITS)}: {' '.join(done.stderr.split())}"
            return say.declined("NODE_DAEMON_DRAINING", "", meaning, _READ_WHY, as_json=as_json)
        if pid and gone(pid, 0):
            return _stopped(pid, as_json=as_json)
    return _stop(home, as_json=as_json)


def _stop(home: str, *, as_json: bool) -> int:
    try:
        conversation = door.Conversation(DIGEST, home=home)
    except door.Unavailable:
        return _unanswered(holder(home), as_json=as_json)
    # The kernel names whoever listened first as the peer, and that is systemd where it opened the socket.
    pid = holder(home) or conversation.peer_pid()
    try:
        process = os.pidfd_open(pid)
    except ProcessLookupError:
        return _stopped(pid, as_json=as_json)
    try:
        answer = conversation.ask("node.stop", {})
    except door.Unavailable:
        answer = {}  # it ended before its answer left; the process tells
    refusal = answer.get("refusal")
    if isinstance(refusal, dict) and refusal["code"] != "NODE_DAEMON_DRAINING":
        return say.refused(refusal, conversation.welcome, as_json=as_json)
    if not ends(process, _SECONDS):
        return _still_there(pid, f"still runs after {_SECONDS} s", as_json=as_json)
    return _stopped(pid, as_json=as_json)


def _unanswered(pid: int, *, as_json: bool) -> int:
    """Nobody answers. That no daemon runs is said only when nobody holds the folder."""
    if not pid:
        say.out(say.dumps({"stopped": False, "pid": None}) if as_json else "No daemon runs.")
        return 0
    say.err(f"firm: waiting for the daemon, pid {pid}, that holds FIRM_HOME and does not answer …")
    if not gone(pid, _CLOSED_SECONDS):
        return _still_there(pid, "holds FIRM_HOME and does not answer", as_json=as_json)
    return _stopped(pid, as_json=as_json)


def _stopped(pid: int, *, as_json: bool) -> int:
    say.out(say.dumps({"stopped": True, "pid": pid}) if as_json else f"The daemon, pid {pid}, has ended.")
    return 0


def _still_there(pid: int, how: str, *, as_json: bool) -> int:
    return say.declined("NODE_DAEMON_DRAINING", "", f"The daemon, pid {pid}, {how}.", _READ_WHY, as_json=as_json)
