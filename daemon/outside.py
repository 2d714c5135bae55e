"""What has to be read outside the database before a unit begins. Nothing here changes anything."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import trio

from client.protocol.project import AddProject
from client.protocol.refusals import Code, Refusal
from client.protocol.session import BindSession
from client.protocol.shape import one_line
from client.protocol.team import CreateTeam
from daemon.operations.project import FolderFacts
from daemon.operations.session import ProcessFacts
from providers.process import boot_id, start_ticks_of

_GIT_SECONDS = 5


async def look_at_folder(path: str) -> FolderFacts | Refusal:
    """The real path of a folder and the common directory of its repository; empty where there is none."""
    if not Path(path).is_absolute():
        return _unusable(path, "give an absolute path")
    return await trio.to_thread.run_sync(_look, path)


def _look(path: str) -> FolderFacts | Refusal:
    try:
        root = Path(path).resolve(strict=True)
    except (OSError, RuntimeError, ValueError) as error:
        return _unusable(path, f"give a folder that exists ({getattr(error, 'strerror', None) or error})")
    if not root.is_dir():
        return _unusable(path, "give a folder, not a file")
    if not one_line(root.as_posix()):
        return _unusable(repr(path), "give a folder whose path has no control characters")
    return FolderFacts(root=str(root), git_dir=_git_dir(root))


def _git_dir(root: Path) -> str:
    ask = ["git", "-C", str(root), "rev-parse", "--path-format=absolute", "--git-common-dir"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    try:
        done = subprocess.run(ask, env=environment, capture_output=True, text=True, timeout=_GIT_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def _owner(pid: int) -> int | None:
    try:
        return Path(f"/proc/{pid}").stat().st_uid
    except OSError:
        return None


async def look_at_process(pid: int) -> ProcessFacts | Refusal:  # noqa: ASYNC124 — what a look has to be
    """Which process that pid is now, when it is one of this user's and not this daemon."""
    try:
        held = os.pidfd_open(pid)  # while it is held the pid cannot mean another; a thread has none
    except OSError:
        return _unproven(pid, "no such process runs")
    ticks, owner = start_ticks_of(pid), _owner(pid)
    os.close(held)
    if owner != os.geteuid() or pid == os.getpid() or ticks is None:
        return _unproven(pid, "it is not a process of yours that runs, or it is this daemon")
    return ProcessFacts(pid, ticks, boot_id())


def _unproven(pid: int, why: str) -> Refusal:
    lifted_by = f"{why}; name one that runs, such as your shell: --pid $$"
    return Refusal(code=Code.PROCESS_UNPROVEN, about=f"process/{pid}", lifted_by=lifted_by)


async def _root(ask: AddProject) -> FolderFacts | Refusal:
    return await look_at_folder(ask.root)


async def _project(ask: CreateTeam) -> FolderFacts | Refusal:
    return await look_at_folder(ask.project)


async def _process(ask: BindSession) -> ProcessFacts | Refusal:
    return await look_at_process(ask.pid)


#: Operations that need something looked at before their unit begins.
LOOKS: Mapping[str, Callable[[Any], Awaitable[Any]]] = {
    "project.add": _root,
    "session.bind": _process,
    "team.create": _project,
}


def _unusable(path: str, lifted_by: str) -> Refusal:
    return Refusal(code=Code.FILE_UNUSABLE, about=path, lifted_by=lifted_by)
