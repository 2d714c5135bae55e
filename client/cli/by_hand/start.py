"""``firm node start``: one daemon, however many shells ask at once.

Starters queue on ``start.lock``, so that the first starts and the others find it running; nobody polls. Where the
systemd units are installed they start it, else it is started detached with its log in FIRM_HOME.
"""

from __future__ import annotations

import argparse
import fcntl
import os
import select
import subprocess
import sys
import time

from client import paths
from client.cli import ask as door
from client.cli import service
from client.cli.index import DIGEST

LOG = "daemon.log"
_LOG_LIMIT = 8 * 1024 * 1024
_SECONDS = 60


def run(_: str, arguments: list[str]) -> int:
    parser = argparse.ArgumentParser("firm node start", description="Start the daemon of this machine.")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args(arguments)
    if any(name in os.environ for name in ("FIRM_MEMBER_RUN_ID", "FIRM_SESSION")):
        # Such a daemon would hang below the session, and end with it.
        print("firm: A session does not start the daemon. [NOT_AUTHORIZED node start]", file=sys.stderr)
        print("  To lift it: ask the person at this machine to run firm node start.", file=sys.stderr)
        return 1
    home = paths.home()
    try:
        os.makedirs(home, mode=0o700, exist_ok=True)
        lock = os.open(os.path.join(home, "start.lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        print(f"firm: {home} cannot be used: {error.strerror}. [HOME_UNSAFE]", file=sys.stderr)
        print("  To lift it: set FIRM_HOME to a folder you can make.", file=sys.stderr)
        return 1
    fcntl.flock(lock, fcntl.LOCK_EX)
    try:
        running = _status(home)
        if running is not None:
            return _say(running, "runs already", as_json=options.json)
        started = _by_service() if service.installed(home) else _detached(home)
        if started:
            return started
        running = _status(home)
        if running is None:
            print("firm: The daemon started and does not answer. [NODE_DAEMON_UNAVAILABLE]", file=sys.stderr)
            print("  To lift it: read why with firm node logs.", file=sys.stderr)
            return 4
        return _say(running, "started", as_json=options.json)
    finally:
        os.close(lock)


def _status(home: str) -> dict[str, object] | None:
    try:
        answer, _ = door.once(home, DIGEST, "node.status", {}, "")
    except door.Unavailable:
        return None
    found = answer.get("answer")
    return found if isinstance(found, dict) else answer


def _say(status: dict[str, object], what: str, *, as_json: bool) -> int:
    refusal = status.get("refusal")
    if isinstance(refusal, dict):
        print(
            f"firm: A daemon runs and refuses this shell: {refusal['lifted_by']}. [{refusal['code']}]",
            file=sys.stderr,
        )
        return 1
    if as_json:
        import json

        print(json.dumps({"state": what, "status": status}))
    else:
        print(f"The daemon {what}: pid {status['pid']}, daemon_gen={status['daemon_gen']}, home {status['home']}")
    return 0


def _by_service() -> int:
    service.systemctl("reset-failed", *service.UNITS)  # a person asks: earlier failures do not count
    done = service.systemctl("start", *service.UNITS)
    if done.returncode:
        print(
            f"firm: systemd did not start the daemon: {done.stderr.strip()} [NODE_DAEMON_UNAVAILABLE]",
            file=sys.stderr,
        )
        print("  To lift it: read why with firm node logs.", file=sys.stderr)
        return 4
    return 0


def _detached(home: str) -> int:
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
        said = file.read()[-4000:].decode(errors="replace").strip().splitlines()[-20:]
    print("firm: The daemon did not start. It said:", file=sys.stderr)
    print("\n".join(f"  {line}" for line in said) or "  nothing", file=sys.stderr)
    return 1


def _wait(ready: int) -> bool:
    """Whether the daemon wrote that it is ready. Its end closes the pipe; a long start is told."""
    began = time.monotonic()
    with open(ready, "rb", buffering=0) as pipe:
        while (left := began + _SECONDS - time.monotonic()) > 0:
            readable, _, _ = select.select([pipe], [], [], min(left, 2))
            if readable:
                return pipe.read(64).startswith(b"ready")
            print(f"waiting for the daemon ({time.monotonic() - began:.0f} s) …", file=sys.stderr)
    return False


def _rotate(path: str) -> None:
    """Only between daemons: the former one has ended, so nobody writes there now."""
    if os.path.exists(path) and os.path.getsize(path) > _LOG_LIMIT:
        os.replace(path, path + ".1")
