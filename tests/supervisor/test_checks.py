"""Named checks as real processes, on commits of a real repository: what they get, what they leave, how they end."""

from __future__ import annotations

import hashlib
import os
import select
from pathlib import Path

import attrs
import pytest
import trio

from client import check_logs
from client.protocol.attempt import RecordCheck
from client.protocol.board import DueCheck, DueList
from client.protocol.ids import Fence, ReceiptId, SupGen, WorkId
from client.protocol.operation import R, Request
from client.protocol.refusals import Code, Refusal
from supervisor.checks import MARK, Checks, NotRun, Ran, check
from supervisor.decide import Check, decide
from tests.support.repos import Repo, repo
from tests.support.wire import PATIENCE

ENVIRONMENT = {
    "PATH": os.environ["PATH"],
    "HOME": "/",
    "LANG": "C.UTF-8",
    "TZ": "UTC",
    "FIRM_CAPABILITY": "x",
    "A": "b",
}


@attrs.frozen
class Bench:
    repo: Repo
    folder: Path
    checks: Checks

    def due(self, command: str, *, revision: str | None = None, root: Path | None = None) -> DueCheck:
        return DueCheck(
            work_id=WorkId("w1"),
            receipt_id=ReceiptId("rr1"),
            fence=Fence(1),
            line=f"unit={command}",
            revision=self.repo.git("rev-parse", "HEAD") if revision is None else revision,
            root=str(root or self.repo.root),
        )

    async def said(self, due: DueCheck) -> tuple[Ran, str]:
        """What it said and the whole log, once it is certain that nothing else is left of it."""
        before = self.repo.state()
        ran = await self.checks.run(due)
        assert isinstance(ran, Ran), ran
        assert self.repo.state() == before
        assert self.left() == []
        return ran, self.log(ran)

    def log(self, ran: Ran) -> str:
        found = (self.folder / "logs" / f"{ran.log_digest}.log").read_bytes()
        assert hashlib.sha256(found).hexdigest() == ran.log_digest
        return found.decode()

    def left(self) -> list[Path]:
        scratch = self.folder / "scratch"
        return list(scratch.iterdir()) if scratch.exists() else []

    def pipe(self, name: str) -> Path:
        os.mkfifo(self.folder / name)
        return self.folder / name


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    checks = Checks(tmp_path / "scratch", tmp_path / "logs", ENVIRONMENT)
    return Bench(repo(tmp_path / "project"), tmp_path, checks)


async def line_of(pipe: Path) -> str:
    """What a check wrote into a pipe, once it has."""
    with trio.fail_after(PATIENCE):
        return (await trio.Path(pipe).read_text()).strip()


def gone(pid: int) -> bool:
    try:
        fd = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([fd], [], [], PATIENCE)[0])
    finally:
        os.close(fd)


async def test_it_runs_on_exactly_the_commit_that_was_submitted(bench: Bench) -> None:
    """Neither on what was committed later, nor on what lies about in no commit."""
    first = bench.repo.commit("file", "one\n")
    bench.repo.commit("file", "two\n")
    (bench.repo.root / "file").write_text("three\n")
    ran, log = await bench.said(bench.due("cat file", revision=first))
    assert ran == Ran(
        passed=True,
        snapshot=bench.repo.git("rev-parse", f"{first}^{{tree}}"),
        log_digest=hashlib.sha256(b"one\n[firm] exit status 0\n").hexdigest(),
    )
    assert log == "one\n[firm] exit status 0\n"
    assert check_logs.end(bench.folder / "logs", ran.log_digest) == log.encode()


async def test_a_status_that_is_not_zero_fails(bench: Bench) -> None:
    ran, log = await bench.said(bench.due("sh -c 'printf broken; exit 3'"))
    assert (ran.passed, log) == (False, "broken\n[firm] exit status 3\n")


async def test_a_program_that_is_not_there_fails_with_the_reason(bench: Bench) -> None:
    ran, log = await bench.said(bench.due("./nowhere"))
    assert not ran.passed
    assert log.startswith("[firm] not run: ")
    assert "./nowhere" in log


async def test_its_words_go_to_no_shell(bench: Bench) -> None:
    _, log = await bench.said(bench.due("echo $HOME; touch '*' > x && y"))
    assert log.startswith("$HOME; touch * > x && y\n")


