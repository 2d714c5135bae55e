"""A COMMIT that fails: what is said of the batch is what a crash right then would find, whatever failed."""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import apsw
import pytest

from client.protocol.agent import CreateAgent
from client.protocol.node import NodeStatus, ShowStatus
from client.protocol.refusals import Refusal
from store import faults
from store.database import Store
from tests.support.node import InProcessNode, in_process
from tests.support.stores import codes, names, names_in, put, serving, together
from tests.support.vfs import Call, Kind, ShimVfs, _ShimFile, shim_vfs

if TYPE_CHECKING:
    from typing_extensions import Buffer

SEEDS = range(20)
TRIO = [put("ann", size=9000), put("bob"), put("eve")]


@pytest.fixture
def vfs() -> Iterator[ShimVfs]:
    with shim_vfs() as shim:
        yield shim


def after_kill(vfs: ShimVfs, folder: Path) -> list[str]:
    """Who is there if the process is killed now."""
    target = folder / f"kill-{len(list(folder.iterdir()))}"
    vfs.process_loss(target)
    return names(target / "node.db")


def after_power_loss(vfs: ShimVfs, folder: Path) -> set[tuple[str, ...]]:
    """Who may be there if the power goes now."""
    found: set[tuple[str, ...]] = set()
    for seed in (None, *SEEDS):
        target = folder / f"dark-{len(list(folder.iterdir()))}"
        vfs.power_loss(target, seed)
        found.add(tuple(names(target / "node.db")))
    return found


class TestFsync:
    async def test_fails_once_and_the_batch_is_refused_by_name_and_absent_for_good(
        self, tmp_path: Path, vfs: ShimVfs
    ) -> None:
        async with serving(tmp_path / "node.db", vfs=vfs.name) as store:
            await store.write(put("before"))
            vfs.fail_next_sync()
            assert codes(await together(store, TRIO)) == ["STORE_IO_ERROR"] * 3
            assert store.writer.stopped is None
            assert store.look(names_in) == after_kill(vfs, tmp_path) == ["before"]
            assert after_power_loss(vfs, tmp_path) == {("before",)}
            assert codes(await together(store, TRIO)) == [None] * 3
            assert store.look(names_in) == after_kill(vfs, tmp_path) == ["before", "ann", "bob", "eve"]
            assert after_power_loss(vfs, tmp_path) == {("before", "ann", "bob", "eve")}

    async def test_that_fails_on_a_new_log_too(self, tmp_path: Path, vfs: ShimVfs) -> None:
        """Its first COMMIT syncs twice: the head of the log, then the frames."""
        for after in (0, 1):
            (tmp_path / f"{after}").mkdir()
            path = tmp_path / f"{after}/node.db"
            async with serving(path, vfs=vfs.name) as store:
                vfs.fail_next_sync(after=after)
                assert codes(await together(store, TRIO)) == ["STORE_IO_ERROR"] * 3
                assert codes(await together(store, TRIO)) == [None] * 3
            assert names(path) == ["ann", "bob", "eve"]

    async def test_keeps_failing_and_the_outcome_is_unknown_until_a_restart(self, tmp_path: Path) -> None:
        ends: list[tuple[str | None, str | None]] = []
        with gone_vfs() as vfs:
            async with serving(tmp_path / "node.db", vfs=vfs.name) as store:
                await store.write(put("before"))
                store.ended = lambda fault, stopped: ends.append((fault, stopped))
                vfs.going = True
                outcomes = await together(store, TRIO)
                assert codes(outcomes) == ["OUTCOME_UNKNOWN"] * 3
                assert after_kill(vfs, tmp_path) == ["before", "ann", "bob", "eve"]
                assert ("before",) in after_power_loss(vfs, tmp_path)
                vfs.back()
                # The disk works again, and still nothing is written: the next commit would decide unseen.
                (later,) = await together(store, [put("later")])
                assert codes([later]) == ["STORE_IO_ERROR"]
                assert later.lifted_by == outcomes[0].lifted_by
                assert "restart" in later.lifted_by
                assert after_kill(vfs, tmp_path) == ["before", "ann", "bob", "eve"]
                assert store.look(names_in) == await store.scan(names_in) == ["before"]
        assert ends == [("STORE_IO_ERROR", "OUTCOME_UNKNOWN"), (None, "OUTCOME_UNKNOWN")]
        async with serving(tmp_path / "node.db") as store:
            assert codes(await together(store, [put("later")])) == [None]


class Gone(ShimVfs):
    """A disk that goes away in the middle of a COMMIT: its sync fails, and every call after that."""

    going = False

    def called(self, call: Call, kind: Kind) -> None:
        if self.going and call == "sync":
            self.fail_writes()
            self.fail_next_sync(n=1_000_000)
        super().called(call, kind)

    def back(self) -> None:
        self.going = False
        self.heal()


@contextlib.contextmanager
def gone_vfs() -> Generator[Gone]:
    vfs = Gone()
    try:
        yield vfs
    finally:
        vfs.unregister()


async def status(node: InProcessNode) -> NodeStatus:
    return await node.ok(ShowStatus())


@pytest.mark.parametrize("end", ["kill", "power loss"])
async def test_after_a_restart_the_same_key_answers_truthfully(tmp_path: Path, end: str) -> None:
    """The batch may have come back or not. Asked again under its key, the request is done exactly once."""
    with gone_vfs() as vfs:
        async with in_process(tmp_path / "home", vfs=vfs.name) as node:
            await node.ok(CreateAgent(name="eve"))  # the log has its head: the next sync is the one of a COMMIT
            vfs.going = True
            assert codes([await node.ask(CreateAgent(name="ann"), key="k1")]) == ["OUTCOME_UNKNOWN"]
            said = await status(node)
            assert (said.ready, said.health, said.agents) == (False, "degraded", 1)
            troubles = {trouble.code: trouble for trouble in said.troubles}
            assert "restart the daemon" in troubles["OUTCOME_UNKNOWN"].lifted_by
            vfs.back()
            assert codes([await node.ask(CreateAgent(name="bob"), key="k2")]) == ["STORE_IO_ERROR"]
            (vfs.process_loss if end == "kill" else vfs.power_loss)(tmp_path / "after")
    (tmp_path / "after").chmod(0o700)
    async with in_process(tmp_path / "after") as node:
        reply = await node.send(CreateAgent(name="ann"), key="k1").frame()
        assert reply["replayed"] is (end == "kill")
        assert names(node.store.path) == ["eve", "ann"]
        said = await status(node)
        assert (said.ready, said.health, said.troubles) == (True, "ok", [])


class TestFull:
    async def test_at_commit_refuses_by_name_and_clears_with_the_next_good_one(
        self, tmp_path: Path, vfs: ShimVfs
    ) -> None:
        async with in_process(tmp_path / "home", vfs=vfs.name) as node:
            await node.ok(CreateAgent(name="ann"))
            vfs.full()
            refusal = await node.refused(CreateAgent(name="bob"), key="k1")
            assert codes([refusal]) == ["STORE_FULL"]
            assert "free space" in refusal.lifted_by
            said = await status(node)
            assert (said.ready, said.health, said.agents) == (True, "degraded", 1)
            assert [trouble.code for trouble in said.troubles] == ["STORE_FULL"]
            assert said.troubles[0].lifted_by == refusal.lifted_by
            vfs.heal()
            await node.ok(CreateAgent(name="bob"), key="k1")
            assert (await status(node)).troubles == []


class Torn(ShimVfs):
    """Where a write fails, half of it has been written: as on a disk that fills up in the middle."""

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:  # noqa: N802 — SQLite's
        kind = next((kind for kind in Kind if flags[0] & kind.value), None)
        if kind is None or name is None:
            return super().xOpen(name, flags)
        path = name.filename() if isinstance(name, apsw.URIFilename) else name
        with self.lock:
            return _TornFile(self, kind, path, name, flags)


