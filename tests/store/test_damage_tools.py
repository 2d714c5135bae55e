"""The test tools tell the truth, second half: killed workers, a small real disk, damaged files."""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from tests.support import corrupt, tmpfs
from tests.support.crash import Worker, WorkerEnded, dice, killed_at, killed_at_random, worker


def _python(script: str, *args: str | Path) -> list[str]:
    return [sys.executable, "-I", "-c", script, *map(str, args)]


_COMMIT_FOREVER = """
import apsw, itertools, sys
connection = apsw.Connection(sys.argv[1])
connection.execute("PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; CREATE TABLE t (x)").fetchall()
print("ready", flush=True)
for x in itertools.count():
    connection.execute("INSERT INTO t VALUES (?)", (x,))
    print(x, flush=True)
"""
_TWO_STEPS = """
import pathlib, sys
print("before", flush=True); sys.stdin.readline()
pathlib.Path(sys.argv[1]).touch()
print("after", flush=True); sys.stdin.readline()
"""
_INSERT_ON_DEMAND = """
import apsw, sys
connection = apsw.Connection(sys.argv[1])
connection.execute("PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL").fetchall()
connection.execute("CREATE TABLE IF NOT EXISTS t (x)").fetchall()
print("ready", flush=True)
for line in sys.stdin:
    try:
        connection.execute("INSERT INTO t VALUES (zeroblob(?))", (int(line),))
        print("kept", flush=True)
    except apsw.FullError:
        print("full", flush=True)
"""


def _descriptors() -> Counter[str]:
    return Counter(str(entry.readlink()) for entry in Path("/proc/self/fd").iterdir() if entry.is_symlink())


