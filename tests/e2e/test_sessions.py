"""``firm session bind`` with a real daemon and real shells: a person's own shell is a member, with all its tree."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from typing import Any

import attrs
import pytest

from tests.support.bound import Crew, Operator, OwnShell, crew, own_shell
from tests.support.daemon import Daemon, Home
from tests.support.spoil import execute, mend, spoil


@attrs.define
class Stage:
    """A daemon, the person at it, a run, and Bob's shell that was bound by the person."""

    home: Home
    daemon: Daemon
    operator: Operator
    crew: Crew
    shell: OwnShell
    session: dict[str, Any]

    def bind(self, who: str, shell: OwnShell) -> dict[str, Any]:
        return self.operator.ask("session.bind", agent_member_id=who, pid=shell.pid)

    def shown(self) -> dict[str, Any]:
        session: dict[str, Any] = self.operator.ask("session.show", session_id=self.session["id"])["session"]
        return session

    def ended(self) -> str:
        """Why the session ended, once it has."""
        self.operator.until(f"session:{self.session['id']}.state=closed")
        events = self.operator.ask("event.list", stream=f"session/{self.session['id']}")["items"]
        why: str = events[-1]["kind"]
        return why

    def restarts(self) -> None:
        """A daemon begins after the former one was killed."""
        self.daemon = self.home.start()
        self.operator.client.sock.close()
        self.operator = Operator(self.daemon.client())

    def working(self) -> str:
        """Bob claims and starts a Work in his shell; its id."""
        made = self.operator.ask(
            "work.create", team_run_id=self.crew.run, title="build it", completion_criteria="it works"
        )
        self.shell.answer(f"firm work claim {made['id']} --expected-version 1")
        self.operator.attempt(made["id"], self.crew.run)
        started = self.shell.answer(f"firm work start --work-id {made['id']} --expected-version 2")
        assert (started["phase"], started["version"]) == ("active", 3)
        work: str = made["id"]
        return work


@pytest.fixture
def stage(home: Home, daemon: Daemon, tmp_path: Path) -> Generator[Stage]:
    operator = Operator(daemon.client())
    people = crew(operator, tmp_path)
    with own_shell(home) as shell:
        session = operator.ask("session.bind", agent_member_id="bob", pid=shell.pid)
        made = Stage(home, daemon, operator, people, shell, session)
        yield made
        made.operator.client.sock.close()


def test_the_whole_tree_of_a_bound_shell_is_that_member(stage: Stage) -> None:
    """Whatever key it shows, and however deep below; another shell of the same person is the operator."""
    bob = f"member agent/{stage.crew.agents['bob']}"
    for below in (1, 2, 3):
        assert stage.shell.who(below=below) == bob
    with own_shell(stage.home) as other:
        assert other.who() == "operator operator"


def test_what_leaves_the_tree_is_not_that_member(stage: Stage) -> None:
    """A double fork and a session of its own leave it: the key then makes it the operator. Only confinement is exact
    (design 1.4); for a shell like this one the tree stops mistakes, not malice, and ``firm node status`` says so.
    """
    assert stage.shell.who_left() == "operator operator"
    boundary = stage.operator.ask("node.status")["boundary"]
    assert "stops mistakes, not malice" in boundary


def test_the_operations_of_the_operator_do_not_exist_there(stage: Stage) -> None:
    own = "firm session bind --agent-member-id cid --pid $$"
    for line in ("firm agent create dan", own, f"firm session unbind {stage.session['id']}"):
        refusal = stage.shell.refusal(line)
        assert refusal["code"] == "NOT_AUTHORIZED"
        assert refusal["lifted_by"].endswith("this connection is member")
    assert stage.shown()["state"] == "idle"
    assert {each["id"] for each in stage.shell.answer("firm team-run list")["items"]} == {stage.crew.run}


def test_a_member_works_in_its_own_shell(stage: Stage) -> None:
    """Claims, is delivered to by the supervisor, starts, submits: without saying who it is."""
    work = stage.working()
    done = stage.shell.answer(
        f"firm work submit --work-id {work} --expected-version 3 --result-summary done --report-only"
    )
    assert done["phase"] == "review"
    attempt = stage.operator.attempt(work, stage.crew.run)
    assert (attempt["custody"], attempt["session_id"]) == ("completed", stage.session["id"])


