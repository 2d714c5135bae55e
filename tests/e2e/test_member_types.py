"""The ``firm`` command as a member types it: in its own environment, in the words that it is told."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.test_cycles import does, endings
from tests.e2e.test_told import WORK, idle, send, told, took
from tests.support.runs import FIRM, Field

#: Runs a line for each text, with the Work's version in it, in an environment that it leaves as it was given.
TYPES = """#!/bin/sh
read -r text
version=$(printf '%s' "$text" | sed -n 's/.*, version \\([0-9]*\\): .*/\\1/p')
exec 2>&1
"""


def types(folder: Path, *lines: str) -> None:
    does(folder, TYPES + "\n".join(f'"$FIRM_BIN" {line}' for line in lines) + "\n")


def up(field: Field, *, works: str = "") -> Path:
    folder = field.talker(works=works)
    field.start()
    return folder


def said(folder: Path) -> list[Any]:
    return [json.loads(line) for line in (folder / "did").read_text().splitlines()]


@pytest.mark.parametrize(
    ("end", "phase", "condition"),
    [("submit --result-summary done --report-only", "review", "normal"), ("block --reason why", "active", "blocked")],
)
def test_without_an_id_the_work_that_was_delivered_is_meant(field: Field, end: str, phase: str, condition: str) -> None:
    folder = up(field, works=WORK)
    of_mine = ["show", 'start --work-id "" --expected-version $version', f"{end} --expected-version $((version + 1))"]
    types(folder, *(f"member work {each} --json" for each in of_mine))
    assert field.call("up", "team.toml", "--detach").returncode == 0
    endings(field, 1)
    (work,) = field.ask("work", "list")["items"]
    shown, started, ended = (each["answer"] for each in said(folder))
    assert shown["work"]["id"] == started["id"] == ended["id"] == work["id"]
    assert (work["phase"], work["condition"]) == (phase, condition)


def test_where_none_was_delivered_each_verb_is_refused_with_what_there_is(field: Field) -> None:
    folder = up(field)
    verbs = ["show", "start --expected-version 1", "block --expected-version 1 --reason x"]
    submit = "submit --expected-version 1 --result-summary x --report-only"
    types(folder, *(f"member work {each} --json" for each in [*verbs, submit]))
    assert field.call("up", "team.toml", "--detach").returncode == 0
    idle(field)
    send(field, "which colour?")
    endings(field, 1)
    refusals = [each["refusal"] for each in said(folder)]
    assert {each["code"] for each in refusals} == {"WORK_UNCLEAR"}
    assert len(refusals) == len(verbs) + 1


@pytest.mark.parametrize(("first", "word"), [("ours", "firm"), ("other", FIRM)])
def test_the_command_is_told_in_a_word_only_where_that_word_leads_to_this_build(
    field: Field, first: str, word: str
) -> None:
    folder = field.talker(works=WORK)
    (other := field.home.temporary / "bin").mkdir()
    (other / "firm").write_text("#!/bin/sh\nexit 9\n")
    (other / "firm").chmod(0o755)
    path = [Path(FIRM).parent, other] if first == "ours" else [other, Path(FIRM).parent]
    field.start(PATH=":".join(map(str, [*path, "/usr/bin", "/bin"])))
    assert field.call("up", "team.toml", "--detach").returncode == 0
    told(field)
    (text,) = took(folder)
    assert f"begin it: {word} work start" in text
