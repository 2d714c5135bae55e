"""Runs, places and sessions against what the design says of them: each state with each cause, and no dead end.

The rules that go with them too: what a run takes, whose place is present, and which generation is the current one.
"""

from __future__ import annotations

import enum
import itertools
from typing import Any

import attrs
import pytest

from client.protocol.ids import (
    AgentMemberId,
    DaemonGen,
    MemberRunId,
    MembershipId,
    RunGen,
    SessionGen,
    SessionId,
    SupGen,
    TeamId,
    TeamRunId,
    UnixMs,
)
from client.protocol.refusals import Code, Refusal
from client.protocol.session import AgentSession, Driver, Liveness, SessionCause, SessionState
from client.protocol.team_run import Coordination, MemberRun, TeamRun, TeamRunState
from daemon.kernel import session, team_run
from daemon.kernel.machine import Lifecycle
from daemon.kernel.session import ORPHANING, PROCESS, SESSION, current, exists
from daemon.kernel.team_run import MEMBER_RUN, TEAM_RUN, PlaceCause, RunCause

NOW = UnixMs(1)
RUN = TeamRun(
    id=TeamRunId("run"),
    version=4,
    team_id=TeamId("crew"),
    objective="",
    state=TeamRunState.RUNNING,
    recovery="",
    sup_gen=SupGen(3),
    created_by="operator",
    created_at=NOW,
    updated_at=NOW,
    ended_at=None,
)
PLACE = MemberRun(
    id=MemberRunId("place"),
    version=2,
    team_run_id=RUN.id,
    membership_id=MembershipId("part"),
    agent_member_id=AgentMemberId("bob"),
    role="member",
    number=1,
    coordination=Coordination.ACTIVE,
    run_gen=RunGen(1),
    created_at=NOW,
    updated_at=NOW,
)
SITTING = AgentSession(
    id=SessionId("session"),
    version=1,
    agent_member_id=PLACE.agent_member_id,
    member_run_id=PLACE.id,
    team_run_id=RUN.id,
    session_gen=SessionGen(5),
    run_gen=RunGen(1),
    sup_gen=SupGen(3),
    daemon_gen=DaemonGen(1),
    state=SessionState.IDLE,
    driver=Driver.HOST_DRIVEN,
    process=Liveness.LIVE,
    pid=0,
    start_ticks=0,
    boot_id="",
    native_session="",
    created_at=NOW,
    updated_at=NOW,
    closed_at=None,
)


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
            ("cold", "lost", "recovery_required"),
            ("cold", "closed", "closed"),
            ("idle", "cycle_started", "active"),
            ("idle", "adopted", "idle"),
            ("idle", "exited", "cold"),
            ("idle", "lost", "recovery_required"),
            ("idle", "closed", "closed"),
            ("active", "cycle_ended", "idle"),
            ("active", "interrupted", "interrupted"),
            ("active", "adopted", "active"),
            ("active", "exited", "recovery_required"),
            ("active", "lost", "recovery_required"),
            ("interrupted", "reopened", "cold"),
            ("interrupted", "adopted", "idle"),
            ("interrupted", "lost", "recovery_required"),
            ("interrupted", "closed", "closed"),
            ("recovery_required", "resolved", "cold"),
            ("recovery_required", "adopted", "idle"),
        },
    ),
]

each_one = pytest.mark.parametrize("said", SPECIFIED, ids=lambda said: str(said.lifecycle.name))


def test_every_lifecycle_of_these_modules_is_specified_here() -> None:
    there = [value for module in (session, team_run) for value in vars(module).values()]
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
        good = [each.value for each in said.lifecycle.moves if (each.value, cause.value) in legal]
        assert after == Refusal(
            code=Code.INVALID_STATE_TRANSITION,
            about="thing/x",
            lifted_by=f"it is {state}; this is possible while it is {' or '.join(good)}",
        )


