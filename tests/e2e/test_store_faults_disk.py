"""A real small disk that fills up, or is read-only, under a real daemon and the real command line."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest

from tests.support import tmpfs
from tests.support.daemon import COMMAND, Daemon, Home, new_home
from tests.support.load import Accounts, Load
from tests.support.stores import faults_in, names
from tests.support.tmpfs import SmallDisk
from tests.support.wire import Client

FIRM = [sys.executable, "-I", "-c", "import firm_entry, sys; sys.exit(firm_entry.cli())"]
RESTORE = [sys.executable, "-I", "-m", "daemon", "restore"]


@attrs.frozen
class Place:
    """A home on a small disk of its own."""

    disk: SmallDisk
    home: Home

    @property
    def outside(self) -> Path:
        """The home, as this process sees it."""
        return self.disk.outside / "home"

    @property
    def socket(self) -> Path:
        return self.outside / "run/node.sock"

    def start(self) -> Daemon:
        daemon = self.home.start(command=self.disk.command(COMMAND))
        daemon.expect("storage fault")
        return daemon

    def refuses(self) -> str:
        """The one line of a daemon that does not start."""
        daemon = self.home.launch(command=self.disk.command(COMMAND))
        assert daemon.wait() == 1
        (line,) = daemon.log.lines
        return line

    def run(self, *argv: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.disk.command(argv), env=self.home.environment, capture_output=True, text=True, check=False
        )

    def firm(self, *words: str) -> subprocess.CompletedProcess[str]:
        return self.run(*FIRM, *words)

    def client(self) -> Client:
        client = Client(self.socket)
        assert "hello" in client.hello((self.outside / "operator.key").read_text().strip())
        return client

    def copy(self, to: Path) -> Path:
        """The database of a daemon that has ended, where SQLite can open it."""
        to.mkdir()
        for found in self.outside.glob("node.db*"):
            shutil.copy(found, to)
        return to / "node.db"


@pytest.fixture
def place() -> Iterator[Place]:
    if reason := tmpfs.available():
        pytest.skip(reason)
    with new_home() as plain, tmpfs.small_disk(plain.folder.parent / "d", 12 << 20) as disk:
        home = Home(disk.path / "home", plain.temporary)
        try:
            yield Place(disk, home)
        finally:
            home.close()


def _status(client: Client) -> dict[str, Any]:
    return dict(client.ask("node.status")["answer"])


def test_full_in_the_middle_of_a_batch_under_load_refuses_reads_on_and_is_lifted_by_space(
    place: Place, tmp_path: Path
) -> None:
    daemon = place.start()
    with Load(daemon, writers=16, size=8000, socket=place.socket) as load, place.client() as client:
        load.until_answered(60)
        assert _status(client)["health"] == "ok"
        place.disk.fill()
        # What a failed commit had taken of the disk has room for smaller ones: these are done, and the trouble is over
        # and begins again, until nothing is left.
        load.until_refused("STORE_FULL", in_a_row=100)
        _full_is_told(place, client)
        place.disk.free()
        load.until_answered(60)
        assert load.refusals == {"STORE_FULL"}
    with place.client() as client:
        assert (_status(client)["health"], _status(client)["troubles"]) == ("ok", [])
        accounts = Accounts()
        accounts.settle(client, load)
        assert _status(client)["daemon_gen"] == 1
    assert daemon.stop() == 0
    accounts.check(place.copy(tmp_path / "copy"))


def _full_is_told(place: Place, client: Client) -> None:
    """While writers go on being refused: reads, status, and what a person sees."""
    assert client.ask("agent.list", {"limit": 5})["answer"]["items"]
    assert client.ask("event.list", {"limit": 5})["answer"]["items"]
    status = _status(client)
    (trouble,) = status["troubles"]
    assert (status["ready"], status["health"], trouble["code"]) == (True, "degraded", "STORE_FULL")
    assert status["started_at"] < trouble["since"]
    assert "free space" in trouble["lifted_by"]
    again = _status(client)["troubles"][0]
    assert again == trouble, "since its first occurrence"
    refused = place.firm("agent", "create", "--name", "ann", "--description", "x" * 30_000)
    assert (refused.returncode, refused.stdout) == (3, "")
    assert "STORE_FULL" in refused.stderr
    assert "To lift it: free space on the disk that holds FIRM_HOME" in refused.stderr
    told = place.firm("node", "status")
    assert told.returncode == 0
    assert "STORE_FULL" in told.stdout
    assert "since" in told.stdout
    assert "To lift it: free space" in told.stdout


def test_full_at_the_start_is_named_and_space_lifts_it(place: Place, tmp_path: Path) -> None:
    place.disk.fill()
    assert "free space" in place.refuses()
    place.disk.free()
    daemon = place.start()
    with place.client() as client:
        client.ask("agent.create", {"name": "ann"})
    assert daemon.stop() == 0
    place.disk.fill()
    line = place.refuses()
    assert line.startswith("STORE_UNUSABLE: ")
    assert "free space" in line
    place.disk.free()
    assert place.start().stop() == 0
    assert names(place.copy(tmp_path / "copy")) == ["ann"]


def test_read_only_at_the_start_is_named_and_a_writable_disk_lifts_it(place: Place) -> None:
    assert place.start().stop() == 0
    place.disk.read_only()
    line = place.refuses()
    assert line.startswith("STORE_UNUSABLE: ")
    assert "make the disk that holds FIRM_HOME writable" in line
    started = place.firm("node", "start")
    assert started.returncode == 1
    assert "Traceback" not in started.stderr
    assert "To lift it" in started.stderr
    place.disk.writable()
    assert place.start().stop() == 0


def test_a_home_that_cannot_be_made_or_filled_is_named(place: Place) -> None:
    place.disk.read_only()
    assert place.refuses().startswith("HOME_UNSAFE: ")
    place.disk.writable()
    place.outside.mkdir(mode=0o700)
    place.disk.read_only()
    line = place.refuses()
    assert line.startswith("HOME_UNUSABLE: ")
    assert "Read-only file system" in line
    place.disk.writable()
    assert place.start().stop() == 0


def test_a_restore_that_finds_no_room_changes_nothing_and_leaves_nothing(place: Place, tmp_path: Path) -> None:
    daemon = place.start()
    with place.client() as client:
        for number in range(20):
            client.ask("agent.create", {"name": f"a{number}", "description": "x" * 10_000})
        assert "answer" in client.ask("node.backup", {"file": str(tmp_path / "b.db")})
        client.ask("agent.create", {"name": "bob"})
    assert daemon.stop() == 0
    before = {found.name: found.read_bytes() for found in place.outside.iterdir() if found.is_file()}
    for room in (0, 100_000):
        place.disk.fill(leave=room)
        refused = place.run(*RESTORE, str(tmp_path / "b.db"))
        assert refused.returncode == 1
        assert "Nothing was changed" in refused.stderr
        assert "To lift it: free space" in refused.stderr
        assert {found.name: found.read_bytes() for found in place.outside.iterdir() if found.is_file()} == before
        place.disk.free()
    assert place.run(*RESTORE, str(tmp_path / "b.db")).returncode == 0
    assert faults_in(place.copy(tmp_path / "copy")) == []
    assert len(names(tmp_path / "copy/node.db")) == 20
