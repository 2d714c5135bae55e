"""Profiles of a person: one a file, read strictly; what is wrong with one is said, and the others are there."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import attrs
import pytest

from providers import profiles
from providers.port import Dialog, Typing
from providers.profiles import Hooks, Native, Place, Profile, Wrong, read
from providers.records import Rule

WHOLE = r"""
argv = ["{python}", "-m", "agent"]
steers = true
nice = 0
env = { AGENT_HOME = "{session}" }
files = { "agent.json" = "{}" }
[typing]
before_enter = 1
enters = 2
settle = 1.5
quiet = 60
composer = '>\s*'
rests = ['^>', 'for help$']
keys_before_enter = ["Escape"]
after_keys = 0.5
file_above = 900
[[typing.dialogs]]
lines = ["^Do you trust", '^> 1\. Yes']
keys = ["Enter"]
[native]
start = ["--session-id", "{native_id}"]
resume = ["--resume={native_id}"]
transcript = "{home}/.agent/{cwd_slug}/{native_id}.jsonl"
"""

NATIVE = Native(
    start=["--session-id", "{native_id}"],
    resume=["--resume={native_id}"],
    transcript="{home}/.agent/{cwd_slug}/{native_id}.jsonl",
)
#: A program that is resumed, as far as that is right whatever else a test says.
RESUMED = 'argv = ["a"]\n[native]\nstart = ["{native_id}"]\nresume = ["{native_id}"]\n'
WITH_FILE = RESUMED + 'transcript = "/{native_id}"'


def test_a_file_says_everything_that_a_profile_can() -> None:
    typing = Typing(
        before_enter=1,
        enters=2,
        keys_before_enter=["Escape"],
        after_keys=0.5,
        file_above=900,
        settle=1.5,
        quiet=60,
        composer=r">\s*",
        rests=["^>", "for help$"],
        dialogs=[Dialog(lines=["^Do you trust", r"^> 1\. Yes"], keys=["Enter"])],
    )
    assert read("agent", WHOLE) == Profile(
        name="agent",
        argv=["{python}", "-m", "agent"],
        env={"AGENT_HOME": "{session}"},
        files={"agent.json": "{}"},
        typing=typing,
        steers=True,
        nice=0,
        native=NATIVE,
    )


def test_places_are_put_in_and_other_braces_stay() -> None:
    cwd = 'a "b"\\ü'
    words = ["{python}", "{cwd}{session}", "{x} {}", "{{cwd}}", "{"]
    names: list[str] = ["a.json", "a.toml", "a.txt"]
    files = dict.fromkeys(names, '{"at": "{cwd}"}')
    of = Profile(name="agent", argv=words, env={"A": "{cwd}"}, files=files)
    place = Place(cwd, "/own")
    assert place.words(of) == [sys.executable, f"{cwd}/own", "{x} {}", f"{{{cwd}}}", "{"]
    assert place.env(of) == {"A": cwd}
    found = place.files(of)
    assert json.loads(found["a.json"]) == {"at": cwd}
    assert found["a.json"] == found["a.toml"]
    assert found["a.txt"] == f'{{"at": "{cwd}"}}'


def test_a_program_takes_no_text_unless_its_file_says_how() -> None:
    assert read("agent", 'argv = ["/bin/true"]') == Profile(name="agent", argv=["/bin/true"], typing=None, steers=False)


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
        ('argv = ["a"]\nnice = -1', "nice is 0 to 19"),
        ('argv = ["a"]\nnice = 20', "nice is 0 to 19"),
        ('argv = ["a"]\n[typing]\nspeed = 1', "speed"),
        ('argv = ["a"]\n[typing]\nquiet = "long"', "expected a finite number"),
        ('argv = ["a"]\n[typing]\ncomposer = "("', "'(' is no regular expression: "),
        ('argv = ["a"]\n[typing]\nrests = ["x"]', "typing.rests says nothing without typing.composer"),
        ('argv = ["a"]\n[typing]\ncomposer = "x"\nrests = ["("]', "'(' is no regular expression: "),
        (RESUMED, "required"),
        (RESUMED + 'transcript = "/x"', "native.transcript does not name {native_id}"),
        (RESUMED + 'transcript = "{home}/{id}"', "in braces there can be {cwd}, {cwd_slug}, {home}, {native_id}"),
        (RESUMED + 'transcript = "{home}/{native_id!r}"', "in braces there can be "),
        (
            'env = {HOME = "/x"}\n' + RESUMED + 'transcript = "{home}/{native_id}"',
            "the program gets another HOME than {home}",
        ),
        (RESUMED + 'transcript = "x/{native_id}"', "native.transcript is no absolute path"),
        (WITH_FILE.replace('resume = ["{native_id}"]', 'resume = ["-c"]'), "native.resume does not name {native_id}"),
        (WITH_FILE.replace('start = ["{native_id}"]', "start = []"), "native.start does not name {native_id}"),
        ('argv = ["a"]\n[[typing.dialogs]]\nlines = ["["]', "'[' is no regular expression: "),
        ('argv = ["a"]\n[[typing.dialogs]]\nlines = []', "a dialog without lines would stand on every screen"),
        ('argv = ["a"]\n[[typing.dialogs]]\nlines = ["x"]\nkeys = ["Return"]', "'Return' is no key: "),
        ('argv = ["a"]\nenv = {FIRM_SOCKET = "x"}', "'FIRM_SOCKET' is no variable that a profile sets"),
        ('argv = ["a"]\nenv = {"A=B" = "x"}', "'A=B' is no variable that a profile sets"),
        ('argv = ["a"]\nfiles = {"/etc/x" = "x"}', "'/etc/x' is no path below the session's own folder"),
        ('argv = ["a"]\nfiles = {"a/../../x" = "x"}', "is no path below the session's own folder"),
        ('argv = ["a"]\nfiles = {"told/x" = "x"}', "is no path below the session's own folder"),
        ('argv = ["a"]\n[typing]\nkeys_before_enter = [";"]', "';' is no key: "),
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


def test_a_conversation_is_begun_and_gone_on_with_by_its_id() -> None:
    assert NATIVE.words("7f", resumes=False) == ["--session-id", "7f"]
    assert NATIVE.words("7f", resumes=True) == ["--resume=7f"]


def test_a_transcript_is_where_the_program_keeps_it_for_the_folder_that_it_sees(tmp_path: Path) -> None:
    """A process that was started through a link is in the folder to which that leads."""
    (tmp_path / "my_repo.git").mkdir()
    (tmp_path / "link").symlink_to("my_repo.git")
    slug = str(tmp_path).replace("/", "-").replace("_", "-") + "-my-repo-git"
    assert NATIVE.file("7f", cwd=str(tmp_path / "link"), home="/home/me") == Path(f"/home/me/.agent/{slug}/7f.jsonl")
    beside = Native(start=[], resume=[], transcript="{cwd}/{native_id}")
    assert beside.file("7f", cwd=str(tmp_path / "link"), home="/") == tmp_path / "my_repo.git" / "7f"


def test_the_profile_that_is_shown_to_people_is_one() -> None:
    page = (Path(__file__).parents[2] / "docs/how-to/write-a-profile.md").read_text()
    (text,) = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    found = read("agent", text)
    assert found.typing is not None
    said = set(re.findall(r"^(\w+) *=", text, re.MULTILINE)) | set(re.findall(r"^\[+([\w.]+)\]", text, re.MULTILINE))
    fields = {field.name for cls in (Profile, Typing, Dialog, Native, Hooks, Rule) for field in attrs.fields(cls)}
    assert {each.rpartition(".")[2] for each in said} == fields - {"name"}
