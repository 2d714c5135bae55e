"""What the program of a member records of its provider, read at the end of its turns: how a cycle ended, and whether
there is anything to begin another one with.
"""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

from tests.e2e.test_cycles import DOES_IT, begun, cycles, does, endings, session, up
from tests.e2e.test_hooks import gated, opens, until
from tests.e2e.test_told import WORK, idle, send, told, took
from tests.support.runs import Field

QUOTA = {"type": "error", "error": {"kind": "quota"}}
RULES = """
[[records]]
match = {type = "error", "error.kind" = "quota"}
ending = "quota_exhausted"
capacity = "exhausted"
[[records]]
match = {type = "error", "error.kind" = "auth"}
ending = "unauthorized"
capacity = "unauthorized"
[[records]]
match = {type = "turn", stop = "max_tokens"}
ending = "output_limit"
[[records]]
match = {type = "turn", stop = "refusal"}
ending = "refusal"
[[records]]
match = {type = "turn", stop = "max_turns"}
ending = "turn_request_limit"
[[records]]
match = {type = "turn", stop = "error"}
ending = "turn_failed"
[[records]]
match = {type = "interrupted"}
ending = "interrupted_by_provider"
[[records]]
match = {type = "turn", stop = "end"}
ending = "completed"
capacity = "available"
"""


def records(folder: Path, *found: object, then: str = "") -> None:
    """What the member writes to its transcript when it is told something."""
    lines = "\n".join(json.dumps(each) if not isinstance(each, str) else each for each in found)
    text = f"#!/bin/sh\nread -r text\ncat >> {folder}/$NATIVE.jsonl <<'END'\n{lines}\nEND\n{then}"
    does(folder, text)


@pytest.mark.parametrize("hooks", [True, False], ids=["hooks", "quiet"])
def test_a_cycle_that_ran_out_of_quota_says_so_and_nothing_more_is_begun(field: Field, *, hooks: bool) -> None:
    folder = begun(field, records=RULES, hooks=hooks, quiet=600 if hooks else 1)
    records(folder, {"type": "user"}, QUOTA)
    up(field)
    idle(field)
    send(field, "one?")
    assert endings(field, 1) == ["provider_failed"]
    (cycle,) = cycles(field)
    assert cycle["failure"] == "quota_exhausted"
    found = session(field)
    source = 'record type="error", error.kind="quota"'
    assert (found["capacity"], found["capacity_source"], found["streak"]) == ("exhausted", source, 0)
    send(field, "two?")
    (item,) = [i for i in field.ask("attention", "list")["items"] if i["kind"] == "capacity_unavailable"]
    assert item["what"] == f"the provider of kiwi gives it nothing: exhausted, by its {source}"
    (member,) = [m for m in field.ask("board")["members"] if m["name"] == "kiwi"]
    assert member["waits"] == "for its provider, which is exhausted"
    assert "waits for its provider, which is exhausted" in field.call("board").stdout
    assert len(cycles(field)) == 1
    # What lifts it: its person begins it anew.
    does(folder, "#!/bin/sh\n")
    assert field.call("close", "kiwi").returncode == 0
    assert field.call("reopen", "kiwi").returncode == 0
    assert len(told(field, 2)) == 2
    assert "two?" in took(folder)[-1]


@pytest.mark.parametrize(
    ("record", "failure"),
    [
        ({"type": "error", "error": {"kind": "auth"}}, "unauthorized"),
        ({"type": "turn", "stop": "max_tokens"}, "output_limit"),
        ({"type": "turn", "stop": "refusal"}, "refusal"),
        ({"type": "turn", "stop": "max_turns"}, "turn_request_limit"),
        ({"type": "turn", "stop": "error"}, "turn_failed"),
    ],
)
def test_a_provider_fails_a_cycle_in_its_own_ways(field: Field, record: object, failure: str) -> None:
    folder = begun(field, records=RULES, hooks=True, quiet=600)
    records(folder, record)
    up(field)
    idle(field)
    send(field, "one?")
    assert endings(field, 1) == ["provider_failed"]
    assert cycles(field)[0]["failure"] == failure


