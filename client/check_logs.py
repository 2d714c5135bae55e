"""The logs of checks: each is a file named by its SHA-256, so that whoever has a result can prove that a log is its.

Each node keeps its own in a folder of its own: it alone knows which of them a result of its names.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping
from pathlib import Path

from client import paths

#: Bytes of the end of a log that are shown.
_SHOWN = 2000
_SUFFIX = ".log"


def folder(environment: Mapping[str, str]) -> Path:
    """Where this user's are, of all nodes."""
    return Path(paths.data(environment.get("XDG_DATA_HOME", "")), "logs", "checks")


def keep(written: Path, own: Path) -> str:
    """Give a finished log its name in the folder of a node, on the same file system; its digest. Raises ``OSError``."""
    digest = hashlib.sha256(written.read_bytes()).hexdigest()
    own.mkdir(mode=0o700, parents=True, exist_ok=True)
    written.replace(own / f"{digest}{_SUFFIX}")
    return digest


def kept(own: Path) -> set[str]:
    """The digests of all logs of a node. Raises ``OSError``."""
    return {path.stem for path in own.iterdir() if path.suffix == _SUFFIX} if own.is_dir() else set()


def remove(own: Path, digests: Collection[str]) -> None:
    """Raises ``OSError``."""
    for digest in digests:
        (own / f"{digest}{_SUFFIX}").unlink(missing_ok=True)


def end(logs: Path, digest: str) -> bytes | None:
    """The last bytes of ``whole``."""
    found = whole(logs, digest)
    return None if found is None else found[-_SHOWN:]


def whole(logs: Path, digest: str) -> bytes | None:
    """The log of that digest, whichever node keeps it; None where it is not here, or is another."""
    if not digest.isalnum():  # it comes from a record, and may be no name of a file at all
        return None
    # Directly in there: from before each node had a folder of its own.
    for path in (logs / f"{digest}{_SUFFIX}", *logs.glob(f"*/{digest}{_SUFFIX}")):
        try:
            found = path.read_bytes()
        except OSError:
            continue
        if hashlib.sha256(found).hexdigest() == digest:
            return found
    return None
