"""Boards, inboxes, events and Works as a person reads them, on terminals, in pipes and in poor locales."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Generator
from typing import Any

import attrs
import pytest

from client.cli import eyes
from client.cli.eyes import LAYOUTS, inbox
from client.cli.render import width
from client.protocol.table import BY_NAME
from tests.cli.conftest import somebody
from tests.cli.shell import PATIENCE, Shell
from tests.cli.test_terminal import NASTY, controls

HANA = "日本花"
#: What can be read here, for eyes.
READS = [
    ["board"],
    ["inbox", "--all-mail"],
    ["events"],
    ["message", "list"],
    ["team", "show", "core"],
    ["team-run", "board-summary"],
    ["work", "graph"],
    ["work", "list"],
    ["work", "show", "first"],
    ["work", "show", "second"],
]


@attrs.frozen
class Scene:
    """A run whose words move cursors, of a Host with a wide name; ``works`` are its Works by their titles."""

    shell: Shell
    run: str
    works: dict[str, str]

    def words(self, words: list[str]) -> list[str]:
        return [self.works.get(word, word) for word in words]


@pytest.fixture(scope="module")
def scene() -> Generator[Scene]:
    with somebody() as shell:
        shell.firm("node", "start")
        shell.firm("agent", "create", HANA, "--profile", "me")
        shell.firm("agent", "create", "kiwi")
        shell.firm("team", "create", "core", "--host-agent-id", HANA)
        invited = shell.answer("membership", "invite", "core", "--agent-member-id", "kiwi")["id"]
        shell.firm("membership", "join", invited, "--expected-version", "1")
        run = shell.answer("team-run", "create", "core", "--objective", "-", stdin=NASTY.encode())["id"]
        shell.firm("team-run", "start", run, "--expected-version", "1")
        made = {
            title: shell.answer(
                "work", "create", "--title", title, "--context", "-", "--completion-criteria", f"{title} works", *more,
                stdin=NASTY.encode(),
            )["id"]
            for title, more in (("first", ()), ("second", ("--priority", "urgent", "--claim-mode", "host_assign")))
        }  # fmt: skip
        shell.firm("work", "assign", made["second"], "--expected-version", "1", "--membership-id", invited)
        shell.firm("work", "hold", made["first"], "--expected-version", "1", "--reason", "-", stdin=NASTY.encode())
        shell.firm(
            "work",
            "replace-dependencies",
            made["second"],
            "--expected-version",
            "2",
            "--prerequisite-work-id",
            made["first"],
        )
        shell.firm("message", "send", "--recipient", "kiwi", "--body", "-", stdin=NASTY.encode())
        yield Scene(shell, run, made)


@pytest.mark.parametrize("words", READS, ids=" ".join)
@pytest.mark.parametrize("columns", [30, 80, 120])
def test_nothing_that_somebody_wrote_moves_the_cursor(scene: Scene, words: list[str], columns: int) -> None:
    done = scene.shell.having(NO_COLOR="1").terminal(*scene.words(words), columns=columns)
    assert done.status == 0
    assert controls(done.out) == set()


@pytest.mark.parametrize("words", READS, ids=" ".join)
def test_a_locale_without_unicode_gets_plain_marks_and_no_error(scene: Scene, words: list[str]) -> None:
    script = "import sys; from firm_entry import cli; sys.exit(cli())"
    done = subprocess.run(
        [sys.executable, "-c", script, *scene.words(words)],
        env=scene.shell.env(PYTHONIOENCODING="ascii"),
        cwd=scene.shell.cwd,
        capture_output=True,
        timeout=PATIENCE,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    shown = re.sub(r"\\ufffd|\\u65e5\\u672c\\u82b1", "", done.stdout.decode("ascii"))
    assert not re.search(r"\\u[0-9a-f]{4}", shown)


@pytest.mark.parametrize("words", READS, ids=" ".join)
def test_only_headings_are_bold(scene: Scene, words: list[str]) -> None:
    found = re.findall(r"\x1b\[[0-9;]*m", scene.shell.terminal(*scene.words(words), columns=80).out)
    assert found == ["\x1b[1m", "\x1b[0m"] * (len(found) // 2)
    assert "\x1b" not in scene.shell.firm(*scene.words(words))


@pytest.mark.parametrize("words", [["board"], ["events"], ["work", "list"], ["work", "graph"]], ids=" ".join)
def test_lines_fit_the_terminal(scene: Scene, words: list[str]) -> None:
    for columns in (80, 120):
        lines = scene.shell.having(NO_COLOR="1").terminal(*words, columns=columns).out.splitlines()
        assert [line for line in lines if width(line) > columns] == []


def test_the_board_says_where_the_run_stands_and_who_does_what(scene: Scene) -> None:
    lines = scene.shell.firm("board").splitlines()
    assert lines[0].startswith(f"Run {scene.run}: running, version ")
    assert lines[1].startswith("Works: 1 on hold, 2 open, 1 nobody's")
    at = lines.index("Works open")
    assert [line.split() for line in lines[at + 1 : at + 3]] == [
        [scene.works["second"], "·", "waiting", "second", "kiwi", *lines[at + 1].split()[5:]],
        [scene.works["first"], "‖", "on", "hold", "first", "-", *lines[at + 2].split()[6:]],
    ]
    assert lines[at + 1].endswith(", urgent")
    assert [line.split()[:5] for line in lines[lines.index("Members") + 1 :]] == [
        [HANA, "host-1", "no", "session", "-"],
        ["kiwi", "member-1", "no", "session", "-"],
    ]


def test_what_needs_attention_stands_on_the_board_with_what_lifts_it(scene: Scene) -> None:
    """A prerequisite that was cancelled: the Host is told, and how to go on."""
    words = ("--completion-criteria", "c")
    gone = scene.shell.answer("work", "create", "--title", "gone", *words)["id"]
    stuck = scene.shell.answer("work", "create", "--title", "stuck", *words, "--prerequisite-work-id", gone)["id"]
    scene.shell.firm("work", "cancel", gone, "--expected-version", "1", "--reason", "no")
    shown = scene.shell.firm("board")
    (item,) = scene.shell.answer("attention", "list")["items"]
    assert f"\nAttention\n  {item['what']}, " in shown
    assert f"\n    {item['lifted_by']}\n" in shown
    assert "stuck" in scene.shell.firm("work", "show", stuck).splitlines()[0]
    scene.shell.firm("work", "cancel", stuck, "--expected-version", "1", "--reason", "no")


def test_a_summary_is_the_text_alone_and_at_most_500_characters(scene: Scene) -> None:
    said = scene.shell.firm("team-run", "board-summary").rstrip("\n")
    assert said == scene.shell.answer("team-run", "board-summary")["text"]
    assert len(said) <= 500


def test_a_work_is_shown_under_six_headings_with_what_is_next(scene: Scene) -> None:
    lines = scene.shell.firm("work", "show", scene.works["second"]).splitlines()
    assert [line for line in lines[1:] if line and line[0] != " "] == [
        "What",
        "Mental model",
        "Workspace",
        "Boundary",
        "Gates",
        "Evidence",
        "Next",
    ]
    assert lines[0] == f"{scene.works['second']}  waiting, version 3"
    assert "  1. second works: not answered yet" in lines
    first, second = (f"{title} ({scene.works[title]})" for title in ("first", "second"))
    assert f"  needs {first}; waits for {first}" in lines
    assert lines[-1] == f"  it waits for 1 prerequisite: {first}"
    assert f"  needed by {second}" in scene.shell.firm("work", "show", scene.works["first"]).splitlines()
    assert scene.shell.firm("work", "show", scene.works["first"]).splitlines()[-1] == (
        f"  firm work unhold {scene.works['first']} --expected-version 2"
    )


def test_who_may_claim_a_work_is_said_by_name(scene: Scene) -> None:
    """And by id, where nobody has a name for it."""
    (hana, kiwi) = scene.shell.answer("agent", "list")["items"]
    named = ("--eligible-member-id", kiwi["id"], "--eligible-member-id", hana["id"], "--eligible-member-id", "zzz")
    made = scene.shell.answer("work", "create", "--title", "for some", "--completion-criteria", "c", *named)["id"]
    ids = {hana["id"]: f"{HANA} ({hana['id']})", kiwi["id"]: f"kiwi ({kiwi['id']})", "zzz": "zzz"}
    only = ", ".join(ids[id_] for id_ in sorted(ids))
    assert f"  whoever claims it; only {only}" in scene.shell.firm("work", "show", made).splitlines()
    scene.shell.firm("work", "cancel", made, "--expected-version", "1", "--reason", "no")


def test_a_team_is_shown_with_what_each_member_is(scene: Scene) -> None:
    lines = scene.shell.firm("team", "show", "core").splitlines()
    found = {each["name"]: each["membership"]["id"] for each in scene.shell.answer("team", "show", "core")["members"]}
    at = lines.index("Members")
    assert [line.split() for line in lines[at + 1 : at + 4]] == [
        ["NAME", "ROLE", "STATE", "PROFILE", "CEILING", "WORKSPACE", "MEMBERSHIP"],
        [HANA, "host", "active", "me", "workspace_write", "worktree", found[HANA]],
        ["kiwi", "member", "active", "external", "workspace_write", "worktree", found["kiwi"]],
    ]
    assert lines[-1] == "Ceilings are recorded and not enforced: each member may do what this user may."


def test_a_change_of_a_work_is_one_line(scene: Scene) -> None:
    made = scene.shell.answer("work", "create", "--title", "brief", "--completion-criteria", "c")["id"]
    said = scene.shell.firm("work", "cancel", made, "--expected-version", "1", "--reason", "no")
    assert said == f"{made}  cancelled, version 2: brief\n"


def test_events_are_one_line_each_and_name_agents(scene: Scene) -> None:
    first, *lines, last = scene.shell.firm("events").splitlines()
    assert first.split() == ["seq", "when", "record", "v", "what", "who"]
    items = scene.shell.answer("events")["items"]
    assert [line.split()[0] for line in lines] == [str(each["seq"]) for each in items]
    assert last.startswith("Continue with --cursor ")


def mail(state: str, kind: str = "message", **more: object) -> dict[str, Any]:
    """One letter of an inbox, of long ago."""
    delivery = {
        "id": f"d-{state}",
        "state": state,
        "recipient_id": "m",
        "response": "none",
        "reason": "",
        "updated_at": 0,
    }
    message: dict[str, object] = {
        "id": f"i-{state}",
        "kind": kind,
        "intent": "informational",
        "body": "one\ntwo",
        "options": [],
        "correlation_id": "c",
        "work_id": None,
        "created_at": 0,
    }
    return {
        "sender": "kiwi",
        "delivery": {**delivery, **{k: v for k, v in more.items() if k in delivery}},
        "message": {**message, **{k: v for k, v in more.items() if k in message}},
    }


def read(*mails: dict[str, Any], undelivered: tuple[dict[str, Any], ...] = ()) -> list[str]:
    return inbox.lay({"items": list(mails), "undelivered": list(undelivered), "next": None}).splitlines()


def test_what_was_not_read_comes_first() -> None:
    lines = read(mail("acknowledged"), mail("queued"))
    assert lines[0] == "1 letter unread, 1 read"
    assert [line.partition(",")[0] for line in lines if "kiwi" in line] == ["● kiwi: message", "  kiwi: message"]


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({}, "To say that it was seen: firm message ack d-queued"),
        ({"intent": "response_required"}, "To answer it: firm message reply i-queued --body TEXT"),
        ({"kind": "request_decision"}, "To answer it: firm message reply i-queued --body TEXT"),
        ({"recipient_id": None}, "To take it: firm message claim d-queued"),
        (
            {"kind": "interaction_request", "options": ["yes", "no"]},
            "To answer it, once: firm message answer i-queued --option ONE of yes, no",
        ),
        (
            {"kind": "interaction_request"},
            "To answer it, once: firm message answer i-queued --response-text TEXT",
        ),
    ],
)
def test_a_letter_says_what_it_needs(more: dict[str, Any], expected: str) -> None:
    assert read(mail("queued", **more))[-1].strip() == expected


def test_mail_that_will_not_arrive_is_said_with_its_reason() -> None:
    lines = read(undelivered=(mail("failed", reason="refused\x1b three times"),))
    assert re.fullmatch(r"  failed, \d+ d ago: refused\N{REPLACEMENT CHARACTER} three times", lines[-4])


def test_every_layout_is_of_an_operation_and_another_builds_answer_is_shown_all_the_same() -> None:
    assert LAYOUTS.keys() <= BY_NAME.keys()
    for op in LAYOUTS:
        assert "novel" in eyes.text(op, {"novel": 1})


def test_for_programs_nothing_of_it_is_loaded(scene: Scene) -> None:
    asked = "import sys; from firm_entry import cli; cli(); print(json.dumps([m for m in sys.modules if 'eyes' in m]))"
    done = subprocess.run(
        [sys.executable, "-c", f"import json; {asked}", "board", "--json"],
        env=scene.shell.env(),
        cwd=scene.shell.cwd,
        capture_output=True,
        timeout=PATIENCE,
        check=True,
    )
    assert json.loads(done.stdout.splitlines()[-1]) == []
