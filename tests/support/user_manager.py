"""A real ``systemd --user`` for one test: its own folders, its own control group, nothing left afterwards.

As root a manager moves every process of the control group that it starts in to a scope of its own: it is
never started in ours. Units write to ``log()``. What the manager itself has to say goes to the journal, or to
nobody: ask ``show()``.
"""

from __future__ import annotations

import fcntl
import os
import select
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

#: systemd runs, for a user too, only where this folder exists.
_BOOTED = Path("/run/systemd/system")
_MARK = _BOOTED / ".made-by-firm-tests"
_SYSTEMD = Path("/usr/lib/systemd/systemd")
#: All that a manager needs of its distribution. A desktop's own user services are not for a test to start.
_STANDARD = (
    *(f"{name}.target" for name in ("basic", "default", "exit", "paths", "shutdown", "sockets", "timers")),
    *("app.slice", "background.slice", "session.slice", "systemd-exit.service"),
)
_ENTER = 'while [ "$1" != -- ]; do echo $$ >"$1/cgroup.procs" || exit; shift; done; shift; exec "$@"'
_PATIENCE = 30.0


class UserManagerUnavailable(Exception):
    """Why no manager can run here, as one sentence."""


@dataclass(frozen=True)
class UserManager:
    """A running manager. ``environment`` is its user's: whatever talks to ``systemctl --user`` needs it."""

    root: Path
    environment: dict[str, str]
    process: subprocess.Popen[bytes]
    group: Path

    @property
    def unit_folder(self) -> Path:
        """Where this user's own units belong."""
        return Path(self.environment["XDG_CONFIG_HOME"], "systemd/user")

    def run(self, *command: str, seconds: float = _PATIENCE) -> subprocess.CompletedProcess[str]:
        """``command`` as this user would run it."""
        return subprocess.run(
            command, env=self.environment, capture_output=True, text=True, timeout=seconds, check=False
        )

    def systemctl(self, *arguments: str) -> str:
        """What ``systemctl --user`` prints. Raises with the reasons where it fails."""
        done = self.run("systemctl", "--user", "--no-pager", *arguments)
        if done.returncode:
            status = self.run("systemctl", "--user", "--no-pager", "--full", "status", *arguments[1:])
            raise AssertionError(f"systemctl {arguments}: {done.stderr}\n{status.stdout}\n{self.log()}")
        return done.stdout

    def show(self, unit: str, name: str) -> str:
        """One property of a unit, such as ``ActiveState``, ``Result`` or ``MainPID``."""
        return self.systemctl("show", unit, "--value", f"--property={name}").strip()

    def log(self) -> str:
        """All that units have written to stdout and stderr."""
        with suppress(FileNotFoundError):
            return (self.root / "units.log").read_text()
        return ""

    def adopt(self, pid: int, unit: str) -> None:
        """Put a process where the children of ``unit``'s main process are."""
        for group in _groups_of(int(self.show(unit, "MainPID"))):
            (group / "cgroup.procs").write_text(str(pid))

    def kill(self) -> None:
        """End the manager and everything in it without a word, as when the machine loses power."""
        self.process.kill()
        self.process.wait(_PATIENCE)
        _end(self.group)


def available() -> str | None:
    """Why no user manager can be started here; None where it can be tried."""
    if not _SYSTEMD.exists() or not all(map(shutil.which, ("systemctl", "setpriv"))):
        return "systemd is not installed"
    if not _BOOTED.is_dir() and not (os.geteuid() == 0 and _BOOTED.parent.is_dir()):
        return f"{_BOOTED} is missing, and only root may make it for a moment"
    if not _ours() and not _scopes():
        return "no control group is ours to write, and no user manager is there to ask for one"
    return None


