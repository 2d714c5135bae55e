"""A managed Host and a member as real processes with a real daemon: built, checked, sent back, checked, accepted.

Nobody types anything between the assignment and the acceptance.
"""

from __future__ import annotations

import json
import os
import select
import shlex
import signal
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import attrs
import pytest

from tests.support.bound import Crew, Operator, OwnShell, crew, own_shell
from tests.support.daemon import Daemon, Home, Log
from tests.support.repos import Repo, repo
from tests.support.worker import COMMAND, Worker, receipt

#: Passes from the second attempt on.
TEST = 'read n < made; echo "attempt $n is looked at"; test "$n" -ge 2\n'
BUILD = '#!/bin/sh\necho "$FIRM_ATTEMPT" > made\n'


@attrs.frozen
class Bench:
    """Ann hosts and Bob builds, each served by a worker in a worktree of its own. Ann's is a job of her own shell, in
    which a person gives Works away.
    """

    daemon: Daemon
    operator: Operator
    crew: Crew
    repo: Repo
    shell: OwnShell
    folder: Path

    @property
    def data(self) -> dict[str, str]:
        return {"XDG_DATA_HOME": str(self.folder / "data")}

    def give(
        self, to: str, title: str, context: str, *checks: str, criteria: str = "it works", verifier: str = ""
    ) -> str:
        """A Work of that member's; its id."""
        members = self.members()
        made = self.operator.ask(
            "work.create",
            team_run_id=self.crew.run,
            title=title,
            context=context,
            completion_criteria=criteria,
            checks=list(checks),
            claim_mode="host_assign",
            verifier_id=members.get(verifier),
        )
        self.shell.answer(f"firm work assign {made['id']} --expected-version 1 --membership-id {members[to]}")
        return str(made["id"])

    def members(self) -> dict[str, str]:
        """The memberships of those in the run, by their names."""
        shown = self.operator.ask("team-run.show", team_run_id=self.crew.run)
        return {each["name"]: each["member_run"]["membership_id"] for each in shown["members"]}

    def until(self, work: str, what: str) -> dict[str, Any]:
        self.operator.until(f"work:{work}.{what}")
        return self.operator.ask("work.show", work_id=work)

    def told(self, work: str) -> list[tuple[str, str]]:
        """What became of a Work, and who did it."""
        events = self.operator.ask("event.list", stream=f"work/{work}")["items"]
        return [(each["kind"], each["actor"]) for each in events]


@pytest.fixture
def bench(home: Home, tmp_path: Path) -> Generator[Bench]:
    data = {"XDG_DATA_HOME": str(tmp_path / "data")}
    daemon = home.start(env=data)
    operator = Operator(daemon.client())
    project = repo(tmp_path / "project")
    project.commit("test.sh", TEST)
    people = crew(operator, project.root)
    for name in ("ann", "bob"):
        project.git("worktree", "add", "-q", "-b", f"firm/crew/{name}", str(tmp_path / name))
    with own_shell(home) as shell, ExitStack() as stack:
        stack.callback(operator.client.sock.close)
        operator.ask("session.bind", agent_member_id="ann", pid=shell.pid)
        env = {"FIRM_SOCKET": str(daemon.socket), **data}
        worker = Worker(home, tmp_path / "bob", env, tmp_path / "bob.shown")
        stack.callback(worker.close)
        operator.ask("session.bind", agent_member_id="bob", pid=worker.process.pid)
        worker.begin()
        worker.said.until("serves bob")
        yield Bench(daemon, operator, people, project, shell, tmp_path)


