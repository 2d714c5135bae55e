"""``node.*`` as the daemon answers it, one test an outcome that the table declares."""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path

import apsw
import pytest

from client.protocol.agent import ShowAgent
from client.protocol.digest import DIGEST
from client.protocol.ids import AgentMemberRef, FilePath
from client.protocol.node import (
    BackUpNode,
    Health,
    ListQuarantine,
    Quarantined,
    ReleaseQuarantine,
    ShowStatus,
    StopNode,
    StopReceipt,
)
from client.protocol.operation import Plane
from client.protocol.refusals import Code, Refusal
from daemon.operations.quarantine import _READ
from store import migrate
from tests.support import refusals, scene, tmpfs
from tests.support.crash import worker
from tests.support.node import InProcessNode, rows_of
from tests.support.spoil import mend, spoil

ROOT = Path(__file__).parents[2]


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def facts(file: Path) -> os.stat_result:
    return file.stat()


def back_up(file: Path | str) -> BackUpNode:
    return BackUpNode(file=FilePath(str(file)))


async def test_node_backup_ok(node: InProcessNode, tmp_path: Path) -> None:
    """A whole database that only its owner may read, as of one moment, while the node goes on."""
    await scene.crew(node)
    before = node.rows()
    made = await node.ok(back_up(tmp_path / "copy.db"))
    await scene.agent(node, "later")
    found = facts(Path(made.file))
    assert (made.file, made.size, made.seq) == (str(tmp_path / "copy.db"), found.st_size, len(before["events"]))
    assert found.st_mode & 0o777 == 0o600
    assert rows_of(Path(made.file), without=("quarantine",)) == before
    assert names(tmp_path) == {"copy.db", "home"}


async def test_node_backup_file_exists(node: InProcessNode, tmp_path: Path) -> None:
    taken = tmp_path / "taken"
    taken.write_text("mine")
    refusal = await node.refused(back_up(taken))
    assert refusal == Refusal(code=Code.FILE_EXISTS, about=str(taken), lifted_by="choose another name")
    assert taken.read_text() == "mine"


async def test_node_backup_file_unusable(node: InProcessNode, tmp_path: Path) -> None:
    refusal = await node.refused(back_up("copy.db"))
    assert refusal == Refusal(code=Code.FILE_UNUSABLE, about="copy.db", lifted_by="give an absolute path")
    nowhere = tmp_path / "missing" / "copy.db"
    assert await node.refused(back_up(nowhere)) == Refusal(
        code=Code.FILE_UNUSABLE,
        about=str(nowhere),
        lifted_by="choose a file that can be written (No such file or directory)",
    )
    for odd in (tmp_path / ("n" * 300), tmp_path / "nul\0"):
        assert (await node.refused(back_up(odd))).code is Code.FILE_UNUSABLE
    assert (await node.refused(back_up("/"))).code is Code.FILE_EXISTS
    assert names(tmp_path) == {"home"}


_BACK_UP = """
import sys
sys.path.insert(0, sys.argv[1])
import trio
from pathlib import Path
from client.protocol.node import BackUpNode
from tests.support.node import in_process

async def main():
    async with in_process(Path(sys.argv[2])) as node:
        refusal = await node.refused(BackUpNode(file=sys.argv[3]))
        print(refusal.code, refusal.about, refusal.lifted_by, sep="\\n", flush=True)

sys.stdin.readline()
trio.run(main)
"""


@pytest.mark.skipif(tmpfs.available() is not None, reason=f"{tmpfs.available()}")
def test_node_backup_store_full(tmp_path: Path) -> None:
    """The disk that the copy is for is full, not the one that holds the database."""
    with tmpfs.small_disk(tmp_path / "disk") as disk:
        target = disk.path / "copy.db"
        command = [sys.executable, "-I", "-c", _BACK_UP, str(ROOT), str(tmp_path / "home"), str(target)]
        with worker(disk.command(command)) as one:
            disk.fill(leave=8192)
            one.say("go on")
            assert one.finish() == 0, one.errors
            assert one.lines == [Code.STORE_FULL.value, str(target), "free space there, or choose another disk"]
        assert names(disk.outside) == {"ballast"}


async def test_node_quarantine_ok(node: InProcessNode) -> None:
    ann, bob = await scene.agent(node, "ann"), await scene.agent(node, "bob")
    assert (await node.ok(ListQuarantine())).items == []
    for who in (bob, ann):
        spoil(node.store.path, "agents", who.id)
        await node.refused(ShowAgent(agent_member_id=AgentMemberRef(who.id)))
    await node.set_aside()
    (first, second) = (await node.ok(ListQuarantine())).items
    assert first.record == f"agents/{bob.id}"
    assert "bytes where int belongs" in first.why
    assert (second.record, second.since > first.since) == (f"agents/{ann.id}", True)


