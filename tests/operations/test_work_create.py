"""``work.create`` and ``work.update``: what a Work says, one test an outcome and the limits."""

from __future__ import annotations

import attrs
import pytest

from client.protocol.ids import TeamRunId
from client.protocol.operation import Plane
from client.protocol.refusals import Code, Refusal
from client.protocol.team_run import DrainTeamRun
from client.protocol.work import ClaimMode, Condition, Phase, Priority, Work
from client.protocol.work_asks import ClaimWork, CreateWork, UpdateWork
from daemon.operations.work_plan import MOST_OPEN
from tests.support import refusals, works
from tests.support.node import InProcessNode
from tests.support.refusals import refused_while_spoilt
from tests.support.run import Stage, stage


def create(s: Stage, title: str = "build it", **more: object) -> CreateWork:
    fields: dict[str, object] = {"completion_criteria": "it works", **more}
    return CreateWork(team_run_id=s.run.id, title=title, **fields)  # type: ignore[arg-type]


def update(work: Work, **changes: object) -> UpdateWork:
    return UpdateWork(work_id=work.id, expected_version=work.version, **changes)  # type: ignore[arg-type]


async def test_work_create_ok(node: InProcessNode) -> None:
    """Open, unassigned, at version 1; space in the title and empty criteria are nothing."""
    s = await stage(node)
    need = await s.work("first")
    ask = create(
        s,
        "  build   it ",
        completion_criteria="it works\n\n  it is fast  \n",
        context="because",
        claim_mode=ClaimMode.HOST_ASSIGN,
        eligible_member_ids=[s.bob.agent.id],
        required_role="builder",
        prerequisite_work_ids=[need.id, need.id],
        priority=Priority.URGENT,
        checks=["unit=make unit", "lint=make lint"],
    )
    made = await works.ann(s).ok(ask)
    assert made == Work(
        id=made.id,
        version=1,
        team_id=s.team.id,
        team_run_id=s.run.id,
        owner_id=None,
        title="build it",
        context="because",
        criteria=["it works", "it is fast"],
        phase=Phase.OPEN,
        condition=Condition.NORMAL,
        held=None,
        resolution=None,
        claim_mode=ClaimMode.HOST_ASSIGN,
        eligible=[s.bob.agent.id],
        required_role="builder",
        priority=Priority.URGENT,
        needs=[need.id],
        checks=["unit=make unit", "lint=make lint"],
        reason="",
        result_summary="",
        receipt_id=None,
        created_by=f"agent/{s.ann.agent.id}",
        created_at=made.created_at,
        updated_at=made.created_at,
        verifier_id=None,
    )
    assert (await s.shown(made)).work == made


async def test_a_member_makes_works_in_its_own_run_for_nobody_or_itself(node: InProcessNode) -> None:
    s = await stage(node)
    bob = works.bob(s)
    anybody = await bob.ok(CreateWork(title="found a bug", completion_criteria="fixed"))
    assert (anybody.team_run_id, anybody.owner_id, anybody.eligible) == (s.run.id, None, [])
    own = await bob.ok(create(s, eligible_member_ids=[s.bob.agent.id, s.cid.agent.id]))
    assert own.eligible == sorted([s.bob.agent.id, s.cid.agent.id])


async def test_work_create_not_eligible(node: InProcessNode) -> None:
    s = await stage(node)
    refusal = await works.bob(s).refused(create(s, eligible_member_ids=[s.cid.agent.id]))
    lifted_by = "name yourself among the eligible, or nobody; a Host decides for others"
    assert refusal == Refusal(code=Code.NOT_ELIGIBLE, about="eligible_member_ids", lifted_by=lifted_by)
    await works.ann(s).ok(create(s, eligible_member_ids=[s.cid.agent.id]))


async def test_work_create_duplicate_title(node: InProcessNode) -> None:
    """In any case, of a Work that is not closed; unless it is meant."""
    s = await stage(node)
    first = await s.work("build it")
    refusal = await works.ann(s).refused(create(s, "Build  IT"))
    lifted_by = "use it, give another title, or say --duplicate-ok"
    assert refusal == Refusal(code=Code.DUPLICATE_TITLE, about=f"work/{first.id}", lifted_by=lifted_by)
    second = await works.ann(s).ok(create(s, duplicate_ok=True))
    for each in (first, second):
        await works.cancelled(s, each)
    await works.ann(s).ok(create(s))


