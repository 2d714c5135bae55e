"""``firm up`` as somebody types it for the first time: wrong files, questions, interrupts, a daemon that is gone."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import textwrap

import pytest

from client.cli.by_hand.up import MORE
from client.team_file import read
from tests.cli.shell import FIRM, PATIENCE, Shell, complaints

FILE = """\
[team]
name = "core"
host = "me"

[[member]]
name = "bob"
profile = "external"
"""
WORK = """
[[work]]
key = "KEY"
title = "do KEY"
criteria = ["it works"]
"""


def works(count: int) -> str:
    return FILE + "".join(WORK.replace("KEY", f"w{number}") for number in range(count))


def runs(shell: Shell) -> list[tuple[str, str]]:
    return [(each["id"], each["state"]) for each in shell.answer("team-run", "list")["items"]]


WHAT = "write a team file and name it: firm up FILE; what stands in one: firm up --help"


@pytest.mark.parametrize(
    ("typed", "lifted_by"),
    [
        ("nope.toml", WHAT),
        ("sub", "name the team file: firm up sub/a.toml or firm up 'sub/two words.toml'"),
        ("sub/nope.toml", "name the team file: firm up sub/a.toml or firm up 'sub/two words.toml'"),
        ("gone/nope.toml", WHAT),
        ("sub/other.txt", "name the team file: firm up sub/a.toml or firm up 'sub/two words.toml'"),
    ],
)
def test_what_is_no_team_file_is_answered_with_those_that_are_there(shell: Shell, typed: str, lifted_by: str) -> None:
    sub = shell.cwd / "sub"
    sub.mkdir()
    for name in ("two words.toml", "a.toml"):
        (sub / name).write_text(FILE)
    (sub / "pyproject.toml").write_text("[project]\n")
    (sub / "broken.toml").write_bytes(b"[team]\xff")
    (sub / "other.txt").write_bytes(b"\xff")
    done = shell.tries("up", typed, "--json")
    assert (done.status, done.refusal["code"], done.refusal["lifted_by"]) == (1, "FILE_UNUSABLE", lifted_by)
    assert not shell.home.exists()


def test_without_a_word_the_file_is_team_toml(shell: Shell) -> None:
    assert shell.tries("up").err.startswith("firm: team.toml cannot be read: No such file or directory. [FILE_UNUSABLE")
    (shell.cwd / "team.toml").write_text("")
    done = shell.tries("up")
    assert (done.status, done.err.splitlines()[1]) == (
        2,
        "  To lift it: correct team.toml:1: team: write a table [team] with name and host",
    )


def test_a_folder_that_is_none_is_refused_before_anything_is_made(shell: Shell) -> None:
    (shell.cwd / "team.toml").write_text(FILE.replace('host = "me"', 'host = "me"\nproject = "nowhere"'))
    done = shell.tries("up", "--json")
    assert (done.status, done.refusal["code"]) == (1, "FILE_UNUSABLE")
    assert shell.answer("agent", "list")["items"] == []


def test_the_example_of_the_help_is_a_team_file(shell: Shell) -> None:
    assert MORE in shell.firm("up", "--help")
    file = read("help", textwrap.dedent(MORE.partition(":\n\n")[2]))
    assert [(work.title, work.assign) for work in file.works] == [("Say hello", "kiwi")]


def test_an_interrupt_while_it_is_followed_says_what_goes_on(shell: Shell) -> None:
    (shell.cwd / "team.toml").write_text(works(1))
    up = shell.begin("up")
    assert up.stdout is not None
    while "1 open" not in (line := up.stdout.readline().decode()):
        assert line, "it ended"
    up.send_signal(signal.SIGINT)
    _, err = up.communicate(timeout=PATIENCE)
    ((run, state),) = runs(shell)
    assert (up.returncode, state) == (130, "running")
    assert complaints(err.decode()) == (
        f"firm: Interrupted; what was done stays. Run {run} goes on. [INTERRUPTED core]\n"
        f"  To lift it: to go on with it: firm up team.toml; to look at it: firm board; to end it: firm down {run}\n"
    )


def test_an_interrupt_while_works_are_made_loses_and_doubles_none(shell: Shell) -> None:
    (shell.cwd / "team.toml").write_text(works(60))
    up = shell.begin("up")
    assert up.stdout is not None
    while "work w3:" not in (line := up.stdout.readline().decode()):
        assert line, "it ended"
    up.send_signal(signal.SIGINT)
    up.communicate(timeout=PATIENCE)
    assert up.returncode == 130
    shell.firm("up", "--detach")
    assert sorted(each["title"] for each in shell.answer("work", "list")["items"]) == sorted(
        f"do w{number}" for number in range(60)
    )


def test_after_a_kill_of_the_daemon_up_starts_the_next_and_goes_on_with_the_run(shell: Shell) -> None:
    (shell.cwd / "team.toml").write_text(works(2))
    first = json.loads(shell.firm("up", "--detach", "--json"))
    os.kill(shell.pid(), signal.SIGKILL)
    assert json.loads(shell.firm("up", "--detach", "--json")) == first
    shell.firm("node", "stop")
    assert json.loads(shell.firm("up", "--detach", "--json")) == first


def test_where_several_runs_go_on_down_says_which_as_it_can_be_typed(shell: Shell) -> None:
    (shell.cwd / "a.toml").write_text(works(1))
    (shell.cwd / "b.toml").write_text(works(1).replace("core", "docs"))
    ids = [json.loads(shell.firm("up", name, "--detach", "--json"))["run"] for name in ("a.toml", "b.toml")]
    done = shell.tries("down")
    said = f"To lift it: say which: firm down {ids[0]} (core) or firm down {ids[1]} (docs)"
    assert (done.status, done.err.splitlines()[1].strip()) == (2, said)
    for id_ in ids:
        assert f"Run {id_} is draining" in shell.firm("down", id_)
    assert "firm up goes on with it" in shell.firm("down", ids[0])


def test_up_after_a_run_that_is_completed_says_that_it_begins_another(shell: Shell) -> None:
    (shell.cwd / "team.toml").write_text(FILE)
    first = json.loads(shell.firm("up", "--detach", "--json"))["run"]
    assert shell.firm("down") == f"Run {first} is completed.\n"
    assert shell.tries("down").err == "firm: No run goes on. [USAGE]\n  To lift it: start one: firm up FILE\n"
    said = shell.firm("up", "--detach")
    (_, (second, _)) = runs(shell)
    assert f"  run {second}, a new one: {first} is completed\n" in said


def answered(shell: Shell, answer: bytes) -> tuple[int, str]:
    """``firm up`` at a terminal, and what is typed when it asks."""
    leader, follower = pty.openpty()
    try:
        process = subprocess.Popen(
            [FIRM, "up", "--detach"], env=shell.env(), cwd=shell.cwd, stdin=follower, stdout=follower, stderr=follower
        )
        os.close(follower)
        heard = b""
        while b"[y/N] " not in heard:
            heard += os.read(leader, 1 << 16)
        os.write(leader, answer)
        while True:
            try:
                heard += os.read(leader, 1 << 16)
            except OSError:  # nobody holds the other end any more
                return process.wait(PATIENCE), heard.decode().replace("\r\n", "\n")
    finally:
        os.close(leader)


@pytest.mark.parametrize("answer", [b"n\n", b"\n", b"\x04"], ids=["no", "nothing", "end of input"])
def test_on_a_terminal_it_asks_and_without_a_yes_changes_nothing(shell: Shell, answer: bytes) -> None:
    file = shell.cwd / "team.toml"
    file.write_text(FILE)
    shell.firm("up", "--detach")
    file.write_text(FILE.replace('"bob"', '"bob"\nrole = "builder"'))
    status, said = answered(shell, answer)
    assert (status, "Traceback" in said) == (1, False)
    assert "The file asks for these changes:\n  member bob: role nothing → builder" in said
    assert "To lift it: look at them, then: firm up team.toml --yes" in said
    assert shell.answer("agent", "show", "bob")["role"] == ""
    status, said = answered(shell, b"y\n")
    assert (status, "  changed: member bob: role nothing → builder" in said) == (0, True)
    assert shell.answer("agent", "show", "bob")["role"] == "builder"
