"""What may be asked of Works in a run that a state machine plays, and what its model says of each."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from client.protocol.attempt import AdmitWork, Finding, HeartbeatWork, RecoverWork, Responsibility
from client.protocol.ids import ReceiptId, WorkId
from client.protocol.operation import Request
from client.protocol.refusals import Code
from client.protocol.verdict import Verification, VerifyWork
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
    UpdateWork,
)
from tests.support.run_model import HOST, UNCLOSED, Attempt, Item
from tests.support.run_world import Asking, denied

WHO = st.sampled_from(("ann", "bob", "cid"))
WHICH = st.integers(0, 5)
#: Mostly the version, or the generation, that is there.
SEEN = st.sampled_from([0] * 9 + [1])
#: Mostly none; the Host verifies nothing.
VERIFIER = st.sampled_from([None, None, None, "bob", "cid", HOST])


class Works(Asking):
    """Responsibility and progress."""

    def some(self) -> None:
        for number in range(3):
            self.create(number, needs=number == 2)

    @rule(need=WHICH, needs=st.booleans(), verifier=VERIFIER)
    def create(self, need: int, *, needs: bool, verifier: str | None = None) -> None:
        if len(self.works()) > 5:
            return
        wanted = [self.pick(need)[0]] if needs and self.works() else []
        ask = CreateWork(
            team_run_id=self.world.scene.run.id,
            title=f"work {len(self.works())}",
            completion_criteria="it works",
            prerequisite_work_ids=list(wanted),
            verifier_id=self.membership(verifier),
        )
        made = self.world.ask(ask)
        if self.settled(made, may=self.model.may_create(verifier)):
            self.model.works[made.id] = Item(needs=wanted, verifier=verifier)

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
        if item.owner not in {None, who} and not denied(outcome):
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
            item.built.add(who)
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
            item.said = {} if submit else item.said
            self.model.move(item, "review" if submit else "active", "normal" if submit else "blocked")
            item.version += 1

    @precondition(lambda self: self.works())
    @rule(which=WHICH, who=WHO, mine=st.booleans())
    def beat(self, which: int, who: str, *, mine: bool) -> None:
        """A heartbeat takes an orphaned attempt back, and changes nothing else of a Work."""
        work, item = self.pick(which, lambda item: mine and item.live is not None)
        who = item.live.who if mine and item.live else who
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
        may = self.model.may_accept(item, who) and (item.verified or not accept)
        if self.settled(self.by(who, ask), may=not seen and may):
            item.version += 1
            if accept:
                self.model.close(item, "accepted")
            else:
                self.model.move(item, "open")

    @precondition(lambda self: self.works())
    @rule(which=WHICH, who=VERIFIER, seen=SEEN)
    def name_verifier(self, which: int, who: str | None, seen: int) -> None:
        """Or take it away. What it said of this submission before, it has said."""
        work, item = self.pick(which)
        ask = UpdateWork(**self.of(work, item, seen), verifier_id=self.membership(who), remove_verifier=who is None)
        if self.settled(self.by(HOST, ask), may=not seen and self.model.may_name(item, who)):
            item.verifier, item.version = who, item.version + 1

    @precondition(lambda self: self.works())
    @rule(which=WHICH, who=WHO, seen=SEEN, older=SEEN, mine=st.booleans(), passed=st.booleans())
    def verify(self, which: int, who: str, seen: int, older: int, *, mine: bool, passed: bool) -> None:
        """By whoever, of the last submission or of one before it, once or again."""
        work, item = self.pick(which, lambda item: mine and item.phase == "review" and item.verifier is not None)
        who = item.verifier or who if mine else who
        self.says(work, item, who, passed=passed, seen=seen, older=older)

    def says(self, work: str, item: Item, who: str, *, passed: bool, seen: int = 0, older: int = 0) -> None:
        receipts = self.world.ask(ShowWork(work_id=WorkId(work))).receipts
        about = receipts[-1 - older].id if len(receipts) > older else ReceiptId("none")
        outcome = Verification.PASSED if passed else Verification.FAILED
        ask = VerifyWork(**self.of(work, item, seen), receipt_id=about, outcome=outcome, reason="looked")
        if self.settled(self.by(who, ask), may=not seen and not older and self.model.may_verify(item, who)):
            item.said[who], item.version = outcome, item.version + 1

    @precondition(lambda self: self.works())
    @rule(which=WHICH, seen=SEEN, other=SEEN, keep=st.booleans())
    def recover(self, which: int, seen: int, other: int, *, keep: bool) -> None:
        work, item = self.pick(which, self.model.may_recover)
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
                self.reviewed(which, who, steps)
            elif item.condition == "blocked":
                self.go_on(which, 0)
            else:
                self.submit_or_block(which, who, 0, mine=True, submit=steps != 5)

    def reviewed(self, which: int, who: str, steps: int) -> None:
        """Verified, then decided; or decided too early; or somebody is named first who is to verify it."""
        _, item = self.pick(which)
        able = [each for each in ("bob", "cid") if self.model.may_name(item, each)]
        if item.verifier is None and able and steps in {2, 4}:
            self.name_verifier(which, able[0], 0)
        elif item.verifier and item.verifier not in item.said and steps != 3:
            work = self.works()[which % len(self.works())]
            self.says(work, item, item.verifier, passed=steps != 5)
        else:
            self.decide(which, who if item.owner == HOST else HOST, 0, accept=steps not in {1, 6})

    @precondition(lambda self: self.works())
    @rule(which=WHICH, who=WHO)
    def further_still(self, which: int, who: str) -> None:
        self.further(which, who, 4)
