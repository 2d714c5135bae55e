"""What a member may claim, as a list: all that is for it and nothing else, whatever else its run holds."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from client.protocol.effect import CloseSession
from client.protocol.ids import TeamRunId
from client.protocol.operation import Plane
from client.protocol.work import ClaimMode, Condition, Phase, Priority, Work
from client.protocol.work_asks import ClaimWork, HoldWork, ListWorks
from tests.support.node import InProcessNode
from tests.support.run import Member, Stage, stage

FEW, MANY = 15, 120


async def claimable(s: Stage, by: Member, **more: object) -> list[str]:
    asked = ListWorks(team_run_id=TeamRunId(s.run.id), claimable_by=by.membership.id, **more)  # type: ignore[arg-type]
    return [work.title for work in (await s.node.ok(asked)).items]


async def claim(s: Stage, by: Member, work: Work) -> Work:
    asked = ClaimWork(work_id=work.id, expected_version=work.version)
    return await s.node.ok(asked, plane=Plane.MEMBER, actor=by.session)


async def test_what_may_be_claimed_is_listed_the_most_urgent_first_and_each_of_it_can_be_claimed(
    node: InProcessNode,
) -> None:
    s = await stage(node)
    role = s.bob.place.role
    await s.work("for everybody")
    await s.work("for its role", required_role=role)
    await s.work("for it and another", eligible_member_ids=[s.cid.agent.id, s.bob.agent.id], required_role=role)
    await s.work("for it alone", eligible_member_ids=[s.bob.agent.id], priority=Priority.URGENT)
    listed = await claimable(s, s.bob)
    assert listed == ["for it alone", "for everybody", "for its role", "for it and another"]
    found = (await node.ok(ListWorks(team_run_id=s.run.id, claimable_by=s.bob.membership.id))).items
    for work in found:
        await claim(s, s.bob, work)
    assert await claimable(s, s.bob) == []


async def test_what_would_be_refused_is_not_listed(node: InProcessNode) -> None:
    s = await stage(node)
    first = await s.owned(s.cid, "of another")
    await s.started(s.cid, "begun by another")
    await s.work("for another", eligible_member_ids=[s.cid.agent.id])
    await s.work("of another role", required_role="somebody else")
    await s.work("given away", claim_mode=ClaimMode.HOST_ASSIGN)
    await s.work("waits", prerequisite_work_ids=[first.id])
    await s.work("verified by it", verifier_id=s.bob.membership.id)
    held = await s.work("on hold")
    hold = HoldWork(work_id=held.id, expected_version=held.version, reason="not now")
    await node.ok(hold, plane=Plane.HOST, actor=s.ann.session)
    assert await claimable(s, s.bob) == []
    assert await claimable(s, s.cid) == ["for another", "verified by it"]


async def test_with_other_filters_both_hold(node: InProcessNode) -> None:
    s = await stage(node)
    await s.work("one")
    assert await claimable(s, s.bob, phase=Phase.OPEN, condition=Condition.NORMAL) == ["one"]
    for other in ({"phase": Phase.ACTIVE}, {"condition": Condition.ON_HOLD}, {"owner_id": s.bob.membership.id}):
        assert await claimable(s, s.bob, **other) == []


async def test_who_takes_nothing_up_may_claim_nothing(node: InProcessNode) -> None:
    s = await stage(node)
    await s.work("one")
    await node.ok(CloseSession(session_id=s.bob.session.id))  # which closes its place first
    assert await claimable(s, s.bob) == []
    assert await claimable(s, s.cid) == ["one"]


async def test_pages_follow_each_other(node: InProcessNode) -> None:
    s = await stage(node)
    names: list[list[str]] = [[], [s.bob.agent.id], [s.bob.agent.id, s.cid.agent.id]]
    titles = [(await s.work(str(n), eligible_member_ids=names[n % 3])).title for n in range(9)]
    found = list[str]()
    cursor: str | None = ""
    while cursor is not None:
        asked = ListWorks(team_run_id=s.run.id, claimable_by=s.bob.membership.id, limit=2, cursor=cursor)
        page = await node.ok(asked)
        found += [work.title for work in page.items]
        cursor = page.next
    assert found == titles


@contextmanager
def steps_taken(node: InProcessNode) -> Iterator[list[int]]:
    """One for each step of SQLite's machine in the block: whatever it reads, it reads in one of them."""
    taken: list[int] = []

    def took() -> bool:
        taken.append(1)
        return False

    connections = node.store._connections
    for each in connections:
        each.set_progress_handler(took, 1)
    try:
        yield taken
    finally:
        for each in connections:
            each.set_progress_handler(None)


@pytest.mark.parametrize("whose", ["claimable", "owned"])
async def test_open_works_of_others_are_not_read(node: InProcessNode, whose: str) -> None:
    """Neither those that others answer for nor those that only others may claim."""
    s = await stage(node)
    mine = s.bob.membership.id
    asked = (
        ListWorks(team_run_id=s.run.id, claimable_by=mine)
        if whose == "claimable"
        else ListWorks(team_run_id=s.run.id, phase=Phase.OPEN, owner_id=mine)
    )
    costs: list[int] = []
    for begin, end in ((0, FEW), (FEW, MANY)):
        for n in range(begin, end):
            await s.owned(s.cid, f"owned {n}")
            await s.work(f"for another {n}", eligible_member_ids=[s.cid.agent.id])
            await s.work(f"given away {n}", claim_mode=ClaimMode.HOST_ASSIGN)
        await node.ok(asked)  # the statement is made once
        with steps_taken(node) as taken:
            assert (await node.ok(asked)).items == []
        costs.append(len(taken))
    assert costs[0] == costs[1] > 0


async def test_a_page_of_what_may_be_claimed_costs_what_a_page_costs(node: InProcessNode) -> None:
    s = await stage(node)
    asked = ListWorks(team_run_id=s.run.id, claimable_by=s.bob.membership.id, limit=10)
    costs: list[int] = []
    for begin, end in ((0, FEW), (FEW, MANY)):
        for n in range(begin, end):
            await s.work(f"for everybody {n}")
        await node.ok(asked)
        with steps_taken(node) as taken:
            assert len((await node.ok(asked)).items) == 10
        costs.append(len(taken))
    assert costs[0] == costs[1] > 0
