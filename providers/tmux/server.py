"""One private tmux server: started or adopted, proven, asked, and its death noticed.

It is found by the path of its socket and known by pid, start ticks and boot id, which it recorded beside the socket
before it began. No other tmux server of this machine is ever looked for.
"""

from __future__ import annotations

import fcntl
import json
import logging
import os
import shutil
import signal
import stat
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import attrs
import trio

from providers.port import Unreachable
from providers.process import Process, boot_id
from providers.tmux.group import delegated

SOCKET_BYTES = 100  # the kernel takes 107; what is longer is refused before anything starts
SIZE = (220, 50)

#: Everything an agent's terminal gets of the environment that the daemon runs in. Its own comes through the launcher.
ALLOWED = ("HOME", "LOGNAME", "PATH", "TZ", "USER")

_CONFIG = f"""\
# Written anew by each start of the server; see docs/decisions/0011-the-tmux-provider.md.
set -s exit-empty off
set -s set-clipboard off
set -s escape-time 0
set -g remain-on-exit on
set -gq remain-on-exit-format ""
set -gq allow-passthrough off
set -g history-limit 5000
set -g default-size {SIZE[0]}x{SIZE[1]}
set -g default-shell /bin/sh
set -g update-environment ""
set -g status off
set -g allow-rename off
set -g automatic-rename off
set -g set-titles off
set -g bell-action none
unbind-key -a -T root
unbind-key -a -T prefix
bind-key -T prefix d detach-client
bind-key -T prefix [ copy-mode
"""

log = logging.getLogger(__name__)

_WRAPPER = Path(__file__).with_name("wrapper.py")
_TRY_AGAIN = 0.01
_OTHERS = 0o077


def environment() -> dict[str, str]:
    kept = {name: os.environ[name] for name in ALLOWED if name in os.environ}
    return {"PATH": os.defpath, **kept, "LC_ALL": "C.UTF-8", "TERM": "xterm-256color"}


@attrs.frozen(kw_only=True)
class Scope:
    """What starts a command in a scope of the user manager's: the words before it, and what those need to be told."""

    words: tuple[str, ...]
    told: Mapping[str, str]


def scope(own: Mapping[str, str]) -> Scope | None:
    """Where a unit of a user manager starts us (``own`` is its environment): a scope that is no part of that unit."""
    found = shutil.which("systemd-run", path=environment()["PATH"])
    if found is None or "INVOCATION_ID" not in own or "XDG_RUNTIME_DIR" not in own:
        return None
    asked = ("--user", "--scope", "--quiet", "--collect", "--description=firm: terminals", "--property=Delegate=yes")
    return Scope(words=(found, *asked, "--"), told={"XDG_RUNTIME_DIR": own["XDG_RUNTIME_DIR"]})


@attrs.frozen(kw_only=True)
class Places:
    """Where a server's files are: its socket, what it recorded of itself, its configuration, the starters' lock."""

    folder: Path
    scope: Scope | None = None  # in which a server is started

    @property
    def socket(self) -> Path:
        return self.folder / "tmux.sock"

    @property
    def record(self) -> Path:
        return self.folder / "server.json"

    @property
    def config(self) -> Path:
        return self.folder / "tmux.conf"

    @property
    def lock(self) -> Path:
        return self.folder / "start.lock"

    def make(self) -> Unreachable | None:
        """The folder, if it is or can be ours alone."""
        if len(os.fsencode(self.socket)) > SOCKET_BYTES:
            return Unreachable(
                detail=f"the path of the tmux socket is longer than {SOCKET_BYTES} bytes; "
                f"choose a shorter folder than {self.folder}"
            )
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            found = self.folder.lstat()
        except OSError as error:
            return Unreachable(detail=f"cannot make {self.folder}: {error.strerror}")
        if found.st_uid != os.geteuid() or stat.S_IFMT(found.st_mode) != stat.S_IFDIR or found.st_mode & _OTHERS:
            return Unreachable(detail=f"{self.folder} must be a folder of yours with mode 0700")
        return None

    def recorded(self) -> Process | None:
        """The server that recorded itself here, if that was since the machine started."""
        try:
            said = json.loads(self.record.read_bytes())
            return Process(int(said["pid"]), int(said["start_ticks"])) if said["boot_id"] == boot_id() else None
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            return None

    def group(self) -> str:
        """The control group that it recorded as given to it; empty where it was given none."""
        try:
            return str(json.loads(self.record.read_bytes()).get("group", ""))
        except (FileNotFoundError, ValueError):
            return ""


@attrs.frozen(kw_only=True)
class Said:
    """What one call of tmux answered."""

    status: int
    out: str
    error: str


