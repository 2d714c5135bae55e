"""Members that ask something when they begin: answered by their profile, or shown to a person until it is gone."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest

from tests.e2e.test_told import WORK, idle, keys, took
from tests.support.runs import Field

TRUST = "Do you trust this folder?|# 1. Yes|  2. No"
UPDATE = "Update available!|# 1. Update now|  2. Skip"
TRUSTS = {"lines": ["^Do you trust", r"^# 1\. Yes"], "keys": ["1"]}
UPDATES = {"lines": ["^Update available"]}


def read_back(field: Field, text: str) -> str:
    """What came of the first delivery that ended with this in its readback, once one has. One at the very start may be
    held because nothing was shown yet.
    """
    while True:
        seq = field.firm("event", "list", "--limit", "1")["seq"]
        found = [str(e["readback"]) for e in field.ask("effect", "list")["items"] if e["kind"] == "deliver"]
        if fits := [each for each in found if text in each]:
            return fits[0]
        field.wait(f"seq>{seq}")


def pressed(folder: Path) -> str:
    return (folder / "pressed").read_text() if (folder / "pressed").exists() else ""


def test_a_dialog_at_the_start_is_one_item_until_a_person_has_ended_it(field: Field) -> None:
    folder = field.talker(works=WORK, asks=[f"{UPDATE} -> 2"], dialogs=[TRUSTS, UPDATES])
    field.start()
    assert field.call("up", "team.toml", "--detach").returncode == 0
    idle(field)
    text = "held: dialog: it waits for a person: Update available! / # 1. Update now / 2. Skip"
    assert read_back(field, "held: dialog") == text
    (item,) = field.ask("attention", "list")["items"]
    assert (item["kind"], item["what"]) == ("delivery_held", f"nothing can be typed to kiwi: {text}")
    assert (pressed(folder), took(folder)) == ("", [])
    keys(field, "2")
    read_back(field, "submitted")
    assert len(took(folder)) == 1
    assert field.ask("attention", "list")["items"] == []


def test_a_dialog_that_the_profile_answers_is_answered_on_record(field: Field) -> None:
    folder = field.talker(works=WORK, asks=[f"{TRUST} -> 1"], dialogs=[TRUSTS, UPDATES])
    field.start()
    assert field.call("up", "team.toml", "--detach").returncode == 0
    assert read_back(field, "submitted") == "submitted: answered with 1: Do you trust this folder? / # 1. Yes / 2. No"
    assert (pressed(folder), len(took(folder))) == ("1", 1)
    assert field.ask("attention", "list")["items"] == []


@pytest.mark.parametrize(("ends_with", "taken"), [("1", 1), ("x", 0)])
def test_killed_over_an_answer_the_next_daemon_gives_none_again(field: Field, ends_with: str, taken: int) -> None:
    folder = field.talker(works=WORK, asks=[f"{TRUST} -> {ends_with}"], dialogs=[TRUSTS])
    dying = field.start(FIRM_CRASH_AT="dialog-answered")
    field.call("up", "team.toml", "--detach")
    assert dying.wait() == -signal.SIGKILL
    field.start()
    read_back(field, "submitted" if taken else "; it was answered, and is still there")
    assert (pressed(folder), len(took(folder))) == ("1", taken)


@pytest.mark.parametrize("point", ["deliver-readied", "deliver-pasted"])
def test_killed_before_enter_the_keys_before_it_are_pressed_once(field: Field, point: str) -> None:
    folder = field.talker(works=WORK, keys_before_enter=["x"], after_keys=0.1)
    dying = field.start(FIRM_CRASH_AT=point)
    field.call("up", "team.toml", "--detach")
    assert dying.wait() == -signal.SIGKILL
    field.start()
    assert read_back(field, "submitted") == "submitted"
    (text,) = took(folder)
    assert text.endswith("--reason TEXTx")


SEEDED = r"""
env = { MEMBER_TRUSTS = "{session}/of/agent.json" }
[files]
"of/agent.json" = '{"trusted": "{cwd}", "{other}": 1}'
"""


def test_what_the_profile_has_for_the_program_is_there_before_it_asks(field: Field) -> None:
    """In the session's own folder, which is private, and gone with the session."""
    folder = field.talker(works=WORK, asks=[f"{TRUST} -> 1"], dialogs=[TRUSTS], profile=SEEDED)
    field.start()
    assert field.call("up", "team.toml", "--detach").returncode == 0
    assert read_back(field, "submitted") == "submitted"
    assert pressed(folder) == ""
    (made,) = field.home.temporary.glob("data/firm/sessions/*/*/of/agent.json")
    (cwd,) = [e["cwd"] for e in field.ask("effect", "list")["items"] if e["kind"] == "launch"]
    assert json.loads(made.read_text()) == {"trusted": cwd, "{other}": 1}
    own = made.parents[1]
    assert (own.stat().st_mode & 0o777, made.stat().st_mode & 0o777) == (0o700, 0o600)
    assert field.call("close", "kiwi").returncode == 0
    assert not own.exists()


def test_a_program_whose_files_cannot_be_written_is_not_started_and_says_why(field: Field) -> None:
    (data := field.home.temporary / "data" / "firm").mkdir(parents=True)
    (data / "sessions").write_text("in the way")
    folder = field.talker(works=WORK, profile=SEEDED)
    field.start()
    assert field.call("up", "team.toml", "--detach").returncode == 0
    while not (found := [e for e in field.ask("effect", "list")["items"] if e["state"] == "settled"]):
        field.wait(f"seq>{field.firm('event', 'list', '--limit', '1')['seq']}")
    assert found[0]["certainty"] == "not_applied"
    assert found[0]["readback"].startswith("files of its profile cannot be written: ")
    assert "Not a directory" in found[0]["readback"]
    assert took(folder) == []
