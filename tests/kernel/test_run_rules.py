"""The rules that go with runs, places and sessions: what a run takes, whose place is present, and which generation is
the current one. Their lifecycles are in ``test_lifecycles.py``.
"""

from __future__ import annotations

import itertools

import attrs
import pytest

from client.protocol.ids import (
    AgentMemberId,
    MemberRunId,
    MembershipId,
    RunGen,
    SessionGen,
    SupGen,
    TeamId,
    TeamRunId,
    UnixMs,
)
from client.protocol.refusals import Code, Refusal
from client.protocol.session import Driver, Liveness, SessionState
from client.protocol.team_run import Coordination, MemberRun, TeamRun, TeamRunState
from daemon.kernel import team_run
from daemon.kernel.session import ORPHANING, PROCESS, current, exists
from tests.support.records import SESSION

NOW = UnixMs(1)
RUN = TeamRun(
    id=TeamRunId("run"),
    version=4,
    team_id=TeamId("crew"),
    objective="",
    state=TeamRunState.RUNNING,
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
SITTING = attrs.evolve(SESSION, session_gen=SessionGen(5), sup_gen=RUN.sup_gen)


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
