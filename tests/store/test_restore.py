"""Restore: another store with every generation raised, the former one kept, and never anything in between."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest

from client.protocol.agent import CreateAgent, ListAgents
from client.protocol.event import ListEvents
from client.protocol.ids import AgentMemberRef, TeamRef
from client.protocol.membership import InviteMember, LeaveTeam
from client.protocol.node import BackedUp
from client.protocol.refusals import Code
from store import maintenance, migrate
from store.maintenance import BadBackup, Unusable, back_up, restore
from store.migrate import NotOurs, TooNew
from store.node import FLOOR_STEP, NodeRow
from tests.support import corrupt, scene
from tests.support.node import InProcessNode, in_process
from tests.support.stores import codes, made, names, put


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home whose database holds Ann and Bob; ``backup.db`` beside it holds Ann only."""
    folder = tmp_path / "home"
    folder.mkdir(mode=0o700)
    path = made(folder / "node.db", put("ann"))
    assert isinstance(back_up(path, tmp_path / "backup.db"), BackedUp)
    made(path, put("bob"))
    return folder


def _content(folder: Path) -> dict[str, bytes]:
    """All that stands in a folder. To look at a database may leave an empty log behind."""
    found = {path.name: path.read_bytes() for path in folder.iterdir()}
    return {name: content for name, content in found.items() if content and not name.endswith("-shm")}


def _asides(home: Path) -> list[Path]:
    return sorted(path for path in home.glob("node.db.before-*") if not path.name.endswith(("-wal", "-shm")))


def test_the_backup_is_there_and_the_former_database_is_kept(home: Path) -> None:
    former = _content(home)["node.db"]
    row = restore(home / "node.db", home.parent / "backup.db")
    assert names(home / "node.db") == ["ann"]
    (aside,) = _asides(home)
    assert aside.read_bytes() == former
    assert names(aside) == ["ann", "bob"]
    assert {path.name for path in home.iterdir()} == {"node.db", aside.name, "generations.json"}
    assert all(stat.S_IMODE((home / name).stat().st_mode) == 0o600 for name in ("node.db", aside.name))
    assert maintenance.take(home / "node.db").row.store_id == row.store_id


def test_the_former_database_is_kept_with_its_log(home: Path) -> None:
    """What its last daemon committed before it was killed stands only there."""
    killed = home.parent / "killed"
    with contextlib.closing(apsw.Connection(str(home / "node.db"))) as connection:
        maintenance.in_one(connection, put("eve"))
        shutil.copytree(home, killed)
    assert (killed / "node.db-wal").stat().st_size
    restore(killed / "node.db", home.parent / "backup.db")
    assert names(killed / "node.db") == ["ann"]
    assert names(_asides(killed)[0]) == ["ann", "bob", "eve"]


def test_every_restore_raises_every_generation_above_any_ever_issued(home: Path) -> None:
    """Also when an older backup is restored a second time, which knows nothing of the first."""
    path, backup = home / "node.db", home.parent / "backup.db"
    issued = [maintenance.take(path).row.daemon_gen for _ in range(3)]
    stores = {maintenance.take(path).row.store_id}
    for turn in range(1, 4):
        row = restore(path, backup)
        assert row.generation_floor == turn * FLOOR_STEP > max(issued)
        opened = maintenance.take(path)
        assert not opened.unclean
        issued += [opened.row.daemon_gen, maintenance.take(path).row.daemon_gen]
        stores.add(row.store_id)
    assert issued == sorted(set(issued))
    assert len(stores) == 4


def test_the_floor_does_not_fall_when_its_note_is_lost(home: Path) -> None:
    path, backup = home / "node.db", home.parent / "backup.db"
    restore(path, backup)
    first = maintenance.take(path).row
    (home / "generations.json").unlink()
    assert restore(path, backup).generation_floor > first.daemon_gen
    newer = home.parent / "newer.db"
    back_up(path, newer)
    (home.parent / "new home").mkdir()
    assert restore(home.parent / "new home/node.db", newer).generation_floor == 3 * FLOOR_STEP


@pytest.mark.parametrize("note", ["", "{}", "[]", '{"floor": null}', '{"floor": "x"}'])
def test_a_damaged_note_of_generations_is_no_zero(home: Path, note: str) -> None:
    (home / "generations.json").write_text(note)
    before = _content(home)
    with pytest.raises(Unusable, match=r"generations\.json is damaged") as refused:
        restore(home / "node.db", home.parent / "backup.db")
    assert str(home / "generations.json") in refused.value.lifted_by
    assert _content(home) == before
    assert not [path for path in home.iterdir() if "restor" in path.name]


async def _rejoin(node: InProcessNode) -> int:
    """Begin a membership and end it; its generation."""
    invite = InviteMember(team_id=TeamRef("crew"), agent_member_id=AgentMemberRef("bob"))
    membership = await node.ok(invite)
    await node.ok(LeaveTeam(membership_id=membership.id, expected_version=1))
    return int(membership.member_gen)


async def test_member_generations_are_raised_too_and_old_cursors_are_refused_by_name(tmp_path: Path) -> None:
    home, backup = tmp_path / "home", tmp_path / "backup.db"
    issued: list[int] = []
    async with in_process(home) as node:
        await scene.team(node, await scene.agent(node, "ann"))
        await scene.agent(node, "bob")
        assert isinstance(back_up(node.store.path, backup), BackedUp)
        issued += [await _rejoin(node), await _rejoin(node)]
        agents, events = await node.ok(ListAgents(limit=1)), await node.ok(ListEvents(limit=1))
        assert agents.next is not None
        assert codes([await node.ask(ListAgents(cursor=agents.next, limit=1))]) == [None]
    for _ in range(2):
        restore(home / "node.db", backup)
        async with in_process(home) as node:
            issued += [await _rejoin(node), await _rejoin(node)]
            assert codes([await node.ask(ListAgents(cursor=agents.next))]) == [Code.CURSOR_INVALID]
            assert codes([await node.ask(ListEvents(cursor=events.cursor))]) == [Code.CURSOR_INVALID]
    assert issued == sorted(set(issued))


