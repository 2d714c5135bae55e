"""What a disk or a file that fails makes of a request: named, nothing written, and the same key asks again.

That the store tells the truth about each fault is proven in ``tests/store``; here it is carried to the caller.
"""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import pytest

from client.protocol.agent import CreateAgent, ListAgents
from client.protocol.node import Health, ShowStatus
from client.protocol.operation import Request
from client.protocol.refusals import Code, Refusal
from client.protocol.table import OPERATIONS
from client.protocol.team import ListTeams
from store import faults
from store.database import connect
from tests.support import scene
from tests.support.corrupt import damage_page
from tests.support.node import InProcessNode, in_process
from tests.support.vfs import ShimVfs, shim_vfs

ANN = CreateAgent(name="ann")


async def fails(node: InProcessNode, code: Code) -> None:
    """A write is refused with ``code``, and health tells of it."""
    refusal = await node.refused(ANN, key="k")
    assert (refusal.code, refusal.about) == (code, "store")
    said = await node.ok(ShowStatus())
    assert (said.health, [trouble.code for trouble in said.troubles]) == (Health.DEGRADED, [code])


async def is_over(node: InProcessNode) -> None:
    """The same key asks again, and that is done once."""
    made = await node.ok(ANN, key="k")
    assert await node.ok(ANN, key="k") == made
    assert (await node.ok(ListAgents())).items == [made]
    assert (await node.ok(ShowStatus())).health is Health.OK


BREAKS: list[tuple[Callable[[ShimVfs], None], Code]] = [
    (ShimVfs.full, Code.STORE_FULL),
    (ShimVfs.fail_writes, Code.STORE_IO_ERROR),
]


@pytest.mark.parametrize(("break_it", "code"), BREAKS, ids=lambda each: str(getattr(each, "__name__", each)))
async def test_a_disk_that_fails_refuses_writes_until_it_is_well_again(
    tmp_path: Path, break_it: Callable[[ShimVfs], None], code: Code
) -> None:
    with shim_vfs() as vfs:
        async with in_process(tmp_path / "home", vfs=vfs.name) as node:
            break_it(vfs)
            await fails(node, code)
            vfs.heal()
            await is_over(node)


async def test_a_database_that_another_program_holds_refuses_writes(node: InProcessNode) -> None:
    node.store._connections[0].set_busy_timeout(0)
    with contextlib.closing(connect(node.store.path)) as other:
        other.execute("BEGIN IMMEDIATE")
        await fails(node, Code.STORE_BUSY)
        other.execute("ROLLBACK")
    await is_over(node)


async def test_a_database_that_cannot_be_written_refuses_writes(node: InProcessNode) -> None:
    writer = node.store._connections[0]
    writer.execute("PRAGMA query_only = ON")
    await fails(node, Code.STORE_READ_ONLY)
    writer.execute("PRAGMA query_only = OFF")
    await is_over(node)


#: Every error of the disk or the file that SQLite has, with and without what the system says of it.
FAULTS = [(kind(), number) for kind in faults.STORAGE for number in (0, errno.ENOSPC, errno.EROFS, errno.EIO)]


def test_every_operation_may_refuse_with_every_fault_of_the_disk() -> None:
    """A read too: what it refuses with and does not declare ends a client with an error of its own."""
    codes = {faults.code_of(error, number) for error, number in FAULTS}
    for op in OPERATIONS:
        assert codes <= op.codes, op.name


async def test_a_read_of_a_database_that_another_program_holds_alone_is_refused(node: InProcessNode) -> None:
    near = node.store._near
    near.exec_trace = _busy
    outcome = await node.ask(ListTeams())
    near.exec_trace = None
    assert isinstance(outcome, Refusal)
    assert (outcome.code, outcome.about) == (Code.STORE_BUSY, "store")
    assert (await node.ok(ListTeams())).items == []


def _busy(_: object, statement: str, __: object) -> bool:
    """As a lock of another program over the whole file."""
    if statement == "BEGIN":
        raise apsw.BusyError("database is locked")
    return True


async def test_what_may_have_been_kept_is_said_and_then_nothing_more_is_written(tmp_path: Path) -> None:
    with shim_vfs() as vfs:
        async with in_process(tmp_path / "home", vfs=vfs.name) as node:
            vfs.fail_next_sync(n=2)
            refusal = await node.ask(ANN, key="k")
            assert isinstance(refusal, Refusal)
            assert refusal.code is Code.OUTCOME_UNKNOWN
            assert "same key" in refusal.lifted_by
            vfs.heal()
            later = await node.refused(CreateAgent(name="bob"))
            assert (later.code, later.lifted_by) == (Code.STORE_IO_ERROR, refusal.lifted_by)
            assert (await node.ok(ListTeams())).items == []
            assert not (await node.ok(ShowStatus())).ready


async def test_damage_stops_writes_and_reads_of_what_is_whole_go_on(tmp_path: Path) -> None:
    async with in_process(tmp_path / "home") as node:
        await scene.crew(node)
    damage_page(tmp_path / "home" / "node.db", "agents")
    async with in_process(tmp_path / "home") as node:
        assert len((await node.ok(ListTeams())).items) == 1
        questions: list[Request[Any]] = [ListAgents(), ANN, CreateAgent(name="bob")]
        for ask in questions:
            outcome = await node.ask(ask)
            assert isinstance(outcome, Refusal)
            assert (outcome.code, outcome.about) == (Code.STORE_CORRUPT, "store")
            assert "firm node restore" in outcome.lifted_by
        assert len((await node.ok(ListTeams())).items) == 1
        assert [t.code for t in (await node.ok(ShowStatus())).troubles] == [Code.STORE_CORRUPT]
