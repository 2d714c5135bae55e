"""What the daemon and whoever supervises it say to each other: notifications, sockets it is given."""

from __future__ import annotations

import os
import select
import socket
from collections.abc import Generator
from pathlib import Path

import pytest

from daemon.cannot_start import StartCode
from tests.support.daemon import Home
from tests.support.wire import PATIENCE, Client, hello


class Manager:
    """The socket that a service manager reads notifications on."""

    def __init__(self, address: str) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.sock.bind("\0" + address[1:] if address.startswith("@") else address)
        self.sock.settimeout(PATIENCE)
        self.environment = {"NOTIFY_SOCKET": address}

    def hears(self) -> str:
        return self.sock.recv(4096).decode()

    def silent(self, seconds: float) -> bool:
        return not select.select([self.sock], [], [], seconds)[0]


@pytest.fixture
def manager(tmp_path: Path) -> Generator[Manager]:
    found = Manager(str(tmp_path / "notify"))
    with found.sock:
        yield found


def test_a_manager_may_have_an_abstract_name(home: Home) -> None:
    manager = Manager(f"@firm-test-{os.getpid()}")
    with manager.sock:
        home.start(env=manager.environment)
        assert manager.hears() == "READY=1"
        home.close()  # while there is still somebody to tell
        assert manager.hears() == "STOPPING=1"


def test_it_says_when_it_is_ready_and_when_it_stops(home: Home, manager: Manager) -> None:
    daemon = home.start(env=manager.environment)
    assert manager.hears() == "READY=1"
    with daemon.client() as client:
        assert "answer" in client.ask("team.list")
    assert daemon.stop() == 0
    assert manager.hears() == "STOPPING=1"
    assert manager.silent(0)


def test_ready_means_that_a_client_is_answered(home: Home, manager: Manager) -> None:
    daemon = home.launch(env=manager.environment)
    assert manager.hears() == "READY=1"
    with daemon.client() as client:
        assert client.ask("node.status")["answer"]["ready"]


def test_it_feeds_the_watchdog_at_least_twice_in_its_interval(home: Home, manager: Manager) -> None:
    daemon = home.start(env={**manager.environment, "WATCHDOG_USEC": "400000"})
    heard = [manager.hears() for _ in range(8)]
    assert heard.count("READY=1") == 1
    assert heard.count("WATCHDOG=1") == 7
    daemon.stopped()
    while not manager.silent(0):
        manager.hears()
    assert manager.silent(0.4)  # it is the loop that feeds it: one that stands is found out


@pytest.mark.parametrize("other", [{"WATCHDOG_USEC": "1000", "WATCHDOG_PID": "1"}, {"WATCHDOG_USEC": "soon"}, {}])
def test_a_watchdog_of_somebody_else_is_not_fed(home: Home, manager: Manager, other: dict[str, str]) -> None:
    home.start(env={**manager.environment, **other})
    assert manager.hears() == "READY=1"
    assert manager.silent(0.2)


def test_a_manager_that_is_gone_or_does_not_read_takes_nobody_along(home: Home, tmp_path: Path) -> None:
    gone = {"NOTIFY_SOCKET": str(tmp_path / "gone"), "WATCHDOG_USEC": "2000"}
    daemon = home.start(env=gone)
    with daemon.client() as client:
        assert "answer" in client.ask("agent.create", {"name": "ann"})
    assert daemon.stop() == 0
    assert [line for line in daemon.log.lines if "does not hear" in line] == [daemon.log.until("WARNING")]
    deaf = Manager(str(tmp_path / "deaf"))
    with deaf.sock:
        daemon = home.start(env={**deaf.environment, "WATCHDOG_USEC": "2000"})
        with daemon.client() as client:
            for _ in range(300):
                assert "answer" in client.ask("agent.list", {"limit": 1})
        assert daemon.stop() == 0


# --- sockets that were opened for it ----------------------------------------------------------------------------------


def opened(home: Home, *names: str) -> list[socket.socket]:
    home.run.mkdir(mode=0o700, parents=True, exist_ok=True)
    home.folder.chmod(0o700)
    doors = [socket.socket(socket.AF_UNIX) for _ in names]
    for door, name in zip(doors, names, strict=True):
        door.bind(str(home.run / name))
        door.listen(16)
    return doors


@pytest.mark.parametrize("names", [("node.sock", "member.sock"), ("member.sock", "node.sock")])
def test_it_serves_the_sockets_it_is_given_each_for_what_it_is(home: Home, names: tuple[str, str]) -> None:
    doors = opened(home, *names)
    early = Client(home.run / "node.sock")  # before there is a daemon at all
    daemon = home.launch(sockets=doors).until_ready()
    with early:
        assert early.hello(daemon.key)["hello"]["plane"] == "operator"
        status = early.ask("node.status")["answer"]
    assert (status["socket"], status["member_socket"]) == (str(daemon.socket), str(daemon.member_socket))
    with Client(daemon.member_socket) as client:
        client.say(hello(daemon.key))
        assert "sessions only" in client.rest()[0]["refusal"]["lifted_by"]
    assert daemon.stop() == 0
    assert {path.name for path in home.run.iterdir()} == {"node.sock", "member.sock"}  # not its own to remove
    with (
        home.launch(sockets=doors).until_ready().client() as client
    ):  # and whoever comes meanwhile waits for the next daemon
        assert client.ask("node.status")["answer"]["daemon_gen"] == 2
    for door in doors:
        door.close()


@pytest.mark.parametrize("names", [("node.sock",), ("node.sock", "other.sock"), ("node.sock", "member.sock", "x")])
def test_sockets_it_does_not_know_are_refused(home: Home, names: tuple[str, ...]) -> None:
    doors = opened(home, *names)
    daemon = home.launch(sockets=doors)
    assert daemon.wait() == 1
    (said,) = daemon.log.lines
    assert said.startswith(f"{StartCode.SOCKET_PATH_TAKEN}: ")
    assert "firm node install" in said
    for door in doors:
        door.close()


def test_sockets_that_were_meant_for_another_process_are_not_taken(home: Home) -> None:
    daemon = home.start(env={"LISTEN_PID": "1", "LISTEN_FDS": "2"})
    with daemon.client() as client:
        assert client.ask("node.status")["answer"]["socket"] == str(home.run / "node.sock")
