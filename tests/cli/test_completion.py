"""Completion in bash, zsh and fish: nouns, verbs, flags, choices, ids and names, as the shells themselves ask."""

from __future__ import annotations

import shlex
import shutil
import subprocess

import pytest

from client.cli.by_hand.completion import SCRIPTS
from tests.cli.shell import PATIENCE, Shell

#: The line so far, the last word being the one to complete, and what it can become.
LINES = [
    (["te"], ["team", "team-run"]),
    (["e"], ["effect", "event", "events"]),
    (["team", "de"], ["deactivate"]),
    (["node", "st"], ["start", "status", "stop"]),
    (["team", "create", "--ho"], ["--host-agent-id"]),
    (["agent", "create", "x", "--ce"], ["--ceiling"]),
    (["agent", "create", "x", "--ceiling", "re"], ["read_only"]),
    (["team", "list", "--state", "tr"], ["trashed"]),
    (["agent", "pause", "kiw"], ["kiwi"]),
    (["team", "create", "x", "--host-agent-id", "kiw"], ["kiwi"]),
    (["wait", "--cu"], ["--cursor"]),
    (["node", "logs", "--fo"], ["--follow"]),
    (["completion", "z"], ["zsh"]),
    (["at"], ["attach", "attention"]),
    (["attach", "kiw"], ["kiwi"]),
    (["up", "team.toml", "--de"], ["--detach"]),
    (["help", "te"], ["team", "team-run"]),
    (["nosuch", "x"], []),
]
IDS = [" ".join(line) for line, _ in LINES]


@pytest.fixture(scope="module")
def named(served: Shell) -> Shell:
    """Agents with a plain name, with one that a shell would run, with spaces, and two with the same name."""
    for name in ("kiwi", "$(touch ran)", "`touch ran`", "two words", "a;b", "twin", "twin"):
        served.firm("agent", "create", "--name", name)
    return served


def asked(shell: Shell, *typed: str) -> list[str]:
    return shell.firm("completion", "words", "--", *typed).splitlines()


def bash(shell: Shell, line: list[str]) -> list[str]:
    """What the function that bash calls puts into COMPREPLY."""
    words = " ".join(shlex.quote(word) for word in ["firm", *line])
    done = shell.bash(
        f'eval "$(firm completion bash)"; COMP_WORDS=({words}); COMP_CWORD={len(line)}; _firm; '
        'printf "%s\\n" "${COMPREPLY[@]}"'
    )
    assert (done.status, done.err) == (0, "")
    return done.out.split()


def zsh(shell: Shell, line: list[str]) -> list[str]:
    """What the function that zsh calls gives to compadd, which filters it by what was typed."""
    words = " ".join(shlex.quote(word) for word in ["firm", *line])
    script = (
        'compdef() { :; }; compadd() { shift; print -rl -- "$@"; }; _files() { :; }; eval "$(firm completion zsh)"; '
        f"words=({words}); CURRENT={len(line) + 1}; _firm"
    )
    return shell.bash(f"zsh -f -c {shlex.quote(script)}").out.split()


def fish(shell: Shell, line: list[str]) -> list[str]:
    """What fish offers for the line."""
    typed = " ".join(["firm", *line])
    done = shell.bash(f"HOME=$PWD fish --no-config -c 'firm completion fish | source; complete -C \"{typed}\"'")
    return [offered.split("\t")[0] for offered in done.out.splitlines()]


@pytest.mark.parametrize(("line", "expected"), LINES, ids=IDS)
def test_bash_completes(named: Shell, line: list[str], expected: list[str]) -> None:
    assert bash(named, line) == expected


@pytest.mark.skipif(shutil.which("zsh") is None, reason="zsh is not installed")
@pytest.mark.parametrize(("line", "expected"), LINES, ids=IDS)
def test_zsh_completes(named: Shell, line: list[str], expected: list[str]) -> None:
    assert zsh(named, line) == expected


@pytest.mark.skipif(shutil.which("fish") is None, reason="fish is not installed")
@pytest.mark.parametrize(("line", "expected"), LINES, ids=IDS)
def test_fish_completes(named: Shell, line: list[str], expected: list[str]) -> None:
    assert sorted(fish(named, line)) == expected


def test_an_empty_word_gets_everything_that_can_stand_there(named: Shell) -> None:
    assert {"agent", "team", "events", "completion"} <= set(asked(named, ""))
    assert asked(named, "completion", "") == sorted(SCRIPTS)
    assert "--json" in asked(named, "team", "list", "")
    ids = [item["id"] for item in named.answer("agent", "list")["items"]]
    assert asked(named, "agent", "show", "") == sorted([*ids, "kiwi"])


def test_a_name_that_a_shell_would_run_or_split_is_not_offered_and_never_run(named: Shell) -> None:
    offered = bash(named, ["agent", "show", ""])
    assert all(word.isalnum() for word in offered)
    assert not (named.cwd / "ran").exists()


def test_an_ambiguous_name_is_not_offered(named: Shell) -> None:
    assert asked(named, "agent", "show", "tw") == []


def test_flag_and_value_may_be_joined(named: Shell) -> None:
    assert asked(named, "team", "list", "--state=a") == ["--state=active"]
    assert asked(named, "team", "list", "--state", "=", "a") == ["active"]  # as bash takes it apart
    assert asked(named, "team", "list", "--state", "=") == ["active", "inactive", "trashed"]


def test_a_flag_that_was_given_is_not_offered_again_unless_it_may_be(named: Shell) -> None:
    given = asked(named, "agent", "create", "x", "--skill", "sql", "--role", "r", "--")
    assert "--role" not in given
    assert "--skill" in given


def test_where_a_path_belongs_the_shell_completes_files(named: Shell) -> None:
    for line in (["node", "backup", ""], ["node", "restore", ""], ["team", "create", "x", "--project", ""]):
        assert asked(named, *line) == []
    (named.cwd / "copy.db").touch()
    if shutil.which("fish") is not None:
        assert "copy.db" in fish(named, ["node", "backup", "cop"])


def test_without_a_daemon_the_words_of_the_command_line_complete_all_the_same(shell: Shell) -> None:
    assert asked(shell, "te") == ["team", "team-run"]
    assert asked(shell, "agent", "show", "k") == []
    assert not shell.home.exists()


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_script_is_whole_for_its_shell(shell: Shell, script: str) -> None:
    if shutil.which(script) is None:
        pytest.skip(f"{script} is not installed")
    text = shell.firm("completion", script)
    done = subprocess.run([script, "-n"], input=text, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert (done.returncode, done.stderr) == (0, "")
