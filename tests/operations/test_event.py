"""``event.list``, one test an outcome that the table declares; and what an event says."""

from __future__ import annotations

from client.protocol.agent import AgentStatus, ListAgents, PauseAgent
from client.protocol.event import Event, ListEvents
from client.protocol.ids import AgentMemberRef
from client.protocol.node import ReleaseQuarantine
from tests.support import refusals, scene
from tests.support.node import InProcessNode
from tests.support.spoil import mend, spoil


async def test_event_list_ok(node: InProcessNode) -> None:
    ann, bob = await scene.agent(node, "ann"), await scene.agent(node, "bob")
    resting = await scene.paused(node, ann)
    page = await node.ok(ListEvents(limit=2))
    assert [(event.seq, event.stream, event.kind) for event in page.items] == [
        (1, f"agent/{ann.id}", "created"),
        (2, f"agent/{bob.id}", "created"),
    ]
    (third,) = (await node.ok(ListEvents(cursor=page.cursor))).items
    assert third == Event(
        seq=3,
        at=resting.updated_at,
        stream=f"agent/{ann.id}",
        version=2,
        kind="pause",
        actor="operator",
        body={"version": 2, "status": AgentStatus.PAUSED.value, "updated_at": resting.updated_at},
    )
    assert [event.seq for event in (await node.ok(ListEvents(stream=f"agent/{ann.id}"))).items] == [1, 3]


async def test_a_cursor_continues_where_nothing_was_left(node: InProcessNode) -> None:
    await scene.agent(node)
    end = (await node.ok(ListEvents())).cursor
    assert (await node.ok(ListEvents(cursor=end))).items == []
    await scene.agent(node)
    later = await node.ok(ListEvents(cursor=end))
    assert [event.seq for event in later.items] == [2]


async def test_event_list_cursor_invalid(node: InProcessNode) -> None:
    ann = await scene.agent(node)
    of_all = (await node.ok(ListEvents())).cursor
    of_ann = (await node.ok(ListEvents(stream=f"agent/{ann.id}"))).cursor
    of_agents = (await node.ok(ListAgents(limit=1))).next
    assert of_agents is None
    for ask in (
        ListEvents(stream=f"agent/{ann.id}", cursor=of_all),
        ListEvents(cursor=of_ann),
        ListEvents(cursor="nonsense"),
        ListEvents(cursor="é" * 20),
    ):
        assert await node.refused(ask) == refusals.stale_cursor()


async def test_an_actor_is_who_asked_and_not_whom_it_is_about(node: InProcessNode) -> None:
    crew = await scene.crew(node)
    (joined,) = [e for e in (await node.ok(ListEvents())).items if e.kind == "joined"]
    assert (joined.stream, joined.actor) == (f"membership/{crew.member.id}", "operator")


async def test_an_event_that_cannot_be_read_is_left_out_and_named(node: InProcessNode) -> None:
    ann = await scene.agent(node)
    await node.ok(PauseAgent(agent_member_id=AgentMemberRef(ann.id), expected_version=1))
    was = spoil(node.store.path, "events", 1)
    page = await node.ok(ListEvents())
    assert [event.seq for event in page.items] == [2]
    assert await node.set_aside() == ["events/1"]
    assert await node.refused(ReleaseQuarantine(record="events/1")) == refusals.unreadable("events/1")
    mend(node.store.path, "events", 1, was)
    await node.ok(ReleaseQuarantine(record="events/1"))
    assert [event.seq for event in (await node.ok(ListEvents())).items] == [1, 2]
    assert await node.set_aside() == []
