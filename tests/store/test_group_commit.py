"""Group commit: what waits together is committed together, and each unit stands or falls alone."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import pytest
import trio
import trio.testing

from client.protocol.refusals import Code, Refusal
from store import events
from store.agent import AGENTS
from store.batch import Unit
from store.database import BATCH, Store
from store.sql import Sql
from store.tx import Tx
from tests.support.stores import NO, SLOW, Announcements, codes, faults_in, names_in, put, rename, serving, together
from tests.support.vfs import Kind, shim_vfs

T = TypeVar("T")


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    async with serving(tmp_path / "node.db") as running:
        yield running
    assert faults_in(tmp_path / "node.db") == []


class Gate:
    """Runs the writer in a thread, as production does, but holds every batch back until it is told to go on."""

    def __init__(self) -> None:
        self.begun = trio.Event()
        self.ended = trio.Event()
        self.go = trio.Event()
        self.release = trio.Event()
        self.release.set()

    async def run(self, fn: Callable[..., T], *args: object, limiter: trio.CapacityLimiter) -> T:
        self.begun.set()
        await self.go.wait()
        result = await trio.to_thread.run_sync(fn, *args, limiter=limiter)
        self.ended.set()
        await self.release.wait()
        return result


async def test_units_that_wait_together_cost_one_commit(tmp_path: Path) -> None:
    with shim_vfs() as vfs:
        async with serving(tmp_path / "node.db", vfs=vfs.name) as store:
            await store.write(put("first"))  # the one after a restart of the log makes two
            before = vfs.calls["sync", Kind.WAL]
            assert codes(await together(store, [put(f"a{n}") for n in range(50)])) == [None] * 50
            assert vfs.calls["sync", Kind.WAL] - before == 1
            assert len(store.look(names_in)) == 51


async def test_a_batch_has_a_bound_and_the_rest_follows_in_order(tmp_path: Path) -> None:
    announced = Announcements()
    async with serving(tmp_path / "node.db") as store:
        store.committed = announced
        await together(store, [put(f"a{n:03}") for n in range(BATCH + 20)])
        assert store.look(names_in) == [f"a{n:03}" for n in range(BATCH + 20)]
    assert announced.seqs == [BATCH, BATCH + 20]


async def test_a_refusal_takes_back_its_own_unit_only(store: Store) -> None:
    def refuse(tx: Tx) -> Refusal:
        put("refused")(tx)
        return NO

    outcomes = await together(store, [put("ann"), refuse, put("bob")])
    assert codes(outcomes) == [None, "NOT_FOUND", None]
    assert store.look(names_in) == ["ann", "bob"]
    assert store.seq == 2


@pytest.mark.parametrize(("writes", "order"), [(False, ["ann", "bob"]), (True, ["ann", "ann", "bob"])])
async def test_a_batch_runs_again_only_after_a_unit_that_wrote_before_it_refused(
    store: Store, *, writes: bool, order: list[str]
) -> None:
    ran: list[str] = []

    def counted(name: str) -> Callable[[Tx], object]:
        def run(tx: Tx) -> object:
            ran.append(name)
            return put(name)(tx)

        return run

    def refuse(tx: Tx) -> Refusal:
        if writes:
            put("refused")(tx)
        return NO

    outcomes = await together(store, [counted("ann"), refuse, counted("bob")])
    assert codes(outcomes) == [None, "NOT_FOUND", None]
    assert ran == order
    assert store.look(names_in) == ["ann", "bob"]


async def test_a_bug_in_one_unit_takes_no_neighbour_along(store: Store) -> None:
    def fail(tx: Tx) -> None:
        put("broken")(tx)
        raise ZeroDivisionError

    twice = Sql("INSERT INTO node (one, node_id, store_id, daemon_gen) VALUES (1, '', '', 0)")
    outcomes = await together(store, [put("ann"), fail, lambda tx: tx.rows(twice), put("bob")])
    assert [type(outcome).__name__ for outcome in outcomes] == [
        "AgentMember",
        "ZeroDivisionError",
        "ConstraintError",
        "AgentMember",
    ]
    assert store.look(names_in) == ["ann", "bob"]


async def test_write_raises_what_a_unit_raised(store: Store) -> None:
    def fail(_: Tx) -> None:
        raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        await store.write(fail)
    assert codes([await store.write(put("ann"))]) == [None]


async def test_a_unit_sees_what_an_earlier_one_of_its_batch_wrote_and_nobody_else_does(tmp_path: Path) -> None:
    seen: list[list[str]] = []
    async with serving(tmp_path / "node.db") as store:
        await together(store, [put("ann"), lambda tx: seen.append(names_in(tx)), lambda _: seen.append(_other(store))])
    assert seen == [["ann"], []]


def _other(store: Store) -> list[str]:
    """What a second connection sees, from the writer's thread."""
    return names_in(Tx(store._pool[0]))


