"""``team.activate``, ``deactivate``, ``trash``, ``restore`` and ``hand-over``, one test a declared outcome."""

from __future__ import annotations

import attrs

from client.protocol.ids import AgentMemberRef, TeamRef
from client.protocol.membership import JoinTeam, MembershipRole
from client.protocol.operation import Plane
from client.protocol.refusals import Code, Refusal
from client.protocol.team import (
    ActivateTeam,
    DeactivateTeam,
    HandOverTeam,
    RestoreTeam,
    Team,
    TeamState,
    TrashTeam,
)
from tests.support import refusals, scene
from tests.support.node import InProcessNode
from tests.support.refusals import refused_while_spoilt
from tests.support.spoil import spoil


def activate(team: str, version: int) -> ActivateTeam:
    return ActivateTeam(team_id=TeamRef(team), expected_version=version)


def deactivate(team: str, version: int = 1) -> DeactivateTeam:
    return DeactivateTeam(team_id=TeamRef(team), expected_version=version)


def trash(team: str, version: int) -> TrashTeam:
    return TrashTeam(team_id=TeamRef(team), expected_version=version)


def restore(team: str, version: int) -> RestoreTeam:
    return RestoreTeam(team_id=TeamRef(team), expected_version=version)


def hand_over(team: str, to: str, version: int = 1) -> HandOverTeam:
    return HandOverTeam(team_id=TeamRef(team), to_agent_id=AgentMemberRef(to), expected_version=version)


async def two_crews(node: InProcessNode) -> Refusal:
    ann = await scene.agent(node)
    one, other = await scene.team(node, ann), await scene.team(node, ann)
    return refusals.ambiguous("team", "crew", one.id, other.id)


def moved(before: Team, after: Team, state: TeamState) -> bool:
    return after == attrs.evolve(before, version=before.version + 1, state=state, updated_at=after.updated_at)


async def test_team_activate_ok(node: InProcessNode) -> None:
    crew = await scene.crew(node)
    aside = await scene.inactive(node, crew.team)
    assert moved(aside, await node.ok(activate("crew", 2)), TeamState.ACTIVE)
    assert await scene.host(node, crew.team) == crew.host


async def test_team_activate_agent_member_retired(node: InProcessNode) -> None:
    crew = await scene.crew(node)
    await scene.inactive(node, crew.team)
    await scene.retired(node, crew.ann)
    refusal = await node.refused(activate("crew", 2))
    assert refusal == Refusal(
        code=Code.AGENT_MEMBER_RETIRED,
        about=f"agent/{crew.ann.id}",
        lifted_by="its Host is retired; give it a Host: "
        f"firm team hand-over {crew.team.id} --expected-version 2 --to-agent-id MEMBER",
    )
    assert not isinstance(await node.follow(refusal, MEMBER="bob"), Refusal)
    await node.ok(activate("crew", 3))


async def test_team_activate_host_required(node: InProcessNode) -> None:
    crew = await scene.crew(node)
    await scene.inactive(node, crew.team)
    await scene.left(node, crew.host)
    refusal = await node.refused(activate("crew", 2))
    assert refusal == Refusal(
        code=Code.HOST_REQUIRED,
        about=f"team/{crew.team.id}",
        lifted_by=f"give it a Host: firm team hand-over {crew.team.id} --expected-version 2 --to-agent-id MEMBER",
    )
    assert not isinstance(await node.follow(refusal, MEMBER="bob"), Refusal)
    await node.ok(activate("crew", 3))


async def test_team_activate_invalid_state_transition(node: InProcessNode) -> None:
    crew = await scene.crew(node)
    about = f"team/{crew.team.id}"
    assert await node.refused(activate("crew", 1)) == refusals.no_move(about, "active", "inactive")
    await scene.trashed(node, crew.team)
    assert await node.refused(activate(crew.team.id, 3)) == refusals.no_move(about, "trashed", "inactive")


async def test_team_activate_name_ambiguous(node: InProcessNode) -> None:
    assert await two_crews(node) == await node.refused(activate("crew", 1))


async def test_team_activate_not_found(node: InProcessNode) -> None:
    assert await node.refused(activate("nothing", 1)) == refusals.not_found("team", "nothing")


async def test_team_activate_row_quarantined(node: InProcessNode) -> None:
    crew = await scene.crew(node)
    await scene.inactive(node, crew.team)
    await refused_while_spoilt(node, activate(crew.team.id, 2), "memberships", crew.host.id)


async def test_team_activate_version_conflict(node: InProcessNode) -> None:
    crew = await scene.crew(node)
    await scene.inactive(node, crew.team)
    assert await node.refused(activate("crew", 1)) == refusals.conflict(f"team/{crew.team.id}", 2)


async def test_team_deactivate_ok(node: InProcessNode) -> None:
    crew = await scene.crew(node)
    aside = await node.ok(deactivate("crew"), plane=Plane.HOST, actor=crew.ann.id)
    assert moved(crew.team, aside, TeamState.INACTIVE)
    assert await scene.host(node, crew.team) == crew.host


