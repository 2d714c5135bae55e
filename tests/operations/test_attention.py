"""``attention.list`` and ``attention.ack``, one test an outcome of the table; when an incident speaks, to whom."""

from __future__ import annotations

import attrs
import pytest

from client.protocol.attempt import HeartbeatWork
from client.protocol.board import AcknowledgeAttention, Attention, AttentionKind, ListAttention
from client.protocol.effect import (
    Certainty,
    DeliverEffect,
    EffectFinding,
    ResolveEffect,
    RuntimeEffect,
    Wake,
)
from client.protocol.ids import TeamRef, TeamRunId
from client.protocol.membership import GuestRole
from client.protocol.operation import Plane
from client.protocol.refusals import Code, Refusal
from client.protocol.session import Ending, SessionCause
from client.protocol.team_run import CreateTeamRun
from client.protocol.work import ClaimMode, Work
from client.protocol.work_asks import (
    BlockWork,
    CancelWork,
    FailWork,
    HoldWork,
    ReplaceDependencies,
    RequestChanges,
    ResumeWork,
    ShowWork,
    UnholdWork,
    UpdateWork,
)
from daemon.operations import attempt
from tests.support import effects, mail, refusals
from tests.support.mail import also, ok, refused
from tests.support.node import InProcessNode
from tests.support.run import Member, Stage, stage
from tests.support.supervised import said, supervised


async def items(s: Stage, by: Member | None = None) -> list[Attention]:
    """What ``by`` has to look at, or the operator."""
    ask = ListAttention(team_run_id=s.run.id)
    return (await (s.node.ok(ask) if by is None else ok(s, by, ask))).items


async def kinds(s: Stage, by: Member | None = None) -> list[tuple[AttentionKind, str]]:
    return [(each.kind, each.about) for each in await items(s, by)]


async def seen(s: Stage, by: Member, key: str) -> list[Attention]:
    return (await ok(s, by, AcknowledgeAttention(key=key))).items


async def current(s: Stage, work: Work) -> Work:
    return (await s.node.ok(ShowWork(work_id=work.id))).work


async def blocked(s: Stage, work: Work, reason: str = "no key") -> Work:
    return await ok(s, s.bob, BlockWork(work_id=work.id, expected_version=work.version, reason=reason))


async def cancelled(s: Stage, work: Work) -> Work:
    return await ok(s, s.ann, CancelWork(work_id=work.id, expected_version=work.version, reason="not needed"))


async def test_attention_list_ok(node: InProcessNode) -> None:
    """Oldest first, each with what lifts it as it can be typed; looking changes nothing."""
    s = await stage(node)
    stuck = await blocked(s, await s.started(s.bob))
    review = await s.submitted(s.cid, "test it")
    before = node.rows()
    found = await items(s, s.ann)
    assert node.rows() == before
    assert found == [
        Attention(
            key=f"blocked/{stuck.id}/{stuck.version}",
            kind=AttentionKind.BLOCKED,
            about=f"work/{stuck.id}",
            what="'build it' is blocked: no key",
            lifted_by="answer its owner; the Host resumes it, or cancels it: "
            f"firm work resume --work-id {stuck.id} --expected-version {stuck.version} --resolution TEXT, or "
            f"firm work cancel {stuck.id} --expected-version {stuck.version} --reason TEXT",
            since=stuck.updated_at,
        ),
        Attention(
            key=f"review/{review.id}/{review.receipt_id}",
            kind=AttentionKind.REVIEW,
            about=f"work/{review.id}",
            what="cid submitted 'test it'",
            lifted_by=f"look at it, then accept it or request changes: firm work show --work-id {review.id}",
            since=review.updated_at,
        ),
    ]
    assert await items(s) == found
    for each in found:
        mail.typed(each.lifted_by)
    for who in (s.bob, s.cid):
        assert await items(s, who) == []


async def test_attention_list_not_found(node: InProcessNode) -> None:
    s, other = await stage(node), await stage(node)
    for run in ("nothing", other.run.id):
        refusal = await refused(s, s.ann, ListAttention(team_run_id=TeamRunId(run)))
        assert refusal == refusals.not_found("team-run", run)


async def test_attention_list_row_quarantined(node: InProcessNode) -> None:
    s = await stage(node)
    ask = ListAttention(team_run_id=s.run.id)
    await refusals.refused_while_spoilt(node, ask, "memberships", s.ann.membership.id)


async def test_attention_ack_ok(node: InProcessNode) -> None:
    """It answers what is left. What one has seen, another still has to."""
    s = await stage(node)
    await blocked(s, await s.started(s.bob))
    await s.submitted(s.cid, "test it")
    first, second = await items(s, s.ann)
    assert await seen(s, s.ann, first.key) == [second]
    assert await items(s, s.ann) == [second]
    assert await items(s) == [first, second]


