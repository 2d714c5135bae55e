"""What reaches a terminal, a pipe, and a place that takes nothing."""

from __future__ import annotations

import json
import subprocess
import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from client.cli.render import ago, cell, moment, text, width
from tests.cli.shell import PATIENCE, Shell

#: A cursor move, a colour, a title, an 8-bit CSI, a bell, the end of the line, and a turned direction of writing.
NASTY = "a\x1b[2J\x1b[31mred\x1b]0;title\x07\x9b31m\rb\u202ec\u2066d\x00e\u2028f"
LONG = "lorem ipsum " * 30


@pytest.fixture(scope="module")
def told(served: Shell) -> Shell:
    """Agents with harmless, long, wide and nasty words."""
    served.firm("agent", "create", "kiwi", "--description", LONG)
    served.firm("agent", "create", "日本　語の名前", "--description", "全角の説明")
    served.firm("agent", "create", "nasty", "--description", "-", stdin=NASTY.encode())
    return served


def controls(shown: str) -> set[str]:
    return {c for c in shown if unicodedata.category(c) in {"Cc", "Cf", "Zl", "Zp"}} - {"\n"}


READS = [["agent", "list"], ["agent", "show", "nasty"], ["agent", "list", "--json"], ["events", "--json"]]


@pytest.mark.parametrize("words", READS, ids=" ".join)
@pytest.mark.parametrize("columns", [30, 80, 200])
def test_nothing_that_somebody_wrote_moves_the_cursor(told: Shell, words: list[str], columns: int) -> None:
    done = told.having(NO_COLOR="1").terminal(*words, columns=columns)
    assert done.status == 0
    assert "nasty" in done.out
    assert controls(done.out) == set()


def test_json_still_says_what_was_written(told: Shell) -> None:
    assert told.answer("agent", "show", "nasty")["description"] == NASTY
    assert told.answer("agent", "list")["items"][1]["name"] == "日本　語の名前"


def test_a_refusal_shows_no_control_characters_either(told: Shell) -> None:
    nasty = NASTY.replace("\0", "")
    for words in (["agent", "show", nasty], [nasty], ["project", "add", f"/nosuch/{nasty}"]):
        done = told.terminal(*words)
        assert done.status != 0
        assert controls(done.out) == set()


def test_only_the_head_of_a_table_is_bold_and_only_on_a_terminal(told: Shell) -> None:
    on_terminal = told.terminal("agent", "list", columns=200).out
    head, *rows = on_terminal.splitlines()
    assert head.startswith("\x1b[1mid ")
    assert head.endswith("\x1b[0m")
    assert "\x1b" not in "".join(rows)
    assert "\x1b" not in told.having(TERM="xterm-256color").firm("agent", "list")


@pytest.mark.parametrize("calm", [{"NO_COLOR": "1"}, {"TERM": "dumb"}], ids=str)
def test_who_wants_no_escape_codes_gets_none(told: Shell, calm: dict[str, str]) -> None:
    assert "\x1b" not in told.having(**calm).terminal("agent", "list").out
    assert "\x1b" not in told.having(**calm).terminal("node", "status").out


def test_a_table_is_cut_to_the_terminal_but_ids_and_versions_are_whole(told: Shell) -> None:
    ids = [item["id"] for item in told.answer("agent", "list")["items"]]
    for columns in (72, 90, 120):
        lines = told.having(NO_COLOR="1").terminal("agent", "list", columns=columns).out.splitlines()
        assert all(width(line) <= columns for line in lines)
        assert [line.split()[0] for line in lines[1:]] == ids
        assert lines[1].endswith("…")


def test_columns_stand_one_below_the_other_under_wide_characters(told: Shell) -> None:
    head, *rows = told.having(NO_COLOR="1").terminal("agent", "list", columns=150).out.splitlines()
    at = head.index("profile")
    for row in rows:
        assert cell_len(row.partition("external")[0]) == at


