"""``delegation.*``, one test an outcome of the table: Host to Host, never a hierarchy."""

from __future__ import annotations

import attrs

from client.protocol.board import AttentionKind
from client.protocol.delegation import (
    DelegationState,
    WorkDelegation,
)
from client.protocol.ids import AgentMemberRef, DelegationId, Folder, TeamRef, WorkId
from client.protocol.refusals import Code, Refusal
from client.protocol.team import CreateTeam
from client.protocol.team_run import CreateTeamRun, DrainTeamRun, ShowTeamRun, StartTeamRun
from client.protocol.work import ClaimMode, Condition, Phase, Priority
from client.protocol.work_asks import (
    CancelWork,
    ListWorks,
    ShowWork,
)
from tests.support import mail, refusals, scene
from tests.support.delegations import accept, decline, propose, told, two, withdraw
from tests.support.mail import ok, refused
from tests.support.node import InProcessNode
from tests.support.run import Stage


def unknown(delegation_id: str) -> Refusal:
    lifted_by = "see what your team was asked for and asks for: firm delegation list TEAM"
    return Refusal(code=Code.NOT_FOUND, about=f"delegation/{delegation_id}", lifted_by=lifted_by)


def nothing(asked: WorkDelegation) -> WorkDelegation:
    return attrs.evolve(asked, id=DelegationId("nothing"))


def not_host(s: Stage) -> tuple[Code, str]:
    return Code.NOT_AUTHORIZED, f"team/{s.team.id}"


async def test_delegation_propose_ok(node: InProcessNode) -> None:
    """A record and its event; no Work of anybody moves, and the other Host has something to look at."""
    t = await two(node)
    before = node.rows()
    made = await ok(t.our, t.our.ann, propose(t.work, t.their.team.id, title=" a   parser "))
    assert made == WorkDelegation(
        id=made.id,
        version=1,
        team_run_id=t.our.run.id,
        source_work_id=t.work.id,
        source_team_id=t.our.team.id,
        target_team_id=t.their.team.id,
        target_work_id=None,
        title="a parser",
        context="why",
        criteria=["it reads", "it writes"],
        state=DelegationState.PROPOSED,
        reason="",
        created_by=f"agent/{t.our.ann.agent.id}",
        created_at=made.created_at,
        updated_at=made.created_at,
    )
    after = node.rows()
    assert {table for table in after if after[table] != before[table]} == {"delegations", "events"}
    (item,) = await told(t.their)
    assert (item.kind, item.about) == (AttentionKind.DELEGATION, f"delegation/{made.id}")
    mail.typed(item.lifted_by)
    assert await t.told() == []


async def test_only_the_host_of_the_team_that_asks_proposes(node: InProcessNode) -> None:
    t = await two(node)
    ask = propose(t.work, t.their.team.id)
    assert (await refused(t.our, t.our.bob, ask)).code is Code.NOT_AUTHORIZED
    refusal = await node.refused(ask)
    assert (refusal.code, refusal.about) == not_host(t.our)
    assert await refused(t.their, t.their.ann, ask) == refusals.not_found("work", t.work.id)


async def test_a_person_who_is_the_host_proposes(node: InProcessNode) -> None:
    t = await two(node)
    await mail.with_person(t.our)
    assert (await node.ok(propose(t.work, t.their.team.id))).created_by == "operator"


async def test_a_proposal_says_in_words_what_is_wanted(node: InProcessNode) -> None:
    t = await two(node)
    for field in ("title", "completion_criteria"):
        refusal = await refused(t.our, t.our.ann, propose(t.work, t.their.team.id, **{field: "   "}))
        assert (refusal.code, refusal.about) == (Code.MALFORMED, field)


async def test_delegation_propose_invalid_state_transition(node: InProcessNode) -> None:
    """To oneself, for what is closed, or to a team in the trash."""
    t = await two(node)
    refusal = await refused(t.our, t.our.ann, propose(t.work, t.our.team.id))
    assert refusal == Refusal(
        code=Code.INVALID_STATE_TRANSITION,
        about=f"work/{t.work.id}",
        lifted_by="it belongs to that very team; make a Work of your own",
    )
    eve = await scene.agent(node, "eve")
    other = await node.ok(
        CreateTeam(name="other", host_agent_id=AgentMemberRef(eve.id), project=Folder(str(node.home)))
    )
    await scene.trashed(node, other)
    refusal = await refused(t.our, t.our.ann, propose(t.work, other.id))
    assert refusal == refusals.in_the_trash(other.id, 3)
    await ok(t.our, t.our.ann, CancelWork(work_id=t.work.id, expected_version=t.work.version, reason="not needed"))
    refusal = await refused(t.our, t.our.ann, propose(t.work, t.their.team.id))
    assert (refusal.code, refusal.about) == (Code.INVALID_STATE_TRANSITION, f"work/{t.work.id}")


