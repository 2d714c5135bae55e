"""Handlers for ``delegation.*``: Host to Host, across teams of this node."""

from __future__ import annotations

from client.protocol.delegation import (
    AcceptDelegation,
    DeclineDelegation,
    DelegationPage,
    DelegationState,
    ListDelegations,
    ProposeDelegation,
    WithdrawDelegation,
    WorkDelegation,
)
from client.protocol.ids import DelegationId, WorkId, new_id
from client.protocol.operation import Plane
from client.protocol.refusals import Code, Refusal
from client.protocol.work import ClaimMode, Condition, Phase, Priority, Work
from daemon.call import Call
from daemon.kernel import cursor
from daemon.kernel.delegation import DELEGATION, DelegationCause
from daemon.kernel.team import kept
from daemon.kernel.team_run import takes_claims
from daemon.kernel.version import moved
from daemon.operations import actor, find
from daemon.operations.work_plan import criteria_of, full, title_of
from store import delegation as delegations
from store import work as works
from store.delegation import DELEGATIONS
from store.team_run import TEAM_RUNS
from store.tx import Tx
from store.work import WORKS


def may_propose(tx: Tx, call: Call, ask: ProposeDelegation) -> Refusal | None:
    work = actor.work(tx, call, ask.work_id)
    return work if isinstance(work, Refusal) else actor.may_host(tx, call, work.team_id)


def propose(tx: Tx, call: Call, ask: ProposeDelegation) -> WorkDelegation | Refusal:
    work, target = actor.work(tx, call, ask.work_id), find.team(tx, ask.target_team_id)
    if isinstance(work, Refusal):
        return work
    if isinstance(target, Refusal):
        return target
    about = f"work/{work.id}"
    why = (
        "it is closed; only a Work that goes on can need another team"
        if work.phase is Phase.CLOSED
        else "it belongs to that very team; make a Work of your own"
        if target.id == work.team_id
        else ""
    )
    if why:
        return Refusal(code=Code.INVALID_STATE_TRANSITION, about=about, lifted_by=why)
    title, criteria = title_of(ask.title), criteria_of(ask.completion_criteria)
    if not title or not criteria:
        lifted_by = "say in words what they should answer for, and what you shall check"
        return Refusal(code=Code.MALFORMED, about="completion_criteria" if title else "title", lifted_by=lifted_by)
    if refusal := kept(target):
        return refusal
    made = WorkDelegation(
        id=DelegationId(new_id()),
        version=1,
        team_run_id=work.team_run_id,
        source_work_id=work.id,
        source_team_id=work.team_id,
        target_team_id=target.id,
        target_work_id=None,
        title=title,
        context=ask.context,
        criteria=criteria,
        state=DelegationState.PROPOSED,
        reason="",
        created_by=call.actor,
        created_at=call.now,
        updated_at=call.now,
    )
    return DELEGATIONS.insert(tx, made, kind="proposed", actor=call.actor, at=call.now)


def _unknown(delegation_id: DelegationId) -> Refusal:
    lifted_by = "see what your team was asked for and asks for: firm delegation list TEAM"
    return Refusal(code=Code.NOT_FOUND, about=f"delegation/{delegation_id}", lifted_by=lifted_by)


def may_decide(tx: Tx, call: Call, ask: AcceptDelegation | DeclineDelegation) -> Refusal | None:
    """The Host of the team that was asked."""
    found = DELEGATIONS.load(tx, ask.delegation_id)
    return actor.may_host(tx, call, found.target_team_id) if found else _unknown(ask.delegation_id)


def may_withdraw(tx: Tx, call: Call, ask: WithdrawDelegation) -> Refusal | None:
    """The Host of the team that asked."""
    found = DELEGATIONS.load(tx, ask.delegation_id)
    return actor.may_host(tx, call, found.source_team_id) if found else _unknown(ask.delegation_id)


def accept(tx: Tx, call: Call, ask: AcceptDelegation) -> WorkDelegation | Refusal:
    run = TEAM_RUNS.load(tx, ask.team_run_id)
    found = _decided(tx, ask.delegation_id, ask.expected_version, DelegationCause.ACCEPT)
    if isinstance(found, Refusal):
        return found
    before, state = found
    if run is None or run.team_id != before.target_team_id:
        lifted_by = f"name a run of your own team that is running: firm team-run list --team-id {before.target_team_id}"
        return Refusal(code=Code.NOT_FOUND, about=f"team-run/{ask.team_run_id}", lifted_by=lifted_by)
    if refusal := takes_claims(run):
        return refusal
    if refusal := full(tx, run.team_id):
        return refusal
    work = Work(
        id=WorkId(new_id()),
        version=1,
        team_id=run.team_id,
        team_run_id=run.id,
        owner_id=None,
        title=before.title,
        context=before.context,
        criteria=before.criteria,
        phase=Phase.OPEN,
        condition=Condition.NORMAL,
        held=None,
        resolution=None,
        claim_mode=ClaimMode.HOST_ASSIGN,
        eligible=[],
        required_role="",
        priority=Priority.NORMAL,
        needs=[],
        checks=[],
        reason="",
        result_summary="",
        receipt_id=None,
        created_by=call.actor,
        created_at=call.now,
        updated_at=call.now,
        verifier_id=None,
    )
    WORKS.insert(tx, work, kind="created", actor=call.actor, at=call.now)
    works.index(tx, work)
    return _change(tx, call, before, state, target_work_id=work.id)


def decline(tx: Tx, call: Call, ask: DeclineDelegation) -> WorkDelegation | Refusal:
    found = _decided(tx, ask.delegation_id, ask.expected_version, DelegationCause.DECLINE)
    return found if isinstance(found, Refusal) else _change(tx, call, *found, reason=ask.reason)


def withdraw(tx: Tx, call: Call, ask: WithdrawDelegation) -> WorkDelegation | Refusal:
    found = _decided(tx, ask.delegation_id, ask.expected_version, DelegationCause.WITHDRAW)
    return found if isinstance(found, Refusal) else _change(tx, call, *found, reason=ask.reason)


def _decided(
    tx: Tx, delegation_id: DelegationId, expected: int, cause: DelegationCause
) -> tuple[WorkDelegation, DelegationState] | Refusal:
    before = DELEGATIONS.load(tx, delegation_id)
    if before is None:
        return _unknown(delegation_id)
    about = f"delegation/{before.id}"
    if refusal := moved(about, current=before.version, expected=expected):
        return refusal
    state = DELEGATION.after(before.state, cause, about)
    return state if isinstance(state, Refusal) else (before, state)


def _change(tx: Tx, call: Call, before: WorkDelegation, state: DelegationState, **changes: object) -> WorkDelegation:
    return DELEGATIONS.change(tx, before, kind=state.value, actor=call.actor, at=call.now, state=state, **changes)


def list_(tx: Tx, call: Call, ask: ListDelegations) -> DelegationPage | Refusal:
    team = find.team(tx, ask.team_id)
    if isinstance(team, Refusal):
        return team
    if call.plane is not Plane.OPERATOR and not actor.sees_team(tx, call, team.id):
        return find.not_found("team", ask.team_id)
    query = ("delegation.list", team.id)
    after = cursor.read(ask.cursor, call.store_id, *query)
    if isinstance(after, Refusal):
        return after
    items, last = delegations.list_page(tx, team.id, after=after, limit=ask.limit)
    return DelegationPage(items=items, next=cursor.write(last, call.store_id, *query) if last else None)