def test_where_a_table_does_not_fit_each_record_stands_by_itself(told: Shell) -> None:
    lines = told.having(NO_COLOR="1").terminal("agent", "list", columns=40).out.splitlines()
    ids = [item["id"] for item in told.answer("agent", "list")["items"]]
    assert [line.split()[1] for line in lines if line.startswith("id ")] == ids


def test_a_pipe_gets_the_whole_of_every_cell(told: Shell) -> None:
    assert LONG.strip() in told.firm("agent", "list")


def test_what_reads_only_the_first_lines_gets_them_without_a_complaint(told: Shell) -> None:
    done = told.bash(
        "set -o pipefail; firm events --json | head -c 10; firm agent list | head -n 1; firm --help | true"
    )
    assert (done.status, done.err) == (0, "")
    assert done.out.startswith('{"answer":')


def test_a_full_disk_behind_the_answer_is_named_and_the_deed_is_not_denied(told: Shell) -> None:
    done = told.bash("firm agent create late > /dev/full")
    assert done.status == 1
    assert "[ANSWER_LOST]" in done.err
    assert "No space left on device" in done.err
    assert told.answer("agent", "show", "late")["name"] == "late"


def test_closed_streams_are_no_reason_to_fail(told: Shell) -> None:
    for form in ("", "--json"):
        assert told.bash(f"firm agent create quiet{form} {form} >&- 2>&- <&-").status == 0
        assert told.answer("agent", "show", f"quiet{form}")["name"] == f"quiet{form}"
        assert told.bash(f"firm team lst {form} >&- 2>&-").status == 2
        assert told.bash(f"firm node status {form} >&-").status == 0


def test_a_locale_without_unicode_gets_escapes_and_no_error(told: Shell) -> None:
    """An isolated interpreter takes UTF-8 in the C locale; an ordinary launcher does as the environment says."""
    script = "import sys; from firm_entry import cli; sys.exit(cli())"
    told.firm("agent", "create", "émile")
    said: list[str] = []
    for words in (["agent", "list"], ["agent", "show", "émile", "--json"]):
        done = subprocess.run(
            [sys.executable, "-c", script, *words],
            env=told.env(PYTHONIOENCODING="ascii"),
            cwd=told.cwd,
            capture_output=True,
            timeout=PATIENCE,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, b"")
        said.append(done.stdout.decode("ascii"))
    assert "\\u65e5" in said[0]
    assert json.loads(said[1])["answer"]["name"] == "émile"


def test_reading_from_a_terminal_is_announced(told: Shell) -> None:
    done = told.bash("script -qec 'firm agent create typed --description -' /dev/null </dev/null || true")
    assert "Ctrl-D" in done.out + done.err


@given(st.text())
def test_no_text_gets_a_control_character_past_a_cell(written: str) -> None:
    shown = cell("description", written)
    assert controls(shown) <= {"\u200c", "\u200d"}


@given(st.integers(-(2**63), 2**63 - 1))
def test_any_time_can_be_shown(ms: int) -> None:
    assert ago(ms)
    assert moment(ms)


def test_what_nobody_foresaw_is_shown_all_the_same() -> None:
    """An operation that is added needs no line in the renderer."""
    rows = [{"id": "a1", "score": 0.5, "noted_at": 0, "tags": ["x"]}, {"id": "b2", "score": None, "noted_at": 0}]
    assert text("novelty", {"items": rows, "next": "abc"}).splitlines()[0].split() == ["id", "score", "noted_at"]
    shown = text("novelty", {"count": 2, "inner": {"deep": {"x": 1}}, "rows": rows, "none": []})
    for expected in ("count  2", "deep  x=1", "none", "a1"):
        assert expected in shown
    assert text("novelty", {}) == ""


def test_an_empty_list_says_so(shell: Shell) -> None:
    with shell.running():
        for words in (["team", "list"], ["agent", "list"], ["node", "quarantine"], ["events"]):
            assert shell.firm(*words) == "None.\n"
