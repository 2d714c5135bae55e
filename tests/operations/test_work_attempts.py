"""``work.admit``, ``delivery``, ``heartbeat``, ``recover``, ``redeliver``, ``receipts``: one test an outcome."""

from __future__ import annotations

import attrs
import pytest

from client.protocol.attempt import (
    AdmitWork,
    Binding,
    Custody,
    DeliveryCause,
    DeliveryState,
    Finding,
    HeartbeatWork,
    ListReceipts,
    RecoverWork,
    RedeliverWork,
    ReportDelivery,
    Responsibility,
    WorkDelivery,
)
from client.protocol.ids import Fence, SessionId
from client.protocol.refusals import Code, Refusal
from client.protocol.session import ReportSession, SessionCause
from client.protocol.team_run import DrainTeamRun
from client.protocol.work import Phase, Work
from client.protocol.work_asks import ReplaceDependencies, StartWork
from daemon.operations import attempt
from tests.support import refusals, works
from tests.support.node import InProcessNode
from tests.support.run import Member, Stage, stage


def admit(s: Stage, work: Work, who: Member) -> AdmitWork:
    return AdmitWork(work_id=work.id, session_id=who.session.id, sup_gen=s.sup_gen)


def delivery(s: Stage, work: Work, cause: DeliveryCause, *, fence: int = 1, failure: str = "") -> ReportDelivery:
    return ReportDelivery(work_id=work.id, fence=fence, sup_gen=s.sup_gen, cause=cause, failure=failure)


def recover(work: Work, how: Responsibility = Responsibility.KEEP, *, fence: int = 1) -> RecoverWork:
    return RecoverWork(
        work_id=work.id,
        expected_version=work.version,
        fence=fence,
        finding=Finding.SIDE_EFFECTS_KEPT,
        responsibility=how,
        reason="looked",
        evidence_refs=["log@sha256:1"],
    )


def redeliver(work: Work) -> RedeliverWork:
    return RedeliverWork(work_id=work.id, expected_version=work.version, reason="once more")


def stale(work: Work, lifted_by: str) -> Refusal:
    return Refusal(code=Code.FENCE_STALE, about=f"work/{work.id}", lifted_by=lifted_by)


NO_ATTEMPT = "no attempt at this Work is live; its supervisor admits the next one"


async def test_work_admit_ok(node: InProcessNode) -> None:
    """Binding and delivery together; the Work itself does not change."""
    s = await stage(node)
    work = await s.owned(s.bob)
    made = await works.supervisor(s).ok(attrs.evolve(admit(s, work, s.bob), lease_ms=5000))
    assert made == Binding(
        id=made.id,
        version=1,
        team_run_id=s.run.id,
        work_id=work.id,
        fence=Fence(1),
        membership_id=s.bob.membership.id,
        member_run_id=s.bob.place.id,
        run_gen=s.bob.place.run_gen,
        session_id=s.bob.session.id,
        session_gen=s.bob.session.session_gen,
        custody=Custody.CLAIMED,
        lease_ms=5000,
        reason="",
        created_at=made.created_at,
        updated_at=made.created_at,
        told_version=0,
    )
    shown = await s.shown(work)
    (sent,) = shown.deliveries
    assert sent == WorkDelivery(
        id=sent.id,
        version=1,
        team_run_id=s.run.id,
        work_id=work.id,
        binding_id=made.id,
        session_id=s.bob.session.id,
        state=DeliveryState.QUEUED,
        failure="",
        created_at=made.created_at,
        updated_at=made.created_at,
    )
    assert (shown.work, shown.bindings) == (work, [made])


async def test_work_admit_agent_session_generation_fenced(node: InProcessNode) -> None:
    s = await stage(node)
    work = await s.owned(s.bob)
    said = "admit it to the session of the member that answers for it"
    assert await works.supervisor(s).refused(admit(s, work, s.cid)) == Refusal(
        code=Code.AGENT_SESSION_GENERATION_FENCED, about=f"session/{s.cid.session.id}", lifted_by=said
    )


async def test_an_attempt_needs_a_session_that_can_work(node: InProcessNode) -> None:
    s = await stage(node)
    work = await s.owned(s.bob)
    other = attrs.evolve(admit(s, work, s.bob), session_id=SessionId("nothing"))
    assert await works.supervisor(s).refused(other) == refusals.not_found("session", "nothing")
    await works.lost(s, s.bob)
    said = "the session is recovery_required; an attempt needs one that is idle or active"
    assert await works.supervisor(s).refused(admit(s, work, s.bob)) == Refusal(
        code=Code.INVALID_STATE_TRANSITION, about=f"session/{s.bob.session.id}", lifted_by=said
    )