@contextmanager
def user_manager() -> Generator[UserManager]:
    """Start a manager, yield it once it is ready, end it with all that it started.

    Raises ``UserManagerUnavailable`` with the reason where that cannot be done here.
    """
    if reason := available():
        raise UserManagerUnavailable(reason)
    with ExitStack() as stack:
        stack.enter_context(_booted())
        root = stack.enter_context(_folder())
        environment = _environment(root)
        ready = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
        ready.bind(f"{root}/notify")
        enter = stack.enter_context(_control_group(root.name))
        assignments = [f"{name}={value}" for name, value in environment.items()]
        enter = [*enter, "setpriv", "--pdeathsig", "TERM"]  # when we are killed, it is told to go
        process = subprocess.Popen(
            [*enter, "env", "-i", f"NOTIFY_SOCKET={root}/notify", *assignments, str(_SYSTEMD), "--user"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            _wait_ready(process.pid, ready)
            ready.close()  # it goes on telling, and would stand still for ever before a queue that nobody empties
            yield UserManager(root, environment, process, _groups_of(process.pid)[0].parent)  # not init.scope
        finally:
            process.kill()
            process.wait(_PATIENCE)


def _wait_ready(pid: int, ready: socket.socket) -> None:
    deadline = time.monotonic() + _PATIENCE
    ended = os.pidfd_open(pid)
    try:
        either = [ready.fileno(), ended]
        while readable := select.select(either, [], [], max(0, deadline - time.monotonic()))[0]:
            if ready.fileno() not in readable:
                raise UserManagerUnavailable("systemd --user ended before it was ready")
            if b"READY=1" in ready.recv(4096).split(b"\n"):
                return
    finally:
        os.close(ended)
    raise UserManagerUnavailable(f"systemd --user was not ready within {_PATIENCE} s")


@contextmanager
def _booted() -> Generator[None]:
    # Test runs share the folder by a lock on it. Made by one of them, it is marked and the last removes it.
    while True:
        with suppress(FileExistsError):
            _BOOTED.mkdir(mode=0o755)
            _MARK.touch()
        folder = os.open(_BOOTED, os.O_RDONLY | os.O_DIRECTORY)
        fcntl.flock(folder, fcntl.LOCK_SH)
        if _BOOTED.exists() and os.path.samestat(os.fstat(folder), _BOOTED.stat()):
            break
        os.close(folder)
    try:
        yield
    finally:
        with suppress(BlockingIOError):
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _MARK.exists():
                _MARK.unlink()
                _BOOTED.rmdir()
        os.close(folder)


@contextmanager
def _folder() -> Generator[Path]:
    # The shorter of the two: sockets in it have 107 bytes.
    root = Path(tempfile.mkdtemp(prefix="firm-um-", dir=min(tempfile.gettempdir(), "/tmp", key=len)))  # noqa: S108
    try:
        yield root
    finally:
        for folder in root.glob("run/systemd/inaccessible/*"):
            folder.chmod(0o700)
        shutil.rmtree(root)


def _environment(root: Path) -> dict[str, str]:
    """Fill the folder of a new user, and say how its programs find it."""
    for name in ("run", "home", "config/systemd/user", "state", "data", "none", "units"):
        (root / name).mkdir(parents=True, mode=0o700)
    for name in _STANDARD:
        shutil.copy(_SYSTEMD.parent / "user" / name, root / "units" / name)
    for kind in ("service", "socket"):
        to_file = f"append:{root}/units.log"
        section = f"[{kind.title()}]\nStandardOutput={to_file}\nStandardError={to_file}\n"
        (root / "units" / f"{kind}.d").mkdir()
        (root / "units" / f"{kind}.d" / "log.conf").write_text(section)
    return {
        "PATH": os.environ["PATH"],
        "LANG": "C.UTF-8",
        "HOME": f"{root}/home",
        "XDG_RUNTIME_DIR": f"{root}/run",
        "XDG_CONFIG_HOME": f"{root}/config",
        "XDG_STATE_HOME": f"{root}/state",
        "XDG_DATA_HOME": f"{root}/data",
        "SYSTEMD_UNIT_PATH": f"{root}/config/systemd/user:{root}/run/systemd/transient:{root}/units",
        "SYSTEMD_GENERATOR_PATH": f"{root}/none",
        "SYSTEMD_ENVIRONMENT_GENERATOR_PATH": f"{root}/none",
    }


@contextmanager
def _control_group(name: str) -> Generator[Sequence[str]]:
    """What to put before a command so that it runs in a control group of its own, emptied at the end."""
    groups = [group / name for group in _ours()]
    if not groups:
        scope = [
            "--scope",
            "--quiet",
            "--collect",
            f"--unit={name}",
            "-p",
            "Delegate=yes",
            "-p",
            "KillSignal=SIGKILL",
        ]
        try:
            yield ["systemd-run", "--user", *scope, "--"]
        finally:
            subprocess.run(["systemctl", "--user", "stop", f"{name}.scope"], timeout=_PATIENCE, check=False)
        return
    try:
        for group in groups:
            group.mkdir()
        yield ["sh", "-c", _ENTER, "sh", *map(str, groups), "--"]
    finally:
        _end(groups[0])
        for group in groups:
            for folder in sorted(group.glob("**/"), reverse=True):
                folder.rmdir()


def _end(group: Path) -> None:
    """Kill what is left in ``group`` and below, until nothing is."""
    deadline = time.monotonic() + _PATIENCE
    while pids := _members(group):
        if time.monotonic() > deadline:
            raise AssertionError(f"still there after SIGKILL: {sorted(pids)}")
        for pid in pids:
            with suppress(ProcessLookupError):
                _kill(pid, group)


def _kill(pid: int, group: Path) -> None:
    handle = os.pidfd_open(pid)
    try:
        if pid in _members(group):  # asked when the number can no longer pass to a stranger
            signal.pidfd_send_signal(handle, signal.SIGKILL)
            select.select([handle], [], [], _PATIENCE)
    finally:
        os.close(handle)


def _members(group: Path) -> set[int]:
    return {int(pid) for file in group.glob("**/cgroup.procs") for pid in file.read_text().split()}


def _groups_of(pid: int) -> list[Path]:
    """The folders in which systemd keeps a process: the unified tree, the named one of version 1, or both."""
    mounts: dict[str, tuple[str, str]] = {}
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        left, _, right = line.partition(" - ")
        root, where = left.split()[3:5]
        kind, _, options = right.split(maxsplit=2)
        name = {"cgroup2": "", "cgroup": "name=systemd"}.get(kind)
        if name is not None and (not name or name in options.split(",")):
            mounts.setdefault(name, (root, where))
    folders: list[Path] = []
    for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines():
        _, name, path = line.split(":", 2)
        if name in mounts:
            root, where = mounts[name]
            folders.append(Path(where, path.removeprefix(root).lstrip("/")))
    return folders


def _ours() -> list[Path]:
    """The control groups we are in, if we may make others in them."""
    groups = _groups_of(os.getpid())
    mine = all(os.access(path, os.W_OK) for group in groups for path in (group, group / "cgroup.procs"))
    return groups if mine else []


def _scopes() -> bool:
    if not shutil.which("systemd-run"):
        return False
    asked = subprocess.run(["systemctl", "--user", "show-environment"], capture_output=True, timeout=10, check=False)
    return asked.returncode == 0
