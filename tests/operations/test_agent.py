"""``agent.*``, one test an outcome that the table declares, and what else must hold of an agent member."""

from __future__ import annotations

import attrs

from client.protocol.agent import (
    AgentMember,
    AgentStatus,
    CreateAgent,
    ListAgents,
    PauseAgent,
    ResumeAgent,
    RetireAgent,
    ShowAgent,
    UpdateAgent,
    WorkspacePolicy,
)
from client.protocol.ceiling import Ceiling
from client.protocol.ids import AgentMemberRef
from client.protocol.membership import ListMemberships, MembershipState
from client.protocol.refusals import Code, Refusal
from tests.support import refusals, scene
from tests.support.node import InProcessNode
from tests.support.refusals import refused_while_spoilt
from tests.support.spoil import spoil

NOBODY = AgentMemberRef("nobody")
ANN = AgentMemberRef("ann")


def pause(who: str, version: int = 1) -> PauseAgent:
    return PauseAgent(agent_member_id=AgentMemberRef(who), expected_version=version)


def resume(who: str, version: int = 2) -> ResumeAgent:
    return ResumeAgent(agent_member_id=AgentMemberRef(who), expected_version=version)


def retire(who: str, version: int = 1) -> RetireAgent:
    return RetireAgent(agent_member_id=AgentMemberRef(who), expected_version=version)


def rename(who: str, name: str = "new", version: int = 1) -> UpdateAgent:
    return UpdateAgent(agent_member_id=AgentMemberRef(who), expected_version=version, name=name)


async def two_anns(node: InProcessNode) -> Refusal:
    """Two members of one name, and what is said to whoever uses it."""
    one, other = await scene.agent(node, "ann"), await scene.agent(node, "ann")
    return refusals.ambiguous("agent", "ann", one.id, other.id)


async def test_agent_create_ok(node: InProcessNode) -> None:
    ask = CreateAgent(
        name="Ann",
        description="reads\neverything",
        role="reviewer",
        capabilities=["python", "sql"],
        skills=["review"],
        profile="claude",
        model="opus",
        workspace=WorkspacePolicy.STAGED,
        ceiling=Ceiling.READ_ONLY,
    )
    made = await node.ok(ask)
    assert made == AgentMember(
        id=made.id,
        version=1,
        status=AgentStatus.ACTIVE,
        created_by="operator",
        created_at=made.created_at,
        updated_at=made.created_at,
        **attrs.asdict(ask, recurse=False),
    )
    assert await node.ok(ShowAgent(agent_member_id=AgentMemberRef(made.id))) == made


async def test_two_agents_may_have_one_name(node: InProcessNode) -> None:
    assert (await scene.agent(node, "ann")).id != (await scene.agent(node, "ann")).id


async def test_agent_list_ok(node: InProcessNode) -> None:
    ann, bob, eve = [await scene.agent(node, name) for name in ("ann", "bob", "eve")]
    resting = await scene.paused(node, bob)
    first = await node.ok(ListAgents(limit=2))
    assert first.items == [ann, resting]
    assert first.next is not None
    rest = await node.ok(ListAgents(limit=2, cursor=first.next))
    assert (rest.items, rest.next) == ([eve], None)
    assert (await node.ok(ListAgents(status=AgentStatus.PAUSED))).items == [resting]


async def test_a_list_names_what_it_cannot_read_and_goes_on(node: InProcessNode) -> None:
    ann, bob = await scene.agent(node, "ann"), await scene.agent(node, "bob")
    spoil(node.store.path, "agents", ann.id)
    assert (await node.ok(ListAgents())).items == [bob]


async def test_agent_list_cursor_invalid(node: InProcessNode) -> None:
    for name in ("ann", "bob"):
        await scene.agent(node, name)
    onward = (await node.ok(ListAgents(limit=1))).next
    assert onward is not None
    other_query = ListAgents(limit=1, status=AgentStatus.ACTIVE, cursor=onward)
    for ask in (other_query, ListAgents(cursor="nonsense"), ListAgents(cursor=onward[:-1])):
        assert await node.refused(ask) == refusals.stale_cursor()


async def test_agent_pause_ok(node: InProcessNode) -> None:
    ann = await scene.agent(node)
    resting = await node.ok(pause("ann"))
    assert resting == attrs.evolve(ann, version=2, status=AgentStatus.PAUSED, updated_at=resting.updated_at)
    assert resting.updated_at > ann.updated_at


async def test_agent_pause_invalid_state_transition(node: InProcessNode) -> None:
    ann = await scene.paused(node, await scene.agent(node))
    expected = refusals.no_move(f"agent/{ann.id}", "paused", "active")
    assert await node.refused(pause(ann.id, 2)) == expected
    await node.ok(retire(ann.id, 2))
    assert await node.refused(pause(ann.id, 3)) == refusals.no_move(f"agent/{ann.id}", "retired", "active")


