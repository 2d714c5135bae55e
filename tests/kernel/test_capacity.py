"""What is known of a provider counts while it is fresh, and only where it says that there is nothing. Pure."""

from __future__ import annotations

import attrs
import pytest

from client.protocol.ids import UnixMs
from client.protocol.session import AgentSession, Capacity
from daemon.kernel.capacity import FRESH_MS, fresh_ms, shown, unavailable_ms
from tests.support.records import SESSION

AT = 1_000_000
#: Moments after it was read, and for how long it counts from then on; before it was read a clock was set.
AGES = [(0, FRESH_MS), (1, FRESH_MS - 1), (FRESH_MS - 1, 1), (FRESH_MS, 0), (FRESH_MS * 9, 0), (-1, 0), (-FRESH_MS, 0)]
NOTHING = {Capacity.EXHAUSTED, Capacity.UNAUTHORIZED}


def read(capacity: Capacity) -> AgentSession:
    return attrs.evolve(SESSION, capacity=capacity, capacity_at=UnixMs(AT))


@pytest.mark.parametrize("capacity", Capacity)
@pytest.mark.parametrize(("age", "left"), AGES)
def test_only_what_is_fresh_counts(capacity: Capacity, age: int, left: int) -> None:
    """I38: what is stale keeps nobody from anything and is not shown, not even as available."""
    of, now = read(capacity), UnixMs(AT + age)
    known = left if capacity is not Capacity.UNKNOWN else 0
    assert fresh_ms(of, now) == known
    assert unavailable_ms(of, now) == (left if capacity in NOTHING else 0)
    assert shown(of, now).capacity is (capacity if known else Capacity.UNKNOWN)


@pytest.mark.parametrize("capacity", Capacity)
def test_what_nobody_read_says_nothing(capacity: Capacity) -> None:
    of = attrs.evolve(SESSION, capacity=capacity, capacity_at=None)
    assert (fresh_ms(of, UnixMs(AT)), unavailable_ms(of, UnixMs(AT))) == (0, 0)
    assert shown(of, UnixMs(AT)).capacity is Capacity.UNKNOWN
