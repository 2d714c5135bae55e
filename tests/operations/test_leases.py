"""Leases count awake time: nothing but that makes an attempt orphaned, and a call of its session renews it.

On a mock clock, so that every second is of the test's making.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from client.protocol.attempt import AdmitWork, Binding, Custody, HeartbeatWork
from client.protocol.event import ListEvents
from client.protocol.ids import WorkId
from client.protocol.operation import Plane, Request
from client.protocol.work import Work
from client.protocol.work_asks import ListWorks, ShowWork, StartWork
from daemon.loops import READ_FIRST, TICK, Loops
from tests.support.node import InProcessNode
from tests.support.run import Stage, stage

#: Two ticks and a half: an attempt is over at the third tick that counts.
LEASE = int(TICK * 2.5 * 1000)


@pytest.fixture
def clock(mock_clock: MockClock) -> MockClock:
    return mock_clock


@asynccontextmanager
async def counting(node: InProcessNode) -> AsyncIterator[None]:
    loops = Loops(node.dispatcher, node.relay, node.live.health, node.call, means=None)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(loops._count_leases)
        await wait_all_tasks_blocked()
        yield
        nursery.cancel_scope.cancel(reason="the test is over")


async def leased(s: Stage, process: str = "unknown", title: str = "build it") -> Work:
    """A started Work of Bob's; of his process is known what ``process`` says."""
    work = await s.owned(s.bob, title)
    ask = AdmitWork(work_id=work.id, session_id=s.bob.session.id, sup_gen=s.sup_gen, lease_ms=LEASE)
    await s.node.ok(ask, plane=Plane.SUPERVISOR, actor=s.run.id)
    started = await s.node.ok(
        StartWork(work_id=work.id, expected_version=work.version), plane=Plane.MEMBER, actor=s.bob.session
    )
    s.node.execute("UPDATE sessions SET process = ? WHERE id = ?", process, s.bob.session.id)
    s.node.dispatcher.heard.clear()
    return started


async def passes(clock: MockClock, seconds: float) -> None:
    clock.jump(seconds)
    await wait_all_tasks_blocked()


async def binding(node: InProcessNode, work_id: WorkId) -> Binding:
    return (await node.ok(ShowWork(work_id=work_id))).bindings[-1]


async def test_a_lease_ends_after_its_awake_time_and_gives_orphaned_and_nothing_else(
    node: InProcessNode, clock: MockClock
) -> None:
    """The Work keeps its owner, its phase and its version; nothing is requeued, failed or completed."""
    s = await stage(node)
    work = await leased(s)
    held, before = await binding(node, work.id), node.rows()
    async with counting(node):
        for _ in range(3):  # the first only sees it
            await passes(clock, TICK)
            assert (await binding(node, work.id)).custody is Custody.CLAIMED
        assert node.rows() == before
        await passes(clock, TICK)
        await passes(clock, READ_FIRST)
        lost = await binding(node, work.id)
    assert (lost.custody, lost.reason, lost.version) == (Custody.ORPHANED_UNVERIFIED, "lease expired", held.version + 1)
    assert (await node.ok(ShowWork(work_id=work.id))).work == work
    after = node.rows()
    assert {table for table in after if after[table] != before[table]} == {"bindings", "events"}
    assert len(after["events"]) == len(before["events"]) + 1


async def test_a_jump_of_an_hour_is_two_ticks_and_ends_nothing(node: InProcessNode, clock: MockClock) -> None:
    s = await stage(node)
    work = await leased(s)
    async with counting(node):
        await passes(clock, TICK)
        await passes(clock, 3600)
        await passes(clock, READ_FIRST)
        assert (await binding(node, work.id)).custody is Custody.CLAIMED
        await passes(clock, TICK)
        await passes(clock, READ_FIRST)
        assert (await binding(node, work.id)).custody is Custody.ORPHANED_UNVERIFIED


