"""What a supervisor does next, from what it sees: every case as a row. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import attrs
import pytest

from client.protocol.agent import WorkspacePolicy
from client.protocol.board import Due, DueList, Seat
from client.protocol.effect import Certainty, EffectKind, EffectState, RuntimeEffect, Wake
from client.protocol.ids import (
    EffectId,
    MemberRunId,
    ProjectId,
    RunGen,
    SupGen,
    WorkId,
)
from client.protocol.session import AgentSession, Driver, Liveness, SessionState
from providers.port import Typing
from providers.profiles import Profile
from supervisor.decide import MOST_FAILURES, Action, Admit, Adopt, Control, Open, Watch, decide
from tests.support.records import NOW, SESSION

RUN, PLACE = SESSION.team_run_id, SESSION.member_run_id
S, E = SessionState, EffectState

LAUNCH = RuntimeEffect(
    id=EffectId("launch"),
    version=3,
    team_run_id=RUN,
    session_id=SESSION.id,
    session_gen=SESSION.session_gen,
    sup_gen=SESSION.sup_gen,
    kind=EffectKind.LAUNCH,
    state=E.SETTLED,
    certainty=Certainty.APPLIED,
    cwd="/",
    pane="%0",
    pid=7,
    start_ticks=8,
    boot_id="boot",
    readback="",
    created_by="supervisor/run",
    created_at=NOW,
    updated_at=NOW,
    settled_at=NOW,
    wake=None,
    work_id=None,
    work_version=0,
    text="",
    ending=None,
)
SEAT = Seat(
    member_run_id=PLACE,
    run_gen=RunGen(1),
    agent_member_id=SESSION.agent_member_id,
    agent_name="bob",
    team_name="crew",
    profile="command",
    workspace=WorkspacePolicy.SHARED,
    project_id=ProjectId("project"),
    root="/",
    in_git=False,
    takes_sessions=True,
    session=None,
    launch=None,
)
DUE = Due(work_id=WorkId("work"), work_version=1, session_id=SESSION.id, session_gen=SESSION.session_gen, failed=0)
COLD = attrs.evolve(SESSION, state=S.COLD, process=Liveness.UNKNOWN, pid=0, start_ticks=0, boot_id="")
STOP = attrs.evolve(LAUNCH, id=EffectId("stop"), kind=EffectKind.STOP, state=E.PREPARED)
INTERRUPT = attrs.evolve(STOP, id=EffectId("key"), kind=EffectKind.INTERRUPT)
TYPING = Typing(quiet=7)
PROFILES = {
    "command": Profile(name="command", argv=["/bin/true"]),
    "composer": Profile(name="composer", argv=["/bin/true"], typing=TYPING),
}
DELIVER = attrs.evolve(STOP, id=EffectId("words"), kind=EffectKind.DELIVER, wake=Wake.DELIVERY)


def decided(
    *seats: Seat,
    items: Collection[Due] = (),
    controls: Collection[RuntimeEffect] = (),
    busy: Collection[str] = (),
    failures: Mapping[MemberRunId, int] | None = None,
) -> list[Action]:
    seen = DueList(items=list(items), seats=list(seats), controls=list(controls), sup_gen=SupGen(1), seq=1)
    return decide(seen, profiles=PROFILES, busy=busy, failures=failures or {})


def test_what_is_typed_is_as_the_program_of_the_session_likes_it() -> None:
    """Its member may have been given another profile since; that is for the next session."""
    session = attrs.evolve(SESSION, profile="composer", state=S.ACTIVE)
    seat = attrs.evolve(at(session, LAUNCH), profile="command")
    told = attrs.evolve(DELIVER, session_id=session.id)
    found = decided(seat, controls=[told])
    assert Control(told, LAUNCH, TYPING) in found
    assert Watch(session, LAUNCH, TYPING, after_turn=session.turn_ended) in found
    other = attrs.evolve(session, profile="command")
    found = decided(attrs.evolve(at(other, LAUNCH), profile="composer"), controls=[told])
    assert Control(told, LAUNCH, None) in found
    assert not any(isinstance(each, Watch) for each in found)


def at(session: AgentSession | None, launch: RuntimeEffect | None = None, *, takes_sessions: bool = True) -> Seat:
    return attrs.evolve(SEAT, session=session, launch=launch, takes_sessions=takes_sessions)


@pytest.mark.parametrize("session", [None, COLD], ids=["no session", "one without a process"])
def test_a_place_without_a_process_gets_one(session: AgentSession | None) -> None:
    assert decided(at(session)) == [Open(at(session))]


@pytest.mark.parametrize("profile", ["me", "external", "unknown"])
def test_a_profile_that_is_not_ours_to_start_is_left_alone(profile: str) -> None:
    assert decided(attrs.evolve(SEAT, profile=profile)) == []


def test_a_place_that_takes_nothing_new_is_left_alone() -> None:
    """Its run drains, or it was closed, or its member is paused."""
    assert decided(at(None, takes_sessions=False)) == []
    assert decided(at(COLD, takes_sessions=False)) == []


def test_a_process_is_followed_also_where_no_new_one_would_be_started() -> None:
    assert decided(at(SESSION, LAUNCH, takes_sessions=False)) == [
        Adopt(at(SESSION, LAUNCH, takes_sessions=False), SESSION, LAUNCH)
    ]


@pytest.mark.parametrize(
    ("state", "process", "launch", "adopted"),
    [
        (S.IDLE, Liveness.LIVE, E.SETTLED, True),
        (S.ACTIVE, Liveness.LIVE, E.SETTLED, True),
        (S.INTERRUPTED, Liveness.LIVE, E.SETTLED, True),
        (S.IDLE, Liveness.UNKNOWN, E.SETTLED, True),
        (S.IDLE, Liveness.STOPPED, E.SETTLED, False),
        (S.RECOVERY_REQUIRED, Liveness.UNKNOWN, E.SETTLED, False),
        # Whatever the session says: a launch that nobody read back may have left a process.
        (S.COLD, Liveness.UNKNOWN, E.PREPARED, True),
        (S.COLD, Liveness.UNKNOWN, E.RECOVERY_REQUIRED, True),
        (S.RECOVERY_REQUIRED, Liveness.STOPPED, E.PREPARED, True),
    ],
)
def test_what_may_have_a_process_is_looked_for(
    state: SessionState, process: Liveness, launch: EffectState, *, adopted: bool
) -> None:
    session = attrs.evolve(SESSION, state=state, process=process)
    effect = attrs.evolve(LAUNCH, state=launch)
    seat = at(session, effect)
    assert decided(seat) == ([Adopt(seat, session, effect)] if adopted else [])


def test_a_launch_that_came_to_nothing_is_made_again() -> None:
    seat = at(COLD, attrs.evolve(LAUNCH, certainty=Certainty.NOT_APPLIED))
    assert decided(seat) == [Open(seat)]


def test_a_process_that_ended_gets_a_successor() -> None:
    seat = at(attrs.evolve(SESSION, state=S.COLD, process=Liveness.STOPPED), LAUNCH)
    assert decided(seat) == [Open(seat)]


@pytest.mark.parametrize(("process", "opened"), [(Liveness.UNKNOWN, False), (Liveness.STOPPED, True)])
def test_what_was_lost_is_left_to_a_person_and_what_ended_in_a_cycle_has_a_successor(
    process: Liveness, *, opened: bool
) -> None:
    seat = at(attrs.evolve(SESSION, state=S.RECOVERY_REQUIRED, process=process), LAUNCH)
    assert decided(seat) == ([Open(seat)] if opened else [])


def test_a_persons_own_session_is_left_alone() -> None:
    for state in S:
        assert decided(at(attrs.evolve(SESSION, driver=Driver.USER_DRIVEN, state=state), LAUNCH)) == []


@pytest.mark.parametrize("failures", range(MOST_FAILURES + 2))
def test_a_place_is_given_up_after_so_many_failures_in_a_row(failures: int) -> None:
    """Only new launches; what runs is followed."""
    assert decided(SEAT, failures={PLACE: failures}) == ([Open(SEAT)] if failures < MOST_FAILURES else [])
    assert decided(SEAT, failures={MemberRunId("another"): failures}) == [Open(SEAT)]
    seat = at(SESSION, LAUNCH)
    assert decided(seat, failures={PLACE: failures}) == [Adopt(seat, SESSION, LAUNCH)]


def test_controls_come_first_and_what_is_due_last() -> None:
    seat, other = at(SESSION, LAUNCH), attrs.evolve(SEAT, member_run_id=MemberRunId("other"))
    assert decided(seat, other, items=[DUE], controls=[INTERRUPT]) == [
        Control(INTERRUPT, LAUNCH),
        Adopt(seat, SESSION, LAUNCH),
        Open(other),
        Admit(DUE),
    ]


@pytest.mark.parametrize("seat", [at(SESSION, LAUNCH), at(COLD), at(COLD, attrs.evolve(LAUNCH, state=E.PREPARED))])
def test_a_session_that_is_being_stopped_is_neither_started_nor_looked_for(seat: Seat) -> None:
    assert decided(seat, controls=[STOP]) == [Control(STOP, seat.launch)]


def test_a_control_of_a_session_that_is_gone_has_no_launch() -> None:
    assert decided(controls=[STOP]) == [Control(STOP, None)]


def test_what_is_busy_is_left_alone() -> None:
    """One thing at a time for a place, and each control and each admission once."""
    seat = at(SESSION, LAUNCH)
    everything = decided(seat, items=[DUE], controls=[INTERRUPT])
    assert len({action.busy for action in everything}) == len(everything) == 3
    for action in everything:
        left = decided(seat, items=[DUE], controls=[INTERRUPT], busy={action.busy})
        assert left == [each for each in everything if each is not action and each != action]
    assert Open(SEAT).busy == Adopt(seat, SESSION, LAUNCH).busy