async def test_nothing_is_released_before_the_commit_not_even_a_refusal(tmp_path: Path) -> None:
    gate = Gate()
    gate.release = trio.Event()
    async with serving(tmp_path / "node.db", run=gate.run, quick=SLOW) as store:
        released: list[str] = []

        async def ask(name: str, work: Callable[[Tx], Any]) -> None:
            await store.write(work)
            released.append(name)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask, "kept", put("ann"))
            nursery.start_soon(ask, "refused", lambda _: NO)
            await gate.begun.wait()
            await trio.testing.wait_all_tasks_blocked()
            assert (released, store.look(names_in)) == ([], [])
            gate.go.set()
            await gate.ended.wait()
            assert (released, store.look(names_in)) == ([], ["ann"])
            gate.release.set()
        assert sorted(released) == ["kept", "refused"]


async def test_cancelled_in_the_queue_a_unit_never_runs_once_started_it_ends(tmp_path: Path) -> None:
    gate = Gate()
    async with serving(tmp_path / "node.db", run=gate.run, quick=SLOW) as store:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(store.write, put("started"))
            await gate.begun.wait()
            nursery.start_soon(store.write, put("queued"))
            await trio.testing.wait_all_tasks_blocked()
            nursery.cancel_scope.cancel()
            gate.go.set()
        assert store.look(names_in) == ["started"]
        await store.write(put("next"))
        assert store.look(names_in) == ["started", "next"]


async def test_a_writer_that_ends_finishes_the_batch_it_has_begun(tmp_path: Path) -> None:
    gate = Gate()
    released: list[Any] = []
    async with serving(tmp_path / "node.db", run=gate.run, quick=SLOW) as store:
        store.submit(Unit(put("ann"), lambda unit: released.append(unit.outcome.name)))
        await gate.begun.wait()
        store.submit(Unit(put("bob"), released.append))
        gate.go.set()
    assert released == ["ann"]


async def test_a_withdrawn_unit_is_gone_and_a_stranger_is_not_found(store: Store) -> None:
    unit = Unit(put("ann"), lambda _: None)
    store.submit(unit)
    assert store.withdraw(unit)
    assert not store.withdraw(unit)
    await store.write(put("bob"))
    assert store.look(names_in) == ["bob"]


async def test_announcements_come_in_the_order_of_events(store: Store) -> None:
    announced = Announcements()
    store.committed = announced
    for batch in range(5):
        works = [put(f"a{batch}{n}") if n % 3 else _refused for n in range(20)]
        await together(store, works)
    ann = (await together(store, [put("ann")]))[0]
    await together(store, [rename(ann.id, f"ann {n}") for n in range(9)])
    written, last = store.look(lambda tx: events.after(tx, 0, limit=1000))
    assert announced.streams == [event.stream for event in written]
    assert announced.seqs == sorted(announced.seqs)
    assert announced.seqs[-1] == last == store.seq


