"""Generations: what an older one asks changes nothing and is refused by name; what a capability is worth, and when."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import attrs
import pytest

from client.protocol.attempt import AdmitWork, Custody, DeliveryCause, HeartbeatWork, RecordCheck, ReportDelivery
from client.protocol.board import ListDue
from client.protocol.effect import DeliverEffect, EffectKind, ShowWords, StepIn, Wake
from client.protocol.event import ListEvents
from client.protocol.ids import DaemonGen, FilePath, ReceiptId, SessionGen, UnixMs
from client.protocol.node import BackUpNode
from client.protocol.operation import SUPERVISOR, Effect, Plane, Request
from client.protocol.refusals import ROWS, Code, Retry
from client.protocol.session import (
    AgentSession,
    CapabilityState,
    DeriveToken,
    ListSessions,
    Liveness,
    SessionCause,
    SessionState,
    SetClaims,
    ShowSession,
)
from client.protocol.table import BY_REQUEST, OPERATIONS
from client.protocol.team_run import (
    CloseMemberRun,
    FinishTeamRun,
    RenewTeamRun,
    ReopenMemberRun,
    ShowTeamRun,
    TakeTeamRun,
)
from client.protocol.work_asks import (
    BlockWork,
    ClaimWork,
    CreateWork,
    ListWorks,
    ShowWork,
    StartWork,
    SubmitWork,
)
from daemon.inside import Inside
from daemon.loops import Loops
from store import maintenance
from tests.support import effects
from tests.support.node import InProcessNode, in_process
from tests.support.run import Stage, session, stage
from tests.support.supervised import (
    Shown,
    capability,
    declined,
    fenced,
    fresh,
    open_,
    report,
    run_now,
    said,
    supervised,
)

C = SessionCause


def by_supervisor(s: Stage, sup_gen: int) -> dict[str, Request[Any]]:
    """Everything that a supervisor may ask, as one of ``sup_gen`` would."""
    bob = s.bob.session
    some: list[Request[Any]] = [
        open_(s.bob.place, sup_gen, supersede=True),
        said(bob, C.LOST, sup_gen),
        DeriveToken(session_id=bob.id, sup_gen=sup_gen),
        SetClaims(session_id=bob.id, accepts_new_claims=False, sup_gen=sup_gen),
        ListDue(team_run_id=s.run.id, sup_gen=sup_gen),
        RenewTeamRun(team_run_id=s.run.id, sup_gen=sup_gen, lease_ms=1000),
        effects.prepare(s, sup_gen=sup_gen),
        DeliverEffect(session_id=bob.id, session_gen=bob.session_gen, sup_gen=sup_gen, wake=Wake.DELIVERY),
        FinishTeamRun(team_run_id=s.run.id, sup_gen=sup_gen),
    ]
    return {BY_REQUEST[type(ask)].name: ask for ask in some}


async def test_a_supervisor_of_another_generation_changes_nothing(node: InProcessNode) -> None:
    """Neither one that was, nor one that will be; and it is told which holds the run."""
    s = await stage(node)
    work, asked = await s.started(s.bob), set[str]()
    done = await effects.control(s, EffectKind.INTERRUPT)
    for gen in (s.sup_gen + 1, 9):
        asks = by_supervisor(s, gen)
        receipt = ReceiptId("none")
        of_work: list[Request[Any]] = [
            AdmitWork(work_id=work.id, session_id=s.bob.session.id, sup_gen=gen),
            ReportDelivery(work_id=work.id, fence=1, sup_gen=gen, cause=DeliveryCause.FAILED),
            RecordCheck(work_id=work.id, receipt_id=receipt, sup_gen=gen, line="c=x", passed=True),
            effects.started(s, done, sup_gen=gen),
            effects.settle(s, done, sup_gen=gen),
            ShowWords(effect_id=done.id, sup_gen=gen),
        ]
        asks.update({BY_REQUEST[type(ask)].name: ask for ask in of_work})
        for name, ask in asks.items():
            assert await declined(s, ask) == fenced(s, gen)
            asked.add(name)
    names = {op.name for op in OPERATIONS if op.planes == SUPERVISOR or op.name == "session.claims"}
    without = {"team-run.take"}  # begins a generation
    mail = {name for name in names if name.startswith("message.")}  # has tests of its own
    assert asked == names - without - mail


async def test_a_report_prepared_before_a_takeover_settles_nothing(node: InProcessNode) -> None:
    """Both are in one transaction: the fence is asked where it is written, not where it was prepared."""
    s = await stage(node)
    work = await s.owned(s.bob)
    take = node.send(TakeTeamRun(team_run_id=s.run.id), plane=Plane.SUPERVISOR, actor=s.run.id)
    ask = AdmitWork(work_id=work.id, session_id=s.bob.session.id, sup_gen=s.sup_gen)
    late = [node.send(each, plane=Plane.SUPERVISOR, actor=s.run.id) for each in (ask, said(s.bob.session, C.LOST, 1))]
    node.commit()
    taken = await take.outcome()
    assert (await run_now(node, s.run)) == taken
    newer = attrs.evolve(s, run=await run_now(node, s.run))
    assert [await each.outcome() for each in late] == [fenced(newer, s.sup_gen)] * 2
    assert (await node.ok(ShowWork(work_id=work.id))).bindings == []


async def test_a_member_of_another_generation_changes_nothing(node: InProcessNode) -> None:
    """Asked in every unit and in every read: writes, reads and waits of a session that was superseded."""
    s = await stage(node)
    work = await s.started(s.bob)
    former = s.bob.session
    newer = await fresh(s, s.bob.place)
    version = work.version
    asks: list[Request[Any]] = [
        CreateWork(title="x", completion_criteria="y"),
        SubmitWork(work_id=work.id, expected_version=version, result_summary="r", report_only=True),
        BlockWork(work_id=work.id, expected_version=version, reason="r"),
        HeartbeatWork(work_id=work.id),
        ListWorks(),
        ShowTeamRun(team_run_id=s.run.id),
    ]
    for ask in asks:
        refusal = await node.refused(ask, plane=Plane.MEMBER, actor=former)
        assert (refusal.code, refusal.about) == (Code.AGENT_SESSION_GENERATION_FENCED, f"session/{former.id}")
        assert f"session_gen={former.session_gen}" in refusal.lifted_by
    assert ROWS[Code.AGENT_SESSION_GENERATION_FENCED].retry is Retry.NEVER
    await node.ok(ListWorks(), plane=Plane.MEMBER, actor=newer)
    ahead = attrs.evolve(newer, session_gen=SessionGen(newer.session_gen + 1))
    refusal = await node.refused(ListWorks(), plane=Plane.MEMBER, actor=ahead)
    assert refusal.code is Code.AGENT_SESSION_GENERATION_FENCED


async def test_a_call_prepared_before_its_session_was_superseded_settles_nothing(node: InProcessNode) -> None:
    s = await stage(node)
    supersede = node.send(open_(s.bob.place, s.sup_gen, supersede=True), plane=Plane.SUPERVISOR, actor=s.run.id)
    create = CreateWork(title="x", completion_criteria="y")
    late = node.send(create, plane=Plane.MEMBER, actor=s.bob.session)
    node.commit()
    assert isinstance(await supersede.outcome(), AgentSession)
    refusal: Any = await late.outcome()
    assert refusal.code is Code.AGENT_SESSION_GENERATION_FENCED
    assert (await node.ok(ListWorks(team_run_id=s.run.id))).items == []


async def test_no_session_outlives_the_run_generation_of_its_place(node: InProcessNode) -> None:
    """A place is not closed under a session; after it was opened again, what the former one was is fenced by name."""
    s = await stage(node)
    close = CloseMemberRun(member_run_id=s.bob.place.id, expected_version=1)
    assert (await node.refused(close)).code is Code.SESSION_LIVE
    former = await report(s, s.bob.session, C.CLOSED)
    closed = await node.ok(close)
    place = await node.ok(ReopenMemberRun(member_run_id=closed.id, expected_version=closed.version))
    newer = await session(node, s.run, place)
    assert (former.run_gen, newer.run_gen) == (1, 2)
    refusal = await node.refused(ListWorks(), plane=Plane.MEMBER, actor=former)
    assert refusal.code is Code.AGENT_SESSION_GENERATION_FENCED
    work = await s.owned(s.bob)
    refusal = await declined(s, AdmitWork(work_id=work.id, session_id=former.id, sup_gen=s.sup_gen))
    assert refusal.code is Code.INVALID_STATE_TRANSITION
    again = await supervised(s, AdmitWork(work_id=work.id, session_id=newer.id, sup_gen=s.sup_gen))
    assert (again.run_gen, again.session_gen) == (2, newer.session_gen)


async def test_a_capability_waits_for_its_adoption_and_keeps_its_token(node: InProcessNode) -> None:
    """The next daemon knows it and does not take it yet; the transaction that adopts the session moves it."""
    s = await stage(node)
    before = await capability(node, s.bob.session)
    next_daemon = Shown(node, s.bob.session, daemon_gen=before.daemon_gen + 1)
    for ask in (ListWorks(), CreateWork(title="x", completion_criteria="y")):
        refusal = await next_daemon.refused(ask)
        assert (refusal.code, refusal.about) == (Code.ADOPTION_PENDING, f"session/{s.bob.session.id}")
    assert (ROWS[Code.ADOPTION_PENDING].retry, ROWS[Code.ADOPTION_PENDING].exit) == (Retry.SAME, 3)
    await adopt(node, s, before.daemon_gen + 1)
    after = await capability(node, s.bob.session)
    assert after == attrs.evolve(
        before, version=2, daemon_gen=DaemonGen(before.daemon_gen + 1), updated_at=after.updated_at
    )
    assert after.token_sha256 == before.token_sha256
    assert (await next_daemon.refused(ShowWork())).code is Code.WORK_UNCLEAR
    refusal = await Shown(node, s.bob.session).refused(ListWorks())
    assert refusal.code is Code.ADOPTION_PENDING


async def adopt(node: InProcessNode, s: Stage, daemon_gen: int) -> None:
    """The supervisor in the next daemon reports that it has proven Bob's process again."""
    run = await run_now(node, s.run)
    call = node.call(Plane.SUPERVISOR, s.run.id)
    call = attrs.evolve(call, daemon_gen=DaemonGen(daemon_gen))
    adopted = await Inside(node.dispatcher, lambda: call).ask(said(s.bob.session, C.ADOPTED, run.sup_gen))
    assert isinstance(adopted, AgentSession)