async def test_attention_ack_not_found(node: InProcessNode) -> None:
    """Nothing of the kind, not the caller's, or seen already."""
    s = await stage(node)
    await s.submitted(s.cid)
    (item,) = await items(s, s.ann)
    ask = AcknowledgeAttention(key=item.key)
    assert await refused(s, s.bob, ask) == refusals.not_found("attention", item.key)
    assert await refused(s, s.ann, AcknowledgeAttention(key="nothing")) == refusals.not_found("attention", "nothing")
    await ok(s, s.ann, ask)
    assert await refused(s, s.ann, ask) == refusals.not_found("attention", item.key)
    unknown = AcknowledgeAttention(team_run_id=TeamRunId("nothing"), key=item.key)
    assert await refused(s, s.ann, unknown) == refusals.not_found("team-run", "nothing")


async def test_attention_ack_row_quarantined(node: InProcessNode) -> None:
    s = await stage(node)
    await s.submitted(s.cid)
    (item,) = await items(s, s.ann)
    ask = AcknowledgeAttention(key=item.key)
    await mail.refused_while_spoilt(s, s.ann, ask, "team_runs", s.run.id)


async def test_an_observer_may_look_but_says_nothing(node: InProcessNode) -> None:
    s = await stage(node)
    eve = await also(s, "eve", GuestRole.OBSERVER)
    await s.submitted(s.ann)
    assert await items(s, eve) == []
    assert (await refused(s, eve, AcknowledgeAttention(key="x"))).code is Code.NOT_AUTHORIZED


async def test_a_supervisor_has_nothing_to_look_at(node: InProcessNode) -> None:
    s = await stage(node)
    await s.submitted(s.cid)
    found = await node.ok(ListAttention(team_run_id=s.run.id), plane=Plane.SUPERVISOR, actor=s.run.id)
    assert found.items == []


async def test_a_host_is_not_told_of_what_it_did_itself(node: InProcessNode) -> None:
    """I49: it blocks its own Work, submits it, asks for changes: others are told, where they can do anything."""
    s = await stage(node)
    mine = await s.started(s.ann)
    stopped = await ok(s, s.ann, BlockWork(work_id=mine.id, expected_version=mine.version, reason="no key"))
    assert await items(s, s.ann) == []
    assert await kinds(s) == [(AttentionKind.BLOCKED, f"work/{mine.id}")]
    ask = ResumeWork(work_id=mine.id, expected_version=stopped.version, resolution="found")
    await s.submit(await ok(s, s.ann, ask), s.ann)
    assert await items(s, s.ann) == []
    for peer in (s.bob, s.cid):
        assert await kinds(s, peer) == [(AttentionKind.REVIEW, f"work/{mine.id}")]
    theirs = await s.submitted(s.bob, "test it")
    assert await kinds(s, s.ann) == [(AttentionKind.REVIEW, f"work/{theirs.id}")]
    changes = RequestChanges(work_id=theirs.id, expected_version=theirs.version, reason="more")
    await ok(s, s.ann, changes)
    assert await items(s, s.ann) == []


async def test_a_member_is_asked_to_review_the_hosts_work_only(node: InProcessNode) -> None:
    s = await stage(node)
    await s.submitted(s.cid)
    assert await items(s, s.bob) == []


async def test_a_block_is_one_incident_whatever_happens_to_the_text_meanwhile(node: InProcessNode) -> None:
    """An edit or a hold is no new incident, and does not hide the one there is."""
    s = await stage(node)
    work = await blocked(s, await s.started(s.bob))
    (item,) = await items(s, s.ann)
    work = await ok(s, s.ann, UpdateWork(work_id=work.id, expected_version=work.version, title="build it well"))
    (edited,) = await items(s, s.ann)
    assert (edited.key, edited.since) == (item.key, item.since)
    assert await seen(s, s.ann, item.key) == []
    work = await ok(s, s.ann, UpdateWork(work_id=work.id, expected_version=work.version, context="more"))
    work = await ok(s, s.ann, HoldWork(work_id=work.id, expected_version=work.version, reason="wait"))
    work = await ok(s, s.ann, UnholdWork(work_id=work.id, expected_version=work.version))
    assert await items(s, s.ann) == []
    ask = ResumeWork(work_id=work.id, expected_version=work.version, resolution="found")
    await blocked(s, await ok(s, s.bob, ask), "lost it again")
    (again,) = await items(s, s.ann)
    assert again.key != item.key
    assert "lost it again" in again.what


