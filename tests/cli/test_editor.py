"""``$EDITOR`` opens at a terminal for a long text that is missing, and for nobody else."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.shell import Shell

_EDITOR = """\
#!/bin/sh
cp "$2" "$(dirname "$0")/given"
cat "$(dirname "$0")/text" "$(dirname "$0")/given" > "$2"
exit "$1"
"""


@pytest.fixture(scope="module")
def host(served: Shell) -> Shell:
    """A person who is the Host of a run."""
    served.firm("agent", "create", "hana", "--profile", "me")
    served.firm("team", "create", "core", "--host-agent-id", "hana")
    run = served.answer("team-run", "create", "core")
    served.firm("team-run", "start", run["id"], "--expected-version", "1")
    return served


@pytest.fixture
def writer(host: Shell, tmp_path: Path) -> Shell:
    """Their EDITOR is written as a shell reads it; it notes what it was given and puts ``text`` above that."""
    editor = tmp_path / "an editor"
    editor.write_text(_EDITOR)
    editor.chmod(0o700)
    (tmp_path / "text").write_text("  ## it works\nand is schön\n\n")
    (tmp_path / "tmp").mkdir()
    return host.having(EDITOR=f'"{editor}" 0', TMPDIR=str(tmp_path / "tmp"))


def left(tmp_path: Path) -> list[Path]:
    return list((tmp_path / "tmp").iterdir())


def works(host: Shell, title: str) -> list[list[str]]:
    return [work["criteria"] for work in host.answer("work", "list")["items"] if work["title"] == title]


def test_what_is_written_there_is_sent_and_nothing_is_left(writer: Shell, tmp_path: Path) -> None:
    done = writer.terminal("work", "create", "first", typed=True)
    assert done.status == 0, done
    assert works(writer, "first") == [["## it works", "and is schön"]]
    assert left(tmp_path) == []
    given = (tmp_path / "given").read_text()
    assert "# firm work create --completion-criteria: what a reviewer can check" in given


def test_a_command_that_is_refused_keeps_what_was_written(writer: Shell, tmp_path: Path) -> None:
    writer.firm("work", "create", "twice", "--completion-criteria", "one")
    done = writer.terminal("work", "create", "twice", typed=True)
    (kept,) = left(tmp_path)
    assert (done.status, f"What you wrote is kept: {kept}" in done.out) == (1, True), done
    assert kept.read_text().startswith("  ## it works\nand is schön\n")
    assert kept.stat().st_mode & 0o077 == 0


def test_an_empty_text_sends_nothing(writer: Shell, tmp_path: Path) -> None:
    (tmp_path / "text").write_text(" \n")
    done = writer.terminal("work", "create", "empty", typed=True)
    assert (done.status, "--completion-criteria is empty, so nothing was sent" in done.out) == (2, True), done
    assert (works(writer, "empty"), left(tmp_path)) == ([], [])


def test_an_editor_that_fails_sends_nothing(writer: Shell, tmp_path: Path) -> None:
    done = writer.having(EDITOR=f'"{tmp_path / "an editor"}" 3').terminal("work", "create", "broken", typed=True)
    assert (done.status, "ended with 3" in done.out) == (2, True), done
    assert works(writer, "broken") == []
    assert f"What you wrote is kept: {left(tmp_path)[0]}" in done.out


def test_visual_goes_before_editor(writer: Shell, tmp_path: Path) -> None:
    done = writer.having(EDITOR="false", VISUAL=f'"{tmp_path / "an editor"}" 0').terminal(
        "work", "create", "visual", typed=True
    )
    assert (done.status, len(works(writer, "visual"))) == (0, 1), done


def test_mail_by_name_is_written_there_too(writer: Shell) -> None:
    """The text of ``firm send`` is missing; whom it is for is asked afterwards."""
    done = writer.terminal("send", "nobody", typed=True)
    assert (done.status, "What you wrote is kept" in done.out) == (2, True), done


def test_for_a_member_nothing_opens(writer: Shell, tmp_path: Path) -> None:
    done = writer.having(FIRM_MEMBER_RUN_ID="x").terminal("work", "create", "member", typed=True)
    assert (done.status, "--completion-criteria" in done.out and "is missing" in done.out) == (2, True), done
    assert not (tmp_path / "given").exists()


def test_without_a_terminal_or_an_editor_nothing_opens(writer: Shell, tmp_path: Path) -> None:
    commands = [
        writer.tries("work", "create", "piped"),
        writer.terminal("work", "create", "piped"),
        writer.having(EDITOR="").terminal("work", "create", "piped", typed=True),
        writer.having(TERM="dumb").terminal("work", "create", "piped", typed=True),
    ]
    assert [done.status for done in commands] == [2, 2, 2, 2]
    assert not (tmp_path / "given").exists()


def test_nothing_opens_while_something_short_is_missing_too(writer: Shell, tmp_path: Path) -> None:
    done = writer.terminal("work", "create", typed=True)
    assert (done.status, "TITLE" in done.out) == (2, True), done
    assert not (tmp_path / "given").exists()