async def test_a_key_answers_as_the_backup_knew_it(tmp_path: Path) -> None:
    """What was asked before the backup is not done again; what came after it is not remembered, for it is not there."""
    home, backup = tmp_path / "home", tmp_path / "backup.db"
    async with in_process(home) as node:
        await node.ok(CreateAgent(name="ann"), key="k1")
        assert isinstance(back_up(node.store.path, backup), BackedUp)
        await node.ok(CreateAgent(name="bob"), key="k2")
    restore(home / "node.db", backup)
    async with in_process(home) as node:
        await node.ok(CreateAgent(name="ann"), key="k1")
        await node.ok(CreateAgent(name="bob"), key="k2")
        assert names(node.store.path) == ["ann", "bob"]


def _damaged(backup: Path) -> None:
    corrupt.damage_page(backup, "agents")


def _foreign(backup: Path) -> None:
    backup.unlink()
    with contextlib.closing(apsw.Connection(str(backup))) as connection:
        connection.execute("CREATE TABLE photos (x)")


def _newer(backup: Path) -> None:
    with contextlib.closing(apsw.Connection(str(backup))) as connection:
        connection.pragma("user_version", migrate.known() + 1)


def _empty(backup: Path) -> None:
    backup.write_bytes(b"")


def _no_database(backup: Path) -> None:
    backup.write_text("a love letter\n" * 300)


def _cut_short(backup: Path) -> None:
    os.truncate(backup, backup.stat().st_size // 2)


def _missing(backup: Path) -> None:
    backup.unlink()


def _folder(backup: Path) -> None:
    backup.unlink()
    backup.mkdir()


@pytest.mark.parametrize(
    ("spoil", "error"),
    [
        (_damaged, BadBackup),
        (_foreign, NotOurs),
        (_newer, TooNew),
        (_empty, BadBackup),
        (_no_database, BadBackup),
        (_cut_short, BadBackup),
        (_missing, Unusable),
        (_folder, Unusable),
    ],
)
def test_what_is_no_backup_of_ours_is_refused_and_nothing_was_changed(
    home: Path, spoil: Callable[[Path], None], error: type[Exception]
) -> None:
    backup = home.parent / "backup.db"
    spoil(backup)
    before = _content(home)
    with pytest.raises(error):
        restore(home / "node.db", backup)
    assert _content(home) == before
    assert maintenance.take(home / "node.db").row.daemon_gen == 3


def test_a_damaged_database_can_be_replaced(home: Path) -> None:
    """The case that backups are for."""
    corrupt.damage_page(home / "node.db", "agents")
    restore(home / "node.db", home.parent / "backup.db")
    assert names(home / "node.db") == ["ann"]


def test_into_a_home_without_a_database(home: Path) -> None:
    new = home.parent / "new"
    new.mkdir()
    restore(new / "node.db", home.parent / "backup.db")
    assert names(new / "node.db") == ["ann"]


def _restore_killed_at(step: int, home: Path) -> int:
    """The status of a real ``firm-daemon restore`` that kills itself at that step, if it comes so far."""
    argv = [sys.executable, "-I", "-m", "daemon", "restore", str(home.parent / "backup.db")]
    env = {**os.environ, "FIRM_HOME": str(home), "FIRM_CRASH_AT": f"restore:{step}"}
    return subprocess.run(argv, env=env, capture_output=True, check=False).returncode


def test_killed_at_any_step_the_home_goes_on_with_the_one_or_the_other_never_with_nothing(home: Path) -> None:
    seen: list[list[str]] = []
    for step in range(1, 99):
        status = _restore_killed_at(step, cut := _copy_of(home, f"home-{step}"))
        assert status in {-9, 0}
        again = _copy_of(cut, f"again-{step}")
        restore(again / "node.db", home.parent / "backup.db")
        assert _who_goes_on(again) == ["ann"]
        seen.append(_who_goes_on(cut))
        if status == 0:
            break
    else:
        raise AssertionError("the restore never came to its end")
    assert len(seen) > 6
    assert seen == sorted(seen, reverse=True), "once promised, a restore is not taken back"


def _who_goes_on(home: Path) -> list[str]:
    """Who is there after the next start. It is one of the two databases, and the other is where it belongs."""
    row: NodeRow = maintenance.take(home / "node.db").row
    found = names(home / "node.db")
    asides = [names(path) for path in _asides(home)]
    if found == ["ann"]:
        assert ["ann", "bob"] in asides
        assert json.loads((home / "generations.json").read_text())["floor"] == row.generation_floor
    else:
        assert (row.generation_floor, asides) == (0, [])
    assert [path.name for path in home.iterdir() if "restored" in path.name] == []
    return found


def _copy_of(home: Path, name: str) -> Path:
    """Another home, as a killed daemon leaves it: with a log and its index, so that each of its files is moved."""
    folder = home.parent / name
    shutil.copytree(home, folder)
    for suffix in ("-wal", "-shm"):
        folder.joinpath(f"node.db{suffix}").touch()
    return folder
