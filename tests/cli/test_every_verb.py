"""What a person does with each noun, from a shell, for eyes and for programs; and every command by hand.

An operation that is added needs nothing here: that it can be typed and shown is in ``test_surface`` and
``test_terminal``, for every row of the table.
"""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import attrs

from client.cli.arguments import JSON
from client.cli.index import NOUNS
from client.cli.main import BY_HAND, known_verbs, load
from client.protocol.table import OPERATIONS
from tests.cli.shell import Shell, has_ended, watched


@attrs.define
class Walk:
    """A shell that remembers which commands it ran: once for eyes, once for programs."""

    shell: Shell
    used: set[tuple[str, str]] = attrs.Factory(set)

    def read(self, *words: str) -> dict[str, object]:
        """A command that changes nothing, both ways."""
        assert self.shell.firm(*words).strip()
        return self.do(*words)

    def do(self, *words: str) -> dict[str, object]:
        self.used.add((words[0], words[1]))
        return self.shell.answer(*words)

    def move(self, noun: str, verb: str, record: str, *words: str) -> dict[str, object]:
        """A change that names the version it saw."""
        found = self.do(noun, "show", record)
        inner = found.get(noun, found)
        assert isinstance(inner, dict)
        return self.do(noun, verb, record, "--expected-version", str(inner["version"]), *words)


def people(walk: Walk) -> str:
    """Agents and all that happens to one; the name of the one who stays."""
    walk.do("agent", "create", "ann", "--role", "host", "--skill", "sql", "--skill", "c", "--ceiling", "read_only")
    walk.do("agent", "create", "--name", "bob")
    walk.do("agent", "create", "tmp")
    assert walk.move("agent", "update", "tmp", "--description", "goes")["description"] == "goes"
    assert walk.move("agent", "pause", "tmp")["status"] == "paused"
    assert walk.move("agent", "resume", "tmp")["status"] == "active"
    assert walk.move("agent", "retire", "tmp")["status"] == "retired"
    items = walk.read("agent", "list", "--status", "active")["items"]
    assert isinstance(items, list)
    assert [item["name"] for item in items] == ["ann", "bob"]
    walk.read("agent", "show", "ann")
    return "ann"


def teams(walk: Walk, host: str) -> None:
    """A team and all that happens to it, and who takes part."""
    project = walk.do("project", "add")
    assert project["root"] == str(walk.shell.cwd)
    walk.read("project", "list")
    walk.read("project", "show", str(project["id"]))
    assert walk.do("team", "create", "core", "--host-agent-id", host)["project_id"] == project["id"]
    invited = walk.do("membership", "invite", "core", "--agent-member-id", "bob")
    part = str(invited["id"])
    assert walk.move("membership", "join", part)["state"] == "active"
    walk.move("team", "hand-over", "core", "--to-agent-id", "bob")
    walk.read("membership", "list", "--team-id", "core")
    walk.read("membership", "show", part)
    walk.move("team", "hand-over", "core", "--to-agent-id", host)
    assert walk.move("membership", "leave", part, "--reason", "done")["state"] == "inactive"
    assert walk.move("team", "update", "core", "--description", "the core")["description"] == "the core"
    for verb, state in (
        ("deactivate", "inactive"),
        ("activate", "active"),
        ("deactivate", "inactive"),
        ("trash", "trashed"),
        ("restore", "inactive"),
    ):
        # Trashed teams have no name any more, so the id.
        team_id = str(walk.shell.answer("team", "list")["items"][0]["id"])
        assert walk.move("team", verb, team_id)["state"] == state
    walk.read("team", "list")
    walk.read("team", "show", "core")


def runs(walk: Walk) -> None:
    """A run of the team, who has a place in it, its Works and what is told of them."""
    walk.move("team", "activate", "core")
    run = walk.do("team-run", "create", "core", "--objective", "a parser")
    begun = walk.do("team-run", "start", str(run["id"]), "--expected-version", str(run["version"]))
    assert begun["state"] == "running"
    walk.read("team-run", "list")
    (place,) = list_of(walk.read("team-run", "show", str(run["id"])), "members")
    closed = walk.do("member-run", "close", place["member_run"]["id"], "--expected-version", "1")
    again = walk.do("member-run", "reopen", str(closed["id"]), "--expected-version", str(closed["version"]))
    assert again["coordination"] == "active"
    in_run = ("--team-run-id", str(run["id"]))
    work = walk.do("work", "create", *in_run, "--title", "read", "--completion-criteria", "it reads")
    walk.read("work", "show", "--work-id", str(work["id"]))
    assert [each["title"] for each in list_of(walk.read("work", "list", *in_run), "items")] == ["read"]
    walk.read("work", "graph", *in_run)
    walk.read("team-run", "board", *in_run)
    for noun in ("attention", "effect", "message", "session"):
        assert list_of(walk.read(noun, "list", *in_run), "items") == []
    assert list_of(walk.read("delegation", "list", "core"), "items") == []
    assert list_of(walk.read("workspace", "list"), "items") == []


