"""The first frame: what lets a peer in, and what is said to one that stays outside."""

from __future__ import annotations

import time
from typing import Any

import pytest

from client.protocol.digest import DIGEST
from client.protocol.hello import PROTOCOL
from client.protocol.refusals import HELLO, Code
from daemon.socket import FRAME_SECONDS, HELLO_SECONDS
from tests.support.daemon import Daemon
from tests.support.wire import Client, Message, hello, packed, request

NOT_A_HELLO: dict[str, Any] = {
    "a request": request(1, "team.list"),
    "a cancel": {"cancel": 1},
    "an empty map": {},
    "an empty hello": {"hello": {}},
    "a hello that is no map": {"hello": [PROTOCOL]},
    "a protocol that is no number": {"hello": {"protocol": "1"}},
    "a protocol that is true": {"hello": {"protocol": True}},
    "a key that is bytes": {"hello": {"protocol": PROTOCOL, "key": b"x"}},
    "a field nobody knows": {"hello": {"protocol": PROTOCOL, "uid": 0}},
    "something beside the hello": {"hello": {"protocol": PROTOCOL}, "plane": "operator"},
}


@pytest.fixture
def client(shared: Daemon) -> Client:
    return Client(shared.socket)


def refused(client: Client, message: Message) -> Message:
    """What is said to ``message``, after which the daemon must hang up."""
    with client:
        client.say(message)
        (said,) = client.rest()
    assert said["id"] == 0
    assert Code(said["refusal"]["code"]) in HELLO
    refusal: Message = said["refusal"]
    return refusal


@pytest.mark.parametrize("what", NOT_A_HELLO)
def test_what_is_no_hello_is_refused_by_name(client: Client, what: str) -> None:
    refusal = refused(client, NOT_A_HELLO[what])
    assert refusal["code"] == Code.MALFORMED
    assert refusal["about"] in {"hello", "frame"}


def test_a_field_that_is_wrong_is_named(client: Client) -> None:
    assert "uid" in refused(client, hello(uid=0))["lifted_by"]


@pytest.mark.parametrize("protocol", [0, PROTOCOL + 1, -1])
def test_another_protocol_is_refused_as_such(client: Client, protocol: int) -> None:
    refusal = refused(client, {"hello": {"protocol": protocol, "key": ""}})
    assert refusal["code"] == Code.PROTOCOL_UNSUPPORTED
    assert f"protocol {PROTOCOL}" in refusal["lifted_by"]


def test_another_protocol_may_say_hello_in_words_of_its_own(client: Client) -> None:
    refusal = refused(client, {"hello": {"protocol": PROTOCOL + 1, "who": ["anybody"]}})
    assert refusal["code"] == Code.PROTOCOL_UNSUPPORTED


def test_nothing_is_asked_after_a_refused_hello(client: Client, shared: Daemon) -> None:
    """A request that came in the same piece is not answered, whatever it is."""
    with client:
        client.send(packed(hello("wrong"), request(1, "agent.create", {"name": "intruder"})))
        (said,) = client.rest()
    assert said["id"] == 0
    with shared.client() as other:
        names = [agent["name"] for agent in other.ask("agent.list", {"limit": 500})["answer"]["items"]]
    assert "intruder" not in names


def test_the_daemon_says_who_it_is_and_who_we_are(client: Client, shared: Daemon) -> None:
    with client:
        said = client.hello(shared.key)["hello"]
        status = client.ask("node.status")["answer"]
    assert (said["plane"], said["actor"]) == ("operator", "operator")
    assert (said["protocol"], said["table"]) == (PROTOCOL, DIGEST)
    same = ("node_id", "store_id", "daemon_gen", "version")
    assert [said[name] for name in same] == [status[name] for name in same]
    assert said["firm_bin"].endswith("/bin/firm")


def test_another_table_is_only_told_and_its_operations_are_refused_one_by_one(client: Client, shared: Daemon) -> None:
    with client:
        assert client.hello(shared.key, table="0123456789abcdef")["hello"]["table"] == DIGEST
        assert client.ask("team.certify")["refusal"]["code"] == Code.UNKNOWN_OPERATION
        unknown = client.ask("team.list", {"sort": "name"})["refusal"]
        assert (unknown["code"], "sort" in unknown["lifted_by"]) == (Code.MALFORMED, True)
        assert "answer" in client.ask("team.list")


def test_hello_and_the_first_request_may_come_in_one_piece(client: Client, shared: Daemon) -> None:
    with client:
        client.say(hello(shared.key), request(7, "team.list"))
        assert "hello" in client.hear()
        assert client.hear()["id"] == 7


def test_a_second_hello_ends_the_conversation(client: Client, shared: Daemon) -> None:
    with client:
        client.hello(shared.key)
        client.say(hello(shared.key))
        (said,) = client.rest()
    assert said["refusal"]["code"] == Code.MALFORMED


@pytest.mark.soak
def test_the_seconds_to_say_hello_and_to_finish_a_frame_are_real_ones(shared: Daemon) -> None:
    began = time.monotonic()
    with Client(shared.socket) as silent, shared.client() as slow:
        slow.send(packed(request(1, "team.list"))[:-1])
        assert silent.rest() == []
        assert HELLO_SECONDS <= time.monotonic() - began < HELLO_SECONDS + 4
        assert slow.rest() == []
        assert FRAME_SECONDS <= time.monotonic() - began < FRAME_SECONDS + 4
