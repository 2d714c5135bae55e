"""Damage: a record that does not decode is named and left out; a page that is not sound stops writing, not reading."""

from __future__ import annotations

import contextlib
from pathlib import Path

import apsw
import attrs
import pytest

from client.protocol.agent import CreateAgent, ListAgents, ShowAgent
from client.protocol.event import ListEvents
from client.protocol.ids import AgentMemberRef, FilePath, Folder
from client.protocol.node import BackUpNode, ListQuarantine, ReleaseQuarantine, ShowStatus
from client.protocol.project import ListProjects
from client.protocol.refusals import Refusal
from client.protocol.team import CreateTeam, ListTeams
from store import maintenance
from store.database import StorageFault
from store.tx import Tx
from tests.support import corrupt, scene
from tests.support.corrupt import Value
from tests.support.node import InProcessNode, in_process
from tests.support.stores import codes, made, names_in, put, serving, together

BAD_TEXT = b"\xff\xfe no text"


@attrs.frozen
class Bad:
    """What stands in a column where something else belongs. Bytes in a TEXT column are text that is not UTF-8."""

    column: str
    value: Value


def _spoil(database: Path, table: str, bad: Bad, where: str) -> None:
    if isinstance(bad.value, bytes) and bad.column != "body":
        corrupt.overwrite_text(database, table, bad.column, bad.value, where=where)
    else:
        corrupt.overwrite(database, table, bad.column, bad.value, where=where)


@pytest.mark.parametrize(
    "bad",
    [
        Bad("status", "sleeping"),
        Bad("ceiling", ""),
        Bad("skills", "review"),
        Bad("skills", '"review"'),
        Bad("skills", "[1, 2]"),
        Bad("skills", "[" * 100_000),
        Bad("capabilities", "null"),
        Bad("name", BAD_TEXT),
        Bad("status", BAD_TEXT),
        Bad("skills", BAD_TEXT),
    ],
    ids=lambda bad: f"{bad.column} {bad.value!r:.20}",
)
async def test_a_record_that_does_not_decode_is_named_left_out_and_comes_back_once_repaired(
    tmp_path: Path, bad: Bad
) -> None:
    path = tmp_path / "home/node.db"
    async with in_process(path.parent) as node:
        ann, bob = await scene.agent(node, "ann"), await scene.agent(node, "bob")
    record = f"agents/{ann.id}"
    _spoil(path, "agents", bad, f"id = '{ann.id}'")
    show, release = ShowAgent(agent_member_id=AgentMemberRef(ann.id)), ReleaseQuarantine(record=record)
    async with in_process(path.parent) as node:
        assert (await node.ok(ListAgents())).items == [bob]
        assert await node.ok(ShowAgent(agent_member_id=AgentMemberRef("bob"))) == bob
        refusal = await node.ask(show)
        assert isinstance(refusal, Refusal)
        assert (refusal.code, refusal.about) == ("ROW_QUARANTINED", record)
        assert refusal.lifted_by.endswith(f"firm node release {record}")
        (set_aside,) = (await node.ok(ListQuarantine())).items
        assert set_aside.record == record
        (trouble,) = (await node.ok(ShowStatus())).troubles
        assert (trouble.code, trouble.since) == ("ROW_QUARANTINED", set_aside.since)
        assert "firm node quarantine" in trouble.lifted_by
        assert codes([await node.ask(release)]) == ["ROW_QUARANTINED"]
        assert codes([await node.ask(CreateAgent(name="eve"))]) == [None]
    good = getattr(ann, bad.column)
    corrupt.overwrite(path, "agents", bad.column, "[]" if good == [] else str(good), where=f"id = '{ann.id}'")
    async with in_process(path.parent) as node:
        assert [trouble.code for trouble in (await node.ok(ShowStatus())).troubles] == ["ROW_QUARANTINED"]
        assert await node.ok(release) == set_aside
        assert (await node.ok(ShowStatus())).troubles == []
        assert await node.ok(show) == ann
        assert (await node.ok(ListAgents())).items[:2] == [ann, bob]


@pytest.mark.parametrize(
    "bad",
    [Bad("body", b"\xc1"), Bad("body", b"\x01"), Bad("body", b"\x82\xa1a"), Bad("kind", BAD_TEXT)],
    ids=lambda bad: f"{bad.column} {bad.value!r}",
)
async def test_an_event_that_does_not_decode_is_named_and_the_others_are_told(tmp_path: Path, bad: Bad) -> None:
    path = tmp_path / "home/node.db"
    async with in_process(path.parent) as node:
        for name in ("ann", "bob", "eve"):
            await scene.agent(node, name)
        told = (await node.ok(ListEvents())).items
    _spoil(path, "events", bad, f"seq = {told[1].seq}")
    async with in_process(path.parent) as node:
        page = await node.ok(ListEvents())
        assert page.items == [told[0], told[2]]
        assert (await node.ok(ListEvents(limit=2))).items == [told[0]]
        assert (await node.ok(ListEvents(cursor=page.cursor))).items == []
        (set_aside,) = (await node.ok(ListQuarantine())).items
        assert set_aside.record == f"events/{told[1].seq}"