async def test_work_admit_member_busy(node: InProcessNode) -> None:
    s = await stage(node)
    other, work = await works.admitted(s), await s.owned(s.bob, "second")
    said = f"its member has {other.id} and finishes or blocks it first"
    assert await works.supervisor(s).refused(admit(s, work, s.bob)) == Refusal(
        code=Code.MEMBER_BUSY, about=f"work/{other.id}", lifted_by=said
    )


async def test_work_admit_supervisor_generation_fenced(node: InProcessNode) -> None:
    s = await stage(node)
    work = await s.owned(s.bob)
    await works.fenced(s, attrs.evolve(admit(s, work, s.bob), sup_gen=s.sup_gen + 1))


async def test_work_admit_team_run_not_open(node: InProcessNode) -> None:
    s = await stage(node)
    work = await s.owned(s.bob)
    await node.ok(DrainTeamRun(team_run_id=s.run.id, expected_version=s.run.version))
    refusal = await works.supervisor(s).refused(admit(s, work, s.bob))
    assert (refusal.code, refusal.about) == (Code.TEAM_RUN_NOT_OPEN, f"team-run/{s.run.id}")
    await node.follow(refusal)
    await s.admit(work, s.bob)


async def test_work_admit_work_binding_live(node: InProcessNode) -> None:
    s = await stage(node)
    work = await works.admitted(s)
    said = "the attempt fence=1 is claimed; it ends, or its custody is reviewed"
    assert await works.supervisor(s).refused(admit(s, work, s.bob)) == Refusal(
        code=Code.WORK_BINDING_LIVE, about=f"work/{work.id}", lifted_by=said
    )


async def test_work_admit_work_not_assigned(node: InProcessNode) -> None:
    s = await stage(node)
    work = await s.work()
    said = "a Host assigns it or a member claims it first"
    assert await works.supervisor(s).refused(admit(s, work, s.bob)) == Refusal(
        code=Code.WORK_NOT_ASSIGNED, about=f"work/{work.id}", lifted_by=said
    )


async def test_work_admit_work_not_ready(node: InProcessNode) -> None:
    s = await stage(node)
    need, work = await s.work("need"), await s.owned(s.bob)
    ask = ReplaceDependencies(work_id=work.id, expected_version=work.version, prerequisite_work_ids=[need.id])
    await works.ann(s).ok(ask)
    said = f"it waits for {need.id} to be accepted"
    assert await works.supervisor(s).refused(admit(s, work, s.bob)) == Refusal(
        code=Code.WORK_NOT_READY, about=f"work/{work.id}", lifted_by=said
    )


async def test_work_delivery_ok(node: InProcessNode) -> None:
    """Queued, taken, received; the Work itself does not change."""
    s = await stage(node)
    work = await works.admitted(s)
    taken = await works.supervisor(s).ok(delivery(s, work, DeliveryCause.TAKEN))
    received = await works.supervisor(s).ok(delivery(s, work, DeliveryCause.RECEIVED))
    assert [taken.state, received.state] == [DeliveryState.CLAIMED, DeliveryState.PROVIDER_RECEIVED]
    assert (received.version, (await s.shown(work)).work) == (3, work)


@pytest.mark.parametrize("before", [[], [DeliveryCause.TAKEN], [DeliveryCause.RECEIVED]])
async def test_a_delivery_that_fails_gives_the_attempt_up(node: InProcessNode, before: list[DeliveryCause]) -> None:
    s = await stage(node)
    work = await works.admitted(s)
    for cause in before:
        await works.supervisor(s).ok(delivery(s, work, cause))
    failed = await works.supervisor(s).ok(delivery(s, work, DeliveryCause.FAILED, failure="PROVIDER_DOWN"))
    assert (failed.state, failed.failure) == (DeliveryState.FAILED, "PROVIDER_DOWN")
    shown = await s.shown(work)
    assert [(b.custody, b.reason) for b in shown.bindings] == [(Custody.RELEASED, "PROVIDER_DOWN")]
    assert shown.work == work
    assert (await s.admit(work, s.bob)).fence == 2


