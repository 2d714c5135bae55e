"""From start to end: one daemon a home, a drain that drops nothing, a kill that a successor gets over."""

from __future__ import annotations

import contextlib
import json
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable

import pytest

from client import paths
from client.protocol.digest import DIGEST
from client.protocol.refusals import Code
from daemon.cannot_start import StartCode
from tests.support import cut_starts
from tests.support.daemon import Daemon, Home
from tests.support.wire import Client, Message, request

FOREVER = {"predicate": "seq>1000000000", "timeout_ms": 86_400_000}


def row(home: Home) -> tuple[int, int]:
    """The daemon generation, and whether the last daemon has not said that it ended."""
    with contextlib.closing(sqlite3.connect(f"file:{home.database}?mode=ro", uri=True)) as connection:
        generation, is_open = connection.execute("SELECT daemon_gen, open FROM node").fetchone()
    return generation, is_open


def agents(client: Client) -> set[str]:
    names: set[str] = set()
    cursor = ""
    while True:
        page = client.ask("agent.list", {"limit": 500, "cursor": cursor})["answer"]
        names |= {agent["name"] for agent in page["items"]}
        if not (cursor := page["next"] or ""):
            return names


# --- one daemon a home ------------------------------------------------------------------------------------------------


def test_a_second_daemon_ends_at_once_and_the_first_is_unharmed(home: Home) -> None:
    first = home.start()
    with first.client() as client:
        inodes = [path.lstat().st_ino for path in (first.socket, first.member_socket)]
        assert home.refuses().startswith(f"{StartCode.NODE_DAEMON_ALREADY_RUNNING}: ")
        assert inodes == [path.lstat().st_ino for path in (first.socket, first.member_socket)]
        assert client.ask("node.status")["answer"]["pid"] == first.pid
        assert client.ask("node.status")["answer"]["daemon_gen"] == 1


def test_files_that_somebody_deletes_do_not_let_a_second_daemon_in(home: Home) -> None:
    first = home.start()
    (home.folder / "start.lock").touch()
    for name in ("start.lock", "node.json", "operator.key"):
        (home.folder / name).unlink()
    assert home.refuses().startswith(f"{StartCode.NODE_DAEMON_ALREADY_RUNNING}: ")
    assert not (home.folder / "operator.key").exists()
    assert first.stop() == 0
    with home.start().client() as client:
        assert client.ask("node.status")["answer"]["daemon_gen"] == 2


