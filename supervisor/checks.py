"""Named checks, run for the Host on exactly what was submitted.

Each runs in a throw-away checkout of the submitted commit, without a shell or a terminal, in an environment made from
nothing, for as long as its limit. Nothing is recorded before it has ended: what a crash interrupted is run again.
"""

from __future__ import annotations

import logging
import shutil
import uuid
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from pathlib import Path

import attrs
import psutil
import trio

from client import check_logs
from client.git import GitRefused, GitUnusable, commit_exists, git, must, one_line
from client.protocol.attempt import RecordCheck
from client.protocol.board import DueCheck
from client.protocol.checks import NamedCheck, named, read
from client.protocol.operation import Node
from client.protocol.refusals import ROWS, Refusal, Retry
from client.worker.program import Ended, NotStarted, Program, run
from providers.ending import end_all
from providers.port import Unreachable
from providers.process import Process, environment_of, process
from supervisor.snapshots import checked_out, snapshot

log = logging.getLogger(__name__)

#: Bytes of its output that are kept.
MOST_LOG = 10 * 1024 * 1024
#: Checks of one node that run at the same time.
_AT_ONCE = 2
#: Seconds that one has to end after SIGTERM, and before something that stood in the way is tried again.
_GRACE, _AGAIN = 2.0, 10.0
#: Stands in the environment of everything that a check starts, unless it was taken out.
MARK = "FIRM_CHECK"
_KEPT = ("HOME", "LANG", "PATH", "TZ")


@attrs.frozen(kw_only=True)
class Ran:
    """What a check said. ``snapshot`` is the tree of the commit, empty where there was none to run on."""

    passed: bool
    snapshot: str
    log_digest: str


@attrs.frozen
class NotRun:
    """The node could not run it: that says nothing about the submission."""

    why: str


@attrs.frozen
class _Said:
    """How one came out, and what its log shall say of that."""

    passed: bool
    why: str
    snapshot: str = ""


class Checks:
    """All checks that this node runs. ``scratch`` and ``logs`` are its own, on the same file system."""

    def __init__(self, scratch: Path, logs: Path, environment: Mapping[str, str], *, most_log: int = MOST_LOG) -> None:
        self._scratch = scratch
        self._logs = logs
        self._environment = {name: environment[name] for name in _KEPT if name in environment}
        self._most_log = most_log
        self._turns = trio.CapacityLimiter(_AT_ONCE)
        self._first = trio.Lock()
        self._keeping = trio.Lock()
        #: Logs of what was run, and of which no result is recorded yet.
        self._unrecorded = Counter[str]()
        self._swept = False

    async def run(self, due: DueCheck) -> Ran | NotRun:
        """Run it to its end. Cancelled, it ends whatever the check started first."""
        async with self._turns:
            written = self._scratch / f"{uuid.uuid4().hex}.log"
            try:
                await self._sweep()
                await trio.to_thread.run_sync(_touch, written)
                found = await self._judge(due, written)
                if isinstance(found, NotRun):
                    return found
                await trio.to_thread.run_sync(_add, written, f"[firm] {found.why}\n")
                async with self._keeping:
                    digest = await trio.to_thread.run_sync(check_logs.keep, written, self._logs)
                    self._unrecorded[digest] += 1
                return Ran(passed=found.passed, snapshot=found.snapshot, log_digest=digest)
            except (GitRefused, GitUnusable, OSError) as fault:
                return NotRun(one_line(str(fault)))
            finally:
                _discard(written)

    def settled(self, digest: str) -> None:
        """What was run is recorded, or never will be: from now on only a result that names its log keeps it."""
        self._unrecorded[digest] -= 1
        self._unrecorded += Counter[str]()  # without those that are at zero

    async def tidy(self, named: Callable[[], Collection[str]]) -> int:
        """Remove the logs that nothing names any more; how many. Two runs that say the same have the same log, so none
        is kept meanwhile, and what is named is asked for last.
        """
        async with self._keeping:
            there = await trio.to_thread.run_sync(check_logs.kept, self._logs)
            gone = there - {*self._unrecorded.elements(), *named()}
            await trio.to_thread.run_sync(check_logs.remove, self._logs, gone)
        return len(gone)

    async def _judge(self, due: DueCheck, written: Path) -> _Said | NotRun:
        check, root = read(due.line), Path(due.root)
        if isinstance(check, str):
            return _Said(passed=False, why=f"not run: {check}")
        if not due.revision:
            return _Said(passed=False, why="not run: the submission names no commit that it could run on")
        if not await trio.Path(root).is_dir():
            return NotRun(f"the project's folder {root} is not there")
        if not await commit_exists(root, due.revision):
            return _Said(passed=False, why=f"not run: there is no commit {one_line(due.revision)} in {root}")
        found, prefix = await snapshot(root, due.revision), (await must(root, "rev-parse", "--show-prefix")).line
        if isinstance(found, Refusal):
            return NotRun(found.lifted_by)
        async with checked_out(root, due.revision, self._scratch) as top:
            if isinstance(top, Refusal):
                return NotRun(top.lifted_by)
            if not await trio.Path(top, prefix).is_dir():
                return _Said(passed=False, why=f"not run: the commit has no folder {prefix}", snapshot=found.tree)
            mark = f"{self._scratch}/{uuid.uuid4().hex}"
            left: tuple[int, ...] | Unreachable = ()
            try:
                said = await self._limited(check, top / prefix, written, mark)
            finally:
                with trio.CancelScope(shield=True):
                    # Before its checkout goes: what left its process group may still write there.
                    left = await end_all(lambda: _carrying(mark), grace=_GRACE)
            if left:
                log.warning("check %s left processes that do not end: %s", check.name, left)
            return attrs.evolve(said, snapshot=found.tree)

    async def _limited(self, check: NamedCheck, folder: Path, written: Path, mark: str) -> _Said:
        program = Program(argv=check.argv)
        env = {**self._environment, MARK: mark}
        ended: Ended | NotStarted | None = None
        with trio.move_on_after(check.seconds):
            ended = await run(
                program, env=env, folder=folder, log=written, screen=None, grace=_GRACE, most=self._most_log
            )
        if ended is None:
            return _Said(passed=False, why=f"ended: it took longer than its limit of {check.seconds} seconds")
        if isinstance(ended, NotStarted):
            return _Said(passed=False, why=f"not run: {ended.why}")
        cut = "" if ended.whole else f"; of its output the first {ended.size} bytes are kept"
        return _Said(passed=ended.status == 0, why=f"{ended.how}{cut}")

    async def _sweep(self) -> None:
        """Once, before the first: what a daemon that died over its checks left running, and left lying about."""
        async with self._first:
            if self._swept:
                return
            await end_all(lambda: _carrying(f"{self._scratch}/", begins=True), grace=_GRACE)
            await trio.to_thread.run_sync(lambda: self._scratch.mkdir(mode=0o700, parents=True, exist_ok=True))
            for left in await trio.to_thread.run_sync(lambda: list(self._scratch.iterdir())):
                await _throw_away(left)
            self._swept = True


