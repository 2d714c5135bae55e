"""The words of the collaboration contract work as it types them: ``firm team-run work …``, ``firm member work …``."""

from __future__ import annotations

import pytest

from client.cli.main import _command


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("team-run work create --title x", ("work", "create", ["--title", "x"])),
        ("team-run work assign --work-id w", ("work", "assign", ["--work-id", "w"])),
        ("member work start --expected-version 3", ("work", "start", ["--expected-version", "3"])),
        ("member message send --body hello", ("message", "send", ["--body", "hello"])),
        ("member inbox", ("message", "inbox", [])),
        ("inbox", ("message", "inbox", [])),
        ("board", ("team-run", "board", [])),
        ("team-run board", ("team-run", "board", [])),
        ("team-run list", ("team-run", "list", [])),
    ],
)
def test_a_door_before_the_noun_changes_nothing(typed: str, meant: tuple[str, str, list[str]]) -> None:
    assert _command(typed.split()) == meant
