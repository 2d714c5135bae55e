"""``Store.seq`` is never ahead of what a look finds: whoever waits behind it misses nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import trio
import trio.testing

from store import maintenance
from store.database import Store
from store.tx import Tx
from tests.support.stores import SLOW

T = TypeVar("T")


async def test_a_commit_is_counted_once_it_is_announced(tmp_path: Path) -> None:
    """Before that the loop has not heard of it, and an answer given meanwhile does not claim it."""
    path = tmp_path / "node.db"
    maintenance.take(path)
    committed, heard = trio.Event(), trio.Event()

    async def held(fn: Callable[..., T], *args: object, limiter: trio.CapacityLimiter) -> T:
        async with limiter:
            done = fn(*args)
            committed.set()
            await heard.wait()
            return done

    store = Store(path, run=held, quick=SLOW)

    def add(tx: Tx) -> int:
        tx.append("thing/x", 1, "made", actor="operator", at=1, body={})
        return tx.seq

    async with trio.open_nursery() as tasks:
        await tasks.start(store.serve)
        tasks.start_soon(store.write, add)
        await committed.wait()
        assert (store.writer.seq, store.seq) == (1, 0)
        heard.set()
        await trio.testing.wait_all_tasks_blocked()
        assert store.seq == 1
        tasks.cancel_scope.cancel(reason="the test is over")
    store.close()