async def test_agent_pause_name_ambiguous(node: InProcessNode) -> None:
    assert await two_anns(node) == await node.refused(pause("ann"))


async def test_agent_pause_not_found(node: InProcessNode) -> None:
    assert await node.refused(pause("nobody")) == refusals.not_found("agent", "nobody")


async def test_agent_pause_row_quarantined(node: InProcessNode) -> None:
    ann = await scene.agent(node)
    await refused_while_spoilt(node, pause(ann.id), "agents", ann.id)


async def test_agent_pause_version_conflict(node: InProcessNode) -> None:
    ann = await scene.agent(node)
    await node.ok(rename(ann.id))
    assert await node.refused(pause(ann.id)) == refusals.conflict(f"agent/{ann.id}", 2)


async def test_agent_resume_ok(node: InProcessNode) -> None:
    ann = await scene.paused(node, await scene.agent(node))
    back = await node.ok(resume("ann"))
    assert back == attrs.evolve(ann, version=3, status=AgentStatus.ACTIVE, updated_at=back.updated_at)


async def test_agent_resume_invalid_state_transition(node: InProcessNode) -> None:
    ann = await scene.agent(node)
    assert await node.refused(resume(ann.id, 1)) == refusals.no_move(f"agent/{ann.id}", "active", "paused")
    await node.ok(retire(ann.id))
    assert await node.refused(resume(ann.id, 2)) == refusals.no_move(f"agent/{ann.id}", "retired", "paused")


async def test_agent_resume_name_ambiguous(node: InProcessNode) -> None:
    assert await two_anns(node) == await node.refused(resume("ann"))


async def test_agent_resume_not_found(node: InProcessNode) -> None:
    assert await node.refused(resume("nobody")) == refusals.not_found("agent", "nobody")


async def test_agent_resume_row_quarantined(node: InProcessNode) -> None:
    ann = await scene.paused(node, await scene.agent(node))
    await refused_while_spoilt(node, resume(ann.id), "agents", ann.id)


async def test_agent_resume_version_conflict(node: InProcessNode) -> None:
    ann = await scene.paused(node, await scene.agent(node))
    assert await node.refused(resume(ann.id, 1)) == refusals.conflict(f"agent/{ann.id}", 2)


async def test_agent_retire_ok(node: InProcessNode) -> None:
    """It leaves every team but the one that it hosts and that is set aside, and gives up invitations."""
    crew = await scene.crew(node)
    dev = await scene.agent(node, "dev")
    other = await scene.team(node, dev, "other")
    invitation = await scene.invited(node, other, crew.bob)
    aside = await scene.inactive(node, await scene.team(node, crew.bob, "aside"))
    gone = await node.ok(retire("bob"))
    assert gone == attrs.evolve(crew.bob, version=2, status=AgentStatus.RETIRED, updated_at=gone.updated_at)
    parts = (await node.ok(ListMemberships(agent_member_id=AgentMemberRef(crew.bob.id)))).items
    assert {part.id: part.state for part in parts} == {
        crew.member.id: MembershipState.INACTIVE,
        invitation.id: MembershipState.INACTIVE,
        (await scene.host(node, aside)).id: MembershipState.ACTIVE,
    }


async def test_agent_retire_invalid_state_transition(node: InProcessNode) -> None:
    ann = await scene.retired(node, await scene.agent(node))
    expected = refusals.no_move(f"agent/{ann.id}", "retired", "active or paused")
    assert await node.refused(retire(ann.id, 2)) == expected


async def test_agent_retire_name_ambiguous(node: InProcessNode) -> None:
    assert await two_anns(node) == await node.refused(retire("ann"))


async def test_agent_retire_not_found(node: InProcessNode) -> None:
    assert await node.refused(retire("nobody")) == refusals.not_found("agent", "nobody")


async def test_agent_retire_row_quarantined(node: InProcessNode) -> None:
    ann = await scene.agent(node)
    await refused_while_spoilt(node, retire(ann.id), "agents", ann.id)


async def test_agent_retire_overlooks_no_membership_that_it_cannot_read(node: InProcessNode) -> None:
    crew = await scene.crew(node)
    await refused_while_spoilt(node, retire(crew.bob.id), "memberships", crew.member.id)


async def test_agent_retire_sole_host(node: InProcessNode) -> None:
    crew = await scene.crew(node)
    refusal = await node.refused(retire("ann"))
    assert refusal == Refusal(
        code=Code.SOLE_HOST,
        about=f"team/{crew.team.id}",
        lifted_by="hand the team over or deactivate it first: "
        f"firm team hand-over {crew.team.id} --expected-version 1 --to-agent-id MEMBER",
    )
    assert not isinstance(await node.follow(refusal, MEMBER="bob"), Refusal)
    assert (await node.ok(retire("ann"))).status is AgentStatus.RETIRED


