"""Texts that are longer than a program takes in whole: a file of the session, and its name is typed."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path

import pytest

from tests.e2e.test_dialogs import read_back
from tests.e2e.test_told import idle, send, took
from tests.support.runs import Field

LONG = "\n".join(f"line {n}" for n in range(300))


def named(text: str) -> Path:
    (path,) = re.findall(r"Too long to be typed: read the file (/\S+), and do what it says\./It begins: Message ", text)
    return Path(path)


def test_a_long_text_is_a_file_of_the_session_and_its_name_is_typed(field: Field) -> None:
    folder = field.talker(file_above=1000)
    field.start()
    assert field.call("up", "team.toml", "--detach").returncode == 0
    idle(field)
    sent = send(field, LONG)
    assert read_back(field, "submitted") == "submitted"
    (text,) = took(folder)
    path = named(text)
    assert (path.stat().st_mode & 0o777, path.parents[1].stat().st_mode & 0o777) == (0o600, 0o700)
    said = path.read_text()
    assert said.startswith(f"Message {sent['message']['id']} from me, which needs an answer:\n{LONG}\n")
    assert f"message reply {sent['message']['id']} --body TEXT" in said
    assert field.call("close", "kiwi").returncode == 0
    assert not path.parents[1].exists()


def test_a_text_that_is_not_longer_is_typed(field: Field) -> None:
    folder = field.talker(file_above=20_000)
    field.start()
    assert field.call("up", "team.toml", "--detach").returncode == 0
    idle(field)
    send(field, LONG)
    assert read_back(field, "submitted") == "submitted"
    (text,) = took(folder)
    assert LONG.replace("\n", "/") in text
    assert not (field.home.temporary / "data" / "firm" / "sessions").exists()


@pytest.mark.parametrize("seen", ["seen", "unseen"])
def test_the_file_is_gone_when_its_process_has_ended_by_itself(field: Field, seen: str) -> None:
    """Also where no daemon was there to see it."""
    folder = field.talker(file_above=1000)
    daemon = field.start()
    assert field.call("up", "team.toml", "--detach").returncode == 0
    session = idle(field)
    send(field, LONG)
    read_back(field, "submitted")
    path = named(took(folder)[0])
    field.wait(f"session:{session['id']}.state=idle")
    if seen == "unseen":
        daemon.kill()
    os.kill(session["pid"], signal.SIGKILL)
    if seen == "unseen":
        field.start()
    field.wait(f"session:{session['id']}.state=closed")  # its successor is opened when nothing of it is left
    assert not path.exists()


def test_what_cannot_be_written_is_held_and_is_told_once_it_can(field: Field) -> None:
    folder = field.talker(file_above=1000)
    (data := field.home.temporary / "data" / "firm").mkdir(parents=True)
    (data / "sessions").write_text("in the way")
    field.start()
    assert field.call("up", "team.toml", "--detach").returncode == 0
    idle(field)
    send(field, LONG)
    held = read_back(field, "held: it is too long to be typed, and no file can be written: ")
    (item,) = field.ask("attention", "list")["items"]
    assert item["what"] == f"nothing can be typed to kiwi: {held}"
    assert took(folder) == []
    (data / "sessions").unlink()
    assert read_back(field, "submitted") == "submitted"
    assert named(took(folder)[0]).exists()
    assert field.ask("attention", "list")["items"] == []
