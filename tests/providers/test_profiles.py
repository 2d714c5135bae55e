"""Profiles of a person: one a file, read strictly; what is wrong with one is said, and the others are there."""

from __future__ import annotations

from pathlib import Path

import pytest

from providers import profiles
from providers.port import Typing
from providers.profiles import Profile, Wrong, read

WHOLE = r"""
argv = ["{python}", "-m", "agent"]
steers = true
[typing]
before_enter = 1
enters = 2
settle = 1.5
quiet = 60
composer = '>\s*'
dialogs = ["^Do you trust"]
"""


def test_a_file_says_everything_that_a_profile_can() -> None:
    typing = Typing(before_enter=1, enters=2, settle=1.5, quiet=60, composer=r">\s*", dialogs=["^Do you trust"])
    assert read("agent", WHOLE) == Profile(name="agent", argv=["{python}", "-m", "agent"], typing=typing, steers=True)


def test_a_program_takes_no_text_unless_its_file_says_how() -> None:
    assert read("agent", 'argv = ["/bin/true"]') == Profile(name="agent", argv=["/bin/true"], typing=None, steers=False)


def test_only_the_interpreter_is_put_into_the_words_of_a_program() -> None:
    """Words of others have braces too: JSON, programs, templates."""
    words = ["{python}", "--settings", '{"model": {}}', "{", "x{python}"]
    profile = Profile(name="agent", argv=words)
    assert profile.words("/bin/py") == ["/bin/py", "--settings", '{"model": {}}', "{", "x/bin/py"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("argv = [", "not TOML: "),
        ("steers = true", "required"),
        ("argv = []", "argv names no program"),
        ('name = "x"\nargv = ["a"]', "its name is that of its file"),
        ('argv = "agent"', "expected a list"),
        ("argv = [1]", "expected a string"),
        ('argv = ["a"]\ncolour = "red"', "colour"),
        ('argv = ["a"]\n[typing]\nspeed = 1', "speed"),
        ('argv = ["a"]\n[typing]\nquiet = "long"', "expected a finite number"),
        ('argv = ["a"]\n[typing]\ncomposer = "("', "'(' is no regular expression: "),
        ('argv = ["a"]\n[typing]\ndialogs = ["["]', "'[' is no regular expression: "),
    ],
)
def test_what_is_no_profile_says_why(text: str, said: str) -> None:
    with pytest.raises(Wrong) as why:
        read("agent", text)
    assert said in str(why.value)


def test_one_that_is_wrong_keeps_no_other_from_being_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(profiles, "PROFILES", dict(profiles.PROFILES))
    (tmp_path / "bad.toml").write_text("argv = [")
    (tmp_path / "good.toml").write_text(WHOLE)
    (tmp_path / "notes.txt").write_text("no profile")
    (wrong,) = profiles.add(tmp_path)
    assert wrong.startswith(f"{tmp_path}/bad.toml: not TOML: ")
    assert sorted(profiles.PROFILES) == ["command", "good"]
    assert [name for name in ("command", "good", "bad") if profiles.takes_text(name)] == ["good"]
    assert [name for name in ("command", "good", "bad") if profiles.steers(name)] == ["good"]
    assert profiles.add(tmp_path / "nothing") == []
