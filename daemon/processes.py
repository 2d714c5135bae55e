"""With what this daemon's supervisors start processes: tmux, workspaces, the launcher, and what every process gets of
the daemon's own environment.
"""

from __future__ import annotations

import functools
import hashlib
import logging
import os
import shlex
import shutil
import sys
from collections.abc import Mapping
from importlib.util import MAGIC_NUMBER, cache_from_source
from pathlib import Path

from client import check_logs, paths
from client.protocol.agent import WorkspacePolicy
from client.protocol.board import Seat
from client.protocol.boundary import Crash
from client.protocol.refusals import Code, Refusal
from daemon.health import now
from providers import launcher, profiles
from providers.process import Process
from providers.tmux.provider import Tmux
from providers.tmux.server import Places, scope
from supervisor.checks import Checks
from supervisor.folders import Folders
from supervisor.means import Means
from supervisor.screens import Screens
from supervisor.workspaces import Workspaces, plan
from supervisor.worktrees import Worktrees

log = logging.getLogger(__name__)

#: Of the daemon's environment; everything else is built from nothing.
_KEPT = ("HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "SHELL", "TZ", "USER", "XDG_CONFIG_HOME", "XDG_DATA_HOME")


def environment(own: Mapping[str, str], *, firm_bin: str, socket: Path) -> dict[str, str]:
    """What every launched process gets. Its terminal's name comes from the terminal; nothing of tmux stays."""
    kept = {name: own[name] for name in _KEPT if name in own}
    return {
        "PATH": os.defpath,
        **kept,
        "TERM": "xterm-256color",
        "FIRM_BIN": firm_bin,
        "FIRM_SOCKET": str(socket),
    }


def terminals(socket: Path) -> Path:
    """Where the tmux server keeps its files: beside the door at which its launchers ask."""
    return socket.parent / "tmux"


def below_which(socket: Path) -> Process | None:
    """The server of the terminals, below which everything hangs that a member started. A record that cannot be read
    names none: it must not keep everybody out.
    """
    try:
        return Places(folder=terminals(socket)).recorded()
    except OSError as error:
        log.warning("cannot read which tmux server is ours: %s", error)
        return None


def command(firm_bin: str, path: str) -> str:
    """What members type for ``firm``: that word where their PATH leads to this very build, else its full path."""
    found = shutil.which("firm", path=path)
    return "firm" if found and Path(found).resolve() == Path(firm_bin).resolve() else shlex.quote(firm_bin)


def means(
    folder: Path,
    own: Mapping[str, str],
    *,
    socket: Path,
    crash: Crash,
    secrets: tuple[str, ...] = (),
    checks: Path | None = None,
) -> Means:
    """``folder`` holds the tmux server's files; ``socket`` is the door at which a launcher asks what it becomes;
    ``crash`` ends the process at a boundary, for tests. ``secrets`` are the node's own. ``checks`` tells the checks of
    a supervisor that runs apart from those of the daemon.
    """
    data = paths.data(own.get("XDG_DATA_HOME", ""))
    tmux, workspaces = Tmux(folder, scope=scope(own), crash=crash), Workspaces()
    worktrees = Path(data, "worktrees")
    words = (sys.executable, "-I", "-S")
    source, compiled = Path(launcher.__file__).resolve(), Path(cache_from_source(launcher.__file__)).resolve()
    return Means(
        provider=tmux,
        ready=tmux.open,
        folder=functools.partial(_folder, workspaces, worktrees),
        launcher=lambda launch_id: (*words, str(quickest(source, compiled)), str(socket), launch_id),
        profiles=profiles.PROFILES,
        home=own.get("HOME") or str(Path.home()),
        folders=Folders(Path(data, "sessions", _own(folder))),
        screens=Screens(Path(data, "screens", _own(folder)), now, secrets),
        crash=crash,
        worktrees=Worktrees(workspaces, worktrees, crash),
        checks=Checks(
            Path(data, "checks", _own(checks or folder)),
            check_logs.folder(own) / _own(checks or folder),
            {"PATH": os.defpath, **own},
        ),
    )


def read_profiles(own: Mapping[str, str]) -> list[str]:
    """Add those of this user to ours; what is wrong with each that cannot be used."""
    named = own.get("XDG_CONFIG_HOME", "")
    folder = (Path(named) if Path(named).is_absolute() else Path.home() / ".config") / "firm" / "profiles"
    unusable = profiles.add(folder)
    for wrong in unusable:
        log.warning("a profile cannot be used: %s", wrong)
    return unusable


def quickest(source: Path, compiled: Path) -> Path:
    """A script as Python compiled it when it was imported, where that is of this very source: to compile the launcher
    anew is a fifth of what it costs a launch.
    """
    try:
        with compiled.open("rb") as file:
            head = file.read(16)
        found = source.stat()
    except FileNotFoundError:
        return source
    of = (int(found.st_mtime) & 0xFFFFFFFF).to_bytes(4, "little") + (found.st_size & 0xFFFFFFFF).to_bytes(4, "little")
    return compiled if head == MAGIC_NUMBER + bytes(4) + of else source


def _own(folder: Path) -> str:
    """What tells the checkouts and logs of this process apart, which throws away what is left in there."""
    return hashlib.sha256(os.fsencode(folder)).hexdigest()[:12]


async def _folder(workspaces: Workspaces, base: Path, seat: Seat) -> Path | Refusal:
    root = Path(seat.root)
    if seat.workspace is WorkspacePolicy.STAGED:
        lifted_by = (
            f"staged workspaces are not built; give it another: firm agent update {seat.agent_member_id}"
            " --expected-version N --workspace worktree"
        )
        return Refusal(code=Code.LAUNCH_DENIED, about=f"agent/{seat.agent_member_id}", lifted_by=lifted_by)
    if seat.workspace is WorkspacePolicy.SHARED or not seat.in_git:
        found = await workspaces.shared(root)
    else:
        place = plan(
            root=root,
            base=base,
            project_id=seat.project_id,
            team=seat.team_name,
            member=seat.agent_name,
            member_id=seat.agent_member_id,
        )
        found = await workspaces.worktree(place)
    return found if isinstance(found, Refusal) else found.cwd
