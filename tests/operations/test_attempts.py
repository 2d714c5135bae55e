"""Attempts: fences rise, one is live, an old generation changes nothing, an orphan belongs to its own session only."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import apsw
import attrs
import pytest

from client.protocol.attempt import AdmitWork, Binding, Custody, HeartbeatWork, RecoverWork
from client.protocol.membership import MembershipState, ShowMembership
from client.protocol.operation import Plane, Request
from client.protocol.refusals import Code, Refusal
from client.protocol.session import AgentSession, OpenSession, ReportSession, SessionCause
from client.protocol.team_run import TakeTeamRun
from client.protocol.work import Phase, Work
from client.protocol.work_asks import BlockWork, ReleaseWork, StartWork, SubmitWork
from daemon.operations import attempt
from tests.support import scene, works
from tests.support.node import InProcessNode
from tests.support.run import Stage, session, stage
from tests.support.works import VERBS


async def superseded(s: Stage) -> AgentSession:
    """Bob's next session; the one before it is over."""
    ask = OpenSession(member_run_id=s.bob.place.id, sup_gen=s.sup_gen, supersede=True)
    opened = await works.supervisor(s).ok(ask)
    ready = ReportSession(
        session_id=opened.id, session_gen=opened.session_gen, sup_gen=s.sup_gen, cause=SessionCause.READY
    )
    return await works.supervisor(s).ok(ready)


async def expired(s: Stage) -> Binding:
    """The lease of the one live attempt ran out."""
    (found,) = [row for row in s.node.rows()["bindings"] if "claimed" in row]
    binding = await s.node.store.write(lambda tx: attempt.expire(tx, s.node.call(), found[1]))
    assert isinstance(binding, Binding)
    return binding


async def binding(s: Stage, work: Work) -> Binding:
    return (await s.shown(work)).bindings[-1]


def as_owner(work: Work) -> list[Request[Any]]:
    """Everything that an attempt says."""
    return [
        StartWork(work_id=work.id, expected_version=work.version),
        BlockWork(work_id=work.id, expected_version=work.version, reason="no key"),
        SubmitWork(work_id=work.id, expected_version=work.version, result_summary="done", report_only=True),
        HeartbeatWork(work_id=work.id),
    ]


async def test_a_fence_is_the_last_one_plus_one_however_the_last_attempt_ended(node: InProcessNode) -> None:
    """Given up, completed, handed over; of another Work it begins at one again."""
    s = await stage(node)
    work = await works.admitted(s)
    work = await works.bob(s).ok(ReleaseWork(work_id=work.id, expected_version=work.version))
    work = await works.ann(s).ok(VERBS["assign"].request(s, work))
    await s.admit(work, s.bob)
    work = await s.submit(await s.start(work, s.bob), s.bob)
    work = await works.ann(s).ok(VERBS["request-changes"].request(s, work))
    await s.admit(work, s.bob)
    work = await s.start(work, s.bob)
    await works.lost(s, s.bob)
    request: Any = VERBS["recover"].request(s, work)
    work = await node.ok(attrs.evolve(request, fence=3))
    after = await superseded(s)
    ask = AdmitWork(work_id=work.id, session_id=after.id, sup_gen=s.sup_gen)
    last = await works.supervisor(s).ok(ask)
    assert (last.fence, last.session_gen) == (4, 2)
    custodies = [(b.fence, b.custody.value) for b in (await s.shown(work)).bindings]
    assert custodies == [(1, "released"), (2, "completed"), (3, "handed_over"), (4, "claimed")]
    assert (await s.admit(await s.owned(s.cid, "other"), s.cid)).fence == 1


async def test_a_fence_is_never_below_what_a_restored_store_issued(node: InProcessNode) -> None:
    s = await stage(node)
    work = await s.owned(s.bob)
    node.execute("UPDATE node SET generation_floor = 1000")
    assert (await s.admit(work, s.bob)).fence == 1001


async def test_two_admissions_of_one_batch_make_one_attempt(node: InProcessNode) -> None:
    s = await stage(node)
    work = await s.owned(s.bob)
    ask = AdmitWork(work_id=work.id, session_id=s.bob.session.id, sup_gen=s.sup_gen)
    sent = [node.send(ask, plane=Plane.SUPERVISOR, actor=s.run.id, key=f"k{n}") for n in range(2)]
    first, second = [await each.outcome() for each in sent]
    assert isinstance(first, Binding)
    assert isinstance(second, Refusal)
    assert second.code is Code.WORK_BINDING_LIVE


