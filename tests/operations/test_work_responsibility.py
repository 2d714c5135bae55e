"""``work.assign``, ``claim``, ``release``: who answers for a Work, one test an outcome. None of them moves a phase."""

from __future__ import annotations

import attrs

from client.protocol.agent import ResumeAgent
from client.protocol.attempt import Custody, DeliveryCause, DeliveryState, ReportDelivery
from client.protocol.ids import AgentMemberRef
from client.protocol.membership import GuestRole, TeamMembership
from client.protocol.refusals import Code, Refusal
from client.protocol.session import SetClaims
from client.protocol.team_run import DrainTeamRun
from client.protocol.work import ClaimMode, Work
from client.protocol.work_asks import AssignWork, ClaimWork, ReleaseWork, StartWork
from tests.support import refusals, scene, works
from tests.support.node import InProcessNode
from tests.support.run import Stage, stage


def assign(work: Work, to: TeamMembership) -> AssignWork:
    return AssignWork(work_id=work.id, expected_version=work.version, membership_id=to.id)


def claim(work: Work) -> ClaimWork:
    return ClaimWork(work_id=work.id, expected_version=work.version)


def release(work: Work, reason: str = "") -> ReleaseWork:
    return ReleaseWork(work_id=work.id, expected_version=work.version, reason=reason)


async def dispatched(s: Stage) -> tuple[Work, Refusal]:
    """A Work whose delivery may have reached Bob's process, and what is said to whoever moves it."""
    work = await works.admitted(s)
    taken = ReportDelivery(work_id=work.id, fence=1, sup_gen=s.sup_gen, cause=DeliveryCause.TAKEN)
    await works.supervisor(s).ok(taken)
    said = "the attempt fence=1 may have reached its process; it ends, or is reviewed once it is lost"
    return work, Refusal(code=Code.DELIVERY_RECOVERY_UNCERTAIN, about=f"work/{work.id}", lifted_by=said)


async def closed(s: Stage) -> Refusal:
    """The run takes nothing new; what is said."""
    run = await s.node.ok(DrainTeamRun(team_run_id=s.run.id, expected_version=s.run.version))
    command = f"firm team-run resume {run.id} --expected-version {run.version}"
    return Refusal(code=Code.TEAM_RUN_NOT_OPEN, about=f"team-run/{run.id}", lifted_by=command)


async def host_retired(s: Stage) -> Refusal:
    """The Host of a team that was set aside may retire; what is said of it."""
    await scene.inactive(s.node, s.team)
    await scene.retired(s.node, s.ann.agent)
    return refusals.retired(s.ann.agent.id)


def without_place(s: Stage, membership: TeamMembership) -> Refusal:
    command = f"firm member-run add --team-run-id {s.run.id} --membership-id {membership.id}"
    said = f"give the member a place in the run: {command}"
    return Refusal(code=Code.MEMBER_RUN_CLOSED, about=f"membership/{membership.id}", lifted_by=said)


def not_for(work: Work, lifted_by: str) -> Refusal:
    return Refusal(code=Code.NOT_ELIGIBLE, about=f"work/{work.id}", lifted_by=lifted_by)


async def test_work_assign_ok(node: InProcessNode) -> None:
    """From nobody to a member and on to another, whose predecessor's waiting attempt is given up."""
    s = await stage(node)
    work = await s.work()
    bobs = await works.ann(s).ok(assign(work, s.bob.membership))
    assert bobs == attrs.evolve(work, version=2, owner_id=s.bob.membership.id, updated_at=bobs.updated_at)
    await s.admit(bobs, s.bob)
    cids = await works.ann(s).ok(assign(bobs, s.cid.membership))
    assert (cids.owner_id, cids.phase, cids.version) == (s.cid.membership.id, work.phase, 3)
    shown = await s.shown(cids)
    assert [(b.custody, b.reason) for b in shown.bindings] == [(Custody.RELEASED, "assigned to another member")]
    assert [d.state for d in shown.deliveries] == [DeliveryState.FAILED]


async def test_a_paused_member_may_be_given_responsibility(node: InProcessNode) -> None:
    s = await stage(node)
    await scene.paused(node, s.bob.agent)
    assert (await s.owned(s.bob)).owner_id == s.bob.membership.id


async def test_work_assign_agent_member_retired(node: InProcessNode) -> None:
    """The Host of a team that is set aside keeps its membership when it retires."""
    s = await stage(node)
    work = await s.work()
    said = await host_retired(s)
    assert await works.ann(s).refused(assign(work, s.ann.membership)) == said


async def test_work_assign_delivery_recovery_uncertain(node: InProcessNode) -> None:
    s = await stage(node)
    work, said = await dispatched(s)
    assert await works.ann(s).refused(assign(work, s.cid.membership)) == said


