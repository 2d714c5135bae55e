"""How many members of a run are in a cycle at once, who comes next, and who is not told or started for now. Pure."""

from __future__ import annotations

from collections.abc import Collection

import attrs
import pytest

from client.protocol.board import DueList, Seat, Waking
from client.protocol.effect import RuntimeEffect, Wake
from client.protocol.ids import EffectId, MemberRunId, SessionId, SupGen
from client.protocol.session import SessionState
from providers.profiles import Hooks
from supervisor.decide import Action, Admit, Degrade, Open, Tell, Watch, decide
from tests.supervisor.test_decide import COLD, DELIVER, DUE, LAUNCH, PROFILES, SEAT
from tests.supervisor.test_wake import NOTHING
from tests.support.records import SESSION

HOOKS = Hooks(begun=["Begin"], ended=["Stop"])
QUEUED = attrs.evolve(NOTHING, queued=True)


def member(name: str, waking: Waking | None, *, state: SessionState = SessionState.IDLE, streak: int = 0) -> Seat:
    session = attrs.evolve(SESSION, id=SessionId(name), profile="composer", state=state, streak=streak)
    return attrs.evolve(
        SEAT,
        member_run_id=MemberRunId(name),
        session=session,
        launch=attrs.evolve(LAUNCH, session_id=session.id),
        waking=waking,
    )


def decided(
    *seats: Seat, cycles: int = 4, controls: Collection[RuntimeEffect] = (), busy: Collection[str] = ()
) -> list[Action]:
    seen = DueList(items=[], seats=list(seats), controls=list(controls), sup_gen=SupGen(1), seq=1, cycles=cycles)
    followed = {f"place {seat.member_run_id}" for seat in seats}
    return decide(seen, profiles=PROFILES, busy={*followed, *busy}, failures={})


def told(actions: Collection[Action]) -> set[str]:
    return {each.session.id for each in actions if isinstance(each, Tell)}


@pytest.mark.parametrize("active", range(6))
@pytest.mark.parametrize("cycles", [1, 4])
def test_so_many_are_told_as_cycles_are_left(active: int, cycles: int) -> None:
    seats = [member(f"a{n}", None, state=SessionState.ACTIVE) for n in range(active)]
    seats += [member(f"w{n}", QUEUED) for n in range(6)]
    found = decided(*seats, cycles=cycles)
    assert told(found) == {f"w{n}" for n in range(max(0, cycles - active))}
    assert len([each for each in found if isinstance(each, Watch)]) == active


def test_a_delivery_that_is_under_way_is_one_of_them() -> None:
    """It is done as a control; its session is still idle."""
    control = attrs.evolve(DELIVER, session_id=SessionId("w0"))
    seats = [member("w0", None), member("w1", QUEUED), member("w2", QUEUED)]
    assert told(decided(*seats, cycles=2, controls=[control])) == {"w1"}
    active = member("w0", None, state=SessionState.ACTIVE)
    again = attrs.evolve(control, id=EffectId("steer"))
    assert told(decided(active, *seats[1:], cycles=2, controls=[again])) == {"w1"}


def test_whoever_was_told_longest_ago_comes_first() -> None:
    last = {"w0": 9, "w1": 0, "w2": 7, "w3": 3, "w4": 3}
    seats = [member(name, attrs.evolve(QUEUED, last=number)) for name, number in last.items()]
    assert told(decided(*seats, cycles=1)) == {"w1"}
    assert told(decided(*seats, cycles=3)) == {"w1", "w3", "w4"}


def test_who_always_has_more_to_be_told_starves_nobody() -> None:
    """Six members who always have something to be told, two cycles: each is told as often as any other."""
    last, count, number = dict.fromkeys("abcdef", 0), dict.fromkeys("abcdef", 0), 0
    for _ in range(30):
        seats = [member(name, attrs.evolve(QUEUED, last=last[name])) for name in last]
        for name in sorted(told(decided(*seats, cycles=2))):
            number += 1
            last[name], count[name] = number, count[name] + 1
    assert set(count.values()) == {10}


def test_what_is_held_at_one_terminal_takes_no_cycle_from_another() -> None:
    seats = [member("w0", QUEUED), member("w1", QUEUED)]
    assert told(decided(*seats, cycles=1, busy=["terminal w0"])) == {"w1"}


def test_only_telling_is_counted() -> None:
    tired = member("w0", QUEUED, streak=3)
    found = decided(member("a", None, state=SessionState.ACTIVE), tired, cycles=1)
    assert [type(each) for each in found] == [Watch, Degrade]


def test_whose_provider_gives_nothing_is_neither_told_nor_started_nor_given_a_work() -> None:
    blocked = attrs.evolve(member("session", QUEUED), unavailable_ms=1)
    assert decided(blocked) == []
    assert told(decided(attrs.evolve(blocked, unavailable_ms=0))) == {"session"}
    started = attrs.evolve(SEAT, session=COLD, unavailable_ms=1)
    seen = DueList(items=[DUE], seats=[started], controls=[], sup_gen=SupGen(1), seq=1)
    assert decide(seen, profiles=PROFILES, busy=(), failures={}) == []
    free = attrs.evolve(started, unavailable_ms=0)
    actions = decide(attrs.evolve(seen, seats=[free]), profiles=PROFILES, busy=(), failures={})
    assert actions == [Open(free), Admit(DUE)]


def test_a_cycle_that_goes_on_is_watched_whatever_its_provider_gives() -> None:
    active = attrs.evolve(member("a", None, state=SessionState.ACTIVE), unavailable_ms=1)
    assert [type(each) for each in decided(active)] == [Watch]


def test_a_cycle_is_watched_to_the_end_of_a_turn_after_the_one_before_its_text() -> None:
    hooked = attrs.evolve(PROFILES["composer"], name="hooked", hooks=HOOKS)
    cycle = attrs.evolve(DELIVER, after_turn=7, wake=Wake.DELIVERY)
    active = attrs.evolve(SESSION, profile="hooked", state=SessionState.ACTIVE)
    seat = attrs.evolve(SEAT, session=active, launch=LAUNCH, cycle=cycle)
    seen = DueList(items=[], seats=[seat], controls=[], sup_gen=SupGen(1), seq=1)
    (found,) = decide(seen, profiles={"hooked": hooked}, busy={f"place {seat.member_run_id}"}, failures={})
    assert isinstance(found, Watch)
    assert (found.hooks, found.after_turn) == (True, 7)