async def test_a_review_is_one_incident_a_submission(node: InProcessNode) -> None:
    s = await stage(node)
    work = await s.submitted(s.bob)
    (item,) = await items(s, s.ann)
    await seen(s, s.ann, item.key)
    work = await ok(s, s.ann, UpdateWork(work_id=work.id, expected_version=work.version, context="more"))
    assert await items(s, s.ann) == []
    ask = RequestChanges(work_id=work.id, expected_version=work.version, reason="more")
    again = await ok(s, s.ann, ask)
    await s.admit(again, s.bob)
    await s.submit(await s.start(again, s.bob), s.bob)
    (second,) = await items(s, s.ann)
    assert second.key != item.key


async def test_a_lost_attempt_is_told_to_the_host_each_time_it_is_lost(node: InProcessNode) -> None:
    s = await stage(node)
    work = await s.started(s.bob)
    await lease_lost(s, work)
    (item,) = await items(s, s.ann)
    assert (item.kind, item.about) == (AttentionKind.ORPHANED, f"work/{work.id}")
    assert "fence=1" in item.what
    mail.typed(item.lifted_by)
    assert await seen(s, s.ann, item.key) == []
    await ok(s, s.bob, HeartbeatWork(work_id=work.id, fence=1))
    await lease_lost(s, work)
    (again,) = await items(s, s.ann)
    assert again.key != item.key


async def lease_lost(s: Stage, work: Work) -> None:
    (binding,) = (await s.shown(work)).bindings
    await s.node.store.write(lambda tx: attempt.expire(tx, s.node.call(), binding.id))


@pytest.mark.parametrize("how", ["cancelled", "failed"])
async def test_a_prerequisite_that_ends_otherwise_changes_nothing_downstream(node: InProcessNode, how: str) -> None:
    """I13: one item for each Work that needs it, none for the others, and no Work but the closed one moved."""
    s = await stage(node)
    base = await s.work("base")
    needing = [await s.work(f"on it {n}", prerequisite_work_ids=[base.id]) for n in range(3)]
    further = await s.work("further", prerequisite_work_ids=[needing[0].id])
    await s.work("apart")
    before = [row for row in node.rows()["works"] if base.id not in row]
    close: type[CancelWork | FailWork] = CancelWork if how == "cancelled" else FailWork
    await ok(s, s.ann, close(work_id=base.id, expected_version=base.version, reason="not needed"))
    assert [row for row in node.rows()["works"] if base.id not in row] == before
    found = await items(s, s.ann)
    assert sorted(each.about for each in found) == sorted(f"work/{each.id}" for each in needing)
    assert {each.kind for each in found} == {AttentionKind.PREREQUISITE}
    assert all(each.what.endswith(f"needs {base.id} ({how})") for each in found)
    assert further.id not in str(found)
    assert await items(s) == found


async def test_a_work_is_told_of_once_however_many_of_its_prerequisites_ended(node: InProcessNode) -> None:
    """Each that ends later is a new incident, which replaces the one before."""
    s = await stage(node)
    needs = [await s.work(f"base {n}") for n in range(5)]
    work = await s.work("on them", prerequisite_work_ids=[each.id for each in needs])
    seen_keys: set[str] = set()
    for n, need in enumerate(needs[:4]):
        await cancelled(s, need)
        (item,) = await items(s, s.ann)
        assert item.about == f"work/{work.id}"
        assert need.id in item.what
        assert item.key not in seen_keys
        assert ("and 1 more" in item.what) == (n == 3)
        seen_keys.add(item.key)
        assert await seen(s, s.ann, item.key) == []


async def test_doing_without_a_prerequisite_keeps_the_others(node: InProcessNode) -> None:
    """What the item advises can be typed as it stands, and lifts it."""
    s = await mail.with_person(await stage(node))
    gone, kept, other = [await s.work(f"base {n}") for n in range(3)]
    needs = sorted([gone.id, kept.id, other.id])
    work = await s.work("on them", prerequisite_work_ids=needs)
    await cancelled(s, gone)
    (item,) = await items(s, s.ann)
    followed = await node.follow(Refusal(code=Code.INTERNAL, lifted_by=item.lifted_by))
    assert not isinstance(followed, Refusal)
    assert (await current(s, work)).needs == sorted([kept.id, other.id])
    assert await items(s, s.ann) == []


@pytest.mark.parametrize("way", ["replaced", "closed"])
async def test_an_incident_ends_with_its_cause(node: InProcessNode, way: str) -> None:
    s = await stage(node)
    base = await s.work("base")
    work = await s.work("on it", prerequisite_work_ids=[base.id])
    await cancelled(s, base)
    if way == "replaced":
        await ok(s, s.ann, ReplaceDependencies(work_id=work.id, expected_version=work.version))
    else:
        await cancelled(s, work)
    assert await items(s, s.ann) == []


