"""The logs of checks: kept while a result is under way or names them, then removed. Real checks, a real repository."""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path

import attrs
import pytest
import trio

from client import check_logs
from client.protocol.attempt import RecordCheck
from client.protocol.board import DueCheck
from client.protocol.ids import Fence, ReceiptId, WorkId
from client.protocol.operation import R, Request
from client.protocol.refusals import Refusal
from supervisor.checks import Checks, Ran, check
from tests.support.repos import Repo, repo
from tests.support.wire import PATIENCE


@attrs.frozen
class Bench:
    repo: Repo
    logs: Path
    checks: Checks

    def due(self, command: str) -> DueCheck:
        return DueCheck(
            work_id=WorkId("w1"),
            receipt_id=ReceiptId("rr1"),
            fence=Fence(1),
            line=f"unit={command}",
            revision=self.repo.git("rev-parse", "HEAD"),
            root=str(self.repo.root),
        )

    async def ran(self, command: str) -> str:
        """The digest of its log, once it was run and its result is not under way any more."""
        ran = await self.checks.run(self.due(command))
        assert isinstance(ran, Ran)
        self.checks.settled(ran.log_digest)
        return ran.log_digest

    @property
    def kept(self) -> set[str]:
        return check_logs.kept(self.logs)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    logs = tmp_path / "logs"
    return Bench(repo(tmp_path / "project"), logs, Checks(tmp_path / "scratch", logs, {"PATH": os.environ["PATH"]}))


async def test_what_no_result_names_is_removed_and_nothing_else(bench: Bench) -> None:
    named, other = await bench.ran("echo named"), await bench.ran("echo other")
    (bench.logs / "README").write_text("of a person")
    assert await bench.checks.tidy(lambda: {named}) == 1
    assert bench.kept == {named} != {other}
    assert (bench.logs / "README").exists()
    assert await bench.checks.tidy(lambda: {named}) == 0
    assert await bench.checks.tidy(set[str]) == 1
    assert bench.kept == set()


async def test_before_the_first_check_there_is_nothing_to_remove(bench: Bench) -> None:
    assert await bench.checks.tidy(set[str]) == 0
    assert not bench.logs.exists()


@attrs.define
class Slow:
    """A node that is given a result and does not answer."""

    answer: RecordCheck | None = None
    asked: trio.Event = attrs.Factory(trio.Event)

    async def ask(self, request: Request[R], *, key: str = "") -> R | Refusal:
        assert isinstance(request, RecordCheck), key
        self.answer = request
        self.asked.set()
        await trio.sleep_forever()
        raise AssertionError("never")


async def test_a_log_whose_result_is_under_way_is_kept_though_nothing_names_it_yet(bench: Bench) -> None:
    """And the same log of another run with it. Once nobody waits for its answer, nothing keeps it."""
    node, twin = Slow(), ""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(check, node, bench.checks, bench.due("echo same"), 1)
        with trio.fail_after(PATIENCE):
            await node.asked.wait()
        assert node.answer is not None
        twin = await bench.ran("echo same")
        assert twin == node.answer.log_digest
        assert await bench.checks.tidy(set[str]) == 0
        assert bench.kept == {twin}
        nursery.cancel_scope.cancel(reason="another supervisor took the run")
    assert await bench.checks.tidy(set[str]) == 1
    assert bench.kept == set()


async def test_no_log_is_kept_while_others_are_removed(bench: Bench) -> None:
    """Else one that was seen as nobody's could become somebody's before it is removed. What is named is asked last."""
    first = await bench.ran("echo same")
    found: list[tuple[bool, set[str]]] = []

    def named() -> Collection[str]:
        found.append((bench.checks._keeping.locked(), bench.kept))
        return ()

    assert await bench.checks.tidy(named) == 1
    assert found == [(True, {first})]
    assert await bench.ran("echo same") == first
    assert bench.kept == {first}
