"""What the units promise, under a real user manager."""

from __future__ import annotations

import os
import signal
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest

from tests.systemd.node import Node, ended, watched


def test_the_first_client_starts_the_daemon(node: Node) -> None:
    node.manager.systemctl("start", "firm.socket")
    assert node.state("firm.service") == "inactive"
    assert node.ask() == node.main_pid()
    assert node.state("firm.service") == "active"


def test_the_daemon_knows_the_members_socket_from_its_own(node: Node) -> None:
    node.manager.systemctl("start", "firm.socket")
    (refused,) = node.conversation("member.sock")
    assert "sessions only" in refused["refusal"]["lifted_by"]
    assert node.ask() == node.main_pid()


def test_only_the_user_reaches_the_sockets(node: Node) -> None:
    node.manager.systemctl("start", "firm.socket")
    modes = [oct(path.stat().st_mode & 0o777) for path in (node.socket(), node.socket("member.sock"))]
    assert modes == ["0o600", "0o600"]
    assert oct(node.socket().parent.stat().st_mode & 0o777) == "0o700"


def test_the_daemon_has_its_folder_and_its_limits(node: Node) -> None:
    node.manager.systemctl("start", "firm.service")
    process = Path("/proc", str(node.main_pid()))
    assert f"FIRM_HOME={node.home}".encode() in (process / "environ").read_bytes().split(b"\0")
    (files,) = [line for line in (process / "limits").read_text().splitlines() if line.startswith("Max open files")]
    assert int(files.split()[3]) >= 20_000


def test_systemd_understood_the_settings(node: Node) -> None:
    expected = {
        "Type": "notify",
        "NotifyAccess": "main",
        "KillMode": "process",
        "OOMPolicy": "continue",
        "Restart": "on-failure",
        "WatchdogUSec": "1min 30s",
        "TimeoutStopUSec": "1min 15s",
        "StartLimitIntervalUSec": "1min",
        "StartLimitBurst": "5",
    }
    node.manager.systemctl("start", "firm.service")
    assert {name: node.manager.show("firm.service", name) for name in expected} == expected


def test_a_killed_daemon_comes_back_and_a_client_that_asks_meanwhile_waits(node: Node) -> None:
    node.manager.systemctl("start", "firm.socket")
    first = node.ask()
    with watched(first) as handle:
        os.kill(first, signal.SIGKILL)
        assert ended(handle)
    second = node.ask()
    assert second != first
    assert second == node.main_pid()
    assert node.manager.show("firm.service", "NRestarts") == "1"


def test_a_daemon_that_hangs_is_replaced(node: Node) -> None:
    node.alter("WatchdogSec=500ms", "TimeoutAbortSec=200ms")
    node.manager.systemctl("start", "firm.service")
    first = node.main_pid()
    with watched(first) as handle:
        os.kill(first, signal.SIGSTOP)
        assert ended(handle)
    assert node.ask() != first


@pytest.mark.parametrize("way", ["kill", "restart", "stop"])
def test_agents_outlive_the_daemon(node: Node, way: str) -> None:
    node.manager.systemctl("start", "firm.socket")
    daemon = node.ask()
    with (
        subprocess.Popen(["sleep", "infinity"]) as agent,
        watched(agent.pid) as alive,
        watched(daemon) as handle,
    ):
        try:
            node.manager.adopt(agent.pid, "firm.service")
            if way == "kill":
                os.kill(daemon, signal.SIGKILL)
            else:
                node.manager.systemctl(way, "firm.service")
            assert ended(handle)
            assert node.ask() != daemon
            assert not ended(alive, within=0)
        finally:
            agent.kill()


def test_the_socket_unit_fails_beside_a_daemon_that_was_started_by_hand_and_touches_nothing(
    node: Node,
) -> None:
    with node.unmanaged() as daemon:
        before = [node.socket(name).stat() for name in ("node.sock", "member.sock")]
        for unit in ("firm.socket", "firm.service"):
            with pytest.raises(AssertionError, match="failed to get lock"):
                node.manager.systemctl("start", unit)
        assert node.state("firm.socket") == "failed"
        after = [node.socket(name).stat() for name in ("node.sock", "member.sock")]
        assert [(s.st_ino, s.st_ctime_ns) for s in before] == [(s.st_ino, s.st_ctime_ns) for s in after]
        assert node.ask() == daemon


def test_the_socket_unit_does_not_make_a_home_that_is_missing(node: Node) -> None:
    node.home.rename(node.home.with_name("elsewhere"))
    with pytest.raises(AssertionError, match="cannot open lock file"):
        node.manager.systemctl("start", "firm.socket")
    assert not node.home.exists()


def test_the_socket_unit_takes_over_sockets_that_a_dead_daemon_left(node: Node) -> None:
    with node.unmanaged() as daemon:
        os.kill(daemon, signal.SIGKILL)
    assert node.socket().exists()
    node.manager.systemctl("start", "firm.socket")
    assert node.ask() == node.main_pid()


def test_stopping_only_the_service_lets_the_next_client_start_it(node: Node) -> None:
    node.manager.systemctl("start", "firm.socket")
    first = node.ask()
    node.manager.systemctl("stop", "firm.service")
    assert node.state("firm.socket") == "active"
    assert node.ask() != first


@pytest.mark.parametrize("units", [("firm.socket",), ("firm.service", "firm.socket"), ("firm.socket", "firm.service")])
def test_stopping_the_socket_stops_both_and_nobody_is_let_in(node: Node, units: tuple[str, ...]) -> None:
    node.manager.systemctl("start", "firm.socket")
    with watched(node.ask()) as handle:
        node.manager.systemctl("stop", *units)
        assert ended(handle, within=0)
    assert [node.state(unit) for unit in ("firm.socket", "firm.service")] == ["inactive", "inactive"]
    assert not node.socket().exists()
    with pytest.raises(FileNotFoundError):
        node.ask()


def test_a_daemon_can_be_started_by_hand_once_the_units_are_stopped(node: Node) -> None:
    node.manager.systemctl("start", "firm.socket")
    node.ask()
    node.manager.systemctl("stop", "firm.socket")
    with node.unmanaged() as daemon:
        assert node.ask() == daemon


def test_a_daemon_can_be_started_by_hand_after_the_user_manager_was_killed(node: Node) -> None:
    node.manager.systemctl("start", "firm.socket")
    node.ask()
    node.manager.kill()
    assert node.socket().exists()
    with node.unmanaged() as daemon:
        assert node.ask() == daemon


def test_a_daemon_that_cannot_start_refuses_its_clients_instead_of_keeping_them(node: Node) -> None:
    node.home.chmod(0o755)
    node.manager.systemctl("start", "firm.socket")
    with suppress(ConnectionError):
        assert node.conversation() == []
    assert "chmod 700" in node.manager.log()
    assert node.manager.show("firm.service", "Result") in {"exit-code", "start-limit-hit"}
    assert node.manager.show("firm.socket", "Result") == "service-start-limit-hit"
