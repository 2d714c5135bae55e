"""Handlers for ``work.*`` that plan and look: create, change what is written, prerequisites, list, show, graph."""

from __future__ import annotations

from typing import Any

from client.protocol.checks import named
from client.protocol.ids import MembershipId, TeamId, TeamRunId, WorkId, new_id
from client.protocol.operation import Plane
from client.protocol.refusals import Code, Refusal
from client.protocol.work import Condition, Phase, Work, WorkPage
from client.protocol.work_asks import (
    CreateWork,
    DrawWorks,
    GraphNode,
    ListWorks,
    ReplaceDependencies,
    RetargetWork,
    ShowWork,
    UpdateWork,
    WorkGraph,
    WorkShown,
)
from daemon.call import Call
from daemon.kernel import cursor
from daemon.kernel.attempt import bad_checks
from daemon.kernel.readiness import cannot_need, in_order, readiness
from daemon.kernel.team_run import present, takes_works
from daemon.kernel.work import WorkCause, moved_by
from daemon.operations import actor, attempt, check, find, verdict
from store import attempt as attempts
from store import team_run as runs
from store import verdict as verdicts
from store import work as works
from store.agent import AGENTS
from store.membership import MEMBERSHIPS
from store.team_run import TEAM_RUNS
from store.tx import Tx
from store.work import WORKS

#: Works of one team that are not closed.
MOST_OPEN = 10_000


def may_create(tx: Tx, call: Call, ask: CreateWork) -> Refusal | None:
    """A member makes Works for itself or for nobody in particular."""
    run = actor.run(tx, call, ask.team_run_id)
    if isinstance(run, Refusal):
        return run
    if call.plane is Plane.MEMBER and ask.verifier_id is not None:
        lifted_by = "name no verifier; its Host names one, by an update, once it is there"
        return Refusal(code=Code.NOT_ELIGIBLE, about="verifier_id", lifted_by=lifted_by)
    mine = call.plane is not Plane.MEMBER or not ask.eligible_member_ids
    if mine or call.agent_member_id in ask.eligible_member_ids:
        return None
    lifted_by = "name yourself among the eligible, or nobody; a Host decides for others"
    return Refusal(code=Code.NOT_ELIGIBLE, about="eligible_member_ids", lifted_by=lifted_by)


def create(tx: Tx, call: Call, ask: CreateWork) -> Work | Refusal:
    run = actor.run(tx, call, ask.team_run_id)
    if isinstance(run, Refusal):
        return run
    if refusal := takes_works(run):
        return refusal
    title, criteria = title_of(ask.title), criteria_of(ask.completion_criteria)
    if refusal := _blank(title, criteria) or bad_checks(ask.checks):
        return refusal
    if not ask.duplicate_ok and (other := works.namesake(tx, run.id, title)):
        return _duplicate(other, "use it, give another title, or say --duplicate-ok")
    if refusal := full(tx, run.team_id):
        return refusal
    needs = sorted(set(ask.prerequisite_work_ids))
    work_id = WorkId(new_id())
    if refusal := cannot_need(work_id, run.team_id, needs, lambda key: WORKS.load(tx, key)):
        return refusal
    if ask.verifier_id and (refusal := verdict.nameable(tx, ask.verifier_id, run, None)):
        return refusal
    made = Work(
        id=work_id,
        version=1,
        team_id=run.team_id,
        team_run_id=run.id,
        owner_id=None,
        title=title,
        context=ask.context,
        criteria=criteria,
        phase=Phase.OPEN,
        condition=Condition.NORMAL,
        held=None,
        resolution=None,
        claim_mode=ask.claim_mode,
        eligible=sorted(set(ask.eligible_member_ids)),
        required_role=ask.required_role,
        priority=ask.priority,
        needs=needs,
        checks=ask.checks,
        reason="",
        result_summary="",
        receipt_id=None,
        created_by=call.actor,
        created_at=call.now,
        updated_at=call.now,
        verifier_id=ask.verifier_id,
    )
    WORKS.insert(tx, made, kind="created", actor=call.actor, at=call.now)
    works.index(tx, made)
    return made


def full(tx: Tx, team_id: TeamId) -> Refusal | None:
    """Why this team takes no further Work, or None."""
    if works.open_of_team(tx, team_id) < MOST_OPEN:
        return None
    lifted_by = f"close some first: a team has at most {MOST_OPEN} Works that are not closed"
    return Refusal(code=Code.LIMIT_EXCEEDED, about=f"team/{team_id}", lifted_by=lifted_by)


