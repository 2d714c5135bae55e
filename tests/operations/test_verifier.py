"""Who may be the verifier of a Work: named by its Host, in no part of it, and kept out of it while named."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from client.protocol.ids import MembershipId
from client.protocol.membership import GuestRole
from client.protocol.operation import Plane
from client.protocol.refusals import Code, Refusal
from client.protocol.team_run import AddMemberRun
from client.protocol.work import Work
from client.protocol.work_asks import AssignWork, ClaimWork, CreateWork, UpdateWork
from tests.support import mail, refusals, scene, works
from tests.support.node import InProcessNode
from tests.support.run import Member, Stage, stage


def name(work: Work, who: str) -> UpdateWork:
    return UpdateWork(work_id=work.id, expected_version=work.version, verifier_id=MembershipId(who))


def create(s: Stage, who: str) -> CreateWork:
    return CreateWork(team_run_id=s.run.id, title="new", completion_criteria="it works", verifier_id=MembershipId(who))


async def both(s: Stage, who: str, refusal: Refusal, work: Work) -> None:
    """What a Host is told who names that member, of a Work that is there and of a new one."""
    assert await works.ann(s).refused(name(work, who)) == refusal
    if refusal.about == f"work/{work.id}":
        refusal = Refusal(code=refusal.code, about="verifier_id", lifted_by=refusal.lifted_by)
    assert await works.ann(s).refused(create(s, who)) == refusal


def not_for(work: Work, said: str) -> Refusal:
    return Refusal(code=Code.NOT_ELIGIBLE, about=f"work/{work.id}", lifted_by=said)


async def test_a_host_names_a_verifier_with_a_work_or_later_and_takes_it_away(node: InProcessNode) -> None:
    s = await stage(node)
    made = await works.ann(s).ok(create(s, s.bob.membership.id))
    assert (made.verifier_id, (await s.shown(made)).verifier) == (s.bob.membership.id, "bob")
    other = await works.ann(s).ok(name(made, s.cid.membership.id))
    assert (other.version, other.verifier_id) == (2, s.cid.membership.id)
    free = await works.ann(s).ok(UpdateWork(work_id=made.id, expected_version=2, remove_verifier=True))
    assert (free.version, free.verifier_id) == (3, None)


async def test_a_verifier_is_not_named_and_taken_away_at_once(node: InProcessNode) -> None:
    s = await stage(node)
    work = await s.work()
    ask = UpdateWork(
        work_id=work.id, expected_version=1, verifier_id=MembershipId(s.cid.membership.id), remove_verifier=True
    )
    assert await works.ann(s).refused(ask) == Refusal(
        code=Code.MALFORMED, about="verifier_id", lifted_by="name another, or take it away; not both"
    )


async def test_a_member_names_no_verifier(node: InProcessNode) -> None:
    """That is a duty for another; who accepts gives it."""
    s = await stage(node)
    refusal = await works.bob(s).refused(create(s, s.cid.membership.id))
    said = "name no verifier; its Host names one, by an update, once it is there"
    assert refusal == Refusal(code=Code.NOT_ELIGIBLE, about="verifier_id", lifted_by=said)


async def test_a_verifier_is_a_member_of_the_same_team(node: InProcessNode) -> None:
    s = await stage(node)
    eve = await scene.agent(node, "eve")
    stranger = await scene.host(node, await scene.team(node, eve, "others"))
    work = await s.work()
    for who in ("nobody", stranger.id):
        await both(s, who, refusals.not_found("membership", who), work)


async def test_work_update_not_eligible(node: InProcessNode) -> None:
    """The Host, who accepts; an observer; one that left; its owner; and who made an attempt at it."""
    s = await stage(node)
    work = await s.submitted(s.bob)
    eyes = await scene.joined(node, s.team, await scene.agent(node, "eyes"), GuestRole.OBSERVER)
    gone = await scene.left(node, await scene.joined(node, s.team, await scene.agent(node, "gone")))
    for who, what in (
        (s.ann.membership.id, "active as host"),
        (eyes.id, "active as observer"),
        (gone.id, "inactive as member"),
    ):
        await both(s, who, not_for(work, f"an active member verifies; this one is {what}"), work)
    said = "it answers for the Work itself; name another member, or give the Work to another first"
    assert await works.ann(s).refused(name(work, s.bob.membership.id)) == not_for(work, said)


async def _given_on(s: Stage) -> Work:
    """Bob's process was lost over it, and it was given to Cid."""
    lost = await works.orphaned(s)
    recover = works.VERBS["recover"].request(s, lost)
    open_ = await works.operator(s).ok(recover)
    ask = AssignWork(work_id=open_.id, expected_version=open_.version, membership_id=s.cid.membership.id)
    return await works.ann(s).ok(ask)


