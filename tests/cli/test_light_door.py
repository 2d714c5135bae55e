"""What a command for programs loads: no more than it needs to ask and to print."""

from __future__ import annotations

import re
import subprocess
import sys

from tests.cli.shell import FIRM, PATIENCE, Shell

#: Each of these costs a noticeable part of a bare interpreter's start; together they cost ten of them. What json,
#: msgpack and argparse need themselves (re, enum, functools, datetime, gettext) is the price of reading and printing.
HEAVY = {
    "apsw",
    "attr",
    "attrs",
    "cattrs",
    "client.cli.manual",
    "client.cli.render",
    "client.protocol",
    "dataclasses",
    "difflib",
    "inspect",
    "logging",
    "pathlib",
    "rich",
    "socket",
    "subprocess",
    "tempfile",
    "trio",
    "typing",
}


def loaded(shell: Shell, *words: str, status: int = 0) -> set[str]:
    """The modules that the real script loads for a command."""
    done = subprocess.run(
        [sys.executable, "-I", "-X", "importtime", FIRM, *words],
        env=shell.env(),
        cwd=shell.cwd,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == status, done.stderr[-2000:]
    found = set(re.findall(r"^import time:.*\| +(\S+)$", done.stderr, re.MULTILINE))
    assert "client.cli.main" in found
    bare = subprocess.run(
        [sys.executable, "-I", "-X", "importtime", "-c", "pass"],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    return found - set(re.findall(r"^import time:.*\| +(\S+)$", bare.stderr, re.MULTILINE))


def test_asking_and_printing_json_loads_nothing_heavy(served: Shell) -> None:
    for words in (["team", "list", "--json"], ["agent", "create", "x", "--json"], ["events", "--json"]):
        assert loaded(served, *words) & HEAVY == set()


def test_a_refusal_for_programs_loads_nothing_heavy_either(served: Shell) -> None:
    assert loaded(served, "team", "show", "nosuch", "--json", status=1) & HEAVY == set()


def test_only_the_noun_that_was_asked_for_is_loaded(served: Shell) -> None:
    nouns = {name for name in loaded(served, "team", "list", "--json") if name.startswith("client.cli.index.")}
    assert nouns == {"client.cli.index.team"}


def test_a_table_for_eyes_loads_no_drawing_library_unless_there_are_wide_characters(served: Shell) -> None:
    served.firm("agent", "create", "plain")
    assert loaded(served, "agent", "list") & {"rich", "attr"} == set()


def test_completion_loads_nothing_heavy(served: Shell) -> None:
    """Somebody waits with a finger on the key."""
    assert loaded(served, "completion", "words", "--", "team", "show", "") & (HEAVY - {"typing"}) == set()
