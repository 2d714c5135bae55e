"""``client.connection``: typed answers, many at a time, and an honest end."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import attrs
import msgpack
import pytest
import trio

from client.connection import Connection, Disconnected, connect
from client.protocol import codec
from client.protocol.agent import AgentMember, CreateAgent, ListAgents, ShowAgent
from client.protocol.event import EventPage, Waited, WaitForEvent, WatchEvents
from client.protocol.frames import MAX_ANSWER, MAX_REQUEST, Frames
from client.protocol.ids import AgentMemberRef
from client.protocol.node import ShowStatus, StopNode, StopReceipt
from client.protocol.refusals import Code, Refusal
from client.protocol.team import ListTeams
from tests.support.daemon import Daemon
from tests.support.wire import Message, packed

FOREVER = WaitForEvent(predicate="seq>1000000000", timeout_ms=86_400_000)


async def waits(node: Connection) -> int:
    status = await node.ask(ShowStatus())
    assert not isinstance(status, Refusal)
    return status.waits - 1


async def test_answers_and_refusals_are_records(daemon: Daemon) -> None:
    async with connect(daemon.socket, daemon.key) as node:
        assert node.welcome.actor == "operator"
        made = await node.ask(CreateAgent(name="ann"), key="k")
        assert isinstance(made, AgentMember)
        assert await node.ask(CreateAgent(name="ann"), key="k") == made
        assert await node.ask(ShowAgent(agent_member_id=AgentMemberRef(made.id))) == made
        reused = await node.ask(CreateAgent(name="bob"), key="k")
        assert isinstance(reused, Refusal)
        assert reused.code is Code.IDEMPOTENCY_KEY_REUSED


async def test_many_ask_at_once_and_each_gets_its_own_answer(daemon: Daemon) -> None:
    async def ask(name: str) -> None:
        made = await node.ask(CreateAgent(name=name))
        assert isinstance(made, AgentMember)
        assert made.name == name

    async with connect(daemon.socket, daemon.key) as node:
        async with trio.open_nursery() as nursery:
            for n in range(500):
                nursery.start_soon(ask, f"agent-{n}")
        page = await node.ask(ListAgents(limit=500))
        assert not isinstance(page, Refusal)
        assert {agent.name for agent in page.items} == {f"agent-{n}" for n in range(500)}


async def test_a_wait_that_is_given_up_is_dropped_by_the_daemon(daemon: Daemon) -> None:
    async with connect(daemon.socket, daemon.key) as node:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(node.ask, FOREVER)
            while await waits(node) < 1:
                pass
            nursery.cancel_scope.cancel()
        assert await waits(node) == 0


async def test_a_watch_gives_what_is_committed_until_its_block_ends(daemon: Daemon) -> None:
    async with connect(daemon.socket, daemon.key) as node:
        with node.watch(WatchEvents()) as pages:
            assert await waits(node) == 1
            kinds: list[str] = []
            for name in ("ann", "bob"):
                made = await node.ask(CreateAgent(name=name))
                assert isinstance(made, AgentMember)
                page = await anext(pages)
                assert isinstance(page, EventPage)
                kinds += [event.body["name"] for event in page.items]
            assert kinds == ["ann", "bob"]
        assert await waits(node) == 0
        made = await node.ask(CreateAgent(name="eve"))
        assert isinstance(made, AgentMember)


async def _refused_until_it_hangs_up(node: Connection) -> None:
    while True:
        said = await node.ask(FOREVER)
        assert isinstance(said, Refusal)
        assert said.code is Code.NODE_DAEMON_DRAINING


async def test_a_watch_ends_with_the_refusal_of_a_daemon_that_stops(daemon: Daemon) -> None:
    async with connect(daemon.socket, daemon.key) as node:
        with node.watch(WatchEvents()) as pages:
            receipt = await node.ask(StopNode())
            assert isinstance(receipt, StopReceipt)
            assert [isinstance(page, Refusal) and page.code async for page in pages] == [Code.NODE_DAEMON_DRAINING]
            with pytest.raises(StopAsyncIteration):
                await anext(pages)
        with pytest.raises(Disconnected, match=r"hung up|went away"):  # as it had read the question or not
            await _refused_until_it_hangs_up(node)
    assert daemon.wait() == 0


async def test_when_the_daemon_dies_everybody_who_asks_is_told(daemon: Daemon) -> None:
    told = 0

    async def ask() -> None:
        nonlocal told
        with pytest.raises(Disconnected):
            await node.ask(FOREVER)
        told += 1

    async def follow() -> None:
        nonlocal told
        with node.watch(WatchEvents()) as pages, pytest.raises(Disconnected):
            await anext(pages)
        told += 1

    async with connect(daemon.socket, daemon.key) as node:
        async with trio.open_nursery() as nursery:
            for task in (ask, ask, ask, follow):
                nursery.start_soon(task)
            while await waits(node) < 4:
                pass
            daemon.kill()
        assert told == 4
        with pytest.raises(Disconnected):
            await node.ask(ListTeams())


async def test_where_nobody_is_says_so(daemon: Daemon, tmp_path: Path) -> None:
    daemon.kill()
    for path in (daemon.socket, tmp_path / "nothing"):  # a socket that was left behind, and none
        with pytest.raises(Disconnected, match=f"nobody answers at {path}"):
            async with connect(path, ""):
                pass


async def test_a_hello_that_is_refused_says_why(shared: Daemon) -> None:
    with pytest.raises(Disconnected, match="operator key") as caught:
        async with connect(shared.socket, "wrong"):
            pass
    assert caught.value.refusal is not None
    assert caught.value.refusal.code is Code.NOT_AUTHORIZED


async def test_what_the_block_raises_comes_out_as_it_is(shared: Daemon) -> None:
    with pytest.raises(LookupError, match="mine"):
        async with connect(shared.socket, shared.key):
            raise LookupError("mine")


async def test_a_request_that_no_frame_holds_is_refused_and_the_connection_lives(shared: Daemon) -> None:
    async with connect(shared.socket, shared.key) as node:
        refused = await node.ask(CreateAgent(name="x", description="x" * MAX_REQUEST))
        assert isinstance(refused, Refusal)
        assert refused.code is Code.FRAME_TOO_LARGE
        teams = await node.ask(ListTeams())
        assert not isinstance(teams, Refusal)


# --- against a daemon that says what a test wants ---------------------------------------------------------------------


@attrs.define(eq=False)
class Other:
    """The other end, in the test's hand."""

    stream: trio.abc.Stream
    _frames: Frames = attrs.Factory(lambda: Frames(MAX_ANSWER))
    _heard: list[bytes] = attrs.Factory(list)

    async def hear(self) -> Message:
        while not self._heard:
            self._heard += self._frames.feed(await self.stream.receive_some(1 << 16))
        found = msgpack.unpackb(self._heard.pop(0))
        assert isinstance(found, dict)
        return found

    async def say(self, *messages: Message) -> None:
        await self.stream.send_all(packed(*messages))


