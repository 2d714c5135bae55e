"""Requests on one connection: many at a time, each answered by its own id, each alone at fault."""

from __future__ import annotations

import pytest

from client.protocol.frames import MAX_REQUEST, PREFIX, frame
from client.protocol.refusals import Code
from daemon.socket import MAX_UNANSWERED, MAX_WAITS
from tests.support.daemon import Daemon
from tests.support.wire import Client, Message, packed, request

FOREVER = {"predicate": "seq>1000000000", "timeout_ms": 86_400_000}


@pytest.fixture
def client(shared: Daemon) -> Client:
    return shared.client()


def code(reply: Message) -> str:
    return str(reply["refusal"]["code"])


def test_pipelined_requests_are_all_answered_by_id(client: Client) -> None:
    asked = [request(n, "team.list") if n % 3 else request(n, "agent.create", {"name": f"a{n}"}) for n in range(1, 301)]
    with client:
        client.say(*asked)
        replies = [client.hear() for _ in asked]
    assert sorted(reply["id"] for reply in replies) == list(range(1, 301))
    assert all("answer" in reply for reply in replies)
    names = {reply["id"]: reply["answer"]["name"] for reply in replies if not reply["id"] % 3}
    assert names == {n: f"a{n}" for n in range(3, 301, 3)}


def test_a_read_and_a_write_overtake_a_wait(client: Client) -> None:
    """Which of the two is answered first depends on when the write's batch is committed."""
    with client:
        client.say(
            request(1, "event.wait", FOREVER), request(2, "agent.create", {"name": "b"}), request(3, "team.list")
        )
        assert {client.hear()["id"], client.hear()["id"]} == {2, 3}
        assert client.silent()


@pytest.mark.parametrize(
    ("op", "body", "expected"),
    [
        ("team.fly", {}, Code.UNKNOWN_OPERATION),
        ("", {}, Code.UNKNOWN_OPERATION),
        ("team.list", {"limit": "10"}, Code.MALFORMED),
        ("team.list", {"limit": 501}, Code.LIMIT_EXCEEDED),
        ("team.show", {}, Code.MALFORMED),
        ("team.list", [], Code.MALFORMED),
        ("team.list", None, Code.MALFORMED),
    ],
)
def test_a_request_that_is_wrong_is_refused_alone(client: Client, op: str, body: object, expected: Code) -> None:
    with client:
        client.say({"id": 1, "op": op, "body": body})
        assert code(client.hear()) == expected
        assert "answer" in client.ask("team.list")


@pytest.mark.parametrize(
    "message",
    [
        {"id": 0, "op": "team.list", "body": {}},
        {"id": -1, "op": "team.list", "body": {}},
        {"id": 2**63, "op": "team.list", "body": {}},
        {"id": True, "op": "team.list", "body": {}},
        {"id": "1", "op": "team.list", "body": {}},
        {"op": "team.list", "body": {}},
        {"id": 1, "op": 7, "body": {}},
        {"id": 1, "op": "team.list", "body": {}, "key": 7},
        {"id": 1, "op": "team.list", "body": {}, "key": "k" * 201},
        {"id": 1, "op": "team.list", "body": {}, "plane": "operator"},
        {"cancel": "1"},
        {"cancel": 1, "op": "team.list"},
        {},
    ],
)
def test_an_envelope_that_is_wrong_ends_the_conversation(client: Client, message: Message) -> None:
    with client:
        client.say(request(5, "agent.create", {"name": "c"}), message, request(6, "team.list"))
        said = client.rest()
    assert {reply["id"] for reply in said} == {0, 5}
    assert code(next(reply for reply in said if reply["id"] == 0)) == Code.MALFORMED
    assert "answer" in next(reply for reply in said if reply["id"] == 5)


@pytest.mark.parametrize("payload", [b"", b"\xc1", b"\x81\xa2", b"\x01\x02", b"[]", b"\x90", b"\xc0"])
def test_what_is_no_map_ends_the_conversation(client: Client, payload: bytes) -> None:
    with client:
        client.send(frame(payload))
        (said,) = client.rest()
    assert (said["id"], code(said)) == (0, Code.MALFORMED)


