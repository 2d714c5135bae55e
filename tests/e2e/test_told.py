"""Members that take text in their terminal: what waits for them is typed there once, whatever dies meanwhile."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path
from typing import Any

from tests.support.runs import Field

WORK = '[[work]]\nkey = "one"\ntitle = "build it"\ncriteria = ["it works"]\nassign = "kiwi"\n'


def told(field: Field, count: int = 1, *, held: bool = False) -> list[Any]:
    """The deliveries to terminals, once so many of them are no longer under way. Those that were held come with
    ``held`` alone: one may always be, by a program that shows no composer yet or again.
    """
    while True:
        seq = field.firm("event", "list", "--limit", "1")["seq"]
        ended = [e for e in field.ask("effect", "list")["items"] if e["kind"] == "deliver" and e["state"] != "prepared"]
        found = [e for e in ended if held == (e["certainty"] == "not_applied")]
        if len(found) >= count:
            return found
        field.wait(f"seq>{seq}")


def took(folder: Path) -> list[str]:
    return (folder / "took").read_text().splitlines() if (folder / "took").exists() else []


def test_a_work_is_told_at_the_terminal_with_its_commands(field: Field) -> None:
    folder = field.talker(works=WORK)
    field.start()
    assert field.call("up", "team.toml", "--detach").returncode == 0
    effect = told(field)[0]
    assert (effect["state"], effect["readback"]) == ("settled", "submitted")
    (work,) = field.ask("work", "list")["items"]
    (text,) = took(folder)
    assert text.startswith(f"Work {work['id']}, version {effect['work_version']}: build it/")
    assert f"firm work start --work-id {work['id']} --expected-version {work['version']}" in text
    (delivery,) = field.ask("work", "show", "--work-id", work["id"])["deliveries"]
    assert delivery["state"] == "provider_received"


def test_killed_before_it_was_seen_to_be_taken_nothing_is_typed_again_and_a_person_is_asked(field: Field) -> None:
    folder = field.talker(works=WORK)
    dying = field.start(FIRM_CRASH_AT="deliver-entered")
    field.call("up", "team.toml", "--detach")
    assert dying.wait() == -signal.SIGKILL
    field.start()
    (effect,) = told(field)
    assert (effect["state"], effect["certainty"]) == ("recovery_required", "unknown")
    assert effect["readback"] == "unsubmitted: Enter was pressed, and nobody saw whether it was taken"
    (item,) = field.ask("attention", "list")["items"]
    assert (item["kind"], item["about"]) == ("delivery_unsubmitted", f"effect/{effect['id']}")
    resolve = ["--expected-version", str(effect["version"]), "--finding", "confirm_applied", "--reason", "it is at it"]
    assert field.ask("effect", "resolve", effect["id"], *resolve)["certainty"] == "applied"
    assert field.ask("attention", "list")["items"] == []
    assert len(took(folder)) == 1


def send(field: Field, body: str, *more: str) -> Any:  # noqa: ANN401 — whatever the operation answers
    return field.ask("message", "send", "--body", body, "--recipient", "kiwi", "--response-required", *more)


def mail(field: Field, sent: Any) -> Any:  # noqa: ANN401 — the same
    return field.ask("message", "show", sent["message"]["id"])["deliveries"][0]


def idle(field: Field) -> Any:  # noqa: ANN401 — the same
    """The member's session, with its process and nothing under way."""
    (session,) = field.until_live()
    return session


def keys(field: Field, *words: str) -> None:
    """What a person types at the terminal of the only member, once they see it: what is typed before a program has set
    up its terminal is thrown away.
    """
    while not field.firm("logs", "kiwi")["screen"].strip():
        pass
    tmux = ["tmux", "-S", str(field.home.run / "tmux" / "tmux.sock")]
    (launch,) = [e["id"] for e in field.ask("effect", "list")["items"] if e["kind"] == "launch"]
    subprocess.run([*tmux, "send-keys", "-t", f"={launch}:", *words], check=True, timeout=10)


def test_mail_is_told_whole_and_its_sender_sees_that_it_arrived(field: Field) -> None:
    folder = field.talker()
    field.start()
    assert field.call("up", "team.toml", "--detach").returncode == 0
    idle(field)
    sent = send(field, "which colour?")
    told(field)
    (text,) = took(folder)
    said = sent["message"]["id"]
    assert text.startswith(f"Message {said} from me, which needs an answer:/which colour?/")
    assert f"firm message reply {said} --body TEXT" in text
    assert mail(field, sent)["state"] == "provider_received"


def test_a_draft_holds_what_waits_until_it_is_sent(field: Field) -> None:
    folder = field.talker()
    field.start()
    assert field.call("up", "team.toml", "--detach").returncode == 0
    idle(field)
    keys(field, "half a line")
    sent = send(field, "which colour?")
    (held,) = told(field, held=True)
    reason = "held: draft: somebody has begun a line there and not sent it"
    assert (held["certainty"], held["readback"]) == ("not_applied", reason)
    (item,) = field.ask("attention", "list")["items"]
    assert (item["kind"], item["what"]) == ("delivery_held", f"nothing can be typed to kiwi: {reason}")
    waiting = mail(field, sent)
    assert (waiting["state"], waiting["reason"]) == ("routed", reason)
    assert took(folder) == []
    keys(field, "Enter")
    told(field)
    assert [line.partition(",")[0] for line in took(folder)] == [
        "half a line",
        f"Message {sent['message']['id']} from me",
    ]
    assert mail(field, sent)["state"] == "provider_received"
    assert field.ask("attention", "list")["items"] == []


def test_what_nobody_took_is_unsubmitted_on_the_board_and_for_its_sender(field: Field) -> None:
    field.talker(swallowed=99, settle=0.1)
    field.start()
    assert field.call("up", "team.toml", "--detach").returncode == 0
    idle(field)
    sent = send(field, "which colour?")
    (effect,) = told(field)
    reason = "unsubmitted: nothing shows that it was taken, after 3 attempts to send it"
    assert (effect["state"], effect["readback"]) == ("recovery_required", reason)
    assert (mail(field, sent)["state"], mail(field, sent)["reason"]) == ("routed", reason)
    (item,) = field.ask("attention", "list")["items"]
    assert item["what"] == f"whether kiwi took what was typed is not known: {reason}"
