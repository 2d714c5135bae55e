"""What the provider of a session is known to give it, for as long as that is worth something. What is old says nothing:
it keeps nobody from anything, and is not shown as if it were true.
"""

from __future__ import annotations

import attrs

from client.protocol.ids import UnixMs
from client.protocol.session import AgentSession, Capacity

#: Milliseconds for which it counts.
FRESH_MS = 300_000
_NOTHING = frozenset({Capacity.EXHAUSTED, Capacity.UNAUTHORIZED})


def fresh_ms(of: AgentSession, now: UnixMs) -> int:
    """Milliseconds from now for which it counts; 0 for what is absent or stale, or comes from a clock that was set."""
    if of.capacity_at is None or of.capacity is Capacity.UNKNOWN or of.capacity_at > now:
        return 0
    return max(0, of.capacity_at + FRESH_MS - now)


def unavailable_ms(of: AgentSession, now: UnixMs) -> int:
    """Milliseconds from now for which it is known to give nothing: so long nothing is begun there."""
    return fresh_ms(of, now) if of.capacity in _NOTHING else 0


def shown(of: AgentSession, now: UnixMs) -> AgentSession:
    """The session as it is told to anybody."""
    return of if fresh_ms(of, now) else attrs.evolve(of, capacity=Capacity.UNKNOWN)
