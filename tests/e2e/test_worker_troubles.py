"""What can happen to a worker while a program runs: the daemon is killed, somebody interrupts, the attempt is taken."""

from __future__ import annotations

import os
import select
import shlex
import signal
import subprocess
from pathlib import Path

import pytest

from tests.support.bound import own_shell
from tests.support.spoil import execute
from tests.support.wire import PATIENCE
from tests.support.worker import COMMAND, Bench, gate, receipt


def _running(bench: Bench, script: str) -> tuple[str, Path, int]:
    """A Work whose program has begun: its id, the gate that it waits at, and its pid."""
    path, waits = gate(bench.temporary)
    pids = bench.temporary / "pids"
    os.mkfifo(pids)
    work = bench.give(f"#!/bin/bash\n{script}\necho $$ > '{pids}'\n{waits}\necho done > made\n")
    return work, path, int(pids.read_text())


def _ended(fd: int) -> None:
    assert select.select([fd], [], [], PATIENCE)[0], "the program goes on"
    os.close(fd)


def test_a_daemon_that_is_killed_and_comes_back_gets_one_submission(bench: Bench) -> None:
    """The program goes on meanwhile; nothing is asked twice and nothing is lost."""
    bench.works()
    work, path, _ = _running(bench, "")
    bench.daemon.kill()
    bench.said.until("the daemon went away")
    path.write_text("go\n")
    bench.said.until("attempt 1: exit status 0")
    bench.restarts()
    shown = bench.until(work, "phase=review")
    assert [(each["fence"], each["custody"]) for each in shown["bindings"]] == [(1, "completed")]
    assert len(shown["receipts"]) == 1
    assert receipt(shown)["candidate_revision"] == bench.repo.git("rev-parse", "firm/crew/bob")
    assert bench.repo.git("rev-list", "--count", "main..firm/crew/bob") == "1"
    other = bench.give("#!/bin/true", title="afterwards")
    bench.until(other, "phase=review")


def test_an_interrupt_ends_the_program_and_blocks_its_work(bench: Bench) -> None:
    """Not the worker. Resumed, the program runs again, in the same attempt."""
    worker = bench.works()
    worker.signal(signal.SIGINT)
    bench.said.until("nothing runs that could be interrupted")
    work, path, pid = _running(bench, "trap 'echo cleaned; exit 0' TERM")
    fd = os.pidfd_open(pid)
    worker.signal(signal.SIGINT)
    shown = bench.until(work, "condition=blocked")
    _ended(fd)
    assert "interrupted" in shown["work"]["reason"]
    assert worker.shown.read_bytes() == b"cleaned\n"
    bench.host(f"firm work update {work} --expected-version 4 --context '#!/bin/true'")
    bench.host(f"firm work resume {work} --expected-version 5 --resolution go")
    assert receipt(bench.until(work, "phase=review"))["fence"] == 1
    path.unlink()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_that_ends_the_worker_ends_its_program(bench: Bench, number: signal.Signals) -> None:
    worker = bench.works()
    work, _, pid = _running(bench, "")
    fd = os.pidfd_open(pid)
    worker.signal(number)
    assert worker.wait() == 128 + number
    _ended(fd)
    bench.operator.until(f"team-run:{bench.crew.run}.seq>0")
    assert bench.shown(work)["work"]["phase"] == "active"


def test_an_attempt_that_was_taken_away_submits_nothing(bench: Bench) -> None:
    """The Host cancels the Work while its program runs: the program is ended, and the next Work begins."""
    bench.works()
    work, _, pid = _running(bench, "")
    fd = os.pidfd_open(pid)
    bench.host(f"firm work cancel {work} --expected-version 3 --reason over")
    bench.said.until("it is not ours any more")
    _ended(fd)
    assert bench.shown(work)["receipts"] == []
    bench.until(bench.give("#!/bin/true", title="next"), "phase=review")


def test_a_hold_lets_the_program_end_and_its_evidence_wait(bench: Bench) -> None:
    bench.works()
    work, path, _ = _running(bench, "")
    bench.host(f"firm work hold {work} --expected-version 3 --reason wait")
    path.write_text("go\n")
    bench.said.until("WORK_ON_HOLD")
    bench.host(f"firm work unhold {work} --expected-version 4")
    shown = bench.until(work, "phase=review")
    assert (len(shown["receipts"]), receipt(shown)["work_version"]) == (1, 5)


def test_a_work_that_changes_meanwhile_is_answered_as_it_is_now(bench: Bench) -> None:
    bench.works()
    work, path, _ = _running(bench, "")
    bench.host(f"firm work update {work} --expected-version 3 --completion-criteria one")
    path.write_text("go\n")
    body = receipt(bench.until(work, "phase=review"))
    assert [each["criterion"] for each in body["criteria"]] == ["one"]


def test_a_program_that_submits_by_itself_is_not_disturbed(bench: Bench) -> None:
    firm = Path(COMMAND[0]).with_name("firm")
    line = f"{firm} work submit --expected-version $FIRM_WORK_VERSION --result-summary mine --report-only"
    bench.works()
    work, path, _ = _running(bench, line)
    path.write_text("go\n")
    bench.said.until("attempt 1: exit status 0")
    bench.said.until("it is review without this worker")
    assert [each["custody"] for each in bench.shown(work)["bindings"]] == ["completed"]
    assert receipt(bench.shown(work))["result_summary"] == "mine"


