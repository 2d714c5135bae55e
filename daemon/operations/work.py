"""Handlers for ``work.*``: responsibility and progress.

Review is in ``review``, attempts in ``attempt``, planning in ``work_plan``.
"""

from __future__ import annotations

import attrs

from client.protocol.attempt import Binding, Custody, Receipt
from client.protocol.ids import Fence, new_receipt_id
from client.protocol.membership import MembershipRole, MembershipState, TeamMembership
from client.protocol.refusals import Code, Refusal
from client.protocol.team_run import MemberRun
from client.protocol.work import ClaimMode, Work
from client.protocol.work_asks import (
    AcceptWork,
    AssignWork,
    BlockWork,
    CancelWork,
    ClaimWork,
    FailWork,
    HoldWork,
    ReleaseWork,
    RequestChanges,
    ResumeWork,
    StartWork,
    SubmitWork,
    UnholdWork,
)
from daemon.call import Call
from daemon.kernel.agent import available, retired
from daemon.kernel.attempt import CustodyCause, answers, evidence_missing, reviewed_elsewhere, too_long
from daemon.kernel.readiness import not_ready
from daemon.kernel.team_run import no_place, present, takes_claims, takes_works
from daemon.kernel.version import moved
from daemon.kernel.work import WorkCause, moved_by
from daemon.operations import actor, attempt, dependents, find, verdict
from store import attempt as attempts
from store import session as sessions
from store import team_run as runs
from store import work as works
from store.agent import AGENTS
from store.membership import MEMBERSHIPS
from store.team_run import TEAM_RUNS
from store.tx import Tx
from store.work import WORKS

ByHost = AssignWork | CancelWork | FailWork | HoldWork | UnholdWork
ByOwner = BlockWork | ResumeWork | StartWork | SubmitWork
ByAcceptor = AcceptWork | RequestChanges


def change(tx: Tx, call: Call, work: Work, cause: WorkCause, **changes: object) -> Work | Refusal:
    """Move a Work's standing and append its event."""
    standing = moved_by(work, cause)
    if isinstance(standing, Refusal):
        return standing
    fields = {**attempt.place_of(standing), **changes}
    after = WORKS.change(tx, work, kind=cause.value, actor=call.actor, at=call.now, **fields)
    dependents.tell(tx, call, after)
    return after


def assign(tx: Tx, call: Call, ask: AssignWork) -> Work | Refusal:
    work = actor.seen(tx, call, ask)
    if isinstance(work, Refusal):
        return work
    membership = MEMBERSHIPS.load(tx, ask.membership_id)
    if membership is None or membership.team_id != work.team_id:
        return find.not_found("membership", ask.membership_id)
    if membership.id == work.owner_id:
        lifted_by = "nothing is left to do; it starts once it is delivered"
        return Refusal(code=Code.WORK_ALREADY_ASSIGNED, about=f"work/{work.id}", lifted_by=lifted_by)
    place = runs.place(tx, work.team_run_id, membership.id)
    refusal = (
        takes_works(TEAM_RUNS.held(tx, work.team_run_id))
        or _can_own(work, membership, place)
        or verdict.is_verifier(tx, work, membership)
        or attempt.dispatched(tx, work)
        or _assignable(tx, membership)
    )
    if refusal:
        return refusal
    attempt.release(tx, call, work.id, "assigned to another member")
    return change(tx, call, work, WorkCause.ASSIGN, owner_id=membership.id)


def _assignable(tx: Tx, membership: TeamMembership) -> Refusal | None:
    """A paused member may be given responsibility; it sleeps until it is resumed. A retired one may not."""
    return retired(AGENTS.held(tx, membership.agent_member_id))


def _can_own(work: Work, membership: TeamMembership, place: MemberRun | None) -> Refusal | None:
    """Why this member cannot answer for this Work, or None."""
    about = f"work/{work.id}"
    if membership.role is MembershipRole.OBSERVER or membership.state is not MembershipState.ACTIVE:
        lifted_by = f"it is for active members; this one is {membership.state.value} as {membership.role.value}"
        return Refusal(code=Code.NOT_ELIGIBLE, about=about, lifted_by=lifted_by)
    if place is None:
        return no_place(work.team_run_id, membership.id)
    if refusal := present(place):
        return refusal
    if work.required_role and place.role != work.required_role:
        lifted_by = f"it is for the role {work.required_role}; this member is {place.role}-{place.number}"
        return Refusal(code=Code.NOT_ELIGIBLE, about=about, lifted_by=lifted_by)
    return None


