"""``work.list``, ``show``, ``graph``, ``replace-dependencies``, ``retarget``: the plan, one test an outcome."""

from __future__ import annotations

import attrs

from client.protocol.attempt import Custody, DeliveryCause, DeliveryState, ReportDelivery
from client.protocol.ids import TeamRunId, WorkId
from client.protocol.refusals import Code, Refusal
from client.protocol.team_run import DrainTeamRun
from client.protocol.work import Condition, Phase, Priority, Readiness, Work
from client.protocol.work_asks import (
    ClaimWork,
    DrawWorks,
    ListWorks,
    ReplaceDependencies,
    RetargetWork,
    ShowWork,
)
from tests.support import refusals, scene, works
from tests.support.node import InProcessNode
from tests.support.refusals import refused_while_spoilt
from tests.support.run import Stage, stage
from tests.support.spoil import spoil


def listed(s: Stage, **more: object) -> ListWorks:
    return ListWorks(team_run_id=s.run.id, **more)  # type: ignore[arg-type]


def needs(work: Work, *others: Work | str) -> ReplaceDependencies:
    ids = [other if isinstance(other, str) else other.id for other in others]
    return ReplaceDependencies(work_id=work.id, expected_version=work.version, prerequisite_work_ids=ids)


def retarget(work: Work, run_id: str) -> RetargetWork:
    return RetargetWork(work_id=work.id, expected_version=work.version, successor_team_run_id=TeamRunId(run_id))


async def test_work_list_ok(node: InProcessNode) -> None:
    """The most urgent first, then the oldest; page by page."""
    s = await stage(node)
    low, one, two, urgent = [
        await s.work(title, priority=priority)
        for title, priority in (
            ("low", Priority.LOW),
            ("one", Priority.NORMAL),
            ("two", Priority.NORMAL),
            ("urgent", Priority.URGENT),
        )
    ]
    first = await node.ok(listed(s, limit=3))
    assert (first.items, first.next is None) == ([urgent, one, two], False)
    rest = await node.ok(listed(s, limit=3, cursor=first.next))
    assert (rest.items, rest.next) == ([low], None)


async def test_a_list_is_of_one_phase_condition_and_owner(node: InProcessNode) -> None:
    s = await stage(node)
    open_, done, stuck = await s.work("a"), await s.submitted(s.cid, "b"), await works.blocked(s)
    held = await works.held(s, await s.work("c"))
    assert (await node.ok(listed(s, phase=Phase.OPEN, condition=Condition.NORMAL))).items == [open_]
    assert (await node.ok(listed(s, phase=Phase.REVIEW))).items == [done]
    assert (await node.ok(listed(s, condition=Condition.ON_HOLD))).items == [held]
    assert (await works.bob(s).ok(ListWorks(owner_id=s.bob.membership.id))).items == [stuck]


async def test_work_list_cursor_invalid(node: InProcessNode) -> None:
    s = await stage(node)
    for title in ("a", "b"):
        await s.work(title)
    onward = (await node.ok(listed(s, limit=1))).next
    assert onward is not None
    for ask in (listed(s, phase=Phase.OPEN, cursor=onward), listed(s, cursor="nonsense")):
        assert await node.refused(ask) == refusals.stale_cursor()


async def test_work_list_not_found(node: InProcessNode) -> None:
    assert await node.refused(ListWorks(team_run_id=TeamRunId("x"))) == refusals.not_found("team-run", "x")


async def test_work_list_row_quarantined(node: InProcessNode) -> None:
    s = await stage(node)
    await refused_while_spoilt(node, listed(s), "team_runs", s.run.id)


async def test_a_work_that_cannot_be_read_is_left_out_of_a_list_and_named(node: InProcessNode) -> None:
    s = await stage(node)
    one, two = await s.work("a"), await s.work("b")
    spoil(node.store.path, "works", one.id)
    assert (await node.ok(listed(s))).items == [two]
    assert await node.set_aside() == [f"works/{one.id}"]


async def test_work_show_ok(node: InProcessNode) -> None:
    """The Work with what hangs on it; without one named, the one delivered to the caller."""
    s = await stage(node)
    need = await s.work("first")
    work = await s.submitted(s.bob, "second")
    later = await s.work("third", prerequisite_work_ids=[need.id, work.id])
    shown = await s.shown(work)
    assert (shown.work, shown.owner, shown.successors) == (work, "bob", [later.id])
    assert (shown.readiness, shown.waits_for) == (Readiness.NOT_OPEN, [])
    assert [(b.fence, b.custody) for b in shown.bindings] == [(1, Custody.COMPLETED)]
    assert [d.state for d in shown.deliveries] == [DeliveryState.PROVIDER_RECEIVED]
    assert [r.id for r in shown.receipts] == [work.receipt_id]
    waiting = await s.shown(later)
    assert (waiting.readiness, waiting.waits_for) == (Readiness.WAITING, later.needs)
    await works.cancelled(s, need)
    assert (await s.shown(later)).readiness is Readiness.NEEDS_HOST
    given = await s.started(s.bob, "fourth")
    assert (await works.bob(s).ok(ShowWork())).work == given


async def test_work_graph_ok(node: InProcessNode) -> None:
    s = await stage(node)
    first, second = await s.work("first"), await s.owned(s.bob, "second")
    urgent = await s.work("third", priority=Priority.URGENT, prerequisite_work_ids=[first.id, second.id])
    await works.cancelled(s, first)
    nodes = (await works.bob(s).ok(DrawWorks())).nodes
    assert [(n.id, n.owner, n.resolution, n.needs) for n in nodes[:2]] == [
        (work.id, owner, how, [])
        for work, owner, how in sorted(
            [(first, "", "cancelled"), (second, "bob", "")], key=lambda each: urgent.needs.index(each[0].id)
        )
    ]
    assert (nodes[2].id, nodes[2].needs) == (urgent.id, urgent.needs)


