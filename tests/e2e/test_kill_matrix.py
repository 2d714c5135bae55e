"""Everybody is killed at every boundary: the daemon, a supervisor of its own, the tmux server, the member. Afterwards
the same holds as after any kill (``tests/support/aftermath.py``).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from client.protocol.boundary import Boundary
from client.protocol.effect import EffectKind
from tests.support.aftermath import check, events, strangers, until_quiet
from tests.support.killing import ALONE, SCENES, Play, Victim, play, victims
from tests.support.runs import Field

_ALL = [(boundary, victim) for boundary in SCENES for victim in victims(boundary)]


def _in_suite(at: int, boundary: Boundary, victim: Victim) -> bool:
    """Each boundary with the daemon, and with one of the others in turn."""
    others = [each for each in victims(boundary) if each is not Victim.DAEMON]
    return victim in {Victim.DAEMON, others[at % len(others)]}


_CASES = [
    pytest.param(
        boundary,
        victim,
        id=f"{boundary}-{victim.replace(' ', '-')}",
        marks=() if _in_suite(list(SCENES).index(boundary), boundary, victim) else pytest.mark.soak,
    )
    for boundary, victim in _ALL
]


def test_no_boundary_is_left_out() -> None:
    assert {*SCENES, *ALONE} == set(Boundary)
    assert {victim for _, victim in _ALL} == set(Victim)


@pytest.mark.parametrize(("boundary", "victim"), _CASES)
def test_whoever_is_killed_at_a_boundary_nothing_is_lost_or_done_twice(
    field: Field, boundary: Boundary, victim: Victim
) -> None:
    scene, before = SCENES[boundary], list[Any]()
    with strangers(field):
        made = play(field, boundary, victim, lambda: before.extend(events(field)))
        until_quiet(field, 0 if scene.kind is EffectKind.STOP else 1)
        _answered_once(made)
        check(field, before, ran=made.folder / "ran")
        _done_once(made, boundary, victim)
        down = field.call("down")
        assert (down.returncode, field.members(), field.server_lives()) == (0, [], False), down.stdout


def _answered_once(made: Play) -> None:
    """Asked again with its key, what was answered is answered as it was; what was not is done now."""
    if made.asking is None:
        return
    first = made.answered()
    again = made.field.firm(*made.asked[1:-1])
    if first:
        assert (again["replayed"], again["answer"]) == (True, json.loads(first)["answer"])
    until_quiet(made.field, 0 if "close" in made.asked else 1)


def _done_once(made: Play, boundary: Boundary, victim: Victim) -> None:
    """Of what was typed each text once to a process; where nobody but who did it was killed, it is known what it came
    to, and no process was started for nothing.
    """
    scene = SCENES[boundary]
    texts, ran = _lines(made.folder / "took"), _lines(made.folder / "ran")
    assert len(texts) <= len(ran) * len(set(texts)), texts
    if victim in {Victim.SERVER, Victim.MEMBER}:
        return
    assert len(texts) == len(set(texts)), texts
    states = [each["state"] for each in made.field.look("session.list")["items"]]
    assert "recovery_required" not in states
    # Not less: what has only just begun may not have said so yet.
    assert len(ran) <= 1 + (boundary.startswith("launch") or boundary is Boundary.EXIT_REPORTED), ran
    of_kind = [e for e in made.field.look("effect.list")["items"] if e["kind"] == scene.kind]
    expected = ("recovery_required", "unknown") if scene.doubtful else ("settled", "applied")
    assert [(e["state"], e["certainty"]) for e in of_kind[-1:]] == ([expected] if scene.kind else [])


def _lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []
