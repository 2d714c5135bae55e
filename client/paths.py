"""Where things are: FIRM_HOME, what the daemon wrote there about itself, and which daemon is asked. Standard library
only, and little of it.
"""

from __future__ import annotations

import os

#: The longest path a Unix socket can have on Linux, less some room for a temporary name beside it.
SOCKET_PATH = 100
#: In the environment of every member, and of nobody else: the mark of a session.
MARK = "FIRM_MEMBER_RUN_ID"


class NoDaemon(Exception):
    """Nothing in FIRM_HOME says where a daemon would be."""


class NoHome(Exception):
    """No folder is FIRM_HOME here: what is in the way, and what lifts it."""

    def __init__(self, meaning: str, lifted_by: str) -> None:
        super().__init__(f"{meaning} {lifted_by}")
        self.meaning, self.lifted_by = meaning, lifted_by


def home() -> str:
    """The absolute path of FIRM_HOME, whether it exists or not. Raises ``NoHome``."""
    named = os.environ.get("FIRM_HOME")
    if named:
        try:
            return os.path.abspath(named)
        except FileNotFoundError:
            meaning = "FIRM_HOME is relative, and the current folder has been removed."
            raise NoHome(meaning, "set FIRM_HOME to a full path") from None
    if told():
        meaning = "This is a member's environment: it says which daemon to ask, and nothing of that daemon's folder."
        raise NoHome(meaning, "ask the person at this machine, or set FIRM_HOME")
    state = os.environ.get("XDG_STATE_HOME", "")
    if not os.path.isabs(state):  # one that is relative is to be ignored, says its specification
        state = os.path.join(os.path.expanduser("~"), ".local", "state")
    return os.path.join(state, "firm")


def data(base: str) -> str:
    """Where what is kept of all nodes lives: outside every checkout, and outside FIRM_HOME, which is one daemon's.
    ``base`` is XDG_DATA_HOME as the environment in question has it.
    """
    if not os.path.isabs(base):
        base = os.path.join(os.path.expanduser("~"), ".local", "share")
    return os.path.join(base, "firm")


def told() -> str:
    """The socket that FIRM_SOCKET names, where that decides who is asked.

    A launch gives its process FIRM_SOCKET and never FIRM_HOME. A FIRM_HOME was set since, by whoever is nearer to the
    command and means another daemon, as somebody does who tries a second one in there.
    """
    return "" if os.environ.get("FIRM_HOME") else os.environ.get("FIRM_SOCKET", "")


def door(of: str = "") -> tuple[str, dict[str, str]]:
    """The socket of a daemon, and what is shown there: that of the home ``of``, or of whichever the environment names.
    Raises ``NoDaemon``, ``NoHome``.

    Where FIRM_SOCKET decides, a member's capability is shown and no operator key: who listens there knows that session,
    or refuses.
    """
    if not of and (named := told()):
        return named, {"capability": os.environ.get("FIRM_CAPABILITY", "")}
    folder = of or home()
    return str(node_file(folder)["socket"]), {"key": operator_key(folder)}


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
