"""``firm send``, ``firm recover`` and ``firm resolve`` as a person types them, with real members in a real tmux."""

from __future__ import annotations

import json
import os
import shutil
import signal
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from providers.process import Process
from tests.support.teams import TEAM, Person, person

pytestmark = pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed")

#: A first attempt that never ends, and a second that does.
STAYS = '#!/bin/sh\\ntest \\"$FIRM_ATTEMPT\\" = 1 && exec sleep 600\\necho new > made'
ONE = TEAM.split('[[work]]\nkey = "b"')[0].replace("#!/bin/sh\\necho new > made", STAYS)
SAID = ("--finding", "NO_SIDE_EFFECTS", "--responsibility", "keep", "--reason", "it only slept")


@pytest.fixture
def me() -> Generator[Person]:
    with person() as made:
        made.writes(ONE)
        yield made


def told(me: Person, *words: str) -> str:
    """What lifts it, of a command that is no question as it stands."""
    done = me.shell.tries(*words)
    assert (done.status, done.out) == (2, ""), done
    return done.err


def begun(me: Person) -> dict[str, Any]:
    """Bob's Work, once his worker runs it."""
    work = me.ups()["works"]["a"]
    me.shell.firm("wait", f"work:{work}.phase=active", "--timeout-ms", "60000")
    return me.works()["the parser"]


def lost(me: Person) -> str:
    """The Work whose process was killed; the attempt at it is orphaned."""
    work = str(begun(me)["id"])
    (session,) = me.shell.answer("session", "list")["items"]
    assert Process(session["pid"], session["start_ticks"]).signal(signal.SIGKILL)
    me.shell.firm("wait", f"session:{session['id']}.version>{session['version']}", "--timeout-ms", "60000")
    return work


def test_send_reaches_a_member_by_its_name(me: Person) -> None:
    work = me.ups()["works"]["a"]
    (run,) = me.shell.answer("team-run", "list")["items"]
    said = me.shell.firm("send", "bob", "mind the tests")
    assert said.startswith("To bob: ")
    assert "1 recipient" in said
    sent = json.loads(
        me.shell.firm("send", "bob", "-", "--work-id", work, "--response-required", "--json", stdin=b"why?\n")
    )
    (place,) = [m for m in me.shell.answer("team-run", "show", run["id"])["members"] if m["name"] == "bob"]
    assert [each["recipient_id"] for each in sent["deliveries"]] == [place["member_run"]["membership_id"]]
    mail = me.shell.answer("message", "list")["items"]
    assert [(each["body"], each["work_id"], each["intent"]) for each in mail] == [
        ("mind the tests", None, "informational"),
        ("why?", work, "response_required"),
    ]


def test_send_says_whom_it_could_reach_and_what_is_missing(me: Person) -> None:
    me.shell.firm("node", "start")
    assert "start one: firm up FILE" in told(me, "send", "bob", "hi")
    me.ups()
    assert "did you mean bob? They are: bob, me" in told(me, "send", "bop", "hi")
    assert "firm send MEMBER TEXT" in told(me, "send", "bob")
    assert "one word too many" in told(me, "send", "bob", "two", "words")
    refusal = me.shell.tries("send", "bob", "hi", "--work-id", "nothing", "--json").refusal
    assert (refusal["code"], refusal["about"]) == ("NOT_FOUND", "work/nothing")
    assert me.shell.answer("message", "list")["items"] == []


def test_send_is_refused_where_somebody_else_is_the_host(me: Person) -> None:
    """It speaks as the Host, so who is not it is told how one is."""
    judged = ONE.replace('host = "me"', 'host = "ann"').replace("criteria", 'check = ["there=true"]\ncriteria', 1)
    me.writes(judged.replace("[[member]]", '[[member]]\nname = "ann"\n\n[[member]]', 1))
    me.ups()
    done = me.shell.tries("send", "bob", "hi")
    assert (done.status, done.out) == (1, "")
    assert "[NOT_AUTHORIZED team/" in done.err
    assert "with the profile 'me'" in done.err