def criteria_of(text: str) -> list[str]:
    """One a line, without the lines that say nothing."""
    return [line.strip() for line in text.splitlines() if line.strip()]


def title_of(text: str) -> str:
    """With one space between its words."""
    return " ".join(text.split())


def _blank(title: str, criteria: list[str]) -> Refusal | None:
    """Why a Work cannot be told by these, or None."""
    if title and criteria:
        return None
    field = "completion_criteria" if title else "title"
    return Refusal(code=Code.MALFORMED, about=field, lifted_by="say it in words; nothing but space says nothing")


def _duplicate(other: str, lifted_by: str) -> Refusal:
    return Refusal(code=Code.DUPLICATE_TITLE, about=f"work/{other}", lifted_by=lifted_by)


def may_plan(tx: Tx, call: Call, ask: UpdateWork | ReplaceDependencies) -> Refusal | None:
    work = actor.work(tx, call, ask.work_id)
    return work if isinstance(work, Refusal) else actor.may_host(tx, call, work.team_id)


def may_retarget(tx: Tx, call: Call, ask: RetargetWork) -> Refusal | None:
    work = actor.work(tx, call, ask.work_id)
    return work if isinstance(work, Refusal) else actor.may_host_or_operate(tx, call, work.team_id)


def _seen(tx: Tx, call: Call, ask: UpdateWork | ReplaceDependencies | RetargetWork, cause: WorkCause) -> Work | Refusal:
    work = actor.seen(tx, call, ask)
    if isinstance(work, Refusal):
        return work
    standing = moved_by(work, cause)
    return standing if isinstance(standing, Refusal) else work


def update(tx: Tx, call: Call, ask: UpdateWork) -> Work | Refusal:
    work = _seen(tx, call, ask, WorkCause.UPDATE)
    if isinstance(work, Refusal):
        return work
    changes: dict[str, Any] = {}
    if ask.title is not None:
        changes["title"] = title = title_of(ask.title)
        if other := works.namesake(tx, work.team_run_id, title, but=work.id):
            return _duplicate(other, "use it, or give another title")
    if ask.context is not None:
        changes["context"] = ask.context
    if ask.completion_criteria is not None:
        changes["criteria"] = criteria_of(ask.completion_criteria)
    if ask.priority is not None:
        changes["priority"] = ask.priority
    if ask.remove_check is not None and ask.remove_check not in map(named, work.checks):
        return check.no_check(work, ask.remove_check)
    kept = [line for line in work.checks if named(line) != ask.remove_check]
    changes["checks"] = checks = [*kept, *ask.add_checks]
    said = changes.get("title", work.title), changes.get("criteria", work.criteria)
    if refusal := _blank(*said) or bad_checks(checks) or _verifier(tx, work, ask, changes) or _claims(ask, changes):
        return refusal
    if ask.remove_check is not None and work.receipt_id is not None:
        attempts.forget(tx, work.receipt_id, ask.remove_check)
    after = WORKS.change(tx, work, kind=WorkCause.UPDATE.value, actor=call.actor, at=call.now, **changes)
    works.index(tx, after)
    return after


def _verifier(tx: Tx, work: Work, ask: UpdateWork, changes: dict[str, Any]) -> Refusal | None:
    if ask.verifier_id is not None and ask.remove_verifier:
        return Refusal(code=Code.MALFORMED, about="verifier_id", lifted_by="name another, or take it away; not both")
    if ask.remove_verifier:
        changes["verifier_id"] = None
    if ask.verifier_id is None:
        return None
    run = TEAM_RUNS.held(tx, work.team_run_id)
    changes["verifier_id"] = ask.verifier_id
    return verdict.nameable(tx, ask.verifier_id, run, work)


def _claims(ask: UpdateWork, changes: dict[str, Any]) -> Refusal | None:
    if ask.eligible_member_ids and ask.remove_eligible:
        lifted_by = "name who may claim it, or nobody any more; not both"
        return Refusal(code=Code.MALFORMED, about="eligible_member_ids", lifted_by=lifted_by)
    if ask.claim_mode is not None:
        changes["claim_mode"] = ask.claim_mode
    if ask.eligible_member_ids or ask.remove_eligible:
        changes["eligible"] = sorted(set(ask.eligible_member_ids))
    return None