async def test_its_environment_is_made_from_nothing(bench: Bench) -> None:
    _, log = await bench.said(bench.due("env"))
    found = dict(line.split("=", 1) for line in log.splitlines()[:-1])
    assert found.pop(MARK).startswith(f"{bench.folder}/scratch/")
    assert found == {name: ENVIRONMENT[name] for name in ("HOME", "LANG", "PATH", "TZ")}


async def test_it_has_a_session_of_its_own_and_nothing_to_read(bench: Bench) -> None:
    _, log = await bench.said(bench.due("sh -c 'readlink /proc/self/fd/0; ps -o sid= -p $$; echo $$'"))
    null, session, pid, _ = log.splitlines()
    assert (null, session.strip()) == ("/dev/null", pid)


async def test_a_project_within_a_repository_is_checked_in_its_folder(bench: Bench) -> None:
    bench.repo.commit("deep/below/here", "text\n")
    ran, log = await bench.said(bench.due("ls", root=bench.repo.root / "deep" / "below"))
    assert (ran.passed, log.splitlines()[0]) == (True, "here")
    former = bench.repo.git("rev-parse", "HEAD~1")
    ran, log = await bench.said(bench.due("ls", revision=former, root=bench.repo.root / "deep" / "below"))
    assert not ran.passed
    assert log == "[firm] not run: the commit has no folder deep/below/\n"


async def test_what_it_changes_is_thrown_away_and_no_hook_runs(bench: Bench) -> None:
    """The worktree of the member stays as it is, and so do all branches."""
    bench.repo.hook("post-checkout", bench.folder / "told")
    ran, _ = await bench.said(bench.due("sh -c 'rm file; mkdir a; touch a/b; chmod 0 a'"))
    assert ran.passed
    assert bench.repo.git("status", "--porcelain") == ""
    assert not (bench.folder / "told").exists()


@pytest.mark.parametrize(
    ("revision", "said"),
    [
        ("", "[firm] not run: the submission names no commit that it could run on\n"),
        ("0" * 40, "[firm] not run: there is no commit " + "0" * 40),
        ("HEAD", "[firm] not run: there is no commit HEAD"),
    ],
)
async def test_a_submission_without_a_commit_that_exists_fails(bench: Bench, revision: str, said: str) -> None:
    ran, log = await bench.said(bench.due("true", revision=revision))
    assert (ran.passed, ran.snapshot) == (False, "")
    assert log.startswith(said)


async def test_a_line_that_cannot_be_split_fails(bench: Bench) -> None:
    """It cannot be written into a Work any more, and may stand in one that is older."""
    ran, log = await bench.said(bench.due("sh 'a"))
    assert not ran.passed
    assert "cannot be split into words" in log


async def test_what_this_node_cannot_do_says_nothing_about_the_submission(bench: Bench) -> None:
    assert isinstance(await bench.checks.run(bench.due("true", root=bench.folder / "nowhere")), NotRun)
    (bench.folder / "file").write_text("no folder")
    checks = Checks(bench.folder / "file", bench.folder / "logs", ENVIRONMENT)
    assert isinstance(await checks.run(bench.due("true")), NotRun)


async def test_a_log_is_cut_at_its_limit_and_says_so(bench: Bench, tmp_path: Path) -> None:
    checks = Checks(tmp_path / "scratch", tmp_path / "logs", ENVIRONMENT, most_log=1000)
    found = await checks.run(bench.due("sh -c 'head -c 200000 /dev/zero | tr \"\\\\0\" x; exit 1'"))
    assert isinstance(found, Ran)
    assert bench.log(found) == "x" * 1000 + "\n[firm] exit status 1; of its output the first 1000 bytes are kept\n"


async def test_its_limit_ends_it_with_everything_that_it_started(bench: Bench) -> None:
    """Also what left its process group and its session."""
    pipe = bench.pipe("pids")
    script = f'sleep 1000 & one=$!; setsid sleep 1000 & echo "$one $!" > {pipe}; wait'
    pids: list[int] = []

    async def read() -> None:
        pids.extend(map(int, (await line_of(pipe)).split()))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(read)
        ran, log = await bench.said(bench.due(f"limit=1 sh -c '{script}'"))
    assert (ran.passed, log) == (False, "[firm] ended: it took longer than its limit of 1 seconds\n")
    assert len(pids) == 2
    assert all(map(gone, pids))


