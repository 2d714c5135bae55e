"""``team.create``, ``list``, ``show`` and ``update``, one test an outcome that the table declares."""

from __future__ import annotations

from pathlib import Path

import attrs
import pytest

from client.protocol.agent import AgentMember, UpdateAgent, WorkspacePolicy
from client.protocol.ceiling import Ceiling
from client.protocol.ids import AgentMemberRef, Folder, TeamRef
from client.protocol.membership import (
    GuestRole,
    ListMemberships,
    MembershipRole,
    MembershipState,
    ShowMembership,
    SubscriptionState,
    TeamMembership,
)
from client.protocol.operation import Plane
from client.protocol.project import ListProjects
from client.protocol.refusals import Code, Refusal
from client.protocol.team import CreateTeam, ListTeams, Participant, ShowTeam, Team, TeamState, UpdateTeam
from tests.support import refusals, scene
from tests.support.node import InProcessNode
from tests.support.refusals import refused_while_spoilt
from tests.support.spoil import spoil

CREW = TeamRef("crew")


def create(host: str, project: Path, name: str = "crew") -> CreateTeam:
    return CreateTeam(name=name, host_agent_id=AgentMemberRef(host), project=Folder(str(project)))


def rename(team: str, name: str = "new", version: int = 1) -> UpdateTeam:
    return UpdateTeam(team_id=TeamRef(team), expected_version=version, name=name)


async def two_crews(node: InProcessNode) -> Refusal:
    """Two teams of one name, and what is said to whoever uses it."""
    ann = await scene.agent(node)
    one, other = await scene.team(node, ann), await scene.team(node, ann)
    return refusals.ambiguous("team", "crew", one.id, other.id)


async def test_team_create_ok(node: InProcessNode, tmp_path: Path) -> None:
    """The team, its Host, that one's subscriptions and the project are there together."""
    ann = await scene.agent(node)
    ask = attrs.evolve(create("ann", tmp_path), description="builds it")
    made = await node.ok(ask)
    (project,) = (await node.ok(ListProjects())).items
    assert project.root == str(tmp_path)
    assert made == Team(
        id=made.id,
        version=1,
        name="crew",
        description="builds it",
        project_id=project.id,
        node_id=node.opened.row.node_id,
        state=TeamState.ACTIVE,
        created_by="operator",
        created_at=made.created_at,
        updated_at=made.created_at,
    )
    (host,) = (await node.ok(ListMemberships(team_id=TeamRef(made.id)))).items
    assert (host.agent_member_id, host.role, host.state) == (ann.id, MembershipRole.HOST, MembershipState.ACTIVE)
    assert (host.member_gen, host.joined_at, host.left_at) == (1, made.created_at, None)
    shown = await node.ok(ShowMembership(membership_id=host.id))
    assert [s.state for s in shown.subscriptions] == [SubscriptionState.ACTIVE] * 2


async def test_teams_of_one_folder_share_its_project(node: InProcessNode, tmp_path: Path) -> None:
    await scene.agent(node)
    link = tmp_path / "link"
    link.symlink_to(tmp_path)
    one, other = await node.ok(create("ann", tmp_path)), await node.ok(create("ann", link))
    assert one.project_id == other.project_id


async def test_team_create_agent_member_paused(node: InProcessNode, tmp_path: Path) -> None:
    ann = await scene.paused(node, await scene.agent(node))
    refusal = await node.refused(create("ann", tmp_path))
    assert refusal == refusals.paused(ann.id, 2)
    assert not isinstance(await node.follow(refusal), Refusal)
    await node.ok(create("ann", tmp_path))


async def test_team_create_agent_member_retired(node: InProcessNode, tmp_path: Path) -> None:
    ann = await scene.retired(node, await scene.agent(node))
    assert await node.refused(create(ann.id, tmp_path)) == refusals.retired(ann.id)