def test_a_submission_says_what_the_workspace_decided_and_can_be_asked_again(stage: Stage, tmp_path: Path) -> None:
    """There is no repository where Bob stands: only a report. The same key gets the first answer."""
    work = stage.working()
    stage.shell.types(f"export GIT_CEILING_DIRECTORIES={tmp_path.parent}; cd {tmp_path}")
    line = f"firm work submit {work} --expected-version 3 --result-summary done --idempotency-key k --json"
    first, again = stage.shell.types(line).json, stage.shell.types(line).json
    assert first["answer"]["phase"] == "review"
    assert (first["chosen"], first["replayed"]) == ({"report_only": True}, False)
    assert again == {**first, "replayed": True}


def test_a_shell_that_ends_ends_its_session(stage: Stage) -> None:
    """What it held is orphaned, its Work stays its own, and the Host is told once."""
    work = stage.working()
    stage.shell.kill()
    assert stage.ended() == "ended: its process ended"
    assert stage.shown()["process"] == "stopped"
    shown = stage.operator.ask("work.show", work_id=work)
    assert (shown["work"]["phase"], shown["work"]["version"]) == ("active", 3)
    (binding,) = shown["bindings"]
    assert (binding["custody"], binding["reason"]) == ("orphaned_unverified", "its process ended")
    told = stage.operator.ask("attention.list", team_run_id=stage.crew.run)["items"]
    assert [(each["kind"], each["about"]) for each in told] == [("orphaned", f"work/{work}")]


def test_a_process_that_is_unbound_is_the_operator_again(stage: Stage) -> None:
    stage.operator.ask("session.unbind", session_id=stage.session["id"])
    assert stage.shell.who() == "operator operator"
    again = stage.bind("cid", stage.shell)
    assert again["id"] != stage.session["id"]
    assert stage.shell.who() == f"member agent/{stage.crew.agents['cid']}"


def test_a_bound_shell_is_the_member_again_after_the_daemon_was_killed(stage: Stage) -> None:
    """The process has not changed; and the supervisor takes the run again, as the next generation."""
    work = stage.working()
    stage.operator.supervised(stage.crew.run, 1)
    stage.daemon.kill()
    stage.restarts()
    stage.operator.supervised(stage.crew.run, 2)
    assert stage.shell.who() == f"member agent/{stage.crew.agents['bob']}"
    beat = stage.shell.answer(f"firm work heartbeat --work-id {work}")
    assert (beat["custody"], beat["session_id"]) == ("claimed", stage.session["id"])
    assert stage.shown()["version"] == 1
    stage.shell.kill()
    assert stage.ended() == "ended: its process ended"


def test_a_shell_that_ended_while_no_daemon_ran_is_closed_as_ended(stage: Stage) -> None:
    work = stage.working()
    stage.daemon.kill()
    stage.shell.kill()
    stage.restarts()
    assert stage.ended() == "ended: its process had ended"
    assert stage.operator.attempt(work, stage.crew.run)["custody"] == "orphaned_unverified"


def test_a_process_of_another_start_of_the_machine_is_nobody(stage: Stage) -> None:
    stage.daemon.kill()
    execute(stage.home.database, "UPDATE sessions SET boot_id = 'of before'")
    stage.restarts()
    assert stage.ended() == "ended: the machine was started again"
    assert stage.shell.who() == "operator operator"


def test_another_process_with_the_same_pid_is_nobody(stage: Stage) -> None:
    """The pid was given out again: the start ticks say so."""
    stage.daemon.kill()
    execute(stage.home.database, "UPDATE sessions SET start_ticks = start_ticks - 1")
    stage.restarts()
    assert stage.shell.who() == "operator operator"
    assert stage.ended() == "ended: its process had ended"


def test_a_session_that_cannot_be_read_makes_nobody_the_operator(stage: Stage) -> None:
    """Its own tree is nobody until the row is repaired; everybody else goes on, also over a restart."""
    was = spoil(stage.home.database, "sessions", stage.session["id"])
    stage.daemon.expect("quarantined sessions/")
    assert stage.shell.who() == "NOT_AUTHORIZED"
    with own_shell(stage.home) as other:
        assert other.who() == "operator operator"
    assert stage.daemon.stop() == 0  # a clean end: after a crash the whole file is looked at, and found damaged
    stage.restarts()
    stage.daemon.expect("quarantined sessions/")
    stage.operator.supervised(stage.crew.run, 2)
    assert stage.shell.who() == "NOT_AUTHORIZED"
    mend(stage.home.database, "sessions", stage.session["id"], was)
    assert stage.shell.who() == f"member agent/{stage.crew.agents['bob']}"