async def _throw_away(left: Path) -> None:
    """A log that was never finished, or a checkout, which its repository forgets too."""
    if not await trio.Path(left).is_dir():
        await trio.Path(left).unlink()
        return
    path = left / "checkout"
    if await trio.Path(path).is_dir():
        common = await git(path, "rev-parse", "--path-format=absolute", "--git-common-dir")
        if common.status == 0:
            await git(Path(common.line), "worktree", "remove", "--force", "--", str(path))
    await trio.to_thread.run_sync(shutil.rmtree, left)


def _discard(path: Path) -> None:
    """What cannot be removed now is thrown away when the next daemon begins."""
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        log.warning("cannot remove %s: %s", path, error)


def _touch(path: Path) -> None:
    path.touch(mode=0o600)


def _add(path: Path, line: str) -> None:
    """Behind what the check wrote, on a line of its own."""
    with path.open("rb+") as file:
        size = file.seek(0, 2)
        if size:
            file.seek(size - 1)
        apart = b"" if not size or file.read(1) == b"\n" else b"\n"
        file.write(apart + line.encode(errors="replace"))


def _carrying(mark: str, *, begins: bool = False) -> set[Process]:
    """The processes whose environment says that this check started them; with ``begins``, any check of this node."""
    wanted = f"{MARK}={mark}".encode()
    found = (each for pid in psutil.pids() for each in [process(pid)] if each is not None)
    return {
        each
        for each in found
        if any(word == wanted or (begins and word.startswith(wanted)) for word in environment_of(each.pid))
    }


async def check(node: Node, checks: Checks, due: DueCheck, sup_gen: int) -> None:
    """Run what is due and record what it said. What could not be run is still due, and is tried again."""
    ran = await checks.run(due)
    name = named(due.line)
    if isinstance(ran, NotRun):
        log.warning("check %s of work=%s was not run and will be tried again: %s", name, due.work_id, ran.why)
        await trio.sleep(_AGAIN)
        return
    asked = RecordCheck(
        work_id=due.work_id,
        receipt_id=due.receipt_id,
        sup_gen=sup_gen,
        line=due.line,
        passed=ran.passed,
        snapshot=ran.snapshot,
        revision=due.revision,
        log_digest=ran.log_digest,
    )
    try:
        while isinstance(outcome := await node.ask(asked), Refusal):
            if moved := ROWS[outcome.code].retry is not Retry.SAME:
                # It was sent back, cancelled, or the check was taken away: the next look sees which. What is due all
                # the same is not run again at once.
                log.info("check %s of work=%s is not recorded: %s", name, due.work_id, outcome.code)
            await trio.sleep(_AGAIN)
            if moved:
                return
    finally:
        checks.settled(ran.log_digest)
