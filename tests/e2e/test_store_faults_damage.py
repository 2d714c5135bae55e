"""A damaged file under a real daemon: it serves what is sound, says what is not, and a restore lifts it."""

from __future__ import annotations

import contextlib
import select
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import apsw

from tests.support import corrupt
from tests.support.crash import dice
from tests.support.daemon import Daemon, Home
from tests.support.stores import faults_in, names
from tests.support.wire import Client

FIRM = [sys.executable, "-I", "-c", "import firm_entry, sys; sys.exit(firm_entry.cli())"]


def firm(home: Home, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*FIRM, *words], env=home.environment, capture_output=True, text=True, check=False)


def _status(client: Client) -> dict[str, Any]:
    return dict(client.ask("node.status")["answer"])


def _code(reply: dict[str, Any]) -> str:
    return str(reply["refusal"]["code"])


def _fold_the_log(database: Path) -> None:
    with contextlib.closing(apsw.Connection(str(database))) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()


def _with_damage(home: Home, *, clean: bool) -> Daemon:
    """A daemon over a file whose table ``teams`` is damaged, after an end of its predecessor that was clean or not."""
    first = home.start()
    with first.client() as client:
        client.ask("agent.create", {"name": "ann"})
        assert "answer" in client.ask("node.backup", {"file": str(home.temporary / "b.db")})
        client.ask("agent.create", {"name": "bob"})
    first.stop() if clean else first.kill()
    _fold_the_log(home.database)
    corrupt.damage_page(home.database, "teams")
    daemon = home.start()
    for line in ("integrity check", "storage fault", "clean end"):
        daemon.expect(line)
    return daemon


def _damage_is_told(home: Home, client: Client) -> None:
    status = _status(client)
    (trouble,) = status["troubles"]
    assert (status["ready"], status["health"], trouble["code"]) == (False, "degraded", "STORE_CORRUPT")
    assert "integrity check: teams: Tree" in trouble["what"]
    assert status["teams"] is None
    told = firm(home, "node", "status")
    assert told.returncode == 0
    assert "STORE_CORRUPT: integrity check: teams: Tree" in told.stdout
    assert "To lift it: stop the daemon and restore a backup: firm node restore FILE" in told.stdout
    refused = firm(home, "agent", "create", "--name", "zoe")
    assert refused.returncode == 5
    assert "STORE_CORRUPT" in refused.stderr
    assert [agent["name"] for agent in client.ask("agent.list")["answer"]["items"]][:2] == ["ann", "bob"]
    assert _code(client.ask("team.list")) == "STORE_CORRUPT"


def _restored(home: Home, daemon: Daemon) -> None:
    assert daemon.stop() == 0
    done = firm(home, "node", "restore", str(home.temporary / "b.db"))
    assert (done.returncode, done.stderr) == (0, "")
    again = home.start()
    with again.client() as client:
        assert (_status(client)["health"], _status(client)["troubles"]) == ("ok", [])
        assert "answer" in client.ask("agent.create", {"name": "eve"})
    assert again.stop() == 0
    assert names(home.database) == ["ann", "eve"]


def test_damage_is_found_after_an_unclean_end_while_peers_are_served(home: Home) -> None:
    daemon = _with_damage(home, clean=False)
    daemon.log.until("integrity check: teams: Tree")
    with daemon.client() as client:
        _damage_is_told(home, client)
    _restored(home, daemon)


def test_damage_that_is_met_later_is_named_too(home: Home) -> None:
    daemon = _with_damage(home, clean=True)
    with daemon.client() as client:
        assert "answer" in client.ask("agent.create", {"name": "eve"})  # nobody has looked there yet
        assert _code(client.ask("team.list")) == "STORE_CORRUPT"
        daemon.log.until("integrity check: teams: Tree")
        _damage_is_told(home, client)
    _restored(home, daemon)


def test_a_file_that_cannot_be_opened_is_named_and_restored(home: Home) -> None:
    first = home.start()
    with first.client() as client:
        client.ask("agent.create", {"name": "ann"})
        client.ask("node.backup", {"file": str(home.temporary / "b.db")})
    assert first.stop() == 0
    corrupt.invert(home.database, 0, 100)
    line = home.refuses()
    assert line.startswith("STORE_UNUSABLE: ")
    assert "firm node restore FILE" in line
    assert firm(home, "node", "restore", str(home.temporary / "b.db")).returncode == 0
    assert home.start().stop() == 0
    assert names(home.database) == ["ann"]