async def test_team_deactivate_invalid_state_transition(node: InProcessNode) -> None:
    crew = await scene.crew(node)
    about = f"team/{crew.team.id}"
    aside = await scene.inactive(node, crew.team)
    assert await node.refused(deactivate("crew", 2)) == refusals.no_move(about, "inactive", "active")
    await node.ok(trash("crew", aside.version))
    assert await node.refused(deactivate(crew.team.id, 3)) == refusals.no_move(about, "trashed", "active")


async def test_team_deactivate_name_ambiguous(node: InProcessNode) -> None:
    assert await two_crews(node) == await node.refused(deactivate("crew"))


async def test_team_deactivate_not_found(node: InProcessNode) -> None:
    assert await node.refused(deactivate("nothing")) == refusals.not_found("team", "nothing")


async def test_team_deactivate_row_quarantined(node: InProcessNode) -> None:
    crew = await scene.crew(node)
    await refused_while_spoilt(node, deactivate(crew.team.id), "teams", crew.team.id)


async def test_team_deactivate_version_conflict(node: InProcessNode) -> None:
    crew = await scene.crew(node)
    assert await node.refused(deactivate("crew", 2)) == refusals.conflict(f"team/{crew.team.id}", 1)


async def test_team_trash_ok(node: InProcessNode) -> None:
    """Nothing but the state of the team changes."""
    crew = await scene.crew(node)
    aside = await scene.inactive(node, crew.team)
    before = node.rows()
    gone = await node.ok(trash("crew", 2))
    assert moved(aside, gone, TeamState.TRASHED)
    after = node.rows()
    assert {table for table in after if after[table] != before[table]} == {"teams", "events"}


async def test_team_trash_invalid_state_transition(node: InProcessNode) -> None:
    crew = await scene.crew(node)
    about = f"team/{crew.team.id}"
    assert await node.refused(trash("crew", 1)) == refusals.no_move(about, "active", "inactive")
    await scene.trashed(node, crew.team)
    assert await node.refused(trash(crew.team.id, 3)) == refusals.no_move(about, "trashed", "inactive")


async def test_team_trash_name_ambiguous(node: InProcessNode) -> None:
    assert await two_crews(node) == await node.refused(trash("crew", 1))


async def test_team_trash_not_found(node: InProcessNode) -> None:
    assert await node.refused(trash("nothing", 1)) == refusals.not_found("team", "nothing")


async def test_team_trash_row_quarantined(node: InProcessNode) -> None:
    crew = await scene.crew(node)
    await scene.inactive(node, crew.team)
    await refused_while_spoilt(node, trash(crew.team.id, 2), "teams", crew.team.id)


async def test_team_trash_version_conflict(node: InProcessNode) -> None:
    crew = await scene.crew(node)
    await scene.inactive(node, crew.team)
    assert await node.refused(trash("crew", 1)) == refusals.conflict(f"team/{crew.team.id}", 2)


async def test_team_restore_ok(node: InProcessNode) -> None:
    """It comes back inactive, with the Host and the members it had."""
    crew = await scene.crew(node)
    gone = await scene.trashed(node, crew.team)
    before = node.rows()["memberships"], node.rows()["subscriptions"]
    assert moved(gone, await node.ok(restore(crew.team.id, 3)), TeamState.INACTIVE)
    assert (node.rows()["memberships"], node.rows()["subscriptions"]) == before


async def test_team_restore_agent_member_retired(node: InProcessNode) -> None:
    crew = await scene.crew(node)
    await scene.trashed(node, crew.team)
    await scene.retired(node, crew.ann)
    refusal = await node.refused(restore(crew.team.id, 3))
    assert refusal == Refusal(
        code=Code.AGENT_MEMBER_RETIRED,
        about=f"agent/{crew.ann.id}",
        lifted_by="its Host is retired; end its membership first: "
        f"firm membership leave {crew.host.id} --expected-version 1",
    )
    assert not isinstance(await node.follow(refusal), Refusal)
    await node.ok(restore(crew.team.id, 3))
    await node.ok(hand_over("crew", "bob", 4))
    await node.ok(activate("crew", 5))


async def test_team_restore_invalid_state_transition(node: InProcessNode) -> None:
    crew = await scene.crew(node)
    about = f"team/{crew.team.id}"
    assert await node.refused(restore("crew", 1)) == refusals.no_move(about, "active", "trashed")
    await scene.inactive(node, crew.team)
    assert await node.refused(restore("crew", 2)) == refusals.no_move(about, "inactive", "trashed")


async def test_team_restore_name_ambiguous(node: InProcessNode) -> None:
    assert await two_crews(node) == await node.refused(restore("crew", 1))


async def test_team_restore_not_found(node: InProcessNode) -> None:
    assert await node.refused(restore("nothing", 1)) == refusals.not_found("team", "nothing")


async def test_team_restore_row_quarantined(node: InProcessNode) -> None:
    crew = await scene.crew(node)
    await scene.trashed(node, crew.team)
    await refused_while_spoilt(node, restore(crew.team.id, 3), "teams", crew.team.id)


async def test_team_restore_version_conflict(node: InProcessNode) -> None:
    crew = await scene.crew(node)
    await scene.trashed(node, crew.team)
    assert await node.refused(restore(crew.team.id, 2)) == refusals.conflict(f"team/{crew.team.id}", 3)