class TestCrash:
    @pytest.mark.parametrize("how", ["marker", "random"])
    def test_what_was_acknowledged_before_the_kill_is_there(self, tmp_path: Path, how: str) -> None:
        argv = _python(_COMMIT_FOREVER, tmp_path / "a.db")
        said = killed_at("20", argv) if how == "marker" else killed_at_random(argv, dice(), ready="ready")
        with contextlib.closing(apsw.Connection(str(tmp_path / "a.db"))) as connection:
            found = [x for (x,) in connection.execute("SELECT x FROM t")]
        assert said[0] == "ready"
        assert found[: len(said) - 1] == [int(x) for x in said[1:]]

    def test_a_worker_dies_exactly_where_it_stands(self, tmp_path: Path) -> None:
        done = tmp_path / "done"
        assert killed_at("before", _python(_TWO_STEPS, done)) == ["before"]
        assert not done.exists()
        with worker(_python(_TWO_STEPS, done)) as one:
            one.until("before")
            one.say("go on")
            assert one.until("after") == ["after"]
            assert one.kill() == ["before", "after"]
        assert done.exists()

    def test_a_torn_line_is_no_acknowledgement(self) -> None:
        script = "import os, sys; os.write(1, b'whole\\nto'); sys.stdin.readline()"
        assert killed_at("whole", _python(script)) == ["whole"]

    def test_more_output_than_a_pipe_holds_is_no_obstacle(self) -> None:
        script = "import sys; print('x' * 999_999); print('all', flush=True); sys.stdin.readline()"
        assert [len(line) for line in killed_at("all", _python(script))] == [999_999, 3]

    def test_a_last_line_is_heard_though_the_worker_is_gone(self) -> None:
        with worker(_python("print('done')")) as one:
            assert one.until("done") == ["done"]
            assert one.finish() == 0
            with pytest.raises(WorkerEnded):
                one.kill()

    def test_an_end_of_its_own_is_not_taken_for_a_crash(self) -> None:
        broken = _python("print('ready', flush=True); raise SystemExit('out of luck')")
        with pytest.raises(WorkerEnded, match="out of luck") as raised:
            killed_at("never", broken)
        assert raised.value.status == 1
        with pytest.raises(WorkerEnded), worker(broken) as one:
            one.run_for(20)
        with worker(broken) as one:
            assert one.finish() == 1
            assert one.lines == ["ready"]

    def test_deadlines_end_every_wait(self) -> None:
        with worker(_python("import sys; sys.stdin.readline()")) as one:
            with pytest.raises(TimeoutError):
                one.until("never", seconds=0.01)
            with pytest.raises(TimeoutError):
                one.finish(seconds=0.01)
            one.say("enough")
            assert one.finish() == 0

    def test_the_dead_are_reaped_and_no_descriptor_is_left(self) -> None:
        before = _descriptors()
        with worker(_python("import sys; sys.stdin.readline()")) as one:
            pid = one.pid
        with pytest.raises(ChildProcessError):
            os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG)
        assert not _descriptors() - before

    def test_a_child_that_holds_the_pipe_open_does_not_hold_up_the_kill(self) -> None:
        script = (
            "import subprocess, sys; child = subprocess.Popen(['sleep', '60'])\n"
            "print(child.pid); print('ready', flush=True); sys.stdin.readline()"
        )
        with worker(_python(script)) as one:
            child = int(one.until("ready")[0])
            try:
                assert one.kill()[-1] == "ready"
            finally:
                os.kill(child, signal.SIGKILL)

    def test_a_seed_can_be_given_again(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        first = dice().random()
        name, _, seed = capsys.readouterr().out.strip().partition("=")
        monkeypatch.setenv(name, seed)
        assert dice().random() == first


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[tmpfs.SmallDisk]:
    if reason := tmpfs.available():
        pytest.skip(reason)
    with tmpfs.small_disk(tmp_path / "disk", 1 << 20) as small:
        yield small


@pytest.fixture
def inserter(disk: tmpfs.SmallDisk) -> Iterator[Worker]:
    with worker(disk.command(_python(_INSERT_ON_DEMAND, disk.path / "a.db"))) as one:
        one.until("ready")
        yield one


class TestSmallDisk:
    def test_is_really_full_for_sqlite_and_takes_again_when_freed(
        self, disk: tmpfs.SmallDisk, inserter: Worker
    ) -> None:
        def insert(expected: str) -> None:
            inserter.say("100000")
            assert inserter.until(expected) == [expected]

        insert("kept")
        disk.fill()
        insert("full")
        disk.free()
        insert("kept")

    def test_is_seen_only_inside_and_the_command_keeps_its_pid(self, disk: tmpfs.SmallDisk, inserter: Worker) -> None:
        assert not list(disk.path.iterdir())
        assert (disk.outside / "a.db").exists()
        assert Path(f"/proc/{inserter.pid}/cmdline").read_bytes().startswith(os.fsencode(sys.executable))
        assert Path(f"/proc/{inserter.pid}/cwd").readlink() == Path.cwd()

    def test_can_be_filled_up_to_a_rest(self, disk: tmpfs.SmallDisk) -> None:
        disk.fill(leave=3 * 4096)
        assert disk.free_bytes() == 3 * 4096
        disk.fill()
        assert disk.free_bytes() == 0
        with pytest.raises(OSError, match="No space left"):
            (disk.outside / "one").write_bytes(b"x")
        disk.free()
        assert disk.free_bytes() == 1 << 20

    def test_becomes_read_only_when_nobody_writes(self, disk: tmpfs.SmallDisk, inserter: Worker) -> None:
        with pytest.raises(OSError, match="busy") as raised:
            disk.read_only()
        assert raised.value.errno == errno.EBUSY
        inserter.kill()
        disk.read_only()
        with worker(disk.command(_python(_INSERT_ON_DEMAND, disk.path / "a.db"))) as again:
            again.until("ready")  # to open such a database is no error yet
            again.say("1")
            with pytest.raises(WorkerEnded, match=r"apsw\.ReadOnlyError"):
                again.until("kept")
        disk.writable()
        (disk.outside / "one").write_bytes(b"x")

    def test_goes_with_its_context(self, tmp_path: Path, disk: tmpfs.SmallDisk) -> None:
        with tmpfs.small_disk(tmp_path / "other", 1 << 16) as other:
            (other.outside / "one").touch()
            assert not (disk.outside / "one").exists()
        assert not other.outside.exists()


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = tmp_path / "a.db"
    with contextlib.closing(apsw.Connection(str(path))) as connection:
        connection.execute(
            "PRAGMA journal_mode=WAL;"
            "CREATE TABLE other (x); INSERT INTO other VALUES (1);"
            "CREATE TABLE t (id INTEGER PRIMARY KEY, body BLOB NOT NULL CHECK (body != x'00'), name TEXT,"
            " other REFERENCES other (x)) STRICT;".replace("other REF", "other INTEGER REF")
        ).fetchall()
        connection.executemany("INSERT INTO t VALUES (?, ?, 'n', NULL)", [(x, b"y" * 300) for x in range(99)])
        connection.execute(
            "CREATE TRIGGER frozen BEFORE UPDATE ON t BEGIN SELECT RAISE(ABORT, 'frozen'); END"
        ).fetchall()
    return path


def _ask(path: Path, sql: str) -> object:
    with contextlib.closing(apsw.Connection(str(path))) as connection:
        return connection.execute(sql).get


class TestDamage:
    def test_a_bad_root_takes_its_table_along_and_no_other(self, database: Path) -> None:
        damage = corrupt.damage_page(database, "t")
        with pytest.raises(apsw.CorruptError):
            _ask(database, "SELECT name FROM t WHERE id = 50")
        assert _ask(database, "SELECT x FROM other") == 1
        corrupt.invert(database, damage.offset, damage.length)
        assert _ask(database, "PRAGMA integrity_check") == "ok"

    def test_a_bad_leaf_takes_only_its_rows_along(self, database: Path) -> None:
        corrupt.damage_page(database, "t", page="last leaf")
        with pytest.raises(apsw.CorruptError):
            _ask(database, "SELECT name FROM t WHERE id = 98")
        assert _ask(database, "SELECT name FROM t WHERE id = 1") == "n"

    def test_bad_cells_may_pass_unnoticed(self, database: Path) -> None:
        corrupt.damage_page(database, "t", page="first leaf", part="cells")
        assert _ask(database, "SELECT count(*) FROM t WHERE body != CAST(printf('%.300c', 'y') AS BLOB)") == 1

    def test_an_impossible_value_gets_past_check_trigger_and_foreign_key(self, database: Path) -> None:
        corrupt.overwrite(database, "t", "body", b"\0", where="id = ?", bindings=(7,))
        corrupt.overwrite(database, "t", "other", 404, where="id = 8")
        assert _ask(database, "SELECT body FROM t WHERE id = 7") == b"\0"
        assert _ask(database, "SELECT other FROM t WHERE id = 8") == 404
        assert "CHECK" in str(_ask(database, "PRAGMA integrity_check"))

    def test_text_may_be_no_text(self, database: Path) -> None:
        corrupt.overwrite_text(database, "t", "name", b"\xff\xfe", where="id = 7")
        with pytest.raises(UnicodeDecodeError):
            _ask(database, "SELECT name FROM t WHERE id = 7")

    def test_exactly_one_row_or_none(self, database: Path) -> None:
        with pytest.raises(ValueError, match="99 rows"):
            corrupt.overwrite(database, "t", "body", b"\0", where="true")
        assert _ask(database, "SELECT count(*) FROM t WHERE body = x'00'") == 0

    def test_an_open_database_is_refused(self, database: Path) -> None:
        with contextlib.closing(apsw.Connection(str(database))) as connection:
            connection.execute("INSERT INTO other VALUES (2)").fetchall()
            with pytest.raises(ValueError, match="close every connection"):
                corrupt.damage_page(database, "t")
