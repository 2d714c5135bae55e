"""How cycles end that were begun at a terminal, and what becomes of a member that does nothing in them."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.test_told import WORK, idle, keys, send, told, took
from tests.support.runs import Field

#: What a member runs for a text: it does the Work that the text names, in the words that the text has for it.
DOES_IT = """#!/bin/sh
read -r text
wanted='.*begin it: \\(.* work start --work-id [a-z0-9]* --expected-version [0-9]*\\).*'
begin=$(printf '%s' "$text" | sed -n "s/$wanted/\\1/p")
[ -n "$begin" ] || exit 0
$begin || exit
next=$((${begin##* } + 1))
${begin%% *} work submit --expected-version $next --result-summary done --report-only
"""
LOOKS = '#!/bin/sh\n"$FIRM_BIN" work show\n'


def does(folder: Path, program: str) -> None:
    """As an agent would."""
    path = folder / "does"
    path.write_text(program)
    path.chmod(0o755)


def cycles(field: Field) -> list[Any]:
    """The deliveries, but for those that were held, which begin none: a program that was just started may be told
    before it shows its composer.
    """
    found = field.ask("effect", "list")["items"]
    return [e for e in found if e["kind"] == "deliver" and e["certainty"] != "not_applied"]


def endings(field: Field, count: int) -> list[str]:
    """How the cycles ended, once so many have."""
    while True:
        seq = field.firm("event", "list", "--limit", "1")["seq"]
        found = [e["ending"] for e in cycles(field) if e["ending"]]
        if len(found) >= count:
            return found
        field.wait(f"seq>{seq}")


def session(field: Field) -> Any:  # noqa: ANN401 — whatever the operation answers
    return field.ask("session", "list")["items"][-1]


def begun(field: Field, **talks: Any) -> Path:  # noqa: ANN401 — what a talker may be given
    folder = field.talker(**talks)
    field.start()
    return folder


def up(field: Field) -> None:
    assert field.call("up", "team.toml", "--detach").returncode == 0


def test_a_member_that_does_its_work_has_completed_its_cycle(field: Field) -> None:
    folder = begun(field, works=WORK)
    does(folder, DOES_IT)
    up(field)
    assert endings(field, 1) == ["completed"], (folder / "did").read_text()
    (work,) = field.ask("work", "list")["items"]
    assert work["phase"] == "review", (folder / "did").read_text()
    assert (session(field)["state"], session(field)["streak"]) == ("idle", 0)
    assert len(took(folder)) == 1  # nobody is woken for what is in review


def test_a_member_that_only_looks_has_done_something(field: Field) -> None:
    folder = begun(field, works=WORK)
    does(folder, LOOKS)
    up(field)
    assert endings(field, 1) == ["completed"]
    assert session(field)["streak"] == 0


def test_three_cycles_without_anything_degrade_a_member_until_it_does_something(field: Field) -> None:
    folder = begun(field, works=WORK)
    up(field)
    assert endings(field, 3) == ["empty_output"] * 3
    field.wait(f"session:{session(field)['id']}.state=idle")
    while session(field)["degraded_at"] is None:
        field.wait(f"session:{session(field)['id']}.version>{session(field)['version']}")
    assert [e["wake"] for e in told(field, 3)] == ["delivery", "probation", "probation"]
    (item,) = field.ask("attention", "list")["items"]
    assert (item["kind"], item["what"]) == (
        "member_degraded",
        "kiwi was told 3 times what to do, and did nothing that was seen",
    )
    kinds = [e["kind"] for e in field.ask("event", "list", "--stream", f"session/{session(field)['id']}")["items"]]
    assert kinds[-1] == "degraded: 3 cycles in a row came to nothing"
    # It is told nothing more, whatever waits; and with the first thing that it does it is as before.
    sent = send(field, "are you there?")
    does(folder, DOES_IT)
    wake_by_hand(field, took(folder)[0])
    told(field, 4)
    assert sent["message"]["id"] in took(folder)[-1]
    assert session(field)["degraded_at"] is None
    assert field.ask("attention", "list")["items"][0]["kind"] == "review_requested"


def wake_by_hand(field: Field, text: str) -> None:
    """A person types the same again."""
    keys(field, "-l", text)
    keys(field, "Enter")


def test_a_cycle_that_is_interrupted_has_ended_so(field: Field) -> None:
    begun(field, works=WORK, quiet=3)
    up(field)
    told(field)
    assert field.call("interrupt", "kiwi").returncode == 0
    assert endings(field, 1) == ["interrupted_by_host"]
    assert session(field)["streak"] == 0


@pytest.mark.parametrize(("end", "ending"), [("close", "closed"), ("kill", "provider_failed")])
def test_a_cycle_ends_with_its_process(field: Field, end: str, ending: str) -> None:
    begun(field, works=WORK, quiet=60)
    up(field)
    told(field)
    if end == "close":
        assert field.call("close", "kiwi").returncode == 0
    else:
        os.kill(session(field)["pid"], signal.SIGKILL)
    assert endings(field, 1) == [ending]


def test_a_cycle_that_a_daemon_died_over_was_not_seen_to_its_end(field: Field) -> None:
    """It counts neither as one that came to nothing nor as one that did not."""
    field.talker(works=WORK, quiet=3)
    daemon = field.start()
    up(field)
    told(field)
    daemon.kill()
    field.start()
    assert endings(field, 1) == ["terminal_unobserved"]
    assert session(field)["streak"] == 0


def test_a_change_by_the_host_is_told_and_its_own_is_not(field: Field) -> None:
    folder = begun(field, works=WORK)
    does(folder, DOES_IT.replace(" || exit\nnext", "; exit\nnext"))
    up(field)
    assert endings(field, 1) == ["completed"]
    (work,) = field.ask("work", "list")["items"]
    assert (work["phase"], len(took(folder))) == ("active", 1)
    change = ["--expected-version", str(work["version"]), "--priority", "high"]
    changed = field.ask("work", "update", work["id"], *change)
    assert [e["wake"] for e in told(field, 2)] == ["delivery", "continue"]
    assert f"Work {work['id']}, version {changed['version']}: build it/It was changed" in took(folder)[1]


def test_informational_mail_begins_no_cycle_and_comes_with_the_next(field: Field) -> None:
    folder = begun(field)
    up(field)
    idle(field)
    first = field.ask("message", "send", "--body", "the sky is blue", "--recipient", "kiwi")
    seq = field.firm("event", "list", "--limit", "1")["seq"]
    assert took(folder) == []
    second = send(field, "which colour is it?")
    told(field)
    (text,) = took(folder)
    assert text.index(first["message"]["id"]) < text.index(second["message"]["id"])
    assert seq < field.firm("event", "list", "--limit", "1")["seq"]


def test_a_turn_is_steered_while_it_goes_on_and_not_after(field: Field) -> None:
    folder = field.talker(works=WORK, quiet=4, profile="steers = true")
    field.start()
    up(field)
    told(field)
    made = field.ask("session", "steer", session(field)["id"], "--text", "rather blue")
    field.wait(f"effect:{made['id']}.state=settled")
    assert field.ask("effect", "show", made["id"])["certainty"] == "applied"
    assert took(folder)[1:] == ["rather blue"]
    assert endings(field, 1) == ["empty_output"]  # it is no cycle of its own
    field.ask("session", "close", session(field)["id"])
    field.wait(f"session:{session(field)['id']}.state=closed")
    refused = field.call("session", "steer", session(field)["id"], "--text", "too late")
    assert (refused.returncode, "INVALID_STATE_TRANSITION" in refused.stderr) == (1, True)
    assert len(took(folder)) <= 3


def test_killed_over_the_text_of_a_steer_it_is_typed_once(field: Field) -> None:
    folder = field.talker(works=WORK, quiet=20, profile="steers = true")
    daemon = field.start(FIRM_CRASH_AT="deliver-pasted:2")
    up(field)
    told(field)
    field.call("session", "steer", session(field)["id"], "--text", "rather blue")
    assert daemon.wait() == -signal.SIGKILL
    field.start()
    (made,) = [e for e in field.ask("effect", "list")["items"] if e["kind"] == "steer"]
    field.wait(f"effect:{made['id']}.state=settled")
    assert field.ask("effect", "show", made["id"])["certainty"] == "applied"
    assert took(folder)[1:] == ["rather blue"]