async def test_team_create_file_unusable(node: InProcessNode, tmp_path: Path) -> None:
    await scene.agent(node)
    (tmp_path / "file").touch()
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    (tmp_path / "odd\nname").mkdir()
    said = {
        "relative/folder": "give an absolute path",
        str(tmp_path / "missing"): "give a folder that exists (No such file or directory)",
        str(tmp_path / "file"): "give a folder, not a file",
    }
    for path, lifted_by in said.items():
        refusal = await node.refused(create("ann", Path(path)))
        assert refusal == Refusal(code=Code.FILE_UNUSABLE, about=path, lifted_by=lifted_by)
    for odd in (tmp_path / "loop", tmp_path / "odd\nname", tmp_path / "nul\0"):
        assert (await node.refused(create("ann", odd))).code is Code.FILE_UNUSABLE


async def test_team_create_name_ambiguous(node: InProcessNode, tmp_path: Path) -> None:
    one, other = await scene.agent(node), await scene.agent(node)
    assert await node.refused(create("ann", tmp_path)) == refusals.ambiguous("agent", "ann", one.id, other.id)


async def test_team_create_not_found(node: InProcessNode, tmp_path: Path) -> None:
    assert await node.refused(create("nobody", tmp_path)) == refusals.not_found("agent", "nobody")


@pytest.mark.parametrize("table", ["agents", "projects"])
async def test_team_create_row_quarantined(node: InProcessNode, table: str) -> None:
    ann = await scene.agent(node)
    team = await scene.team(node, ann)
    record = ann.id if table == "agents" else team.project_id
    await refused_while_spoilt(node, create(ann.id, node.home, "other"), table, record)


async def test_team_list_ok(node: InProcessNode) -> None:
    ann = await scene.agent(node)
    one, two, three = [await scene.team(node, ann, name) for name in ("one", "two", "three")]
    aside = await scene.inactive(node, two)
    first = await node.ok(ListTeams(limit=2))
    assert first.items == [one, aside]
    assert first.next is not None
    rest = await node.ok(ListTeams(limit=2, cursor=first.next))
    assert (rest.items, rest.next) == ([three], None)
    assert (await node.ok(ListTeams(state=TeamState.INACTIVE))).items == [aside]


async def test_team_list_cursor_invalid(node: InProcessNode) -> None:
    await two_crews(node)
    onward = (await node.ok(ListTeams(limit=1))).next
    assert onward is not None
    for ask in (ListTeams(state=TeamState.ACTIVE, cursor=onward), ListTeams(cursor="nonsense")):
        assert await node.refused(ask) == refusals.stale_cursor()


def taking_part(agent: AgentMember, membership: TeamMembership) -> Participant:
    return Participant(
        name=agent.name,
        membership=membership,
        profile=agent.profile,
        ceiling=agent.ceiling,
        workspace=agent.workspace,
    )


async def test_team_show_ok(node: InProcessNode) -> None:
    """The Host first, then in the order they came; who has left is not shown. Each as its agent member is now."""
    crew = await scene.crew(node)
    change = UpdateAgent(
        agent_member_id=AgentMemberRef(crew.bob.id),
        expected_version=crew.bob.version,
        profile="command",
        ceiling=Ceiling.READ_ONLY,
        workspace=WorkspacePolicy.SHARED,
    )
    bob = await node.ok(change)
    guest = await scene.invited(node, crew.team, crew.eve, GuestRole.OBSERVER)
    dev = await scene.agent(node, "dev")
    await scene.left(node, await scene.joined(node, crew.team, dev))
    shown = await node.ok(ShowTeam(team_id=CREW))
    assert shown.team == crew.team
    assert shown.members == [
        taking_part(crew.ann, crew.host),
        taking_part(bob, crew.member),
        taking_part(crew.eve, guest),
    ]
    assert await node.ok(ShowTeam(team_id=TeamRef(crew.team.id))) == shown


