"""Members whose program has hooks: a turn is over when they say so, and what they say late takes nothing back."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.test_cycles import DOES_IT, begun, does, endings, session, up
from tests.e2e.test_told import WORK, idle, keys, send, told, took
from tests.support.runs import FIRM, Field
from tests.support.wire import PATIENCE

#: What a member runs while its turn is to go on: it waits at a gate.
WAITS = "#!/bin/sh\nread -r _ < {gate}\n"

#: A hook of which one is lost.
LOSES_ONE = """#!/bin/sh
if [ "$1" = Stop ] && [ ! -e "{folder}/lost" ]; then
    read -r up _ < /proc/uptime
    echo "${{up%.*}}${{up#*.}}0000000" > "{folder}/lost"
    exit 1
fi
exec "{folder}/says" "$@"
"""


def gated(folder: Path) -> Path:
    gate = folder / "gate"
    os.mkfifo(gate)
    does(folder, WAITS.format(gate=gate))
    return gate


def opens(gate: Path) -> None:
    """The turn that waits there goes on; it has to have come there."""
    with gate.open("w") as end:
        end.write("\n")


def until(field: Field, activity: str) -> Any:  # noqa: ANN401 — the session
    """The session, once its turn is said to be so."""
    while (found := session(field))["activity"] != activity:
        field.wait(f"session:{found['id']}.version>{found['version']}")
    return found


def test_a_cycle_is_over_when_its_hooks_say_so_however_long_its_terminal_is_watched(field: Field) -> None:
    folder = begun(field, works=WORK, hooks=True, quiet=600)
    does(folder, DOES_IT)
    up(field)
    assert endings(field, 1) == ["completed"], (folder / "did").read_text()
    found = session(field)
    assert (found["state"], found["activity"], found["activity_source"]) == ("idle", "idle", "hook")
    assert (found["turn"], found["streak"]) == ("1", 0)
    (work,) = field.ask("work", "list")["items"]
    assert work["phase"] == "review"


def test_a_turn_that_only_runs_hooks_has_come_to_nothing(field: Field) -> None:
    folder = begun(field, hooks=True, quiet=600)
    up(field)
    idle(field)
    send(field, "are you there?")
    assert endings(field, 1) == ["empty_output"]
    assert (folder / "hooked").read_text() == "Begin 1 0\nStop 1 0\n"


def test_what_a_hook_says_after_the_end_of_its_turn_takes_nothing_back(field: Field) -> None:
    """A notification of the first turn comes after that turn, and one in the second."""
    folder = begun(field, hooks=True, quiet=600)
    gate, done = folder / "gate", folder / "done"
    os.mkfifo(gate)
    os.mkfifo(done)
    does(folder, f'#!/bin/sh\n(read -r _ < {gate}; "{folder}/hook" Ask 1; echo > {done}) &\n')
    up(field)
    idle(field)
    send(field, "one?")
    endings(field, 1)
    before = session(field)
    assert (before["activity"], before["turn"]) == ("idle", "1")
    opens(gate)
    assert done.read_text() == "\n"
    assert session(field) == before
    does(folder, f'#!/bin/sh\n"{folder}/hook" Ask 1\n')
    send(field, "two?")  # it is told what waits for it as before
    assert endings(field, 2) == ["empty_output"] * 2
    assert (session(field)["activity"], session(field)["turn"]) == ("idle", "2")
    heard = ["Begin 1 0", "Stop 1 0", "Ask 1 0", "Begin 2 0", "Ask 1 0", "Stop 2 0"]
    assert (folder / "hooked").read_text().splitlines() == heard
    kinds = [e["kind"] for e in field.ask("event", "list", "--stream", f"session/{before['id']}")["items"]]
    assert [kind for kind in kinds if kind.startswith("hook")] == ["hook: begun", "hook: ended"] * 2


def test_who_waits_for_a_person_is_shown_to(field: Field) -> None:
    folder = begun(field, hooks=True, quiet=600)
    gate = gated(folder)
    with (folder / "does").open("r+") as script:
        text = script.read().replace("read -r", f'"{folder}/hook" Ask 1\nread -r')
        script.seek(0)
        script.write(text)
    up(field)
    idle(field)
    send(field, "may I?")
    until(field, "waiting_input")
    told(field)  # its hooks may be heard before it is seen that it took the text
    found = session(field)
    assert (found["state"], found["activity_source"]) == ("active", "hook")
    (member,) = [m for m in field.ask("board")["members"] if m["name"] == "kiwi"]
    assert (member["activity"], member["activity_source"]) == ("waiting_input", "hook")
    assert "waiting for input (hook, " in field.call("board").stdout
    opens(gate)
    assert endings(field, 1) == ["empty_output"]


def test_an_interrupt_ends_a_cycle_whose_end_no_hook_tells_of(field: Field) -> None:
    folder = begun(field, hooks=True, quiet=1)
    gate = gated(folder)
    up(field)
    idle(field)
    send(field, "go on")
    until(field, "running")
    assert field.call("interrupt", "kiwi").returncode == 0
    assert endings(field, 1) == ["interrupted_by_host"]
    assert (session(field)["activity"], session(field)["activity_source"]) == ("idle", "terminal")
    opens(gate)


def loses_one(folder: Path) -> None:
    """The hook for the first end of a turn dies before it says anything; the file ``lost`` has its number."""
    (folder / "hook").rename(folder / "says")
    (folder / "hook").write_text(LOSES_ONE.format(folder=folder))
    (folder / "hook").chmod(0o755)


def test_a_cycle_whose_end_was_lost_is_over_when_its_terminal_rests(field: Field) -> None:
    """Nobody knows how it ended. The next one is its own, whenever the hook comes that was lost."""
    folder = begun(field, hooks=True, quiet=1, rests=["^>"])
    loses_one(folder)
    gate, done = folder / "gate", folder / "done"
    os.mkfifo(gate)
    os.mkfifo(done)
    does(folder, f'#!/bin/sh\n(read -r _ < {gate}; "{folder}/hook" Stop 1; echo > {done}) &\n')
    up(field)
    idle(field)
    send(field, "one?")
    assert endings(field, 1) == ["terminal_unobserved"]
    before = session(field)
    assert (before["state"], before["activity"], before["activity_source"]) == ("idle", "idle", "terminal")
    opens(gate)
    assert done.read_text() == "\n"
    assert session(field) == before
    late = f'"$FIRM_BIN" member hook --event Stop --turn 1 --sequence "$(cat {folder}/lost)"'
    does(folder, f'#!/bin/sh\n{late}\necho > {done}\nread -r _ < {gate}\n"$FIRM_BIN" work show\n')
    send(field, "two?")
    assert done.read_text() == "\n"
    told(field, 2)
    assert (session(field)["state"], session(field)["activity"], session(field)["turn"]) == ("active", "running", "2")
    opens(gate)
    assert endings(field, 2) == ["terminal_unobserved", "completed"]
    assert (folder / "hooked").read_text() == "Begin 1 0\nStop 1 0\nBegin 2 0\nStop 2 0\n"


def test_a_turn_that_works_in_silence_is_ended_by_its_hook_however_long_that_takes(field: Field) -> None:
    folder = begun(field, hooks=True, quiet=1, rests=["^>"])
    does(folder, '#!/bin/sh\nsleep 4\n"$FIRM_BIN" work show\n')
    up(field)
    idle(field)
    send(field, "think about it")
    assert endings(field, 1) == ["completed"]
    assert session(field)["activity_source"] == "hook"


def test_a_daemon_that_did_not_hear_the_end_does_not_wait_for_it(field: Field) -> None:
    """The hook finds nobody, harms nothing, and nobody says that the turn goes on."""
    folder = field.talker(hooks=True, quiet=3)
    daemon = field.start()
    gate = gated(folder)
    up(field)
    idle(field)
    send(field, "go on")
    until(field, "running")
    daemon.kill()
    opens(gate)
    field.start()
    assert endings(field, 1) == ["terminal_unobserved"]
    assert (folder / "hooked").read_text() == "Begin 1 0\nStop 1 0\n"
    assert session(field)["state"] == "idle"


def test_the_end_of_a_turn_that_an_earlier_daemon_began_is_not_waited_for(field: Field) -> None:
    """It had typed the text, and died before it was recorded."""
    folder = field.talker(hooks=True, quiet=3)
    daemon = field.start(FIRM_CRASH_AT="deliver-done:2")
    up(field)
    idle(field)
    send(field, "are you there?")
    assert endings(field, 1) == ["empty_output"]
    gate = gated(folder)
    field.call("send", "kiwi", "go on", "--response-required")  # the daemon may be gone before it answers
    assert daemon.wait() == -signal.SIGKILL
    opens(gate)
    field.start()
    assert endings(field, 2) == ["empty_output", "terminal_unobserved"]
    assert [text.partition(",")[0].startswith("Message ") for text in took(folder)] == [True, True]


def test_a_hook_proves_that_a_text_was_taken_which_no_screen_shows(field: Field) -> None:
    folder = begun(field, hooks=True, quiet=600)
    (folder / "silent").touch()
    up(field)
    idle(field)
    send(field, "are you there?")
    (effect, *_) = told(field)
    assert (effect["certainty"], effect["readback"]) == ("applied", "submitted: a hook told of its turn")
    assert endings(field, 1) == ["empty_output"]


def test_a_turn_of_its_own_holds_what_waits(field: Field) -> None:
    """A person typed there, or the program began by itself."""
    folder = begun(field, hooks=True, quiet=600)
    gate = gated(folder)
    up(field)
    idle(field)
    keys(field, "-l", "do this for me")
    keys(field, "Enter")
    until(field, "running")
    send(field, "which colour?")
    assert [e for e in field.ask("effect", "list")["items"] if e["kind"] == "deliver"] == []
    (member,) = [m for m in field.ask("board")["members"] if m["name"] == "kiwi"]
    assert member["waits"] == "for the end of a turn that we did not begin"
    (folder / "does").unlink()
    opens(gate)
    told(field)
    assert [text.split()[0] for text in took(folder)] == ["do", "Message"]


@pytest.mark.parametrize(
    ("words", "given", "said"),
    [
        (["--event", "Stop"], "", "nobody answers"),
        ([], '{"hook_event_name": "Stop"}', "nobody answers"),
        ([], "no JSON", "standard input says no hook"),
        ([], "[]", "it has no 'hook_event_name'"),
        ([], '{"hook_event_name": 7}', "it has no 'hook_event_name'"),
        (["--evnet", "Stop"], "", "--evnet"),
        (["--sequence", "x"], "", "--sequence"),
        (["--event"], "", "--event"),
    ],
)
@pytest.mark.parametrize("door", [["member", "hook"], ["hook"], ["session", "hook"]], ids=" ".join)
def test_a_hook_is_silent_and_fails_nobody(
    field: Field, door: list[str], words: list[str], given: str, said: str
) -> None:
    """Whatever is wrong: an agent whose hook fails is stopped by it."""
    field.start().stop()
    done = subprocess.run(
        [FIRM, *door, *words],
        env=field.environment,
        input=given,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "")
    assert said in done.stderr
    assert done.stderr.startswith("firm hook: ")
    assert len(done.stderr.splitlines()) == 1


def test_a_person_is_told_that_hooks_are_of_members(field: Field) -> None:
    field.start()
    done = field.call("hook", "--event", "Stop")
    assert (done.returncode, done.stdout) == (0, "")
    assert "NOT_AUTHORIZED" in done.stderr