def test_a_worker_that_finds_a_work_started_runs_nothing_until_it_is_resumed(bench: Bench) -> None:
    """Another process of its session started it: nobody knows what was done, and the Host decides."""
    with own_shell(bench.home) as bob:
        bench.operator.ask("session.bind", agent_member_id="bob", pid=bob.pid)
        work = bench.give("#!/bin/sh\necho new > made\n")
        bench.operator.attempt(work, bench.crew.run)
        bob.answer(f"firm work start --work-id {work} --expected-version 2")
        line = f"cd {bench.folder}; XDG_DATA_HOME={bench.temporary} {shlex.join(COMMAND)} <&- >&- 2>&- & echo $!"
        pid = int(bob.types(line).out)
        shown = bench.until(work, "condition=blocked")
        assert "started before this worker" in shown["work"]["reason"]
        assert not (bench.folder / "made").exists()
        bench.host(f"firm work resume {work} --expected-version 4 --resolution looked")
        assert receipt(bench.until(work, "phase=review"))["report_only"] is False
        fd = os.pidfd_open(pid)
        os.kill(pid, signal.SIGTERM)
        _ended(fd)


def test_an_attempt_that_was_reviewed_and_begun_again_ends_the_old_program(bench: Bench) -> None:
    """Its lease was lost, its custody reviewed, and the same session gets the next fence: the old one says nothing."""
    bench.works()
    work, path, pid = _running(bench, "")
    fd = os.pidfd_open(pid)
    bench.host(f"firm work update {work} --expected-version 3 --context '#!/bin/true'")
    execute(bench.home.database, "UPDATE bindings SET custody = 'orphaned_unverified' WHERE work_id = ?", work)
    bench.operator.ask(
        "work.recover",
        work_id=work,
        expected_version=4,
        fence=1,
        finding="SIDE_EFFECTS_KEPT",
        responsibility="keep",
        reason="its lease was lost",
    )
    _ended(fd)
    bench.said.until("attempt 1: it is not ours any more")
    shown = bench.until(work, "phase=review")
    assert [(each["fence"], each["custody"]) for each in shown["bindings"]] == [(1, "handed_over"), (2, "completed")]
    assert [each["fence"] for each in shown["receipts"]] == [2]
    path.unlink()


def test_it_says_that_it_lives_three_times_a_lease(bench: Bench) -> None:
    """A heartbeat takes an attempt back whose lease was lost before."""
    worker = bench.waits()
    path, waits = gate(bench.temporary)
    work = bench.give(f"#!/bin/bash\n{waits}\n")
    attempt = bench.operator.attempt(work, bench.crew.run)
    lost = "UPDATE bindings SET custody = 'orphaned_unverified', lease_ms = 1500 WHERE id = ?"
    execute(bench.home.database, lost, attempt["id"])
    worker.begin()
    while bench.operator.attempt(work, bench.crew.run)["custody"] != "claimed":
        seq = bench.operator.client.ask("work.show", {"work_id": work})["seq"]
        bench.operator.until(f"team-run:{bench.crew.run}.seq>{seq}")
    (kind,) = [
        each["kind"]
        for each in bench.operator.ask("event.list", stream=f"binding/{attempt['id']}")["items"]
        if each["version"] == 2
    ]
    assert kind == "heartbeat of the same session"
    path.write_text("go\n")
    bench.until(work, "phase=review")


def test_much_output_is_streamed_as_it_is_and_not_kept_in_memory(bench: Bench) -> None:
    """96 MiB in a process that may have less than that beyond what it needs to begin with."""
    size = 96 * 1024 * 1024
    bench.works(command=["sh", "-c", rf"printf '\033]0;x\007\000\377'; head -c {size} /dev/zero"])
    work = bench.give("")
    bench.until(work, "phase=review")
    assert bench.worker is not None
    peak = Path(f"/proc/{bench.worker.process.pid}/status").read_text().split("VmHWM:")[1].split()[0]
    assert int(peak) < 96 * 1024
    log = bench.logs / work / "1-3.log"
    assert log.stat().st_size == bench.worker.shown.stat().st_size == size + 8
    with bench.worker.shown.open("rb") as shown:
        assert shown.read(9) == b"\x1b]0;x\x07\x00\xff\x00"


def test_a_process_that_is_no_session_is_told_so(bench: Bench) -> None:
    done = subprocess.run(
        COMMAND, env=bench.home.environment, cwd=bench.folder, capture_output=True, text=True, check=False
    )
    assert (done.returncode, "NOT_AUTHORIZED" in done.stderr) == (1, True)


def test_no_daemon_known_is_a_usage_error(bench: Bench) -> None:
    env = {**bench.home.environment, "FIRM_HOME": str(bench.temporary / "nowhere")}
    done = subprocess.run(COMMAND, env=env, cwd=bench.folder, capture_output=True, text=True, check=False)
    assert (done.returncode, "FIRM_SOCKET" in done.stderr) == (2, True)


def test_a_session_that_is_ended_ends_its_worker(bench: Bench) -> None:
    worker = bench.works()
    (session,) = [
        each
        for each in bench.operator.ask("session.list", team_run_id=bench.crew.run)["items"]
        if each["pid"] == worker.process.pid
    ]
    bench.operator.ask("session.unbind", session_id=session["id"])
    assert worker.wait() == 1
    worker.said.until("AGENT_SESSION_GENERATION_FENCED")