async def test_the_table_itself_takes_one_live_attempt_a_work(node: InProcessNode) -> None:
    s = await stage(node)
    work = await works.admitted(s)
    columns = "team_run_id, work_id, membership_id, member_run_id, run_gen, session_id, session_gen, lease_ms, reason"
    for custody in ("claimed", "orphaned_unverified"):
        with pytest.raises(apsw.ConstraintError):
            node.execute(
                f"INSERT INTO bindings (id, version, fence, custody, created_at, updated_at, {columns}) "  # noqa: S608
                f"SELECT 'twin', 1, 2, '{custody}', 1, 1, {columns} FROM bindings WHERE work_id = ?",
                work.id,
            )


async def test_admission_lease_delivery_and_loss_never_change_the_work(node: InProcessNode) -> None:
    """So the version that a session was told is good for its start."""
    s = await stage(node)
    work = await s.owned(s.bob)
    await s.admit(work, s.bob)
    await works.supervisor(s).ok(VERBS["delivery"].request(s, work))
    await works.bob(s).ok(HeartbeatWork())
    await expired(s)
    await works.bob(s).ok(HeartbeatWork())
    assert (await s.shown(work)).work == work
    await works.bob(s).ok(StartWork(work_id=work.id, expected_version=work.version))


async def test_a_session_of_an_old_generation_changes_nothing(node: InProcessNode) -> None:
    """Neither when it begins nor when it hands in: its attempt is orphaned, it is told to stop."""
    s = await stage(node)
    for work in (await works.admitted(s), await s.started(s.cid, "other")):
        who = s.bob if work.owner_id == s.bob.membership.id else s.cid
        ask = OpenSession(member_run_id=who.place.id, sup_gen=s.sup_gen, supersede=True)
        await works.supervisor(s).ok(ask)
        for request in as_owner(work):
            refusal = await works.member(s, who).refused(request)
            assert (refusal.code, refusal.about) == (
                Code.AGENT_SESSION_GENERATION_FENCED,
                f"session/{who.session.id}",
            )
        assert (await binding(s, work)).custody is Custody.ORPHANED_UNVERIFIED


async def test_a_supervisor_of_an_old_generation_changes_nothing(node: InProcessNode) -> None:
    """What it prepared is settled by the next one."""
    s = await stage(node)
    work, other = await works.admitted(s), await s.owned(s.cid, "other")
    submitted = await s.submitted(s.ann, "third", checks=["unit=make unit"])
    run = await works.supervisor(s).ok(TakeTeamRun(team_run_id=s.run.id))
    old = [
        AdmitWork(work_id=other.id, session_id=s.cid.session.id, sup_gen=s.sup_gen),
        VERBS["delivery"].request(s, work),
        VERBS["check"].request(s, submitted),
    ]
    for request in old:
        refusal = await works.supervisor(s).refused(request)
        said = f"sup_gen={run.sup_gen} holds this run; a supervisor of sup_gen={s.sup_gen} stops"
        assert refusal == Refusal(code=Code.SUPERVISOR_GENERATION_FENCED, about=f"team-run/{run.id}", lifted_by=said)
        renewed: Any = request
        await works.supervisor(s).ok(attrs.evolve(renewed, sup_gen=run.sup_gen))


Lose = Callable[[Stage], Awaitable[Any]]
LOSSES: dict[str, Lose] = {"its process is lost": lambda s: works.lost(s, s.bob), "its lease ends": expired}


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("by", ["heartbeat", "submit", "block"])
async def test_an_orphaned_attempt_comes_back_to_its_own_session(node: InProcessNode, loss: str, by: str) -> None:
    """Report 9: detection only marks; what the current generation hands in is taken."""
    s = await stage(node)
    work = await s.started(s.bob)
    await LOSSES[loss](s)
    assert (await binding(s, work)).custody is Custody.ORPHANED_UNVERIFIED
    await works.bob(s).ok(VERBS[by].request(s, work))
    back = await binding(s, work)
    assert back.custody is (Custody.COMPLETED if by == "submit" else Custody.CLAIMED)
    assert (back.fence, back.session_gen) == (1, 1)


