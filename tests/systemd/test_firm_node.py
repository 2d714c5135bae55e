"""``firm node install``, ``start`` and ``stop`` for a person who has a user manager."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from client.cli.service import UNITS
from tests.support.user_manager import UserManager
from tests.systemd.node import ODD, ended, watched

FIRM = str(Path(sys.executable).with_name("firm"))


@dataclass(frozen=True)
class Person:
    """Somebody at a shell: a home that is not there yet, and the command."""

    manager: UserManager
    home: Path

    def tries(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        environment = {**self.manager.environment, "FIRM_HOME": str(self.home)}
        command = [FIRM, *arguments]
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=90, check=False)

    def firm(self, *arguments: str) -> str:
        done = self.tries(*arguments)
        assert done.returncode == 0, f"{arguments}: {done.stdout}{done.stderr}{self.manager.log()}"
        return done.stdout

    def status(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.firm("node", "status", "--json"))
        return found

    def states(self) -> list[str]:
        return [self.manager.show(unit, "ActiveState") for unit in UNITS]


@pytest.fixture
def person(manager: UserManager) -> Generator[Person]:
    person = Person(manager, manager.root / ODD)
    yield person
    # A daemon that was started without the units is none of the manager's, and would outlive it.
    person.tries("node", "stop")


def test_install_then_start_gives_a_ready_daemon_that_systemd_knows(person: Person) -> None:
    person.firm("node", "install")
    assert person.manager.systemctl("is-enabled", "firm.socket").strip() == "enabled"
    person.firm("node", "start")
    status = person.status()
    assert status["ready"]
    assert status["home"] == str(person.home)
    assert str(status["pid"]) == person.manager.show("firm.service", "MainPID")


def test_what_was_installed_is_what_systemd_accepts(person: Person) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not installed")
    person.firm("node", "install")
    done = person.manager.run("systemd-analyze", "--user", "--man=no", "verify", *UNITS)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_installing_and_starting_again_changes_nothing(person: Person) -> None:
    person.firm("node", "install")
    person.firm("node", "start")
    before = person.status()["pid"]
    person.firm("node", "install")
    person.firm("node", "start")
    assert person.status()["pid"] == before


def test_stop_ends_the_daemon_and_no_client_starts_it_again(person: Person) -> None:
    person.firm("node", "install")
    person.firm("node", "start")
    pid = person.status()["pid"]
    with watched(pid) as handle:
        stopped = json.loads(person.firm("node", "stop", "--json"))
        assert ended(handle, within=0)
    assert stopped == {"stopped": True, "pid": pid}
    assert person.states() == ["inactive", "inactive"]
    assert person.tries("node", "status").returncode == 4
    assert person.states() == ["inactive", "inactive"]


def test_stop_without_a_running_daemon_closes_the_socket_too(person: Person) -> None:
    person.firm("node", "install")
    person.manager.systemctl("start", "firm.socket")
    person.firm("node", "stop")
    assert person.states() == ["inactive", "inactive"]


def test_stop_beside_a_user_manager_that_hangs_ends_the_daemon_and_names_it(person: Person) -> None:
    person.firm("node", "install")
    person.firm("node", "start")
    pid = person.status()["pid"]
    with watched(pid) as handle:
        os.kill(person.manager.process.pid, signal.SIGSTOP)
        try:
            stopped = json.loads(person.firm("node", "stop", "--json"))
            assert ended(handle, within=0)
        finally:
            os.kill(person.manager.process.pid, signal.SIGCONT)
    assert stopped == {"stopped": True, "pid": pid}


def test_a_stop_that_systemd_refuses_is_no_stop(person: Person) -> None:
    person.firm("node", "install")
    person.firm("node", "start")
    with unstoppable(person, *UNITS):
        done = person.tries("node", "stop")
        assert done.returncode != 0
        assert "NODE_DAEMON_DRAINING" in done.stderr
        assert "refused" in done.stderr
        assert person.states() == ["active", "active"]


def test_units_that_systemd_does_not_let_go_of_are_not_removed(person: Person) -> None:
    person.firm("node", "install")
    person.manager.systemctl("start", "firm.socket")
    with unstoppable(person, "firm.socket"):
        done = person.tries("node", "uninstall")
        assert done.returncode != 0
        assert "UNITS_UNCHANGED" in done.stderr
        assert "refused" in done.stderr
        assert all((person.manager.unit_folder / unit).exists() for unit in UNITS)


def test_an_uninstall_that_was_cut_off_is_finished_by_the_next(person: Person) -> None:
    person.firm("node", "install")
    person.manager.systemctl("disable", "--now", "firm.socket")
    (person.manager.unit_folder / "firm.socket").unlink()
    for _ in range(2):
        person.firm("node", "uninstall")
        assert not (person.manager.unit_folder / "firm.service").exists()


@contextmanager
def unstoppable(person: Person, *units: str) -> Generator[None]:
    folders = [person.manager.unit_folder / f"{unit}.d" for unit in units]
    for folder in folders:
        folder.mkdir()
        (folder / "held.conf").write_text("[Unit]\nRefuseManualStop=yes\n")
    person.manager.systemctl("daemon-reload")
    try:
        yield
    finally:
        for folder in folders:
            shutil.rmtree(folder)
        person.manager.systemctl("daemon-reload")


def test_start_after_stop_serves_again(person: Person) -> None:
    person.firm("node", "install")
    person.firm("node", "start")
    first = person.status()
    person.firm("node", "stop")
    person.firm("node", "start")
    assert person.status()["daemon_gen"] > first["daemon_gen"]


def test_a_client_starts_a_daemon_whose_service_alone_was_stopped(person: Person) -> None:
    person.firm("node", "install")
    person.firm("node", "start")
    first = person.status()
    person.manager.systemctl("stop", "firm.service")
    assert person.status()["daemon_gen"] == first["daemon_gen"] + 1


def test_start_works_again_once_the_reason_for_giving_up_is_gone(person: Person) -> None:
    person.firm("node", "install")
    person.firm("node", "start")
    person.firm("node", "stop")
    person.home.chmod(0o755)
    for _ in range(2):  # after the second systemd has given up
        assert person.tries("node", "start").returncode != 0
    person.home.chmod(0o700)
    person.firm("node", "start")
    assert person.status()["ready"]


def test_install_beside_a_daemon_that_was_started_before_leaves_it_alone(person: Person) -> None:
    person.firm("node", "start")
    before = person.status()["pid"]
    with watched(before) as handle:
        person.tries("node", "install")
        person.firm("node", "start")
        assert person.status()["pid"] == before
        person.firm("node", "stop")
        assert ended(handle, within=0)
    person.firm("node", "start")
    assert person.status()["pid"] != before


def test_ten_shells_that_start_at_once_get_one_daemon(person: Person) -> None:
    person.firm("node", "install")
    environment = {**person.manager.environment, "FIRM_HOME": str(person.home)}
    command = [FIRM, "node", "start", "--json"]
    shells = [subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) for _ in range(10)]
    said = [json.loads(shell.communicate(timeout=60)[0]) for shell in shells]
    assert [shell.returncode for shell in shells] == [0] * 10
    assert {answer["status"]["pid"] for answer in said} == {person.status()["pid"]}


def test_uninstall_removes_the_units_and_the_daemon_can_be_started_without_them(person: Person) -> None:
    person.firm("node", "install")
    person.firm("node", "start")
    person.firm("node", "stop")
    person.firm("node", "uninstall")
    assert not [unit for unit in UNITS if (person.manager.unit_folder / unit).exists()]
    person.firm("node", "start")
    pid = person.status()["pid"]
    assert os.getpgid(pid) == pid  # a session of its own, not a service
    assert person.manager.show("firm.service", "LoadState") == "not-found"
