"""A member whose program keeps its conversation: whoever of them is killed, its successor goes on with that very one,
and no two processes are ever in it.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from client.protocol.boundary import Boundary
from supervisor.decide import MOST_FAILURES
from tests.e2e.test_runs import end_tmux
from tests.e2e.test_told import WORK, mail, send
from tests.support.daemon import Daemon
from tests.support.runs import Field
from tests.support.spoil import execute

#: Where the member's program keeps its transcripts: ``terminals.KEEPER`` in the home folder that it is given.
KEPT = "{home}/kiwi-told/{native_id}/took"


def until(field: Field, look: Callable[[], bool]) -> None:
    """Until it is so; looked at with each event."""
    while True:
        seq = field.firm("event", "list", "--limit", "1")["seq"]
        if look():
            return
        field.wait(f"seq>{seq}")


def tell(field: Field, body: str) -> None:
    """Say that to the member, which takes it."""
    sent = send(field, body)
    until(field, lambda: mail(field, sent)["state"] == "provider_received")


def begun(field: Field, crash: str = "", **talks: Any) -> tuple[Any, Path, Daemon]:  # noqa: ANN401 — as a talker takes it
    """Its first session, in which it was told something, the transcript of that, and the daemon."""
    folder = field.talker(keeps=KEPT, **talks)
    daemon = field.start(HOME=str(field.home.temporary), FIRM_CRASH_AT=crash)
    assert field.call("up", "team.toml", "--detach").returncode == 0
    (session,) = field.until_live()
    tell(field, "remember blue")
    return session, folder / session["native_session"] / "took", daemon


def bodies(transcript: Path) -> list[str]:
    """What was said in a conversation, without the commands for an answer."""
    return [line.split("/")[1] for line in transcript.read_text().splitlines()]


def next_of(field: Field, former: Any) -> Any:  # noqa: ANN401 — a session as it is answered
    """The session after that one, with its process."""
    field.wait(f"session:{former['id']}.state=closed")
    (session,) = field.until_live()
    assert session["session_gen"] > former["session_gen"]
    return session


def words_of(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/cmdline").read_text().split("\0")[:-1]


def in_conversation(field: Field, native_id: str) -> list[int]:
    """Every process of this home that has it in its words."""
    return [pid for pid in field.members() if native_id in words_of(pid)]


def how(field: Field, session: Any) -> str:  # noqa: ANN401 — the same
    """How a session was opened, for the record."""
    kind: str = field.ask("event", "list", "--stream", f"session/{session['id']}")["items"][0]["kind"]
    return kind


def resumed(field: Field, first: Any, second: Any, transcript: Path) -> None:  # noqa: ANN401 — the same
    """The second goes on with what the first had, alone, and what it is told stands behind what the first was told."""
    native = first["native_session"]
    assert (second["native_session"], second["resumed_from"]) == (native, first["id"])
    assert how(field, second) == f"opened: goes on with native session {native}"
    assert words_of(second["pid"])[-2:] == ["--resume", native]
    assert in_conversation(field, native) == [second["pid"]]
    variables = Path(f"/proc/{second['pid']}/environ").read_bytes().split(b"\0")
    (token,) = [each.partition(b"=")[2].decode() for each in variables if each.startswith(b"FIRM_CAPABILITY=")]
    assert not any(token in word for word in words_of(second["pid"]))
    tell(field, "which colour?")
    said = bodies(transcript)
    assert (said[0], said[-1]) == ("remember blue", "which colour?")


def test_a_member_that_is_killed_goes_on_with_its_conversation(field: Field) -> None:
    """In the middle of a cycle, as it happens most."""
    first, transcript, _ = begun(field)
    assert (first["resumed_from"], how(field, first)) == (None, f"opened: native session {first['native_session']}")
    assert words_of(first["pid"])[-2:] == ["--session-id", first["native_session"]]
    os.kill(first["pid"], signal.SIGKILL)
    resumed(field, first, next_of(field, first), transcript)


def reopened(field: Field, first: Any, *more: str) -> Any:  # noqa: ANN401 — a session as it is answered
    """The session after that one was closed by its person and its place opened again."""
    assert field.call("close", "kiwi").returncode == 0
    assert field.call("reopen", "kiwi", *more).returncode == 0
    return next_of(field, first)


def test_a_member_that_was_closed_and_reopened_goes_on_with_its_conversation(field: Field) -> None:
    first, transcript, _ = begun(field)
    resumed(field, first, reopened(field, first), transcript)


def test_a_fresh_conversation_is_begun_where_one_is_asked_for(field: Field) -> None:
    """And gone on with from then on; the former one is left as it was."""
    first, transcript, _ = begun(field)
    second = reopened(field, first, "--fresh")
    native = second["native_session"]
    assert (native != first["native_session"], second["resumed_from"]) == (True, None)
    assert how(field, second).endswith(f"{native}, not {first['native_session']}: a fresh one was asked for")
    tell(field, "remember red")
    third = reopened(field, second)
    assert (third["native_session"], third["resumed_from"]) == (native, second["id"])
    assert bodies(transcript) == ["remember blue"]


def test_a_work_whose_attempt_was_lost_is_told_in_the_same_conversation(field: Field) -> None:
    """The custody of what was lost is reviewed as ever; its member gets it again where it knows of it."""
    folder = field.talker(keeps=KEPT, works=WORK)
    field.start(HOME=str(field.home.temporary))
    assert field.call("up", "team.toml", "--detach").returncode == 0
    (first,) = field.until_live()
    until(field, lambda: received(field) == ["provider_received"])
    os.kill(first["pid"], signal.SIGKILL)
    second = next_of(field, first)
    says = ["--finding", "NO_SIDE_EFFECTS", "--responsibility", "keep", "--reason", "it had only read it"]
    assert field.call("recover", "build it", *says).returncode == 0
    until(field, lambda: received(field)[1:] == ["provider_received"])
    said = (folder / first["native_session"] / "took").read_text().splitlines()
    assert [line.startswith("Work ") for line in said] == [True, True]
    assert in_conversation(field, first["native_session"]) == [second["pid"]]


def received(field: Field) -> list[str]:
    """How far each delivery of the only Work is."""
    (work,) = field.ask("work", "list")["items"]
    return [each["state"] for each in field.ask("work", "show", "--work-id", work["id"])["deliveries"]]


def test_after_a_start_of_the_machine_the_conversation_is_offered(field: Field) -> None:
    """Nothing is started by itself: the commands are named, and they go on with it."""
    first, transcript, daemon = begun(field)
    daemon.kill()
    end_tmux(field.home)
    execute(field.home.database, "UPDATE effects SET boot_id = 'earlier' WHERE pid > 0")
    execute(field.home.database, "UPDATE sessions SET boot_id = 'earlier' WHERE pid > 0")
    field.start(HOME=str(field.home.temporary))
    field.wait(f"session:{first['id']}.state=recovery_required")
    (item,) = field.ask("attention", "list")["items"]
    assert item["what"] == "kiwi has no process: lost: lost: the machine was started again"
    offered = f"firm session close {first['id']}, and firm reopen kiwi, which goes on with its conversation"
    assert offered in item["lifted_by"]
    assert field.members() == []
    resumed(field, first, reopened(field, first), transcript)


def given_up(field: Field) -> Any:  # noqa: ANN401 — a session as it is answered
    """The session that came to nothing as often as it is tried: the end of its predecessor was the first failure."""
    until(field, lambda: len(failures(field)) == MOST_FAILURES - 1)
    assert len(set(failures(field))) == 1
    return field.ask("session", "list")["items"][-1]


def failures(field: Field) -> list[str]:
    """What was read back of each launch that came to nothing."""
    found = [each for each in field.ask("effect", "list")["items"] if each["kind"] == "launch"]
    return [each["readback"] for each in found if each["certainty"] == "not_applied"]


@pytest.mark.parametrize("way", ["put back", "fresh"])
def test_a_member_whose_transcript_is_gone_is_not_started_in_a_blank_one(field: Field, way: str) -> None:
    first, transcript, _ = begun(field)
    native = first["native_session"]
    away = transcript.rename(transcript.with_name("away"))
    transcript.write_bytes(b"")
    os.kill(first["pid"], signal.SIGKILL)
    second = given_up(field)
    assert (second["state"], second["resumed_from"]) == ("cold", first["id"])
    assert field.members() == []
    (item,) = field.ask("attention", "list")["items"]
    assert item["what"] == (
        f"kiwi has no process: NATIVE_SESSION_MISSING: it should go on with native session {native}, and there is "
        f"nothing at {transcript}; put it back, or begin a new conversation: firm close kiwi, and firm reopen kiwi "
        "--fresh"
    )
    if way == "put back":
        away.rename(transcript)
        resumed(field, second, reopened(field, second), transcript)
    else:
        third = reopened(field, second, "--fresh")
        assert words_of(third["pid"])[-2:] == ["--session-id", third["native_session"]]
        assert third["native_session"] != native


@pytest.mark.parametrize("point", [each for each in Boundary if each.startswith("launch")])
def test_killed_in_the_launch_of_a_successor_one_process_is_in_the_conversation(field: Field, point: str) -> None:
    """Whichever daemon does what of it."""
    first, transcript, dying = begun(field, crash=f"{point}:2")
    os.kill(first["pid"], signal.SIGKILL)
    assert dying.wait() == -signal.SIGKILL
    field.start(HOME=str(field.home.temporary))
    second = next_of(field, first)
    field.until_proven()
    assert field.roots() == [second["pid"]]
    resumed(field, first, second, transcript)


def test_one_that_was_told_nothing_begins_anew(field: Field) -> None:
    """There is nothing to go on from, and nothing is lost."""
    field.talker(keeps=KEPT)
    field.start(HOME=str(field.home.temporary))
    assert field.call("up", "team.toml", "--detach").returncode == 0
    (first,) = field.until_live()
    os.kill(first["pid"], signal.SIGKILL)
    second = next_of(field, first)
    assert (second["native_session"] != first["native_session"], second["resumed_from"]) == (True, None)
    assert how(field, second).endswith(f", not {first['native_session']}: nothing was said in it")
    assert in_conversation(field, first["native_session"]) == []


def test_whoever_looks_sees_who_goes_on_with_what(field: Field) -> None:
    first, _, _ = begun(field)
    native = first["native_session"]
    assert f"kiwi began native session {native}" in field.call("ps").stdout
    os.kill(first["pid"], signal.SIGKILL)
    second = next_of(field, first)
    line = f"kiwi goes on with native session {native}"
    assert line in field.call("ps").stdout
    assert line in field.call("board").stdout
    (row,) = [each for each in field.firm("ps")["members"] if each["member"] == "kiwi"]
    assert (row["native_session"], row["resumed"]) == (native, True)
    shown = field.call("session", "show", second["id"]).stdout
    assert [line.split() for line in shown.splitlines() if line.startswith(("native_session", "resumed_from"))] == [
        ["native_session", native],
        ["resumed_from", first["id"]],
    ]


def test_a_picker_at_a_resume_is_answered_as_its_profile_says(field: Field) -> None:
    """A program that asks which part of the conversation it shall take, before it takes a text."""
    picker = {"lines": ["^1. Resume from summary", "^2. Resume full session"], "keys": ["2"]}
    first, transcript, _ = begun(field, dialogs=[picker])
    transcript.with_name("asks").write_text("1. Resume from summary|2. Resume full session -> 2")
    os.kill(first["pid"], signal.SIGKILL)
    resumed(field, first, next_of(field, first), transcript)
    assert transcript.with_name("pressed").read_text() == "2"