def claim(tx: Tx, call: Call, ask: ClaimWork) -> Work | Refusal:
    """Ownership is looked at before the version: who lost has lost, whatever version it saw."""
    caller, work = actor.actor(tx, call), actor.work(tx, call, ask.work_id)
    assert caller is not None, "only members have this operation"
    if isinstance(work, Refusal):
        return work
    about = f"work/{work.id}"
    if work.owner_id is not None and work.owner_id != caller.membership.id:
        return claim_lost(tx, work)
    if refusal := moved(about, current=work.version, expected=ask.expected_version):
        return refusal
    if work.owner_id is not None:
        lifted_by = "it is yours; it starts once it is delivered"
        return Refusal(code=Code.WORK_ALREADY_ASSIGNED, about=about, lifted_by=lifted_by)
    refusal = (
        takes_claims(TEAM_RUNS.held(tx, work.team_run_id))
        or _claimable(work, caller)
        or _can_own(work, caller.membership, runs.place(tx, work.team_run_id, caller.membership.id))
        or verdict.is_verifier(tx, work, caller.membership)
        or _fit(tx, caller)
        or _accepts_claims(tx, caller)
    )
    if refusal:
        return refusal
    standing = moved_by(work, WorkCause.CLAIM)
    if isinstance(standing, Refusal):
        return standing
    return not_ready(work, works.some(tx, work.needs)) or change(
        tx, call, work, WorkCause.CLAIM, owner_id=caller.membership.id
    )


def _claimable(work: Work, caller: actor.Actor) -> Refusal | None:
    about = f"work/{work.id}"
    if work.claim_mode is not ClaimMode.TEAM_CLAIM:
        lifted_by = "its Host assigns it; ask for it in a message"
        return Refusal(code=Code.NOT_ELIGIBLE, about=about, lifted_by=lifted_by)
    if work.eligible and caller.membership.agent_member_id not in work.eligible:
        lifted_by = f"it is for {', '.join(work.eligible[:5])}"
        return Refusal(code=Code.NOT_ELIGIBLE, about=about, lifted_by=lifted_by)
    return None


def _accepts_claims(tx: Tx, caller: actor.Actor) -> Refusal | None:
    capability = sessions.capability_of(tx, caller.session.id)
    if capability is None or capability.accepts_new_claims:
        return None
    lifted_by = "this session takes no new claims; its heartbeat and its outcome stay welcome"
    return Refusal(code=Code.NOT_ELIGIBLE, about=f"session/{caller.session.id}", lifted_by=lifted_by)


def _fit(tx: Tx, caller: actor.Actor) -> Refusal | None:
    return available(AGENTS.held(tx, caller.membership.agent_member_id))


def claim_lost(tx: Tx, work: Work) -> Refusal:
    owner = MEMBERSHIPS.load(tx, work.owner_id or "")
    agent = AGENTS.load(tx, owner.agent_member_id) if owner else None
    name = f"{agent.name} ({work.owner_id})" if agent else str(work.owner_id)
    return Refusal(
        code=Code.CLAIM_LOST,
        about=f"work/{work.id}",
        lifted_by=f"{name} answers for it; do none of its side effects",
        current_version=work.version,
    )


def may_release(tx: Tx, call: Call, ask: ReleaseWork) -> Refusal | None:
    """A member is looked at by the verb: whoever gave a Work back owns it no more, and may ask again for the answer."""
    work, caller = actor.work(tx, call, ask.work_id), actor.actor(tx, call)
    if isinstance(work, Refusal):
        return work
    return None if caller is not None else actor.may_host(tx, call, work.team_id)


def release(tx: Tx, call: Call, ask: ReleaseWork) -> Work | Refusal:
    work = actor.seen(tx, call, ask)
    if isinstance(work, Refusal):
        return work
    if work.owner_id is None:
        lifted_by = "nobody answers for it; there is nothing to give back"
        return Refusal(code=Code.WORK_NOT_ASSIGNED, about=f"work/{work.id}", lifted_by=lifted_by)
    if refusal := _of_another(tx, call, work) or attempt.dispatched(tx, work):
        return refusal
    after = change(tx, call, work, WorkCause.RELEASE, owner_id=None, reason=ask.reason)
    if not isinstance(after, Refusal):
        attempt.release(tx, call, work.id, ask.reason)
    return after


def _of_another(tx: Tx, call: Call, work: Work) -> Refusal | None:
    """Why a Work is not the caller's to give back, or None."""
    caller = actor.actor(tx, call)
    if caller is not None and work.owner_id == caller.membership.id:
        return None
    return actor.may_host(tx, call, work.team_id)


def _owned(tx: Tx, call: Call, ask: ByOwner) -> Work | Refusal:
    """The Work that is meant, answered for by the caller; ownership is looked at before the version."""
    caller, work = actor.actor(tx, call), actor.work(tx, call, ask.work_id)
    assert caller is not None, "only members have this operation"
    if isinstance(work, Refusal):
        return work
    if work.owner_id is None:
        lifted_by = f"claim it first: firm work claim {work.id} --expected-version {work.version}"
        return Refusal(code=Code.WORK_NOT_ASSIGNED, about=f"work/{work.id}", lifted_by=lifted_by)
    if work.owner_id != caller.membership.id:
        return claim_lost(tx, work)
    return moved(f"work/{work.id}", current=work.version, expected=ask.expected_version) or work


