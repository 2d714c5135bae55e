"""SQLite ends the whole transaction by itself: units run again one by one, and each is applied exactly once."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest

from client.protocol.refusals import Code
from store.database import Store
from store.sql import Sql
from store.tx import Tx
from tests.support.stores import Announcements, codes, faults_in, names_in, put, serving, together
from tests.support.vfs import Kind, ShimVfs, shim_vfs

#: Larger than the cache that ``small_cache`` leaves: SQLite spills into the log while the unit runs.
BIG = 400_000
_PAGES = "PRAGMA page_count"


@pytest.fixture
def vfs() -> Iterator[ShimVfs]:
    with shim_vfs() as shim:
        yield shim
        shim.heal()


@pytest.fixture
async def store(tmp_path: Path, vfs: ShimVfs) -> AsyncIterator[Store]:
    async with serving(tmp_path / "node.db", vfs=vfs.name) as running:
        _writer(running).execute("PRAGMA cache_size = 5")
        yield running
        vfs.heal()
    assert faults_in(tmp_path / "node.db") == []


def _writer(store: Store) -> apsw.Connection:
    return store._connections[0]


class Runs:
    """Counts how often each unit ran."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def of(self, name: str, work: Callable[[Tx], Any]) -> Callable[[Tx], Any]:
        def run(tx: Tx) -> Any:  # noqa: ANN401 — whatever the unit answers
            self.seen.append(name)
            return work(tx)

        return run


def _hold_to(store: Store, more: int) -> None:
    """Let the database grow by so many pages and no further."""
    writer = _writer(store)
    writer.execute(f"PRAGMA max_page_count = {int(str(writer.execute(_PAGES).get)) + more}")


@contextlib.contextmanager
def _full(store: Store, _: ShimVfs) -> Generator[Callable[[Tx], Any]]:
    _hold_to(store, 20)
    yield put("lost", size=BIG)
    writer = _writer(store)
    writer.execute("PRAGMA max_page_count = 1073741823")


@contextlib.contextmanager
def _io_error(_: Store, vfs: ShimVfs) -> Generator[Callable[[Tx], Any]]:
    def fail(tx: Tx) -> None:
        vfs.fail_writes()
        try:
            put("lost", size=BIG)(tx)
        finally:
            vfs.heal()

    yield fail


@contextlib.contextmanager
def _interrupt(store: Store, _: ShimVfs) -> Generator[Callable[[Tx], Any]]:
    writer = _writer(store)

    def stop(*_: apsw.SQLiteValue) -> None:
        writer.interrupt()

    writer.create_scalar_function("stop", stop)
    many = Sql("INSERT INTO quarantine SELECT coalesce(stop(), value), '', 0 FROM json_each('[1,2,3]')")
    yield lambda tx: tx.rows(many)


_ENDS = {"full": (_full, "STORE_FULL"), "io error": (_io_error, "STORE_IO_ERROR"), "interrupt": (_interrupt, None)}


@pytest.mark.parametrize("k", range(4))
@pytest.mark.parametrize("how", _ENDS)
async def test_neighbours_are_each_applied_exactly_once(store: Store, vfs: ShimVfs, how: str, k: int) -> None:
    """Whichever unit of the batch it is: those before it run twice, it is refused, those behind it run as ever."""
    announced, runs, (lose, code) = Announcements(), Runs(), _ENDS[how]
    store.committed = announced
    with lose(store, vfs) as lost:
        works = {f"a{n}": put(f"a{n}") for n in range(3)}
        ordered = list(works.items())
        ordered.insert(k, ("lost", lost))
        outcomes = await together(store, [runs.of(name, work) for name, work in ordered])
    assert store.look(names_in) == ["a0", "a1", "a2"]
    assert codes(outcomes) == [None] * k + [code or Code.STORE_IO_ERROR] + [None] * (3 - k)
    first = [name for name, _ in ordered[: k + 1]]
    assert runs.seen == [*first, *(name for name, _ in ordered)]
    assert [stream for stream in announced.streams if "/" in stream] == [f"agent/{o.id}" for o in outcomes if _kept(o)]
    assert store.seq == 3


