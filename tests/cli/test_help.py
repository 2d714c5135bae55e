"""Help fits a screen, names everything, and is found however it is asked for."""

from __future__ import annotations

import re

import pytest

from client.cli.arguments import with_options
from client.cli.index import NOUNS
from client.cli.main import BY_HAND, known_verbs, load, verbs_of
from client.protocol.table import OPERATIONS
from tests.cli.shell import Shell

COMMANDS = [
    *((noun, verb) for noun in NOUNS for verb in known_verbs(noun)),
    *((noun, verb) for noun, verb in BY_HAND if not verb),
]


def too_wide(text: str, columns: int = 80) -> list[str]:
    return [line for line in text.splitlines() if len(line) > columns]


@pytest.mark.parametrize("words", [[], ["--help"], ["-h"], ["help"]], ids=str)
def test_the_first_help_fits_a_screen_and_names_every_noun(shell: Shell, words: list[str]) -> None:
    text = shell.firm(*words)
    assert len(text.splitlines()) <= 24
    assert too_wide(text) == []
    for noun, help_line in NOUNS.items():
        assert f"  {noun} " in text
        assert help_line in text


def test_the_first_help_begins_with_what_is_typed_every_day(shell: Shell) -> None:
    first = shell.firm("--help").split("Everything:")[0]
    one_word = {noun for noun, verb in BY_HAND if not verb} - {"completion"}
    assert {word for word in one_word if not re.search(rf"\b{word}\b", first)} == set()


@pytest.mark.parametrize("noun", NOUNS)
def test_the_help_of_a_noun_names_every_verb(shell: Shell, noun: str) -> None:
    text = shell.firm(noun, "--help")
    assert too_wide(text) == []
    shown = {line.split()[0] for line in text.splitlines() if line.startswith("  ") and not line.startswith("   ")}
    by_hand = {verb for owner, verb in BY_HAND if owner == noun}
    assert shown == by_hand | {op.verb for op in OPERATIONS if op.noun == noun}
    assert shell.firm(noun, "help") == shell.firm("help", noun) == shell.firm(noun, "-h") == text


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_the_help_of_a_verb_names_every_flag(shell: Shell, command: tuple[str, str]) -> None:
    noun, verb = command
    text = shell.firm(*filter(None, command), "--help")
    assert too_wide(text) == []
    if (noun, verb) in BY_HAND:
        name, summary = BY_HAND[noun, verb]
        fields = load(f"client.cli.by_hand.{name}").FIELDS
    else:
        _, effect, summary, own = verbs_of(noun)[verb]
        fields = with_options(effect, own)
    assert " ".join(summary.split()) in " ".join(text.split())
    for field in fields:
        assert field[1] in text
        for choice in field[5] or ():
            assert choice in text


def test_help_of_a_verb_is_found_by_every_spelling(shell: Shell) -> None:
    text = shell.firm("team", "create", "--help")
    for words in (["help", "team", "create"], ["team", "create", "help"], ["team", "create", "x", "-h"]):
        assert shell.firm(*words) == text


def test_help_behind_two_dashes_is_a_value(shell: Shell) -> None:
    assert shell.tries("team", "create", "--", "--help").status == 2  # the host is missing


@pytest.mark.parametrize("words", [["--help"], ["team", "--help"], ["agent", "create", "--help"]], ids=" ".join)
def test_help_is_no_wider_than_a_narrow_terminal(shell: Shell, words: list[str]) -> None:
    done = shell.terminal(*words, columns=52)
    assert done.status == 0
    sentences = ("firm NOUN --help", "firm team VERB --help", "Usage: firm NOUN", "Exit: 0 done", "firm: durable")
    assert [line for line in too_wide(done.out, 52) if not line.startswith(sentences)] == []


@pytest.mark.parametrize("words", [["--version"], ["version"], ["-V"]], ids=" ".join)
def test_the_version_is_said(shell: Shell, words: list[str]) -> None:
    assert shell.firm(*words).split()[0] == "firm"


def test_help_needs_no_daemon_and_makes_no_folder(shell: Shell) -> None:
    shell.firm("--help")
    shell.firm("team", "--help")
    shell.firm("team", "create", "--help")
    assert not shell.home.exists()
