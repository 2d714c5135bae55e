"""Handlers for attempts at a Work: admission, delivery, heartbeat, loss, recovery, receipts."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import attrs

from client.protocol.attempt import (
    AdmitWork,
    Binding,
    Custody,
    DeliveryCause,
    DeliveryState,
    HeartbeatWork,
    ListReceipts,
    Receipt,
    ReceiptPage,
    RecoverWork,
    RedeliverWork,
    ReportDelivery,
    Responsibility,
    WorkDelivery,
)
from client.protocol.ids import BindingId, Fence, WorkDeliveryId, WorkId, new_id
from client.protocol.refusals import Code, Refusal
from client.protocol.session import AgentSession, SessionState
from client.protocol.team_run import TeamRun
from client.protocol.work import Phase, Work
from daemon.call import Call
from daemon.kernel.attempt import CUSTODY, DELIVERY, CustodyCause, stale
from daemon.kernel.readiness import not_ready
from daemon.kernel.team_run import fenced, takes_claims
from daemon.kernel.work import Standing, WorkCause, moved_by
from daemon.operations import actor, find, membership
from store import attempt as attempts
from store import board as facts
from store import work as works
from store.attempt import BINDINGS, DELIVERIES
from store.session import SESSIONS
from store.team_run import MEMBER_RUNS, TEAM_RUNS
from store.tx import Tx
from store.work import WORKS


def move(tx: Tx, call: Call, binding: Binding, cause: CustodyCause, reason: str) -> Binding | Refusal:
    """Change the custody of an attempt; a membership that was only waiting for its last one ends with it."""
    custody = CUSTODY.after(binding.custody, cause, f"binding/{binding.id}")
    if isinstance(custody, Refusal):
        return custody
    after = BINDINGS.change(
        tx, binding, kind=cause.value, actor=call.actor, at=call.now, custody=custody, reason=reason
    )
    if custody in CUSTODY.final:
        membership.unbound(tx, call, binding.membership_id)
    return after


def release(tx: Tx, call: Call, work_id: WorkId, reason: str) -> None:
    """End the live attempt at a Work, where there is one, without an outcome. What was not taken is not delivered."""
    binding = attempts.live(tx, work_id)
    if binding is None:
        return
    delivery = attempts.delivery_of(tx, binding)
    move(tx, call, binding, CustodyCause.RELEASE, reason)
    if delivery is not None and delivery.state is DeliveryState.QUEUED:
        deliver(tx, call, delivery, DeliveryCause.FAILED, reason)


def deliver(tx: Tx, call: Call, delivery: WorkDelivery, cause: DeliveryCause, failure: str) -> WorkDelivery | Refusal:
    state = DELIVERY.after(delivery.state, cause, f"delivery/{delivery.id}")
    if isinstance(state, Refusal):
        return state
    return DELIVERIES.change(
        tx, delivery, kind=cause.value, actor=call.actor, at=call.now, state=state, failure=failure
    )


def received(tx: Tx, call: Call, binding: Binding) -> None:
    """The very process of the binding called: nothing proves better that the Work reached it."""
    delivery = attempts.delivery_of(tx, binding)
    if delivery is not None and delivery.state in {DeliveryState.QUEUED, DeliveryState.CLAIMED}:
        deliver(tx, call, delivery, DeliveryCause.RECEIVED, "")


def knows(tx: Tx, call: Call, binding: Binding, version: int) -> None:
    """The process of the attempt was told this version of the Work, or made it itself. A quick one has made the next
    before it is recorded that the text was taken.
    """
    if version > binding.told_version:
        BINDINGS.change(tx, binding, kind="told", actor=call.actor, at=call.now, told_version=version)


def supervised(tx: Tx, call: Call, work_id: WorkId, sup_gen: int) -> tuple[Work, TeamRun] | Refusal:
    """The Work that the supervisor of its run speaks of, and that run, while it holds it."""
    work = actor.work(tx, call, work_id)
    if isinstance(work, Refusal):
        return work
    if work.team_run_id != call.team_run_id:
        return find.not_found("work", work_id)
    run = TEAM_RUNS.held(tx, work.team_run_id)
    return fenced(run, sup_gen) or (work, run)


def admit(tx: Tx, call: Call, ask: AdmitWork) -> Binding | Refusal:
    found = supervised(tx, call, ask.work_id, ask.sup_gen)
    if isinstance(found, Refusal):
        return found
    work, run = found
    session = SESSIONS.load(tx, ask.session_id)
    if session is None or session.team_run_id != run.id:
        return find.not_found("session", ask.session_id)
    if refusal := _admissible(tx, work, run, session):
        return refusal
    place = MEMBER_RUNS.held(tx, session.member_run_id)
    binding = Binding(
        id=BindingId(new_id()),
        version=1,
        team_run_id=run.id,
        work_id=work.id,
        fence=Fence(attempts.last_fence(tx, work.id) + 1),
        membership_id=place.membership_id,
        member_run_id=place.id,
        run_gen=place.run_gen,
        session_id=session.id,
        session_gen=session.session_gen,
        custody=Custody.CLAIMED,
        lease_ms=ask.lease_ms,
        reason="",
        created_at=call.now,
        updated_at=call.now,
        told_version=0,
    )
    BINDINGS.insert(tx, binding, kind="admitted", actor=call.actor, at=call.now)
    delivery = WorkDelivery(
        id=WorkDeliveryId(new_id()),
        version=1,
        team_run_id=run.id,
        work_id=work.id,
        binding_id=binding.id,
        session_id=session.id,
        state=DeliveryState.QUEUED,
        failure="",
        created_at=call.now,
        updated_at=call.now,
    )
    DELIVERIES.insert(tx, delivery, kind="queued", actor=call.actor, at=call.now)
    return binding


def _admissible(tx: Tx, work: Work, run: TeamRun, session: AgentSession) -> Refusal | None:
    """The checks of an admission, in the order in which they are told."""
    about = f"work/{work.id}"
    if refusal := takes_claims(run):
        return refusal
    if work.owner_id is None:
        lifted_by = "a Host assigns it or a member claims it first"
        return Refusal(code=Code.WORK_NOT_ASSIGNED, about=about, lifted_by=lifted_by)
    standing = moved_by(work, WorkCause.START)
    if isinstance(standing, Refusal):
        return standing
    place = MEMBER_RUNS.load(tx, session.member_run_id)
    if session.state not in {SessionState.IDLE, SessionState.ACTIVE}:
        lifted_by = f"the session is {session.state.value}; an attempt needs one that is idle or active"
        return Refusal(code=Code.INVALID_STATE_TRANSITION, about=f"session/{session.id}", lifted_by=lifted_by)
    if place is None or place.membership_id != work.owner_id:
        lifted_by = "admit it to the session of the member that answers for it"
        return Refusal(code=Code.AGENT_SESSION_GENERATION_FENCED, about=f"session/{session.id}", lifted_by=lifted_by)
    if live := attempts.live(tx, work.id):
        lifted_by = f"the attempt fence={live.fence} is {live.custody.value}; it ends, or its custody is reviewed"
        return Refusal(code=Code.WORK_BINDING_LIVE, about=about, lifted_by=lifted_by)
    if busy := facts.occupied(tx, work.owner_id):
        lifted_by = f"its member has {busy} and finishes or blocks it first"
        return Refusal(code=Code.MEMBER_BUSY, about=f"work/{busy}", lifted_by=lifted_by)
    return not_ready(work, works.some(tx, work.needs))


def delivery(tx: Tx, call: Call, ask: ReportDelivery) -> WorkDelivery | Refusal:
    binding = _attempt(tx, call, ask.work_id, ask.sup_gen, ask.fence)
    if isinstance(binding, Refusal):
        return binding
    found, work = attempts.delivery_of(tx, binding), WORKS.held(tx, binding.work_id)
    assert found is not None, "an admission writes both"
    if ask.cause is DeliveryCause.FAILED and (work.phase is not Phase.OPEN or binding.custody is not Custody.CLAIMED):
        what = "its process was lost" if work.phase is Phase.OPEN else "its process has started it"
        lifted_by = f"{what}: report the session, and a custody review ends the attempt"
        return Refusal(code=Code.INVALID_STATE_TRANSITION, about=f"delivery/{found.id}", lifted_by=lifted_by)
    after = deliver(tx, call, found, ask.cause, ask.failure)
    if isinstance(after, Refusal) or ask.cause is not DeliveryCause.FAILED:
        return after
    released = move(tx, call, binding, CustodyCause.RELEASE, ask.failure or "delivery failed")
    return released if isinstance(released, Refusal) else after


def expire(tx: Tx, call: Call, binding_id: BindingId) -> Binding | Refusal | None:
    """The lease of an attempt ran out in awake time: nobody knows what its process did. None when it has ended."""
    binding = BINDINGS.load(tx, binding_id)
    if binding is None or binding.custody is not Custody.CLAIMED:
        return None
    return move(tx, call, binding, CustodyCause.ORPHAN, "lease expired")


def _attempt(tx: Tx, call: Call, work_id: WorkId, sup_gen: int, fence: int) -> Binding | Refusal:
    found = supervised(tx, call, work_id, sup_gen)
    if isinstance(found, Refusal):
        return found
    binding = attempts.live(tx, work_id)
    if binding is None:
        return no_attempt(work_id)
    return stale(binding, fence) or binding


def no_attempt(work_id: str) -> Refusal:
    lifted_by = "no attempt at this Work is live; its supervisor admits the next one"
    return Refusal(code=Code.FENCE_STALE, about=f"work/{work_id}", lifted_by=lifted_by)


def heartbeat(tx: Tx, call: Call, ask: HeartbeatWork) -> Binding | Refusal:
    work = actor.work(tx, call, ask.work_id)
    if isinstance(work, Refusal):
        return work
    binding = own(tx, call, work, ask.fence)
    if isinstance(binding, Refusal):
        return binding
    if binding.custody is Custody.ORPHANED_UNVERIFIED:
        return move(tx, call, binding, CustodyCause.TAKE_BACK, "")
    received(tx, call, binding)
    return binding


def own(tx: Tx, call: Call, work: Work, fence: int | None = None) -> Binding | Refusal:
    """The live attempt that the calling session itself holds, at ``fence`` where it names one."""
    binding = attempts.live(tx, work.id)
    if binding is None or binding.session_id != call.session_id or binding.session_gen != call.session_gen:
        return no_attempt(work.id)
    return (stale(binding, fence) if fence is not None else None) or binding


def may_recover(tx: Tx, call: Call, ask: RecoverWork | RedeliverWork) -> Refusal | None:
    work = actor.work(tx, call, ask.work_id)
    return work if isinstance(work, Refusal) else actor.may_host_or_operate(tx, call, work.team_id)


def recover(tx: Tx, call: Call, ask: RecoverWork) -> Work | Refusal:
    work = actor.seen(tx, call, ask)
    if isinstance(work, Refusal):
        return work
    about, standing = f"work/{work.id}", moved_by(work, WorkCause.RECOVER)
    if isinstance(standing, Refusal):
        return standing
    binding = attempts.live(tx, work.id)
    if binding is None or binding.custody is not Custody.ORPHANED_UNVERIFIED:
        lifted_by = "its attempt is not orphaned; only one whose process was lost is reviewed"
        return Refusal(code=Code.WORK_NOT_LOST, about=about, lifted_by=lifted_by)
    if refusal := stale(binding, ask.fence):
        return refusal
    handed = move(tx, call, binding, CustodyCause.HAND_OVER, f"{ask.finding.value}: {ask.reason}")
    if isinstance(handed, Refusal):
        return handed
    changes: dict[str, Any] = {"reason": ask.reason, **place_of(standing)}
    if ask.responsibility is Responsibility.RELEASE:
        changes["owner_id"] = None
    kind = f"recovered: {ask.finding.value}"
    after = WORKS.change(tx, work, kind=kind, actor=call.actor, at=call.now, **changes)
    note = {"evidence_refs": ask.evidence_refs, "fence": ask.fence, "finding": ask.finding.value}
    tx.append(f"custody/{binding.id}", 1, "reviewed", actor=call.actor, at=call.now, body=note, run=work.team_run_id)
    return after


def place_of(standing: Standing) -> dict[str, Any]:
    """The columns of a standing."""
    return attrs.asdict(standing, recurse=False)


def redeliver(tx: Tx, call: Call, ask: RedeliverWork) -> Work | Refusal:
    work = actor.seen(tx, call, ask)
    if isinstance(work, Refusal):
        return work
    about, standing = f"work/{work.id}", moved_by(work, WorkCause.REDELIVER)
    if isinstance(standing, Refusal):
        return standing
    if work.owner_id is None:
        command = f"firm work assign {work.id} --expected-version {work.version} --membership-id MEMBERSHIP"
        return Refusal(code=Code.WORK_NOT_ASSIGNED, about=about, lifted_by=f"assign it: {command}")
    if refusal := dispatched(tx, work):
        return refusal
    if attempts.live(tx, work.id):
        lifted_by = "its delivery waits for the session; it needs no other"
        return Refusal(code=Code.WORK_BINDING_LIVE, about=about, lifted_by=lifted_by)
    kind = f"redelivered: {ask.reason}" if ask.reason else "redelivered"
    return WORKS.change(tx, work, kind=kind, actor=call.actor, at=call.now)


def dispatched(tx: Tx, work: Work) -> Refusal | None:
    """Why nothing can be moved under the live attempt, whose process may have it already; or None."""
    live = attempts.live(tx, work.id)
    if live is None:
        return None
    found = attempts.delivery_of(tx, live)
    if found is not None and found.state is DeliveryState.QUEUED and live.custody is Custody.CLAIMED:
        return None
    lifted_by = f"the attempt fence={live.fence} may have reached its process; it ends, or is reviewed once it is lost"
    return Refusal(code=Code.DELIVERY_RECOVERY_UNCERTAIN, about=f"work/{work.id}", lifted_by=lifted_by)


def canonical(body: dict[str, Any]) -> str:
    """RFC 8785 for what we write: sorted names, no space, no number but integers."""
    return json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def digest(body: str, previous: str) -> str:
    """A receipt's digest covers its body and the digest before it."""
    return hashlib.sha256(f"{previous}\n{body}".encode()).hexdigest()


