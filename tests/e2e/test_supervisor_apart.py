"""The same supervisor as a process of its own, over the socket, on real tmux."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from typing import Any

import pytest

from client.protocol.refusals import Code
from daemon.command import USAGE
from tests.e2e.test_told import idle, send, told, took
from tests.support.apart import apart, until_adopted
from tests.support.daemon import Daemon
from tests.support.runs import Field
from tests.support.wire import PATIENCE, Client

#: Seconds of the lease here, so that its end is soon; and of the longest that there is.
LEASE, LONGEST = 2, 60


def run_of(field: Field) -> dict[str, Any]:
    (run,) = field.ask("team-run", "list")["items"]
    return dict(run)


@pytest.fixture
def begun(field: Field) -> tuple[Daemon, dict[str, Any]]:
    """A daemon, and the one member's session, held by the supervisor inside it."""
    field.team("kiwi")
    daemon = field.start()
    assert field.call("up", "team.toml", "--detach").returncode == 0
    (session,) = field.until_live()
    return daemon, session


def test_a_run_is_driven_by_a_process_of_its_own(field: Field, begun: tuple[Daemon, dict[str, Any]]) -> None:
    """It adopts what runs, starts what is missing, and does what is asked; the daemon's own stands back meanwhile."""
    daemon, session = begun
    with apart(field, run_of(field)["id"], lease=LEASE) as other:
        daemon.log.until("was taken by another process")
        until_adopted(field, session["id"], 2)
        assert field.roots() == [session["pid"]]
        os.kill(session["pid"], signal.SIGKILL)
        field.wait(f"session:{session['id']}.state=closed")
        (second,) = field.until_live()
        assert (second["session_gen"], field.roots()) == (session["session_gen"] + 1, [second["pid"]])
        assert field.call("down").returncode == 0
        # There was no Work, so the run is completed, and whoever supervised it is done.
        assert (field.members(), run_of(field)["sup_gen"], run_of(field)["state"]) == ([], 2, "completed")
        assert other.wait() == 1
        assert "TEAM_RUN_NOT_OPEN" in other.log.lines[-1], str(other.log)


def test_when_it_is_killed_the_daemon_adopts_what_it_drove(field: Field, begun: tuple[Daemon, dict[str, Any]]) -> None:
    _, session = begun
    with apart(field, run_of(field)["id"], lease=LEASE) as other:
        until_adopted(field, session["id"], 2)
        other.process.kill()
        assert other.wait() == -signal.SIGKILL
    until_adopted(field, session["id"], 3)
    assert field.roots() == [session["pid"]]
    assert [e["state"] for e in field.ask("effect", "list")["items"]] == ["settled"]


def test_when_it_is_asked_to_leave_the_daemon_has_the_run_at_once(
    field: Field, begun: tuple[Daemon, dict[str, Any]]
) -> None:
    """Its lease would keep everybody out for a minute, which is longer than anybody waits here."""
    _, session = begun
    with apart(field, run_of(field)["id"], lease=LONGEST) as other:
        until_adopted(field, session["id"], 2)
        other.process.send_signal(signal.SIGTERM)
        assert other.wait() == 0
        assert any("it was asked to leave" in line for line in other.log.lines), str(other.log)
    until_adopted(field, session["id"], 3)
    assert field.roots() == [session["pid"]]


def test_when_it_is_asked_to_leave_in_the_middle_of_a_delivery_it_sees_that_to_its_end(field: Field) -> None:
    """At a kill right there nobody would know whether the text was taken, and a person were asked."""
    folder = field.talker()
    field.start()
    assert field.call("up", "team.toml", "--detach").returncode == 0
    session = idle(field)
    with apart(field, run_of(field)["id"], lease=LONGEST, FIRM_CRASH_AT="deliver-entered:1:stop") as other:
        until_adopted(field, session["id"], 2)
        send(field, "which colour?")
        os.waitid(os.P_PID, other.process.pid, os.WSTOPPED)
        other.process.send_signal(signal.SIGTERM)
        other.process.send_signal(signal.SIGCONT)
        assert other.wait() == 0
    (effect,) = told(field)
    assert (effect["state"], effect["certainty"], effect["sup_gen"]) == ("settled", "applied", 2)
    assert len(took(folder)) == 1
    until_adopted(field, session["id"], 3)