async def test_delegation_propose_name_ambiguous(node: InProcessNode) -> None:
    t = await two(node)
    refusal = await refused(t.our, t.our.ann, propose(t.work, "crew"))
    assert refusal == refusals.ambiguous("team", "crew", t.our.team.id, t.their.team.id)


async def test_delegation_propose_not_found(node: InProcessNode) -> None:
    t = await two(node)
    refusal = await refused(t.our, t.our.ann, propose(t.work, "nothing"))
    assert refusal == refusals.not_found("team", "nothing")
    refusal = await refused(t.our, t.our.ann, propose(attrs.evolve(t.work, id=WorkId("nothing")), t.their.team.id))
    assert refusal == refusals.not_found("work", "nothing")


async def test_delegation_propose_row_quarantined(node: InProcessNode) -> None:
    t = await two(node)
    ask = propose(t.work, t.their.team.id)
    await mail.refused_while_spoilt(t.our, t.our.ann, ask, "works", t.work.id)


async def test_delegation_accept_ok(node: InProcessNode) -> None:
    """Their Host makes a Work of its own team from it; ours stays as it was."""
    t = await two(node)
    asked = await t.proposed()
    done = await ok(t.their, t.their.ann, accept(asked, t.their))
    assert done == attrs.evolve(
        asked,
        version=2,
        state=DelegationState.ACCEPTED,
        target_work_id=done.target_work_id,
        updated_at=done.updated_at,
    )
    (work,) = (await node.ok(ListWorks(team_run_id=t.their.run.id))).items
    assert work.id == done.target_work_id
    assert (work.team_id, work.team_run_id, work.owner_id) == (t.their.team.id, t.their.run.id, None)
    assert (work.title, work.context, work.criteria) == ("a parser", "why", ["it reads", "it writes"])
    assert (work.phase, work.condition, work.version, work.needs) == (Phase.OPEN, Condition.NORMAL, 1, [])
    assert (work.claim_mode, work.priority) == (ClaimMode.HOST_ASSIGN, Priority.NORMAL)
    assert work.created_by == f"agent/{t.their.ann.agent.id}"
    assert (await node.ok(ShowWork(work_id=t.work.id))).work == t.work
    assert await told(t.their) == []


async def test_only_the_host_of_the_team_that_was_asked_decides(node: InProcessNode) -> None:
    t = await two(node)
    asked = await t.proposed()
    for ask in (accept(asked, t.their), decline(asked)):
        refusal = await refused(t.our, t.our.ann, ask)
        assert (refusal.code, refusal.about) == not_host(t.their)
        assert (await node.refused(ask)).code is Code.NOT_AUTHORIZED
        assert (await refused(t.their, t.their.bob, ask)).code is Code.NOT_AUTHORIZED
    refusal = await refused(t.their, t.their.ann, withdraw(asked))
    assert (refusal.code, refusal.about) == not_host(t.our)
    assert (await refused(t.our, t.our.bob, withdraw(asked))).code is Code.NOT_AUTHORIZED


async def test_delegation_accept_invalid_state_transition(node: InProcessNode) -> None:
    t = await two(node)
    done = await ok(t.our, t.our.ann, withdraw(await t.proposed()))
    refusal = await refused(t.their, t.their.ann, accept(done, t.their))
    assert refusal == refusals.no_move(f"delegation/{done.id}", "withdrawn", "proposed")


async def test_delegation_accept_not_found(node: InProcessNode) -> None:
    """No such proposal; no such run, or one of another team."""
    t = await two(node)
    asked = await t.proposed()
    assert await refused(t.their, t.their.ann, accept(nothing(asked), t.their)) == unknown("nothing")
    for run in ("nothing", t.our.run.id):
        refusal = await refused(t.their, t.their.ann, accept(asked, t.their, run))
        assert (refusal.code, refusal.about) == (Code.NOT_FOUND, f"team-run/{run}")
        assert f"firm team-run list --team-id {t.their.team.id}" in refusal.lifted_by


async def test_delegation_accept_row_quarantined(node: InProcessNode) -> None:
    t = await two(node)
    asked = await t.proposed()
    await mail.refused_while_spoilt(t.their, t.their.ann, accept(asked, t.their), "delegations", asked.id)


async def test_delegation_accept_team_run_not_open(node: InProcessNode) -> None:
    t = await two(node)
    asked = await t.proposed()
    version = (await node.ok(ShowTeamRun(team_run_id=t.their.run.id))).run.version
    await node.ok(DrainTeamRun(team_run_id=t.their.run.id, expected_version=version))
    refusal = await refused(t.their, t.their.ann, accept(asked, t.their))
    assert (refusal.code, refusal.about) == (Code.TEAM_RUN_NOT_OPEN, f"team-run/{t.their.run.id}")
    planned = await node.ok(CreateTeamRun(team_id=TeamRef(t.their.team.id)))
    refusal = await refused(t.their, t.their.ann, accept(asked, t.their, planned.id))
    assert refusal.lifted_by == f"it is planned, not running: firm team-run start {planned.id} --expected-version 1"
    await node.ok(StartTeamRun(team_run_id=planned.id, expected_version=1))
    await ok(t.their, t.their.ann, accept(asked, t.their, planned.id))


