"""The link outlives its connection: the same question with the same key, until there is an answer or no patience."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import attrs
import msgpack
import pytest
import trio

from client.protocol import codec
from client.protocol.board import AcknowledgeAttention, AttentionList
from client.protocol.digest import DIGEST
from client.protocol.frames import MAX_REQUEST, Frames
from client.protocol.hello import PROTOCOL, Welcome
from client.protocol.ids import DaemonGen, NodeId, StoreId
from client.protocol.operation import Plane
from client.protocol.refusals import Code, Refusal
from client.worker.link import Gone, Link
from tests.support.wire import Message, packed

WELCOME = Welcome(
    protocol=PROTOCOL,
    table=DIGEST,
    plane=Plane.MEMBER,
    actor="agent/a",
    node_id=NodeId("n"),
    store_id=StoreId("s"),
    daemon_gen=DaemonGen(1),
    version="0",
    firm_bin="/firm",
)
ASK = AcknowledgeAttention(key="x")
DONE = AttentionList(items=[])
ANSWER: Message = {"answer": codec.to_plain(DONE), "replayed": False, "seq": 7}
BUSY: Message = {"refusal": codec.to_plain(Refusal(code=Code.STORE_BUSY, about="store", lifted_by="wait"))}


@attrs.define
class Scripted:
    """A daemon that does to each request what the script says next: a reply, or None for hanging up."""

    path: Path
    script: list[Message | None]
    asked: list[dict[str, Any]] = attrs.Factory(list)
    hellos: list[dict[str, Any]] = attrs.Factory(list)

    async def converse(self, stream: trio.SocketStream) -> None:
        frames = Frames(MAX_REQUEST)
        with contextlib.suppress(trio.BrokenResourceError):
            while data := await stream.receive_some():
                for message in map(msgpack.unpackb, frames.feed(data)):
                    if "hello" in message:
                        self.hellos.append(message["hello"])
                        await stream.send_all(packed({"hello": codec.to_plain(WELCOME)}))
                        continue
                    self.asked.append({name: message[name] for name in ("op", "body", "key")})
                    reply = self.script.pop(0)
                    if reply is None:
                        return
                    await stream.send_all(packed({"id": message["id"], **reply}))


@contextlib.asynccontextmanager
async def scripted(path: Path, *script: Message | None) -> AsyncIterator[Scripted]:
    served = Scripted(path, list(script))
    sock = trio.socket.socket(socket.AF_UNIX)
    await sock.bind(str(path))
    sock.listen()
    async with trio.open_nursery() as nursery:

        async def serve(stream: trio.SocketStream) -> None:
            async with stream:
                await served.converse(stream)

        await nursery.start(trio.serve_listeners, serve, [trio.SocketListener(sock)])
        yield served
        nursery.cancel_scope.cancel()


@contextlib.asynccontextmanager
async def linked(path: Path, say: Callable[[str], None], **more: Any) -> AsyncIterator[Link]:  # noqa: ANN401
    async with trio.open_nursery() as nursery:
        link = Link(str(path), more.pop("capability", ""), say, **more)
        nursery.start_soon(link.keep)
        yield link
        nursery.cancel_scope.cancel()


async def test_an_answer_that_was_lost_is_asked_for_with_the_same_key(tmp_path: Path) -> None:
    said: list[str] = []
    path = tmp_path / "s"
    async with scripted(path, None, None, ANSWER) as daemon, linked(path, said.append, capability="c") as link:
        assert await link.ask_at(ASK, key="k") == (DONE, 7)
    assert [each["key"] for each in daemon.asked] == ["k"] * 3
    assert daemon.asked[0] == daemon.asked[1] == daemon.asked[2]
    assert [each["capability"] for each in daemon.hellos] == ["c"] * 3
    assert len(said) == 2


async def test_a_refusal_that_may_pass_is_asked_again_and_another_is_not(tmp_path: Path) -> None:
    path = tmp_path / "s"
    large: Message = {"refusal": codec.to_plain(Refusal(code=Code.LIMIT_EXCEEDED, about="name", lifted_by="less"))}
    async with scripted(path, BUSY, ANSWER, large) as daemon, linked(path, lambda _: None) as link:
        assert await link.ask(ASK, key="k") == DONE
        refused = await link.ask(ASK, key="l")
    assert isinstance(refused, Refusal)
    assert refused.code is Code.LIMIT_EXCEEDED
    assert [each["key"] for each in daemon.asked] == ["k", "k", "l"]


async def test_patience_has_an_end(tmp_path: Path) -> None:
    """With a daemon that cannot, the refusal is the answer; without one, the worker ends."""
    path = tmp_path / "s"
    async with scripted(path, BUSY, BUSY, BUSY, BUSY), linked(path, lambda _: None, patience=0.1) as link:
        refused = await link.ask(ASK, key="k")
    assert isinstance(refused, Refusal)
    assert refused.code is Code.STORE_BUSY
    with pytest.RaisesGroup(pytest.RaisesExc(Gone, match="no daemon for 0.1 seconds", check=lambda e: e.status == 4)):
        async with linked(tmp_path / "nobody", lambda _: None, patience=0.1) as link:
            await link.ask(ASK)


@pytest.mark.parametrize("code", [Code.AGENT_SESSION_GENERATION_FENCED, Code.CAPABILITY_DENIED, Code.NOT_AUTHORIZED])
async def test_a_session_that_is_over_ends_the_worker(tmp_path: Path, code: Code) -> None:
    path = tmp_path / "s"
    over: Message = {"refusal": codec.to_plain(Refusal(code=code, about="session/x", lifted_by="stop"))}
    async with scripted(path, over), linked(path, lambda _: None) as link:
        with pytest.raises(Gone, match=code):
            await link.ask(ASK, key="k")