@each_one
def test_a_lifecycle_is_closed_and_every_state_of_it_is_reached_and_left(said: Specified) -> None:
    assert set(said.lifecycle.moves) == set(said.states)
    assert {cause for out in said.lifecycle.moves.values() for cause in out} == set(said.causes)
    reached, new = {said.start}, {said.start}
    while new:
        new = {to for state, _, to in said.moves if state in new} - reached
        reached |= new
    assert reached == {state.value for state in said.states}
    for state in said.states:
        assert bool({to for source, _, to in said.moves if source == state}) != (state.value in said.final)


def test_nothing_is_known_of_a_process_that_was_lost_and_of_no_other_is_it_guessed() -> None:
    live = {"ready", "adopted", "cycle_started", "cycle_ended"}
    assert {cause.value for cause, known in PROCESS.items() if known is Liveness.LIVE} == live
    assert {cause.value for cause, known in PROCESS.items() if known is Liveness.STOPPED} == {"exited"}
    assert {cause.value for cause, known in PROCESS.items() if known is Liveness.UNKNOWN} == {"lost"}
    assert {cause.value for cause in ORPHANING} == {"exited", "lost"}


TAKES = {
    "planned": {"works", "goes on"},
    "running": {"works", "claims", "goes on"},
    "draining": {"goes on"},
    "completed": set[str](),
    "cancelled": set[str](),
}


@pytest.mark.parametrize("state", TeamRunState)
def test_what_a_run_takes_in_each_state(state: TeamRunState) -> None:
    """And what lifts it where it does not: the next verb, or another run."""
    run = attrs.evolve(RUN, state=state)
    rules = {"works": team_run.takes_works, "claims": team_run.takes_claims, "goes on": team_run.goes_on}
    verb = {"planned": "start", "draining": "resume"}.get(state.value)
    for name, rule in rules.items():
        refusal = rule(run)
        assert (refusal is None) == (name in TAKES[state.value])
        if refusal is not None:
            assert (refusal.code, refusal.about) == (Code.TEAM_RUN_NOT_OPEN, "team-run/run")
            wanted = f"firm team-run {verb} run --expected-version 4" if verb else "another run of the team"
            assert wanted in refusal.lifted_by


def test_who_is_present() -> None:
    closed = team_run.present(attrs.evolve(PLACE, coordination=Coordination.CLOSED))
    retired = team_run.present(attrs.evolve(PLACE, coordination=Coordination.RETIRED))
    assert team_run.present(PLACE) is None
    assert closed is not None
    assert retired is not None
    assert {closed.code, retired.code} == {Code.MEMBER_RUN_CLOSED}
    assert "firm member-run reopen place --expected-version 2" in closed.lifted_by
    assert retired.lifted_by == "choose another member; a retired place stays retired"


@pytest.mark.parametrize("gen", range(7))
def test_one_supervisor_generation_holds_a_run(gen: int) -> None:
    refusal = team_run.fenced(RUN, gen)
    if gen == 3:
        assert refusal is None
        return
    assert refusal == Refusal(
        code=Code.SUPERVISOR_GENERATION_FENCED,
        about="team-run/run",
        lifted_by=f"sup_gen=3 holds this run; a supervisor of sup_gen={gen} stops",
    )


@pytest.mark.parametrize(("state", "gen"), list(itertools.product(SessionState, (4, 5, 6))))
def test_one_generation_of_a_session_is_current_until_it_is_closed(state: SessionState, gen: int) -> None:
    refusal = current(attrs.evolve(SITTING, state=state), gen)
    if gen == 5 and state is not SessionState.CLOSED:
        assert refusal is None
        return
    assert refusal == Refusal(
        code=Code.AGENT_SESSION_GENERATION_FENCED,
        about="session/session",
        lifted_by=f"this session is {state} at session_gen=5; a process of session_gen={gen} stops",
    )


def test_who_ends_a_session_that_stands_in_the_way() -> None:
    ours, theirs = exists(SITTING), exists(attrs.evolve(SITTING, driver=Driver.USER_DRIVEN))
    assert {ours.code, theirs.code} == {Code.AGENT_SESSION_EXISTS}
    assert ours.lifted_by.startswith("end it first: firm session close ")
    assert theirs.lifted_by == "end it first: firm session unbind session"
