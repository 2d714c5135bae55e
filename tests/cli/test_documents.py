"""What is written for people is true: links lead somewhere, names exist, commands work as they stand."""

from __future__ import annotations

import ast
import itertools
import re
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

import pytest

from client.cli.index import NOUNS
from client.cli.main import ALIASES, ONE_WORD, known_verbs
from client.team_file import TABLES, read
from daemon.build import NOT_BUILT
from tests.cli.shell import PATIENCE, Shell

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
README = (ROOT / "README.md").read_text()

each_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))


def blocks(text: str) -> list[str]:
    """The contents of its fenced blocks."""
    return re.findall(r"^ *```\w*\n(.*?)^ *```$", text, re.MULTILINE | re.DOTALL)


@each_page
def test_every_link_leads_somewhere(page: Path) -> None:
    links = re.findall(r"\]\(([^)#]+)\)", page.read_text())
    assert [link for link in links if "://" not in link and not (page.parent / link).exists()] == []


def test_every_team_file_that_is_shown_is_one() -> None:
    """The page about them shows every field."""
    shown = {page: [block for block in blocks(page.read_text()) if block.startswith("[team]")] for page in PAGES}
    for page, files in shown.items():
        for file in files:
            read(page.name, file)
    (whole,) = [tomllib.loads(file) for file in shown[ROOT / "docs/how-to/write-a-team-file.md"]]
    found = {name: {*rows} if name == "team" else {*itertools.chain(*rows)} for name, rows in whole.items()}
    assert found == {name: {field.name for field in fields} for name, (_, fields) in TABLES.items()}


@each_page
def test_every_file_that_is_named_exists(page: Path) -> None:
    named = set(re.findall(r"`((?:client|daemon|store|tests|docs|systemd|examples|\.ci)/[\w./-]+)`", page.read_text()))
    # What an example adds, or what a run writes, is not there yet.
    added = {"store/migrations/0015_team_note.sql"}
    assert [path for path in sorted(named - added) if not (ROOT / path).exists()] == []


@each_page
def test_every_name_in_a_module_exists(page: Path) -> None:
    for path, name in re.findall(r"`([\w/.]+\.py)::([\w.]+)`", page.read_text()):
        scope: ast.AST = ast.parse((ROOT / path).read_text())
        for part in name.split("."):
            inner = [node for node in ast.walk(scope) if getattr(node, "name", None) == part]
            assert inner, f"{path} has no {name}"
            scope = inner[0]


@each_page
def test_every_command_that_is_named_exists(page: Path) -> None:
    # In backquotes, or at the beginning of a line of a block; elsewhere it is prose.
    named = re.findall(r"(?:`|^)firm ([a-z][a-z-]*)(?: ([a-z][a-z-]*))?[`\s]", page.read_text(), re.MULTILINE)
    one_word = {*ALIASES, *ONE_WORD}
    planned = {("team", "note")}  # the example of docs/how-to
    for noun, verb in named:
        if noun in NOUNS and verb and (noun, verb) not in planned:
            assert verb in known_verbs(noun), f"firm {noun} {verb}"
        assert noun in NOUNS or noun in one_word, f"firm {noun}"


def test_the_readme_begins_with_the_two_commands() -> None:
    first = blocks(README)[0]
    assert [line.split("#")[0].strip() for line in first.splitlines()] == ["make demo", "make test"]
    assert README.index("make demo") < 60


def test_the_readme_says_what_is_not_built_in_the_words_of_the_daemon() -> None:
    section = README.split("## Not built")[1].split("\n## ")[0]
    assert re.findall(r"^\* (.*)$", section, re.MULTILINE) == NOT_BUILT


def test_every_decision_and_how_to_is_in_the_index() -> None:
    index = (ROOT / "docs/index.md").read_text()
    pages = {str(page.relative_to(ROOT / "docs")) for page in PAGES if ROOT / "docs" in page.parents} - {"index.md"}
    assert {page for page in pages if f"({page})" not in index} == set()
    numbers = sorted(int(page.name[:4]) for page in (ROOT / "docs/decisions").glob("*.md"))
    assert numbers == list(range(1, len(numbers) + 1))


def test_no_page_names_a_folder_of_the_machine_it_was_written_on() -> None:
    for page in PAGES:
        assert not re.search(r"/(home|root|work|Users)/", page.read_text()), page


def test_the_demo_proves_what_it_says_and_leaves_nothing() -> None:
    with tempfile.TemporaryDirectory(prefix="firm-") as folder:
        shell = Shell(Path("/nonexistent"), ROOT)
        done = subprocess.run(
            [sys.executable, ROOT / "examples/demo.py"],
            env=shell.env(TMPDIR=folder),
            cwd="/",
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        assert list(Path(folder).iterdir()) == []
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    assert done.stdout.count("proven: ") == 5
    assert "NOT TRUE" not in done.stdout
    assert max(len(line) for line in done.stdout.splitlines()) <= 80
