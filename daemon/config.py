"""What a daemon is told when it starts: the environment, read once."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import attrs

from client import paths


@attrs.frozen
class Config:
    """``crash_at`` names the boundary at which this process kills itself or stands still, for tests."""

    home: Path
    crash_at: str
    ready_fd: int | None
    environment: dict[str, str]

    @property
    def database(self) -> Path:
        return self.home / "node.db"

    @property
    def firm_bin(self) -> str:
        """The command of this very build, for clients whose table differs."""
        return str(Path(sys.executable).parent / "firm")


def from_environment() -> Config:
    ready = os.environ.pop("FIRM_READY_FD", "")
    return Config(
        home=Path(paths.home()),
        crash_at=os.environ.pop("FIRM_CRASH_AT", ""),
        ready_fd=int(ready) if ready.isdigit() else None,
        environment=dict(os.environ),
    )