async def test_team_hand_over_ok(node: InProcessNode) -> None:
    crew = await scene.crew(node)
    shown = await node.ok(hand_over("crew", "bob"), plane=Plane.HOST, actor=crew.ann.id)
    at = shown.team.updated_at
    assert shown.team == attrs.evolve(crew.team, version=2, updated_at=at)
    assert [each.membership for each in shown.members] == [
        attrs.evolve(crew.member, version=3, role=MembershipRole.HOST, updated_at=at),
        attrs.evolve(crew.host, version=2, role=MembershipRole.MEMBER, updated_at=at),
    ]


async def test_a_hand_over_to_the_host_itself_changes_nothing(node: InProcessNode) -> None:
    crew = await scene.crew(node)
    before = node.rows()
    assert (await node.ok(hand_over("crew", "ann"))).team == crew.team
    assert node.rows() == before


async def test_a_member_that_a_hand_over_cannot_show_is_left_out_and_named(node: InProcessNode) -> None:
    crew = await scene.crew(node)
    third = await scene.joined(node, crew.team, crew.eve)
    spoil(node.store.path, "memberships", third.id)
    shown = await node.ok(hand_over("crew", "bob"))
    assert [each.name for each in shown.members] == ["bob", "ann"]
    assert await node.set_aside() == [f"memberships/{third.id}"]


async def test_a_former_host_runs_the_team_no_more(node: InProcessNode) -> None:
    crew = await scene.crew(node)
    await node.ok(hand_over("crew", "bob"))
    refusal = await node.refused(deactivate("crew", 2), plane=Plane.HOST, actor=crew.ann.id)
    assert refusal == refusals.not_run_by_caller(crew.team.id)
    await node.ok(deactivate("crew", 2), plane=Plane.HOST, actor=crew.bob.id)


async def test_team_hand_over_agent_member_paused(node: InProcessNode) -> None:
    crew = await scene.crew(node)
    await scene.paused(node, crew.bob)
    refusal = await node.refused(hand_over("crew", "bob"))
    assert refusal == refusals.paused(crew.bob.id, 2)
    assert not isinstance(await node.follow(refusal), Refusal)
    await node.ok(hand_over("crew", "bob"))


async def test_team_hand_over_agent_member_retired(node: InProcessNode) -> None:
    crew = await scene.crew(node)
    await scene.retired(node, crew.bob)
    assert await node.refused(hand_over("crew", crew.bob.id)) == refusals.retired(crew.bob.id)


async def test_team_hand_over_invalid_state_transition(node: InProcessNode) -> None:
    crew = await scene.crew(node)
    first = "only an active member can become Host: firm membership"
    outsider = await node.refused(hand_over("crew", "eve"))
    assert outsider == Refusal(
        code=Code.INVALID_STATE_TRANSITION,
        about=f"agent/{crew.eve.id}",
        lifted_by=f"{first} invite --team-id {crew.team.id} --agent-member-id {crew.eve.id}, then join",
    )
    assert not isinstance(await node.follow(outsider), Refusal)
    invited = await node.refused(hand_over("crew", "eve"))
    assert invited.code is Code.INVALID_STATE_TRANSITION
    assert invited.lifted_by.startswith(f"{first} join ")
    assert not isinstance(await node.follow(invited), Refusal)
    await node.ok(hand_over("crew", "eve"))
    await scene.trashed(node, attrs.evolve(crew.team, version=2))
    refusal = await node.refused(hand_over(crew.team.id, "bob", 4))
    assert refusal == refusals.in_the_trash(crew.team.id, 4)


async def test_team_hand_over_name_ambiguous(node: InProcessNode) -> None:
    crew = await scene.crew(node)
    bob = await scene.agent(node, "bob")
    expected = refusals.ambiguous("agent", "bob", crew.bob.id, bob.id)
    assert await node.refused(hand_over("crew", "bob")) == expected


async def test_team_hand_over_not_found(node: InProcessNode) -> None:
    await scene.crew(node)
    assert await node.refused(hand_over("nothing", "bob")) == refusals.not_found("team", "nothing")
    assert await node.refused(hand_over("crew", "nobody")) == refusals.not_found("agent", "nobody")


async def test_team_hand_over_row_quarantined(node: InProcessNode) -> None:
    crew = await scene.crew(node)
    await refused_while_spoilt(node, hand_over("crew", "bob"), "memberships", crew.member.id)


async def test_team_hand_over_version_conflict(node: InProcessNode) -> None:
    crew = await scene.crew(node)
    await node.ok(hand_over("crew", "bob"))
    assert await node.refused(hand_over("crew", "ann")) == refusals.conflict(f"team/{crew.team.id}", 2)


async def test_members_stay_and_may_come_while_a_team_is_set_aside(node: InProcessNode) -> None:
    crew = await scene.crew(node)
    await scene.inactive(node, crew.team)
    invitation = await scene.invited(node, crew.team, crew.eve)
    await node.ok(JoinTeam(membership_id=invitation.id, expected_version=1))
