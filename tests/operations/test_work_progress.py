"""``work.start``, ``block``, ``resume``, ``hold``, ``unhold``: how a Work goes on, one test an outcome."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import attrs
import pytest

from client.protocol.agent import ResumeAgent
from client.protocol.ids import AgentMemberRef
from client.protocol.operation import Request
from client.protocol.refusals import Code, Refusal
from client.protocol.team_run import DrainTeamRun
from client.protocol.work import Condition, Phase, Work
from client.protocol.work_asks import (
    BlockWork,
    CancelWork,
    HoldWork,
    ReplaceDependencies,
    ResumeWork,
    StartWork,
    SubmitWork,
    UnholdWork,
)
from tests.support import refusals, scene, works
from tests.support.node import InProcessNode
from tests.support.run import Stage, stage


def start(work: Work) -> StartWork:
    return StartWork(work_id=work.id, expected_version=work.version)


def block(work: Work) -> BlockWork:
    return BlockWork(work_id=work.id, expected_version=work.version, reason="no key")


def resume(work: Work) -> ResumeWork:
    return ResumeWork(work_id=work.id, expected_version=work.version, resolution="found it")


def submit(work: Work) -> SubmitWork:
    return SubmitWork(work_id=work.id, expected_version=work.version, result_summary="done", report_only=True)


def hold(work: Work) -> HoldWork:
    return HoldWork(work_id=work.id, expected_version=work.version, reason="wait")


def unhold(work: Work) -> UnholdWork:
    return UnholdWork(work_id=work.id, expected_version=work.version)


#: Makes the request of a Work.
Make = Callable[[Work], Request[Any]]


async def claim_lost(s: Stage, make: Make) -> None:
    """Who has lost it is told so, whatever version it saw."""
    work = await s.started(s.bob)
    said = f"bob ({s.bob.membership.id}) answers for it; do none of its side effects"
    lost = Refusal(code=Code.CLAIM_LOST, about=f"work/{work.id}", lifted_by=said, current_version=work.version)
    for version in (work.version, 1, 2**53):
        assert await works.cid(s).refused(make(attrs.evolve(work, version=version))) == lost


async def unassigned(s: Stage, make: Make) -> None:
    work = await s.work()
    command = f"firm work claim {work.id} --expected-version {work.version}"
    assert await works.bob(s).refused(make(work)) == Refusal(
        code=Code.WORK_NOT_ASSIGNED, about=f"work/{work.id}", lifted_by=f"claim it first: {command}"
    )


async def no_attempt(s: Stage, make: Make) -> None:
    """The owner's session does not hold the live attempt: there is none, or another session has it."""
    work = await s.owned(s.bob)
    said = "no attempt at this Work is live; its supervisor admits the next one"
    stale = Refusal(code=Code.FENCE_STALE, about=f"work/{work.id}", lifted_by=said)
    if make is not start:
        assert await works.bob(s).refused(make(work)) == stale
    await s.admit(work, s.bob)
    s.node.execute("UPDATE bindings SET session_gen = session_gen + 1")
    assert await works.bob(s).refused(make(work)) == stale


async def test_work_start_ok(node: InProcessNode) -> None:
    """One change of the Work; its delivery has plainly been received."""
    s = await stage(node)
    work = await works.admitted(s)
    after = await works.bob(s).ok(start(work))
    assert after == attrs.evolve(work, version=3, phase=Phase.ACTIVE, updated_at=after.updated_at)
    assert [d.state.value for d in (await s.shown(work)).deliveries] == ["provider_received"]


async def test_without_a_name_the_delivered_work_is_started_blocked_resumed_and_submitted(node: InProcessNode) -> None:
    s = await stage(node)
    work = await works.admitted(s)
    bob = works.bob(s)
    work = await bob.ok(StartWork(expected_version=work.version))
    work = await bob.ok(BlockWork(expected_version=work.version, reason="no key"))
    work = await bob.ok(ResumeWork(expected_version=work.version, resolution="found it"))
    ask = SubmitWork(expected_version=work.version, result_summary="done", report_only=True)
    assert (await bob.ok(ask)).phase is Phase.REVIEW


async def test_work_start_claim_lost(node: InProcessNode) -> None:
    await claim_lost(await stage(node), start)


async def test_work_start_work_not_assigned(node: InProcessNode) -> None:
    await unassigned(await stage(node), start)


async def test_work_start_fence_stale(node: InProcessNode) -> None:
    await no_attempt(await stage(node), start)


