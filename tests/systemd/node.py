"""One node under a private user manager: units rendered and in place, a daemon to ask, processes to watch."""

from __future__ import annotations

import os
import select
import shutil
import socket
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgpack

from client.cli.service import UNITS
from client.cli.units import TEMPLATES, render
from client.protocol.frames import MAX_ANSWER, Frames, frame
from client.protocol.hello import PROTOCOL
from tests.support.user_manager import UserManager

PATIENCE = 30.0
#: Every character that means something to a unit file and may stand in a folder's name.
ODD = "a home $x ${HOME} 50% %h \"q\" 's' b\\n ;#@PYTHON@"
#: The operator key of the node, there before its daemon: the first client of all must be able to show it.
KEY = "7e" * 32


@dataclass(frozen=True)
class Node:
    """A FIRM_HOME whose units are in ``manager``'s folder, and the interpreter they start."""

    manager: UserManager
    home: Path
    python: Path

    def socket(self, name: str = "node.sock") -> Path:
        return self.home / "run" / name

    def conversation(self, name: str = "node.sock") -> list[dict[str, Any]]:
        """All that the daemon says to an operator who asks for its status."""
        said = {"hello": {"protocol": PROTOCOL, "key": KEY}}, {"id": 1, "op": "node.status", "body": {}}
        frames, heard = Frames(MAX_ANSWER), list[dict[str, Any]]()
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(PATIENCE)
            client.connect(str(self.socket(name)))
            client.sendall(b"".join(frame(msgpack.packb(message)) for message in said))
            client.shutdown(socket.SHUT_WR)
            while data := client.recv(65536):
                heard += [msgpack.unpackb(payload) for payload in frames.feed(data)]
        return heard

    def ask(self) -> int:
        """The pid of the daemon that answers."""
        _, answer = self.conversation()
        return int(answer["answer"]["pid"])

    def main_pid(self) -> int:
        return int(self.manager.show("firm.service", "MainPID"))

    def state(self, unit: str) -> str:
        return self.manager.show(unit, "ActiveState")

    def alter(self, *lines: str) -> None:
        """Override settings of the service, before it runs."""
        folder = self.manager.unit_folder / "firm.service.d"
        folder.mkdir()
        (folder / "test.conf").write_text("\n".join(["[Service]", *lines, ""]))
        self.manager.systemctl("daemon-reload")

    @contextmanager
    def unmanaged(self) -> Generator[int]:
        """A daemon that no manager knows, ready; yields its pid."""
        address = self.manager.root / "unmanaged"
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as ready:
            ready.settimeout(PATIENCE)
            ready.bind(str(address))
            environment = {
                **self.manager.environment,
                "FIRM_HOME": str(self.home),
                "NOTIFY_SOCKET": str(address),
            }
            with subprocess.Popen([self.python, "-I", "-m", "daemon", "run"], env=environment) as process:
                try:
                    with watched(process.pid) as gone:
                        readable, _, _ = select.select([ready.fileno(), gone], [], [], PATIENCE)
                    assert ready.fileno() in readable, "the daemon did not start"
                    assert ready.recv(4096) == b"READY=1"
                    yield process.pid
                finally:
                    process.terminate()


def place_node(manager: UserManager, python: Path) -> Node:
    """Write the units for a home with an awkward name."""
    home = manager.root / ODD
    home.mkdir(mode=0o700)
    (home / "operator.key").touch(mode=0o600)
    (home / "operator.key").write_text(KEY)
    flock = shutil.which("flock")
    assert flock is not None
    for unit in UNITS:
        template = (TEMPLATES / f"{unit}.in").read_text()
        (manager.unit_folder / unit).write_text(render(template, str(home), str(python), flock))
    manager.systemctl("daemon-reload")
    return Node(manager, home, python)


@contextmanager
def watched(pid: int) -> Generator[int]:
    """A handle of the process that becomes readable when it ends."""
    handle = os.pidfd_open(pid)
    try:
        yield handle
    finally:
        os.close(handle)


def ended(handle: int, within: float = PATIENCE) -> bool:
    return bool(select.select([handle], [], [], within)[0])