async def test_work_create_not_found(node: InProcessNode) -> None:
    s = await stage(node)
    other = attrs.evolve(create(s), team_run_id=TeamRunId("nothing"))
    assert await works.ann(s).refused(other) == refusals.not_found("team-run", "nothing")


async def test_work_create_row_quarantined(node: InProcessNode) -> None:
    s = await stage(node)
    await refused_while_spoilt(node, create(s), "team_runs", s.run.id)


async def test_work_create_prerequisite_invalid(node: InProcessNode) -> None:
    s = await stage(node)
    refusal = await works.ann(s).refused(create(s, prerequisite_work_ids=["nothing"]))
    assert refusal.code is Code.PREREQUISITE_INVALID
    assert refusal.lifted_by == "leave it out: there is no Work nothing"


async def test_work_create_team_run_not_open(node: InProcessNode) -> None:
    s = await stage(node)
    run = await node.ok(DrainTeamRun(team_run_id=s.run.id, expected_version=s.run.version))
    refusal = await works.ann(s).refused(create(s))
    command = f"firm team-run resume {run.id} --expected-version {run.version}"
    assert refusal == Refusal(
        code=Code.TEAM_RUN_NOT_OPEN,
        about=f"team-run/{run.id}",
        lifted_by=f"it is draining, not planned or running: {command}",
    )
    await node.follow(refusal)
    await works.ann(s).ok(create(s))


@pytest.mark.parametrize(("field", "text"), [("title", "   "), ("completion_criteria", " \n\n ")])
async def test_a_work_that_says_nothing_is_refused(node: InProcessNode, field: str, text: str) -> None:
    s = await stage(node)
    work = await s.work("other")
    said = Refusal(code=Code.MALFORMED, about=field, lifted_by="say it in words; nothing but space says nothing")
    assert await works.ann(s).refused(create(s, **{field: text})) == said
    assert await works.ann(s).refused(update(work, **{field: text})) == said


@pytest.mark.parametrize(
    ("checks", "why"),
    [
        (["make unit"], "not 'make unit'"),
        (["=make"], "not '=make'"),
        (["unit="], "not 'unit='"),
        (["unit= "], "not 'unit= '"),
        (["1=make"], "not '1=make'"),
        (["a b=make"], "not 'a b=make'"),
        (["unit=make", "unit=make again"], "'unit' names two of them"),
    ],
)
async def test_a_check_has_a_name_of_its_own_and_a_command(node: InProcessNode, checks: list[str], why: str) -> None:
    s = await stage(node)
    work = await s.work("other")
    said = f"write each as NAME=COMMAND, the name of letters, digits, '.', '_' and '-'; {why}"
    refusal = Refusal(code=Code.MALFORMED, about="checks", lifted_by=said)
    assert await works.ann(s).refused(create(s, checks=checks)) == refusal
    assert await works.ann(s).refused(update(work, add_checks=checks)) == refusal


async def test_a_team_has_at_most_ten_thousand_works_that_are_not_closed(node: InProcessNode) -> None:
    s = await stage(node)
    work = await s.work("first")
    columns = "version, team_id, team_run_id, title, context, criteria, phase, condition, claim_mode, eligible, "
    columns += "required_role, priority, needs, checks, reason, result_summary, created_by, created_at, updated_at"
    node.execute(
        f"INSERT INTO works (id, {columns}) WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)"  # noqa: S608 — ours
        f" SELECT 'copy-' || i, {columns} FROM works, n WHERE id = ?",
        MOST_OPEN - 1,
        work.id,
    )
    refusal = await works.ann(s).refused(create(s))
    assert refusal == Refusal(
        code=Code.LIMIT_EXCEEDED,
        about=f"team/{s.team.id}",
        lifted_by="close some first: a team has at most 10000 Works that are not closed",
    )
    await works.cancelled(s, work)
    await works.ann(s).ok(create(s))


async def test_work_update_ok(node: InProcessNode) -> None:
    """What is not given stays."""
    s = await stage(node)
    work = await s.work(checks=["unit=make unit"])
    ask = update(
        work,
        title="build  them",
        context="all",
        completion_criteria="a\nb",
        priority=Priority.LOW,
        add_checks=["lint=make lint"],
        remove_check="unit",
    )
    after = await works.ann(s).ok(ask)
    assert after == attrs.evolve(
        work,
        version=2,
        title="build them",
        context="all",
        criteria=["a", "b"],
        priority=Priority.LOW,
        checks=["lint=make lint"],
        updated_at=after.updated_at,
    )
    again = await works.ann(s).ok(update(after, context=""))
    assert again == attrs.evolve(after, version=3, context="", updated_at=again.updated_at)


