"""Peers that are slow, silent or gone: let go of after their seconds, and nobody else notices. A slow disk, too.

The clock jumps, so that ten seconds cost nothing; sockets and bytes are real.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import TypeVar

import pytest
import trio
import trio.testing
from trio.testing import MockClock

from client.protocol.refusals import Code
from daemon.outbox import MAX_UNSENT, SEND_SECONDS, Outbox
from daemon.socket import (
    FRAME_SECONDS,
    HELLO_SECONDS,
    LINGER_SECONDS,
    MAX_UNANSWERED,
    MAX_WAITS,
)
from tests.support.node import inline
from tests.support.stores import SLOW
from tests.support.wire import hello, packed, request
from tests.wire.served import Line, Served, served

T = TypeVar("T")
FOREVER = {"predicate": "seq>1000000000", "timeout_ms": 86_400_000}
#: An answer of about 60 kB: an agent that has much to say of itself.
WORDY = {"name": "wordy", "description": "x" * 60_000}


@pytest.fixture
async def node(tmp_path: Path) -> AsyncIterator[Served]:
    async with served(tmp_path / "home") as running:
        yield running


async def seconds_until_the_end(line: Line, autojump_clock: MockClock) -> float:
    """How long the daemon keeps a connection on which nothing more is said."""
    began = autojump_clock.current_time()
    while await line.hear() is not None:
        pass
    return autojump_clock.current_time() - began


async def one_byte_a_second(line: Line, data: bytes) -> None:
    """Send until all is sent, or nobody is there to take it."""
    for byte in data:
        try:
            await line.stream.send_all(bytes([byte]))
        except trio.BrokenResourceError:
            return
        await later(1)


async def later(seconds: float) -> None:
    """Let the clock go on."""
    with trio.move_on_after(seconds):
        await trio.sleep_forever()


async def test_a_peer_that_says_nothing_is_let_go(node: Served, autojump_clock: MockClock) -> None:
    other = await node.line()
    assert await seconds_until_the_end(node.dial(), autojump_clock) == pytest.approx(HELLO_SECONDS)
    assert await other.alive()


async def test_a_hello_that_drips_in_is_too_late(node: Served, autojump_clock: MockClock) -> None:
    line, other = node.dial(), await node.line()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(one_byte_a_second, line, packed(hello("any")))
        assert await seconds_until_the_end(line, autojump_clock) == pytest.approx(HELLO_SECONDS)
        assert await other.alive()


async def test_a_frame_that_drips_in_is_too_slow(node: Served, autojump_clock: MockClock) -> None:
    line, other = await node.line(), await node.line()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(one_byte_a_second, line, packed(request(1, "team.list")))
        assert await seconds_until_the_end(line, autojump_clock) == pytest.approx(FRAME_SECONDS)
        assert await other.alive()


async def test_every_frame_has_its_own_seconds(node: Served, autojump_clock: MockClock) -> None:
    line, heard = await node.line(), list[int]()

    async def listen() -> None:
        while len(heard) < 4:
            answer = await line.hear()
            assert answer is not None
            heard.append(answer["id"])

    async with trio.open_nursery() as nursery:
        nursery.start_soon(listen)
        for number in range(1, 5):  # each takes FRAME_SECONDS less a little, all of them four times that
            data = packed(request(number, "team.list"))
            await line.stream.send_all(data[:-1])
            await later(FRAME_SECONDS - 0.5)
            await line.stream.send_all(data[-1:])
    assert heard == [1, 2, 3, 4]
    assert autojump_clock.current_time() > 3 * FRAME_SECONDS


async def test_a_peer_that_is_silent_between_requests_is_kept(node: Served, autojump_clock: MockClock) -> None:
    line = await node.line()
    with trio.move_on_after(24 * 3600):
        await line.hear()
    assert autojump_clock.current_time() >= 24 * 3600
    assert await line.alive()


async def test_what_a_slow_peer_asked_before_is_answered(node: Served, autojump_clock: MockClock) -> None:
    line = await node.line()
    await line.stream.send_all(packed(request(1, "agent.create", {"name": "ann"}), request(2, "team.list"))[:-3])
    began = autojump_clock.current_time()
    answer = await line.hear()
    assert answer is not None
    assert (answer["id"], autojump_clock.current_time() - began) == (1, 0)
    assert await line.hear() is None
    assert autojump_clock.current_time() - began == pytest.approx(FRAME_SECONDS)


async def test_a_peer_that_never_reads_is_let_go_and_hurts_nobody(node: Served, autojump_clock: MockClock) -> None:
    await (await node.line()).say(request(1, "agent.create", WORDY))
    line, other = await node.line(greedy=False), await node.line()
    began = autojump_clock.current_time()
    await line.say(*(request(n, "agent.list") for n in range(1, 1001)))
    await trio.testing.wait_all_tasks_blocked()
    assert await other.alive()
    assert autojump_clock.current_time() == began
    await later(SEND_SECONDS - 1)
    await line.say(request(1001, "agent.list"))
    await later(2)
    with pytest.raises(trio.BrokenResourceError):
        await line.say(request(1002, "agent.list"))
    assert await other.alive()


async def test_unread_answers_do_not_pile_up(node: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """Many requests in one piece, each with a large answer: the daemon holds about MAX_UNSENT of them."""
    await (await node.line()).say(request(1, "agent.create", WORDY))
    held: list[int] = []
    put = Outbox.put

    def watched(outbox: Outbox, payload: bytes) -> None:
        put(outbox, payload)
        held.append(outbox._unsent_bytes)

    monkeypatch.setattr(Outbox, "put", watched)
    line = await node.line(greedy=False)
    await line.say(*(request(n, "agent.list") for n in range(1, 1001)))
    await trio.testing.wait_all_tasks_blocked()
    assert MAX_UNSENT < max(held) < MAX_UNSENT + 200_000
    for number in range(1, 1001):
        answer = await line.hear()
        assert answer is not None
        assert answer["id"] == number


async def test_a_peer_that_reads_slowly_is_not_blamed_for_a_frame_that_lay_unread(
    node: Served, autojump_clock: MockClock
) -> None:
    """Half of a request has come when the daemon stops reading; the other half may wait as long as the daemon does."""
    await (await node.line()).say(request(1, "agent.create", WORDY))
    line = await node.line(greedy=False)
    many = packed(*(request(n, "agent.list") for n in range(1, 60)))
    last = packed(request(60, "team.list"))
    await line.stream.send_all(many + last[:5])
    await trio.testing.wait_all_tasks_blocked()
    await line.stream.send_all(last[5:])
    heard = 0
    while heard < 60:
        await later(0.5)
        assert await line.hear() is not None
        heard += 1
    assert autojump_clock.current_time() > FRAME_SECONDS


async def test_a_peer_that_says_no_more_is_waited_for_within_bounds(node: Served, autojump_clock: MockClock) -> None:
    line = await node.line()
    await line.say(request(1, "event.wait", {**FOREVER, "timeout_ms": 1000 * (LINGER_SECONDS - 1)}))
    await line.say(request(2, "event.wait", FOREVER))
    await line.stream.send_eof()
    began = autojump_clock.current_time()
    answer = await line.hear()
    assert answer is not None
    assert answer["id"] == 1
    assert await line.hear() is None
    assert autojump_clock.current_time() - began == pytest.approx(LINGER_SECONDS)
    assert node.server.counts.waits == 0


async def test_a_peer_that_is_gone_leaves_nothing_behind(node: Served, autojump_clock: MockClock) -> None:
    line = await node.line()
    await line.say(*(request(n, "event.wait", FOREVER) for n in range(1, 11)))
    await trio.testing.wait_all_tasks_blocked()
    assert node.server.counts.waits == 10
    began = autojump_clock.current_time()
    await line.stream.aclose()
    await trio.testing.wait_all_tasks_blocked()
    assert node.server.counts.waits == 0
    assert node.connections.child_tasks == frozenset()
    assert autojump_clock.current_time() == began


async def test_a_cancel_leaves_nothing_behind(node: Served) -> None:
    line = await node.line()
    await line.say(request(1, "event.wait", FOREVER), request(2, "event.watch"), {"cancel": 1}, {"cancel": 2})
    await trio.testing.wait_all_tasks_blocked()
    assert node.server.counts.waits == 0
    assert await line.alive()


async def test_the_places_of_cancelled_waits_are_free_at_once(node: Served) -> None:
    line = await node.line()
    await line.say(*(request(n, "event.wait", FOREVER) for n in range(1, MAX_WAITS + 1)))
    for n in range(1, MAX_WAITS + 1):
        await line.say({"cancel": n}, request(1000 + n, "event.wait", FOREVER))
    await line.say(request(1001 + MAX_WAITS, "event.wait", FOREVER))
    refused = await line.hear()
    assert refused is not None
    assert (refused["id"], refused["refusal"]["code"]) == (1001 + MAX_WAITS, Code.TOO_MANY_REQUESTS)
    await trio.testing.wait_all_tasks_blocked()
    assert node.server.counts.waits == MAX_WAITS


async def test_the_end_of_the_daemon_waits_for_a_peer_that_does_not_read_within_bounds(
    node: Served, autojump_clock: MockClock
) -> None:
    await (await node.line()).say(request(1, "agent.create", WORDY))
    line, parked = await node.line(greedy=False), await node.line()
    await line.say(*(request(n, "agent.list") for n in range(1, 101)), request(200, "event.wait", FOREVER))
    await parked.say(request(1, "event.wait", FOREVER))
    await trio.testing.wait_all_tasks_blocked()
    began = autojump_clock.current_time()
    node.server.stopping.set()
    reply = await parked.hear()
    assert reply is not None
    assert reply["refusal"]["code"] == Code.NODE_DAEMON_DRAINING
    assert await parked.hear() is None
    assert autojump_clock.current_time() == began
    while node.connections.child_tasks:
        await later(0.5)
    assert autojump_clock.current_time() - began <= LINGER_SECONDS + 1


@contextlib.asynccontextmanager
async def slow_disk(home: Path) -> AsyncIterator[tuple[Served, trio.Event]]:
    """A node that writes nothing before the event is set."""
    opened = trio.Event()

    async def run(fn: Callable[..., T], *args: object, limiter: trio.CapacityLimiter) -> T:
        await opened.wait()
        return await inline(fn, *args, limiter=limiter)

    async with served(home, run=run, quick=SLOW) as node:
        try:
            yield node, opened
        finally:
            opened.set()


async def test_more_writes_than_may_be_unanswered_are_refused_at_once_and_the_others_are_done(tmp_path: Path) -> None:
    async with slow_disk(tmp_path / "home") as (node, opened):
        line, other = await node.line(), await node.line()
        await line.say(*(request(n, "agent.create", {"name": f"{n}"}) for n in range(1, MAX_UNANSWERED + 4)))
        refused = [await line.hear() for _ in range(3)]
        assert [reply["id"] for reply in refused if reply] == [MAX_UNANSWERED + n for n in (1, 2, 3)]
        assert {reply["refusal"]["code"] for reply in refused if reply} == {Code.TOO_MANY_REQUESTS}
        assert await other.alive()
        await other.say(request(1, "agent.create", {"name": "other"}))
        opened.set()
        done = [await line.hear() for _ in range(MAX_UNANSWERED)]
        assert {reply["answer"]["name"] for reply in done if reply} == {f"{n}" for n in range(1, MAX_UNANSWERED + 1)}
        assert await other.hear() is not None


async def test_a_peer_that_leaves_while_the_disk_is_slow_leaves_its_writes(tmp_path: Path) -> None:
    """An answer that cannot be delivered undoes nothing."""
    async with slow_disk(tmp_path / "home") as (node, opened):
        line = await node.line()
        await line.say(request(1, "agent.create", {"name": "ann"}, "k"))
        await trio.testing.wait_all_tasks_blocked()
        await line.stream.aclose()
        await trio.testing.wait_all_tasks_blocked()
        opened.set()
        again = await node.line()
        await again.say(request(1, "agent.create", {"name": "ann"}, "k"))
        reply = await again.hear()
        assert reply is not None
        assert reply["replayed"]