async def test_who_made_an_attempt_at_a_work_does_not_verify_it(node: InProcessNode) -> None:
    """Under no later membership either."""
    s = await stage(node)
    work = await _given_on(s)
    said = "it made the attempt fence=1 at it; name a member that never made one"
    assert await works.ann(s).refused(name(work, s.bob.membership.id)) == not_for(work, said)
    await scene.left(node, s.bob.membership)
    again = await scene.joined(node, s.team, s.bob.agent)
    await node.ok(AddMemberRun(team_run_id=s.run.id, membership_id=again.id))
    assert await works.ann(s).refused(name(work, again.id)) == not_for(work, said)
    await works.ann(s).ok(name(await s.work("other"), again.id))


async def test_work_create_not_eligible_as_a_verifier(node: InProcessNode) -> None:
    s = await stage(node)
    refusal = await works.ann(s).refused(create(s, s.ann.membership.id))
    assert (refusal.code, refusal.about) == (Code.NOT_ELIGIBLE, "verifier_id")


async def _outside(s: Stage) -> Member:
    """Dan is in the team and has no place in the run."""
    dan = await mail.also(s, "dan")
    s.node.execute("UPDATE member_runs SET coordination = 'retired' WHERE id = ?", dan.place.id)
    return dan


async def test_work_update_member_run_closed(node: InProcessNode) -> None:
    """Where it has no place it is given one; one that is closed is opened."""
    s = await stage(node)
    dan, work = await _outside(s), await s.work()
    refusal = await works.ann(s).refused(name(work, dan.membership.id))
    command = f"firm member-run add --team-run-id {s.run.id} --membership-id {dan.membership.id}"
    assert refusal == Refusal(
        code=Code.MEMBER_RUN_CLOSED,
        about=f"membership/{dan.membership.id}",
        lifted_by=f"give the member a place in the run: {command}",
    )
    await node.follow(refusal)
    work = await works.ann(s).ok(name(work, dan.membership.id))
    node.execute("UPDATE member_runs SET coordination = 'closed' WHERE id = ?", s.cid.place.id)
    refusal = await works.ann(s).refused(name(work, s.cid.membership.id))
    assert (refusal.code, refusal.about) == (Code.MEMBER_RUN_CLOSED, f"member-run/{s.cid.place.id}")
    await node.follow(refusal)
    await works.ann(s).ok(name(work, s.cid.membership.id))


async def test_work_create_member_run_closed(node: InProcessNode) -> None:
    s = await stage(node)
    dan = await _outside(s)
    refusal = await works.ann(s).refused(create(s, dan.membership.id))
    assert (refusal.code, refusal.about) == (Code.MEMBER_RUN_CLOSED, f"membership/{dan.membership.id}")
    await node.follow(refusal)
    await works.ann(s).ok(create(s, dan.membership.id))


async def _claimed(s: Stage, work: Work, _: MembershipId) -> Refusal:
    return await works.cid(s).refused(ClaimWork(work_id=work.id, expected_version=work.version))


async def _assigned(s: Stage, work: Work, who: MembershipId) -> Refusal:
    return await works.ann(s).refused(AssignWork(work_id=work.id, expected_version=work.version, membership_id=who))


@pytest.mark.parametrize("how", [_claimed, _assigned])
async def test_a_verifier_neither_claims_nor_is_given_its_work(
    node: InProcessNode, how: Callable[[Stage, Work, MembershipId], Awaitable[Refusal]]
) -> None:
    """Until the Host names another, or none."""
    s = await stage(node)
    work = await s.work(verifier_id=s.cid.membership.id)
    command = f"firm work update {work.id} --expected-version 1"
    said = (
        f"this member is its verifier; its Host names another, or none: {command} --verifier-id MEMBERSHIP, or "
        f"{command} --remove-verifier"
    )
    assert await how(s, work, s.cid.membership.id) == not_for(work, said)
    free = await works.ann(s).ok(UpdateWork(work_id=work.id, expected_version=1, remove_verifier=True))
    ask = ClaimWork(work_id=work.id, expected_version=free.version)
    assert (await works.cid(s).ok(ask)).owner_id == s.cid.membership.id


async def test_a_verifier_is_not_given_its_work_under_a_later_membership(node: InProcessNode) -> None:
    s = await stage(node)
    work = await s.work(verifier_id=s.cid.membership.id)
    await scene.left(node, s.cid.membership)
    again = await scene.joined(node, s.team, s.cid.agent)
    await node.ok(AddMemberRun(team_run_id=s.run.id, membership_id=again.id))
    assert (await _assigned(s, work, again.id)).code is Code.NOT_ELIGIBLE


async def test_the_operator_names_one_where_it_is_the_host(node: InProcessNode) -> None:
    """In a new Work always: it is who describes what is to be done."""
    s = await stage(node)
    made = await node.ok(create(s, s.cid.membership.id))
    assert (await node.refused(name(made, s.bob.membership.id), plane=Plane.OPERATOR)).about == f"team/{s.team.id}"
    node.execute("UPDATE agents SET profile = 'me' WHERE id = ?", s.ann.agent.id)
    assert (await node.ok(name(made, s.bob.membership.id))).verifier_id == s.bob.membership.id