async def test_a_team_with_too_many_open_works_accepts_none(node: InProcessNode) -> None:
    t = await two(node)
    asked = await t.proposed()
    model = await t.their.work("model")
    names = ", ".join(name for name in attrs.asdict(model) if name not in {"id", "title"})
    node.execute(
        f"INSERT INTO works (id, title, {names}) WITH RECURSIVE i(v) AS "  # noqa: S608
        f"(SELECT 2 UNION ALL SELECT v + 1 FROM i WHERE v < 10000) SELECT 'w' || v, 'w' || v, {names} FROM i, works "
        "WHERE works.id = ?",
        model.id,
    )
    refusal = await refused(t.their, t.their.ann, accept(asked, t.their))
    assert (refusal.code, refusal.about) == (Code.LIMIT_EXCEEDED, f"team/{t.their.team.id}")


async def test_delegation_accept_version_conflict(node: InProcessNode) -> None:
    t = await two(node)
    asked = await t.proposed()
    stale = attrs.evolve(asked, version=2)
    assert await refused(t.their, t.their.ann, accept(stale, t.their)) == refusals.conflict(f"delegation/{asked.id}", 1)


async def test_delegation_decline_ok(node: InProcessNode) -> None:
    """With a reason, that the Host who asked gets to know."""
    t = await two(node)
    asked = await t.proposed()
    done = await ok(t.their, t.their.ann, decline(asked))
    expected = attrs.evolve(asked, version=2, state=DelegationState.DECLINED, reason="no time")
    assert done == attrs.evolve(expected, updated_at=done.updated_at)
    (item,) = await t.told()
    assert (item.kind, item.about) == (AttentionKind.DELEGATION, f"work/{t.work.id}")
    assert item.what == "'a parser' was declined: no time"
    mail.typed(item.lifted_by)
    assert await told(t.their) == []


async def test_delegation_decline_invalid_state_transition(node: InProcessNode) -> None:
    t = await two(node)
    done, _ = await t.accepted()
    refusal = await refused(t.their, t.their.ann, decline(done))
    assert refusal == refusals.no_move(f"delegation/{done.id}", "accepted", "proposed")


async def test_delegation_decline_not_found(node: InProcessNode) -> None:
    t = await two(node)
    assert await refused(t.their, t.their.ann, decline(nothing(await t.proposed()))) == unknown("nothing")


async def test_delegation_decline_row_quarantined(node: InProcessNode) -> None:
    t = await two(node)
    asked = await t.proposed()
    await mail.refused_while_spoilt(t.their, t.their.ann, decline(asked), "delegations", asked.id)


async def test_delegation_decline_version_conflict(node: InProcessNode) -> None:
    t = await two(node)
    asked = await t.proposed()
    refusal = await refused(t.their, t.their.ann, decline(attrs.evolve(asked, version=3)))
    assert refusal == refusals.conflict(f"delegation/{asked.id}", 1)


async def test_delegation_withdraw_ok(node: InProcessNode) -> None:
    t = await two(node)
    asked = await t.proposed()
    done = await ok(t.our, t.our.ann, withdraw(asked))
    assert done == attrs.evolve(asked, version=2, state=DelegationState.WITHDRAWN, updated_at=done.updated_at)
    assert await told(t.their) == []
    assert await t.told() == []


async def test_delegation_withdraw_invalid_state_transition(node: InProcessNode) -> None:
    t = await two(node)
    done, _ = await t.accepted()
    refusal = await refused(t.our, t.our.ann, withdraw(done))
    assert refusal == refusals.no_move(f"delegation/{done.id}", "accepted", "proposed")


async def test_delegation_withdraw_not_found(node: InProcessNode) -> None:
    t = await two(node)
    assert await refused(t.our, t.our.ann, withdraw(nothing(await t.proposed()))) == unknown("nothing")


async def test_delegation_withdraw_row_quarantined(node: InProcessNode) -> None:
    t = await two(node)
    asked = await t.proposed()
    await mail.refused_while_spoilt(t.our, t.our.ann, withdraw(asked), "delegations", asked.id)


async def test_delegation_withdraw_version_conflict(node: InProcessNode) -> None:
    t = await two(node)
    asked = await t.proposed()
    refusal = await refused(t.our, t.our.ann, withdraw(attrs.evolve(asked, version=3)))
    assert refusal == refusals.conflict(f"delegation/{asked.id}", 1)