async def test_work_start_member_busy(node: InProcessNode) -> None:
    """With another that is active and normal; a blocked one keeps nobody busy."""
    s = await stage(node)
    other = await s.started(s.bob, "first")
    work = await s.owned(s.bob, "second")
    refusal = await works.bob(s).refused(start(work))
    said = f"submit or block {other.id} first"
    assert refusal == Refusal(code=Code.MEMBER_BUSY, about=f"work/{other.id}", lifted_by=said)
    await works.bob(s).ok(block(other))
    await s.admit(work, s.bob)
    await works.bob(s).ok(start(work))
    back = await works.bob(s).refused(start(await s.owned(s.bob, "third")))
    assert back.code is Code.MEMBER_BUSY


async def test_work_start_delivery_not_dispatched(node: InProcessNode) -> None:
    s = await stage(node)
    work = await s.owned(s.bob)
    refusal = await works.bob(s).refused(start(work), key="k")
    said = "ask the same again: the run's supervisor delivers it"
    assert refusal == Refusal(code=Code.DELIVERY_NOT_DISPATCHED, about=f"work/{work.id}", lifted_by=said)
    await s.admit(work, s.bob)
    assert (await works.bob(s).ok(start(work), key="k")).phase is Phase.ACTIVE


async def test_work_start_agent_member_paused(node: InProcessNode) -> None:
    s = await stage(node)
    work = await works.admitted(s)
    agent = await scene.paused(node, s.bob.agent)
    assert await works.bob(s).refused(start(work)) == refusals.paused(agent.id, agent.version)
    await node.ok(ResumeAgent(agent_member_id=AgentMemberRef(agent.id), expected_version=agent.version))
    await works.bob(s).ok(start(work))


async def test_work_start_agent_member_retired(node: InProcessNode) -> None:
    s = await stage(node)
    work = await works.admitted(s)
    await scene.retired(node, s.bob.agent)
    assert await works.bob(s).refused(start(work)) == refusals.retired(s.bob.agent.id)


async def test_work_start_member_run_closed(node: InProcessNode) -> None:
    """A place that was closed behind an open session, as no operation does."""
    s = await stage(node)
    work = await works.admitted(s)
    node.execute("UPDATE member_runs SET coordination = 'closed' WHERE id = ?", s.bob.place.id)
    refusal = await works.bob(s).refused(start(work))
    assert (refusal.code, refusal.about) == (Code.MEMBER_RUN_CLOSED, f"member-run/{s.bob.place.id}")
    await node.follow(refusal)
    await works.bob(s).ok(start(work))


async def test_work_start_team_run_not_open(node: InProcessNode) -> None:
    s = await stage(node)
    work = await works.admitted(s)
    run = await node.ok(DrainTeamRun(team_run_id=s.run.id, expected_version=s.run.version))
    refusal = await works.bob(s).refused(start(work))
    assert (refusal.code, refusal.about) == (Code.TEAM_RUN_NOT_OPEN, f"team-run/{run.id}")
    await node.follow(refusal)
    await works.bob(s).ok(start(work))


async def test_work_start_work_not_ready(node: InProcessNode) -> None:
    """A prerequisite that came after the admission counts too."""
    s = await stage(node)
    need, work = await s.work("need"), await works.admitted(s)
    ask = ReplaceDependencies(work_id=work.id, expected_version=work.version, prerequisite_work_ids=[need.id])
    work = await works.ann(s).ok(ask)
    refusal = await works.bob(s).refused(start(work))
    said = f"it waits for {need.id} to be accepted"
    assert refusal == Refusal(code=Code.WORK_NOT_READY, about=f"work/{work.id}", lifted_by=said)


@pytest.mark.parametrize("missing", ["delivery", "session", "available", "ready"])
async def test_a_start_checks_in_one_order(node: InProcessNode, missing: str) -> None:
    """Busy, delivered, this session, available, ready: of several reasons the first is told."""
    s = await stage(node)
    need = await s.work("need")
    work = await s.owned(s.bob, "second")
    if missing != "delivery":
        await s.admit(work, s.bob)
    other = await s.owned(s.bob, "first")
    node.execute("UPDATE works SET phase = 'active' WHERE id = ?", other.id)
    ask = ReplaceDependencies(work_id=work.id, expected_version=work.version, prerequisite_work_ids=[need.id])
    work = await works.ann(s).ok(ask)
    agent = await scene.paused(node, s.bob.agent)
    if missing == "session":
        node.execute("UPDATE bindings SET session_gen = session_gen + 1")
    expected = {
        "delivery": [Code.MEMBER_BUSY, Code.DELIVERY_NOT_DISPATCHED],
        "session": [Code.MEMBER_BUSY, Code.FENCE_STALE],
        "available": [Code.MEMBER_BUSY, Code.AGENT_MEMBER_PAUSED],
    }.get(missing, [Code.MEMBER_BUSY, Code.AGENT_MEMBER_PAUSED, Code.WORK_NOT_READY])
    told = [(await works.bob(s).refused(start(work))).code]
    node.execute("UPDATE works SET phase = 'open' WHERE id = ?", other.id)
    told.append((await works.bob(s).refused(start(work))).code)
    if len(expected) > 2:
        await node.ok(ResumeAgent(agent_member_id=AgentMemberRef(agent.id), expected_version=agent.version))
        told.append((await works.bob(s).refused(start(work))).code)
    assert told == expected


