"""What a worker is told when it starts: its environment, read once, and what a program of its own is given of it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import attrs

from client import paths
from client.protocol.work import Work


class Misused(Exception):
    """The environment does not say what a worker needs."""


@attrs.frozen(kw_only=True)
class Settings:
    """``command`` is what FIRM_COMMAND says, read when a Work needs it; ``folder`` is where the worker stands."""

    socket: str
    capability: str = attrs.field(repr=False)
    command: str
    folder: Path
    logs: Path
    environment: Mapping[str, str] = attrs.field(repr=False)


def read(environment: Mapping[str, str]) -> Settings:
    """Raises ``Misused``."""
    try:
        folder = Path.cwd()
    except FileNotFoundError:
        raise Misused("the current folder has been removed; start the worker in one that exists") from None
    return Settings(
        socket=_socket(),
        capability=environment.get("FIRM_CAPABILITY", ""),
        command=environment.get("FIRM_COMMAND", ""),
        folder=folder,
        logs=_logs(environment),
        environment=environment,
    )


def _socket() -> str:
    try:
        return paths.door()[0]
    except (paths.NoDaemon, paths.NoHome):
        raise Misused("no daemon is known here; set FIRM_SOCKET, or FIRM_HOME to where one has run") from None


def _logs(environment: Mapping[str, str]) -> Path:
    """Outside the workspace, where they would be committed."""
    if os.path.isabs(named := environment.get("FIRM_LOGS", "")):  # noqa: PTH117 — said of a text
        return Path(named)
    return Path(paths.data(environment.get("XDG_DATA_HOME", "")), "logs")


def of_program(environment: Mapping[str, str], work: Work, fence: int) -> dict[str, str]:
    """The environment of a Work's program: ours without the capability, and which Work it is for."""
    kept = {name: value for name, value in environment.items() if name != "FIRM_CAPABILITY"}
    return {
        **kept,
        "FIRM_ATTEMPT": str(fence),
        "FIRM_WORK_ID": work.id,
        "FIRM_WORK_TITLE": work.title,
        "FIRM_WORK_VERSION": str(work.version),
    }
