"""What went wrong in other systems of this kind and must not here, where no other test says it already."""

from __future__ import annotations

from client.protocol.membership import LeaveTeam, ShowMembership
from client.protocol.operation import Plane
from client.protocol.refusals import Code, Refusal
from client.protocol.work import Phase, Work
from client.protocol.work_asks import AcceptWork, RequestChanges, ShowWork
from tests.support import scene, works
from tests.support.node import InProcessNode
from tests.support.run import Member, Stage, stage

#: Operations of the systems before this one.
RETIRED = (
    "message.deliver",
    "team.message",
    "work.complete",
    "work.done",
    "task.claim",
    "session.resume",
    "run.accept",
)


async def left(s: Stage, who: Member) -> None:
    shown = await s.node.ok(ShowMembership(membership_id=who.membership.id))
    await s.node.ok(LeaveTeam(membership_id=who.membership.id, expected_version=shown.membership.version))


async def now(s: Stage, work: Work) -> Work:
    return (await s.node.ok(ShowWork(work_id=work.id))).work


async def test_two_decisions_about_one_version_are_one_decision(node: InProcessNode) -> None:
    """Asked in one batch, one after the other: the second is told the version that stands."""
    s = await stage(node)
    work = await s.submitted(s.bob)
    receipt = await s.receipt(work)
    asked = [
        AcceptWork(work_id=work.id, expected_version=work.version, receipt_id=receipt),
        RequestChanges(work_id=work.id, expected_version=work.version, reason="slow"),
    ]
    both = [node.send(each, plane=Plane.HOST, actor=s.ann.session) for each in asked]
    first, second = [await each.outcome() for each in both]
    assert isinstance(first, Work)
    assert isinstance(second, Refusal)
    assert (second.code, second.current_version) == (Code.VERSION_CONFLICT, first.version)
    assert (await now(s, work)).version == work.version + 1


async def test_two_members_of_one_name_are_two_and_what_one_leaves_is_nobodys(node: InProcessNode) -> None:
    """In the transaction in which it leaves. What it has begun, and what others have, stays."""
    s = await stage(node)
    kept, begun, waits = await s.owned(s.cid, "kept"), await s.started(s.bob, "begun"), await s.owned(s.bob, "waits")
    twin = await scene.agent(node, "bob")
    assert twin.id != s.bob.agent.id
    await left(s, s.bob)
    after = await now(s, waits)
    assert (after.owner_id, after.phase, after.reason) == (None, Phase.OPEN, "its member left the team")
    assert [(await now(s, each)).owner_id for each in (kept, begun)] == [s.cid.membership.id, s.bob.membership.id]
    submitted = await s.submit(begun, s.bob)
    assert (await works.accepted(s, submitted)).phase is Phase.CLOSED


async def test_an_operation_of_another_system_is_unknown_and_changes_nothing(node: InProcessNode) -> None:
    await stage(node)
    before = node.rows()
    for op in RETIRED:
        refusal = await node.begin(op, {}, key="k").outcome()
        assert isinstance(refusal, Refusal)
        assert (refusal.code, refusal.about) == (Code.UNKNOWN_OPERATION, op)
    assert node.rows() == before


async def test_a_member_is_not_asked_again_for_what_is_closed(node: InProcessNode) -> None:
    """Who comes back and begins where it stopped is told that the Work is closed."""
    s = await stage(node)
    work = await works.accepted(s, await s.submitted(s.bob))
    for name in ("start", "block", "submit", "claim"):
        refusal = await works.bob(s).refused(works.VERBS[name].request(s, work))
        assert refusal.code in {Code.INVALID_STATE_TRANSITION, Code.FENCE_STALE, Code.WORK_ALREADY_ASSIGNED}, name
    assert await now(s, work) == work