def test_a_frame_too_large_is_refused_and_what_came_before_it_is_answered(client: Client) -> None:
    with client:
        announced = (MAX_REQUEST + 1).to_bytes(PREFIX, "big")
        client.send(packed(request(1, "agent.create", {"name": "d"}), request(2, "team.list")) + announced)
        said = {reply["id"]: reply for reply in client.rest()}
    assert said.keys() == {0, 1, 2}
    assert code(said[0]) == Code.FRAME_TOO_LARGE
    assert str(MAX_REQUEST) in said[0]["refusal"]["lifted_by"]
    assert "answer" in said[1]
    assert "answer" in said[2]


def test_a_request_of_the_largest_size_is_read(client: Client) -> None:
    empty = len(packed(request(1, "team.list", {"cursor": "x" * 70_000}))) - PREFIX - 70_000
    body = {"cursor": "x" * (MAX_REQUEST - empty)}
    with client:
        assert len(packed(request(1, "team.list", body))) == MAX_REQUEST + PREFIX
        assert code(client.ask("team.list", body)) == Code.LIMIT_EXCEEDED


def test_a_peer_that_says_no_more_gets_its_answers(client: Client) -> None:
    with client:
        client.say(
            request(1, "event.wait", {"predicate": "seq>1000000000", "timeout_ms": 50}),
            request(2, "agent.create", {"name": "e"}),
            request(3, "node.status"),
        )
        client.half_close()
        said = {reply["id"]: reply for reply in client.rest()}
    assert said[1]["answer"]["timed_out"]
    assert said[2]["answer"]["name"] == "e"
    assert said[3]["answer"]["live"]


def test_half_a_frame_and_the_end_is_no_request(client: Client) -> None:
    with client:
        client.send(packed(request(1, "team.list"), request(2, "agent.create", {"name": "half"}))[:-1])
        client.half_close()
        (said,) = client.rest()
    assert said["id"] == 1


def test_a_cancel_drops_a_wait_and_only_that(client: Client) -> None:
    with client:
        client.say(request(1, "event.wait", FOREVER), request(2, "event.watch"), request(3, "team.list"))
        assert client.hear()["id"] == 3
        client.say({"cancel": 1}, {"cancel": 77}, request(4, "agent.create", {"name": "f"}))
        found = [client.hear(), client.hear()]
    assert {(reply["id"], reply.get("more", False)) for reply in found} == {(2, True), (4, False)}


def test_a_second_wait_under_the_same_id_is_refused_and_the_first_lives(client: Client) -> None:
    brief = {**FOREVER, "timeout_ms": 200}
    with client:
        client.say(request(1, "event.wait", brief), request(1, "event.wait", FOREVER))
        assert code(client.hear()) == Code.TOO_MANY_REQUESTS
        assert client.hear()["answer"]["timed_out"]
        assert "answer" in client.ask("team.list")


@pytest.mark.parametrize("at_once", [True, False])
def test_no_more_waits_than_a_connection_may_have(client: Client, *, at_once: bool) -> None:
    many = [request(n, "event.wait", FOREVER) for n in range(1, MAX_WAITS + 11)]
    with client:
        if at_once:
            client.say(*many)
        else:
            for message in many:
                client.say(message)
        refused = [client.hear() for _ in range(10)]
        assert {reply["id"] for reply in refused} == set(range(MAX_WAITS + 1, MAX_WAITS + 11))
        assert {code(reply) for reply in refused} == {Code.TOO_MANY_REQUESTS}
        assert "answer" in client.ask("team.list", {"limit": 1})
        client.say({"cancel": 5}, request(999, "event.wait", {**FOREVER, "timeout_ms": 1}))
        assert client.hear()["answer"]["timed_out"]


def test_more_unanswered_writes_than_allowed_are_refused_and_the_others_are_done(client: Client) -> None:
    many = MAX_UNANSWERED + 500
    with client:
        client.say(
            *(request(n, "agent.pause", {"agent_member_id": "x", "expected_version": 1}) for n in range(1, many))
        )
        replies = [client.hear() for _ in range(1, many)]
        assert {reply["id"] for reply in replies} == set(range(1, many))
        assert {code(reply) for reply in replies} <= {Code.NOT_FOUND, Code.TOO_MANY_REQUESTS}
        assert sum(code(reply) == Code.NOT_FOUND for reply in replies) >= MAX_UNANSWERED
        assert "answer" in client.ask("team.list")
