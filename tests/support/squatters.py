"""What may stand where a socket of ours belongs. Each makes it and returns how to end it, unharmed."""

from __future__ import annotations

import socket
from collections.abc import Callable
from pathlib import Path

End = Callable[[], None]


def listening(path: Path) -> socket.socket:
    sock = socket.socket(socket.AF_UNIX)
    sock.bind(str(path))
    sock.listen()
    return sock


def alive(path: Path) -> End:
    """A socket that somebody listens on; its end first proves that it still can be reached."""
    sock = listening(path)

    def end() -> None:
        with sock, socket.socket(socket.AF_UNIX) as client:
            client.settimeout(10)
            client.connect(str(path))
            client.sendall(b"you?")
            with sock.accept()[0] as peer:
                assert peer.recv(10) == b"you?"

    return end


def dead(path: Path) -> End:
    """A socket that nobody listens on."""
    listening(path).close()
    return _nothing


def file(path: Path) -> End:
    path.write_text("mine")
    return _nothing


def folder(path: Path) -> End:
    path.mkdir()
    return _nothing


def link(path: Path) -> End:
    """A link to nothing."""
    path.symlink_to("nowhere")
    return _nothing


def _nothing() -> None:
    """Nothing has to be ended."""


EVERY = (alive, dead, file, folder, link)