def test_one_that_waits_for_a_daemon_leaves_when_it_is_asked(
    field: Field, begun: tuple[Daemon, dict[str, Any]]
) -> None:
    daemon, session = begun
    with apart(field, run_of(field)["id"], lease=LEASE) as other:
        until_adopted(field, session["id"], 2)
        daemon.kill()
        other.log.until("no daemon: ")
        other.process.send_signal(signal.SIGINT)
        assert other.wait() == 0


def test_one_that_stood_still_and_was_superseded_is_refused_by_name_and_ends(
    field: Field, begun: tuple[Daemon, dict[str, Any]]
) -> None:
    daemon, session = begun
    run = run_of(field)
    with apart(field, run["id"], lease=LEASE) as other:
        until_adopted(field, session["id"], 2)
        other.process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, other.process.pid, os.WSTOPPED)
        until_adopted(field, session["id"], 3)
        before = field.firm("event", "list", "--limit", "1")["seq"]
        other.process.send_signal(signal.SIGCONT)
        assert other.wait() == 1
        told = "sup_gen=3 holds this run; a supervisor of sup_gen=2 stops"
        assert any(f"SUPERVISOR_GENERATION_FENCED, {told}" in line for line in other.log.lines), str(other.log)
    assert field.firm("event", "list", "--limit", "1")["seq"] == before
    late = {
        "session_id": session["id"],
        "session_gen": session["session_gen"],
        "sup_gen": 2,
        "cause": "exited",
        "reason": "",
    }
    with Client(daemon.socket) as client:
        assert client.hello(daemon.key, supervises=run["id"])["hello"]["actor"] == f"supervisor/{run['id']}"
        refusal = client.ask("session.report", late)["refusal"]
    assert (refusal["code"], refusal["lifted_by"]) == (Code.SUPERVISOR_GENERATION_FENCED, told)
    assert field.roots() == [session["pid"]]


def test_when_the_daemon_is_killed_it_goes_on_under_the_next_one(
    field: Field, begun: tuple[Daemon, dict[str, Any]]
) -> None:
    daemon, session = begun
    with apart(field, run_of(field)["id"], lease=LEASE) as other:
        until_adopted(field, session["id"], 2)
        daemon.kill()
        other.log.until("lost run=")
        field.start()
        # Between the two the next daemon's own may have held it for a moment.
        found = other.log.until("holding run=", nth=2)
        gen = int(found.rpartition("sup_gen=")[2])
        until_adopted(field, session["id"], gen)
        assert (run_of(field)["sup_gen"], field.roots()) == (gen, [session["pid"]])


def test_a_daemon_that_has_no_doors_yet_is_waited_for(field: Field, begun: tuple[Daemon, dict[str, Any]]) -> None:
    daemon, session = begun
    with apart(field, run_of(field)["id"], lease=LEASE) as other:
        until_adopted(field, session["id"], 2)
        daemon.kill()
        record = field.home.folder / "node.json"
        record.write_text(json.dumps({"sockets": json.loads(record.read_text())["sockets"]}))
        other.log.until("no daemon serves in")
        field.start()
        until_adopted(field, session["id"], int(other.log.until("holding run=", nth=2).rpartition("=")[2]))


@pytest.mark.parametrize("what", ["no key", "a member's door", "another run"])
def test_nobody_else_gets_in_as_a_supervisor(field: Field, begun: tuple[Daemon, dict[str, Any]], what: str) -> None:
    """Only who shows the operator key, at the person's door; and then of that one run."""
    daemon, session = begun
    run = run_of(field)["id"]
    with Client(daemon.member_socket if what == "a member's door" else daemon.socket) as client:
        if what == "another run":
            assert "hello" in client.hello(daemon.key, supervises="another")
            body = {"team_run_id": run}
            assert client.ask("team-run.take", body)["refusal"]["code"] == Code.NOT_FOUND
            assert client.ask("session.close", {"session_id": session["id"]})["refusal"]["code"] == Code.NOT_AUTHORIZED
        else:
            key = "" if what == "no key" else daemon.key
            assert client.hello(key, supervises=run)["refusal"]["code"] == Code.NOT_AUTHORIZED
    assert run_of(field)["sup_gen"] == 1


@pytest.mark.parametrize("seconds", ["0", "61", "soon"])
def test_a_lease_that_nobody_gives_is_refused_before_anything_is_asked(field: Field, seconds: str) -> None:
    words = [sys.executable, "-I", "-m", "daemon", "supervise", "run", seconds]
    done = subprocess.run(words, env=field.environment, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert (done.returncode, done.stderr.splitlines()) == (2, [USAGE])
