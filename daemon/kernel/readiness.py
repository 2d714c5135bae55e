"""The dependency graph: readiness, which is derived and stored nowhere, and cycles."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from client.protocol.ids import WorkId
from client.protocol.refusals import Code, Refusal
from client.protocol.work import Condition, Phase, Readiness, Resolution, Work


def readiness(work: Work, prerequisites: Mapping[str, Work]) -> tuple[Readiness, list[str]]:
    """Whether ``work`` could be started, and the prerequisites that are not accepted."""
    unmet, stuck = _unmet(work, prerequisites)
    if work.phase is not Phase.OPEN or work.condition is not Condition.NORMAL:
        return Readiness.NOT_OPEN, unmet
    if stuck:
        return Readiness.NEEDS_HOST, unmet
    return (Readiness.WAITING if unmet else Readiness.READY), unmet


def _unmet(work: Work, prerequisites: Mapping[str, Work]) -> tuple[list[str], list[str]]:
    """The prerequisites that are not accepted, and those of them that never will be."""
    found = {key: prerequisites.get(key) for key in work.needs}
    unmet = {key: need for key, need in found.items() if need is None or need.resolution is not Resolution.ACCEPTED}
    return list(unmet), [key for key, need in unmet.items() if need is None or need.phase is Phase.CLOSED]


def not_ready(work: Work, prerequisites: Mapping[str, Work]) -> Refusal | None:
    """Why ``work`` waits for others, or None."""
    unmet, stuck = _unmet(work, prerequisites)
    if not unmet:
        return None
    lifted_by = (
        f"{stuck[0]} will not be accepted; its Host can go on without it: {_without(work, stuck)}"
        if stuck
        else f"it waits for {', '.join(unmet[:5])} to be accepted"
    )
    return Refusal(code=Code.WORK_NOT_READY, about=f"work/{work.id}", lifted_by=lifted_by)


def _without(work: Work, stuck: Sequence[str]) -> str:
    """The command that keeps every prerequisite but those that will never be accepted."""
    kept = "".join(f" --prerequisite-work-id {key}" for key in work.needs if key not in stuck)
    return f"firm work replace-dependencies {work.id} --expected-version {work.version}{kept}"


def cannot_need(work_id: str, team_id: str, needs: Sequence[str], load: Callable[[str], Work | None]) -> Refusal | None:
    """Why ``work_id`` cannot have these prerequisites, or None. ``work_id`` may be a Work not stored yet."""
    for key in needs:
        need = load(key)
        why = (
            "it cannot need itself"
            if key == work_id
            else f"there is no Work {key}"
            if need is None
            else f"{key} belongs to another team; propose it there as a delegation"
            if need.team_id != team_id
            else ""
        )
        if why:
            return Refusal(code=Code.PREREQUISITE_INVALID, about=f"work/{work_id}", lifted_by=f"leave it out: {why}")
    if load(work_id) is None:
        return None  # nothing can need it yet
    path = cycle(work_id, needs, lambda key: found.needs if (found := load(key)) else [])
    if path is None:
        return None
    return Refusal(
        code=Code.PREREQUISITE_CYCLE, about=f"work/{work_id}", lifted_by=f"break the cycle {' -> '.join(path)}"
    )


def cycle(start: str, needs: Sequence[str], of: Callable[[str], Sequence[str]]) -> list[str] | None:
    """A path from ``start`` over ``needs`` back to ``start``, or None. Each Work is visited once."""
    came_from: dict[str, str] = {}
    stack = [(start, key) for key in reversed(needs)]
    while stack:
        before, key = stack.pop()
        if key == start:
            path = [start]
            while before != start:
                path.append(before)
                before = came_from[before]
            return [start, *reversed(path)]
        if key not in came_from:
            came_from[key] = before
            stack.extend((key, further) for further in reversed(of(key)))
    return None


def in_order(found: Sequence[Work]) -> list[Work]:
    """Each Work once, after everything that it needs; otherwise as they came. Ends on a cycle too."""
    by_id = {work.id: work for work in found}
    opened: set[str] = set()
    done: dict[str, Work] = {}
    for first in found:
        stack = [first]
        while stack:
            work = stack[-1]
            if work.id in opened:
                done.setdefault(work.id, stack.pop())
            else:
                opened.add(work.id)
                missing = (by_id.get(WorkId(key)) for key in reversed(work.needs) if key not in opened)
                stack.extend(need for need in missing if need is not None)
    return list(done.values())