def _kept(outcome: Any) -> bool:  # noqa: ANN401 — as above
    return hasattr(outcome, "name")


async def test_a_fault_that_is_over_loses_nothing(store: Store, vfs: ShimVfs) -> None:
    """The unit that met it runs again too, and is kept."""
    once = iter([True])

    def unlucky(tx: Tx) -> None:
        if next(once, False):
            vfs.fail_writes(n=1)
        put("unlucky", size=BIG)(tx)

    assert codes(await together(store, [put("ann"), unlucky, put("bob")])) == [None] * 3
    assert store.look(names_in) == ["ann", "unlucky", "bob"]


async def test_the_next_savepoint_never_commits_alone(store: Store, vfs: ShimVfs) -> None:
    """Seen from another connection after every unit: nothing of a batch before its COMMIT."""
    seen: list[list[str]] = []
    look = Tx(store._pool[0])

    def fail(tx: Tx) -> None:
        vfs.fail_writes()
        try:
            put("lost", size=BIG)(tx)
        finally:
            vfs.heal()

    def check(tx: Tx) -> None:
        put("bob")(tx)
        seen.append(names_in(look))

    await together(store, [put("ann"), fail, check])
    assert seen == [["ann"]]  # committed by itself before, since all run one by one by then
    assert store.look(names_in) == ["ann", "bob"]


@pytest.mark.parametrize("how", _ENDS)
async def test_a_unit_that_swallows_the_error_writes_nothing(store: Store, vfs: ShimVfs, how: str) -> None:
    """Behind the lost transaction each of its statements would commit by itself."""
    errors: list[str] = []
    with _ENDS[how][0](store, vfs) as lost:

        def swallow(tx: Tx) -> str:
            with contextlib.suppress(apsw.Error):
                lost(tx)
            try:
                put("alone")(tx)
            except apsw.Error as error:
                errors.append(type(error).__name__)
            return "all is well"

        outcomes = await together(store, [put("ann"), swallow, put("bob")])
    assert codes(outcomes) == [None, Code.STORE_IO_ERROR, None]
    assert errors == ["ConstraintError"] * 2
    assert store.look(names_in) == ["ann", "bob"]


async def test_what_failed_in_the_first_round_is_not_taken_for_done_when_writing_stops_in_the_second(
    store: Store, vfs: ShimVfs
) -> None:
    """Before the transaction was lost every neighbour had its outcome; it must not be released for that."""
    _writer(store).execute("PRAGMA cache_size = -2000")  # only COMMIT writes
    with _interrupt(store, vfs) as lose:

        def lost(tx: Tx) -> None:
            vfs.fail_next_sync(n=2)
            lose(tx)

        outcomes = await together(store, [put("ann"), put("bob"), lost, put("eve")])
    assert codes(outcomes) == ["OUTCOME_UNKNOWN"] + ["STORE_IO_ERROR"] * 3
    assert store.look(names_in) == []


async def test_a_constraint_or_a_full_limit_of_one_statement_ends_nothing(store: Store) -> None:
    """Only some errors end the transaction; after the others the neighbours do not run again."""
    runs = Runs()
    twice = Sql("INSERT INTO node (one, node_id, store_id, daemon_gen) VALUES (1, '', '', 0)")

    def tolerant(tx: Tx) -> None:
        with contextlib.suppress(apsw.ConstraintError):
            tx.rows(twice)
        put("tolerant")(tx)

    outcomes = await together(store, [runs.of("ann", put("ann")), runs.of("tolerant", tolerant)])
    assert codes(outcomes) == [None, None]
    assert runs.seen == ["ann", "tolerant"]
    assert store.look(names_in) == ["ann", "tolerant"]


async def test_the_shim_saw_the_spill_that_these_tests_rest_on(store: Store, vfs: ShimVfs) -> None:
    before = vfs.calls["write", Kind.WAL]
    seen: list[int] = []

    def count(tx: Tx) -> None:
        put("big", size=BIG)(tx)
        seen.append(vfs.calls["write", Kind.WAL] - before)

    await store.write(count)
    assert seen[0] > 10
