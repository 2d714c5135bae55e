"""The logs of checks: each is a file named by its SHA-256, so that whoever has a result can prove that a log is its."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path

#: Bytes of the end of a log that are shown.
_SHOWN = 2000


def folder(environment: Mapping[str, str]) -> Path:
    """Where this user's are: outside every checkout, and outside FIRM_HOME, which is the daemon's."""
    data = environment.get("XDG_DATA_HOME", "")
    base = Path(data) if os.path.isabs(data) else Path.home() / ".local" / "share"  # noqa: PTH117 — said of a text
    return base / "firm" / "logs" / "checks"


def keep(written: Path, logs: Path) -> str:
    """Give a finished log its name, on the same file system; its digest. Raises ``OSError``."""
    digest = hashlib.sha256(written.read_bytes()).hexdigest()
    logs.mkdir(mode=0o700, parents=True, exist_ok=True)
    written.replace(logs / f"{digest}.log")
    return digest


def end(logs: Path, digest: str) -> bytes | None:
    """The last bytes of the log of that digest; None where it is not here, or is another."""
    try:
        found = (logs / f"{digest}.log").read_bytes()
    except (OSError, ValueError):  # a digest comes from a record, and may be no name of a file at all
        return None
    return found[-_SHOWN:] if hashlib.sha256(found).hexdigest() == digest else None
