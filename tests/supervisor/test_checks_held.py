"""Named checks by the supervisor of a run, in a node of this process, on a real repository."""

from __future__ import annotations

import logging
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import attrs
import pytest
import trio

from client.protocol.event import WaitForEvent
from client.protocol.operation import Plane
from client.protocol.refusals import Code
from client.protocol.team_run import TakeTeamRun
from client.protocol.work import Resolution, Work
from client.protocol.work_asks import AcceptWork, SubmitWork, UpdateWork
from daemon.health import now
from daemon.inside import Inside
from providers.fake import running
from providers.process import process
from supervisor.checks import Checks
from supervisor.folders import Folders
from supervisor.means import Means
from supervisor.run import supervise
from supervisor.screens import Screens
from tests.support import works
from tests.support.node import InProcessNode
from tests.support.repos import Repo, repo
from tests.support.run import Stage, stage
from tests.support.wire import PATIENCE


async def nothing() -> None:
    """What a provider needs before it answers."""


@attrs.define
class Held:
    """A supervisor, and the code that ended it once it is ``over``."""

    ended: Code | None = None
    over: trio.Event = attrs.Factory(trio.Event)


@attrs.frozen
class Bench:
    stage: Stage
    repo: Repo
    means: Means
    folder: Path

    async def started(self, *checks: str) -> Work:
        return await self.stage.started(self.stage.bob, checks=list(checks))

    async def submit(self, started: Work) -> Work:
        """In review then; its candidate is the head of the project."""
        s = self.stage
        ask = SubmitWork(
            work_id=started.id,
            expected_version=started.version,
            result_summary="done",
            candidate_revision=self.repo.git("rev-parse", "HEAD"),
        )
        return await s.node.ok(ask, plane=Plane.MEMBER, actor=s.bob.session)

    async def results(self, work: Work, count: int) -> dict[str, bool]:
        """What the checks said, once there are so many."""
        while True:
            seq = self.stage.node.store.seq
            shown = await self.stage.shown(work)
            if len(shown.checks) >= count:
                return {each.name: each.passed for each in shown.checks}
            news = WaitForEvent(predicate=f"team-run:{self.stage.run.id}.seq>{seq}", timeout_ms=int(PATIENCE * 1000))
            assert not (await self.stage.node.ok(news)).timed_out

    @asynccontextmanager
    async def held(self) -> AsyncIterator[Held]:
        """By a supervisor."""
        s, held = self.stage, Held()

        async def run() -> None:
            inside = Inside(s.node.dispatcher, lambda: s.node.call(Plane.SUPERVISOR, s.run.id))
            held.ended = (await supervise(inside, self.means, s.run.id)).code
            held.over.set()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(run)
            yield held
            nursery.cancel_scope.cancel(reason="the test is over")


@pytest.fixture
async def bench(node: InProcessNode, tmp_path: Path) -> AsyncIterator[Bench]:
    s, project = await stage(node), repo(tmp_path / "project")
    node.execute("UPDATE projects SET root = ?", str(project.root))
    async with running() as provider:
        means = Means(
            provider=provider,
            ready=nothing,
            folder=no_folder,
            launcher=lambda launch_id: (launch_id,),
            profiles={},
            home="/",
            folders=Folders(tmp_path / "sessions"),
            screens=Screens(tmp_path / "screens", now),
            checks=Checks(tmp_path / "scratch", tmp_path / "logs", {"PATH": os.environ["PATH"]}),
        )
        yield Bench(s, project, means, tmp_path)


async def no_folder(seat: object) -> Path:  # noqa: ASYNC124 — as the supervisor calls it
    raise AssertionError(f"no member is launched here: {seat}")


async def test_every_check_of_a_submission_is_run_and_lets_it_be_accepted(bench: Bench) -> None:
    s = bench.stage
    work = await bench.started("unit=grep -q text file", "lint=true")
    async with bench.held():
        work = await bench.submit(work)
        assert await bench.results(work, 2) == {"unit": True, "lint": True}
    shown = await s.shown(work)
    assert {each.snapshot for each in shown.checks} == {bench.repo.git("rev-parse", "HEAD^{tree}")}
    accept = AcceptWork(work_id=work.id, expected_version=work.version, receipt_id=shown.receipts[-1].id)
    assert (await works.ann(s).ok(accept)).resolution is Resolution.ACCEPTED


async def test_a_check_that_fails_keeps_the_gate_shut(bench: Bench) -> None:
    s = bench.stage
    work = await bench.started("unit=false")
    async with bench.held():
        work = await bench.submit(work)
        assert await bench.results(work, 1) == {"unit": False}
    accept = AcceptWork(work_id=work.id, expected_version=work.version, receipt_id=await s.receipt(work))
    assert (await works.ann(s).refused(accept)).code is Code.GATE_NOT_PASSED


async def test_a_report_fails_its_checks(bench: Bench) -> None:
    work = await bench.stage.submitted(bench.stage.cid, checks=["unit=true"])
    async with bench.held():
        assert await bench.results(work, 1) == {"unit": False}


async def test_what_a_fenced_supervisor_ran_is_ended_and_run_again_by_the_next(bench: Bench) -> None:
    """Nothing was recorded by the first: the check that it ran was in the middle."""
    s, pipe = bench.stage, bench.folder / "began"
    os.mkfifo(pipe)
    check = f"unit=sh -c 'test -e {bench.folder}/again || {{ echo $$ > {pipe}; sleep 1000; }}'"
    work = await bench.submit(await bench.started(check))
    async with bench.held() as first:
        with trio.fail_after(PATIENCE):
            found = process(int(await trio.Path(pipe).read_text()))
        assert found is not None
        await s.node.ok(TakeTeamRun(team_run_id=s.run.id), plane=Plane.SUPERVISOR, actor=s.run.id)
        with trio.fail_after(PATIENCE):
            await found.ended()
            await first.over.wait()
        assert (await s.shown(work)).checks == []
    assert first.ended is Code.SUPERVISOR_GENERATION_FENCED
    (bench.folder / "again").write_text("")
    async with bench.held():
        assert await bench.results(work, 1) == {"unit": True}


class Heard(logging.Handler):
    """Set once something was logged in these words."""

    def __init__(self, words: str) -> None:
        super().__init__()
        self.words, self.heard = words, trio.Event()

    def emit(self, record: logging.LogRecord) -> None:
        if self.words in record.getMessage():
            self.heard.set()


async def test_a_check_that_was_replaced_while_it_ran_decides_nothing(bench: Bench) -> None:
    """The new one runs at once and fails; the old one passes later, and that is not recorded."""
    s, began, go = bench.stage, bench.folder / "began", bench.folder / "go"
    os.mkfifo(began)
    os.mkfifo(go)
    work = await bench.submit(await bench.started(f"unit=sh -c 'echo > {began}; read _ < {go}'"))
    heard, log = Heard("check unit of work"), logging.getLogger("supervisor.checks")
    log.addHandler(heard)
    log.setLevel(logging.INFO)
    try:
        async with bench.held():
            with trio.fail_after(PATIENCE):
                await trio.Path(began).read_text()
            update = UpdateWork(
                work_id=work.id, expected_version=work.version, remove_check="unit", add_checks=["unit=false"]
            )
            await works.ann(s).ok(update)
            assert await bench.results(work, 1) == {"unit": False}
            with trio.fail_after(PATIENCE):
                await trio.Path(go).write_text("go\n")
                await heard.heard.wait()
            assert [(each.line, each.passed) for each in (await s.shown(work)).checks] == [("unit=false", False)]
    finally:
        log.removeHandler(heard)
        log.setLevel(logging.NOTSET)
