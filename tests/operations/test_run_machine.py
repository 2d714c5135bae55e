"""A run as a whole against a model in memory: whatever is asked, in whatever order, by whoever, at any generation."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
import trio
from hypothesis import HealthCheck, settings
from hypothesis import Phase as Stages
from hypothesis import strategies as st
from hypothesis.stateful import (
    precondition,
    rule,
    run_state_machine_as_test,
)

from client.protocol.agent import PauseAgent, ResumeAgent, ShowAgent
from client.protocol.attempt import AdmitWork, Finding, HeartbeatWork, RecoverWork, Responsibility
from client.protocol.ids import AgentMemberRef, ReceiptId, WorkId
from client.protocol.message import SendMessage
from client.protocol.operation import Request
from client.protocol.refusals import Code
from client.protocol.session import SessionCause
from client.protocol.team_run import CompleteTeamRun, DrainTeamRun, ResumeTeamRun, ShowTeamRun, TakeTeamRun
from client.protocol.work_asks import (
    AcceptWork,
    AssignWork,
    BlockWork,
    CancelWork,
    ClaimWork,
    CreateWork,
    FailWork,
    HoldWork,
    ReleaseWork,
    RequestChanges,
    ResumeWork,
    ShowWork,
    StartWork,
    SubmitWork,
    UnholdWork,
)
from tests.support.run_model import HOST, UNCLOSED, Attempt, Item
from tests.support.run_world import Asking, worlds
from tests.support.supervised import open_, said

WHO = st.sampled_from(("ann", "bob", "cid"))
WHICH = st.integers(0, 5)
#: Mostly the version, or the generation, that is there.
SEEN = st.sampled_from([0] * 9 + [1])


class Works(Asking):
    """Responsibility and progress."""

    def some(self) -> None:
        for number in range(3):
            self.create(number, needs=number == 2)

    @rule(need=WHICH, needs=st.booleans())
    def create(self, need: int, *, needs: bool) -> None:
        if len(self.works()) > 5:
            return
        wanted = [self.pick(need)[0]] if needs and self.works() else []
        ask = CreateWork(
            team_run_id=self.world.scene.run.id,
            title=f"work {len(self.works())}",
            completion_criteria="it works",
            prerequisite_work_ids=list(wanted),
        )
        made = self.world.ask(ask)
        if self.settled(made, may=self.model.may_create()):
            self.model.works[made.id] = Item(needs=wanted)

    @precondition(lambda self: self.works())
    @rule(which=WHICH, who=WHO, seen=SEEN)
    def assign(self, which: int, who: str, seen: int) -> None:
        work, item = self.pick(which)
        part = self.members[who].membership.id
        outcome = self.by(HOST, AssignWork(**self.of(work, item, seen), membership_id=part))
        if self.settled(outcome, may=not seen and self.model.may_assign(item, who)):
            self.model.end(item)
            item.owner, item.version = who, item.version + 1

    @precondition(lambda self: self.works())
    @rule(which=WHICH, who=WHO, seen=SEEN)
    def claim(self, which: int, who: str, seen: int) -> None:
        work, item = self.pick(which)
        outcome = self.by(who, ClaimWork(**self.of(work, item, seen)))
        if item.owner not in {None, who}:
            assert outcome.code is Code.CLAIM_LOST, "whatever version it saw"
        if self.settled(outcome, may=not seen and self.model.may_claim(item, who)):
            item.owner, item.version = who, item.version + 1

    @precondition(lambda self: self.works())
    @rule(which=WHICH, who=st.sampled_from(("bob", "cid")), seen=SEEN)
    def release(self, which: int, who: str, seen: int) -> None:
        work, item = self.pick(which)
        outcome = self.by(who, ReleaseWork(**self.of(work, item, seen)))
        if self.settled(outcome, may=not seen and self.model.may_release(item, who)):
            self.model.end(item)
            item.owner, item.version = None, item.version + 1

    @precondition(lambda self: self.works())
    @rule(which=WHICH, who=WHO, stale=SEEN)
    def admit(self, which: int, who: str, stale: int) -> None:
        """By the supervisor, of this generation or of another, to the session of whoever."""
        work, item = self.pick(which)
        who = item.owner or who
        ask = AdmitWork(work_id=WorkId(work), session_id=self.sessions[who].id, sup_gen=self.sup_gen + stale)
        outcome = self.world.supervise(ask)
        if stale:
            assert outcome.code is Code.SUPERVISOR_GENERATION_FENCED
        if self.settled(outcome, may=not stale and self.model.may_admit(item, who)):
            fence = item.last.fence + 1 if item.last else 1
            item.last = Attempt(fence, who, self.model.people[who].session)
            assert outcome.fence == fence

    @precondition(lambda self: self.works())
    @rule(which=WHICH, who=WHO, seen=SEEN)
    def begin_it(self, which: int, who: str, seen: int) -> None:
        work, item = self.pick(which)
        who = item.owner or who
        if item.live and item.live.custody == "orphaned_unverified":
            return  # whether a start takes an attempt back is said nowhere
        outcome = self.by(who, StartWork(**self.of(work, item, seen)))
        if self.settled(outcome, may=not seen and self.model.may_start(item, who)):
            assert item.live is not None
            item.live.delivered = True
            self.model.move(item, "active")
            item.version += 1

    @precondition(lambda self: self.works())
    @rule(which=WHICH, who=WHO, seen=SEEN, mine=st.booleans(), submit=st.booleans())
    def submit_or_block(self, which: int, who: str, seen: int, *, mine: bool, submit: bool) -> None:
        work, item = self.pick(which)
        who = item.owner or who if mine else who
        seen_at = self.of(work, item, seen)
        ask: Request[Any] = BlockWork(**seen_at, reason="waits")
        if submit:
            ask = SubmitWork(**seen_at, result_summary="done", report_only=True)
        if self.settled(self.by(who, ask), may=not seen and self.model.may_go_on(item, who)):
            assert item.live is not None
            item.live.custody = "completed" if submit else "claimed"
            item.receipts += int(submit)
            self.model.move(item, "review" if submit else "active", "normal" if submit else "blocked")
            item.version += 1

    @precondition(lambda self: self.works())
    @rule(which=WHICH, who=WHO)
    def beat(self, which: int, who: str) -> None:
        """A heartbeat takes an orphaned attempt back, and changes nothing else of a Work."""
        work, item = self.pick(which)
        if self.settled(self.by(who, HeartbeatWork(work_id=WorkId(work))), may=self.model.own(item, who)):
            assert item.live is not None
            delivered = item.live.delivered or item.live.custody == "claimed"
            item.live.custody, item.live.delivered = "claimed", delivered


class Review(Works):
    """What a Host and an acceptor decide."""

    @precondition(lambda self: self.works())
    @rule(which=WHICH, seen=SEEN, how=st.sampled_from([HoldWork, HoldWork, CancelWork, FailWork]))
    def hold_or_end(self, which: int, seen: int, how: type[HoldWork | CancelWork | FailWork]) -> None:
        work, item = self.pick(which)
        may = item.phase in UNCLOSED and (how is not HoldWork or item.condition != "on_hold")
        outcome = self.by(HOST, how(**self.of(work, item, seen), reason="so"))
        if not self.settled(outcome, may=may and not seen):
            return
        item.version += 1
        if how is HoldWork:
            item.held, item.condition = item.condition, "on_hold"
        else:
            self.model.close(item, "cancelled" if how is CancelWork else "failed")

    @precondition(lambda self: self.works())
    @rule(which=WHICH, seen=SEEN)
    def unhold(self, which: int, seen: int) -> None:
        work, item = self.pick(which)
        may = item.phase in UNCLOSED and item.condition == "on_hold" and not seen
        if self.settled(self.by(HOST, UnholdWork(**self.of(work, item, seen))), may=may):
            item.condition, item.held, item.version = item.held or "normal", None, item.version + 1

    @precondition(lambda self: self.works())
    @rule(which=WHICH, seen=SEEN)
    def go_on(self, which: int, seen: int) -> None:
        work, item = self.pick(which)
        busy = any(each.goes and each.owner == item.owner for each in self.model.works.values())
        if busy or item.owner is None:
            return  # whether a resume makes a member busy twice is said nowhere
        outcome = self.by(item.owner, ResumeWork(**self.of(work, item, seen), resolution="came"))
        if self.settled(outcome, may=item.at("active", "blocked") and not seen):
            item.condition, item.version = "normal", item.version + 1

    @precondition(lambda self: self.works())
    @rule(which=WHICH, who=WHO, seen=SEEN, accept=st.booleans())
    def decide(self, which: int, who: str, seen: int, *, accept: bool) -> None:
        """Accept or send back, by whoever: never by its owner, never by a member for a member."""
        work, item = self.pick(which)
        receipts = self.world.ask(ShowWork(work_id=WorkId(work))).receipts
        receipt = receipts[-1].id if receipts else ReceiptId("none")
        ask: Request[Any] = RequestChanges(**self.of(work, item, seen), reason="more")
        if accept:
            ask = AcceptWork(**self.of(work, item, seen), receipt_id=receipt)
        if self.settled(self.by(who, ask), may=not seen and self.model.may_accept(item, who)):
            item.version += 1
            if accept:
                self.model.close(item, "accepted")
            else:
                self.model.move(item, "open")

    @precondition(lambda self: self.works())
    @rule(which=WHICH, seen=SEEN, other=SEEN, keep=st.booleans())
    def recover(self, which: int, seen: int, other: int, *, keep: bool) -> None:
        work, item = self.pick(which)
        ask = RecoverWork(
            **self.of(work, item, seen),
            fence=(item.last.fence if item.last else 1) + other,
            finding=Finding.NO_SIDE_EFFECTS,
            responsibility=Responsibility.KEEP if keep else Responsibility.RELEASE,
            reason="looked",
        )
        if self.settled(self.by(HOST, ask), may=not seen and not other and self.model.may_recover(item)):
            self.model.end(item, "handed_over")
            self.model.move(item, "open")
            item.owner, item.version = item.owner if keep else None, item.version + 1


class Onward(Review):
    """A Work goes its way, one step or many: chance alone seldom brings one far."""

    @precondition(lambda self: self.works())
    @rule(which=WHICH, who=WHO, steps=st.integers(1, 6))
    def further(self, which: int, who: str, steps: int) -> None:
        for _ in range(steps):
            _, item = self.pick(which)
            if item.phase == "closed":
                return
            if item.condition == "on_hold":
                self.unhold(which, 0)
            elif item.live and item.live.custody == "orphaned_unverified":
                self.recover(which, 0, 0, keep=True)
            elif item.owner is None:
                self.assign(which, who, 0)
            elif item.phase == "open":
                self.begin_it(which, who, 0) if item.live else self.admit(which, who, 0)
            elif item.phase == "review":
                self.decide(which, who if item.owner == HOST else HOST, 0, accept=steps != 6)
            elif item.condition == "blocked":
                self.go_on(which, 0)
            else:
                self.submit_or_block(which, who, 0, mine=True, submit=steps != 5)

    @precondition(lambda self: self.works())
    @rule(which=WHICH, who=WHO)
    def further_still(self, which: int, who: str) -> None:
        self.further(which, who, 4)


class Sessions(Onward):
    """Sessions, generations, the run itself, and a little mail."""

    @rule(who=WHO, stale=SEEN, often=st.integers(0, 2))
    def supersede(self, who: str, stale: int, often: int) -> None:
        if often:
            return
        person = self.model.people[who]
        place = self.members[who].place
        made = self.world.supervise(open_(place, self.sup_gen + stale, supersede=True))
        if not self.settled(made, may=not stale and not person.paused and self.model.state in {"running", "draining"}):
            return
        assert made.session_gen == self.sessions[who].session_gen + 1
        self.model.orphan(who)
        person.session, person.state = person.session + 1, "idle"
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
            if cause in {SessionCause.EXITED, SessionCause.LOST}:
                self.model.orphan(who)

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
            "completed": False,
        }[to]
        outcome = self.world.ask(how(team_run_id=run.id, expected_version=run.version + stale))
        if self.settled(outcome, may=may and not stale):
            self.model.state = to

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
