"""Where things are: FIRM_HOME, what the daemon wrote there about itself. Standard library only, and little of it."""

from __future__ import annotations

import os

#: The longest path a Unix socket can have on Linux, less some room for a temporary name beside it.
SOCKET_PATH = 100


class NoDaemon(Exception):
    """Nothing in FIRM_HOME says where a daemon would be."""


class NoHome(Exception):
    """FIRM_HOME leads on from the current folder, and that has been removed."""


def home() -> str:
    """The absolute path of FIRM_HOME, whether it exists or not. Raises ``NoHome``."""
    named = os.environ.get("FIRM_HOME")
    if named:
        try:
            return os.path.abspath(named)
        except FileNotFoundError:
            raise NoHome from None
    state = os.environ.get("XDG_STATE_HOME", "")
    if not os.path.isabs(state):  # one that is relative is to be ignored, says its specification
        state = os.path.join(os.path.expanduser("~"), ".local", "state")
    return os.path.join(state, "firm")


def run_folder(folder: str) -> str:
    """Where the sockets live: in FIRM_HOME, or where that path is too long, in the temporary folder."""
    near = os.path.join(folder, "run")
    if len(os.fsencode(os.path.join(near, "member.sock"))) <= SOCKET_PATH:
        return near
    import hashlib
    import tempfile

    name = hashlib.blake2b(os.fsencode(folder), digest_size=6).hexdigest()
    return os.path.join(tempfile.gettempdir(), f"firm-{os.geteuid()}-{name}")


def node_file(folder: str) -> dict[str, object]:
    """What the last holder of the lock wrote about itself. Raises ``NoDaemon``, also while one has no doors yet."""
    import json

    try:
        with open(os.path.join(folder, "node.json"), encoding="utf-8") as file:
            found = json.load(file)
    except (OSError, ValueError) as error:
        raise NoDaemon(folder) from error
    if not isinstance(found, dict) or "socket" not in found:
        raise NoDaemon(folder)
    return found


def operator_key(folder: str) -> str:
    """The operator key, or an empty string where it cannot be read."""
    try:
        with open(os.path.join(folder, "operator.key"), encoding="ascii") as file:
            return file.read().strip()
    except (OSError, ValueError):
        return ""