async def test_work_graph_not_found(node: InProcessNode) -> None:
    assert await node.refused(DrawWorks(team_run_id=TeamRunId("x"))) == refusals.not_found("team-run", "x")


async def test_work_graph_row_quarantined(node: InProcessNode) -> None:
    s = await stage(node)
    work = await s.work()
    await refused_while_spoilt(node, DrawWorks(team_run_id=s.run.id), "works", work.id)


async def test_work_replace_dependencies_ok(node: InProcessNode) -> None:
    """The whole set, sorted, each once; none clears it; the index of successors follows."""
    s = await stage(node)
    a, b, work = await s.work("a"), await s.work("b"), await s.work("c")
    after = await works.ann(s).ok(needs(work, b, a, b))
    both: list[str] = sorted([a.id, b.id])
    assert after == attrs.evolve(work, version=2, needs=both, updated_at=after.updated_at)
    assert (await s.shown(a)).successors == [work.id]
    cleared = await works.ann(s).ok(needs(after))
    assert (cleared.needs, cleared.version) == ([], 3)
    assert (await s.shown(a)).successors == []


async def test_work_replace_dependencies_prerequisite_invalid(node: InProcessNode) -> None:
    """Not itself, not what is not there, not another team's."""
    s = await stage(node)
    work, foreign = await s.work("a"), await s.work("b")
    dan = await scene.agent(node, "dan")
    other = await scene.team(node, dan, "other")
    node.execute("UPDATE works SET team_id = ? WHERE id = ?", other.id, foreign.id)
    for need, why in (
        (work.id, "it cannot need itself"),
        ("nothing", "there is no Work nothing"),
        (foreign.id, f"{foreign.id} belongs to another team; propose it there as a delegation"),
    ):
        refusal = await works.ann(s).refused(needs(work, need))
        assert refusal == Refusal(
            code=Code.PREREQUISITE_INVALID, about=f"work/{work.id}", lifted_by=f"leave it out: {why}"
        )


async def test_work_replace_dependencies_prerequisite_cycle(node: InProcessNode) -> None:
    """The path is named."""
    s = await stage(node)
    a = await s.work("a")
    b = await s.work("b", prerequisite_work_ids=[a.id])
    c = await s.work("c", prerequisite_work_ids=[b.id])
    refusal = await works.ann(s).refused(needs(a, c))
    path = f"{a.id} -> {c.id} -> {b.id} -> {a.id}"
    assert refusal == Refusal(code=Code.PREREQUISITE_CYCLE, about=f"work/{a.id}", lifted_by=f"break the cycle {path}")


async def test_work_retarget_ok(node: InProcessNode) -> None:
    """It keeps its owner and what it is; a delivery that only waited is given up."""
    s = await stage(node)
    work, run = await works.admitted(s), await works.second_run(s)
    after = await node.ok(retarget(work, run.id))
    assert after == attrs.evolve(work, version=3, team_run_id=run.id, updated_at=after.updated_at)
    (binding,) = (await s.shown(work)).bindings
    assert (binding.custody, binding.reason) == (Custody.RELEASED, "retargeted")
    assert (await works.ann(s).ok(retarget(after, s.run.id))).team_run_id == s.run.id


async def test_work_retarget_delivery_recovery_uncertain(node: InProcessNode) -> None:
    s = await stage(node)
    work, run = await works.admitted(s), await works.second_run(s)
    taken = ReportDelivery(work_id=work.id, fence=1, sup_gen=s.sup_gen, cause=DeliveryCause.TAKEN)
    await works.supervisor(s).ok(taken)
    refusal = await node.refused(retarget(work, run.id))
    said = "the attempt fence=1 may have reached its process; it ends, or is reviewed once it is lost"
    assert refusal == Refusal(code=Code.DELIVERY_RECOVERY_UNCERTAIN, about=f"work/{work.id}", lifted_by=said)


async def test_work_retarget_team_run_not_open(node: InProcessNode) -> None:
    s = await stage(node)
    work, run = await s.work(), await works.second_run(s)
    run = await node.ok(DrainTeamRun(team_run_id=run.id, expected_version=run.version))
    refusal = await node.refused(retarget(work, run.id))
    assert (refusal.code, refusal.about) == (Code.TEAM_RUN_NOT_OPEN, f"team-run/{run.id}")
    await node.follow(refusal)
    await node.ok(retarget(work, run.id))


async def test_a_work_is_not_retargeted_to_another_team(node: InProcessNode) -> None:
    s = await stage(node)
    work, run = await s.work(), await works.second_run(s)
    dan = await scene.agent(node, "dan")
    other = await scene.team(node, dan, "other")
    node.execute("UPDATE team_runs SET team_id = ? WHERE id = ?", other.id, run.id)
    for wanted in (run.id, "nothing"):
        assert await node.refused(retarget(work, wanted)) == refusals.not_found("team-run", wanted)


async def test_a_retargeted_work_is_claimed_by_who_has_a_place_in_that_run(node: InProcessNode) -> None:
    """The place counts that the member has in the run of the Work, not the one of its session."""
    s = await stage(node)
    work, run = await s.work(), await works.second_run(s)
    moved = await node.ok(retarget(work, run.id))
    node.execute("UPDATE member_runs SET coordination = 'retired' WHERE team_run_id = ?", run.id)
    ask = ClaimWork(work_id=WorkId(work.id), expected_version=moved.version)
    refusal = await works.bob(s).refused(ask)
    assert refusal.code is Code.MEMBER_RUN_CLOSED
    await node.follow(refusal)
    assert (await works.bob(s).ok(ask)).owner_id == s.bob.membership.id