def replace_dependencies(tx: Tx, call: Call, ask: ReplaceDependencies) -> Work | Refusal:
    work = _seen(tx, call, ask, WorkCause.NEEDS)
    if isinstance(work, Refusal):
        return work
    needs = sorted(set(ask.prerequisite_work_ids))
    if refusal := cannot_need(work.id, work.team_id, needs, lambda key: WORKS.load(tx, key)):
        return refusal
    after = WORKS.change(tx, work, kind=WorkCause.NEEDS.value, actor=call.actor, at=call.now, needs=needs)
    works.index(tx, after)
    return after


def retarget(tx: Tx, call: Call, ask: RetargetWork) -> Work | Refusal:
    work = _seen(tx, call, ask, WorkCause.RETARGET)
    if isinstance(work, Refusal):
        return work
    successor = TEAM_RUNS.load(tx, ask.successor_team_run_id)
    if successor is None or successor.team_id != work.team_id:
        return find.not_found("team-run", ask.successor_team_run_id)
    if refusal := takes_works(successor):
        return refusal
    if refusal := attempt.dispatched(tx, work):
        return refusal
    attempt.release(tx, call, work.id, "retargeted")
    after = WORKS.change(
        tx, work, kind=WorkCause.RETARGET.value, actor=call.actor, at=call.now, team_run_id=successor.id
    )
    works.index(tx, after)
    return after


def list_(tx: Tx, call: Call, ask: ListWorks) -> WorkPage | Refusal:
    run = actor.run(tx, call, ask.team_run_id)
    if isinstance(run, Refusal):
        return run
    query = ("work.list", run.id, ask.phase, ask.condition, ask.owner_id, ask.claimable_by)
    after = cursor.read(ask.cursor, call.store_id, *query)
    if isinstance(after, Refusal):
        return after
    items, last = _page(tx, run.id, ask, after)
    return WorkPage(items=items, next=cursor.write(last, call.store_id, *query) if last else None)


def _page(tx: Tx, run_id: TeamRunId, ask: ListWorks, after: int) -> tuple[list[Work], int | None]:
    if ask.claimable_by is None:
        return works.list_page(
            tx,
            run_id,
            phase=ask.phase,
            condition=ask.condition,
            owner_id=ask.owner_id,
            after=after,
            limit=ask.limit,
        )
    place = runs.place(tx, run_id, ask.claimable_by)
    others = ask.owner_id or ask.phase not in {None, Phase.OPEN} or ask.condition not in {None, Condition.NORMAL}
    if place is None or present(place) is not None or others:
        return [], None  # nobody who answers for a Work may claim it, and none that is begun can be claimed
    return works.claimable(tx, place, after=after, limit=ask.limit)


def show(tx: Tx, call: Call, ask: ShowWork) -> WorkShown | Refusal:
    work = actor.work(tx, call, ask.work_id)
    if isinstance(work, Refusal):
        return work
    ready, waits_for = readiness(work, works.some(tx, work.needs))
    return WorkShown(
        work=work,
        readiness=ready,
        waits_for=waits_for,
        successors=works.successors(tx, work.id),
        owner=_name(tx, work.owner_id),
        bindings=attempts.of_work(tx, work.id),
        deliveries=attempts.deliveries(tx, work.id),
        receipts=attempts.receipts(tx, work.id),
        checks=list(attempts.results(tx, work.receipt_id).values()) if work.receipt_id else [],
        verifier=_name(tx, work.verifier_id),
        verdict=verdicts.of(tx, work),
    )


def _name(tx: Tx, member: MembershipId | None) -> str:
    membership = MEMBERSHIPS.load(tx, member) if member else None
    agent = AGENTS.load(tx, membership.agent_member_id) if membership else None
    return agent.name if agent else ""


def graph(tx: Tx, call: Call, ask: DrawWorks) -> WorkGraph | Refusal:
    run = actor.run(tx, call, ask.team_run_id)
    if isinstance(run, Refusal):
        return run
    found = works.of_run(tx, TeamRunId(run.id))
    return WorkGraph(nodes=[_node(tx, work) for work in in_order(found)])


def _node(tx: Tx, work: Work) -> GraphNode:
    return GraphNode(
        id=work.id,
        title=work.title,
        phase=work.phase,
        condition=work.condition,
        resolution=work.resolution.value if work.resolution else "",
        owner=_name(tx, work.owner_id),
        needs=work.needs,
    )
