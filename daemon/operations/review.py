"""Handlers for ``work.*`` that decide: accept, request changes, hold, cancel, fail. Nobody accepts their own."""

from __future__ import annotations

from client.protocol.ids import MembershipId
from client.protocol.membership import MembershipRole, MembershipState, TeamMembership
from client.protocol.refusals import Code, Refusal
from client.protocol.work import Work
from client.protocol.work_asks import (
    AcceptWork,
    CancelWork,
    FailWork,
    HoldWork,
    RequestChanges,
    UnholdWork,
)
from daemon.call import Call
from daemon.kernel.team_run import present
from daemon.kernel.verdict import gate
from daemon.kernel.work import WorkCause
from daemon.operations import actor, attempt
from daemon.operations.work import ByAcceptor, ByHost, change
from store import attempt as attempts
from store import membership as memberships
from store import team_run as runs
from store import verdict as verdicts
from store.membership import MEMBERSHIPS
from store.tx import Tx


def may_host(tx: Tx, call: Call, ask: ByHost) -> Refusal | None:
    work = actor.work(tx, call, ask.work_id)
    return work if isinstance(work, Refusal) else actor.may_host(tx, call, work.team_id)


def may_accept(tx: Tx, call: Call, ask: ByAcceptor) -> Refusal | None:
    """The Host accepts a member's Work; a peer of the same run accepts the Host's. Nobody accepts their own."""
    work, caller = actor.work(tx, call, ask.work_id), actor.actor(tx, call)
    if isinstance(work, Refusal):
        return work
    host = memberships.host(tx, work.team_id)
    owner = MEMBERSHIPS.load(tx, work.owner_id) if work.owner_id else None
    if host is None or owner is None or owner.agent_member_id != host.agent_member_id:
        return actor.may_host(tx, call, work.team_id) or _in_run(tx, work, caller, host)
    peers = _peers(tx, work, host.id)
    if not peers:
        lifted_by = "add a member to the run, who then can; or cancel the Work"
        return Refusal(code=Code.NO_ACCEPTOR, about=f"work/{work.id}", lifted_by=lifted_by)
    if caller is not None and caller.membership.id in peers and caller.place.team_run_id == work.team_run_id:
        return None
    lifted_by = "the Host does not accept its own; any other active member of the run does"
    return Refusal(code=Code.NOT_AUTHORIZED, about=f"work/{work.id}", lifted_by=lifted_by)


def _in_run(tx: Tx, work: Work, caller: actor.Actor | None, host: TeamMembership | None) -> Refusal | None:
    """Why the Host does not accept through a place of its own in this very run, or None."""
    assert host is not None, "may_host refuses a team without one"
    about, place = f"work/{work.id}", runs.place(tx, work.team_run_id, host.id)
    if place is None:
        command = f"firm member-run add --team-run-id {work.team_run_id} --membership-id {host.id}"
        return Refusal(code=Code.NO_ACCEPTOR, about=about, lifted_by=f"give its Host a place in the run: {command}")
    if refusal := present(place):
        return Refusal(code=Code.NO_ACCEPTOR, about=about, lifted_by=refusal.lifted_by)
    if caller is not None and caller.place.team_run_id != work.team_run_id:
        lifted_by = f"its Host accepts it from a session in the run {work.team_run_id}"
        return Refusal(code=Code.NOT_AUTHORIZED, about=about, lifted_by=lifted_by)
    return None


def _peers(tx: Tx, work: Work, host: MembershipId) -> set[MembershipId]:
    found: set[MembershipId] = set()
    for place in runs.places(tx, work.team_run_id):
        membership = MEMBERSHIPS.load(tx, place.membership_id)
        active = membership is not None and membership.state is MembershipState.ACTIVE and present(place) is None
        if active and membership is not None and membership.role is MembershipRole.MEMBER and membership.id != host:
            found.add(membership.id)
    return found


def request_changes(tx: Tx, call: Call, ask: RequestChanges) -> Work | Refusal:
    work = actor.seen(tx, call, ask)
    return work if isinstance(work, Refusal) else change(tx, call, work, WorkCause.REQUEST_CHANGES, reason=ask.reason)


def accept(tx: Tx, call: Call, ask: AcceptWork) -> Work | Refusal:
    work = actor.seen(tx, call, ask)
    if isinstance(work, Refusal):
        return work
    chain = attempt.chain(tx, work)
    if isinstance(chain, Refusal):
        return chain
    if work.receipt_id is not None and work.receipt_id != ask.receipt_id:
        lifted_by = f"the submission in review is {work.receipt_id}; review that one"
        return Refusal(code=Code.FENCE_STALE, about=f"receipt/{ask.receipt_id}", lifted_by=lifted_by)
    after = change(tx, call, work, WorkCause.ACCEPT, reason="")
    if isinstance(after, Refusal):
        return after
    return gate(work, attempts.results(tx, ask.receipt_id), verdicts.of(tx, work)) or after


def hold(tx: Tx, call: Call, ask: HoldWork) -> Work | Refusal:
    work = actor.seen(tx, call, ask)
    return work if isinstance(work, Refusal) else change(tx, call, work, WorkCause.HOLD, reason=ask.reason)


def unhold(tx: Tx, call: Call, ask: UnholdWork) -> Work | Refusal:
    work = actor.seen(tx, call, ask)
    return work if isinstance(work, Refusal) else change(tx, call, work, WorkCause.UNHOLD)


def cancel(tx: Tx, call: Call, ask: CancelWork) -> Work | Refusal:
    return _close(tx, call, ask, WorkCause.CANCEL)


def fail(tx: Tx, call: Call, ask: FailWork) -> Work | Refusal:
    return _close(tx, call, ask, WorkCause.FAIL)


def _close(tx: Tx, call: Call, ask: CancelWork | FailWork, cause: WorkCause) -> Work | Refusal:
    work = actor.seen(tx, call, ask)
    if isinstance(work, Refusal):
        return work
    after = change(tx, call, work, cause, reason=ask.reason)
    if not isinstance(after, Refusal):
        attempt.release(tx, call, work.id, ask.reason)
    return after