def start(tx: Tx, call: Call, ask: StartWork) -> Work | Refusal:
    """Checked in this order: free, delivered, this very session, able, ready."""
    work, caller = _owned(tx, call, ask), actor.actor(tx, call)
    assert caller is not None, "only members have this operation"
    if isinstance(work, Refusal):
        return work
    about = f"work/{work.id}"
    standing = moved_by(work, WorkCause.START)
    if isinstance(standing, Refusal):
        return standing
    if busy := works.busy_with(tx, caller.membership.id, work.team_run_id, but=work.id):
        lifted_by = f"submit or block {busy} first"
        return Refusal(code=Code.MEMBER_BUSY, about=f"work/{busy}", lifted_by=lifted_by)
    if attempts.live(tx, work.id) is None:
        lifted_by = "ask the same again: the run's supervisor delivers it"
        return Refusal(code=Code.DELIVERY_NOT_DISPATCHED, about=about, lifted_by=lifted_by)
    binding = attempt.own(tx, call, work)
    if isinstance(binding, Refusal):
        return binding
    refusal = (
        present(caller.place)
        or _fit(tx, caller)
        or takes_claims(TEAM_RUNS.held(tx, work.team_run_id))
        or not_ready(work, works.some(tx, work.needs))
    )
    if refusal:
        return refusal
    back = _take_back(tx, call, binding)
    if isinstance(back, Refusal):
        return back
    attempt.received(tx, call, back)
    after = change(tx, call, work, WorkCause.START)
    if not isinstance(after, Refusal):
        attempt.knows(tx, call, back, after.version)
    return after


def block(tx: Tx, call: Call, ask: BlockWork) -> Work | Refusal:
    work = _attempting(tx, call, ask)
    return work if isinstance(work, Refusal) else change(tx, call, work, WorkCause.BLOCK, reason=ask.reason)


def may_resume(tx: Tx, call: Call, ask: ResumeWork) -> Refusal | None:
    """The member or its Host says that it goes on."""
    work, caller = actor.work(tx, call, ask.work_id), actor.actor(tx, call)
    if isinstance(work, Refusal):
        return work
    if work.owner_id is None or (caller is not None and work.owner_id == caller.membership.id):
        return None
    return claim_lost(tx, work) if actor.may_host(tx, call, work.team_id) else None


def resume(tx: Tx, call: Call, ask: ResumeWork) -> Work | Refusal:
    work = actor.seen(tx, call, ask)
    return work if isinstance(work, Refusal) else change(tx, call, work, WorkCause.RESUME, reason=ask.resolution)


def _attempting(tx: Tx, call: Call, ask: ByOwner) -> Work | Refusal:
    """A Work whose live attempt the calling session holds. An orphaned attempt that is still its own comes back."""
    work = _owned(tx, call, ask)
    if isinstance(work, Refusal):
        return work
    binding = attempt.own(tx, call, work)
    if isinstance(binding, Refusal):
        return binding
    back = _take_back(tx, call, binding)
    return back if isinstance(back, Refusal) else work


def _take_back(tx: Tx, call: Call, binding: Binding) -> Binding | Refusal:
    if binding.custody is not Custody.ORPHANED_UNVERIFIED:
        return binding
    return attempt.move(tx, call, binding, CustodyCause.TAKE_BACK, "")


def submit(tx: Tx, call: Call, ask: SubmitWork) -> Work | Refusal:
    work, caller = _attempting(tx, call, ask), actor.actor(tx, call)
    assert caller is not None, "only members have this operation"
    if isinstance(work, Refusal):
        return work
    missing = evidence_missing(ask.candidate_revision, report_only=ask.report_only)
    if refusal := missing or reviewed_elsewhere(ask.candidate_revision, ask.check_refs):
        return refusal
    answered = answers(work, ask.criteria)
    earlier = attempt.chain(tx, work)
    binding = attempts.live(tx, work.id)
    assert binding is not None, "_attempting found it"
    if isinstance(answered, Refusal):
        return answered
    if isinstance(earlier, Refusal):
        return earlier
    receipt = Receipt(
        id=new_receipt_id(),
        work_id=work.id,
        fence=Fence(binding.fence),
        number=len(earlier) + 1,
        outcome=ask.outcome,
        body="",
        digest="",
        previous=earlier[-1].digest if earlier else "",
        created_by=caller.membership.agent_member_id,
        created_at=call.now,
    )
    body = attempt.canonical(
        {
            "artifact_refs": ask.artifact_refs,
            "candidate_revision": ask.candidate_revision,
            "check_refs": ask.check_refs,
            "report_only": ask.report_only,
            "result_summary": ask.result_summary,
            "work_version": work.version,
            **answered,
            **attempt.claims_of(receipt),
        }
    )
    if refusal := too_long(body):
        return refusal
    receipt = attrs.evolve(receipt, body=body, digest=attempt.digest(body, receipt.previous))
    after = change(
        tx, call, work, WorkCause.SUBMIT, receipt_id=receipt.id, result_summary=ask.result_summary, reason=""
    )
    if isinstance(after, Refusal):
        return after
    attempts.keep(tx, receipt)
    attempt.move(tx, call, binding, CustodyCause.COMPLETE, "submitted")
    return after