async def test_a_session_that_is_launched_under_the_next_supervisor_is_its_own_at_once(node: InProcessNode) -> None:
    """It was opened under the former one, which died before it had launched it."""
    s = await effects.cold(node)
    run = await node.ok(TakeTeamRun(team_run_id=s.run.id), plane=Plane.SUPERVISOR, actor=s.run.id)
    s = attrs.evolve(s, run=run)
    await supervised(s, effects.settle(s, await effects.begun(s)))
    shown = await capability(node, s.bob.session)
    assert (shown.sup_gen, s.bob.session.sup_gen) == (run.sup_gen, run.sup_gen - 1)


async def test_the_next_supervisor_adopts_too(node: InProcessNode) -> None:
    s = await stage(node)
    taken = await supervised(s, TakeTeamRun(team_run_id=s.run.id))
    assert (await Shown(node, s.bob.session).refused(ListWorks())).code is Code.ADOPTION_PENDING
    await adopt(node, s, node.opened.row.daemon_gen)
    assert (await capability(node, s.bob.session)).sup_gen == taken.sup_gen
    assert not hasattr(await Shown(node, s.bob.session).ask(ListWorks()), "code")


ENDS = {
    "superseded": (CapabilityState.REPLACED, Code.AGENT_SESSION_GENERATION_FENCED),
    "closed": (CapabilityState.REVOKED, Code.AGENT_SESSION_GENERATION_FENCED),
    "lost": (CapabilityState.REVOKED, Code.CAPABILITY_DENIED),
}