@contextmanager
def host(bench: Bench) -> Generator[Log]:
    """Ann's worker; what it says."""
    pipe, env = bench.folder / "said", {"FIRM_SOCKET": str(bench.daemon.socket), **bench.data}
    os.mkfifo(pipe)
    words = shlex.join(["env", *(f"{name}={value}" for name, value in env.items()), *COMMAND])
    typed = bench.shell.types(f"(cd {bench.folder / 'ann'} && exec {words} > /dev/null 2> {pipe}) & echo $!")
    fd = os.pidfd_open(int(typed.out))
    log = Log(pipe.open("rb"))
    try:
        log.until("judges, as the Host")
        yield log
    finally:
        signal.pidfd_send_signal(fd, signal.SIGKILL)
        os.close(fd)
        log.finish()


def test_what_fails_its_check_is_sent_back_and_accepted_once_it_passes(bench: Bench) -> None:
    """By the Host, never by who did it; the Host's own Work is done by the same process, and waits for a peer."""
    with host(bench) as said:
        own = bench.give("ann", "mine", "#!/bin/sh\necho mine > mine\n")
        bench.until(own, "phase=review")
        work = bench.give("bob", "build it", BUILD, "unit=sh test.sh")
        shown = bench.until(work, "phase=closed")
        back = said.until("sent back")
        assert bench.until(own, "phase=review")["work"]["version"] == 4
        bench.shell.answer(f"firm work cancel {own} --expected-version 4 --reason enough")
        said.until("every Work of the run is closed: 1 accepted, 1 cancelled, 0 failed")
    ann, bob = (f"agent/{bench.crew.agents[name]}" for name in ("ann", "bob"))
    assert bench.told(work)[2:] == [
        ("started", bob),
        ("submitted", bob),
        ("changes requested", ann),
        ("started", bob),
        ("submitted", bob),
        ("accepted", ann),
    ]
    assert shown["work"]["resolution"] == "accepted"
    revision = receipt(shown)["candidate_revision"]
    assert bench.repo.git("show", f"{revision}:made") == "2"
    tree = bench.repo.git("rev-parse", f"{revision}^{{tree}}")
    assert [(each["name"], each["passed"], each["snapshot"]) for each in shown["checks"]] == [("unit", True, tree)]
    assert "check unit failed" in back
    assert "attempt 1 is looked at" in back
    assert len(bench.repo.worktrees()) == 3, "nothing of a check is left"


def test_what_never_passes_goes_on_hold_for_a_person(bench: Bench) -> None:
    with host(bench):
        work = bench.give("bob", "build it", BUILD, "unit=false", "quick=limit=5 true")
        shown = bench.until(work, "condition=on_hold")
    assert [each["fence"] for each in shown["bindings"]] == [1, 2, 3]
    assert shown["work"]["phase"] == "review"
    assert shown["work"]["reason"].startswith("on hold after 3 attempts")
    assert "check unit failed" in shown["work"]["reason"]
    assert "quick" not in shown["work"]["reason"]


def test_without_a_check_or_a_verifier_nobodys_word_is_enough(bench: Bench) -> None:
    """It waits for a person, also where its program says that all is met; what it says is not met goes back."""
    work = bench.give("bob", "build it", '#!/bin/sh\necho "$FIRM_ATTEMPT" > made\ntest "$FIRM_ATTEMPT" = 2\n')
    bench.until(work, "phase=review")
    with host(bench) as said:
        assert "not met: it works" in said.until("sent back")
        assert work in said.until("nobody but its member says that it is done")
        shown = bench.until(work, "phase=review")
    assert (shown["work"]["phase"], len(shown["receipts"])) == ("review", 2)
    assert json.loads(shown["receipts"][0]["body"])["outcome"] == "failed"


def test_a_check_that_a_killed_daemon_ran_is_ended_and_run_again_by_the_next(bench: Bench) -> None:
    began, go = bench.folder / "began", bench.folder / "go"
    os.mkfifo(began)
    os.mkfifo(go)
    with host(bench):
        work = bench.give("bob", "build it", BUILD, f"unit=sh -c 'echo $$ > {began}; read _ < {go}'")
        fd = os.pidfd_open(int(began.read_text()))
        bench.daemon.kill()
        operator = Operator(bench.daemon.home.start(env=bench.data).client())
        assert began.read_text(), "the second begins"
        assert select.select([fd], [], [], 0)[0], "the first has ended before"
        os.close(fd)
        go.write_text("go\n")
        operator.until(f"work:{work}.phase=closed")
        assert operator.ask("work.show", work_id=work)["work"]["resolution"] == "accepted"
        operator.client.sock.close()
    assert len(bench.repo.worktrees()) == 3, "nothing of a check is left"


