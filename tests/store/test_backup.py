"""Backup while the daemon runs: a whole database as of one moment, or no file at all."""

from __future__ import annotations

import contextlib
import os
import random
import stat
import sys
from pathlib import Path

import apsw
import pytest
import trio

from client.protocol.node import BackedUp
from client.protocol.refusals import Code, Refusal
from store.maintenance import back_up
from tests.support import corrupt, tmpfs
from tests.support.crash import dice, killed_at_random, worker
from tests.support.stores import faults_in, made, names, put, serving

_BACK_UP = """
import sys
from pathlib import Path
from store.maintenance import back_up
print("ready", flush=True)
while True:
    done = back_up(Path(sys.argv[1]), Path(sys.argv[2]))
    print(getattr(done, "code", "done"), getattr(done, "about", ""), flush=True)
    sys.stdin.readline()
"""


def _made(folder: Path, count: int = 1, size: int = 0) -> Path:
    return made(folder / "node.db", *(put(f"a{number}", size=size) for number in range(count)))


def _refused(done: BackedUp | Refusal) -> Refusal:
    assert isinstance(done, Refusal)
    assert done.lifted_by
    return done


async def test_under_load_it_is_a_whole_of_one_moment(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    acknowledged: list[str] = []
    ending = trio.Event()

    async with serving(tmp_path / "home/node.db") as store:

        async def writer(number: int) -> None:
            turn = 0
            while not ending.is_set():
                await store.write(put(f"w{number}-{turn}", size=500))
                acknowledged.append(f"w{number}-{turn}")
                turn += 1

        async with trio.open_nursery() as nursery:
            for number in range(8):
                nursery.start_soon(writer, number)
            for turn in range(6):
                target = tmp_path / f"backup-{turn}.db"
                known, before = set(acknowledged), store.seq
                done = await trio.to_thread.run_sync(back_up, store.path, target)
                assert isinstance(done, BackedUp)
                assert (done.file, done.size) == (str(target), target.stat().st_size)
                assert before <= done.seq <= store.seq
                found = names(target)
                assert known <= set(found)
                assert len(found) == done.seq
            ending.set()
    assert len(acknowledged) > 50


def test_only_the_owner_can_read_it_whatever_the_umask_and_nothing_else_is_left(tmp_path: Path) -> None:
    path = _made(tmp_path)
    (tmp_path / "elsewhere").mkdir()
    target = tmp_path / "elsewhere/b.db"
    former = os.umask(0)
    try:
        assert isinstance(back_up(path, target), BackedUp)
    finally:
        os.umask(former)
    assert list(target.parent.iterdir()) == [target]
    assert stat.S_IMODE(target.stat().st_mode) == 0o600


def test_it_can_be_opened_where_nothing_can_be_written(tmp_path: Path) -> None:
    """A copy in WAL mode could not be read from such a disk."""
    target = tmp_path / "b.db"
    back_up(_made(tmp_path), target)
    with contextlib.closing(apsw.Connection(str(target))) as connection:
        assert connection.pragma("journal_mode") == "delete"


@pytest.mark.parametrize("there", ["file", "folder", "dangling link"])
def test_what_is_there_is_not_overwritten(tmp_path: Path, there: str) -> None:
    path, target = _made(tmp_path), tmp_path / "b.db"
    if there == "file":
        target.write_text("precious")
    elif there == "folder":
        target.mkdir()
    else:
        target.symlink_to(tmp_path / "nowhere")
    before = sorted(tmp_path.iterdir())
    refusal = _refused(back_up(path, target))
    assert (refusal.code, refusal.about) == (Code.FILE_EXISTS, str(target))
    assert sorted(tmp_path.iterdir()) == before
    assert not target.is_file() or target.read_text() == "precious"


@pytest.mark.parametrize("where", ["missing/b.db", "file/b.db", "a" * 300])
def test_a_place_that_cannot_be_used_is_named(tmp_path: Path, where: str) -> None:
    path = _made(tmp_path)
    (tmp_path / "file").touch()
    before = sorted(tmp_path.iterdir())
    refusal = _refused(back_up(path, tmp_path / where))
    assert (refusal.code, refusal.about) == (Code.FILE_UNUSABLE, str(tmp_path / where))
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize("room", [0, 50_000])
def test_a_full_disk_is_named_and_nothing_stays_on_it(tmp_path: Path, room: int) -> None:
    """Full from the start, and full in the middle of the copy; once freed the same command works."""
    if reason := tmpfs.available():
        pytest.skip(reason)
    path = _made(tmp_path, 40, 3000)
    with tmpfs.small_disk(tmp_path / "disk") as disk:
        target = disk.path / "b.db"
        disk.fill(leave=room)
        argv = [sys.executable, "-I", "-c", _BACK_UP, str(path), str(target)]
        with worker(disk.command(argv)) as process:
            process.until(f"STORE_FULL {target}")
            assert [found.name for found in disk.outside.iterdir()] == ["ballast"]
            disk.free()
            process.say("again")
            process.until("done ")
        assert [found.name for found in disk.outside.iterdir()] == ["b.db"]


def test_a_damaged_database_is_not_copied_and_says_so(tmp_path: Path) -> None:
    path = _made(tmp_path, 40, 3000)
    corrupt.damage_page(path, "agents", page="last leaf")
    refusal = _refused(back_up(path, tmp_path / "b.db"))
    assert refusal.code == Code.STORE_CORRUPT
    assert [found.name for found in tmp_path.iterdir() if "b.db" in found.name] == []


def test_killed_in_the_middle_it_leaves_no_file_or_a_whole_one(tmp_path: Path) -> None:
    path = _made(tmp_path, 60, 60_000)
    moments: random.Random = dice()
    for turn in range(6):
        target = tmp_path / f"b{turn}.db"
        killed_at_random(
            [sys.executable, "-I", "-c", _BACK_UP, str(path), str(target)], moments, ready="ready", within=0.05
        )
        if target.exists():
            assert faults_in(target) == []
            assert len(names(target)) == 60