@pytest.mark.parametrize("end", ENDS)
async def test_a_capability_ends_with_what_it_is_bound_to(node: InProcessNode, end: str) -> None:
    s = await stage(node)
    if end == "superseded":
        await supervised(s, open_(s.bob.place, s.sup_gen, supersede=True))
    else:
        await report(s, s.bob.session, C(end))
    state, code = ENDS[end]
    assert (await capability(node, s.bob.session)).state is state
    for ask in (ListWorks(), CreateWork(title="x", completion_criteria="y")):
        assert (await Shown(node, s.bob.session).refused(ask)).code is code


async def test_nobody_speaks_for_a_session_whose_process_has_ended(node: InProcessNode) -> None:
    """What that left behind may hold a connection, or the capability: it takes nothing back and says nothing more."""
    s = await stage(node)
    work = await s.started(s.bob)
    await report(s, s.bob.session, C.EXITED)
    submission = SubmitWork(work_id=work.id, expected_version=work.version, result_summary="r", report_only=True)
    for ask in (ListWorks(), HeartbeatWork(work_id=work.id), submission):
        by_process = await node.refused(ask, plane=Plane.MEMBER, actor=s.bob.session)
        by_capability = await Shown(node, s.bob.session).refused(ask)
        for refusal in (by_process, by_capability):
            assert (refusal.code, refusal.about) == (Code.CAPABILITY_DENIED, f"session/{s.bob.session.id}")
            assert "has ended" in refusal.lifted_by
    (binding,) = (await node.ok(ShowWork(work_id=work.id))).bindings
    assert binding.custody is Custody.ORPHANED_UNVERIFIED