def test_a_log_that_no_result_names_goes_with_the_next_daemon_and_every_other_stays(bench: Bench) -> None:
    """Of this daemon alone: another has a folder of its own."""
    with host(bench):
        work = bench.give("bob", "build it", BUILD, "unit=sh test.sh")
        bench.until(work, "phase=closed")
    logs = bench.folder / "data" / "firm" / "logs" / "checks"
    (own,) = logs.iterdir()
    named = {path.name for path in own.iterdir()}
    assert len(named) == 2, "one that failed, one that passed"
    for stray in (own / f"{'0' * 64}.log", logs / "other" / f"{'1' * 64}.log"):
        stray.parent.mkdir(exist_ok=True)
        stray.write_text("nobody's")
    bench.daemon.kill()
    daemon = bench.daemon.home.start(env=bench.data)
    daemon.log.until("removed logs of checks that nothing names any more: 1")
    assert {path.name for path in own.iterdir()} == named
    assert [path.name for path in (logs / "other").iterdir()] == [f"{'1' * 64}.log"]


def asked(bench: Bench, shell: OwnShell) -> dict[str, Any]:
    """What the member of that shell is asked to verify, once it is: it waits for the run, as it can."""
    while True:
        seq = bench.operator.client.ask("team-run.show", {"team_run_id": bench.crew.run})["seq"]
        if items := shell.answer("firm member attention list")["items"]:
            (item,) = items
            return dict(item)
        shell.answer(f"firm member wait 'team-run:{bench.crew.run}.seq>{seq}'")


def test_a_verdict_is_waited_for_and_what_does_not_hold_is_sent_back(bench: Bench, home: Home) -> None:
    """The verifier types what it is told to, in a shell of its own, once the check has passed."""
    with own_shell(home) as cid, host(bench) as said:
        bench.operator.ask("session.bind", agent_member_id="cid", pid=cid.pid)
        work = bench.give("bob", "build it", BUILD, "unit=test -e made", verifier="cid")
        for outcome in ("failed", "passed"):
            item = asked(bench, cid)
            command, _ = (
                item["lifted_by"].removeprefix("look at exactly that, then say what you found: ").split(", or ")
            )
            said.until("waits for the verdict of cid")
            typed = command.replace("passed --reason TEXT", f"{outcome} --reason '{outcome} by hand'")
            assert cid.types(f"{typed} --evidence-ref 'make exit 0'").status == 0
            if outcome == "failed":
                assert "verified by cid, who says that it does not hold: failed by hand" in said.until("sent back")
        shown = bench.until(work, "phase=closed")
        assert cid.answer("firm member attention list")["items"] == []
    ann, bob, verifier = (f"agent/{bench.crew.agents[name]}" for name in ("ann", "bob", "cid"))
    assert bench.told(work)[2:] == [
        ("started", bob),
        ("submitted", bob),
        ("verified: failed", verifier),
        ("changes requested", ann),
        ("started", bob),
        ("submitted", bob),
        ("verified: passed", verifier),
        ("accepted", ann),
    ]
    assert (shown["work"]["resolution"], shown["verifier"]) == ("accepted", "cid")
    assert shown["verdict"]["snapshot"] == shown["checks"][0]["snapshot"]
    assert shown["verdict"]["revision"] == receipt(shown)["candidate_revision"]
    assert (shown["verdict"]["reason"], shown["verdict"]["evidence"]) == ("passed by hand", ["make exit 0"])