def list_of(answer: dict[str, object], name: str) -> list[Any]:
    found = answer[name]
    assert isinstance(found, list)
    return found


def what_happened(walk: Walk) -> None:
    walk.read("event", "list", "--limit", "3")
    assert walk.read("event", "wait", "seq>1")["timed_out"] is False
    for alias, noun_verb in (("events", ("event", "list")), ("wait", ("event", "wait"))):
        words = ("seq>1",) if alias == "wait" else ()
        assert walk.shell.firm(alias, *words, "--json") == walk.shell.firm(*noun_verb, *words, "--json")


def the_node(walk: Walk) -> None:
    walk.read("node", "quarantine")
    backup = walk.do("node", "backup", "copy.db")
    assert backup["file"] == str(walk.shell.cwd / "copy.db")
    assert Path(str(backup["file"])).stat().st_size == backup["size"]


def test_a_day_with_every_noun_works_for_eyes_and_for_programs(served: Shell) -> None:
    walk = Walk(served)
    teams(walk, people(walk))
    runs(walk)
    what_happened(walk)
    the_node(walk)
    assert walk.used <= {(op.noun, op.verb) for op in OPERATIONS}
    assert {noun for noun, _ in walk.used} == {op.noun for op in OPERATIONS}


def test_every_command_by_hand_can_be_asked_for_help_and_is_a_verb_of_its_noun(shell: Shell) -> None:
    for noun, verb in BY_HAND:
        if verb:
            assert noun in NOUNS
            assert verb in known_verbs(noun)
        assert shell.firm(*filter(None, (noun, verb)), "--help").startswith("Usage: firm")


def test_every_command_by_hand_answers_programs_but_a_script_and_a_hook_that_says_nothing() -> None:
    silent = [words for words, (name, _) in BY_HAND.items() if JSON not in load(f"client.cli.by_hand.{name}").FIELDS]
    assert silent == [("session", "hook"), ("completion", "")]


def test_watch_prints_a_line_for_each_event_as_it_is_committed(shell: Shell) -> None:
    with shell.running():
        began = shell.answer("events")["cursor"]
        for form in ([], ["--json"]):
            watcher = shell.begin("watch", "--cursor", began, *form)
            assert watcher.stdout is not None
            made = shell.answer("agent", "create", f"ann{len(form)}")
            lines = [watcher.stdout.readline().decode() for _ in range(1 + len(form))]
            assert f"agent/{made['id']}" in lines[-1]
            if form:
                assert json.loads(lines[-1])["kind"] == "created"
            watcher.terminate()
            watcher.communicate()


def test_watch_ends_with_the_daemon_and_says_so(shell: Shell) -> None:
    with shell.running():
        shell.firm("agent", "create", "ann")
        watcher = shell.begin("watch", "--cursor", shell.answer("events", "--limit", "1")["cursor"])
        shell.firm("agent", "create", "bob")
        assert watcher.stdout is not None
        assert watcher.stdout.readline()
        shell.firm("node", "stop")
        _, err = watcher.communicate()
        assert watcher.returncode in {3, 4}
        assert b"firm node start" in err


def test_watch_and_wait_of_a_daemon_that_is_killed_end_with_4(shell: Shell) -> None:
    with shell.running() as pid:
        cursor = shell.answer("events")["cursor"]
        asking = [shell.begin("watch", "--cursor", cursor), shell.begin("wait", "seq>1000000")]
        shell.firm("agent", "create", "ann")
        watcher, _ = asking
        assert watcher.stdout is not None
        assert watcher.stdout.readline()
        with watched(pid) as handle:
            os.kill(pid, signal.SIGKILL)
            assert has_ended(handle, within=10)
        for each in asking:
            _, err = each.communicate()
            assert (each.returncode, b"[NODE_DAEMON_UNAVAILABLE]" in err) == (4, True)


def test_wait_returns_when_it_becomes_true(shell: Shell) -> None:
    with shell.running():
        agent = shell.answer("agent", "create", "ann")
        waiting = shell.begin("wait", f"agent:{agent['id']}.status=paused", "--json")
        shell.firm("agent", "pause", "ann", "--expected-version", "1")
        out, _ = waiting.communicate()
        assert waiting.returncode == 0
        assert json.loads(out)["answer"]["timed_out"] is False


def test_wait_that_runs_out_of_time_ends_with_3(served: Shell) -> None:
    for form in ([], ["--json"]):
        done = served.tries("wait", "seq>1000000", "--timeout-ms", "1", *form)
        assert (done.status, done.err) == (3, "")
        assert done.json["answer"]["timed_out"] is True if form else done.out.startswith("Timed out")