async def test_work_assign_member_run_closed(node: InProcessNode) -> None:
    s = await stage(node)
    dan = await scene.joined(node, s.team, await scene.agent(node, "dan"))
    work = await s.work()
    refusal = await works.ann(s).refused(assign(work, dan))
    assert refusal == without_place(s, dan)
    await node.follow(refusal)
    await works.ann(s).ok(assign(work, dan))


async def test_work_assign_not_eligible(node: InProcessNode) -> None:
    """No observer, nobody who was only invited, nobody of another role."""
    s = await stage(node)
    work = await s.work(required_role="reviewer")
    eyes = await scene.joined(node, s.team, await scene.agent(node, "eve"), GuestRole.OBSERVER)
    guest = await scene.invited(node, s.team, await scene.agent(node, "gus"))
    for who, said in (
        (eyes, "it is for active members; this one is active as observer"),
        (guest, "it is for active members; this one is invited as member"),
        (s.bob.membership, "it is for the role reviewer; this member is member-1"),
    ):
        assert await works.ann(s).refused(assign(work, who)) == not_for(work, said)


async def test_a_work_is_assigned_within_its_team(node: InProcessNode) -> None:
    s = await stage(node)
    dan = await scene.agent(node, "dan")
    host = await scene.host(node, await scene.team(node, dan, "other"))
    refusal = await works.ann(s).refused(assign(await s.work(), host))
    assert refusal == refusals.not_found("membership", host.id)


async def test_work_assign_team_run_not_open(node: InProcessNode) -> None:
    s = await stage(node)
    work = await s.work()
    said = await closed(s)
    refusal = await works.ann(s).refused(assign(work, s.bob.membership))
    assert refusal == attrs.evolve(said, lifted_by=f"it is draining, not planned or running: {said.lifted_by}")


async def test_work_assign_work_already_assigned(node: InProcessNode) -> None:
    s = await stage(node)
    work = await s.owned(s.bob)
    said = "nothing is left to do; it starts once it is delivered"
    assert await works.ann(s).refused(assign(work, s.bob.membership)) == Refusal(
        code=Code.WORK_ALREADY_ASSIGNED, about=f"work/{work.id}", lifted_by=said
    )


async def test_work_claim_ok(node: InProcessNode) -> None:
    s = await stage(node)
    work = await s.work(eligible_member_ids=[s.bob.agent.id])
    after = await works.bob(s).ok(claim(work))
    assert after == attrs.evolve(work, version=2, owner_id=s.bob.membership.id, updated_at=after.updated_at)
    assert (await s.shown(work)).bindings == []


async def test_a_claim_asked_again_with_its_key_is_the_same_claim(node: InProcessNode) -> None:
    s = await stage(node)
    work = await s.work()
    first = await works.bob(s).ok(claim(work), key="k")
    await works.ann(s).ok(release(first))
    before = node.rows()
    assert await works.bob(s).ok(claim(work), key="k") == first
    assert node.rows() == before
    other = await works.bob(s).refused(claim(first), key="k")
    assert other.code is Code.IDEMPOTENCY_KEY_REUSED


async def test_work_claim_agent_member_paused(node: InProcessNode) -> None:
    s = await stage(node)
    work = await s.work()
    agent = await scene.paused(node, s.bob.agent)
    refusal = await works.bob(s).refused(claim(work))
    assert refusal == refusals.paused(agent.id, agent.version)
    await node.ok(ResumeAgent(agent_member_id=AgentMemberRef(agent.id), expected_version=agent.version))
    await works.bob(s).ok(claim(work))


async def test_work_claim_agent_member_retired(node: InProcessNode) -> None:
    s = await stage(node)
    work = await s.work()
    said = await host_retired(s)
    assert await works.ann(s).refused(claim(work)) == said


async def test_work_claim_claim_lost(node: InProcessNode) -> None:
    """Whoever lost has lost, whatever version it saw; the owner is named."""
    s = await stage(node)
    work = await s.owned(s.bob)
    said = f"bob ({s.bob.membership.id}) answers for it; do none of its side effects"
    lost = Refusal(code=Code.CLAIM_LOST, about=f"work/{work.id}", lifted_by=said, current_version=2)
    for version in (1, 2, 9):
        assert await works.cid(s).refused(attrs.evolve(claim(work), expected_version=version)) == lost


async def test_work_claim_member_run_closed(node: InProcessNode) -> None:
    """A place that was closed behind an open session, as no operation does."""
    s = await stage(node)
    work = await s.work()
    node.execute("UPDATE member_runs SET coordination = 'closed' WHERE id = ?", s.bob.place.id)
    refusal = await works.bob(s).refused(claim(work))
    command = f"firm member-run reopen {s.bob.place.id} --expected-version {s.bob.place.version}"
    assert refusal == Refusal(
        code=Code.MEMBER_RUN_CLOSED,
        about=f"member-run/{s.bob.place.id}",
        lifted_by=f"open its place again: {command}",
    )
    await node.follow(refusal)
    await works.bob(s).ok(claim(work))