@attrs.frozen(kw_only=True)
class Server:
    """A server that has proven itself once. ``ask`` may find at any time that it is gone."""

    places: Places
    process: Process
    tmux: str
    patience: float  # seconds each call may take
    adopted: bool  # it ran before this object
    group: Path | None = None  # below which each launch gets a control group of its own

    async def ask(self, *words: str, stdin: bytes = b"", cwd: str = "/") -> Said | Unreachable:
        """One call of tmux, which starts no server by itself (-N)."""
        command = [self.tmux, "-N", "-u", "-S", str(self.places.socket), *words]
        if not self.process.lives():
            await trio.lowlevel.checkpoint()
            return Unreachable(detail=f"the tmux server {self.process.pid} has ended")
        with trio.move_on_after(self.patience):
            try:
                done = await trio.run_process(
                    command,
                    stdin=stdin,
                    capture_stdout=True,
                    capture_stderr=True,
                    check=False,
                    env=environment(),
                    cwd=cwd,
                    deliver_cancel=_kill,
                )
            except OSError as error:
                return Unreachable(detail=f"cannot run tmux: {error.strerror}")
            out, error_text = (raw.decode("utf-8", "replace") for raw in (done.stdout, done.stderr))
            if done.returncode and not self.process.lives():
                return Unreachable(detail=f"the tmux server {self.process.pid} ended: {error_text.strip()}")
            return Said(status=done.returncode, out=out, error=error_text.strip())
        return Unreachable(detail=f"the tmux server {self.process.pid} did not answer within {self.patience:g} s")

    async def told(self, channel: str) -> None:
        """Wait until something in the server says so on this channel, also when it said so before; or it has ended."""
        if self.process.lives():
            command = [self.tmux, "-N", "-u", "-S", str(self.places.socket), "wait-for", channel]
            await trio.run_process(
                command, capture_stderr=True, check=False, env=environment(), cwd="/", deliver_cancel=_kill
            )
        else:
            await trio.lowlevel.checkpoint()

    async def proven(self) -> Unreachable | None:
        """Whether the process that recorded itself is the one that answers on this socket."""
        said = await self.ask("display-message", "-p", "#{pid}")
        if isinstance(said, Unreachable):
            return said
        if said.status or said.out.strip() != str(self.process.pid):
            return Unreachable(
                detail=f"another than server {self.process.pid} answers: {said.error or said.out.strip()}"
            )
        return None


async def _kill(process: trio.Process) -> None:  # noqa: ASYNC124 — trio awaits it
    """A client of a stalled server waits for it, also after TERM."""
    process.kill()


async def open_server(places: Places, patience: float) -> Server | Unreachable:
    """The server of this folder: the one that runs, or a new one. Starters queue, so there is only ever one."""
    if (refused := places.make()) is not None:
        return refused
    tmux = shutil.which("tmux", path=environment()["PATH"])
    if tmux is None:
        return Unreachable(detail="tmux is not installed, or not on the PATH of the daemon")
    with trio.move_on_after(patience):
        try:
            async with locked(places) as lock:
                return await _found_or_begun(places, tmux, lock, patience)
        except OSError as error:
            return no_place(places, error)
    return Unreachable(detail=f"the tmux server in {places.folder} did not begin to answer within {patience:g} s")


async def _found_or_begun(places: Places, tmux: str, lock: int, patience: float) -> Server | Unreachable:
    recorded = places.recorded()
    adopted = recorded is not None and recorded.lives()
    found = recorded if recorded is not None and adopted else await _begin(places, tmux, lock)
    if isinstance(found, Unreachable):
        return found
    group = delegated(places.group(), found)
    server = Server(places=places, process=found, tmux=tmux, patience=patience, adopted=adopted, group=group)
    return await _answering(server)


def no_place(places: Places, error: OSError) -> Unreachable:
    return Unreachable(detail=f"cannot use the folder {places.folder}: {error.strerror}")


async def _answering(server: Server) -> Server | Unreachable:
    """A server that has just begun has no socket yet. One whose socket was removed makes it anew when asked to."""
    asked = False
    while (problem := await server.proven()) is not None:
        if not server.process.lives():
            return problem
        if not asked and not server.places.socket.exists() and _listens_to(server.process, signal.SIGUSR1):
            asked = server.process.signal(signal.SIGUSR1)
        await trio.sleep(_TRY_AGAIN)
    return server


def _listens_to(process: Process, number: signal.Signals) -> bool:
    """Whether a process has a handler for that signal. One that has not become tmux yet would die of it."""
    try:
        lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
    except OSError:
        return False
    caught = next((int(line.split()[1], 16) for line in lines if line.startswith("SigCgt:")), 0)
    return bool(caught >> (number - 1) & 1)


@asynccontextmanager
async def locked(places: Places) -> AsyncIterator[int]:
    """The starters' lock, asked for again and again: a thread that waits for it could not be cancelled."""
    fd = os.open(places.lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        while True:
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                await trio.sleep(_TRY_AGAIN)
        yield fd
    finally:
        os.close(fd)


async def _begin(places: Places, tmux: str, lock: int) -> Process | Unreachable:
    """The wrapper leaves us at once; what it has become is what it recorded."""
    places.socket.unlink(missing_ok=True)  # of a server that is proven dead, in a folder that is ours alone
    places.record.unlink(missing_ok=True)
    places.config.write_text(_CONFIG)
    places.config.chmod(0o600)
    words = [sys.executable, "-I", "-S", str(_WRAPPER), str(places.folder), str(places.socket), str(places.config)]
    said = ""
    # A user manager that gives no scope is no reason to start nothing. Whatever did start has recorded itself.
    for each in (places.scope, None) if places.scope else (None,):
        done = await trio.run_process(
            [*(each.words if each else ()), *words, tmux, str(lock), "scope" if each else "none"],
            stdin=subprocess.DEVNULL,
            capture_stderr=True,
            check=False,
            env={**environment(), **(each.told if each else {})},
            cwd="/",
            pass_fds=(lock,),
            start_new_session=True,
        )
        if (found := places.recorded()) is not None and not done.returncode:
            return found
        said = done.stderr.decode("utf-8", "replace").strip()
        if each is not None:
            log.warning("no scope for the tmux server, it starts without one: %s", said)
    return Unreachable(detail=f"the tmux server did not start: {said}")
