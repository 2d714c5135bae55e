"""What hooks say of a turn, in every order in which they can come. Pure."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import attrs
import pytest

from client.protocol.ids import UnixMs
from client.protocol.session import Activity, AgentSession, Heard, Source
from daemon.kernel.turn import began, fell_quiet, heard, in_turn
from tests.support.records import SESSION

B, W, E = Heard.BEGUN, Heard.WAITING, Heard.ENDED
R, A, OVER, U = Activity.RUNNING, Activity.WAITING_INPUT, Activity.IDLE, Activity.UNKNOWN
#: What happened, in its order: each word with the number of its turn, and what is true at the end.
HISTORIES: list[tuple[list[tuple[Heard, int]], Activity]] = [
    ([(B, 1)], R),
    ([(B, 1), (E, 1)], OVER),
    ([(B, 1), (W, 1), (E, 1)], OVER),
    # The notification of failure 16: made after the end of the turn, it says nothing any more.
    ([(B, 1), (E, 1), (W, 1)], OVER),
    ([(B, 1), (W, 1), (E, 1), (W, 1)], OVER),
    ([(B, 1), (E, 1), (B, 2)], R),
    ([(B, 1), (E, 1), (W, 1), (B, 2)], R),
    ([(B, 1), (E, 1), (B, 2), (E, 2)], OVER),
    ([(B, 1), (E, 1), (W, 1), (B, 2), (E, 2)], OVER),
]


def after(words: Sequence[tuple[Heard, int, int]], *, ids: bool, of: AgentSession = SESSION) -> AgentSession:
    for what, turn, sequence in words:
        of = attrs.evolve(of, **heard(of, what, f"turn {turn}" if ids else "", sequence, UnixMs(sequence)))
    return of


@pytest.mark.parametrize("ids", [True, False], ids=["with ids of turns", "without"])
@pytest.mark.parametrize(("history", "true"), HISTORIES)
def test_in_whatever_order_hooks_come_the_end_of_the_last_turn_stands(
    history: list[tuple[Heard, int]], true: Activity, *, ids: bool
) -> None:
    happened = [(what, turn, n) for n, (what, turn) in enumerate(history, 1)]
    for words in itertools.permutations(happened):
        of = after(words, ids=ids)
        assert (of.activity, of.activity_source) == (true, Source.HOOK), words
        assert in_turn(of) is (true is R)


@pytest.mark.parametrize("ids", [True, False], ids=["with ids of turns", "without"])
@pytest.mark.parametrize(("history", "true"), HISTORIES)
def test_what_is_told_twice_changes_nothing(history: list[tuple[Heard, int]], true: Activity, *, ids: bool) -> None:
    happened = [(what, turn, n) for n, (what, turn) in enumerate(history, 1)]
    once = after(happened, ids=ids)
    for word in happened:
        again = after([word], ids=ids, of=once)
        assert (again.activity, again.turn_begun, again.turn_ended) == (true, once.turn_begun, once.turn_ended)


def test_who_waits_for_a_person_says_so_while_its_turn_goes_on() -> None:
    waits = after([(B, 1, 1), (W, 1, 2)], ids=True)
    assert (waits.activity, waits.activity_at, waits.turn) == (A, UnixMs(2), "turn 1")
    assert in_turn(waits)
    assert after([(B, 1, 3)], ids=True, of=waits).activity is R  # it goes on
    assert after([(W, 2, 3)], ids=True, of=waits) == waits  # of another turn


def test_what_waits_before_any_turn_is_known_stays_unknown() -> None:
    assert after([(W, 1, 1)], ids=True) == after([(W, 1, 1)], ids=False) == SESSION
    assert SESSION.activity is U


def test_an_end_is_told_by_a_mark_that_grows() -> None:
    """Whoever waits compares it; also an end whose number is older than that of its begin is one."""
    of = after([(B, 1, 10)], ids=True)
    of = after([(E, 1, 5)], ids=True, of=of)
    assert (of.activity, of.turn_ended) == (OVER, 10)
    of = after([(B, 2, 11), (E, 2, 12)], ids=True, of=of)
    assert of.turn_ended == 12


def test_without_a_begin_an_end_is_still_one() -> None:
    """The hook that told of the begin was lost."""
    assert after([(E, 1, 1)], ids=True).turn_ended == 1
    later = after([(B, 1, 1), (E, 2, 2)], ids=True)
    assert (later.activity, later.turn) == (OVER, "turn 2")


def test_a_terminal_says_no_more_than_hooks() -> None:
    typed = attrs.evolve(SESSION, **began(SESSION, UnixMs(5)))
    assert (typed.activity, typed.activity_at, typed.activity_source) == (R, UnixMs(5), Source.TERMINAL)
    assert not in_turn(typed)
    quiet = attrs.evolve(typed, **fell_quiet(typed, 0, UnixMs(6)))
    assert (quiet.activity, quiet.activity_at, quiet.activity_source) == (OVER, UnixMs(6), Source.TERMINAL)
    hooked = after([(B, 1, 1)], ids=True)
    assert began(hooked, UnixMs(5)) == {}
    # An end that no hook told of, as after an interrupt.
    assert attrs.evolve(hooked, **fell_quiet(hooked, 0, UnixMs(6))).activity_source is Source.TERMINAL
    assert fell_quiet(after([(E, 1, 2)], ids=True, of=hooked), 0, UnixMs(6)) == {}


def test_an_end_that_no_hook_told_of_is_not_told_again_by_a_late_one() -> None:
    """It would end the turn of the next text."""
    interrupted = after([(B, 1, 1)], ids=True)
    interrupted = attrs.evolve(interrupted, **fell_quiet(interrupted, 0, UnixMs(6)))
    assert after([(E, 1, 9)], ids=True, of=interrupted) == interrupted
    assert after([(W, 1, 9)], ids=True, of=interrupted) == interrupted
    assert after([(B, 2, 9), (E, 2, 10)], ids=True, of=interrupted).turn_ended > interrupted.turn_ended