@pytest.fixture
def damaged(tmp_path: Path) -> Path:
    """A home whose table ``teams`` has an unsound page; Ann is an agent member in it."""
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    made(home / "node.db", put("ann"))
    corrupt.damage_page(home / "node.db", "teams")
    return home


async def _stopped(node: InProcessNode) -> None:
    """Writes are refused by name, whatever they touch; everything sound can be read; status says all that."""
    assert codes([await node.ask(CreateAgent(name="eve"))]) == ["STORE_CORRUPT"]
    assert [agent.name for agent in (await node.ok(ListAgents())).items] == ["ann"]
    assert (await node.ok(ListProjects())).items == []
    status = await node.ok(ShowStatus())
    assert (status.ready, status.health, status.agents, status.teams) == (False, "degraded", 1, None)
    (trouble,) = status.troubles
    assert trouble.code == "STORE_CORRUPT"
    assert "firm node restore" in trouble.lifted_by


async def test_a_read_that_meets_an_unsound_page_stops_writing_and_other_reads_go_on(damaged: Path) -> None:
    async with in_process(damaged) as node:
        assert codes([await node.ask(ListTeams())]) == ["STORE_CORRUPT"]
        assert node.store.damaged.is_set()
        await _stopped(node)


async def test_a_write_that_meets_an_unsound_page_stops_writing_and_other_reads_go_on(damaged: Path) -> None:
    async with in_process(damaged) as node:
        team = CreateTeam(name="crew", host_agent_id=AgentMemberRef("ann"), project=Folder(str(damaged)))
        assert codes([await node.ask(team)]) == ["STORE_CORRUPT"]
        assert node.store.damaged.is_set()
        await _stopped(node)


async def test_a_backup_or_a_status_that_meets_an_unsound_page_says_so(damaged: Path) -> None:
    async with in_process(damaged) as node:
        backup = await node.ask(BackUpNode(file=FilePath(str(damaged / "b.db"))))
        assert codes([backup]) == ["STORE_CORRUPT"]
        await _stopped(node)
    async with in_process(damaged) as node:
        await node.ok(ShowStatus())
        await _stopped(node)


async def test_no_unit_of_a_batch_that_meets_an_unsound_page_is_kept(tmp_path: Path) -> None:
    """SQLite fails the COMMIT of such a transaction; all are refused by name, and it is known that nothing is there."""
    path = made(tmp_path / "node.db")
    corrupt.damage_page(path, "teams")
    async with serving(path) as store:
        works = [put("ann"), lambda tx: tx._connection.execute("SELECT * FROM teams").get, put("bob")]
        assert codes(await together(store, works)) == ["STORE_CORRUPT"] * 3
        assert codes(await together(store, [put("eve")])) == ["STORE_CORRUPT"]
        assert store.look(names_in) == []
    with contextlib.closing(apsw.Connection(str(path))) as connection:
        assert names_in(Tx(connection)) == []


async def test_damage_where_the_proof_of_absence_would_be_written_leaves_no_doubt(tmp_path: Path) -> None:
    """A batch that met damage is rolled back, not tried: its outcome is known although nothing more can be written."""
    path = made(tmp_path / "node.db")
    damage = corrupt.damage_page(path, "node")
    corrupt.invert(path, damage.offset, damage.length)
    async with serving(path) as store:
        corrupt.invert(path, damage.offset, damage.length)
        works = [put("ann"), lambda tx: tx._connection.execute("SELECT * FROM node").get]
        assert codes(await together(store, works)) == ["STORE_CORRUPT"] * 2
        assert store.writer.stopped == "STORE_CORRUPT"


async def test_a_scan_that_meets_an_unsound_page_gives_its_connection_back(tmp_path: Path) -> None:
    path = made(tmp_path / "node.db")
    corrupt.damage_page(path, "teams")
    async with serving(path) as store:
        for _ in range(8):
            with pytest.raises(StorageFault):
                await store.scan(lambda tx: tx._connection.execute("SELECT * FROM teams").get)
        assert await store.scan(names_in) == []


@pytest.mark.parametrize("name", ["agents", "agents_by_name", "events", "memberships_one_host"])
def test_the_check_says_which_table_or_index_it_is(tmp_path: Path, name: str) -> None:
    path = made(tmp_path / "node.db", *(put(f"a{n}") for n in range(30)))
    assert maintenance.check(path) == []
    corrupt.damage_page(path, name)
    found = maintenance.check(path)
    assert found
    assert found[0].startswith(f"{name}: Tree "), found
    assert not [line for line in found if "\n" in line or "***" in line]


def test_the_check_does_not_call_a_disk_that_fails_a_damaged_file(tmp_path: Path) -> None:
    with pytest.raises(maintenance.Unusable):
        maintenance.check(tmp_path / "missing.db")


def test_a_file_damaged_where_it_begins_cannot_be_opened_and_names_the_way_out(tmp_path: Path) -> None:
    path = made(tmp_path / "node.db")
    with contextlib.closing(apsw.Connection(str(path))) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    corrupt.damage_page(path, "node")
    with pytest.raises(maintenance.Unusable) as refused:
        maintenance.take(path)
    assert "firm node restore" in refused.value.lifted_by
    corrupt.invert(path, 0, 16)
    with pytest.raises(maintenance.Unusable) as refused:
        maintenance.take(path)
    assert "firm node restore" in refused.value.lifted_by
