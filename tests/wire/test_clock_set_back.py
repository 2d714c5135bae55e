"""The wall clock is for people: set back a day, it changes no order, no reply, no wait."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable

import attrs
import trio
import trio.testing
from trio.testing import MockClock

from client.protocol import codec
from client.protocol.codec import Ask
from client.protocol.ids import UnixMs
from tests.support.node import BEGIN, InProcessNode
from tests.support.wire import Message

DAY = 24 * 3600 * 1000
FOREVER = {"predicate": "seq>1000000000", "timeout_ms": 86_400_000}


@attrs.define(eq=False)
class Peer:
    """Asks at the time that ``now`` says."""

    node: InProcessNode
    now: int = BEGIN
    ids: int = 0

    def begin(self, op: str, body: Message, key: str = "") -> trio.MemoryReceiveChannel[bytes]:
        self.ids += 1
        call = self.node.call(now=UnixMs(self.now))
        put, replies = trio.open_memory_channel[bytes](math.inf)
        ask = Ask(self.ids, op, body, key)
        self.node.dispatcher.ask(call, ask, put.send_nowait, self.wait, trio.lowlevel.checkpoint)
        return replies

    def wait(self, work: Callable[[], Awaitable[None]]) -> None:
        self.node.spawn(work)

    async def ask(self, op: str, body: Message, key: str = "") -> Message:
        reply = codec.unpackb(await self.begin(op, body, key).receive())
        answer: Message = reply["answer"]
        return {**answer, "replayed": reply["replayed"]}


async def test_events_keep_the_order_in_which_they_were_committed(node: InProcessNode) -> None:
    peer = Peer(node)
    watched = peer.begin("event.watch", {})
    await trio.testing.wait_all_tasks_blocked()
    made = await peer.ask("agent.create", {"name": "ann"})
    peer.now -= DAY
    for version in range(1, 4):
        body = {"agent_member_id": made["id"], "expected_version": version, "description": f"{version}"}
        made = await peer.ask("agent.update", body)
        assert made["version"] == version + 1
    assert made["updated_at"] == BEGIN - DAY
    events = (await peer.ask("event.list", {}))["items"]
    assert [event["version"] for event in events] == [1, 2, 3, 4]
    assert [event["seq"] for event in events] == sorted(event["seq"] for event in events)
    assert [event["at"] for event in events] == [BEGIN, *[BEGIN - DAY] * 3]  # said as it was, and ordered by nothing
    seen: list[int] = []
    while len(seen) < 4:
        page = codec.unpackb(await watched.receive())
        seen += [event["version"] for event in page["answer"]["items"]]
    assert seen == [1, 2, 3, 4]


async def test_a_cursor_goes_on_where_it_was(node: InProcessNode) -> None:
    peer = Peer(node)
    for name in ("ann", "bob"):
        await peer.ask("agent.create", {"name": name})
    page = await peer.ask("event.list", {"limit": 1})
    listed = await peer.ask("agent.list", {"limit": 1})
    peer.now -= DAY
    await peer.ask("agent.create", {"name": "eve"})
    rest = await peer.ask("event.list", {"cursor": page["cursor"]})
    assert [event["body"]["name"] for event in rest["items"]] == ["bob", "eve"]
    more = await peer.ask("agent.list", {"cursor": listed["next"]})
    assert [listed["items"][0]["name"], *(agent["name"] for agent in more["items"])] == ["ann", "bob", "eve"]


async def test_a_reply_is_remembered_over_it(node: InProcessNode) -> None:
    peer = Peer(node)
    made = await peer.ask("agent.create", {"name": "ann"}, "k")
    peer.now -= DAY
    again = await peer.ask("agent.create", {"name": "ann"}, "k")
    assert (again["id"], again["replayed"]) == (made["id"], True)
    other = await peer.ask("agent.create", {"name": "bob"}, "k2")
    peer.now += 2 * DAY
    assert (await peer.ask("agent.create", {"name": "bob"}, "k2"))["id"] == other["id"]


async def test_a_wait_is_woken_and_ends_as_if_nothing_had_happened(
    node: InProcessNode, autojump_clock: MockClock
) -> None:
    peer = Peer(node)
    made = await peer.ask("agent.create", {"name": "ann"})
    woken = peer.begin("event.wait", {"predicate": f"agent:{made['id']}.version>1", "timeout_ms": 60_000})
    timed = peer.begin("event.wait", {**FOREVER, "timeout_ms": 60_000})
    await trio.testing.wait_all_tasks_blocked()
    began = autojump_clock.current_time()
    peer.now -= DAY
    await peer.ask("agent.pause", {"agent_member_id": made["id"], "expected_version": 1})
    assert not codec.unpackb(await woken.receive())["answer"]["timed_out"]
    assert autojump_clock.current_time() == began
    assert codec.unpackb(await timed.receive())["answer"]["timed_out"]
    assert autojump_clock.current_time() - began == 60
