"""Answers and refusals: which stream, which exit status, which keys; and asking again."""

from __future__ import annotations

import os
import signal

import pytest

from client.protocol.refusals import ROWS, Code
from tests.cli.shell import Shell, has_ended, watched
from tests.support.spoil import mend, spoil

REFUSAL = ["about", "code", "current_version", "idempotency_key", "lifted_by", "meaning", "retry"]


def test_json_is_one_object_with_the_same_keys_whatever_was_asked(served: Shell) -> None:
    for words in (["agent", "create", "json"], ["agent", "list"], ["agent", "show", "json"], ["events"]):
        found = served.tries(*words, "--json")
        assert (found.status, found.err) == (0, "")
        assert list(found.json) == ["answer", "replayed", "seq"]


def test_a_refusal_goes_to_standard_error_with_its_code_and_what_lifts_it(served: Shell) -> None:
    done = served.tries("team", "show", "nosuch")
    assert (done.status, done.out) == (1, "")
    assert done.err == (
        "firm: No such record, or not one the caller may see. [NOT_FOUND team/nosuch]\n"
        "  To lift it: see what there is: firm team list\n"
    )


def test_a_refusal_for_programs_has_the_same_keys_whoever_refuses(served: Shell, shell: Shell) -> None:
    by_daemon = served.tries("team", "show", "nosuch", "--json")
    by_nobody = shell.tries("team", "show", "nosuch", "--json")
    by_itself = shell.tries("team", "shwo", "--json")
    assert [done.status for done in (by_daemon, by_nobody, by_itself)] == [1, 4, 2]
    for done in (by_daemon, by_nobody, by_itself):
        assert done.out == ""
        assert sorted(done.refusal) == REFUSAL
    assert by_daemon.refusal["retry"] == "reread"


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["agent", "create", ""], Code.MALFORMED),
        (["agent", "create", "a\nb"], Code.MALFORMED),
        (["agent", "list", "--limit", "501"], Code.LIMIT_EXCEEDED),
        (["agent", "list", "--cursor", "zzz"], Code.CURSOR_INVALID),
        (["agent", "create", "x" * 201], Code.LIMIT_EXCEEDED),
        (["agent", "show", "nosuch"], Code.NOT_FOUND),
        (["team", "create", "x", "--host-agent-id", "nosuch"], Code.NOT_FOUND),
        (["project", "add", "/nosuch"], Code.FILE_UNUSABLE),
        (["wait", "nonsense"], Code.MALFORMED),
        (["wait", "team:nosuch.state=active"], Code.NOT_FOUND),
        (["watch", "--cursor", "zzz"], Code.CURSOR_INVALID),
        (["node", "release", "teams/nosuch"], Code.NOT_FOUND),
    ],
    ids=lambda value: value if isinstance(value, str) else value[1][:12],
)
def test_a_refusal_ends_with_the_status_of_its_code(served: Shell, words: list[str], code: Code) -> None:
    refusal = served.tries(*words, "--json").refusal
    assert (refusal["code"], refusal["retry"], refusal["meaning"]) == (
        code,
        ROWS[code].retry,
        ROWS[code].meaning,
    )
    done = served.tries(*words)
    assert done.status == ROWS[code].exit
    assert f" [{code} " in done.err
    assert "\n  To lift it: " in done.err


def test_a_record_that_cannot_be_read_ends_with_5_and_the_rest_is_served(shell: Shell) -> None:
    with shell.running():
        shell.firm("agent", "create", "ann")
        agent = shell.answer("agent", "create", "bob")
        was = spoil(shell.home / "node.db", "agents", agent["id"])
        assert shell.tries("agent", "show", agent["id"]).status == 5
        assert [item["name"] for item in shell.answer("agent", "list")["items"]] == ["ann"]
        status = shell.firm("node", "status")
        assert "health degraded" in status
        assert "ROW_QUARANTINED" in status
        assert "To lift it: see them: firm node quarantine" in status
        (aside,) = shell.answer("node", "quarantine")["items"]
        assert aside["record"] in shell.firm("node", "quarantine")
        assert shell.tries("node", "release", aside["record"]).status == 5
        mend(shell.home / "node.db", "agents", agent["id"], was)
        shell.firm("node", "release", aside["record"])
        assert shell.answer("agent", "show", "bob") == agent
        assert "health ok" in shell.firm("node", "status")