async def test_work_delivery_fence_stale(node: InProcessNode) -> None:
    s = await stage(node)
    work = await works.admitted(s)
    said = "the attempt in question is fence=1; fence=2 changes nothing"
    refusal = await works.supervisor(s).refused(delivery(s, work, DeliveryCause.TAKEN, fence=2))
    assert refusal == stale(work, said)
    await works.supervisor(s).ok(delivery(s, work, DeliveryCause.FAILED))
    assert await works.supervisor(s).refused(delivery(s, work, DeliveryCause.TAKEN)) == stale(work, NO_ATTEMPT)


async def test_work_delivery_invalid_state_transition(node: InProcessNode) -> None:
    s = await stage(node)
    work = await works.admitted(s)
    await works.supervisor(s).ok(delivery(s, work, DeliveryCause.RECEIVED))
    refusal = await works.supervisor(s).refused(delivery(s, work, DeliveryCause.TAKEN))
    (sent,) = (await s.shown(work)).deliveries
    assert refusal == refusals.no_move(f"delivery/{sent.id}", "provider_received", "queued")


async def test_a_delivery_does_not_fail_once_the_work_was_started_or_its_process_lost(node: InProcessNode) -> None:
    """Else the Work would be active without an attempt, or the orphaned attempt requeued by itself."""
    s = await stage(node)
    started, waiting = await s.started(s.bob, "a"), await s.owned(s.cid, "b")
    await s.admit(waiting, s.cid)
    await works.lost(s, s.cid)
    for work, what in ((started, "its process has started it"), (waiting, "its process was lost")):
        (sent,) = (await s.shown(work)).deliveries
        said = f"{what}: report the session, and a custody review ends the attempt"
        refusal = await works.supervisor(s).refused(delivery(s, work, DeliveryCause.FAILED))
        assert refusal == Refusal(code=Code.INVALID_STATE_TRANSITION, about=f"delivery/{sent.id}", lifted_by=said)


async def test_work_delivery_supervisor_generation_fenced(node: InProcessNode) -> None:
    s = await stage(node)
    work = await works.admitted(s)
    await works.fenced(s, attrs.evolve(delivery(s, work, DeliveryCause.TAKEN), sup_gen=s.sup_gen + 1))


async def test_work_heartbeat_ok(node: InProcessNode) -> None:
    """It proves that the delivery arrived; an orphaned attempt comes back; no Work changes."""
    s = await stage(node)
    work = await works.admitted(s)
    beat = await works.bob(s).ok(HeartbeatWork())
    assert (beat.work_id, beat.custody, beat.version) == (work.id, Custody.CLAIMED, 1)
    assert [d.state for d in (await s.shown(work)).deliveries] == [DeliveryState.PROVIDER_RECEIVED]
    await works.lost(s, s.bob)
    back = await works.bob(s).ok(HeartbeatWork(work_id=work.id, fence=1))
    assert (back.custody, back.version) == (Custody.CLAIMED, 3)
    assert (await s.shown(work)).work == work


async def test_work_heartbeat_fence_stale(node: InProcessNode) -> None:
    s = await stage(node)
    work = await works.admitted(s)
    said = "the attempt in question is fence=1; fence=2 changes nothing"
    assert await works.bob(s).refused(HeartbeatWork(work_id=work.id, fence=2)) == stale(work, said)
    assert await works.cid(s).refused(HeartbeatWork(work_id=work.id)) == stale(work, NO_ATTEMPT)


async def test_a_start_of_the_same_session_takes_its_orphaned_attempt_back(node: InProcessNode) -> None:
    """It proves as much as a heartbeat; what a person has reviewed stays reviewed."""
    s = await stage(node)
    work = await works.admitted(s)
    (held,) = (await s.shown(work)).bindings
    await node.store.write(lambda tx: attempt.expire(tx, node.call(), held.id))
    (lost,) = (await s.shown(work)).bindings
    assert lost.custody is Custody.ORPHANED_UNVERIFIED
    started = await works.bob(s).ok(StartWork(work_id=work.id, expected_version=work.version))
    (back,) = (await s.shown(work)).bindings
    assert (started.phase, back.custody, back.fence) == (Phase.ACTIVE, Custody.CLAIMED, held.fence)