async def test_an_attempt_that_has_just_begun_has_used_nothing(node: InProcessNode, clock: MockClock) -> None:
    """Admitted a moment before a tick, its first tick is not yet its own, however short its lease is."""
    s = await stage(node)
    async with counting(node):
        await passes(clock, TICK - 1)
        work = await leased(s)
        node.execute("UPDATE bindings SET lease_ms = 1000")
        await passes(clock, 1)
        await passes(clock, READ_FIRST)
        assert (await binding(node, work.id)).custody is Custody.CLAIMED


@pytest.mark.parametrize("kind", ["read", "heartbeat"])
async def test_every_call_of_its_session_renews_a_lease(node: InProcessNode, clock: MockClock, kind: str) -> None:
    """For as long as it calls; whatever it asks."""
    s = await stage(node)
    work = await leased(s)
    asks: dict[str, Request[Any]] = {"read": ListWorks(), "heartbeat": HeartbeatWork(work_id=work.id)}
    ask = asks[kind]
    async with counting(node):
        for _ in range(10):
            await passes(clock, TICK)
            await node.ok(ask, plane=Plane.MEMBER, actor=s.bob.session)
        assert (await binding(node, work.id)).custody is Custody.CLAIMED
        await node.ask(ask, plane=Plane.MEMBER, actor=s.cid.session)
        for _ in range(4):
            await passes(clock, TICK)
        await passes(clock, READ_FIRST)
        assert (await binding(node, work.id)).custody is Custody.ORPHANED_UNVERIFIED


async def test_a_heartbeat_invalidates_nothing_that_somebody_looked_at(node: InProcessNode) -> None:
    """It is no change: no event, no new version, and who goes on with a list goes on where it was."""
    s = await stage(node)
    work = await leased(s)
    beat = HeartbeatWork(work_id=work.id)
    await node.ok(beat, plane=Plane.MEMBER, actor=s.bob.session)
    await s.work("another")
    page, events = await node.ok(ListWorks(team_run_id=s.run.id, limit=1)), await node.ok(ListEvents())
    before, seq = node.rows(), node.store.seq
    for _ in range(3):
        await node.ok(beat, plane=Plane.MEMBER, actor=s.bob.session)
    assert (node.rows(), node.store.seq) == (before, seq)
    assert page.next is not None
    assert len((await node.ok(ListWorks(team_run_id=s.run.id, limit=1, cursor=page.next))).items) == 1
    assert (await node.ok(ListEvents(cursor=events.cursor))).items == []


async def test_what_waits_to_be_read_is_read_before_a_lease_ends(node: InProcessNode, clock: MockClock) -> None:
    """A daemon that was stopped finds the heartbeats in its sockets: they came in time."""
    s = await stage(node)
    work = await leased(s)
    before = await binding(node, work.id)
    async with counting(node):
        for _ in range(4):
            await passes(clock, TICK)
        await node.ok(HeartbeatWork(work_id=work.id), plane=Plane.MEMBER, actor=s.bob.session)
        await passes(clock, READ_FIRST)
        held = await binding(node, work.id)
        assert (held.custody, held.version) == (Custody.CLAIMED, before.version), "nor was it orphaned and taken back"


async def test_a_live_process_is_the_heartbeat(node: InProcessNode, clock: MockClock) -> None:
    s = await stage(node)
    work = await leased(s, "live")
    async with counting(node):
        for _ in range(100):
            await passes(clock, TICK)
        assert (await binding(node, work.id)).custody is Custody.CLAIMED


async def test_who_lost_its_lease_takes_it_back_until_somebody_reviewed_it(
    node: InProcessNode, clock: MockClock
) -> None:
    s = await stage(node)
    work = await leased(s)
    async with counting(node):
        for _ in range(4):
            await passes(clock, TICK)
        await passes(clock, READ_FIRST)
        back = await node.ok(HeartbeatWork(work_id=work.id), plane=Plane.MEMBER, actor=s.bob.session)
        assert back.custody is Custody.CLAIMED
        for _ in range(2):
            await passes(clock, TICK)
        assert (await binding(node, work.id)).custody is Custody.CLAIMED, "it began anew"
