"""A run as a whole against a model in memory: whatever is asked, in whatever order, by whoever, at any generation."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
import trio
from hypothesis import HealthCheck, settings
from hypothesis import Phase as Stages
from hypothesis import strategies as st
from hypothesis.stateful import rule, run_state_machine_as_test

from client.protocol.agent import PauseAgent, ResumeAgent, ShowAgent
from client.protocol.attempt import HeartbeatWork
from client.protocol.ids import AgentMemberRef
from client.protocol.message import SendMessage
from client.protocol.operation import Request
from client.protocol.refusals import Code
from client.protocol.session import SessionCause
from client.protocol.team_run import CompleteTeamRun, DrainTeamRun, ResumeTeamRun, ShowTeamRun, TakeTeamRun
from client.protocol.work_asks import CancelWork, CreateWork, FailWork
from tests.support.run_model import HOST, UNCLOSED
from tests.support.run_rules import SEEN, WHICH, WHO, Onward
from tests.support.run_world import Outcome, worlds
from tests.support.supervised import open_, said


class Sessions(Onward):
    """Sessions, generations, the run itself, and a little mail."""

    @rule(who=WHO, stale=SEEN, often=st.integers(0, 2))
    def supersede(self, who: str, stale: int, often: int) -> None:
        if often:
            return
        person = self.model.people[who]
        place = self.members[who].place
        made = self.world.supervise(open_(place, self.sup_gen + stale, supersede=True))
        if not self.settled(made, may=not stale and not person.paused and self.model.state == "running"):
            return
        assert made.session_gen == self.sessions[who].session_gen + 1
        self.model.orphan(who)
        person.session, person.state, person.ended = person.session + 1, "idle", False
        former, self.sessions[who] = self.sessions[who], made
        self.settled(self.world.supervise(said(made, SessionCause.READY, self.sup_gen)), may=True)
        late = self.world.ask(HeartbeatWork(), former)
        assert late.code is Code.AGENT_SESSION_GENERATION_FENCED

    @rule(who=WHO, cause=st.sampled_from(list(SessionCause)), stale=SEEN)
    def report(self, who: str, cause: SessionCause, stale: int) -> None:
        """What became of a session, as far as the model knows states; closing it is what ``supersede`` does too."""
        person, session = self.model.people[who], self.sessions[who]
        moves = {
            ("idle", "exited"): "cold",
            ("idle", "lost"): "recovery_required",
            ("idle", "cycle_started"): "active",
            ("idle", "degraded"): "idle",
            ("active", "cycle_ended"): "idle",
            ("active", "exited"): "recovery_required",
            ("active", "lost"): "recovery_required",
            ("cold", "ready"): "idle",
            ("cold", "exited"): "cold",
            ("cold", "lost"): "recovery_required",
            ("recovery_required", "exited"): "recovery_required",
            ("recovery_required", "resolved"): "cold",
        }
        to = moves.get((person.state, cause.value))
        if cause in {SessionCause.CLOSED, SessionCause.ADOPTED, SessionCause.INTERRUPTED}:
            return
        outcome = self.world.supervise(said(session, cause, self.sup_gen, session_gen=session.session_gen + stale))
        if stale:
            assert outcome.code is Code.AGENT_SESSION_GENERATION_FENCED
        if self.settled(outcome, may=to is not None and not stale):
            assert to is not None
            person.state = to
            if cause in {SessionCause.EXITED, SessionCause.LOST, SessionCause.READY}:
                person.ended = cause is SessionCause.EXITED
            if cause in {SessionCause.EXITED, SessionCause.LOST}:
                self.model.orphan(who)

    @rule(which=WHICH, keep=st.booleans())
    def lose_and_recover(self, which: int, *, keep: bool) -> None:
        """Heard once more before. Chance alone seldom finds an attempt that is alive, or reviews what it has lost."""
        if self.works():
            _, item = self.pick(which, lambda item: item.live is not None)
            if item.live is not None:
                self.beat(which, item.live.who, mine=True)
                self.supersede(item.live.who, 0, 0)
                self.recover(which, 0, 0, keep=keep)

    @rule(often=st.integers(0, 4))
    def take_over(self, often: int) -> None:
        if often:
            return
        run = self.world.scene.run.id
        taken = self.world.supervise(TakeTeamRun(team_run_id=run))
        if self.settled(taken, may=self.model.state in {"running", "draining"}):
            assert taken.sup_gen == self.sup_gen + 1
            self.sup_gen = taken.sup_gen

    @rule(how=st.sampled_from([DrainTeamRun, ResumeTeamRun, ResumeTeamRun, CompleteTeamRun]), stale=SEEN)
    def drain_resume_or_complete(self, how: type[DrainTeamRun | ResumeTeamRun | CompleteTeamRun], stale: int) -> None:
        """No run is completed over a Work here; without one its members would be ended, and nothing more happen."""
        if how is CompleteTeamRun and all(item.phase not in UNCLOSED for item in self.model.works.values()):
            return
        run = self.world.ask(ShowTeamRun(team_run_id=self.world.scene.run.id)).run
        assert run.state.value == self.model.state
        to = {DrainTeamRun: "draining", ResumeTeamRun: "running", CompleteTeamRun: "completed"}[how]
        may = {
            "draining": self.model.state == "running",
            "running": self.model.state == "draining",
            "completed": False,  # somebody always sits here; ``finish`` sends everybody home
        }[to]
        outcome = self.world.ask(how(team_run_id=run.id, expected_version=run.version + stale))
        if self.settled(outcome, may=may and not stale):
            self.model.state = to

    @rule(often=st.integers(0, 3), how=st.sampled_from([CancelWork, FailWork]))
    def finish(self, often: int, how: type[CancelWork | FailWork]) -> None:
        """Close every Work, end every session, complete the run: nothing begins in it any more, but in the next one."""
        if often or self.model.state not in {"running", "draining"} or self.model.people[HOST].ended:
            return
        for work, item in self.model.works.items():
            if item.phase != "closed":
                assert self.completed().code is Code.WORK_NOT_CLOSED
                self.settled(self.by(HOST, how(**self.of(work, item, 0), reason="so")), may=True)
                item.version += 1
                self.model.close(item, "cancelled" if how is CancelWork else "failed")
        self.nothing_is_found_that_never_is()
        for who, person in self.model.people.items():
            before = {"active": [SessionCause.CYCLE_ENDED], "recovery_required": [SessionCause.RESOLVED]}
            for cause in (*before.get(person.state, ()), SessionCause.CLOSED):
                self.settled(self.world.supervise(said(self.sessions[who], cause, self.sup_gen)), may=True)
        assert self.settled(self.completed(), may=True)
        late = CreateWork(team_run_id=self.world.scene.run.id, title="late", completion_criteria="it works")
        assert self.world.ask(late).code is Code.TEAM_RUN_NOT_OPEN
        assert self.world.supervise(TakeTeamRun(team_run_id=self.world.scene.run.id)).code is Code.TEAM_RUN_NOT_OPEN
        for who, person in self.model.people.items():
            if person.paused:
                self.pause_or_resume(who, 0)
        self.next_run()
        self.some()

    def completed(self) -> Outcome:
        run = self.world.ask(ShowTeamRun(team_run_id=self.world.scene.run.id)).run
        return self.world.ask(CompleteTeamRun(team_run_id=run.id, expected_version=run.version))

    @rule(who=WHO, often=st.integers(0, 4))
    def pause_or_resume(self, who: str, often: int) -> None:
        if often:
            return
        person = self.model.people[who]
        ref = AgentMemberRef(who)
        version = self.world.ask(ShowAgent(agent_member_id=ref)).version
        ask: Request[Any] = PauseAgent(agent_member_id=ref, expected_version=version)
        if person.paused:
            ask = ResumeAgent(agent_member_id=ref, expected_version=version)
        self.settled(self.world.ask(ask), may=True)
        person.paused = not person.paused

    @rule(who=WHO, to=WHO)
    def write(self, who: str, to: str) -> None:
        """Mail changes no Work, whatever becomes of it; the invariant looks at all of them behind it."""
        self.by(who, SendMessage(body="take it, it is done, I accept", recipients=[to], response_required=True))


async def play(examples: int, steps: int) -> Counter[str]:
    """Let machines play, each in a world of its own. How often each kind of request was done or refused."""
    done = Counter[str]()
    every: list[Any] = list(HealthCheck)
    bounds = settings(
        max_examples=examples,
        stateful_step_count=steps,
        deadline=None,
        database=None,
        phases=[Stages.generate],  # a failing run is told step by step as it was; making it short takes minutes
        suppress_health_check=every,
    )
    async with worlds() as begin:
        machine = type("Run", (Sessions,), {"begin": staticmethod(begin), "done": done})
        await trio.to_thread.run_sync(lambda: run_state_machine_as_test(machine, settings=bounds))
    return done


async def test_a_run_does_what_its_model_says() -> None:
    done = await play(8, 50)
    assert sum(done.values()) > 100


@pytest.mark.soak
@pytest.mark.timeout(3600)
async def test_a_run_does_what_its_model_says_for_thousands_of_steps() -> None:
    """Long enough that all that a rule may ask was done, and refused too where it can be."""
    done = await play(120, 150)
    kinds = {each.partition(" ")[0] for each in done}
    assert {kind for kind in kinds if not done[f"{kind} done"]} == set()
    assert len(kinds) > 20
