"""``membership.list`` and ``membership.show``, one test an outcome that the table declares."""

from __future__ import annotations

from client.protocol.ids import AgentMemberRef, MembershipId, TeamRef
from client.protocol.membership import ListMemberships, MembershipState, ShowMembership, SubscriptionState
from client.protocol.node import ReleaseQuarantine
from client.protocol.refusals import Refusal
from tests.support import refusals, scene
from tests.support.node import InProcessNode
from tests.support.refusals import refused_while_spoilt
from tests.support.spoil import mend, spoil

CREW = TeamRef("crew")


async def test_membership_list_ok(node: InProcessNode) -> None:
    crew = await scene.crew(node)
    other = await scene.team(node, crew.bob, "other")
    guest = await scene.invited(node, other, crew.eve)
    hosting = await scene.host(node, other)
    first = await node.ok(ListMemberships(limit=3))
    assert first.items == [crew.host, crew.member, hosting]
    assert first.next is not None
    rest = await node.ok(ListMemberships(limit=3, cursor=first.next))
    assert (rest.items, rest.next) == ([guest], None)
    assert (await node.ok(ListMemberships(team_id=CREW))).items == [crew.host, crew.member]
    assert (await node.ok(ListMemberships(agent_member_id=AgentMemberRef("bob")))).items == [crew.member, hosting]
    assert (await node.ok(ListMemberships(state=MembershipState.INVITED))).items == [guest]
    none = ListMemberships(team_id=CREW, state=MembershipState.INVITED)
    assert (await node.ok(none)).items == []


async def test_membership_list_cursor_invalid(node: InProcessNode) -> None:
    await scene.crew(node)
    onward = (await node.ok(ListMemberships(limit=1))).next
    assert onward is not None
    for ask in (ListMemberships(team_id=CREW, cursor=onward), ListMemberships(cursor="nonsense")):
        assert await node.refused(ask) == refusals.stale_cursor()


async def test_membership_list_name_ambiguous(node: InProcessNode) -> None:
    crew = await scene.crew(node)
    other = await scene.team(node, crew.bob)
    expected = refusals.ambiguous("team", "crew", crew.team.id, other.id)
    assert await node.refused(ListMemberships(team_id=CREW)) == expected


async def test_membership_list_not_found(node: InProcessNode) -> None:
    refusal = await node.refused(ListMemberships(team_id=TeamRef("nothing")))
    assert refusal == refusals.not_found("team", "nothing")
    assert not isinstance(await node.follow(refusal), Refusal)
    refusal = await node.refused(ListMemberships(agent_member_id=AgentMemberRef("nobody")))
    assert refusal == refusals.not_found("agent", "nobody")


async def test_membership_list_row_quarantined(node: InProcessNode) -> None:
    crew = await scene.crew(node)
    await refused_while_spoilt(node, ListMemberships(team_id=TeamRef(crew.team.id)), "teams", crew.team.id)


async def test_membership_show_ok(node: InProcessNode) -> None:
    crew = await scene.crew(node)
    shown = await node.ok(ShowMembership(membership_id=crew.member.id))
    assert shown.membership == crew.member
    assert [(s.source, s.source_id, s.membership_id, s.state) for s in shown.subscriptions] == [
        ("agent", crew.bob.id, crew.member.id, SubscriptionState.ACTIVE),
        ("team", crew.team.id, crew.member.id, SubscriptionState.ACTIVE),
    ]


async def test_membership_show_not_found(node: InProcessNode) -> None:
    refusal = await node.refused(ShowMembership(membership_id=MembershipId("nothing")))
    assert refusal == refusals.not_found("membership", "nothing")
    assert not isinstance(await node.follow(refusal), Refusal)


async def test_membership_show_row_quarantined(node: InProcessNode) -> None:
    crew = await scene.crew(node)
    await refused_while_spoilt(node, ShowMembership(membership_id=crew.member.id), "memberships", crew.member.id)


async def test_a_subscription_that_cannot_be_read_is_left_out_and_named(node: InProcessNode) -> None:
    crew = await scene.crew(node)
    ask = ShowMembership(membership_id=crew.member.id)
    whole = await node.ok(ask)
    lost, kept = whole.subscriptions
    was = spoil(node.store.path, "subscriptions", lost.id)
    assert (await node.ok(ask)).subscriptions == [kept]
    record = f"subscriptions/{lost.id}"
    assert await node.set_aside() == [record]
    assert await node.refused(ReleaseQuarantine(record=record)) == refusals.unreadable(record)
    mend(node.store.path, "subscriptions", lost.id, was)
    await node.ok(ReleaseQuarantine(record=record))
    assert await node.ok(ask) == whole
