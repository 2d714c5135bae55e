"""What has to be read outside the database before a unit begins. Nothing here changes anything."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import trio

from client.protocol.refusals import Code, Refusal
from client.protocol.shape import one_line
from daemon.operations.project import FolderFacts

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


def _unusable(path: str, lifted_by: str) -> Refusal:
    return Refusal(code=Code.FILE_UNUSABLE, about=path, lifted_by=lifted_by)
