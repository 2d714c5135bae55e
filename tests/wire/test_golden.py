"""The bytes on the wire, as files: a change here cuts off every client that is not upgraded with the daemon.

Each file is one whole frame, four bytes of length and msgpack. They change only together with ``hello.PROTOCOL``.
"""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

import msgpack
import pytest
import trio

from client.cli.ask import Conversation
from client.connection import connect
from client.protocol import codec
from client.protocol.agent import CreateAgent, ShowAgent
from client.protocol.digest import DIGEST
from client.protocol.frames import MAX_ANSWER, Frames, frame
from client.protocol.hello import PROTOCOL, Welcome
from client.protocol.ids import AgentMemberRef, DaemonGen, NodeId, StoreId
from client.protocol.operation import Plane
from client.protocol.refusals import Code, Refusal

GOLDEN = Path(__file__).parent / "golden"
KEY = "7e" * 32
#: Stands in the files where a real hello names the table of the day; of the same length.
TABLE = "0123456789abcdef"

WELCOME = Welcome(
    protocol=PROTOCOL,
    table=TABLE,
    plane=Plane.OPERATOR,
    actor="operator",
    node_id=NodeId("node234567"),
    store_id=StoreId("store23456"),
    daemon_gen=DaemonGen(7),
    version="0.1.0",
    firm_bin="/opt/firm/bin/firm",
)
REFUSED = Refusal(code=Code.NOT_FOUND, about="agent/ann", lifted_by="see who there is: firm agent list")
CONFLICT = Refusal(code=Code.VERSION_CONFLICT, about="agent/ann", lifted_by="read it again", current_version=3)
BODY = codec.packb({"name": "ann", "skills": [], "version": 1})

#: What this program says in each case.
SAID: dict[str, bytes] = {
    "welcome": codec.packb({"hello": codec.to_plain(WELCOME)}),
    "answer": codec.answer_frame(1, BODY, seq=300),
    "answer-replayed": codec.answer_frame(2, BODY, seq=300, replayed=True),
    "answer-more": codec.answer_frame(3, BODY, seq=70_000, more=True),
    "refusal": codec.refusal_frame(1, REFUSED),
    "refusal-version": codec.refusal_frame(2, CONFLICT),
}
#: What each file says.
MEANT: dict[str, dict[str, Any]] = {
    "hello": {"hello": {"protocol": 1, "table": TABLE, "key": KEY}},
    "ask": {"id": 1, "op": "agent.show", "body": {"agent_member_id": "ann"}},
    "ask-keyed": {
        "id": 2,
        "op": "agent.create",
        "body": {
            "name": "ann",
            "description": "",
            "role": "",
            "capabilities": [],
            "skills": ["sql"],
            "profile": "external",
            "model": "",
            "workspace": "worktree",
            "ceiling": "workspace_write",
        },
        "key": "k1",
    },
    "cancel": {"cancel": 1},
    "welcome": {"hello": codec.to_plain(WELCOME)},
    "answer": {"id": 1, "replayed": False, "seq": 300, "answer": msgpack.unpackb(BODY)},
    "answer-replayed": {"id": 2, "replayed": True, "seq": 300, "answer": msgpack.unpackb(BODY)},
    "answer-more": {"more": True, "id": 3, "replayed": False, "seq": 70_000, "answer": msgpack.unpackb(BODY)},
    "refusal": {"id": 1, "refusal": codec.to_plain(REFUSED)},
    "refusal-version": {"id": 2, "refusal": codec.to_plain(CONFLICT)},
}


def golden(name: str) -> bytes:
    return (GOLDEN / f"{name}.msgpack").read_bytes()


@pytest.mark.parametrize("name", MEANT)
def test_a_file_says_what_it_is_meant_to_say(name: str) -> None:
    (payload,) = Frames(MAX_ANSWER).feed(golden(name))
    assert codec.unpackb(payload) == MEANT[name]


def test_every_file_has_a_meaning() -> None:
    assert {path.stem for path in GOLDEN.iterdir()} == set(MEANT)


@pytest.mark.parametrize("name", SAID)
def test_the_daemon_says_it_byte_for_byte(name: str) -> None:
    assert frame(SAID[name]) == golden(name)


def listener(path: Path) -> socket.socket:
    """Somebody who takes connections at ``path`` and writes nothing."""
    sock = socket.socket(socket.AF_UNIX)
    sock.bind(str(path))
    sock.listen()
    return sock


def heard(sock: socket.socket, size: int) -> bytes:
    """What came, with the table of the day as the files have it."""
    data = b""
    while len(data) < size:
        more = sock.recv(size - len(data))
        assert more
        data += more
    return data.replace(DIGEST.encode(), TABLE.encode())


def test_the_command_line_says_it_byte_for_byte(tmp_path: Path) -> None:
    said = golden("hello") + golden("ask")
    (tmp_path / "operator.key").write_text(KEY + "\n")
    (tmp_path / "node.json").write_text(json.dumps({"socket": str(tmp_path / "s")}))
    with listener(tmp_path / "s") as door:
        conversation = Conversation(DIGEST, home=str(tmp_path))
        conversation.begin("agent.show", {"agent_member_id": "ann"})
        with door.accept()[0] as peer:
            assert heard(peer, len(said)) == said
        conversation.close()


async def test_a_connection_says_it_byte_for_byte(tmp_path: Path) -> None:
    """Against somebody who answers with the files, and then cannot be found out to be no daemon."""
    caught: list[object] = []

    async def ask() -> None:
        async with connect(tmp_path / "s", KEY) as node:
            assert node.welcome == WELCOME
            shown = await node.ask(ShowAgent(agent_member_id=AgentMemberRef("ann")))
            made = await node.ask(CreateAgent(name="ann", skills=["sql"]), key="k1")
            caught.extend([shown, made])

    def answer() -> None:
        with door.accept()[0] as peer:
            assert heard(peer, len(golden("hello"))) == golden("hello")
            peer.sendall(golden("welcome"))
            assert heard(peer, len(golden("ask"))) == golden("ask")
            peer.sendall(golden("refusal"))
            assert heard(peer, len(golden("ask-keyed"))) == golden("ask-keyed")
            peer.sendall(frame(codec.refusal_frame(2, Refusal(code=Code.STORE_FULL))))

    with listener(tmp_path / "s") as door:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask)
            await trio.to_thread.run_sync(answer)
    assert caught == [REFUSED, Refusal(code=Code.STORE_FULL)]