async def test_nor_does_anybody_step_in_for_one(node: InProcessNode) -> None:
    """A stream is asked whether what its connection proved still holds, like everything else."""
    s = await effects.live(node)
    await report(s, s.ann.session, C.EXITED)
    refusal = await node.refused(StepIn(session_id=s.bob.session.id), plane=Plane.HOST, actor=s.ann.session)
    assert (refusal.code, refusal.about) == (Code.CAPABILITY_DENIED, f"session/{s.ann.session.id}")


@pytest.mark.parametrize("state", [CapabilityState.REPLACED, CapabilityState.REVOKED])
async def test_replaced_and_revoked_go_before_expired_and_pending(node: InProcessNode, state: CapabilityState) -> None:
    s = await stage(node)
    node.execute("UPDATE capabilities SET state = ?, expires_at = 1 WHERE session_id = ?", state, s.bob.session.id)
    refusal = await Shown(node, s.bob.session, daemon_gen=9).refused(ListWorks())
    assert refusal.code is Code.CAPABILITY_DENIED
    assert "replaced or revoked" in refusal.lifted_by


async def test_expired_is_what_a_stated_moment_makes_of_it(node: InProcessNode) -> None:
    """Nothing is stored, and the moment before it still counts; whoever waits for adoption is told of it first."""
    s = await stage(node)
    node.execute("UPDATE capabilities SET expires_at = 5000 WHERE session_id = ?", s.bob.session.id)
    assert not hasattr(await Shown(node, s.bob.session, now=UnixMs(4999)).ask(ListWorks()), "code")
    for now in (5000, 5001):
        for gen in (None, 9):
            refusal = await Shown(node, s.bob.session, now=UnixMs(now), daemon_gen=gen).refused(ListWorks())
            assert refusal.code is Code.CAPABILITY_DENIED
            assert "expired" in refusal.lifted_by
    assert (await capability(node, s.bob.session)).state is CapabilityState.ACTIVE


async def test_a_session_that_takes_no_claims_still_says_what_became_of_what_it_has(node: InProcessNode) -> None:
    """Heartbeat and outcome stay welcome; only something new is not."""
    s = await stage(node)
    work, other = await s.started(s.bob), await s.work("other")
    await node.ok(SetClaims(session_id=s.bob.session.id, accepts_new_claims=False))
    bob = Shown(node, s.bob.session)
    claim = ClaimWork(work_id=other.id, expected_version=other.version)
    refusal = await bob.refused(claim)
    assert (refusal.code, refusal.about) == (Code.NOT_ELIGIBLE, f"session/{s.bob.session.id}")
    beat: Any = await bob.ask(HeartbeatWork(work_id=work.id))
    assert beat.custody is Custody.CLAIMED
    ask = SubmitWork(work_id=work.id, expected_version=work.version, result_summary="r", report_only=True)
    done: Any = await bob.ask(ask)
    assert done.phase == "review"
    await node.ok(SetClaims(session_id=s.bob.session.id, accepts_new_claims=True))
    claimed: Any = await bob.ask(claim)
    assert claimed.owner_id == s.bob.membership.id