@pytest.mark.parametrize("how", list(Responsibility))
async def test_work_recover_ok(node: InProcessNode, how: Responsibility) -> None:
    """Custody is handed over, the Work open again, with its owner or without."""
    s = await stage(node)
    work = await works.orphaned(s)
    after = await works.ann(s).ok(recover(work, how))
    owner = work.owner_id if how is Responsibility.KEEP else None
    assert after == attrs.evolve(
        work, version=4, phase=Phase.OPEN, owner_id=owner, reason="looked", updated_at=after.updated_at
    )
    (binding,) = (await s.shown(work)).bindings
    assert (binding.custody, binding.reason) == (Custody.HANDED_OVER, "SIDE_EFFECTS_KEPT: looked")


async def test_work_recover_fence_stale(node: InProcessNode) -> None:
    s = await stage(node)
    work = await works.orphaned(s)
    said = "the attempt in question is fence=1; fence=2 changes nothing"
    assert await node.refused(recover(work, fence=2)) == stale(work, said)


async def test_work_recover_work_not_lost(node: InProcessNode) -> None:
    s = await stage(node)
    said = "its attempt is not orphaned; only one whose process was lost is reviewed"
    for work in (await s.started(s.bob, "a"), await s.work("b")):
        assert await node.refused(recover(work)) == Refusal(
            code=Code.WORK_NOT_LOST, about=f"work/{work.id}", lifted_by=said
        )


async def test_work_redeliver_ok(node: InProcessNode) -> None:
    """After a failed delivery it is asked for again; the next attempt has the next fence."""
    s = await stage(node)
    work = await works.admitted(s)
    await works.supervisor(s).ok(delivery(s, work, DeliveryCause.FAILED))
    after = await node.ok(redeliver(work))
    assert after == attrs.evolve(work, version=3, updated_at=after.updated_at)
    assert (await s.admit(after, s.bob)).fence == 2


async def test_work_redeliver_delivery_recovery_uncertain(node: InProcessNode) -> None:
    """It may have reached its process; or that was lost while it waited."""
    s = await stage(node)
    taken, waiting = await works.admitted(s), await s.owned(s.cid, "b")
    await works.supervisor(s).ok(delivery(s, taken, DeliveryCause.TAKEN))
    await s.admit(waiting, s.cid)
    await works.lost(s, s.cid)
    said = "the attempt fence=1 may have reached its process; it ends, or is reviewed once it is lost"
    for work in (taken, waiting):
        assert await node.refused(redeliver(work)) == Refusal(
            code=Code.DELIVERY_RECOVERY_UNCERTAIN, about=f"work/{work.id}", lifted_by=said
        )


async def test_work_redeliver_work_binding_live(node: InProcessNode) -> None:
    s = await stage(node)
    work = await works.admitted(s)
    said = "its delivery waits for the session; it needs no other"
    assert await node.refused(redeliver(work)) == Refusal(
        code=Code.WORK_BINDING_LIVE, about=f"work/{work.id}", lifted_by=said
    )


async def test_work_redeliver_work_not_assigned(node: InProcessNode) -> None:
    s = await stage(node)
    work = await s.work()
    command = f"firm work assign {work.id} --expected-version 1 --membership-id MEMBERSHIP"
    refusal = await node.refused(redeliver(work))
    assert refusal == Refusal(code=Code.WORK_NOT_ASSIGNED, about=f"work/{work.id}", lifted_by=f"assign it: {command}")


async def test_work_receipts_ok(node: InProcessNode) -> None:
    s = await stage(node)
    work = await s.submitted(s.bob)
    assert (await node.ok(ListReceipts(work_id=(await s.work("b")).id))).items == []
    (receipt,) = (await works.bob(s).ok(ListReceipts(work_id=work.id))).items
    assert (receipt.id, receipt.number, receipt.fence, receipt.previous) == (work.receipt_id, 1, 1, "")


async def test_a_session_that_is_lost_is_not_given_the_work_again(node: InProcessNode) -> None:
    """Report 8: a recovered Work goes to the next session, never to the dead one."""
    s = await stage(node)
    work = await works.ann(s).ok(recover(await works.orphaned(s)))
    assert (await works.supervisor(s).refused(admit(s, work, s.bob))).code is Code.INVALID_STATE_TRANSITION
    for cause in (SessionCause.RESOLVED, SessionCause.READY):
        ask = ReportSession(session_id=s.bob.session.id, session_gen=1, sup_gen=s.sup_gen, cause=cause)
        await works.supervisor(s).ok(ask)
    assert (await s.admit(work, s.bob)).fence == 2
    await works.bob(s).ok(StartWork(work_id=work.id, expected_version=work.version))
