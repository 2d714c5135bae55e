"""``firm node purge`` as a person uses it: what was said goes to a file of theirs, and then out of the database."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import attrs
import pytest

from tests.cli.shell import Shell, has_ended, watched
from tests.support import ledger
from tests.support.node import rows_of

#: Said in the run, and nowhere else.
SAID = "the-cellar-door-is-open"


@attrs.frozen
class Over:
    """A run that was cancelled, in which something was said."""

    shell: Shell
    run: dict[str, Any]
    message: dict[str, Any]

    @property
    def export(self) -> Path:
        return self.shell.cwd / f"firm-run-{self.run['id']}.json"

    @property
    def database(self) -> Path:
        return self.shell.home / "node.db"

    def purge(self, *more: str) -> str:
        return self.shell.firm("node", "purge", "--run", self.run["id"], *more)

    def left(self) -> list[object]:
        """The rows in which it still stands."""
        return [row for rows in rows_of(self.database).values() for row in rows if SAID in str(row)]

    def files(self) -> bytes:
        """Everything in the files of the database."""
        return b"".join(path.read_bytes() for path in sorted(self.shell.home.glob("node.db*")))


def said(shell: Shell) -> Over:
    shell.firm("agent", "create", "ann", "--profile", "me")
    bob = shell.answer("agent", "create", "bob")
    shell.firm("team", "create", "core", "--host-agent-id", "ann")
    part = shell.answer("membership", "invite", "core", "--agent-member-id", bob["id"])
    shell.firm("membership", "join", part["id"], "--expected-version", str(part["version"]))
    team = shell.answer("team", "show", "core")["team"]
    if team["state"] != "active":
        shell.firm("team", "activate", "core", "--expected-version", str(team["version"]))
    run = shell.answer("team-run", "create", "core")
    run = shell.answer("team-run", "start", run["id"], "--expected-version", str(run["version"]))
    in_run = ("--team-run-id", run["id"])
    sent = shell.answer("message", "send", *in_run, "--body", SAID, "--recipient", "bob")
    wanted = ("--title", "read", "--completion-criteria", "it reads", "--context", SAID)
    shell.firm("work", "create", *in_run, *wanted)
    run = shell.answer("team-run", "show", run["id"])["run"]
    ended = ("--expected-version", str(run["version"]), "--reason", SAID)
    return Over(shell, shell.answer("team-run", "cancel", run["id"], *ended), sent["message"])


@pytest.fixture
def over(shell: Shell) -> Over:
    shell.firm("node", "start")
    return said(shell)


def test_what_was_said_is_in_the_export_and_not_in_the_files_of_the_database(over: Over) -> None:
    """Once the daemon has ended in order: until then it is in the log too. A copy that is made has it nowhere."""
    shell = over.shell
    assert SAID.encode() in over.files()
    assert over.purge() == f"run {over.run['id']} is purged; what was said in it is in {over.export}\n"
    assert stat.S_IMODE(over.export.stat().st_mode) == 0o600
    exported = json.loads(over.export.read_text("utf-8"))
    (message,), (work,) = exported["messages"], exported["works"]
    assert (message, work["work"]["context"], work["work"]["reason"]) == (over.message, SAID, SAID)
    assert exported["run"] == over.run
    assert exported["events"][-1]["seq"] >= exported["exported_seq"] > 0
    shown = shell.answer("message", "show", over.message["id"])["message"]
    assert shown == {**over.message, "body": shown["body"]}
    assert shown["body"].startswith("[purged by the operator at 20")
    assert shown["body"] in shell.firm("message", "show", over.message["id"])
    in_run = ("--team-run-id", over.run["id"])
    for words in (("events",), ("team-run", "board", *in_run), ("message", "list", *in_run), ("work", "list", *in_run)):
        assert SAID not in shell.firm(*words)
    shell.firm("node", "backup", "copy.db")
    assert SAID.encode() not in (shell.cwd / "copy.db").read_bytes()
    shell.firm("node", "stop")
    assert SAID.encode() not in over.files()
    ledger.check_fold(over.database)


def test_no_secret_of_the_node_is_in_an_export(over: Over) -> None:
    over.purge()
    text = over.export.read_text("utf-8")
    secrets = [path.read_text("utf-8", "replace").strip() for path in over.shell.home.glob("*") if _is_secret(path)]
    assert secrets
    assert not [secret for secret in secrets if secret in text]
    assert "token" not in text


def _is_secret(path: Path) -> bool:
    return path.is_file() and ("key" in path.name or "secret" in path.name)


def test_a_run_that_was_purged_is_not_exported_again(over: Over) -> None:
    """The second answer is the first, and what was exported is not overwritten by words that say nothing."""
    first = json.loads(over.purge("--json"))
    before = over.export.read_bytes()
    assert over.purge("--to", "other.json") == (
        f"run {over.run['id']} was purged before; there is nothing more to export or to remove\n"
    )
    assert json.loads(over.purge("--json")) == {**first, "export": None}
    assert (over.export.read_bytes(), (over.shell.cwd / "other.json").exists()) == (before, False)


def test_a_purge_overwrites_no_file_and_removes_nothing_then(over: Over) -> None:
    over.export.write_text("mine")
    done = over.shell.tries("node", "purge", "--run", over.run["id"])
    assert (done.status, "[FILE_EXISTS " in done.err, "--to FILE" in done.err) == (1, True, True)
    assert over.export.read_text() == "mine"
    assert over.shell.answer("message", "show", over.message["id"])["message"] == over.message


def test_a_purge_whose_export_cannot_be_written_removes_nothing(over: Over) -> None:
    done = over.shell.tries("node", "purge", "--run", over.run["id"], "--to", "nosuch/export.json")
    assert (done.status, "[FILE_UNUSABLE " in done.err) == (1, True)
    assert over.shell.answer("message", "show", over.message["id"])["message"] == over.message


def test_a_run_that_goes_on_is_not_purged_and_leaves_no_export(over: Over) -> None:
    run = over.shell.answer("team-run", "create", "core")
    done = over.shell.tries("node", "purge", "--run", run["id"])
    assert (done.status, "[INVALID_STATE_TRANSITION " in done.err) == (1, True)
    assert list(over.shell.cwd.glob("*firm-run-*")) == []


@pytest.mark.parametrize("point", ["before-commit", "after-commit"])
def test_a_purge_whose_daemon_is_killed_is_done_whole_or_not_at_all(over: Over, point: str) -> None:
    """The export is there either way. The command asks the next daemon again, and it is done once."""
    shell = over.shell
    shell.firm("node", "stop")
    # The daemon's first commit forgets old replies, before it serves anybody; its second is ours.
    shell.having(FIRM_CRASH_AT=f"{point}:2").firm("node", "start")
    before = over.left()
    with watched(shell.pid()) as daemon:
        asking = shell.begin("node", "purge", "--run", over.run["id"])
        assert has_ended(daemon, within=60)
    assert over.left() == ([] if point == "after-commit" else before)
    ledger.check_fold(over.database)
    assert SAID in over.export.read_text("utf-8")
    shell.firm("node", "start")
    asking.communicate()
    assert (asking.returncode, over.left()) == (0, [])
    events = shell.answer("event", "list", "--stream", f"team-run/{over.run['id']}")["items"]
    assert [each["kind"] for each in events].count("purged") == 1


def test_a_work_that_came_from_another_run_is_exported_with_all_of_its_past(over: Over) -> None:
    shell = over.shell
    runs = [shell.answer("team-run", "create", "core")["id"] for _ in range(2)]
    wanted = ("--title", "write", "--completion-criteria", "it writes", "--context", SAID)
    work = shell.answer("work", "create", "--team-run-id", runs[0], *wanted)
    moved = ("--expected-version", "1", "--successor-team-run-id", runs[1])
    shell.firm("work", "retarget", "--work-id", work["id"], *moved)
    shell.firm("team-run", "cancel", runs[1], "--expected-version", "1", "--reason", "no use")
    shell.firm("node", "purge", "--run", runs[1], "--to", "other.json")
    exported = json.loads((shell.cwd / "other.json").read_text("utf-8"))
    past = [each for each in exported["events"] if each["stream"] == f"work/{work['id']}"]
    assert [each["version"] for each in past] == [1, 2, 3]
    assert past[0]["body"]["context"] == SAID