async def test_a_token_is_in_no_table_event_reply_or_log(node: InProcessNode, caplog: pytest.LogCaptureFixture) -> None:
    """I44: only its digest is kept; looked for in the bytes of the database and of its log."""
    s = await stage(node)
    ask = DeriveToken(session_id=s.bob.session.id, sup_gen=s.sup_gen)
    answer = await node.ok(ask, plane=Plane.SUPERVISOR, actor=s.run.id, key="kept")
    token = answer.token
    assert not hasattr(await Shown(node, s.bob.session).ask(ListWorks()), "code")
    await s.submitted(s.bob)
    held = b"".join(path.read_bytes() for path in sorted(node.home.rglob("node.db*")))
    assert (await capability(node, s.bob.session)).token_sha256.encode() in held
    for secret in (token.encode(), bytes.fromhex(token), token.upper().encode()):
        assert secret not in held
    assert token not in caplog.text
    assert token not in repr(await _everything_shown(node))
    assert BY_REQUEST[DeriveToken].effect is Effect.READ, "a remembered reply would hold it"


async def _everything_shown(node: InProcessNode) -> list[object]:
    listed = (await node.ok(ListSessions())).items
    shown = [await node.ok(ShowSession(session_id=each.id)) for each in listed]
    events = await node.ok(ListEvents(limit=500))
    return [events, *shown]


async def test_start_asks_for_the_very_session_of_its_attempt(node: InProcessNode) -> None:
    """A newer session of the same member is not the one that the attempt was admitted to."""
    s = await stage(node)
    work = await s.owned(s.bob)
    await s.admit(work, s.bob)
    newer = await fresh(s, s.bob.place)
    ask = StartWork(work_id=work.id, expected_version=work.version)
    refusal = await node.refused(ask, plane=Plane.MEMBER, actor=newer)
    assert refusal.code is Code.FENCE_STALE


async def test_a_restore_raises_every_generation_and_lets_nothing_of_before_count(tmp_path: Path) -> None:
    """Above any ever issued; capabilities are revoked, sessions lost, what they held is orphaned."""
    path, backup = tmp_path / "home" / "node.db", tmp_path / "copy.db"
    async with in_process(tmp_path / "home") as node:
        s = await stage(node)
        work, open_work = await s.started(s.bob), await s.owned(s.cid, "other")
        await node.ok(BackUpNode(file=FilePath(str(backup))))
    floor = maintenance.restore(path, backup).generation_floor
    async with in_process(tmp_path / "home") as node:
        assert node.opened.row.daemon_gen > floor
        await started_loops(node)
        assert (await Shown(node, s.bob.session).refused(ListWorks())).code is Code.CAPABILITY_DENIED
        for each in (s.ann, s.bob, s.cid):
            shown = await node.ok(ShowSession(session_id=each.session.id))
            assert shown.session.state is SessionState.RECOVERY_REQUIRED
            assert shown.session.process is Liveness.UNKNOWN
            assert shown.capability is not None
            assert shown.capability.state is CapabilityState.REVOKED
        (lost,) = (await node.ok(ShowWork(work_id=work.id))).bindings
        assert (lost.custody, lost.reason) == (Custody.ORPHANED_UNVERIFIED, "the store was restored")
        run = await node.ok(TakeTeamRun(team_run_id=s.run.id), plane=Plane.SUPERVISOR, actor=s.run.id)
        s = attrs.evolve(s, node=node, run=run)
        assert run.sup_gen > floor
        newer = await fresh(s, s.cid.place)
        assert newer.session_gen > floor
        attempt = await s.admit(open_work, attrs.evolve(s.cid, session=newer))
        assert attempt.fence > floor
        before = node.rows()
        await started_loops(node)
        assert node.rows() == before, "and only once"


async def started_loops(node: InProcessNode) -> None:
    """What the daemon's loops do before anybody is served."""
    loops = Loops(node.dispatcher, node.relay, node.live.health, node.call, means=None)
    assert await loops._try(loops._restored)
