"""Migrations: numbered, forward only, all or none; a file that cannot be brought here is left as it was."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import apsw
import pytest

import store
from store import maintenance, migrate, node
from store.database import Store
from store.migrate import NotOurs, TooNew
from tests.support.stores import made, names, put

ROOT = Path(store.__file__).parent.parent
#: A program with more migrations than ours opens the database that stands in its arguments.
_OPEN = """
import sys
sys.path.insert(0, sys.argv[1])
from pathlib import Path
from store import maintenance
assert Path(maintenance.__file__).is_relative_to(sys.argv[1])
try:
    print(maintenance.take(Path(sys.argv[2])).schema_version)
except maintenance.Unusable as error:
    print("UNUSABLE", error, error.lifted_by)
"""


def _open_with_later_program(folder: Path, database: Path, migrations: dict[str, str]) -> str:
    """What a later program says that has ``migrations`` more."""
    program = folder / f"program-{len(list(folder.iterdir()))}"
    for package in ("client", "store"):
        shutil.copytree(ROOT / package, program / package, ignore=shutil.ignore_patterns("__pycache__"))
    for name, text in migrations.items():
        (program / "store/migrations" / name).write_text(text)
    argv = [sys.executable, "-I", "-c", _OPEN, str(program), str(database)]
    return subprocess.run(argv, capture_output=True, text=True, check=True).stdout.strip()


def _state(database: Path) -> dict[str, bytes]:
    """What the files hold. To look at a database may leave an empty log behind."""
    found = {path.name: path.read_bytes() for path in database.parent.glob(f"{database.name}*")}
    return {name: content for name, content in found.items() if content and not name.endswith("-shm")}


def _number(later: int, what: str) -> str:
    return f"{migrate.known() + later:04}_{what}.sql"


def _schema(connection: apsw.Connection) -> list[tuple[apsw.SQLiteValue, ...]]:
    found = connection.execute("SELECT type, name, sql FROM sqlite_schema ORDER BY type, name").fetchall()
    return [*found, (connection.pragma("user_version"), connection.pragma("application_id"))]


def test_they_are_numbered_from_one_without_a_gap() -> None:
    numbers = [number for number, _ in migrate.steps()]
    assert numbers == list(range(1, len(numbers) + 1))
    files = [path.name for path in (ROOT / "store/migrations").iterdir() if path.suffix == ".sql"]
    assert len(files) == len(numbers)


def test_an_empty_file_becomes_what_one_step_after_the_other_makes_of_it() -> None:
    at_once, by_steps = apsw.Connection(":memory:"), apsw.Connection(":memory:")
    assert migrate.migrate(at_once) == migrate.known()
    migrate.functions(by_steps)
    for number, text in migrate.steps():
        by_steps.execute(text)
        by_steps.pragma("user_version", number)
        by_steps.pragma("application_id", migrate.APPLICATION_ID)
    assert _schema(at_once) == _schema(by_steps)
    assert migrate.migrate(at_once) == migrate.known()
    assert _schema(at_once) == _schema(by_steps)


#: The steps that make the table of effects anew, with what their new columns say of effects that are there.
ANEW: dict[int, tuple[apsw.SQLiteValue, ...]] = {
    7: (None, None, 0, "", None),
    9: (),
    11: (None, 0),
}


@pytest.mark.parametrize("step", ANEW)
def test_effects_are_kept_where_their_table_is_made_anew(step: int) -> None:
    with contextlib.closing(apsw.Connection(":memory:")) as connection:
        migrate.functions(connection)
        before: tuple[apsw.SQLiteValue, ...] = ()
        for number, text in migrate.steps():
            if number == step:
                named = ", ".join(str(name) for _, name, *_ in connection.execute("PRAGMA table_info(effects)"))
                marks = [f"'{name}'" if name in TEXTS else "7" for name in named.split(", ")]
                connection.execute("PRAGMA ignore_check_constraints = ON")
                connection.execute(f"INSERT INTO effects ({named}) VALUES ({', '.join(marks)})")  # noqa: S608
                (before,) = connection.execute("SELECT * FROM effects").fetchall()
            connection.execute(text)
            if number == step:
                break
        (after,) = connection.execute("SELECT * FROM effects").fetchall()
        assert after == (*before, *ANEW[step])


def test_a_cycle_of_before_that_failed_did_so_with_its_process() -> None:
    with contextlib.closing(apsw.Connection(":memory:")) as connection:
        migrate.functions(connection)
        connection.execute("PRAGMA ignore_check_constraints = ON")
        for number, text in migrate.steps():
            if number == max(ANEW):
                names = [str(name) for _, name, *_ in connection.execute("PRAGMA table_info(effects)")]
                row = {name: f"'{name}'" if name in TEXTS else "7" for name in names} | {"ending": "'provider_failed'"}
                columns, values = ", ".join(row), ", ".join(row.values())
                connection.execute(f"INSERT INTO effects ({columns}) VALUES ({values})")  # noqa: S608
            connection.execute(text)
        assert connection.execute("SELECT failure FROM effects").fetchall() == [("runner_error",)]


#: Columns of text of effects, before each of those steps.
TEXTS = {
    "id",
    "team_run_id",
    "session_id",
    "kind",
    "state",
    "certainty",
    "cwd",
    "pane",
    "boot_id",
    "readback",
    "created_by",
}


def test_a_new_store_has_one_node_with_ids_of_its_own(tmp_path: Path) -> None:
    rows = []
    for folder in ("one", "other"):
        (tmp_path / folder).mkdir()
        opened = maintenance.take(tmp_path / folder / "node.db")
        rows.append(opened.row)
        assert (opened.row.daemon_gen, opened.row.generation_floor, opened.unclean) == (1, 0, False)
    assert len({id_ for row in rows for id_ in (row.node_id, row.store_id)}) == 4


def test_every_statement_of_the_schema_page_is_the_database_s_own() -> None:
    page = (ROOT / "docs/schema.md").read_text()
    told = re.findall(r"^CREATE .*?(?=;$)", page, flags=re.DOTALL | re.MULTILINE)
    assert sorted(told) == sorted(migrate.schema())


def test_no_constraint_waits_for_the_commit() -> None:
    """A deferred one that fails would fail the COMMIT of every unit in the batch."""
    assert not [text for text in migrate.schema() if "DEFER" in text.upper()]


def test_every_table_is_strict() -> None:
    tables = [text for text in migrate.schema() if text.startswith("CREATE TABLE")]
    assert [text for text in tables if not text.endswith(("STRICT", "STRICT, WITHOUT ROWID"))] == []


def test_a_later_program_migrates_and_keeps_what_is_there(tmp_path: Path) -> None:
    path = made(tmp_path / "node.db", put("ann"))
    later = {
        _number(1, "more"): "ALTER TABLE agents ADD COLUMN mood text NOT NULL DEFAULT 'calm'",
        _number(2, "less"): "ALTER TABLE agents DROP COLUMN mood",
    }
    assert _open_with_later_program(tmp_path, path, later) == str(migrate.known() + 2)
    assert names(path) == ["ann"]


def test_a_newer_file_is_refused_and_not_touched(tmp_path: Path) -> None:
    path = made(tmp_path / "node.db", put("ann"))
    _open_with_later_program(tmp_path, path, {_number(1, "more"): "CREATE TABLE moods (mood text) STRICT"})
    before = _state(path)
    with pytest.raises(TooNew) as refused:
        maintenance.take(path)
    assert (refused.value.found, refused.value.known) == (migrate.known() + 1, migrate.known())
    assert _state(path) == before


@pytest.mark.parametrize("before_it", [{}, {_number(1, "works"): "CREATE TABLE places (place text) STRICT"}])
def test_a_step_that_fails_leaves_the_file_as_it_was(tmp_path: Path, before_it: dict[str, str]) -> None:
    """The steps before it too: else neither program could open the file any more."""
    path = made(tmp_path / "node.db", put("ann"))
    broken = "CREATE TABLE moods (mood text) STRICT; INSERT INTO moods VALUES ('calm'); DROP TABLE absent;"
    before = _state(path)
    later = {**before_it, _number(len(before_it) + 1, "broken"): broken}
    assert _open_with_later_program(tmp_path, path, later).startswith("UNUSABLE no such table: absent")
    assert _state(path) == before
    assert maintenance.take(path).row.daemon_gen == 2
    assert names(path) == ["ann"]


@pytest.mark.parametrize("theirs", ["tables", "application"])
def test_a_database_of_something_else_is_refused_and_not_touched(tmp_path: Path, theirs: str) -> None:
    path = tmp_path / "node.db"
    with contextlib.closing(apsw.Connection(str(path))) as connection:
        connection.execute("CREATE TABLE photos (x)")
        if theirs == "application":
            connection.pragma("application_id", 0x0B0B)
            connection.pragma("user_version", 1)
    before = _state(path)
    with pytest.raises(NotOurs):
        maintenance.take(path)
    assert _state(path) == before


@pytest.mark.parametrize("content", [b"no database at all, but long enough to look like one\n" * 40, b"short"])
def test_what_is_no_database_is_refused_and_not_touched(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "node.db"
    path.write_bytes(content)
    with pytest.raises(maintenance.Unusable, match="not a database"):
        maintenance.take(path)
    assert _state(path) == {"node.db": content}


def test_only_the_owner_can_read_the_files_whatever_the_umask(tmp_path: Path) -> None:
    path = tmp_path / "node.db"
    former = os.umask(0)
    try:
        maintenance.take(path)
        running = Store(path)
        modes = {found.name: stat.S_IMODE(found.stat().st_mode) for found in tmp_path.iterdir()}
        running.close()
    finally:
        os.umask(former)
    assert modes == {"node.db": 0o600, "node.db-wal": 0o600, "node.db-shm": 0o600}
    path.chmod(0o644)
    maintenance.take(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_an_end_that_was_not_clean_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "node.db"
    assert not maintenance.take(path).unclean
    assert maintenance.take(path).unclean
    with contextlib.closing(apsw.Connection(str(path))) as connection:
        maintenance.in_one(connection, node.leave)
    assert not maintenance.take(path).unclean
    assert maintenance.take(path).row.daemon_gen == 4


def test_results_of_before_are_of_the_checks_that_their_works_name(tmp_path: Path) -> None:
    """Sixth step. A result whose check is gone, or whose Work cannot be read, is of none."""
    connection = apsw.Connection(str(tmp_path / "old.db"))
    migrate.functions(connection)
    steps = dict(migrate.steps())
    for number in range(1, 6):
        connection.execute(steps[number])
    connection.pragma("foreign_keys", False)  # noqa: FBT003 — a value of SQLite
    for work, checks in (("a", '["unit=make unit", "lint=x=y"]'), ("b", '["unit=other"]'), ("c", "[")):
        connection.execute(
            "INSERT INTO works (id, version, team_id, team_run_id, title, context, criteria, phase, condition, "
            "claim_mode, eligible, required_role, priority, needs, checks, reason, result_summary, created_by, "
            "created_at, updated_at) VALUES (?, 1, 't', 'r', 'x', '', '[]', 'open', 'normal', 'team_claim', '[]', '', "
            "'normal', '[]', ?, '', '', 'operator', 1, 1)",
            (work, checks),
        )
        connection.execute(
            "INSERT INTO receipts VALUES (NULL, ?, ?, 1, 1, 'completed', '{}', ?, '', 'a', 1)",
            (f"of-{work}", work, "d" * 64),
        )
        for name in ("unit", "lint"):
            connection.execute("INSERT INTO check_results VALUES (?, ?, 1, 'tree', 'log', 1)", (f"of-{work}", name))
    connection.execute(steps[6])
    found = connection.execute("SELECT receipt_id, name, line FROM check_results ORDER BY 1, 2 DESC").fetchall()
    assert found == [
        ("of-a", "unit", "unit=make unit"),
        ("of-a", "lint", "lint=x=y"),
        ("of-b", "unit", "unit=other"),
        ("of-b", "lint", ""),
        ("of-c", "unit", ""),
        ("of-c", "lint", ""),
    ]
