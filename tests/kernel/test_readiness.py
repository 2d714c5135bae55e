"""Readiness, cycles and order of the dependency graph, on graphs nobody thought of."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from client.protocol.ids import WorkId
from client.protocol.refusals import Code, Refusal
from client.protocol.work import Condition, Phase, Readiness, Resolution, Work
from daemon.kernel.readiness import cannot_need, cycle, in_order, not_ready, readiness
from tests.support.records import WORK


def work(key: str, *needs: str, resolution: Resolution | None = None) -> Work:
    phase = Phase.CLOSED if resolution else Phase.OPEN
    return attrs.evolve(WORK, id=WorkId(key), needs=list(needs), phase=phase, resolution=resolution)


@st.composite
def dags(draw: Callable[[st.SearchStrategy[list[str]]], list[str]]) -> dict[str, Work]:
    """Up to twelve Works, each of which may need any that are before it, in an order that tells nothing."""
    keys = draw(st.permutations([f"w{n}" for n in range(12)]))
    found: dict[str, Work] = {}
    for n, key in enumerate(keys):
        earlier = draw(st.lists(st.sampled_from(keys[:n]), unique=True)) if n else []
        found[key] = work(key, *earlier)
    return {key: found[key] for key in draw(st.permutations(sorted(found)))}


def reaches(found: Mapping[str, Work], key: str, to: str) -> bool:
    """By the definition: over any number of needs."""
    known, fresh = set[str](), {key}
    while fresh:
        fresh = {need for each in fresh for need in found[each].needs} - known
        known |= fresh
    return to in known


@given(dags())
def test_an_order_has_each_work_once_after_what_it_needs(found: dict[str, Work]) -> None:
    ordered = [each.id for each in in_order(list(found.values()))]
    assert sorted(ordered) == sorted(found)
    for n, key in enumerate(ordered):
        assert set(found[key].needs) <= set(ordered[:n])


@given(dags())
def test_an_order_keeps_to_the_list_where_no_need_says_otherwise(found: dict[str, Work]) -> None:
    apart = [attrs.evolve(each, needs=[]) for each in found.values()]
    assert in_order(apart) == apart


def test_an_order_ends_though_the_stored_graph_is_a_cycle() -> None:
    found = [work("a", "b"), work("b", "c"), work("c", "a"), work("d", "d")]
    assert sorted(each.id for each in in_order(found)) == ["a", "b", "c", "d"]


def test_what_is_not_in_the_list_is_left_out_of_its_order() -> None:
    assert in_order([work("a", "elsewhere")]) == [work("a", "elsewhere")]


@given(dags(), st.data())
def test_a_cycle_is_found_exactly_where_there_is_one_and_its_path_is_one(
    found: dict[str, Work], data: st.DataObject
) -> None:
    key = data.draw(st.sampled_from(sorted(found)))
    needs = data.draw(st.lists(st.sampled_from(sorted(set(found) - {key})), unique=True))
    path = cycle(key, needs, lambda each: found[each].needs)
    assert (path is not None) == any(need == key or reaches(found, need, key) for need in needs)
    if path is None:
        return
    assert (path[0], path[-1], path[1] in needs) == (key, key, True)
    assert len(set(path)) == len(path) - 1
    assert all(after in found[before].needs for before, after in itertools.pairwise(path[1:]))


def test_a_chain_of_ten_thousand_is_walked() -> None:
    found = {f"w{n}": work(f"w{n}", *([f"w{n - 1}"] if n else [])) for n in range(10_000)}
    path = cycle("w0", ["w9999"], lambda key: found[key].needs)
    assert path == ["w0", *(f"w{n}" for n in range(9_999, 0, -1)), "w0"]
    assert [each.id for each in in_order(list(reversed(found.values())))] == list(found)


@given(dags(), st.data())
def test_a_work_is_ready_when_everything_that_it_needs_is_accepted(found: dict[str, Work], data: st.DataObject) -> None:
    how = st.sampled_from([None, *Resolution])
    resolved = {key: work(key, *each.needs, resolution=data.draw(how)) for key, each in found.items()}
    gone = data.draw(st.sets(st.sampled_from(sorted(found))))
    there = {key: each for key, each in resolved.items() if key not in gone}
    for each in found.values():
        ready, unmet = readiness(each, there)
        states = [resolved[need].resolution if need not in gone else Resolution.FAILED for need in each.needs]
        assert unmet == [n for n, s in zip(each.needs, states, strict=True) if s is not Resolution.ACCEPTED]
        stuck = any(s in {Resolution.CANCELLED, Resolution.FAILED} for s in states)
        waiting = Readiness.WAITING if unmet else Readiness.READY
        assert ready is (Readiness.NEEDS_HOST if stuck else waiting)
        assert (not_ready(each, there) is None) == (ready is Readiness.READY)


@pytest.mark.parametrize(
    "now",
    [
        attrs.evolve(WORK, phase=Phase.ACTIVE),
        attrs.evolve(WORK, condition=Condition.ON_HOLD, held=Condition.NORMAL),
        attrs.evolve(WORK, phase=Phase.CLOSED, resolution=Resolution.ACCEPTED),
    ],
)
def test_only_what_is_open_and_normal_can_be_ready(now: Work) -> None:
    assert readiness(now, {}) == (Readiness.NOT_OPEN, [])


def test_a_hundred_and_twenty_eight_prerequisites_all_count() -> None:
    needs = {f"n{n}": work(f"n{n}", resolution=Resolution.ACCEPTED) for n in range(128)}
    later = work("w", *needs)
    assert readiness(later, needs) == (Readiness.READY, [])
    for key in needs:
        others = {**needs, key: work(key)}
        assert readiness(later, others) == (Readiness.WAITING, [key])
    refusal = not_ready(later, {key: work(key) for key in needs})
    assert refusal == Refusal(
        code=Code.WORK_NOT_READY,
        about="work/w",
        lifted_by="it waits for n0, n1, n2, n3, n4 to be accepted",
    )


def test_what_never_will_be_accepted_is_named_with_the_command_that_keeps_the_others() -> None:
    there = {"a": work("a", resolution=Resolution.FAILED), "b": work("b"), "c": work("c")}
    refusal = not_ready(work("w", "b", "a", "gone", "c"), there)
    command = "firm work replace-dependencies w --expected-version 1 --prerequisite-work-id b --prerequisite-work-id c"
    assert refusal is not None
    assert refusal.lifted_by == f"a will not be accepted; its Host can go on without it: {command}"


def test_a_work_that_is_not_stored_yet_is_in_no_cycle() -> None:
    found = {"a": work("a", "b"), "b": work("b", "a")}
    assert cannot_need("new", WORK.team_id, ["a"], found.get) is None
    assert cannot_need("a", WORK.team_id, ["b"], found.get) == Refusal(
        code=Code.PREREQUISITE_CYCLE, about="work/a", lifted_by="break the cycle a -> b -> a"
    )