def test_recover_lists_what_was_lost_and_takes_one_back_as_it_was_found(me: Person) -> None:
    """Without saying what was found nothing is done, and nothing is assumed."""
    work = lost(me)
    listed = me.shell.firm("recover")
    for word in (work, "bob", "the parser", "NO_SIDE_EFFECTS", "SIDE_EFFECTS_KEPT", "SIDE_EFFECTS_REVERTED", "release"):
        assert word in listed
    (found,) = json.loads(me.shell.firm("recover", "--json"))["lost"]
    assert (found["id"], found["member"], found["fence"]) == (work, "bob", 1)
    for named in (work, "bob", "the parser"):
        said = told(me, "recover", named, *SAID[:2])
        assert f"firm recover {work} --fence 1 --finding NO_SIDE_EFFECTS, SIDE_EFFECTS_KEPT or" in said
    assert me.works()["the parser"]["phase"] == "active"
    refusal = me.shell.tries("recover", "bob", *SAID, "--fence", "2", "--json").refusal
    assert refusal["code"] == "FENCE_STALE"
    assert "open" in me.shell.firm("recover", "bob", *SAID)
    assert me.accepts(work)["resolution"] == "accepted"
    shown = me.shell.answer("work", "show", "--work-id", work)
    assert [each["custody"] for each in shown["bindings"]] == ["handed_over", "completed"]
    assert shown["bindings"][0]["reason"] == "NO_SIDE_EFFECTS: it only slept"


def test_recover_still_knows_what_somebody_has_looked_at(me: Person) -> None:
    work = lost(me)
    (item,) = [i for i in me.shell.answer("attention", "list")["items"] if i["kind"] == "orphaned"]
    me.shell.firm("attention", "ack", "--key", item["key"])
    (found,) = json.loads(me.shell.firm("recover", "--json"))["lost"]
    assert found["id"] == work


def test_recover_and_resolve_say_that_nothing_has_to_be_done(me: Person) -> None:
    begun(me)
    assert "Nothing was lost" in me.shell.firm("recover")
    assert "Nothing is unknown" in me.shell.firm("resolve")
    assert json.loads(me.shell.firm("recover", "--json"))["lost"] == []
    assert json.loads(me.shell.firm("resolve", "--json"))["unknown"] == []
    for verb in ("recover", "resolve"):
        assert "nothing has to be done" in told(me, verb, "bob")


def test_resolve_lists_what_is_not_known_and_decides_it_as_it_was_found(me: Person) -> None:
    """A terminal server that does not answer: whether the key reached the member is not known."""
    begun(me)
    (session,) = me.shell.answer("session", "list")["items"]
    record = json.loads((Path(me.shell.home) / "run" / "tmux" / "server.json").read_text())
    os.kill(record["pid"], signal.SIGSTOP)
    try:
        effect = me.shell.answer("session", "interrupt", session["id"])
        me.shell.firm("wait", f"effect:{effect['id']}.state=recovery_required", "--timeout-ms", "60000")
    finally:
        os.kill(record["pid"], signal.SIGCONT)
    listed = me.shell.firm("resolve")
    for word in (effect["id"], "bob", "interrupt", "confirm_applied", "confirm_not_applied", "keep"):
        assert word in listed
    (found,) = json.loads(me.shell.firm("resolve", "--json"))["unknown"]
    assert (found["id"], found["kind"], found["member"]) == (effect["id"], "interrupt", "bob")
    assert f"firm resolve {effect['id']} --finding confirm_applied" in told(me, "resolve", "bob")
    kept = json.loads(me.shell.firm("resolve", "bob", "--finding", "keep", "--reason", "later", "--json"))["effect"]
    assert (kept["state"], kept["version"]) == ("recovery_required", found["version"] + 1)
    said = me.shell.firm("resolve", effect["id"], "--finding", "confirm_not_applied", "--reason", "it still sleeps")
    assert said.strip() == "The interrupt of bob is settled: not applied"
    assert "Nothing is unknown" in me.shell.firm("resolve")
