"""Power loss through the real store, on a disk that forgets what was not synced."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio

from client.protocol.refusals import Refusal
from store import maintenance
from store.database import Store
from tests.support.stores import names, put, serving
from tests.support.vfs import ShimVfs, shim_vfs

WRITERS = 8
EACH = 12


async def _lose_power_while_writing(vfs: ShimVfs, store: Store, folder: Path) -> list[str]:
    """Writers that go on, and a look at the disk after every few answers: who was acknowledged and is not there."""
    acknowledged: list[str] = []
    missing: list[str] = []

    async def writer(number: int) -> None:
        for turn in range(EACH):
            name = f"w{number}-{turn}"
            assert not isinstance(await store.write(put(name, size=700)), Refusal)
            acknowledged.append(name)
            if len(acknowledged) % 7 == 0:
                await trio.to_thread.run_sync(lose, list(acknowledged))

    def lose(known: list[str]) -> None:
        for seed in (None, 1, 2):
            target = folder / f"{len(known)}-{seed}"
            vfs.power_loss(target, seed)
            missing.extend(sorted(set(known) - set(names(target / "node.db"))))

    async with trio.open_nursery() as nursery:
        for number in range(WRITERS):
            nursery.start_soon(writer, number)
    assert len(acknowledged) == WRITERS * EACH
    return missing


@pytest.mark.parametrize(("synchronous", "holds"), [("FULL", True), ("NORMAL", False)])
async def test_every_acknowledged_change_is_there_with_full_and_not_with_normal(
    tmp_path: Path, synchronous: str, *, holds: bool
) -> None:
    with shim_vfs() as vfs:
        async with serving(tmp_path / "node.db", vfs=vfs.name) as store:
            writer = store._connections[0]
            if not holds:
                writer.execute(f"PRAGMA synchronous = {synchronous}")
            assert writer.pragma("synchronous") == {"NORMAL": 1, "FULL": 2}[synchronous]
            writer.execute("PRAGMA wal_autocheckpoint = 40")  # so that the log starts anew in between
            missing = await _lose_power_while_writing(vfs, store, tmp_path)
    assert (missing == []) is holds


def test_a_daemon_generation_is_on_the_disk_before_anybody_hears_of_it(tmp_path: Path) -> None:
    """Were it not, the next daemon after a power loss would be taken for this one."""
    with shim_vfs() as vfs:
        first = maintenance.take(tmp_path / "node.db", vfs=vfs.name)
        assert (first.row.daemon_gen, first.unclean) == (1, False)
        vfs.power_loss(tmp_path / "after")
    again = maintenance.take(tmp_path / "after/node.db")
    assert (again.row.daemon_gen, again.unclean) == (2, True)
    assert again.row.node_id == first.row.node_id