# --- a start that is cut off ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("between", ["none", "kill", "stop"])
def test_a_start_may_be_cut_off_anywhere(home: Home, between: str) -> None:
    """``none``: one first start gets through in the end, each a step further in what the others left."""
    command = [sys.executable, "-I", cut_starts.__file__, between]
    done = subprocess.run(command, env=home.environment, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stderr
    steps = json.loads(done.stdout)
    assert [step.split()[0] for step in steps[-2:]] == ["open", "os.rename"]  # node.json, the last of all
    assert len(steps) >= (12 if between == "none" else 7)
    assert "Traceback" not in done.stderr
    with home.start().client() as client:
        assert client.ask("agent.create", {"name": "ann"})["answer"]["name"] == "ann"
        assert client.ask("node.status")["answer"]["health"] == "ok"


# --- the end ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_daemon_that_is_ready_ends_well_however_soon_it_is_told_to(home: Home, number: signal.Signals) -> None:
    for generation in range(1, 4):
        daemon = home.start()
        daemon.signal(number)
        assert daemon.wait() == 0
        assert row(home) == (generation, 0)


def test_a_drain_answers_what_was_begun_and_refuses_what_waits(daemon: Daemon) -> None:
    with daemon.client() as client, daemon.client() as other:
        client.say(request(1, "event.wait", FOREVER), request(2, "event.watch"), request(3, "team.list"))
        assert client.hear()["id"] == 3
        daemon.signal(signal.SIGTERM)
        for peer, ids in ((client, {1, 2}), (other, set[int]())):
            replies = peer.rest()
            assert {reply["id"] for reply in replies} == ids
            assert {reply["refusal"]["code"] for reply in replies} <= {Code.NODE_DAEMON_DRAINING}
    assert daemon.wait() == 0
    assert row(daemon.home) == (1, 0)
    assert not daemon.socket.exists()


def test_what_is_answered_while_it_drains_is_kept_and_what_is_refused_is_not(home: Home) -> None:
    """Writers go on without a pause while the daemon is told to stop; each reply must be true after the restart."""
    kept, refused = set[str](), set[str]()
    daemon = home.start()
    with contextlib.ExitStack() as stack:
        writers = [stack.enter_context(daemon.client()) for _ in range(16)]
        for n, writer in enumerate(writers):
            writer.say(*(request(i, "agent.create", {"name": f"{n}-{i}"}) for i in range(1, 41)))
        sort(0, writers[0].hear(), kept, refused)
        daemon.signal(signal.SIGTERM)
        for n, writer in enumerate(writers):
            for reply in writer.rest():
                sort(n, reply, kept, refused)
    assert daemon.wait() == 0
    assert row(home) == (1, 0)
    with home.start().client() as client:
        found = agents(client)
    assert kept <= found
    assert not refused & found
    assert len(kept) >= 1


def sort(writer: int, reply: Message, kept: set[str], refused: set[str]) -> None:
    if "answer" in reply:
        kept.add(reply["answer"]["name"])
    else:
        assert reply["refusal"]["code"] == Code.NODE_DAEMON_DRAINING
        refused.add(f"{writer}-{reply['id']}")


def test_whoever_stops_the_daemon_gets_a_receipt(daemon: Daemon) -> None:
    with daemon.client() as client, daemon.client() as other:
        other.say(request(1, "event.wait", FOREVER), request(2, "team.list"))
        other.hear()
        receipt = client.ask("node.stop")["answer"]
        assert receipt == {"daemon_gen": 1, "pid": daemon.pid, "open_requests": 1}
        assert client.rest() == []
        assert [reply["refusal"]["code"] for reply in other.rest()] == [Code.NODE_DAEMON_DRAINING]
    assert daemon.wait() == 0
    assert row(daemon.home) == (1, 0)


def test_what_comes_in_one_piece_with_a_stop_holds_nothing_up(daemon: Daemon) -> None:
    before, after = range(1, 31), range(32, 92)
    with daemon.client() as client:
        client.say(
            *(request(n, "event.wait", FOREVER) for n in before),
            request(31, "node.stop"),
            *(request(n, "event.wait", FOREVER) for n in after),
            request(92, "agent.create", {"name": "late"}),
        )
        replies = {reply["id"]: reply for reply in client.rest()}
    assert daemon.wait(seconds=8) == 0  # a wait that was let in too late would be lingered for
    assert replies.pop(31)["answer"]["pid"] == daemon.pid
    assert replies.keys() == {*before, *after, 92}
    assert {reply["refusal"]["code"] for reply in replies.values()} == {Code.NODE_DAEMON_DRAINING}


def test_whoever_is_told_twice_to_stop_still_ends_well(daemon: Daemon) -> None:
    """An impatient person, or a service manager and a person; the drain goes on."""
    with daemon.client() as slow, daemon.client() as other:
        slow.ask("agent.create", {"name": "wordy", "description": "x" * 60_000})
        slow.say(*(request(n, "agent.list") for n in range(10, 30)))  # more than fits between us
        assert slow.hear()["id"] == 10
        for _ in range(3):
            daemon.signal(signal.SIGTERM)
            assert other.rest() == []  # it drains
        assert [slow.hear()["id"] for _ in range(11, 30)] == list(range(11, 30))
        assert slow.rest() == []
    daemon.log.until("ended daemon_gen")
    with contextlib.suppress(ProcessLookupError):
        daemon.signal(signal.SIGTERM)
    assert daemon.wait() == 0
    assert row(daemon.home) == (1, 0)


@pytest.mark.soak
def test_a_peer_that_never_reads_does_not_hold_up_the_end_for_long(daemon: Daemon) -> None:
    with daemon.client() as client:
        client.ask("agent.create", {"name": "wordy", "description": "x" * 60_000})
        client.say(*(request(n, "agent.list") for n in range(10, 200)), request(200, "event.wait", FOREVER))
        assert client.hear()["id"] == 10
        daemon.signal(signal.SIGTERM)
        assert daemon.wait(seconds=20) == 0
    assert row(daemon.home) == (1, 0)


# --- the end that nobody announced ------------------------------------------------------------------------------------


def test_after_a_kill_the_next_daemon_goes_on_where_it_was(home: Home) -> None:
    first = home.start()
    with first.client() as client:
        made = client.ask("agent.create", {"name": "ann"}, key="k1")
        before = client.ask("node.status")["answer"]
    first.kill()
    assert row(home) == (1, 1)
    second = home.start()
    with second.client() as client:
        after = client.ask("node.status")["answer"]
        again = client.ask("agent.create", {"name": "ann"}, key="k1")
        assert agents(client) == {"ann"}
    assert (again["answer"], again["replayed"]) == (made["answer"], True)
    assert (before["daemon_gen"], after["daemon_gen"]) == (1, 2)
    same = ("node_id", "store_id", "seq", "schema_version", "home", "socket")
    assert [after[name] for name in same] == [before[name] for name in same]
    assert after["health"] == "ok"
    assert second.stop() == 0
    assert row(home) == (2, 0)


def test_a_daemon_that_stood_still_goes_on_with_everybody_it_had(daemon: Daemon) -> None:
    with daemon.client() as waiting, daemon.client() as client:
        waiting.say(request(1, "event.watch"), request(2, "event.wait", {**FOREVER, "predicate": "seq>0"}))
        waiting.say(request(3, "team.list"))
        assert waiting.hear()["id"] == 3
        daemon.stopped()
        client.say(request(1, "agent.create", {"name": "patient"}))
        with Client(daemon.socket) as newcomer:
            assert client.silent(seconds=1)
            assert waiting.silent()
            daemon.signal(signal.SIGCONT)
            assert client.hear()["answer"]["name"] == "patient"
            found = {reply["id"]: reply for reply in (waiting.hear(), waiting.hear())}
            assert found[1]["more"]
            assert not found[2]["answer"]["timed_out"]
            assert "hello" in newcomer.hello(daemon.key)


# --- the store --------------------------------------------------------------------------------------------------------


def sealed(home: Home) -> dict[str, bytes]:
    """Every regular file of the home, byte for byte."""
    return {path.name: path.read_bytes() for path in home.folder.iterdir() if path.is_file()}


def test_a_store_of_a_newer_program_is_left_as_it_is(home: Home) -> None:
    assert home.start().stop() == 0
    with contextlib.closing(sqlite3.connect(home.database)) as connection:
        connection.execute("PRAGMA user_version = 9999")
    before = sealed(home)
    said = home.refuses()
    assert said.startswith(f"{StartCode.STORE_NEWER}: ")
    assert "9999" in said
    after = sealed(home)
    assert {name: after[name] for name in before} == before
    assert after.keys() - before.keys() <= {"node.db-shm", "node.db-wal"}  # SQLite's, of looking


def other_program(home: Home) -> None:
    with contextlib.closing(sqlite3.connect(home.database)) as connection:
        connection.execute("CREATE TABLE diary (day TEXT)")


def no_database(home: Home) -> None:
    home.database.write_bytes(b"Dear diary, " * 1000)


def cut_short(home: Home) -> None:
    home.database.write_bytes(b"SQLite format 3\0")


@pytest.mark.parametrize("found", [other_program, no_database, cut_short])
def test_a_file_that_is_no_store_of_ours_is_left_as_it_is(home: Home, found: Callable[[Home], None]) -> None:
    home.folder.mkdir(mode=0o700)
    found(home)
    before = home.database.read_bytes()
    assert home.refuses().startswith(f"{StartCode.STORE_UNUSABLE}: ")
    assert home.database.read_bytes() == before
    assert not home.run.exists() or list(home.run.iterdir()) == []


def test_what_the_daemon_writes_of_itself_is_enough_to_find_it(daemon: Daemon) -> None:
    found = paths.node_file(str(daemon.home.folder))
    assert found["pid"] == daemon.pid
    assert found["socket"] == str(daemon.socket)
    assert found["table"] == DIGEST
