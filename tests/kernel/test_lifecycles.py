"""The lifecycles of people, teams and runs against what the design says of them: each state with each cause."""

from __future__ import annotations

import enum
import itertools
from typing import Any

import attrs
import pytest

from client.protocol.agent import AgentStatus
from client.protocol.effect import EffectState
from client.protocol.membership import MembershipState
from client.protocol.refusals import Code, Refusal
from client.protocol.session import SessionCause, SessionState
from client.protocol.team import TeamState
from client.protocol.team_run import Coordination, TeamRunState
from daemon.kernel import agent, effect, membership, session, team, team_run
from daemon.kernel.agent import AGENT, AgentCause
from daemon.kernel.effect import EFFECT, EffectCause
from daemon.kernel.machine import Lifecycle
from daemon.kernel.membership import MEMBERSHIP, MembershipCause
from daemon.kernel.session import SESSION
from daemon.kernel.team import TEAM, TeamCause
from daemon.kernel.team_run import MEMBER_RUN, TEAM_RUN, PlaceCause, RunCause


@attrs.frozen
class Specified:
    """What the design says: where it starts, where it ends, and every legal move as state, cause, next state."""

    lifecycle: Lifecycle[Any, Any]
    states: type[enum.StrEnum]
    causes: type[enum.StrEnum]
    start: str
    final: set[str]
    moves: set[tuple[str, str, str]]


SPECIFIED = [
    Specified(
        AGENT,
        AgentStatus,
        AgentCause,
        start="active",
        final={"retired"},
        moves={
            ("active", "pause", "paused"),
            ("paused", "resume", "active"),
            ("active", "retire", "retired"),
            ("paused", "retire", "retired"),
        },
    ),
    Specified(
        TEAM,
        TeamState,
        TeamCause,
        start="active",
        final=set(),
        moves={
            ("active", "deactivate", "inactive"),
            ("inactive", "activate", "active"),
            ("inactive", "trash", "trashed"),
            ("trashed", "restore", "inactive"),
        },
    ),
    Specified(
        MEMBERSHIP,
        MembershipState,
        MembershipCause,
        start="invited",
        final={"inactive"},
        moves={
            ("invited", "join", "active"),
            ("invited", "leave", "inactive"),
            ("active", "leave", "inactive"),
            ("active", "leave while bound", "leaving"),
            ("leaving", "last binding ended", "inactive"),
        },
    ),
    Specified(
        TEAM_RUN,
        TeamRunState,
        RunCause,
        start="planned",
        final={"completed", "cancelled"},
        moves={
            ("planned", "start", "running"),
            ("running", "drain", "draining"),
            ("draining", "resume", "running"),
            ("running", "complete", "completed"),
            ("draining", "complete", "completed"),
            ("planned", "cancel", "cancelled"),
            ("running", "cancel", "cancelled"),
            ("draining", "cancel", "cancelled"),
        },
    ),
    Specified(
        MEMBER_RUN,
        Coordination,
        PlaceCause,
        start="active",
        final={"retired"},
        moves={
            ("active", "close", "closed"),
            ("closed", "reopen", "active"),
            ("active", "retire", "retired"),
            ("closed", "retire", "retired"),
        },
    ),
    Specified(
        SESSION,
        SessionState,
        SessionCause,
        start="cold",
        final={"closed"},
        moves={
            ("cold", "ready", "idle"),
            ("cold", "exited", "cold"),
            ("cold", "lost", "recovery_required"),
            ("cold", "closed", "closed"),
            ("idle", "cycle_started", "active"),
            ("idle", "adopted", "idle"),
            ("idle", "exited", "cold"),
            ("idle", "lost", "recovery_required"),
            ("idle", "closed", "closed"),
            ("idle", "degraded", "idle"),
            ("active", "cycle_ended", "idle"),
            ("active", "interrupted", "interrupted"),
            ("active", "adopted", "active"),
            ("active", "exited", "recovery_required"),
            ("active", "lost", "recovery_required"),
            ("interrupted", "reopened", "cold"),
            ("interrupted", "adopted", "idle"),
            ("interrupted", "lost", "recovery_required"),
            ("interrupted", "closed", "closed"),
            ("recovery_required", "exited", "recovery_required"),
            ("recovery_required", "resolved", "cold"),
            ("recovery_required", "adopted", "idle"),
        },
    ),
    Specified(
        EFFECT,
        EffectState,
        EffectCause,
        start="prepared",
        final={"settled"},
        moves={
            ("prepared", "settle", "settled"),
            ("prepared", "lose", "recovery_required"),
            ("recovery_required", "settle", "settled"),
            ("recovery_required", "resolve", "settled"),
        },
    ),
]

each_one = pytest.mark.parametrize("said", SPECIFIED, ids=lambda said: str(said.lifecycle.name))


def test_every_lifecycle_of_these_modules_is_specified_here() -> None:
    there = [
        value for module in (agent, effect, membership, session, team, team_run) for value in vars(module).values()
    ]
    found = {each.name for each in there if isinstance(each, Lifecycle)}
    assert found == {said.lifecycle.name for said in SPECIFIED}


@each_one
def test_each_state_with_each_cause(said: Specified) -> None:
    """The whole product: legal moves lead where they should, others are refused with where they are good."""
    assert said.lifecycle.start.value == said.start
    assert {state.value for state in said.lifecycle.final} == said.final
    legal = {(state, cause): to for state, cause, to in said.moves}
    for state, cause in itertools.product(said.states, said.causes):
        after = said.lifecycle.after(state, cause, "thing/x")
        if (state, cause) in legal:
            assert after == legal[state, cause]
            assert isinstance(after, said.states)
            continue
        assert isinstance(after, Refusal)
        assert (after.code, after.about) == (Code.INVALID_STATE_TRANSITION, "thing/x")
        good = [each.value for each in said.lifecycle.moves if (each.value, cause.value) in legal]
        assert after.lifted_by == f"it is {state}; this is possible while it is {' or '.join(good)}"


@each_one
def test_a_lifecycle_is_closed_and_every_state_of_it_is_reached(said: Specified) -> None:
    assert set(said.lifecycle.moves) == set(said.states)
    assert {cause for out in said.lifecycle.moves.values() for cause in out} == set(said.causes)
    reached, new = {said.start}, {said.start}
    while new:
        new = {to for state, _, to in said.moves if state in new} - reached
        reached |= new
    assert reached == {state.value for state in said.states}
    for state in said.states:
        leaves = {to for source, _, to in said.moves if source == state}
        assert bool(leaves) != (state.value in said.final)


@each_one
def test_a_lifecycle_draws_itself(said: Specified) -> None:
    drawn = [line.strip() for line in said.lifecycle.mermaid().splitlines()]
    assert drawn[:2] == ["stateDiagram-v2", f"[*] --> {said.start}"]
    assert sorted(drawn[2:]) == sorted(
        [f"{state} --> {to}: {cause}" for state, cause, to in said.moves] + [f"{state} --> [*]" for state in said.final]
    )