class _TornFile(_ShimFile):
    def xWrite(self, data: Buffer, offset: int) -> None:  # noqa: N802 — SQLite's
        whole = bytes(data)
        try:
            super().xWrite(whole, offset)
        except apsw.Error:
            half = whole[: len(whole) // 2]
            apsw.VFSFile.xWrite(self, half, offset)
            self._image.write(half, offset)
            raise


@pytest.mark.parametrize("persists", [True, False], ids=["persists", "once"])
@pytest.mark.parametrize("torn", [False, True], ids=["whole", "torn"])
@pytest.mark.parametrize("code", [apsw.SQLITE_FULL, apsw.SQLITE_IOERR_WRITE], ids=["full", "io error"])
async def test_a_failed_write_never_left_a_whole_commit(
    tmp_path: Path, code: int, *, torn: bool, persists: bool
) -> None:
    """``faults.never_whole``, by experiment: the k-th write of a COMMIT fails, for every k there is."""
    vfs = Torn() if torn else ShimVfs()
    try:
        async with serving(tmp_path / "node.db", vfs=vfs.name) as store:
            await store.write(put("before"))
            writes = await _writes_of_a_commit(vfs, store)
            assert writes > 10
            known = store.look(names_in)
            for k in range(writes):
                vfs.fail("write", Kind.WAL, code, n=None if persists else 1, after=k)
                outcomes = await together(store, TRIO)
                assert codes(outcomes) == [faults.code_of(_error(code))] * 3, f"write {k}"
                assert store.writer.stopped is None, f"write {k}"
                assert after_kill(vfs, tmp_path) == known, f"write {k}"
                vfs.heal()
            assert codes(await together(store, TRIO)) == [None] * 3
            assert after_kill(vfs, tmp_path) == store.look(names_in) == [*known, "ann", "bob", "eve"]
    finally:
        vfs.unregister()


def _error(code: int) -> apsw.Error:
    error = apsw.exception_for(code)
    assert isinstance(error, apsw.Error)
    return error


async def _writes_of_a_commit(vfs: ShimVfs, store: Store) -> int:
    before = vfs.calls["write", Kind.WAL]
    await together(store, TRIO)
    return vfs.calls["write", Kind.WAL] - before


class ReadOnly(ShimVfs):
    """A disk that was mounted read-only under a running daemon: the kernel says EROFS to every write."""

    def xGetLastError(self) -> tuple[int, str]:  # noqa: N802
        return errno.EROFS, "Read-only file system"


async def test_a_disk_that_becomes_read_only_is_named_and_reads_go_on(tmp_path: Path) -> None:
    vfs = ReadOnly()
    try:
        async with in_process(tmp_path / "home", vfs=vfs.name) as node:
            await node.ok(CreateAgent(name="ann"))
            vfs.fail_writes()
            refusal = await node.refused(CreateAgent(name="bob"))
            assert codes([refusal]) == ["STORE_READ_ONLY"]
            assert "writable" in refusal.lifted_by
            said = await status(node)
            assert [trouble.code for trouble in said.troubles] == ["STORE_READ_ONLY"]
            assert (said.agents, said.ready) == (1, True)
            vfs.heal()
            await node.ok(CreateAgent(name="bob"))
            assert (await status(node)).troubles == []
    finally:
        vfs.unregister()


@pytest.mark.parametrize(
    ("error", "number", "code"),
    [
        (apsw.SQLITE_IOERR_WRITE, errno.ENOSPC, "STORE_FULL"),
        (apsw.SQLITE_IOERR_WRITE, errno.EDQUOT, "STORE_FULL"),
        (apsw.SQLITE_CANTOPEN, errno.EROFS, "STORE_READ_ONLY"),
        (apsw.SQLITE_IOERR_WRITE, errno.EIO, "STORE_IO_ERROR"),
        (apsw.SQLITE_BUSY, errno.EROFS, "STORE_BUSY"),
        (apsw.SQLITE_CORRUPT, errno.EROFS, "STORE_CORRUPT"),
        (apsw.SQLITE_FULL, errno.EROFS, "STORE_FULL"),
        (apsw.SQLITE_READONLY, 0, "STORE_READ_ONLY"),
        (apsw.SQLITE_NOTADB, 0, "STORE_CORRUPT"),
    ],
)
def test_the_system_s_own_error_counts_where_it_is_not_left_over_from_before(
    error: int, number: int, code: str
) -> None:
    assert faults.code_of(_error(error), number) == code


def test_a_refusal_of_the_store_always_says_what_lifts_it() -> None:
    for error in faults.STORAGE:
        refusal = faults.refusal(faults.code_of(error()))
        assert isinstance(refusal, Refusal)
        assert refusal.lifted_by
