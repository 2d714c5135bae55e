"""Whether a member is told something at its terminal now, and how a cycle ended. Pure: what was seen comes as facts."""

from __future__ import annotations

import enum
from collections.abc import Collection, Sequence

from client.protocol.board import Seat, Waking
from client.protocol.effect import Wake
from client.protocol.session import AgentSession, Ending
from providers.records import Reading

#: Cycles in a row that came to nothing, before a member gets no more of them.
MOST_EMPTY = 3
#: Milliseconds of idleness after which informational mail alone begins a cycle.
LONG_IDLE_MS = 120_000


class Rest(enum.Enum):
    """Nothing is told: there is nothing to tell, or it came to nothing too often, which is recorded once."""

    SLEEP = "sleep"
    DEGRADE = "degrade"


def wake(session: AgentSession, facts: Waking) -> Wake | Rest:
    """Why a member that is idle is told something now."""
    if session.degraded_at is not None:
        return Rest.SLEEP
    if session.streak >= MOST_EMPTY:
        return Rest.DEGRADE
    if facts.queued or facts.asked:
        return Wake.DELIVERY
    if facts.changed:
        return Wake.CONTINUE
    if session.streak and facts.doing:
        return Wake.PROBATION
    if facts.accepted:
        return Wake.ACCEPTED
    if facts.claimable:
        return Wake.CLAIMABLE
    if facts.told and facts.idle_ms >= LONG_IDLE_MS:
        return Wake.MAIL
    return Rest.SLEEP


def look_again(seats: Sequence[Seat], most: int) -> int:
    """Milliseconds until somebody is idle for long whom informational mail waits for, or what is known of somebody's
    provider counts no more; ``most`` when there is nobody.
    """
    waits = [seat.unavailable_ms for seat in seats if seat.unavailable_ms]
    waits += [
        LONG_IDLE_MS - seat.waking.idle_ms
        for seat in seats
        if seat.session is not None and seat.waking is not None and seat.waking.told
        if wake(seat.session, seat.waking) is Rest.SLEEP and seat.session.degraded_at is None
    ]
    return max(1, min([most, *waits]))


#: What counts where several things were seen of one cycle: the first.
_PRECEDENCE = (
    Ending.PROVIDER_FAILED,
    Ending.CLOSED,
    Ending.INTERRUPTED_BY_HOST,
    Ending.INTERRUPTED_BY_PROVIDER,
    Ending.EMPTY_OUTPUT,
    Ending.COMPLETED,
)


def ending(seen: Collection[Ending]) -> Ending:
    """How a cycle ended; what nobody saw is said to be unseen."""
    return next((each for each in _PRECEDENCE if each in seen), Ending.TERMINAL_UNOBSERVED)


def recorded(said: Reading | None) -> set[Ending]:
    """What the records of a program say of a cycle. That it was done well is not theirs to say."""
    if said is None or not said.ending or said.ending == Ending.COMPLETED:
        return set()
    return {Ending.PROVIDER_FAILED if said.failure else Ending(said.ending)}
