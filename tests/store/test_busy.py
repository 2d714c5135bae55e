"""Another program has the database open: reads of it hold nobody up, its write lock is refused by name in time."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest
import trio

from store import maintenance
from store.sql import Sql
from store.tx import Tx
from tests.support.crash import Worker, worker
from tests.support.stores import codes, names, names_in, put, serving, together

_HOLD = """
import apsw, sys
connection = apsw.Connection(sys.argv[1])
for line in sys.stdin:
    connection.execute(line).fetchall()
    print("done", flush=True)
"""


@pytest.fixture
def other(tmp_path: Path) -> Iterator[Worker]:
    """A program that runs every line it is given as SQL, against the store of this test."""
    maintenance.take(tmp_path / "node.db")
    with worker([sys.executable, "-I", "-c", _HOLD, str(tmp_path / "node.db")]) as process:
        yield process


def _do(other: Worker, text: str) -> None:
    other.say(text)
    other.until("done")


async def test_a_held_write_lock_is_refused_by_name_and_reads_go_on(tmp_path: Path, other: Worker) -> None:
    ends: list[tuple[str | None, str | None]] = []
    async with serving(tmp_path / "node.db") as store:
        store.ended = lambda fault, stopped: ends.append((fault, stopped))
        _do(other, "BEGIN IMMEDIATE")
        outcomes: list[object] = []

        async def ask() -> None:
            outcomes.extend(await together(store, [put("ann"), put("bob")]))

        with trio.fail_after(20):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(ask)
                assert store.look(names_in) == await store.scan(names_in) == []
        assert codes(outcomes) == ["STORE_BUSY"] * 2
        _do(other, "ROLLBACK")
        assert codes(await together(store, [put("ann")])) == [None]
    assert ends == [("STORE_BUSY", None), (None, None)]
    assert names(tmp_path / "node.db") == ["ann"]


async def test_units_that_run_one_by_one_do_not_each_wait_for_the_lock(tmp_path: Path, other: Worker) -> None:
    """The other program takes it the moment a lost transaction lets go of it."""
    async with serving(tmp_path / "node.db") as store:
        writer = store._connections[0]

        def lose(tx: Tx) -> None:
            writer.create_scalar_function("stop", lambda *_: writer.interrupt() or 0)  # type: ignore[func-returns-value]
            with contextlib.suppress(apsw.InterruptError):
                tx.rows(Sql("INSERT INTO quarantine SELECT value + stop(), '', 0 FROM json_each('[1,2,3]')"))
            _do(other, "BEGIN IMMEDIATE")

        with trio.fail_after(10):  # each for itself, twenty would wait forty seconds
            outcomes = await together(store, [put("ann"), lose, *(put(f"a{n}") for n in range(18))])
        assert codes(outcomes) == ["STORE_BUSY"] * 20
        _do(other, "ROLLBACK")
        assert codes(await together(store, [put("ann")])) == [None]


async def test_a_reader_that_stays_holds_nobody_up(tmp_path: Path, other: Worker) -> None:
    async with serving(tmp_path / "node.db") as store:
        _do(other, "BEGIN; SELECT * FROM node;")
        assert codes(await together(store, [put("ann")])) == [None]
        assert store.look(names_in) == ["ann"]
        _do(other, "ROLLBACK")


def test_a_daemon_does_not_start_behind_a_held_write_lock_and_says_why(tmp_path: Path, other: Worker) -> None:
    _do(other, "BEGIN IMMEDIATE")
    with pytest.raises(maintenance.Unusable) as refused:
        maintenance.take(tmp_path / "node.db")
    assert "close the other program" in refused.value.lifted_by
    _do(other, "ROLLBACK")
    assert maintenance.take(tmp_path / "node.db").row.daemon_gen == 2