async def test_attention_is_of_one_run(node: InProcessNode) -> None:
    s = await stage(node)
    await s.submitted(s.bob)
    await mail.failed(s, (await mail.sent(s, s.ann, s.cid)).deliveries[0])
    other = await node.ok(CreateTeamRun(team_id=TeamRef(s.team.id)))
    assert len(await items(s, s.ann)) == 2
    assert (await ok(s, s.ann, ListAttention(team_run_id=other.id))).items == []


async def test_a_work_that_the_host_assigns_raises_nothing(node: InProcessNode) -> None:
    s = await stage(node)
    await s.owned(s.bob, claim_mode=ClaimMode.HOST_ASSIGN)
    assert await items(s, s.ann) == []


async def test_a_member_that_could_not_be_started_is_told_with_the_reason(node: InProcessNode) -> None:
    """Until its place is opened again, or something else came of it. One that was not tried is no incident."""
    s = await effects.cold(node)
    assert await items(s) == []
    await supervised(s, effects.settle(s, await effects.prepared(s), Certainty.NOT_APPLIED, "workspace_missing: gone"))
    (item,) = await items(s)
    assert (item.kind, item.about) == (AttentionKind.STOPPED, f"session/{s.bob.session.id}")
    assert item.what == "bob has no process: workspace_missing: gone"
    assert item.lifted_by.endswith(f"firm session close {s.bob.session.id}, and firm reopen bob")
    await supervised(s, effects.settle(s, await effects.begun(s)))
    assert await items(s) == []


async def test_a_member_whose_process_ended_is_told_with_how_it_ended(node: InProcessNode) -> None:
    s = await effects.live(node)
    await supervised(s, said(s.bob.session, SessionCause.EXITED, s.sup_gen, reason="ended with status 3"))
    (item,) = await items(s)
    assert (item.kind, item.what) == (AttentionKind.STOPPED, "bob has no process: exited: ended with status 3")
    await ok(s, s.ann, AcknowledgeAttention(key=item.key))
    assert await items(s, s.ann) == []


async def letter(s: Stage) -> None:
    """Something that Bob has to be told."""
    await mail.sent(s, s.ann, s.bob, response_required=True)


async def typed(s: Stage, certainty: Certainty, readback: str) -> RuntimeEffect:
    """What came of telling it to Bob."""
    of = s.bob.session
    ask = DeliverEffect(session_id=of.id, session_gen=of.session_gen, sup_gen=s.sup_gen, wake=Wake.DELIVERY)
    return await supervised(s, effects.settle(s, await supervised(s, ask), certainty, readback))


async def test_a_text_that_is_held_is_told_until_it_was_typed(node: InProcessNode) -> None:
    s = await effects.live(node)
    await letter(s)
    await typed(s, Certainty.NOT_APPLIED, "held: draft")
    (item,) = await items(s, s.ann)
    assert (item.kind, item.about) == (AttentionKind.HELD, f"session/{s.bob.session.id}")
    assert item.what == "nothing can be typed to bob: held: draft"
    await typed(s, Certainty.APPLIED, "submitted")
    assert await items(s, s.ann) == []


async def test_a_text_of_which_nobody_knows_is_told_until_a_person_has_decided(node: InProcessNode) -> None:
    s = await effects.live(node)
    await letter(s)
    lost = await typed(s, Certainty.UNKNOWN, "unsubmitted: nothing changed")
    (item,) = await items(s, s.ann)
    assert (item.kind, item.about) == (AttentionKind.UNSUBMITTED, f"effect/{lost.id}")
    assert item.what == "whether bob took what was typed is not known: unsubmitted: nothing changed"
    found = EffectFinding.CONFIRM_APPLIED
    await node.ok(ResolveEffect(effect_id=lost.id, expected_version=lost.version, finding=found, reason="looked"))
    assert await items(s, s.ann) == []


async def test_a_degraded_member_is_told_with_what_lifts_it(node: InProcessNode) -> None:
    s = await effects.live(node)
    of = s.bob.session
    for _ in range(3):
        await letter(s)
        await typed(s, Certainty.APPLIED, "submitted")
        ended = said(of, SessionCause.CYCLE_ENDED, s.sup_gen)
        await supervised(s, attrs.evolve(ended, ending=Ending.EMPTY_OUTPUT))
    assert await items(s, s.ann) == []
    await supervised(s, said(of, SessionCause.DEGRADED, s.sup_gen))
    (item,) = await items(s, s.ann)
    assert (item.kind, item.about) == (AttentionKind.DEGRADED, f"session/{of.id}")
    assert item.what == "bob was told 3 times what to do, and did nothing that was seen"
    assert "firm attach bob --type" in item.lifted_by
    assert "firm close bob, and firm reopen bob" in item.lifted_by
    await mail.taken(s, s.bob)
    assert await items(s, s.ann) == []
