"""One call for all who ask at the same time, and never an answer that is older than its question."""

from __future__ import annotations

import attrs
import trio
from trio.testing import wait_all_tasks_blocked

from providers.together import Together


@attrs.define
class Asked:
    """A call that ends when it is let go, with what was true when it began."""

    true: int = 0
    calls: int = 0
    let_go: trio.Event = attrs.Factory(trio.Event)

    async def call(self) -> int:
        self.calls += 1
        found = self.true
        await self.let_go.wait()
        return found


async def test_a_hundred_who_ask_while_a_call_goes_on_share_the_next() -> None:
    asked = Asked()
    together = Together(asked.call)
    found: list[int] = []

    async def ask() -> None:
        found.append(await together.ask())

    async with trio.open_nursery() as nursery:
        nursery.start_soon(ask)
        await wait_all_tasks_blocked()
        asked.true = 1
        for _ in range(100):
            nursery.start_soon(ask)
        await wait_all_tasks_blocked()
        asked.let_go.set()
    assert (asked.calls, found) == (2, [0] + [1] * 100)


async def test_who_asks_after_an_answer_gets_a_new_one() -> None:
    asked = Asked()
    asked.let_go.set()
    together = Together(asked.call)
    found: list[int] = []
    for asked.true in range(3):
        found.append(await together.ask())
    assert found == [0, 1, 2]


async def test_one_that_is_cancelled_leaves_the_others_their_answer() -> None:
    asked = Asked()
    together = Together(asked.call)
    found: list[int] = []

    async def ask() -> None:
        found.append(await together.ask())

    first = trio.CancelScope()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_ask_within, together, first)
        await wait_all_tasks_blocked()
        nursery.start_soon(ask)
        await wait_all_tasks_blocked()
        first.cancel()
        await wait_all_tasks_blocked()
        asked.let_go.set()
    assert (asked.calls, found) == (2, [0])


async def _ask_within(together: Together[int], scope: trio.CancelScope) -> None:
    with scope:
        await together.ask()