async def test_what_it_leaves_running_is_ended_when_it_ends(bench: Bench) -> None:
    ran, log = await bench.said(bench.due("sh -c 'setsid sleep 1000 > /dev/null 2>&1 & echo $!'"))
    assert ran.passed
    assert gone(int(log.splitlines()[0]))


async def test_cancelled_it_ends_with_everything_and_leaves_nothing(bench: Bench) -> None:
    """As when a newer supervisor takes the run."""
    pipe, before = bench.pipe("pids"), bench.repo.state()
    due = bench.due(f"sh -c 'setsid sleep 1000 & echo $! > {pipe}; wait'")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(bench.checks.run, due)
        pid = int(await line_of(pipe))
        nursery.cancel_scope.cancel()
    assert gone(pid)
    assert (bench.left(), bench.repo.state()) == ([], before)
    assert not (bench.folder / "logs").exists()


async def test_two_run_at_the_same_time_and_the_third_waits(bench: Bench) -> None:
    began, go = bench.pipe("began"), bench.pipe("go")
    third = trio.Event()

    async def run_third() -> None:
        assert isinstance(await bench.checks.run(bench.due("true")), Ran)
        third.set()

    async with trio.open_nursery() as nursery:
        for _ in range(2):
            nursery.start_soon(bench.checks.run, bench.due(f"sh -c 'echo > {began}; read _ < {go}'"))
            await line_of(began)
        nursery.start_soon(run_third)
        with trio.move_on_after(1):
            await third.wait()
        assert not third.is_set()
        await trio.Path(go).write_text("\n\n")
        with trio.fail_after(PATIENCE):
            await third.wait()


async def test_what_a_daemon_that_died_left_behind_is_ended_and_thrown_away(bench: Bench) -> None:
    """Before the first check of the next one; nothing of another daemon's is touched."""
    left = bench.folder / "scratch" / "snapshot-1" / "checkout"
    left.parent.mkdir(parents=True)
    before = bench.repo.state()
    bench.repo.git("worktree", "add", "-q", "--detach", str(left))
    processes = [await sleeper(f"{bench.folder}/{scratch}/x") for scratch in ("scratch", "scratch2")]
    try:
        assert isinstance(await bench.checks.run(bench.due("true")), Ran)
        assert gone(processes[0].pid)
        assert processes[1].poll() is None
    finally:
        for each in processes:
            each.kill()
            with trio.CancelScope(shield=True, deadline=trio.current_time() + 10):
                await each.wait()
    assert (bench.left(), bench.repo.state()) == ([], before)


@attrs.define
class Refusing:
    """A node that refuses everything, and counts it."""

    code: Code
    asked: int = 0

    async def ask(self, request: Request[R], *, key: str = "") -> R | Refusal:
        assert isinstance(request, RecordCheck), key
        self.asked += 1
        return Refusal(code=self.code, about="store", lifted_by="mend it")


@pytest.mark.parametrize("code", [Code.ROW_QUARANTINED, Code.STORE_FULL])
async def test_a_result_that_is_not_taken_does_not_run_its_check_again_at_once(bench: Bench, code: Code) -> None:
    """While it waits it counts as busy."""
    node = Refusing(code)
    with trio.move_on_after(1) as scope:
        await check(node, bench.checks, bench.due("true"), 1)
    assert (scope.cancelled_caught, node.asked) == (True, 1)


async def sleeper(mark: str) -> trio.Process:
    return await trio.lowlevel.open_process(["sleep", "1000"], env={**os.environ, MARK: mark})


def seen(*checks: DueCheck) -> DueList:
    return DueList(items=[], seats=[], controls=[], sup_gen=SupGen(1), seq=1, checks=list(checks))


@pytest.fixture
def three(bench: Bench) -> list[DueCheck]:
    one = bench.due("a")
    return [one, attrs.evolve(one, line="lint=a"), attrs.evolve(one, receipt_id=ReceiptId("rr2"))]


def test_a_supervisor_begins_each_check_of_each_submission_once(three: list[DueCheck]) -> None:
    actions = decide(seen(*three), profiles={}, busy=(), failures={})
    assert actions == [Check(due) for due in three]
    assert len({each.busy for each in actions}) == 3
    assert decide(seen(*three), profiles={}, busy={actions[0].busy}, failures={}) == actions[1:]