async def test_an_update_says_anew_who_may_claim_a_work(node: InProcessNode) -> None:
    """And what nothing was said of stays."""
    s = await stage(node)
    work = await s.work(claim_mode=ClaimMode.HOST_ASSIGN)
    cid, bob = s.cid.membership.agent_member_id, s.bob.membership.agent_member_id
    after = await works.ann(s).ok(update(work, claim_mode=ClaimMode.TEAM_CLAIM, eligible_member_ids=[cid, cid]))
    assert after == attrs.evolve(
        work, version=2, claim_mode=ClaimMode.TEAM_CLAIM, eligible=[cid], updated_at=after.updated_at
    )
    stays = await works.ann(s).ok(update(after, context="more"))
    assert (stays.claim_mode, stays.eligible) == (ClaimMode.TEAM_CLAIM, [cid])
    claim = ClaimWork(work_id=work.id, expected_version=stays.version)
    assert (await works.bob(s).refused(claim)).code is Code.NOT_ELIGIBLE
    said = "name who may claim it, or nobody any more; not both"
    both = update(stays, eligible_member_ids=[bob], remove_eligible=True)
    refusal = Refusal(code=Code.MALFORMED, about="eligible_member_ids", lifted_by=said)
    assert await works.ann(s).refused(both) == refusal
    everybody = await works.ann(s).ok(update(stays, remove_eligible=True))
    assert everybody.eligible == []
    claimed = await works.bob(s).ok(ClaimWork(work_id=work.id, expected_version=everybody.version))
    assert claimed.owner_id == s.bob.membership.id


@pytest.mark.parametrize(
    ("first", "second"), [("Straße", "STRASSE"), ("ÉTÉ", "été"), ("Ночь", "НОЧЬ"), ("ΣΊΣΥΦΟΣ", "σίσυφος")]
)
async def test_titles_that_differ_in_the_case_of_any_alphabet_are_the_same(
    node: InProcessNode, first: str, second: str
) -> None:
    s = await stage(node)
    made, other = await s.work(first), await s.work("other")
    for ask in (create(s, second), update(other, title=second)):
        refusal = await works.ann(s).refused(ask)
        assert (refusal.code, refusal.about) == (Code.DUPLICATE_TITLE, f"work/{made.id}")
    await works.ann(s).ok(update(made, title="third"))
    await works.ann(s).ok(create(s, second))


async def test_work_update_duplicate_title(node: InProcessNode) -> None:
    s = await stage(node)
    first, second = await s.work("first"), await s.work("second")
    refusal = await works.ann(s).refused(update(second, title="FIRST"))
    said = "use it, or give another title"
    assert refusal == Refusal(code=Code.DUPLICATE_TITLE, about=f"work/{first.id}", lifted_by=said)
    await works.ann(s).ok(update(first, title="First"))


async def test_an_update_names_a_check_that_is_there(node: InProcessNode) -> None:
    s = await stage(node)
    for checks, named in ((["unit=x", "lint=y"], "unit, lint"), ([], "none")):
        work = await s.work(f"with {named}", checks=checks)
        refusal = await works.ann(s).refused(update(work, remove_check="slow"))
        lifted_by = f"the checks of {work.id}: {named}"
        assert refusal == Refusal(code=Code.NOT_FOUND, about="check/slow", lifted_by=lifted_by)


async def test_only_its_host_plans(node: InProcessNode) -> None:
    """Neither a member nor, where nobody is the Host as a person, the operator."""
    s = await stage(node)
    work = await s.work()
    said = "the Host of this team decides it; a person decides by being the Host, with the profile 'me'"
    refusal = Refusal(code=Code.NOT_AUTHORIZED, about=f"team/{s.team.id}", lifted_by=said)
    assert await works.operator(s).refused(update(work, context="more")) == refusal
    by_member = await works.bob(s).refused(update(work, context="more"))
    assert by_member.lifted_by == f"ask as {Plane.HOST} or {Plane.OPERATOR}; this connection is {Plane.MEMBER}"
