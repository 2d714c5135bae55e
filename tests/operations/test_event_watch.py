"""``event.watch``, one test an outcome that the table declares; where it begins, how it lags, how it ends."""

from __future__ import annotations

from trio.testing import wait_all_tasks_blocked

from client.protocol.agent import AgentMember, PauseAgent, UpdateAgent
from client.protocol.event import EventPage, ListEvents, WatchEvents
from client.protocol.ids import AgentMemberRef
from client.protocol.refusals import Refusal
from daemon.waiting import watch
from tests.support import refusals, scene
from tests.support.node import Exchange, InProcessNode
from tests.support.spoil import spoil


def pause(who: AgentMember, version: int = 1) -> PauseAgent:
    return PauseAgent(agent_member_id=AgentMemberRef(who.id), expected_version=version)


async def page(exchange: Exchange) -> EventPage:
    found = await exchange.outcome()
    assert isinstance(found, EventPage), found
    return found


async def seqs(exchange: Exchange) -> list[int]:
    return [event.seq for event in (await page(exchange)).items]


async def test_event_watch_ok(node: InProcessNode) -> None:
    """Without a cursor it begins with the next event; it goes on until it is cancelled."""
    ann = await scene.agent(node)
    watching = node.send(WatchEvents())
    await wait_all_tasks_blocked()
    assert watching.nothing_yet()
    await node.ok(pause(ann))
    frame = await watching.frame()
    assert (frame["more"], frame["seq"], [e["seq"] for e in frame["answer"]["items"]]) == (True, 2, [2])
    await scene.agent(node)
    assert await seqs(watching) == [3]
    watching.scope.cancel()
    await scene.agent(node)
    assert watching.nothing_yet()


async def test_a_watch_with_a_cursor_misses_nothing(node: InProcessNode) -> None:
    begin = (await node.ok(ListEvents())).cursor
    for _ in range(3):
        await scene.agent(node)
    watching = node.send(WatchEvents(cursor=begin))
    first = await page(watching)
    assert [event.seq for event in first.items] == [1, 2, 3]
    watching.scope.cancel()
    await scene.agent(node)
    assert await seqs(node.send(WatchEvents(cursor=first.cursor))) == [4]


async def test_a_watch_of_one_record_sees_only_its_events(node: InProcessNode) -> None:
    ann, bob = await scene.agent(node, "ann"), await scene.agent(node, "bob")
    watching = node.send(WatchEvents(stream=f"agent/{ann.id}"))
    await wait_all_tasks_blocked()
    await node.ok(pause(bob))
    await wait_all_tasks_blocked()
    assert watching.nothing_yet()
    await node.ok(pause(ann))
    assert await seqs(watching) == [4]


async def test_a_slow_watcher_lags_and_holds_nobody_up(node: InProcessNode) -> None:
    """Pages are read when there is room for them, so what came meanwhile comes together."""
    ann = await scene.agent(node)
    pages = watch(node.store, node.relay, node.call(), WatchEvents(cursor=(await node.ok(ListEvents())).cursor))
    await node.ok(pause(ann))
    first = await anext(pages)
    for name in ("a", "b", "c"):
        await scene.agent(node, name)
    second = await anext(pages)
    assert not isinstance(first, Refusal)
    assert not isinstance(second, Refusal)
    assert ([e.seq for e in first.items], [e.seq for e in second.items]) == ([2], [3, 4, 5])
    await pages.aclose()
    assert node.relay._waiting == {}


async def test_a_long_past_comes_in_pages(node: InProcessNode) -> None:
    ann = await scene.agent(node)
    begin = (await node.ok(ListEvents(limit=1))).cursor
    ref = AgentMemberRef(ann.id)
    asked = [node.send(UpdateAgent(agent_member_id=ref, expected_version=n, role=str(n))) for n in range(1, 602)]
    for each in asked:
        await each.outcome()
    watching = node.send(WatchEvents(cursor=begin))
    assert await seqs(watching) == list(range(2, 502))
    assert await seqs(watching) == list(range(502, 603))


async def test_event_watch_cursor_invalid(node: InProcessNode) -> None:
    ann = await scene.agent(node)
    of_ann = (await node.ok(ListEvents(stream=f"agent/{ann.id}"))).cursor
    for ask in (WatchEvents(cursor="nonsense"), WatchEvents(cursor=of_ann)):
        assert await node.refused(ask) == refusals.stale_cursor()


async def test_a_watch_passes_over_events_that_cannot_be_read_and_names_them(node: InProcessNode) -> None:
    begin = (await node.ok(ListEvents())).cursor
    for _ in range(2):
        await scene.agent(node)
    spoil(node.store.path, "events", 1)
    assert await seqs(node.send(WatchEvents(cursor=begin))) == [2]
    assert await node.set_aside() == ["events/1"]


async def test_a_watch_does_not_stop_at_a_page_of_which_nothing_can_be_read(node: InProcessNode) -> None:
    ann = await scene.agent(node)
    begin = (await node.ok(ListEvents(limit=1))).cursor
    ref = AgentMemberRef(ann.id)
    asked = [node.send(UpdateAgent(agent_member_id=ref, expected_version=n, role=str(n))) for n in range(1, 502)]
    for each in asked:
        await each.outcome()
    node.execute("UPDATE events SET body = x'c1' WHERE seq BETWEEN 2 AND 501")
    assert await seqs(node.send(WatchEvents(cursor=begin))) == [502]


async def test_a_watch_that_ends_leaves_nothing_behind(node: InProcessNode) -> None:
    watching = [node.send(WatchEvents()) for _ in range(20)]
    await wait_all_tasks_blocked()
    assert len(node.relay._waiting) == 1
    for each in watching:
        each.scope.cancel()
    await wait_all_tasks_blocked()
    assert node.relay._waiting == {}
