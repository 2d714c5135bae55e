"""``firm node start``: one daemon, however many shells ask at once.

Starters queue on ``start.lock``, so that the first starts and the others find it running; nobody polls. Where the
systemd units are installed they start it, else it is started detached with its log in FIRM_HOME.
"""

from __future__ import annotations

import fcntl
import os
import select
import subprocess
import sys
import time

from client import paths
from client.cli import ask as door
from client.cli import say, service
from client.cli.arguments import JSON, Field
from client.cli.holder import gone, holder
from client.cli.index import DIGEST

FIELDS: tuple[Field, ...] = (JSON,)
LOG = "daemon.log"
_LOG_LIMIT = 8 * 1024 * 1024
_SECONDS = 60
_ENDING_SECONDS = 20
_SAID = 4000


def run(_: str, given: dict[str, object]) -> int:
    as_json = bool(given.get("_json"))
    if paths.MARK in os.environ:
        # Such a daemon would hang below the session, and end with it.
        meaning, lifted_by = "A session does not start the daemon.", "ask the person at this machine: firm node start"
        return say.declined("NOT_AUTHORIZED", "node start", meaning, lifted_by, as_json=as_json)
    home = paths.home()
    try:
        os.makedirs(home, mode=0o700, exist_ok=True)
        lock = os.open(os.path.join(home, "start.lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        meaning, lifted_by = f"{home} cannot be used: {error.strerror}.", "set FIRM_HOME to a folder you can make"
        return say.declined("HOME_UNUSABLE", "", meaning, lifted_by, as_json=as_json)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return _start(home, as_json=as_json)
    finally:
        os.close(lock)


def _start(home: str, *, as_json: bool) -> int:
    running = _status(home)
    if running is None and (pid := holder(home)):
        say.err(f"firm: waiting for the daemon, pid {pid}, that holds FIRM_HOME and does not answer …")
        gone(pid, _ENDING_SECONDS)
        running = _status(home)
    if running is not None:
        return _say(running, "runs already", as_json=as_json)
    failed = _by_service(as_json=as_json) if service.installed(home) else _detached(home, as_json=as_json)
    if failed:
        return failed
    running = _status(home)
    if running is None:
        meaning, lifted_by = "The daemon started and does not answer.", "read why: firm node logs"
        return say.declined(say.UNAVAILABLE, "", meaning, lifted_by, as_json=as_json)
    return _say(running, "started", as_json=as_json)


def _status(home: str) -> dict[str, object] | None:
    try:
        answer, _ = door.once(DIGEST, "node.status", {}, "", home=home)
    except door.Unavailable:
        return None
    found = answer.get("answer")
    return found if isinstance(found, dict) else answer


def _say(status: dict[str, object], what: str, *, as_json: bool) -> int:
    refusal = status.get("refusal")
    if isinstance(refusal, dict):
        meaning = "A daemon runs, and refuses this shell."
        return say.declined(str(refusal["code"]), "", meaning, str(refusal["lifted_by"]), as_json=as_json)
    text = f"The daemon {what}: pid {status['pid']}, daemon_gen={status['daemon_gen']}, home {status['home']}"
    say.out(say.dumps({"state": what, "status": status}) if as_json else text)
    return 0


def _by_service(*, as_json: bool) -> int:
    service.systemctl("reset-failed", *service.UNITS)  # a person asks: earlier failures do not count
    done = service.systemctl("start", *service.UNITS, within=service.CHANGES)
    if not done.returncode:
        return 0
    meaning = f"systemd did not start the daemon: {' '.join(done.stderr.split())}"
    lifted_by = "read why: firm node logs"
    return say.declined(say.UNAVAILABLE, "", meaning, lifted_by, as_json=as_json)


def _detached(home: str, *, as_json: bool) -> int:
    log_path = os.path.join(home, LOG)
    _rotate(log_path)
    log = os.open(log_path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    begin = os.fstat(log).st_size
    ready, tell = os.pipe()
    environment = {**os.environ, "FIRM_HOME": home, "FIRM_READY_FD": str(tell)}
    with open(os.devnull, "rb") as nothing:
        subprocess.Popen(
            [sys.executable, "-I", "-m", "daemon", "run"],
            stdin=nothing,
            stdout=log,
            stderr=log,
            env=environment,
            cwd="/",
            start_new_session=True,
            pass_fds=(tell,),
        )
    os.close(tell)
    os.close(log)
    if _wait(ready):
        return 0
    with open(log_path, "rb") as file:
        file.seek(begin)
        said = file.read()[-_SAID:].decode(errors="replace").strip().splitlines()[-20:]
    return _why(said, log_path, as_json=as_json)


def _why(said: list[str], log_path: str, *, as_json: bool) -> int:
    """Say what the daemon said at its end: one line of a known form, or whatever it was."""
    why = say.last_words(said[-1] if said else "")
    if why is not None:
        code, what, lifted_by = why
        return say.declined(code, "", f"The daemon did not start: {what}", lifted_by, as_json=as_json)
    status = say.declined(
        say.UNAVAILABLE, "", "The daemon did not start.", f"read what it said: {log_path}", as_json=as_json
    )
    if not as_json:
        say.err("\n".join(f"  | {line}" for line in said) or "  It said nothing.")
    return status


def _wait(ready: int) -> bool:
    """Whether the daemon wrote that it is ready. Its end closes the pipe; a long start is told."""
    began = time.monotonic()
    with open(ready, "rb", buffering=0) as pipe:
        while (left := began + _SECONDS - time.monotonic()) > 0:
            readable, _, _ = select.select([pipe], [], [], min(left, 2))
            if readable:
                return pipe.read(64).startswith(b"ready")
            say.err(f"firm: waiting for the daemon ({time.monotonic() - began:.0f} s) …")
    return False


def _rotate(path: str) -> None:
    """Only between daemons: the former one has ended, so nobody writes there now."""
    if os.path.exists(path) and os.path.getsize(path) > _LOG_LIMIT:
        os.replace(path, path + ".1")