async def test_work_block_ok(node: InProcessNode) -> None:
    s = await stage(node)
    work = await s.started(s.bob)
    after = await works.bob(s).ok(block(work))
    assert after == attrs.evolve(
        work, version=4, condition=Condition.BLOCKED, reason="no key", updated_at=after.updated_at
    )


async def test_work_block_claim_lost(node: InProcessNode) -> None:
    await claim_lost(await stage(node), block)


async def test_work_block_fence_stale(node: InProcessNode) -> None:
    await no_attempt(await stage(node), block)


async def test_work_block_work_not_assigned(node: InProcessNode) -> None:
    await unassigned(await stage(node), block)


async def test_work_resume_ok(node: InProcessNode) -> None:
    """By its member, or by its Host."""
    s = await stage(node)
    work = await works.blocked(s)
    after = await works.bob(s).ok(resume(work))
    assert after == attrs.evolve(
        work, version=5, condition=Condition.NORMAL, reason="found it", updated_at=after.updated_at
    )
    stuck = await works.bob(s).ok(block(after))
    assert (await works.ann(s).ok(resume(stuck))).condition is Condition.NORMAL


async def test_work_resume_claim_lost(node: InProcessNode) -> None:
    await claim_lost(await stage(node), resume)


async def test_nobody_resumes_what_nobody_answers_for(node: InProcessNode) -> None:
    s = await stage(node)
    await works.no_move(s, "resume", await s.work(), "active and blocked")


@pytest.mark.parametrize("before", ["open", "active", "blocked", "review"])
async def test_work_hold_ok_and_work_unhold_ok(node: InProcessNode, before: str) -> None:
    """The condition from before comes back, and nothing else moves."""
    s = await stage(node)
    make: dict[str, Callable[[], Awaitable[Work]]] = {
        "open": s.work,
        "active": lambda: s.started(s.bob),
        "blocked": lambda: works.blocked(s),
        "review": lambda: s.submitted(s.bob),
    }
    work = await make[before]()
    on = await works.ann(s).ok(hold(work))
    assert on == attrs.evolve(
        work,
        version=work.version + 1,
        condition=Condition.ON_HOLD,
        held=work.condition,
        reason="wait",
        updated_at=on.updated_at,
    )
    off = await works.ann(s).ok(unhold(on))
    assert off == attrs.evolve(
        on, version=on.version + 1, condition=work.condition, held=None, updated_at=off.updated_at
    )


async def test_work_hold_ok(node: InProcessNode) -> None:
    """What runs goes on: the attempt stays live, a heartbeat is welcome; held once is held."""
    s = await stage(node)
    work = await works.held(s, await s.started(s.bob))
    await works.bob(s).ok(works.VERBS["heartbeat"].request(s, work))
    again = await works.ann(s).refused(hold(work))
    good = "open or active or review and normal or blocked"
    assert again == refusals.no_move(f"work/{work.id}", "active and on_hold", good)


async def test_work_unhold_ok(node: InProcessNode) -> None:
    """A Work on hold may be cancelled; then nothing is left to take off."""
    s = await stage(node)
    work = await works.held(s, await works.blocked(s))
    ask = CancelWork(work_id=work.id, expected_version=work.version, reason="no need")
    done = await works.ann(s).ok(ask)
    assert (done.condition, done.held) == (Condition.NORMAL, None)
    await works.no_move(s, "unhold", done, "open or active or review and on_hold")


async def test_work_submit_claim_lost(node: InProcessNode) -> None:
    await claim_lost(await stage(node), submit)


async def test_work_submit_fence_stale(node: InProcessNode) -> None:
    await no_attempt(await stage(node), submit)


async def test_work_submit_work_not_assigned(node: InProcessNode) -> None:
    await unassigned(await stage(node), submit)