WELCOME = {
    "protocol": 1,
    "table": "",
    "plane": "operator",
    "actor": "operator",
    "node_id": "n",
    "store_id": "s",
    "daemon_gen": 1,
    "version": "0",
    "firm_bin": "",
}


@contextlib.asynccontextmanager
async def against(path: Path, play: Callable[[Other], Awaitable[None]]) -> AsyncIterator[Connection]:
    """A connection to somebody who says hello and then plays ``play``."""
    sock = trio.socket.socket(trio.socket.AF_UNIX)
    await sock.bind(str(path))
    sock.listen()

    async def serve(stream: trio.SocketStream) -> None:
        async with stream:
            other = Other(stream)
            await other.hear()
            await other.say({"hello": WELCOME})
            await play(other)

    async with trio.open_nursery() as nursery:
        await nursery.start(trio.serve_listeners, serve, [trio.SocketListener(sock)])
        async with connect(path, "") as node:
            yield node
        nursery.cancel_scope.cancel()


async def test_a_refusal_that_the_row_does_not_declare_raises(tmp_path: Path) -> None:
    async def play(other: Other) -> None:
        asked = await other.hear()
        await other.say({"id": asked["id"], "refusal": codec.to_plain(Refusal(code=Code.NAME_TAKEN))})
        await other.hear()

    with pytest.RaisesGroup(codec.Undeclared):
        async with against(tmp_path / "s", play) as node:
            await node.ask(ListTeams())


async def test_giving_up_sends_a_cancel_and_a_late_answer_is_nobodys(tmp_path: Path) -> None:
    said: list[Message] = []

    async def play(other: Other) -> None:
        said.append(await other.hear())
        said.append(await other.hear())
        waited = codec.to_plain(Waited(timed_out=True, events=[], cursor=""))
        await other.say({"id": 1, "answer": waited, "replayed": False, "seq": 1})
        asked = await other.hear()
        page: Message = {"items": [], "next": None}
        await other.say({"id": asked["id"], "answer": page, "replayed": False, "seq": 1})
        await trio.sleep_forever()

    async with against(tmp_path / "s", play) as node:
        with trio.CancelScope() as scope:
            scope.cancel()
            await node.ask(FOREVER)
        answer = await node.ask(ListTeams())
        assert not isinstance(answer, Refusal)
    assert [said[0]["op"], said[1]] == ["event.wait", {"cancel": 1}]


async def test_the_last_word_of_a_daemon_that_hangs_up_is_told(tmp_path: Path) -> None:
    async def play(other: Other) -> None:
        await other.hear()
        await other.say({"id": 0, "refusal": codec.to_plain(Refusal(code=Code.MALFORMED, lifted_by="speak up"))})

    async with against(tmp_path / "s", play) as node:
        with pytest.raises(Disconnected, match="MALFORMED, speak up") as caught:
            await node.ask(ListTeams())
        assert caught.value.refusal is not None


@pytest.mark.parametrize("nonsense", [b"\x00\x00\x00\x01\xc1", b"\xff\xff\xff\xff"])
async def test_what_cannot_be_read_is_the_end(tmp_path: Path, nonsense: bytes) -> None:
    async def play(other: Other) -> None:
        await other.hear()
        await other.stream.send_all(nonsense)
        await trio.sleep_forever()

    async with against(tmp_path / "s", play) as node:
        with pytest.raises(Disconnected):
            await node.ask(ListTeams())


async def test_a_silent_end_of_the_hello_is_told(tmp_path: Path) -> None:
    sock = trio.socket.socket(trio.socket.AF_UNIX)
    await sock.bind(str(tmp_path / "s"))
    sock.listen()
    async with trio.open_nursery() as nursery:

        async def hang_up() -> None:
            peer, _ = await sock.accept()
            await peer.recv(1000)
            peer.close()
            sock.close()

        nursery.start_soon(hang_up)
        with pytest.raises(Disconnected, match="without a word"):
            async with connect(tmp_path / "s", ""):
                pass