async def test_an_orphaned_attempt_never_comes_to_another_session(node: InProcessNode) -> None:
    """Not to the member's next session, not to another member, not of another fence; and nobody requeues it."""
    s = await stage(node)
    work = await s.started(s.bob)
    after = await superseded(s)
    orphan = await binding(s, work)
    said = "no attempt at this Work is live; its supervisor admits the next one"
    for request in as_owner(work)[1:]:
        refusal = await node.refused(request, plane=Plane.MEMBER, actor=after)
        assert refusal == Refusal(code=Code.FENCE_STALE, about=f"work/{work.id}", lifted_by=said)
        assert (await works.cid(s).refused(request)).code in {Code.CLAIM_LOST, Code.FENCE_STALE}
    admit = AdmitWork(work_id=work.id, session_id=after.id, sup_gen=s.sup_gen)
    assert (await works.supervisor(s).refused(admit)).code is Code.INVALID_STATE_TRANSITION
    assert await binding(s, work) == orphan


async def test_a_reviewed_attempt_comes_back_to_nobody(node: InProcessNode) -> None:
    """Once its custody was handed over, its own session is too late."""
    s = await stage(node)
    work = await works.orphaned(s)
    work = await node.ok(VERBS["recover"].request(s, work))
    for request in as_owner(work)[1:]:
        assert (await works.bob(s).refused(request)).code is Code.FENCE_STALE
    assert (await binding(s, work)).custody is Custody.HANDED_OVER


@pytest.mark.parametrize("left_out", ["finding", "responsibility", "reason", "fence", "expected_version"])
async def test_a_custody_review_says_everything(node: InProcessNode, left_out: str) -> None:
    """There is no default for what was found, or for who answers from now on."""
    s = await stage(node)
    work = await works.orphaned(s)
    body: dict[str, object] = {
        "work_id": work.id,
        "expected_version": work.version,
        "fence": 1,
        "finding": "NO_SIDE_EFFECTS",
        "responsibility": "keep",
        "reason": "looked",
    }
    del body[left_out]
    before = node.rows()
    outcome = await node.begin("work.recover", body).outcome()
    assert isinstance(outcome, Refusal)
    assert (outcome.code, outcome.about, left_out in outcome.lifted_by) == (Code.MALFORMED, "body", True)
    assert node.rows() == before
    assert {f.name for f in attrs.fields(RecoverWork) if f.default is attrs.NOTHING} >= {left_out}


async def test_a_custody_review_is_an_event_of_its_own(node: InProcessNode) -> None:
    s = await stage(node)
    work = await works.orphaned(s)
    request: Any = VERBS["recover"].request(s, work)
    after = await works.ann(s).ok(attrs.evolve(request, evidence_refs=["log@sha256:1"]))
    kinds = [row[4] for row in node.rows()["events"] if row[2] == f"work/{work.id}"]
    assert kinds[-1] == "recovered: NO_SIDE_EFFECTS"
    assert len(kinds) == after.version
    assert [row[4] for row in node.rows()["events"] if row[2].startswith("custody/")] == ["reviewed"]


async def test_the_last_attempt_of_a_member_that_leaves_ends_its_membership(node: InProcessNode) -> None:
    """In the same transaction, however the attempt ends."""
    s = await stage(node)
    work = await s.started(s.bob)
    leaving = await scene.left(node, s.bob.membership)
    assert leaving.state is MembershipState.LEAVING
    await s.submit(work, s.bob)
    shown = await node.ok(ShowMembership(membership_id=leaving.id))
    assert shown.membership.state is MembershipState.INACTIVE


async def test_an_attempt_of_a_lost_member_is_done_by_the_next_session(node: InProcessNode) -> None:
    """Report 7: the process dies, its Work stays with its owner; after the review the next session starts it."""
    s = await stage(node)
    work = await works.orphaned(s)
    work = await node.ok(VERBS["recover"].request(s, work))
    assert (work.owner_id, work.phase) == (s.bob.membership.id, Phase.OPEN)
    ask = ReportSession(session_id=s.bob.session.id, session_gen=1, sup_gen=s.sup_gen, cause=SessionCause.RESOLVED)
    await works.supervisor(s).ok(ask)
    closed = attrs.evolve(ask, cause=SessionCause.CLOSED)
    await works.supervisor(s).ok(closed)
    after = attrs.evolve(s.bob, session=await session(node, s.run, s.bob.place))
    await s.admit(work, after)
    assert (await s.start(work, after)).phase is Phase.ACTIVE