def test_a_restore_beside_a_running_daemon_is_refused_and_changes_nothing(daemon: Daemon) -> None:
    home = daemon.home
    with daemon.client() as client:
        client.ask("agent.create", {"name": "ann"})
        client.ask("node.backup", {"file": str(home.temporary / "b.db")})
        client.ask("agent.create", {"name": "bob"})
        before = sorted(path.name for path in home.folder.iterdir())
        refused = firm(home, "node", "restore", str(home.temporary / "b.db"))
        assert refused.returncode == 1
        assert "NODE_DAEMON_ALREADY_RUNNING" in refused.stderr
        assert "firm node stop" in refused.stderr
        assert sorted(path.name for path in home.folder.iterdir()) == before
        assert "answer" in client.ask("agent.create", {"name": "eve"})
    assert names(home.database) == ["ann", "bob", "eve"]


def test_a_restore_of_what_is_no_backup_says_what_lifts_it(home: Home) -> None:
    assert home.start().stop() == 0
    before = home.database.read_bytes()
    letter = home.temporary / "letter.txt"
    letter.write_text("dear all\n" * 1000)
    refused = firm(home, "node", "restore", str(letter))
    assert refused.returncode == 1
    assert "FILE_UNUSABLE" in refused.stderr
    assert "Nothing was changed" in refused.stderr
    assert "To lift it: choose a file that firm node backup" in refused.stderr
    assert home.database.read_bytes() == before


def test_after_a_restore_the_daemon_is_above_any_before_and_old_cursors_are_refused(home: Home) -> None:
    daemon, backup = home.start(), str(home.temporary / "b.db")
    with daemon.client() as client:
        for name in ("ann", "bob"):
            client.ask("agent.create", {"name": name})
        client.ask("node.backup", {"file": backup})
        status, cursor = _status(client), client.ask("event.list", {"limit": 1})["answer"]["cursor"]
    assert daemon.stop() == 0
    for _ in range(2):
        assert firm(home, "node", "restore", backup).returncode == 0
        daemon = home.start()
        with daemon.client() as client:
            now = _status(client)
            assert now["daemon_gen"] > status["daemon_gen"] + 1000
            assert now["store_id"] != status["store_id"]
            assert now["node_id"] == status["node_id"]
            assert _code(client.ask("event.list", {"cursor": cursor})) == "CURSOR_INVALID"
            status = now
        assert daemon.stop() == 0


def test_killed_while_it_starts_the_next_one_starts(home: Home) -> None:
    moments = dice()
    began = time.monotonic()
    assert home.start().stop() == 0
    needed = time.monotonic() - began
    for _ in range(6):
        daemon = home.launch()
        select.select([daemon.fd], [], [], moments.uniform(0, needed))
        daemon.signal(signal.SIGKILL)
        assert daemon.wait() == -signal.SIGKILL
    daemon = home.start()
    with daemon.client() as client:
        assert 2 <= _status(client)["daemon_gen"] <= 8
        assert "answer" in client.ask("agent.create", {"name": "ann"})
    assert daemon.stop() == 0
    assert faults_in(home.database) == []


def test_a_daemon_forgets_old_replies_when_it_starts(home: Home) -> None:
    daemon = home.start()
    with daemon.client() as client:
        client.ask("agent.create", {"name": "ann"}, key="k1")
    assert daemon.stop() == 0
    with contextlib.closing(apsw.Connection(str(home.database))) as connection:
        connection.executemany(
            "INSERT INTO replies (mark, digest, answer, at) VALUES (randomblob(16), zeroblob(32), x'c0', ?)",
            [(1,)] * 99,
        )
    daemon = home.start()
    with daemon.client() as client:
        assert client.ask("agent.create", {"name": "ann"}, key="k1")["replayed"] is True
    assert daemon.stop() == 0
    with contextlib.closing(apsw.Connection(str(home.database))) as connection:
        assert connection.execute("SELECT count(*) FROM replies").get == 1
