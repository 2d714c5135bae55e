"""Anything at all on the wire: the daemon lives, logs no error, and other peers are answered.

What comes back is always whole frames, each about a request that was made or about the connection itself.
"""

from __future__ import annotations

from typing import Any

import msgpack
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from client.protocol.frames import frame
from client.protocol.refusals import Code
from tests.support.daemon import Daemon
from tests.support.wire import Client, packed, request

#: What a request may hold, and what it may not.
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**64 - 1),
    st.floats(),
    st.text(max_size=20),
    st.binary(max_size=20),
    st.builds(msgpack.ExtType, st.integers(0, 127), st.binary(max_size=8)),
    st.builds(msgpack.Timestamp, st.integers(-(2**40), 2**40), st.integers(0, 999_999_999)),
)
KEYS = st.one_of(st.text(max_size=12), st.sampled_from(["id", "op", "body", "key", "cancel", "hello", "limit", "name"]))
VALUES: st.SearchStrategy[Any] = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4), max_leaves=12
)
OPS = st.sampled_from(
    ["agent.create", "agent.list", "event.list", "event.wait", "team.create", "team.show", "node.status"]
)
REQUESTS = st.fixed_dictionaries(
    {"id": st.integers(1, 9), "op": OPS, "body": st.dictionaries(KEYS, VALUES, max_size=4)},
    optional={"key": st.text(max_size=4)},
)
WAITS = st.builds(
    lambda n, text: request(n, "event.wait", {"predicate": text, "timeout_ms": 3}),
    st.integers(1, 9),
    st.sampled_from(["seq>1000000000", "seq>-1", "agent:x.version>1", "team:.state=active", "seq>9" + "9" * 40]),
)
WATCHES = st.integers(1, 9).map(lambda n: packed(request(n, "event.watch"), {"cancel": n}))
CANCELS = st.builds(lambda n: {"cancel": n}, st.integers(-1, 9))
PIECES = st.one_of(
    st.binary(max_size=60),
    st.binary(max_size=60).map(frame),
    VALUES.map(lambda value: frame(msgpack.packb(value))),
    REQUESTS.map(packed),
    WAITS.map(packed),
    WATCHES,
    CANCELS.map(packed),
)


@st.composite
def conversations(draw: st.DrawFn) -> bytes:
    """Pieces of every kind, cut, doubled or with one bit turned."""
    pieces = draw(st.lists(PIECES, max_size=6))
    for _ in range(draw(st.integers(0, 2))):
        if not any(pieces):
            break
        at = draw(st.integers(0, len(pieces) - 1))
        piece, bit = pieces[at], draw(st.integers(0, max(0, 8 * len(pieces[at]) - 1)))
        cut = bit // 8
        turned = piece[:cut] + bytes([piece[cut] ^ (1 << bit % 8)]) + piece[cut + 1 :] if piece else piece
        pieces[at] = draw(st.sampled_from([piece[:cut], turned, piece + piece]))
    return b"".join(pieces)


def tried(daemon: Daemon, witness: Client, data: bytes, *, greeted: bool, stays: bool) -> None:
    with Client(daemon.socket) as client:
        if greeted:
            assert "hello" in client.hello(daemon.key)
        try:
            client.send(data)
            client.half_close()
        except (BrokenPipeError, ConnectionResetError):
            pass  # it had seen enough
        while stays and not client.silent(0.2):  # at its end it is not silent; what waits longer is left alone
            try:
                reply = client.hear()
            except EOFError:
                break
            assert reply.keys() - {"more"} in ({"id", "refusal"}, {"id", "answer", "replayed", "seq"})
            assert "refusal" not in reply or Code(reply["refusal"]["code"]) is not Code.INTERNAL
            assert reply["id"] == 0 or greeted
    assert "answer" in witness.ask("team.list")


def fuzz(daemon: Daemon, examples: int) -> None:
    @settings(
        max_examples=examples,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
    )
    @given(conversations(), st.booleans(), st.booleans())
    def run(data: bytes, greeted: bool, stays: bool) -> None:  # noqa: FBT001 — hypothesis gives them by position
        tried(daemon, witness, data, greeted=greeted, stays=stays)

    with daemon.client() as witness:
        run()
    assert daemon.complaints() == []


def test_nothing_that_is_said_hurts_the_daemon(shared: Daemon) -> None:
    fuzz(shared, 250)


@pytest.mark.soak
def test_nothing_that_is_said_hurts_the_daemon_in_the_long_run(daemon: Daemon) -> None:
    fuzz(daemon, 10_000)


@settings(max_examples=60, deadline=None)
@given(data=st.binary(max_size=300))
def test_random_bytes_before_the_hello_end_the_conversation(shared: Daemon, data: bytes) -> None:
    with Client(shared.socket) as client:
        client.send(data)
        client.half_close()
        said = client.rest()
    assert all(reply["id"] == 0 and "refusal" in reply for reply in said)
    assert len(said) <= 1
