"""``firm node start``, ``stop``, ``status`` and ``logs``: one daemon, good answers, and reasons."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from client.cli.ask import Conversation, Unavailable
from client.cli.holder import holder
from tests.cli.shell import Shell, has_ended, watched


def test_ten_shells_at_once_start_one_daemon_and_get_ten_good_answers(shell: Shell) -> None:
    starters = [shell.begin("node", "start", "--json") for _ in range(10)]
    said = [starter.communicate() for starter in starters]
    assert [starter.returncode for starter in starters] == [0] * 10, said
    answers = [json.loads(out) for out, _ in said]
    assert {answer["status"]["pid"] for answer in answers} == {shell.pid()}
    assert {answer["status"]["daemon_gen"] for answer in answers} == {1}
    assert sorted(answer["state"] for answer in answers) == ["runs already"] * 9 + ["started"]
    assert [err for _, err in said] == [b""] * 10


def test_starting_twice_says_that_it_runs(shell: Shell) -> None:
    assert shell.firm("node", "start").startswith("The daemon started: pid ")
    pid = shell.pid()
    assert shell.firm("node", "start").startswith(f"The daemon runs already: pid {pid}, daemon_gen=1,")
    assert shell.pid() == pid


def test_a_start_makes_a_folder_only_its_owner_can_use(shell: Shell) -> None:
    shell.having(FIRM_HOME=str(shell.home / "a" / "b")).firm("node", "start")
    try:
        assert (shell.home / "a" / "b").stat().st_mode & 0o777 == 0o700
    finally:
        shell.having(FIRM_HOME=str(shell.home / "a" / "b")).firm("node", "stop")


def test_a_home_that_cannot_be_made_is_named(shell: Shell) -> None:
    (shell.cwd / "file").touch()
    for where in (shell.cwd / "file", shell.cwd / "file" / "below", Path("/proc/nosuch/home")):
        done = shell.having(FIRM_HOME=str(where)).tries("node", "start")
        assert done.status == 1
        assert f"{where} cannot be used" in done.err
        assert "[HOME_UNUSABLE]\n  To lift it: set FIRM_HOME to a folder you can make\n" in done.err


def test_a_home_that_others_can_use_is_refused_with_the_command_that_lifts_it(shell: Shell) -> None:
    shell.home.mkdir(mode=0o755)
    done = shell.tries("node", "start")
    assert done.status == 1
    assert f"The daemon did not start: {shell.home} has mode 755." in done.err
    command = done.err.split("To lift it: ")[1]
    assert shell.bash(command).status == 0
    shell.firm("node", "start")


def test_a_daemon_that_cannot_start_shows_its_reason(shell: Shell) -> None:
    shell.home.mkdir(mode=0o700)
    with sqlite3.connect(shell.home / "node.db") as other:
        other.execute("CREATE TABLE somebody_elses (x)")
    other.close()
    for form in ([], ["--json"]):
        done = shell.tries("node", "start", *form)
        assert done.status == 1
        assert done.out == ""
        assert "STORE_UNUSABLE" in done.err
        assert "is not a firm database" in done.err
        assert "move it away" in done.err
    assert "STORE_UNUSABLE" in shell.firm("node", "logs")


def test_a_daemon_that_falls_over_for_no_known_reason_shows_its_last_words(shell: Shell) -> None:
    # Fewer descriptors than a daemon needs, and more than the command does.
    done = shell.bash("ulimit -n 12; firm node start")
    assert done.status == 4
    assert "firm: The daemon did not start." in done.err
    assert "  | " in done.err
    assert str(shell.home / "daemon.log") in done.err
    shell.firm("node", "start")


def test_a_session_does_not_start_a_daemon_and_does_not_stop_one(shell: Shell) -> None:
    session = shell.having(FIRM_MEMBER_RUN_ID="x")
    done = session.tries("node", "start")
    assert done.status == 1
    assert "[NOT_AUTHORIZED node start]" in done.err
    assert not shell.home.exists()
    with shell.running() as pid, watched(pid) as handle:
        assert session.tries("node", "start").status == 1
        assert session.tries("node", "stop").status == 1
        assert session.tries("team", "list").status == 1
        assert not has_ended(handle)


def test_stopping_what_does_not_run_is_done_already(shell: Shell) -> None:
    assert shell.firm("node", "stop") == "No daemon runs.\n"
    assert shell.tries("node", "stop", "--json").json == {"stopped": False, "pid": None}
    assert not shell.home.exists()


def test_stop_returns_when_the_process_is_gone_and_leaves_no_socket(shell: Shell) -> None:
    shell.firm("node", "start")
    pid = shell.pid()
    with watched(pid) as handle:
        assert shell.firm("node", "stop") == f"The daemon, pid {pid}, has ended.\n"
        assert has_ended(handle)
    assert list((shell.home / "run").iterdir()) == []
    assert holder(str(shell.home)) == 0


def test_stop_ends_those_who_wait_and_tells_them_to_ask_again(shell: Shell) -> None:
    with shell.running():
        watcher = shell.begin("watch", "--json")
        waiting = shell.begin("wait", "seq>0")
        shell.answer("agent", "create", "ann")  # both are served from here on, or were before
        assert watcher.stdout is not None
        waiting.communicate()
        never = shell.begin("wait", "seq>1000000")
        _until_waits(shell, 3)
        shell.firm("node", "stop")
        _, err = never.communicate()
        assert never.returncode == 3, err
        assert b"NODE_DAEMON_DRAINING" in err
        watcher.communicate()


def _until_waits(shell: Shell, count: int) -> None:
    """Until the daemon holds that many open requests: ours of this moment, a watch and a wait. Ends with the test."""
    while json.loads(shell.firm("node", "status", "--json"))["waits"] < count:
        pass


def test_a_daemon_that_has_closed_its_doors_and_lives_is_waited_for_not_denied(shell: Shell) -> None:
    """It was told to end, and somebody asks to stop it, and to start another, before it is gone."""
    shell.firm("node", "start")
    pid = shell.pid()
    assert holder(str(shell.home)) == pid
    # As a drain looks from outside: the process lives, holds the folder, and has no door.
    for name in ("node.sock", "member.sock"):
        (shell.home / "run" / name).unlink()
    stopping = shell.begin("node", "stop")
    assert stopping.stderr is not None
    assert b"waiting for the daemon" in stopping.stderr.readline()
    with watched(pid) as handle:
        os.kill(pid, signal.SIGTERM)
        out, _ = stopping.communicate()
        assert has_ended(handle)
    assert (stopping.returncode, out.decode()) == (0, f"The daemon, pid {pid}, has ended.\n")


def test_start_waits_for_a_predecessor_that_is_ending(shell: Shell) -> None:
    shell.firm("node", "start")
    pid = shell.pid()
    for name in ("node.sock", "member.sock"):
        (shell.home / "run" / name).unlink()
    starting = shell.begin("node", "start")
    assert starting.stderr is not None
    assert b"waiting for the daemon" in starting.stderr.readline()
    os.kill(pid, signal.SIGTERM)
    out, _ = starting.communicate()
    assert (starting.returncode, out[:19]) == (0, b"The daemon started:")
    assert shell.pid() != pid


def test_a_killed_daemon_is_started_again_with_everything(shell: Shell) -> None:
    shell.firm("node", "start")
    shell.firm("agent", "create", "ann")
    pid = shell.pid()
    with watched(pid) as handle:
        os.kill(pid, signal.SIGKILL)
        assert has_ended(handle, within=10)
    assert shell.tries("node", "status").status == 4
    assert shell.firm("node", "stop") == "No daemon runs.\n"
    assert "daemon_gen=2" in shell.firm("node", "start")
    assert [item["name"] for item in shell.answer("agent", "list")["items"]] == ["ann"]


def test_status_without_a_daemon_ends_with_4_and_says_so_both_ways(shell: Shell) -> None:
    done = shell.tries("node", "status")
    assert (done.status, done.out) == (4, "")
    assert "[NODE_DAEMON_UNAVAILABLE]\n  To lift it: firm node start\n" in done.err
    for_programs = shell.tries("node", "status", "--json")
    assert for_programs.status == 4
    assert for_programs.json["live"] is False
    assert for_programs.json["ready"] is False
    assert for_programs.json["home"] == str(shell.home)


def test_status_names_each_profile_of_the_person_that_cannot_be_used(shell: Shell, tmp_path: Path) -> None:
    profiles = tmp_path / "firm" / "profiles"
    profiles.mkdir(parents=True)
    (profiles / "one.toml").write_text("argv = [")
    (profiles / "two.toml").write_text("argv = []")
    person = shell.having(XDG_CONFIG_HOME=str(tmp_path))
    with person.running():
        said = person.firm("node", "status")
        troubles = json.loads(person.firm("node", "status", "--json"))["troubles"]
    assert [each["code"] for each in troubles] == ["PROFILE_UNUSABLE"] * 2
    for name in ("one.toml: not TOML", "two.toml: argv names no program"):
        assert str(profiles / name) in said


def test_status_says_what_it_does_not_do_and_what_it_cannot_prove(served: Shell) -> None:
    text = " ".join(served.firm("node", "status").split())
    status = served.tries("node", "status", "--json").json
    for sentence in (*status["not_built"], status["boundary"]):
        assert sentence in text
    assert status["live"]
    assert status["ready"]
    assert text.startswith("The daemon is ready; health ok.")


def test_logs_show_the_last_lines_and_follow(shell: Shell) -> None:
    done = shell.tries("node", "logs")
    assert done.status == 1
    assert "[NO_LOG]" in done.err
    with shell.running():
        assert "ready daemon_gen=1" in shell.firm("node", "logs")
        assert len(shell.firm("node", "logs", "-n", "1").splitlines()) == 1
        assert shell.firm("node", "logs", "--lines", "0") == ""
        told = json.loads(shell.firm("node", "logs", "--json"))
        assert told == {"log": str(shell.home / "daemon.log"), "lines": shell.firm("node", "logs").splitlines()}
        assert shell.tries("node", "logs", "--json", "--follow").status == 2
        follower = shell.begin("node", "logs", "-f", "-n", "1")
        assert follower.stdout is not None
        assert follower.stdout.readline(), "it follows by now"
        shell.firm("node", "stop")
        assert follower.stdout.readline()
        follower.terminate()
        follower.communicate()


def test_a_daemon_whose_starter_is_gone_serves_all_the_same(shell: Shell) -> None:
    """Somebody pressed Ctrl-C while it started."""
    heard, tell = os.pipe()
    os.close(heard)
    command = [sys.executable, "-I", "-m", "daemon", "run"]
    environment = shell.env(FIRM_READY_FD=str(tell))
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, pass_fds=(tell,)) as daemon:
        os.close(tell)
        assert daemon.stderr is not None
        assert any(b"ready daemon_gen=1" in line for line in daemon.stderr)
        assert shell.firm("team", "list") == "None.\n"
        shell.firm("node", "stop")
    assert daemon.returncode == 0


def test_a_daemon_that_takes_connections_and_says_nothing_is_not_waited_for_for_ever(shell: Shell) -> None:
    with shell.running() as pid:
        os.kill(pid, signal.SIGSTOP)
        try:
            conversation = Conversation("", home=str(shell.home), patience=0.2)
            with pytest.raises(Unavailable, match="says nothing"):
                conversation.ask("team.list", {})
            conversation.close()
        finally:
            os.kill(pid, signal.SIGCONT)
        assert shell.firm("team", "list") == "None.\n"