async def test_work_claim_not_eligible(node: InProcessNode) -> None:
    s = await stage(node)
    given = await s.work("given", claim_mode=ClaimMode.HOST_ASSIGN)
    cids = await s.work("cid's", eligible_member_ids=[s.cid.agent.id])
    reviewers = await s.work("reviewers'", required_role="reviewer")
    for work, said in (
        (given, "its Host assigns it; ask for it in a message"),
        (cids, f"it is for {s.cid.agent.id}"),
        (reviewers, "it is for the role reviewer; this member is member-1"),
    ):
        assert await works.bob(s).refused(claim(work)) == not_for(work, said)


async def test_a_session_that_takes_no_new_claims_claims_nothing_new(node: InProcessNode) -> None:
    s = await stage(node)
    given, work = await works.admitted(s), await s.work("other")
    await node.ok(SetClaims(session_id=s.bob.session.id, accepts_new_claims=False))
    said = "this session takes no new claims; its heartbeat and its outcome stay welcome"
    assert await works.bob(s).refused(claim(work)) == Refusal(
        code=Code.NOT_ELIGIBLE, about=f"session/{s.bob.session.id}", lifted_by=said
    )
    await works.bob(s).ok(StartWork(work_id=given.id, expected_version=given.version))


async def test_work_claim_team_run_not_open(node: InProcessNode) -> None:
    s = await stage(node)
    work = await s.work()
    said = await closed(s)
    refusal = await works.bob(s).refused(claim(work))
    assert refusal == attrs.evolve(said, lifted_by=f"it is draining, not running: {said.lifted_by}")
    await node.follow(refusal)
    await works.bob(s).ok(claim(work))


async def test_work_claim_work_already_assigned(node: InProcessNode) -> None:
    s = await stage(node)
    work = await s.owned(s.bob)
    said = "it is yours; it starts once it is delivered"
    assert await works.bob(s).refused(claim(work)) == Refusal(
        code=Code.WORK_ALREADY_ASSIGNED, about=f"work/{work.id}", lifted_by=said
    )


async def test_work_claim_work_not_ready(node: InProcessNode) -> None:
    """A prerequisite that is not accepted yet; and one that never will be, without which its Host goes on."""
    s = await stage(node)
    need, other = await s.submitted(s.cid, "need"), await s.work("other")
    work = await s.work(prerequisite_work_ids=[need.id])
    refusal = await works.bob(s).refused(claim(work))
    said = f"it waits for {need.id} to be accepted"
    assert refusal == Refusal(code=Code.WORK_NOT_READY, about=f"work/{work.id}", lifted_by=said)
    await works.accepted(s, need)
    two = await s.work("two", prerequisite_work_ids=[need.id, other.id])
    await works.cancelled(s, other)
    refusal = await works.bob(s).refused(claim(two))
    command = f"firm work replace-dependencies {two.id} --expected-version 1 --prerequisite-work-id {need.id}"
    assert refusal.lifted_by == f"{other.id} will not be accepted; its Host can go on without it: {command}"
    await works.bob(s).ok(claim(work))


async def test_work_release_ok(node: InProcessNode) -> None:
    """By its owner or its Host; an attempt that waited is given up."""
    s = await stage(node)
    work = await works.admitted(s)
    after = await works.bob(s).ok(release(work, "no time"))
    assert after == attrs.evolve(work, version=3, owner_id=None, reason="no time", updated_at=after.updated_at)
    shown = await s.shown(work)
    assert [(b.custody, b.reason) for b in shown.bindings] == [(Custody.RELEASED, "no time")]
    assert [(d.state, d.failure) for d in shown.deliveries] == [(DeliveryState.FAILED, "no time")]
    again = await works.cid(s).ok(claim(after))
    assert (await works.ann(s).ok(release(again))).owner_id is None


async def test_a_work_is_released_by_nobody_else(node: InProcessNode) -> None:
    s = await stage(node)
    work = await s.owned(s.bob)
    refusal = await works.cid(s).refused(release(work))
    assert refusal.code is Code.NOT_AUTHORIZED


async def test_work_release_delivery_recovery_uncertain(node: InProcessNode) -> None:
    s = await stage(node)
    work, said = await dispatched(s)
    assert await works.bob(s).refused(release(work)) == said


async def test_work_release_work_not_assigned(node: InProcessNode) -> None:
    s = await stage(node)
    work = await s.work()
    said = "nobody answers for it; there is nothing to give back"
    assert await works.ann(s).refused(release(work)) == Refusal(
        code=Code.WORK_NOT_ASSIGNED, about=f"work/{work.id}", lifted_by=said
    )