def test_text_with_the_words_of_a_record_sets_nothing(field: Field) -> None:
    """I37: in the transcript, in a message, in a result; and a hook run by hand."""
    folder = begun(field, records=RULES, hooks=True, quiet=600, works=WORK)
    quota = json.dumps(QUOTA)
    said = {"type": "assistant", "message": {"content": [{"type": "text", "text": f"\n{quota}\n"}, QUOTA]}}
    by_hand = f"""
"$FIRM_BIN" message send --recipient me --body '{quota}'
"$FIRM_BIN" member hook --event '{quota}' --turn '{quota}'
printf '%s' '{{"hook_event_name": "Ask", "type": "error", "error": {{"kind": "quota"}}, "capacity": "exhausted"}}' |
    "$FIRM_BIN" member hook
"""
    work = DOES_IT.partition("read -r text\n")[2].replace("--result-summary done", f"--result-summary '{quota}'")
    records(folder, said, {"type": "assistant", "text": quota}, then=by_hand + work)
    up(field)
    assert endings(field, 1) == ["completed"], (folder / "did").read_text()
    (found,) = field.ask("work", "list")["items"]
    assert found["phase"] == "review"
    assert quota in field.ask("message", "list")["items"][0]["body"]
    now = session(field)
    assert (now["capacity"], now["capacity_at"], cycles(field)[0]["failure"]) == ("unknown", None, None)


@pytest.mark.parametrize("ours", [False, True], ids=["by itself", "and by us"])
def test_an_interrupt_that_the_program_reports_is_credited_to_us_only_where_it_is_ours(
    field: Field, *, ours: bool
) -> None:
    """I50."""
    folder = begun(field, records=RULES, hooks=True, quiet=600)
    gate = gated(folder)
    waits = (folder / "does").read_text().partition("read -r _")[2]
    records(folder, {"type": "interrupted"}, then=f"read -r _ {waits}")
    up(field)
    idle(field)
    send(field, "go on")
    until(field, "running")
    if ours:
        assert field.call("interrupt", "kiwi").returncode == 0
    opens(gate)
    assert endings(field, 1) == ["interrupted_by_host" if ours else "interrupted_by_provider"]
    assert session(field)["streak"] == 0


def test_an_interrupt_of_an_earlier_cycle_is_not_credited_to_a_later_one(field: Field) -> None:
    folder = begun(field, records=RULES, hooks=True, quiet=1)
    up(field)
    idle(field)
    gate = gated(folder)
    send(field, "one")
    until(field, "running")
    assert field.call("interrupt", "kiwi").returncode == 0
    assert endings(field, 1) == ["interrupted_by_host"]
    records(folder, {"type": "interrupted"})
    opens(gate)
    send(field, "two")
    assert endings(field, 2) == ["interrupted_by_host", "interrupted_by_provider"]


def test_an_interrupt_of_a_member_that_was_idle_is_not_credited_to_its_next_cycle(field: Field) -> None:
    folder = begun(field, records=RULES, hooks=True, quiet=600)
    records(folder, {"type": "interrupted"})
    up(field)
    idle(field)
    assert field.call("interrupt", "kiwi").returncode == 0
    (key,) = [e for e in field.ask("effect", "list")["items"] if e["kind"] == "interrupt"]
    field.wait(f"effect:{key['id']}.state=settled")
    send(field, "one")
    assert endings(field, 1) == ["interrupted_by_provider"]


@pytest.mark.parametrize("end", ["kill", "close"])
def test_what_is_recorded_counts_before_the_end_of_the_process(field: Field, end: str) -> None:
    folder = begun(field, records=RULES, hooks=True, quiet=600)
    gate = gated(folder)
    waits = (folder / "does").read_text().partition("read -r _")[2]
    records(folder, QUOTA, then=f'"{folder}/hook" Ask 1\nread -r _ {waits}')
    up(field)
    idle(field)
    send(field, "go on")
    until(field, "waiting_input")
    if end == "close":
        assert field.call("close", "kiwi").returncode == 0
    else:
        os.kill(session(field)["pid"], signal.SIGKILL)
    assert endings(field, 1) == ["provider_failed"]
    assert cycles(field)[0]["failure"] == "quota_exhausted"
    assert gate.exists()


def test_a_failure_without_a_hook_ends_its_cycle_once_the_terminal_is_quiet(field: Field) -> None:
    """Some programs run no hook when their provider fails them."""
    folder = begun(field, records=RULES, hooks=True, quiet=1)
    gate = gated(folder)
    waits = (folder / "does").read_text().partition("read -r _")[2]
    records(folder, QUOTA, then=f"read -r _ {waits}")
    up(field)
    idle(field)
    send(field, "go on")
    assert endings(field, 1) == ["provider_failed"]
    opens(gate)


def test_what_was_recorded_before_a_cycle_is_not_of_it(field: Field) -> None:
    folder = begun(field, records=RULES, hooks=True, quiet=600)
    records(folder, {"type": "turn", "stop": "refusal"})
    up(field)
    idle(field)
    send(field, "one?")
    assert endings(field, 1) == ["provider_failed"]
    records(folder, "no record at all", {"type": "turn", "stop": "end"})
    send(field, "two?")
    assert endings(field, 2) == ["provider_failed", "empty_output"]
    assert session(field)["capacity"] == "available"