def _refused(tx: Tx) -> Refusal:
    put("no")(tx)
    return NO


async def test_a_batch_of_refusals_is_not_announced(store: Store) -> None:
    announced = Announcements()
    store.committed = announced
    assert codes(await together(store, [_refused, _refused])) == ["NOT_FOUND", "NOT_FOUND"]
    assert announced == Announcements()


async def test_each_kept_unit_knows_the_last_event_of_its_own(store: Store) -> None:
    def two(tx: Tx) -> str:
        before = put("ann")(tx)
        return str(AGENTS.change(tx, before, kind="updated", actor="operator", at=before.updated_at, name="eve").id)

    seen: list[tuple[int, list[str]]] = []
    over = trio.Event()

    def done(unit: Unit) -> None:
        seen.append((unit.seq, unit.streams))
        if len(seen) == 3:
            over.set()

    for work in (put("bob"), two, _refused):
        store.submit(Unit(work, done))
    await over.wait()
    assert [seq for seq, _ in seen] == [1, 3, 0]
    assert [len(streams) for _, streams in seen] == [1, 2, 0]


async def test_on_a_slow_disk_units_run_in_a_worker_thread_and_the_loop_goes_on(tmp_path: Path) -> None:
    held, here = threading.Event(), threading.get_ident()

    def slow(_: Tx) -> int:
        assert held.wait(30)
        return threading.get_ident()

    async with serving(tmp_path / "node.db", quick=SLOW) as store:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(store.write, slow)
            await trio.testing.wait_all_tasks_blocked()
            assert store.look(names_in) == []
            held.set()
        assert await store.write(lambda _: threading.get_ident()) != here


async def test_the_writer_leaves_the_loop_after_a_slow_commit_and_stays_on_it_after_quick_ones(tmp_path: Path) -> None:
    here = threading.get_ident()
    where = [await _threads_of_writes(tmp_path, slower, quick=0.5) for slower in (0.0, 0.6)]
    assert where[0] == [here] * 3
    first, *others = where[1]
    assert first == here
    assert here not in others


async def _threads_of_writes(folder: Path, slower: float, *, quick: float) -> list[int]:
    """The threads in which three units of one batch each ran, on a disk that much slower."""
    with shim_vfs() as vfs:
        async with serving(folder / f"{slower}.db", vfs=vfs.name, quick=quick) as store:
            vfs.slower = slower
            return [await _thread_of(store, f"a{n}") for n in range(3)]


async def _thread_of(store: Store, name: str) -> int:
    def run(tx: Tx) -> int:
        put(name)(tx)
        return threading.get_ident()

    return cast("int", await store.write(run))


async def test_a_disk_that_is_quick_again_gets_the_writer_back_on_the_loop(tmp_path: Path) -> None:
    with shim_vfs() as vfs:
        async with serving(tmp_path / "node.db", vfs=vfs.name, quick=0.1) as store:
            vfs.slower = 0.11
            await store.write(put("slow"))
            vfs.slower = 0.0
            where = [await _thread_of(store, f"a{n}") for n in range(15)]
    assert (where[0] == threading.get_ident(), where[-1] == threading.get_ident()) == (False, True)


async def test_a_bug_in_the_writer_lets_nobody_wait_for_ever(tmp_path: Path) -> None:
    """Such a daemon ends, and its nursery cannot while a task waits that may not be cancelled."""

    def broken(_: str) -> None:
        raise ZeroDivisionError

    outcomes: list[Any] = []

    async def ask(store: Store) -> None:
        outcomes.append(await store.write(put("ann")))

    with pytest.RaisesGroup(pytest.RaisesExc(ZeroDivisionError)):
        async with serving(tmp_path / "node.db", crash=broken) as store, trio.open_nursery() as nursery:
            nursery.start_soon(ask, store)
            nursery.start_soon(trio.sleep_forever)
    assert codes(outcomes) == [Code.OUTCOME_UNKNOWN]