def test_nobody_to_ask_ends_with_4_and_says_how_to_start(shell: Shell) -> None:
    done = shell.tries("team", "list")
    assert (done.status, done.out) == (4, "")
    assert "[NODE_DAEMON_UNAVAILABLE]\n  To lift it: firm node start\n" in done.err


def test_the_same_key_gets_the_first_answer_and_does_it_once(served: Shell) -> None:
    words = ("agent", "create", "once", "--idempotency-key", "k1", "--json")
    first, again = served.tries(*words).json, served.tries(*words).json
    assert (first["replayed"], again["replayed"]) == (False, True)
    assert first["answer"] == again["answer"]
    assert [item["name"] for item in served.answer("agent", "list")["items"]].count("once") == 1
    other = served.tries("agent", "create", "other", "--idempotency-key", "k1")
    assert other.status == 1
    assert "IDEMPOTENCY_KEY_REUSED" in other.err


def test_a_dash_reads_standard_input_less_its_last_line_end(served: Shell) -> None:
    text = "several\nlines, ünïcode\n\n"
    made = served.answer("agent", "create", "dash", "--description", "-", stdin=text.encode())
    assert made["description"] == text.removesuffix("\n")
    assert served.answer("agent", "create", "-", stdin=b"piped\n")["name"] == "piped"


def test_a_value_may_begin_with_a_dash_behind_an_equal_sign_or_two_dashes(served: Shell) -> None:
    assert served.answer("agent", "create", "--name=-x")["name"] == "-x"
    assert served.answer("agent", "create", "--name=--json")["name"] == "--json"
    assert served.tries("agent", "create", "--json", "--", "-y").json["answer"]["name"] == "-y"


def test_a_request_that_is_too_large_is_refused_before_it_is_sent(served: Shell) -> None:
    words = [word for n in range(4) for word in ("--capability", f"{n}" * 100_000)]
    done = served.tries("agent", "create", "big", *words)
    assert done.status == 2
    assert "[FRAME_TOO_LARGE request]" in done.err


def test_when_the_daemon_dies_before_it_answers_the_key_is_named_and_asking_again_does_it_once(shell: Shell) -> None:
    # The daemon's first commit forgets old replies, before it serves anybody; its second is ours.
    crashing = shell.having(FIRM_CRASH_AT="after-commit:2")
    crashing.firm("node", "start")
    with watched(crashing.pid()) as handle:
        done = shell.tries("agent", "create", "ann")
        assert has_ended(handle, within=10)
    assert done.status == 4
    assert "The request may have been done." in done.err
    key = done.err.split("--idempotency-key ")[1].split()[0]
    shell.firm("node", "start")
    again = shell.tries("agent", "create", "ann", "--idempotency-key", key, "--json").json
    assert again["replayed"] is True
    assert [item["name"] for item in shell.answer("agent", "list")["items"]] == ["ann"]


def test_the_key_is_named_for_programs_too(shell: Shell) -> None:
    crashing = shell.having(FIRM_CRASH_AT="before-commit:2")
    crashing.firm("node", "start")
    refusal = shell.tries("agent", "create", "ann", "--json").refusal
    assert (refusal["code"], refusal["retry"]) == ("NODE_DAEMON_UNAVAILABLE", "same")
    shell.firm("node", "start")
    again = shell.tries("agent", "create", "ann", "--idempotency-key", refusal["idempotency_key"], "--json").json
    assert again["replayed"] is False


def test_a_daemon_that_was_killed_while_nothing_was_asked_leaves_no_doubt(shell: Shell) -> None:
    with shell.running() as pid, watched(pid) as handle:
        os.kill(pid, signal.SIGKILL)
        assert has_ended(handle, within=10)
        done = shell.tries("agent", "create", "ann")
        assert done.status == 4
        assert "may have been done" not in done.err
