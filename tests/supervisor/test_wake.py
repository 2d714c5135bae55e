"""Whether a member is told something now, and how a cycle ended: every case as a row. Pure."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import attrs
import pytest

from client.protocol.board import Seat, Waking
from client.protocol.effect import RuntimeEffect, Wake
from client.protocol.ids import SessionId, UnixMs
from client.protocol.session import AgentSession, Driver, Ending, Failure, SessionState
from providers.records import Reading
from supervisor.decide import Adopt, Control, Degrade, Tell, Watch
from supervisor.wake import LONG_IDLE_MS, MOST_EMPTY, Rest, ending, look_again, recorded, wake
from tests.supervisor.test_decide import COLD, DELIVER, LAUNCH, SEAT, STOP, TYPING, at, decided
from tests.support.records import SESSION as COMMAND

SESSION = attrs.evolve(COMMAND, profile="composer")
NOTHING = Waking(queued=False, asked=0, told=0, doing=False, changed=False, claimable=False, idle_ms=0)
EVERYTHING = Waking(
    queued=True,
    asked=1,
    told=1,
    doing=True,
    changed=True,
    claimable=True,
    idle_ms=LONG_IDLE_MS,
    accepted=True,
)
#: What is taken away from everything, one after the other, and why the member is told what is left.
ORDER: list[tuple[dict[str, Any], Wake | Rest]] = [
    ({}, Wake.DELIVERY),
    ({"queued": False}, Wake.DELIVERY),
    ({"asked": 0}, Wake.CONTINUE),
    ({"changed": False}, Wake.PROBATION),
    ({"doing": False}, Wake.ACCEPTED),
    ({"accepted": False}, Wake.CLAIMABLE),
    ({"claimable": False}, Wake.MAIL),
    ({"idle_ms": LONG_IDLE_MS - 1}, Rest.SLEEP),
    ({"told": 0}, Rest.SLEEP),
]


def session(streak: int = 0, *, degraded: bool = False) -> AgentSession:
    return attrs.evolve(SESSION, streak=streak, degraded_at=UnixMs(1) if degraded else None)


def lacking(number: int) -> Waking:
    """Everything but what the first rows take away."""
    taken: dict[str, Any] = {}
    for less, _ in ORDER[: number + 1]:
        taken |= less
    return attrs.evolve(EVERYTHING, **taken)


@pytest.mark.parametrize("number", range(len(ORDER)))
def test_the_first_reason_counts(number: int) -> None:
    assert wake(session(1), lacking(number)) is ORDER[number][1]


@pytest.mark.parametrize("number", range(len(ORDER)))
def test_a_degraded_member_is_told_nothing_and_one_that_did_nothing_too_often_is_degraded(number: int) -> None:
    for streak in range(MOST_EMPTY + 2):
        assert wake(session(streak, degraded=True), lacking(number)) is Rest.SLEEP
    for streak in (MOST_EMPTY, MOST_EMPTY + 1):
        assert wake(session(streak), lacking(number)) is Rest.DEGRADE


def test_a_cycle_that_came_to_nothing_gives_one_more_only_to_who_has_a_work() -> None:
    doing = attrs.evolve(NOTHING, doing=True)
    assert [wake(session(streak), doing) for streak in range(MOST_EMPTY)] == [
        Rest.SLEEP,
        Wake.PROBATION,
        Wake.PROBATION,
    ]
    assert [wake(session(streak), NOTHING) for streak in range(MOST_EMPTY)] == [Rest.SLEEP] * MOST_EMPTY


def test_informational_mail_alone_wakes_nobody_before_its_time() -> None:
    informed = attrs.evolve(NOTHING, told=5)
    assert wake(session(), informed) is Rest.SLEEP
    assert wake(session(), attrs.evolve(informed, idle_ms=LONG_IDLE_MS)) is Wake.MAIL


def seat(facts: Waking | None, of: AgentSession = SESSION) -> Seat:
    return attrs.evolve(SEAT, session=of, launch=LAUNCH, waking=facts)


def test_a_supervisor_looks_again_when_somebody_has_been_idle_for_long() -> None:
    informed = attrs.evolve(NOTHING, told=1, idle_ms=LONG_IDLE_MS - 500)
    later = attrs.evolve(informed, idle_ms=LONG_IDLE_MS - 900)
    assert look_again([seat(informed), seat(later), seat(NOTHING), seat(None), SEAT], 10**6) == 500
    assert look_again([seat(later)], 10**6) == 900
    assert look_again([seat(informed)], 10) == 10
    # Nobody is waited for who is told now, or is told nothing.
    assert (
        look_again([seat(attrs.evolve(informed, queued=True)), seat(informed, session(3, degraded=True))], 7000) == 7000
    )


def test_endings_are_told_in_their_order() -> None:
    order = [
        Ending.PROVIDER_FAILED,
        Ending.CLOSED,
        Ending.INTERRUPTED_BY_HOST,
        Ending.INTERRUPTED_BY_PROVIDER,
        Ending.EMPTY_OUTPUT,
        Ending.COMPLETED,
    ]
    assert {*order, Ending.TRANSPORT_LOST, Ending.TERMINAL_UNOBSERVED} == set(Ending)
    for size in range(1, len(order) + 1):
        for seen in itertools.combinations(order, size):
            assert ending(seen) is seen[0]
            assert ending(seen[::-1]) is seen[0]
    assert ending(()) is Ending.TERMINAL_UNOBSERVED


@pytest.mark.parametrize("failure", Failure)
def test_records_say_how_a_provider_failed_and_never_that_a_cycle_was_completed(failure: Failure) -> None:
    said = Reading(path=Path("x"), offset=0)
    assert recorded(attrs.evolve(said, ending=failure.value)) == {Ending.PROVIDER_FAILED}
    assert recorded(attrs.evolve(said, ending="interrupted_by_provider")) == {Ending.INTERRUPTED_BY_PROVIDER}
    for nothing in (None, said, attrs.evolve(said, ending="completed")):
        assert recorded(nothing) == set()


def test_an_interrupt_that_the_program_reports_is_not_credited_to_us() -> None:
    """I50: only where one of ours is in this cycle, which then counts."""
    theirs = recorded(Reading(path=Path("x"), offset=0, ending="interrupted_by_provider"))
    assert ending({*theirs, Ending.COMPLETED}) is Ending.INTERRUPTED_BY_PROVIDER
    assert ending({*theirs, Ending.INTERRUPTED_BY_HOST}) is Ending.INTERRUPTED_BY_HOST


def test_a_supervisor_looks_again_when_what_is_known_of_a_provider_counts_no_more() -> None:
    blocked = attrs.evolve(seat(None), unavailable_ms=900)
    assert look_again([blocked, SEAT], 10**6) == 900
    assert look_again([blocked, attrs.evolve(SEAT, unavailable_ms=300)], 10**6) == 300


def followed(of: Seat) -> str:
    return f"place {of.member_run_id}"


def test_what_waits_is_told_to_who_can_be_told() -> None:
    queued = attrs.evolve(NOTHING, queued=True)
    told = seat(queued)
    assert decided(told, busy={followed(told)}) == [Tell(SESSION, Wake.DELIVERY)]
    assert decided(seat(None), busy={followed(told)}) == []
    assert decided(seat(NOTHING), busy={followed(told)}) == []
    tired = seat(queued, session(MOST_EMPTY))
    assert decided(tired, busy={followed(tired)}) == [Degrade(session(MOST_EMPTY))]


def test_a_cycle_is_watched_while_it_is_under_way() -> None:
    active = attrs.evolve(SESSION, state=SessionState.ACTIVE)
    told = seat(None, active)
    assert decided(told, busy={followed(told)}) == [Watch(active, LAUNCH, TYPING)]
    assert decided(attrs.evolve(told, session=attrs.evolve(active, profile="command")), busy={followed(told)}) == []
    own = attrs.evolve(active, driver=Driver.USER_DRIVEN)
    assert decided(seat(None, own), busy={followed(told)}) == []
    assert decided(told, controls=[STOP], busy={followed(told)}) == [Control(STOP, LAUNCH, TYPING)]


def test_one_thing_at_a_time_at_a_terminal() -> None:
    """What a former supervisor prepared is a control, and is done before anything new is."""
    told = seat(attrs.evolve(NOTHING, queued=True))
    control = Control(DELIVER, LAUNCH, TYPING)
    assert control.busy == Tell(SESSION, Wake.DELIVERY).busy == Degrade(SESSION).busy
    assert decided(told, busy={followed(told), control.busy}) == []
    assert decided(seat(None), controls=[DELIVER], busy={followed(told)}) == [control]
    assert decided(at(COLD), controls=[DELIVER], busy={followed(told)}) == [Control(DELIVER, None)]
    other = attrs.evolve(DELIVER, session_id=SessionId("other"))
    assert Control(other, None).busy != control.busy
    assert decided(seat(None)) == [Adopt(seat(None), SESSION, LAUNCH)]


def test_every_control_names_what_it_is_done_to() -> None:
    kinds: list[RuntimeEffect] = [STOP, DELIVER]
    assert len({Control(each, None).busy for each in kinds}) == len(kinds)