async def test_agent_retire_version_conflict(node: InProcessNode) -> None:
    ann = await scene.paused(node, await scene.agent(node))
    assert await node.refused(retire(ann.id)) == refusals.conflict(f"agent/{ann.id}", 2)


async def test_agent_show_ok(node: InProcessNode) -> None:
    ann = await scene.agent(node)
    for ref in (ann.id, "ann"):
        assert await node.ok(ShowAgent(agent_member_id=AgentMemberRef(ref))) == ann


async def test_a_name_of_the_retired_is_free_again(node: InProcessNode) -> None:
    await scene.retired(node, await scene.agent(node, "ann"))
    ann = await scene.agent(node, "ann")
    assert await node.ok(ShowAgent(agent_member_id=ANN)) == ann


async def test_agent_show_name_ambiguous(node: InProcessNode) -> None:
    assert await two_anns(node) == await node.refused(ShowAgent(agent_member_id=ANN))


async def test_agent_show_not_found(node: InProcessNode) -> None:
    refusal = await node.refused(ShowAgent(agent_member_id=NOBODY))
    assert refusal == refusals.not_found("agent", "nobody")
    assert not isinstance(await node.follow(refusal), Refusal)


async def test_agent_show_row_quarantined(node: InProcessNode) -> None:
    ann = await scene.agent(node)
    await refused_while_spoilt(node, ShowAgent(agent_member_id=AgentMemberRef(ann.id)), "agents", ann.id)


async def test_a_name_with_one_unreadable_owner_fits_nobody_else(node: InProcessNode) -> None:
    """Else a reference that was refused as ambiguous would quietly come to mean the other one."""
    one, _ = await scene.agent(node, "ann"), await scene.agent(node, "ann")
    spoil(node.store.path, "agents", one.id)
    assert await node.refused(pause("ann")) == refusals.unreadable(f"agents/{one.id}")


async def test_agent_update_ok(node: InProcessNode) -> None:
    ann = await scene.agent(node)
    given = {
        "name": "Anna",
        "description": "",
        "role": "builder",
        "profile": "claude",
        "model": "",
        "workspace": WorkspacePolicy.SHARED,
        "ceiling": Ceiling.FULL_ACCESS,
    }
    changed = await node.ok(UpdateAgent(agent_member_id=ANN, expected_version=1, **given))  # type: ignore[arg-type]
    assert changed == attrs.evolve(ann, version=2, updated_at=changed.updated_at, **given)  # type: ignore[arg-type]
    kept = await node.ok(UpdateAgent(agent_member_id=AgentMemberRef(ann.id), expected_version=2, role=""))
    assert kept == attrs.evolve(changed, version=3, updated_at=kept.updated_at, role="")


async def test_agent_update_agent_member_retired(node: InProcessNode) -> None:
    ann = await scene.retired(node, await scene.agent(node))
    assert await node.refused(rename(ann.id, version=2)) == refusals.retired(ann.id)


async def test_agent_update_name_ambiguous(node: InProcessNode) -> None:
    assert await two_anns(node) == await node.refused(rename("ann"))


async def test_agent_update_name_taken(node: InProcessNode) -> None:
    crew = await scene.crew(node)
    assert await node.refused(rename("bob", "ann")) == Refusal(
        code=Code.NAME_TAKEN,
        about=f"agent/{crew.ann.id}",
        lifted_by=f"team {crew.team.id} has an active member called 'ann'; give one of the two another name",
    )
    await node.ok(rename("ann", "anna"))
    await node.ok(rename("bob", "ann"))


async def test_a_name_is_taken_only_among_those_who_take_part(node: InProcessNode) -> None:
    """Who is invited is no active member yet; ``membership.join`` looks again."""
    crew = await scene.crew(node)
    await scene.invited(node, crew.team, crew.eve)
    assert (await node.ok(rename("eve", "bob"))).name == "bob"


async def test_agent_update_not_found(node: InProcessNode) -> None:
    assert await node.refused(rename("nobody")) == refusals.not_found("agent", "nobody")


async def test_agent_update_row_quarantined(node: InProcessNode) -> None:
    ann = await scene.agent(node)
    await refused_while_spoilt(node, rename(ann.id), "agents", ann.id)


async def test_agent_update_version_conflict(node: InProcessNode) -> None:
    ann = await scene.paused(node, await scene.agent(node))
    assert await node.refused(rename(ann.id)) == refusals.conflict(f"agent/{ann.id}", 2)


async def test_an_id_is_read_before_a_name(node: InProcessNode) -> None:
    ann = await scene.agent(node, "ann")
    await scene.agent(node, ann.id)
    assert (await node.ok(ShowAgent(agent_member_id=AgentMemberRef(ann.id)))).name == "ann"
