"""One daemon a home: the folder and its modes, the lock, the secrets, the sockets, and what is written of them.

The lock is a ``flock`` on the folder itself: a lock file could be deleted and taken twice. It is held as long as
the process lives, so there is no lease to renew and no pid to believe. Only a socket of our own is ever
replaced: which one that is stands in ``node.json``, and nobody listens on it.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import re
import secrets
import socket
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs

from client.paths import run_folder
from daemon.cannot_start import CannotStart, StartCode

_BACKLOG = 4096
_SD_FIRST = 3


def prepare_home(home: Path) -> None:
    """Make the folder, or refuse one that others can use."""
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise CannotStart(
            StartCode.HOME_UNSAFE, f"{home}: {error.strerror}", "set FIRM_HOME to a folder you can make"
        ) from error
    check_private(home, StartCode.HOME_UNSAFE)


def check_private(folder: Path, code: StartCode) -> None:
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode):
        raise CannotStart(code, f"{folder} is not a folder", "move it away or choose another FIRM_HOME")
    if found.st_uid != os.geteuid():
        raise CannotStart(code, f"{folder} belongs to uid {found.st_uid}", "choose a FIRM_HOME of your own")
    if found.st_mode & 0o077:
        raise CannotStart(code, f"{folder} has mode {found.st_mode & 0o777:o}", f"chmod 700 {folder}")


def take_lock(home: Path) -> int:
    """The descriptor that holds the lock; closing it, or dying, lets go."""
    fd = os.open(home, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(fd)
        if error.errno != errno.EWOULDBLOCK:
            raise
        raise CannotStart(
            StartCode.NODE_DAEMON_ALREADY_RUNNING,
            f"{home} is held",
            "use the daemon that runs, or firm node stop",
        ) from error
    return fd


def secret(home: Path, name: str) -> str:
    """A secret of this node, made on first use: 64 hex digits in a file only its owner reads."""
    path = home / name
    if os.path.lexists(path):
        check_file(path)
        found = re.fullmatch(rb"\s*([0-9a-f]{64})\s*", path.read_bytes())
        if found is None:
            raise CannotStart(StartCode.HOME_UNSAFE, f"{path} is damaged", f"remove {path}; a new one is made")
        return found[1].decode()
    text = secrets.token_hex(32)
    fresh = home / f".{name}.new"  # under its own name it is whole from the first moment
    fd = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(fd, "w", encoding="ascii") as file:
        file.write(text + "\n")
        file.flush()
        os.fsync(file.fileno())
    fresh.rename(path)
    return text


def check_file(path: Path) -> None:
    found = path.lstat()
    if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o077:
        raise CannotStart(StartCode.HOME_UNSAFE, f"{path} can be used by others", f"chmod 600 {path}")


@attrs.frozen
class Door:
    """A listening socket and the path clients find it under. ``mark`` is None where it is not ours to remove."""

    sock: socket.socket
    path: Path
    mark: list[int] | None
    member: bool  # knows sessions only


@attrs.frozen
class Doors:
    """``node`` knows every plane, ``member`` knows sessions only."""

    node: Door
    member: Door

    @property
    def both(self) -> tuple[Door, Door]:
        return self.node, self.member


def open_doors(home: Path, environment: Mapping[str, str]) -> Doors:
    """Listen: on sockets a service manager gave us, else on our own. Call with the lock held."""
    given = _given(environment)
    if given is not None:
        return given
    folder = Path(run_folder(str(home)))
    try:
        return _own_doors(home, folder)
    except OSError as error:
        raise CannotStart(
            StartCode.SOCKET_PATH_TAKEN,
            f"{folder} cannot hold our sockets: {error.strerror or error}",
            "move away what is there, or set FIRM_HOME to a shorter path on a disk of this machine",
        ) from error


def _own_doors(home: Path, folder: Path) -> Doors:
    folder.mkdir(mode=0o700, exist_ok=True)
    check_private(folder, StartCode.SOCKET_PATH_TAKEN)
    ours = _recorded(home)
    names = [folder / name for name in ("node.sock", "member.sock")]
    for final in names:
        if os.path.lexists(final) and (_mark(final) not in ours or _answers(final)):
            raise CannotStart(
                StartCode.SOCKET_PATH_TAKEN,
                f"{final} is there and not ours",
                f"see who uses it (ss -xlp), then remove {final}",
            )
    bound = [_bind(final) for final in names]
    # Written before the names change hands, so that a crash in between leaves no socket that nobody owns up to.
    _write(home, {"sockets": ours + [_mark(temporary) for _, temporary, _ in bound]})
    node, member = (_name(*each) for each in bound)
    return Doors(node, member)


def _name(sock: socket.socket, temporary: Path, final: Path) -> Door:
    """Give a socket that listens already its name: nobody ever finds one that does not answer."""
    mark = _mark(temporary)
    temporary.rename(final)
    return Door(sock, final, mark, final.name == "member.sock")


def _bind(final: Path) -> tuple[socket.socket, Path, Path]:
    temporary = final.with_name(f".{secrets.token_hex(4)}")  # not longer than the name it will get
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
    sock.bind(str(temporary))
    temporary.chmod(0o600)
    sock.listen(_BACKLOG)
    return sock, temporary, final


def _answers(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC) as probe:
        probe.setblocking(False)  # noqa: FBT003 — the standard library's own signature
        return probe.connect_ex(str(path)) not in {errno.ECONNREFUSED, errno.ENOENT}


def _mark(path: Path) -> list[int]:
    """What tells a socket from every other file. A number that was freed is soon given to another; its time is not."""
    found = path.lstat()
    return [found.st_dev, found.st_ino, found.st_mtime_ns]


def _recorded(home: Path) -> list[list[int]]:
    try:
        found = json.loads((home / "node.json").read_text("utf-8"))
        return [[int(part) for part in mark] for mark in found.get("sockets", [])]
    except (OSError, ValueError, TypeError, AttributeError):
        return []


def _given(environment: Mapping[str, str]) -> Doors | None:
    """The sockets of ``LISTEN_FDS``, told apart by their names on disk."""
    if environment.get("LISTEN_PID") != str(os.getpid()):
        return None
    found: dict[str, Door] = {}
    for fd in range(_SD_FIRST, _SD_FIRST + int(environment.get("LISTEN_FDS", "0"))):
        os.set_inheritable(fd, False)  # noqa: FBT003 — the standard library's own signature
        sock = socket.socket(fileno=fd)
        path = Path(str(sock.getsockname()))
        found[path.name] = Door(sock, path, None, path.name == "member.sock")
    if set(found) != {"node.sock", "member.sock"}:
        raise CannotStart(
            StartCode.SOCKET_PATH_TAKEN,
            f"the service manager gave {sorted(found) or 'no sockets'}",
            "install the units of this build: firm node install",
        )
    return Doors(found["node.sock"], found["member.sock"])


def publish(home: Path, doors: Doors, facts: Mapping[str, Any]) -> None:
    """Write ``node.json``: where the doors are and who holds the lock. Clients read it."""
    own = [_mark(door.path) for door in doors.both]
    where = {"socket": str(doors.node.path), "member_socket": str(doors.member.path)}
    _write(home, {**facts, **where, "sockets": own})


def _write(home: Path, content: Mapping[str, Any]) -> None:
    temporary = home / ".node.json.new"
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(fd, "w", encoding="utf-8") as file:
        json.dump(content, file)
        file.flush()
        os.fsync(file.fileno())
    temporary.rename(home / "node.json")


def close_doors(doors: Doors) -> None:
    """Remove the names that are still ours, then stop listening."""
    for door in doors.both:
        if door.mark is not None and os.path.lexists(door.path) and _mark(door.path) == door.mark:
            door.path.unlink()
        door.sock.close()