async def test_a_member_that_cannot_be_read_is_left_out_and_named(node: InProcessNode) -> None:
    crew = await scene.crew(node)
    spoil(node.store.path, "memberships", crew.member.id)
    shown = await node.ok(ShowTeam(team_id=CREW))
    assert [each.name for each in shown.members] == ["ann"]
    assert await node.set_aside() == [f"memberships/{crew.member.id}"]


async def test_team_show_name_ambiguous(node: InProcessNode) -> None:
    assert await two_crews(node) == await node.refused(ShowTeam(team_id=CREW))


async def test_a_name_in_the_trash_is_free_again(node: InProcessNode) -> None:
    ann = await scene.agent(node)
    await scene.trashed(node, await scene.team(node, ann))
    assert await node.refused(ShowTeam(team_id=CREW)) == refusals.not_found("team", "crew")
    again = await scene.team(node, ann)
    assert (await node.ok(ShowTeam(team_id=CREW))).team == again


async def test_team_show_not_found(node: InProcessNode) -> None:
    refusal = await node.refused(ShowTeam(team_id=TeamRef("nothing")))
    assert refusal == refusals.not_found("team", "nothing")
    assert not isinstance(await node.follow(refusal), Refusal)


async def test_team_show_row_quarantined(node: InProcessNode) -> None:
    crew = await scene.crew(node)
    await refused_while_spoilt(node, ShowTeam(team_id=TeamRef(crew.team.id)), "teams", crew.team.id)


async def test_team_update_ok(node: InProcessNode) -> None:
    crew = await scene.crew(node)
    ask = UpdateTeam(team_id=CREW, expected_version=1, name="ship", description="sails")
    changed = await node.ok(ask, plane=Plane.HOST, actor=crew.ann.id)
    assert changed == attrs.evolve(
        crew.team, version=2, name="ship", description="sails", updated_at=changed.updated_at
    )
    cleared = await node.ok(UpdateTeam(team_id=TeamRef(crew.team.id), expected_version=2, description=""))
    assert cleared == attrs.evolve(changed, version=3, description="", updated_at=cleared.updated_at)


async def test_only_its_host_or_the_operator_runs_a_team(node: InProcessNode) -> None:
    crew = await scene.crew(node)
    await scene.team(node, crew.bob, "other")
    refusal = await node.refused(rename("crew"), plane=Plane.HOST, actor=crew.bob.id)
    assert refusal == refusals.not_run_by_caller(crew.team.id)


async def test_team_update_invalid_state_transition(node: InProcessNode) -> None:
    crew = await scene.crew(node)
    await scene.trashed(node, crew.team)
    refusal = await node.refused(rename(crew.team.id, version=3))
    assert refusal == refusals.in_the_trash(crew.team.id, 3)
    assert not isinstance(await node.follow(refusal), Refusal)
    await node.ok(rename(crew.team.id, version=4))


async def test_team_update_name_ambiguous(node: InProcessNode) -> None:
    assert await two_crews(node) == await node.refused(rename("crew"))


async def test_team_update_not_found(node: InProcessNode) -> None:
    assert await node.refused(rename("nothing")) == refusals.not_found("team", "nothing")


async def test_team_update_row_quarantined(node: InProcessNode) -> None:
    crew = await scene.crew(node)
    await refused_while_spoilt(node, rename(crew.team.id), "teams", crew.team.id)


async def test_team_update_version_conflict(node: InProcessNode) -> None:
    crew = await scene.crew(node)
    await node.ok(rename("crew", "ship"))
    assert await node.refused(rename("ship")) == refusals.conflict(f"team/{crew.team.id}", 2)


async def test_a_version_that_will_come_is_a_conflict_too(node: InProcessNode) -> None:
    crew = await scene.crew(node)
    assert await node.refused(rename("crew", version=2)) == refusals.conflict(f"team/{crew.team.id}", 1)
    ask = UpdateAgent(agent_member_id=AgentMemberRef("bob"), expected_version=2**63 - 1, name="rob")
    assert await node.refused(ask) == refusals.conflict(f"agent/{crew.bob.id}", 1)
