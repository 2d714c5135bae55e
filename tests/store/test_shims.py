"""The test tools tell the truth: each is shown to find what it is for, and nothing else."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from tests.support.vfs import Kind, ShimVfs, shim_vfs


@pytest.fixture
def vfs() -> Iterator[ShimVfs]:
    with shim_vfs() as shim:
        yield shim


def _open(path: Path, vfs: ShimVfs, synchronous: str = "FULL") -> apsw.Connection:
    connection = apsw.Connection(str(path), vfs=vfs.name)
    _run(connection, f"PRAGMA journal_mode=WAL; PRAGMA synchronous={synchronous}")
    return connection


def _run(connection: apsw.Connection, sql: str) -> None:
    connection.execute(sql).fetchall()


def _in_transaction(connection: apsw.Connection) -> bool:
    return connection.in_transaction  # a call, since type checkers take an attribute for constant


def _prepared(path: Path, vfs: ShimVfs, synchronous: str = "FULL") -> apsw.Connection:
    """Return a connection to a database with the empty, durable table t."""
    connection = _open(path, vfs, synchronous)
    _run(connection, "CREATE TABLE IF NOT EXISTS t (x, filler); PRAGMA wal_checkpoint(TRUNCATE)")
    return connection


def _rows(path: Path) -> list[int]:
    """Return what the ordinary VFS finds in t after recovery; the file must be sound."""
    with contextlib.closing(apsw.Connection(str(path))) as connection:
        assert connection.execute("PRAGMA integrity_check").get == "ok"
        return [int(str(x)) for (x,) in connection.execute("SELECT x FROM t ORDER BY rowid")]


def _commit_100(connection: apsw.Connection) -> None:
    for x in range(100):
        connection.execute("INSERT INTO t VALUES (?, ?)", (x, "y" * 200))


class TestPowerLoss:
    @pytest.mark.parametrize(("synchronous", "kept"), [("FULL", 100), ("NORMAL", 0)])
    def test_keeps_all_commits_with_full_and_none_with_normal(
        self, tmp_path: Path, vfs: ShimVfs, synchronous: str, kept: int
    ) -> None:
        connection = _prepared(tmp_path / "a.db", vfs, synchronous)
        _commit_100(connection)
        vfs.power_loss(tmp_path / "after")
        assert _rows(tmp_path / "after/a.db") == list(range(kept))
        connection.close()

    def test_full_holds_whatever_unsynced_sectors_survive(self, tmp_path: Path, vfs: ShimVfs) -> None:
        connection = _prepared(tmp_path / "a.db", vfs)
        _run(connection, "PRAGMA wal_autocheckpoint=20")
        _commit_100(connection)
        _run(connection, "PRAGMA cache_size=5; BEGIN")
        connection.executemany("INSERT INTO t VALUES (?, ?)", [(x, "z" * 900) for x in range(100, 200)])
        for seed in range(60):
            vfs.power_loss(tmp_path / f"after-{seed}", seed)
            assert _rows(tmp_path / f"after-{seed}/a.db") == list(range(100)), f"seed {seed}"
        _run(connection, "ROLLBACK")
        connection.close()

    def test_normal_may_keep_some_but_never_with_a_hole(self, tmp_path: Path, vfs: ShimVfs) -> None:
        connection = _prepared(tmp_path / "a.db", vfs, "NORMAL")
        _commit_100(connection)
        kept = set()
        for seed in range(60):
            vfs.power_loss(tmp_path / f"after-{seed}", seed)
            found = _rows(tmp_path / f"after-{seed}/a.db")
            assert found == list(range(len(found))), f"seed {seed}"
            kept.add(len(found))
        assert min(kept) == 0
        assert max(kept) > 0
        connection.close()

    def test_a_database_that_was_just_created_is_there_after_its_first_full_commit(
        self, tmp_path: Path, vfs: ShimVfs
    ) -> None:
        connection = _open(tmp_path / "a.db", vfs)
        _run(connection, "CREATE TABLE t (x, filler); INSERT INTO t VALUES (7, '')")
        vfs.power_loss(tmp_path / "after")
        assert _rows(tmp_path / "after/a.db") == [7]
        connection.close()

    def test_what_was_found_at_first_open_is_durable(self, tmp_path: Path, vfs: ShimVfs) -> None:
        with shim_vfs() as earlier:
            connection = _prepared(tmp_path / "a.db", earlier, "NORMAL")
            _commit_100(connection)
            earlier.process_loss(tmp_path / "copy")
            connection.close()
        reopened = _prepared(tmp_path / "copy/a.db", vfs)
        vfs.power_loss(tmp_path / "after")
        assert _rows(tmp_path / "after/a.db") == list(range(100))
        reopened.close()

    def test_a_wal_deleted_at_close_may_come_back_and_does_no_harm(self, tmp_path: Path, vfs: ShimVfs) -> None:
        connection = _prepared(tmp_path / "a.db", vfs)
        _commit_100(connection)
        connection.close()
        assert not (tmp_path / "a.db-wal").exists()
        vfs.power_loss(tmp_path / "after")
        assert (tmp_path / "after/a.db-wal").exists()
        assert _rows(tmp_path / "after/a.db") == list(range(100))

    def test_a_killed_process_keeps_all_even_with_normal(self, tmp_path: Path, vfs: ShimVfs) -> None:
        connection = _prepared(tmp_path / "a.db", vfs, "NORMAL")
        _commit_100(connection)
        vfs.process_loss(tmp_path / "after")
        assert _rows(tmp_path / "after/a.db") == list(range(100))
        connection.close()

    def test_a_change_behind_the_shim_is_noticed_at_the_next_open(self, tmp_path: Path, vfs: ShimVfs) -> None:
        _prepared(tmp_path / "a.db", vfs).close()
        with (tmp_path / "a.db").open("ab") as file:
            file.write(bytes(4096))
        with pytest.raises(apsw.CantOpenError, match="changed without the shim"):
            _open(tmp_path / "a.db", vfs)


class TestFsyncErrorAtCommit:
    """Measured trap: the batch is neither there nor gone until something further has been committed."""

    def _failed_batch(self, path: Path, vfs: ShimVfs) -> apsw.Connection:
        connection = _prepared(path, vfs)
        reader = _open(path, vfs)
        _run(connection, "INSERT INTO t VALUES (-1, 'sound')")
        _run(connection, "BEGIN IMMEDIATE")
        connection.executemany("INSERT INTO t VALUES (?, ?)", [(x, "y" * 500) for x in range(39)])
        vfs.fail_next_sync()
        with pytest.raises(apsw.IOError) as raised:
            _run(connection, "COMMIT")
        codes = vars(raised.value)
        assert (codes["result"], codes["extendedresult"]) == (apsw.SQLITE_IOERR, apsw.SQLITE_IOERR_FSYNC)
        assert not connection.in_transaction
        assert reader.execute("SELECT count(*) FROM t").get == 1
        reader.close()
        return connection

    def test_a_crash_right_then_brings_the_rows_back(self, tmp_path: Path, vfs: ShimVfs) -> None:
        connection = self._failed_batch(tmp_path / "a.db", vfs)
        vfs.process_loss(tmp_path / "after")
        assert _rows(tmp_path / "after/a.db") == [-1, *range(39)]
        connection.close()

    def test_one_further_small_commit_removes_them_for_good(self, tmp_path: Path, vfs: ShimVfs) -> None:
        connection = self._failed_batch(tmp_path / "a.db", vfs)
        _run(connection, "INSERT INTO t VALUES (-2, 'proof')")
        vfs.process_loss(tmp_path / "killed")
        assert _rows(tmp_path / "killed/a.db") == [-1, -2]
        vfs.power_loss(tmp_path / "dark")
        assert _rows(tmp_path / "dark/a.db") == [-1, -2]
        for seed in range(60):
            vfs.power_loss(tmp_path / f"dark-{seed}", seed)
            assert _rows(tmp_path / f"dark-{seed}/a.db") == [-1, -2], f"seed {seed}"
        connection.close()

    def test_a_power_loss_right_then_may_go_either_way_but_not_halfway(self, tmp_path: Path, vfs: ShimVfs) -> None:
        connection = self._failed_batch(tmp_path / "a.db", vfs)
        vfs.power_loss(tmp_path / "dark")
        assert _rows(tmp_path / "dark/a.db") == [-1]
        seen = set()
        for seed in range(60):
            vfs.power_loss(tmp_path / f"dark-{seed}", seed)
            seen.add(tuple(_rows(tmp_path / f"dark-{seed}/a.db")))
        assert seen == {(-1,), (-1, *range(39))}
        connection.close()


class TestFullInsideAUnit:
    """Measured trap: FULL or IOERR in one savepoint ends the whole transaction."""

    @pytest.mark.parametrize("error", [apsw.FullError, apsw.IOError])
    def test_ends_the_transaction_and_the_next_savepoint_commits_by_itself(
        self, tmp_path: Path, vfs: ShimVfs, error: type[apsw.Error]
    ) -> None:
        connection = _prepared(tmp_path / "a.db", vfs)
        reader = _open(tmp_path / "a.db", vfs)
        _run(connection, "PRAGMA cache_size=5; BEGIN IMMEDIATE")
        _run(connection, "SAVEPOINT unit; INSERT INTO t VALUES (1, ''); RELEASE unit")
        assert _in_transaction(connection)
        _run(connection, "SAVEPOINT unit")
        vfs.full() if error is apsw.FullError else vfs.fail_writes()
        with pytest.raises(error):  # more pages than the cache holds: SQLite spills into the WAL
            connection.executemany("INSERT INTO t VALUES (2, zeroblob(?))", [(3000,)] * 100)
        assert not _in_transaction(connection)
        with pytest.raises(apsw.SQLError, match="no such savepoint"):
            _run(connection, "ROLLBACK TO unit")
        vfs.heal()
        _run(connection, "SAVEPOINT unit; INSERT INTO t VALUES (3, ''); RELEASE unit")
        assert reader.execute("SELECT group_concat(x) FROM t").get == "3"  # before any COMMIT, without unit 1
        reader.close()
        connection.close()


class TestFaults:
    def test_strike_after_k_calls_and_n_times(self, tmp_path: Path, vfs: ShimVfs) -> None:
        connection = _prepared(tmp_path / "a.db", vfs)
        _run(connection, "INSERT INTO t VALUES (0, '')")
        before = vfs.calls["sync", Kind.WAL]
        vfs.fail_next_sync(n=2, after=1)
        outcomes = []
        for x in range(1, 5):
            try:
                connection.execute("INSERT INTO t VALUES (?, '')", (x,))
                outcomes.append("kept")
            except apsw.IOError:
                outcomes.append("failed")
        assert outcomes == ["kept", "failed", "failed", "kept"]
        assert vfs.calls["sync", Kind.WAL] - before == 4
        connection.close()
        assert _rows(tmp_path / "a.db") == [0, 1, 4]

    def test_leave_an_automatic_checkpoint_alone(self, tmp_path: Path, vfs: ShimVfs) -> None:
        """SQLite swallows an error there; raised from the shim it would look like a failed COMMIT."""
        connection = _prepared(tmp_path / "a.db", vfs)
        _run(connection, "PRAGMA wal_autocheckpoint=1; INSERT INTO t VALUES (0, '')")
        vfs.fail_next_sync(after=2)  # the restarted WAL's header and the COMMIT are those two
        _run(connection, "INSERT INTO t VALUES (1, '')")
        vfs.heal()
        connection.close()
        assert _rows(tmp_path / "a.db") == [0, 1]

    def test_any_call_of_any_kind(self, tmp_path: Path, vfs: ShimVfs) -> None:
        connection = _prepared(tmp_path / "a.db", vfs)
        _run(connection, "INSERT INTO t VALUES (0, '')")
        vfs.fail("sync", Kind.MAIN, apsw.SQLITE_IOERR_FSYNC)
        with pytest.raises(apsw.IOError):
            _run(connection, "PRAGMA wal_checkpoint(TRUNCATE)")
        _run(connection, "PRAGMA wal_checkpoint(TRUNCATE)")
        connection.close()

    def test_reach_a_worker_thread(self, tmp_path: Path, vfs: ShimVfs) -> None:
        connection = _prepared(tmp_path / "a.db", vfs)
        failed: list[int] = []

        def work() -> None:
            for x in range(200):
                try:
                    connection.execute("INSERT INTO t VALUES (?, '')", (x,))
                except apsw.IOError:
                    failed.append(x)

        vfs.fail_next_sync(n=3, after=50)
        worker = threading.Thread(target=work)
        worker.start()
        for n in range(20):
            vfs.power_loss(tmp_path / f"after-{n}")
        worker.join()
        connection.close()
        assert len(failed) == 3
        assert _rows(tmp_path / "a.db") == [x for x in range(200) if x not in failed]

    def test_end_with_the_context(self) -> None:
        with shim_vfs() as one, shim_vfs() as two:
            assert one.name != two.name
            assert {one.name, two.name} <= set(apsw.vfs_names())
        assert not {one.name, two.name} & set(apsw.vfs_names())