def claims_of(receipt: Receipt) -> dict[str, Any]:
    """What a receipt says of itself; its body repeats it, so that the digest covers it."""
    return {
        "created_by": receipt.created_by,
        "fence": receipt.fence,
        "number": receipt.number,
        "outcome": receipt.outcome.value,
        "receipt_id": receipt.id,
        "work_id": receipt.work_id,
    }


def chain(tx: Tx, work: Work) -> list[Receipt] | Refusal:
    """The receipts of a Work, or the first link that is missing, doubled or altered, or of no completed attempt."""
    found = attempts.receipts(tx, work.id)
    completed = {b.fence for b in attempts.of_work(tx, work.id) if b.custody is Custody.COMPLETED}
    previous = ""
    for receipt in found:
        linked = receipt.previous == previous and receipt.digest == digest(receipt.body, previous)
        if not linked or receipt.fence not in completed:
            return _broken(receipt.id)
        if not claims_of(receipt).items() <= json.loads(receipt.body).items():
            return _broken(receipt.id)
        completed.remove(receipt.fence)
        previous = receipt.digest
    if work.receipt_id is not None and (not found or found[-1].id != work.receipt_id):
        return _broken(work.receipt_id)
    return _broken(f"fence={min(completed)}") if completed else found


def _broken(receipt_id: str) -> Refusal:
    return Refusal(
        code=Code.RECEIPT_CHAIN_BROKEN,
        about=f"receipt/{receipt_id}",
        lifted_by="nothing here mends it: restore a backup, or cancel the Work and have it done again",
    )


def receipts(tx: Tx, call: Call, ask: ListReceipts) -> ReceiptPage | Refusal:
    work = actor.work(tx, call, ask.work_id)
    if isinstance(work, Refusal):
        return work
    found = chain(tx, work)
    return found if isinstance(found, Refusal) else ReceiptPage(items=found)