async def test_what_is_met_again_keeps_the_time_it_was_first_met(node: InProcessNode) -> None:
    ann = await scene.agent(node)
    spoil(node.store.path, "agents", ann.id)
    ask = ShowAgent(agent_member_id=AgentMemberRef(ann.id))
    await node.refused(ask)
    await node.set_aside()
    before = (await node.ok(ListQuarantine())).items
    await node.refused(ask)
    await node.set_aside()
    assert (await node.ok(ListQuarantine())).items == before


async def test_node_release_ok(node: InProcessNode) -> None:
    """What can be read again is back, and is set aside again when it breaks again."""
    ann = await scene.agent(node)
    ask = ShowAgent(agent_member_id=AgentMemberRef(ann.id))
    for _ in range(2):
        was = spoil(node.store.path, "agents", ann.id)
        await node.refused(ask)
        assert await node.set_aside() == [f"agents/{ann.id}"]
        (held,) = (await node.ok(ListQuarantine())).items
        mend(node.store.path, "agents", ann.id, was)
        assert await node.ok(ReleaseQuarantine(record=held.record)) == held
        assert await node.set_aside() == []
        assert await node.ok(ask) == ann


async def test_a_record_that_is_gone_can_be_released(node: InProcessNode) -> None:
    ann = await scene.agent(node)
    spoil(node.store.path, "agents", ann.id)
    await node.refused(ShowAgent(agent_member_id=AgentMemberRef(ann.id)))
    node.execute("DELETE FROM agents WHERE id = ?", ann.id)
    released = await node.ok(ReleaseQuarantine(record=f"agents/{ann.id}"))
    assert isinstance(released, Quarantined)


async def test_node_release_not_found(node: InProcessNode) -> None:
    ann = await scene.agent(node)
    record = f"agents/{ann.id}"
    assert await node.refused(ReleaseQuarantine(record=record)) == Refusal(
        code=Code.NOT_FOUND, about=record, lifted_by="see what is set aside: firm node quarantine"
    )


async def test_node_release_row_quarantined(node: InProcessNode) -> None:
    ann = await scene.agent(node)
    record = f"agents/{ann.id}"
    spoil(node.store.path, "agents", ann.id)
    await node.refused(ShowAgent(agent_member_id=AgentMemberRef(ann.id)))
    assert await node.refused(ReleaseQuarantine(record=record)) == refusals.unreadable(record)
    assert await node.set_aside() == [record]


async def test_a_record_that_this_firm_cannot_read_again_is_not_released(node: InProcessNode) -> None:
    node.execute("INSERT INTO quarantine (record, why, since) VALUES ('gadgets/x', 'newer', 1)")
    assert await node.refused(ReleaseQuarantine(record="gadgets/x")) == Refusal(
        code=Code.ROW_QUARANTINED,
        about="gadgets/x",
        lifted_by="use the build that set it aside; this one does not know such records",
    )
    assert await node.set_aside() == ["gadgets/x"]


def test_every_table_whose_rows_become_records_can_be_read_again() -> None:
    with contextlib.closing(apsw.Connection(":memory:")) as connection:
        migrate.migrate(connection)
        tables = {str(name) for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
    relations = {"attention_seen", "check_results", "work_needs", "work_titles"}  # which no record is made of
    assert set(_READ) == tables - relations - {"node", "quarantine", "replies"}


async def test_node_status_ok(node: InProcessNode) -> None:
    crew = await scene.crew(node)
    said = await node.ok(ShowStatus(), plane=Plane.OBSERVER, actor=crew.eve.id)
    assert (said.live, said.ready, said.health, said.troubles) == (True, True, Health.OK, [])
    assert (said.agents, said.teams, said.seq) == (3, 1, node.store.seq)
    row = node.opened.row
    assert (said.node_id, said.store_id, said.daemon_gen) == (row.node_id, row.store_id, row.daemon_gen)
    assert (said.table, said.pid, said.home) == (DIGEST, os.getpid(), str(node.home))
    assert said.schema_version == migrate.known()


async def test_status_tells_of_records_that_were_set_aside(node: InProcessNode) -> None:
    ann = await scene.agent(node)
    spoil(node.store.path, "agents", ann.id)
    await node.refused(ShowAgent(agent_member_id=AgentMemberRef(ann.id)))
    await node.set_aside()
    said = await node.ok(ShowStatus())
    (trouble,) = said.troubles
    assert (said.health, trouble.code) == (Health.DEGRADED, Code.ROW_QUARANTINED)
    assert trouble.lifted_by == "see them: firm node quarantine"


async def test_node_stop_ok(node: InProcessNode) -> None:
    """The receipt comes first; that everything then ends in order is asked of a real daemon."""
    receipt = await node.ok(StopNode())
    assert receipt == StopReceipt(daemon_gen=node.opened.row.daemon_gen, pid=os.getpid(), open_requests=0)
    assert node.live.stopping.is_set()
    assert not (await node.ok(ShowStatus())).ready
