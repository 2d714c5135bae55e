"""Handler for ``work.verify``, and who may be named as a verifier."""

from __future__ import annotations

from client.protocol.ids import MembershipId, VerdictId, new_id
from client.protocol.membership import TeamMembership
from client.protocol.refusals import Code, Refusal
from client.protocol.team_run import TeamRun
from client.protocol.verdict import Verdict, VerifyWork
from client.protocol.work import Work
from daemon.call import Call
from daemon.kernel.team_run import no_place, present
from daemon.kernel.verdict import cannot_verify, checks_passed, verifies
from daemon.kernel.version import moved
from daemon.kernel.work import WorkCause, moved_by
from daemon.operations import actor, attempt, find
from store import attempt as attempts
from store import team_run as runs
from store import verdict as verdicts
from store.membership import MEMBERSHIPS
from store.tx import Tx
from store.verdict import VERDICTS
from store.work import WORKS


def nameable(tx: Tx, verifier_id: MembershipId, run: TeamRun, work: Work | None) -> Refusal | None:
    """Why this member cannot be the verifier of a Work of that run, or None; without ``work``, of a new one."""
    member = MEMBERSHIPS.load(tx, verifier_id)
    if member is None or member.team_id != run.team_id:
        return find.not_found("membership", verifier_id)
    owner = MEMBERSHIPS.load(tx, work.owner_id) if work is not None and work.owner_id else None
    refusal = cannot_verify(
        member,
        f"work/{work.id}" if work is not None else "verifier_id",
        owns=owner is not None and owner.agent_member_id == member.agent_member_id,
        built=verdicts.built(tx, work.id, member.agent_member_id) if work is not None else 0,
    )
    if refusal:
        return refusal
    place = runs.place(tx, run.id, member.id)
    if place is None:
        return no_place(run.id, member.id)
    return present(place)


def is_verifier(tx: Tx, work: Work, member: TeamMembership) -> Refusal | None:
    """Why this member cannot answer for a Work that it is to verify, or None."""
    named = MEMBERSHIPS.load(tx, work.verifier_id) if work.verifier_id else None
    return verifies(work) if named is not None and named.agent_member_id == member.agent_member_id else None


def _asked(tx: Tx, call: Call, ask: VerifyWork) -> Work | Refusal:
    """The Work that is meant, where the caller is its verifier; who speaks is looked at before the version."""
    work, caller = actor.work(tx, call, ask.work_id), actor.actor(tx, call)
    assert caller is not None, "only members have this operation"
    if isinstance(work, Refusal):
        return work
    about = f"work/{work.id}"
    if work.verifier_id is None:
        command = f"firm work update {work.id} --expected-version {work.version} --verifier-id MEMBERSHIP"
        lifted_by = f"it names no verifier; its Host names one: {command}"
    elif work.verifier_id != caller.membership.id:
        lifted_by = f"its verifier is {work.verifier_id}; nobody else speaks for it"
    elif work.team_run_id != caller.place.team_run_id:
        lifted_by = f"its verifier speaks from a session in the run {work.team_run_id}"
    else:
        return moved(about, current=work.version, expected=ask.expected_version) or work
    return Refusal(code=Code.NOT_AUTHORIZED, about=about, lifted_by=lifted_by)


def verify(tx: Tx, call: Call, ask: VerifyWork) -> Work | Refusal:
    """Fenced by version and receipt. The Work moves on with it, so that an acceptance is of a version that has it."""
    work = _asked(tx, call, ask)
    if isinstance(work, Refusal):
        return work
    about = f"work/{work.id}"
    standing, chain = moved_by(work, WorkCause.VERIFY), attempt.chain(tx, work)
    if isinstance(standing, Refusal):
        return standing
    if isinstance(chain, Refusal):
        return chain
    if work.receipt_id != ask.receipt_id:
        lifted_by = f"the submission in review is {work.receipt_id}; look at that one"
        return Refusal(code=Code.FENCE_STALE, about=f"receipt/{ask.receipt_id}", lifted_by=lifted_by)
    snapshot = checks_passed(work, attempts.results(tx, ask.receipt_id))
    if isinstance(snapshot, Refusal):
        return snapshot
    if ask.revision != (submitted := attempts.revision(tx, ask.receipt_id)):
        lifted_by = f"this is about {ask.revision or 'no commit'}; the submission names {submitted or 'none'}"
        return Refusal(code=Code.INVALID_STATE_TRANSITION, about=about, lifted_by=lifted_by)
    if former := verdicts.of(tx, work):
        lifted_by = (
            f"its verifier said {former.outcome.value} of this submission already; the next one is another matter"
        )
        return Refusal(code=Code.INVALID_STATE_TRANSITION, about=about, lifted_by=lifted_by)
    assert work.verifier_id is not None, "_asked compared it"
    verdict = Verdict(
        id=VerdictId(new_id()),
        version=1,
        team_run_id=work.team_run_id,
        work_id=work.id,
        receipt_id=ask.receipt_id,
        membership_id=work.verifier_id,
        outcome=ask.outcome,
        revision=ask.revision,
        snapshot=snapshot,
        reason=ask.reason,
        evidence=ask.evidence_refs,
        created_at=call.now,
    )
    VERDICTS.insert(tx, verdict, kind=ask.outcome.value, actor=call.actor, at=call.now)
    kind = f"{WorkCause.VERIFY.value}: {ask.outcome.value}"
    return WORKS.change(tx, work, kind=kind, actor=call.actor, at=call.now)
