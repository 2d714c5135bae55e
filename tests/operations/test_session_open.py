"""``session.open`` and ``session.report``, one test an outcome that the table declares."""

from __future__ import annotations

import os

import attrs
import pytest

from client.protocol.agent import ShowAgent, UpdateAgent
from client.protocol.attempt import Custody
from client.protocol.ceiling import Ceiling
from client.protocol.effect import Certainty
from client.protocol.event import ListEvents
from client.protocol.ids import AgentMemberRef, Folder, MemberRunId, SessionId, TeamRef
from client.protocol.membership import LeaveTeam
from client.protocol.operation import Plane
from client.protocol.refusals import Code, Refusal
from client.protocol.session import (
    AgentSession,
    BindSession,
    CapabilityState,
    Driver,
    Liveness,
    OpenSession,
    SessionCause,
    SessionState,
    ShowSession,
)
from client.protocol.team_run import CloseMemberRun, CompleteTeamRun, CreateTeamRun, ShowTeamRun, TakeTeamRun
from client.protocol.work_asks import ShowWork
from client.protocol.workspace import ArchiveWorkspace
from tests.support import effects, refusals, scene
from tests.support.effects import session_now
from tests.support.node import InProcessNode
from tests.support.run import Stage, stage
from tests.support.supervised import (
    WAYS,
    capability,
    close_all,
    declined,
    declined_while_spoilt,
    drained,
    fenced,
    fresh,
    open_,
    report,
    said,
    started,
    supervised,
)

NO_SESSION = SessionId("nothing")
C = SessionCause


async def without_bobs(node: InProcessNode) -> Stage:
    """Bob has no session that is open."""
    s = await stage(node)
    await report(s, s.bob.session, C.CLOSED)
    return s


async def test_a_ceiling_is_frozen_when_a_session_is_opened(node: InProcessNode) -> None:
    """Whatever becomes of its member: a change is for the next session, also one that a person binds."""
    s = await stage(node)

    async def changed(ceiling: Ceiling) -> None:
        agent = await node.ok(ShowAgent(agent_member_id=AgentMemberRef(s.bob.agent.id)))
        ask = UpdateAgent(agent_member_id=AgentMemberRef(agent.id), expected_version=agent.version, ceiling=ceiling)
        await node.ok(ask)

    await changed(Ceiling.READ_ONLY)
    assert await session_now(s) == s.bob.session
    assert s.bob.session.ceiling is Ceiling.WORKSPACE_WRITE
    following = await supervised(s, open_(s.bob.place, s.sup_gen, supersede=True))
    assert following.ceiling is Ceiling.READ_ONLY
    await changed(Ceiling.FULL_ACCESS)
    assert (await session_now(s, following)).ceiling is Ceiling.READ_ONLY
    await report(s, following, SessionCause.CLOSED)
    bound = await node.ok(BindSession(agent_member_id=AgentMemberRef(s.bob.agent.id), pid=os.getppid()))
    assert bound.ceiling is Ceiling.FULL_ACCESS


@pytest.mark.parametrize("driver", Driver)
async def test_session_open_ok(node: InProcessNode, driver: Driver) -> None:
    """Cold until its process is there, with a capability of its own and the next generation of its member."""
    s = await without_bobs(node)
    made = await supervised(s, open_(s.bob.place, s.sup_gen, driver=driver))
    assert made == AgentSession(
        id=made.id,
        version=1,
        agent_member_id=s.bob.agent.id,
        member_run_id=s.bob.place.id,
        team_run_id=s.run.id,
        session_gen=made.session_gen,
        run_gen=s.bob.place.run_gen,
        sup_gen=made.sup_gen,
        daemon_gen=node.opened.row.daemon_gen,
        state=SessionState.COLD,
        driver=driver,
        process=Liveness.UNKNOWN,
        pid=0,
        start_ticks=0,
        boot_id="",
        native_session="",
        created_at=made.created_at,
        updated_at=made.created_at,
        closed_at=None,
        streak=0,
        degraded_at=None,
        hinted_at=None,
        typist="",
        ceiling=Ceiling.WORKSPACE_WRITE,
        profile="external",
    )
    assert (made.session_gen, made.sup_gen) == (s.bob.session.session_gen + 1, s.sup_gen)
    shown = await capability(node, made)
    assert (shown.state, shown.accepts_new_claims, shown.expires_at) == (CapabilityState.ACTIVE, True, None)
    assert (shown.session_id, shown.daemon_gen, shown.sup_gen) == (made.id, made.daemon_gen, made.sup_gen)


async def test_session_open_in_the_place_of_another(node: InProcessNode) -> None:
    """The former one is closed, its capability replaced, what it held is orphaned; all in one transaction."""
    s = await stage(node)
    work = await s.started(s.bob)
    made = await supervised(s, open_(s.bob.place, s.sup_gen, supersede=True))
    former = (await node.ok(ShowSession(session_id=s.bob.session.id))).session
    assert (former.state, former.closed_at) == (SessionState.CLOSED, made.created_at)
    assert (await capability(node, former)).state is CapabilityState.REPLACED
    assert (await capability(node, made)).state is CapabilityState.ACTIVE
    (binding,) = (await node.ok(ShowWork(work_id=work.id))).bindings
    assert (binding.custody, binding.reason) == (Custody.ORPHANED_UNVERIFIED, "session superseded")


@pytest.mark.parametrize("supersede", [False, True])
async def test_session_open_agent_member_paused(node: InProcessNode, *, supersede: bool) -> None:
    s = await stage(node) if supersede else await without_bobs(node)
    agent = await scene.paused(node, s.bob.agent)
    ask = open_(s.bob.place, s.sup_gen, supersede=supersede)
    refusal = await declined(s, ask)
    assert refusal == refusals.paused(agent.id, agent.version)
    assert not isinstance(await node.follow(refusal), Refusal)
    await supervised(s, ask)


async def test_session_open_agent_member_retired(node: InProcessNode) -> None:
    s = await without_bobs(node)
    await scene.retired(node, s.bob.agent)
    assert await declined(s, open_(s.bob.place, s.sup_gen)) == refusals.retired(s.bob.agent.id)


async def test_session_open_agent_session_exists(node: InProcessNode) -> None:
    """I18: one session that is not closed for each member, whatever its state and whichever run it is in."""
    s = await stage(node)
    other = await started(node, await node.ok(CreateTeamRun(team_id=TeamRef(s.team.id))))
    (there,) = [
        each.member_run for each in (await node.ok(ShowTeamRun(team_run_id=other.id))).members if each.name == "bob"
    ]
    close = f"firm session close {s.bob.session.id}"
    said_so = f"end it first: {close}; or its supervisor opens the next one in its place"
    about = f"session/{s.bob.session.id}"
    expected = Refusal(code=Code.AGENT_SESSION_EXISTS, about=about, lifted_by=said_so)
    assert await declined(s, open_(s.bob.place, s.sup_gen)) == expected
    taken = await node.ok(TakeTeamRun(team_run_id=other.id), plane=Plane.SUPERVISOR, actor=other.id)
    ask = open_(there, taken.sup_gen, supersede=True)
    for each in (attrs.evolve(ask, supersede=False), ask):
        assert await node.refused(each, plane=Plane.SUPERVISOR, actor=other.id) == expected
    node.execute("UPDATE team_runs SET state = 'completed', ended_at = 1 WHERE id = ?", s.run.id)
    made = await node.ok(ask, plane=Plane.SUPERVISOR, actor=other.id)
    assert made.session_gen == s.bob.session.session_gen + 1


async def test_the_database_itself_holds_one_open_session_a_member(node: InProcessNode) -> None:
    s = await without_bobs(node)
    await supervised(s, open_(s.bob.place, s.sup_gen))
    with pytest.raises(Exception, match="UNIQUE constraint failed"):
        node.execute("UPDATE sessions SET state = 'idle', closed_at = NULL WHERE id = ?", s.bob.session.id)


async def test_session_open_member_run_closed(node: InProcessNode) -> None:
    s = await without_bobs(node)
    await node.ok(CloseMemberRun(member_run_id=s.bob.place.id, expected_version=1))
    refusal = await declined(s, open_(s.bob.place, s.sup_gen))
    assert (refusal.code, refusal.about) == (Code.MEMBER_RUN_CLOSED, f"member-run/{s.bob.place.id}")
    assert not isinstance(await node.follow(refusal), Refusal)
    await supervised(s, open_(s.bob.place, s.sup_gen))


async def test_who_has_left_the_team_has_no_session_any_more(node: InProcessNode) -> None:
    """Neither a new one, nor the one it had: it is a stranger there from that transaction on."""
    s = await without_bobs(node)
    for each in (s.bob, s.cid):
        await node.ok(LeaveTeam(membership_id=each.membership.id, expected_version=each.membership.version))
    refusal = await declined(s, open_(s.bob.place, s.sup_gen))
    assert (refusal.code, refusal.about) == (Code.MEMBER_RUN_CLOSED, f"membership/{s.bob.membership.id}")
    show = ShowTeamRun(team_run_id=s.run.id)
    refusal = await node.refused(show, plane=Plane.MEMBER, actor=s.cid.session)
    assert (refusal.code, refusal.about) == (Code.NOT_AUTHORIZED, f"membership/{s.cid.membership.id}")


async def test_session_open_effect_unsettled(node: InProcessNode) -> None:
    """While a worktree of the member is taken away nothing is started in it, in whatever place."""
    s = await effects.cold(node)
    launch = await supervised(s, effects.prepare(s))
    await supervised(s, effects.settle(s, launch, Certainty.NOT_APPLIED))
    await report(s, s.bob.session, C.CLOSED)
    made = await node.ok(ArchiveWorkspace(path=Folder(effects.CWD)))
    for supersede in (False, True):
        refusal = await declined(s, open_(s.bob.place, s.sup_gen, supersede=supersede))
        assert (refusal.code, refusal.about) == (Code.EFFECT_UNSETTLED, f"effect/{made.id}")


async def test_session_open_not_found(node: InProcessNode) -> None:
    """A place in another run is not there for this supervisor."""
    s = await without_bobs(node)
    other = await node.ok(CreateTeamRun(team_id=TeamRef(s.team.id)))
    place = (await node.ok(ShowTeamRun(team_run_id=other.id))).members[1].member_run
    for wanted in (place.id, MemberRunId("nothing")):
        refusal = await declined(s, OpenSession(member_run_id=wanted, sup_gen=s.sup_gen))
        assert (refusal.code, refusal.about) == (Code.NOT_FOUND, f"member-run/{wanted}")


async def test_session_open_row_quarantined(node: InProcessNode) -> None:
    s = await without_bobs(node)
    await declined_while_spoilt(s, open_(s.bob.place, s.sup_gen), "member_runs", s.bob.place.id)


async def test_session_open_supervisor_generation_fenced(node: InProcessNode) -> None:
    s = await without_bobs(node)
    for gen in (s.sup_gen - 1 or 7, s.sup_gen + 1):
        assert await declined(s, open_(s.bob.place, gen)) == fenced(s, gen)


async def test_session_open_team_run_not_open(node: InProcessNode) -> None:
    s = await stage(node)
    await close_all(s)
    await node.ok(CompleteTeamRun(team_run_id=s.run.id, expected_version=s.run.version))
    refusal = await declined(s, open_(s.bob.place, s.sup_gen))
    assert (refusal.code, refusal.about) == (Code.TEAM_RUN_NOT_OPEN, f"team-run/{s.run.id}")


@pytest.mark.parametrize("supersede", [False, True])
async def test_a_run_that_drains_opens_no_session(node: InProcessNode, *, supersede: bool) -> None:
    """Its members are being ended: what a supervisor had begun before would come after who listed them."""
    s = await stage(node) if supersede else await without_bobs(node)
    run = await drained(node, s.run)
    refusal = await declined(s, open_(s.bob.place, s.sup_gen, supersede=supersede))
    assert (refusal.code, refusal.about) == (Code.TEAM_RUN_NOT_OPEN, f"team-run/{run.id}")
    assert refusal.lifted_by.endswith(f"firm team-run resume {run.id} --expected-version {run.version}")


async def test_session_report_ok(node: InProcessNode) -> None:
    """A report moves its state and what is known of its process; a native session is kept once it is known."""
    s = await stage(node)
    before = s.bob.session
    ask = said(before, C.CYCLE_STARTED, s.sup_gen, reason="work", native_session="abc")
    after = await supervised(s, ask)
    assert after == attrs.evolve(
        before, version=before.version + 1, state=SessionState.ACTIVE, native_session="abc", updated_at=after.updated_at
    )
    lost = await report(s, after, C.LOST)
    assert (lost.state, lost.process) == (SessionState.RECOVERY_REQUIRED, Liveness.UNKNOWN)
    assert lost.native_session == "abc"


@pytest.mark.parametrize("cause", [C.EXITED, C.LOST])
async def test_what_a_session_held_is_orphaned_with_it(node: InProcessNode, cause: SessionCause) -> None:
    """Its Work keeps its owner, its phase and its version: nobody knows yet what the process did."""
    s = await stage(node)
    work = await s.started(s.bob)
    await report(s, s.bob.session, cause)
    shown = await node.ok(ShowWork(work_id=work.id))
    assert shown.work == work
    assert [(b.custody, b.reason) for b in shown.bindings] == [(Custody.ORPHANED_UNVERIFIED, f"session {cause.value}")]


async def test_how_a_process_ended_may_be_said_after_that_it_did(node: InProcessNode) -> None:
    """What it held is orphaned by the first report, and once; the second says nothing but how."""
    s = await stage(node)
    await s.started(s.bob)
    active = await report(s, s.bob.session, C.CYCLE_STARTED)
    ended = await supervised(s, said(active, C.EXITED, s.sup_gen, reason="how is not read yet"))
    known = await supervised(s, said(ended, C.EXITED, s.sup_gen, reason="ended by signal 9"))
    assert known == attrs.evolve(ended, version=ended.version + 1, updated_at=known.updated_at)
    assert (known.state, known.process) == (SessionState.RECOVERY_REQUIRED, Liveness.STOPPED)
    events = (await node.ok(ListEvents(team_run_id=s.run.id, limit=500))).items
    assert [e.kind for e in events if e.stream == f"session/{known.id}"][-2:] == [
        "exited: how is not read yet",
        "exited: ended by signal 9",
    ]
    assert len([e for e in events if e.body.get("custody") == Custody.ORPHANED_UNVERIFIED.value]) == 1


async def test_session_report_closed_ends_its_capability(node: InProcessNode) -> None:
    s = await stage(node)
    closed = await report(s, s.bob.session, C.CLOSED)
    assert (closed.state, closed.closed_at) == (SessionState.CLOSED, closed.updated_at)
    assert (await capability(node, closed)).state is CapabilityState.REVOKED


async def test_session_report_agent_session_generation_fenced(node: InProcessNode) -> None:
    """Of another generation, or of a session that is closed: what comes late changes nothing."""
    s = await stage(node)
    for gen in (s.bob.session.session_gen + 1, 9):
        refusal = await declined(s, said(s.bob.session, C.LOST, s.sup_gen, session_gen=gen))
        assert refusal == _stale(s.bob.session, gen)
    closed = await report(s, s.bob.session, C.CLOSED)
    assert await declined(s, said(closed, C.LOST, s.sup_gen)) == _stale(closed, closed.session_gen)


def _stale(session: AgentSession, gen: int) -> Refusal:
    lifted_by = (
        f"this session is {session.state.value} at session_gen={session.session_gen}; "
        f"a process of session_gen={gen} stops"
    )
    about = f"session/{session.id}"
    return Refusal(code=Code.AGENT_SESSION_GENERATION_FENCED, about=about, lifted_by=lifted_by)


async def test_session_report_invalid_state_transition(node: InProcessNode) -> None:
    """Every state with every cause is in ``tests/kernel/test_lifecycles.py``; here that the rule is asked."""
    s = await stage(node)
    for state, ways in WAYS.items():
        if state is SessionState.CLOSED:
            continue
        at = await report(s, s.bob.session, *ways)
        assert at.state is state
        wrong = C.CYCLE_ENDED if state is not SessionState.ACTIVE else C.READY
        refusal = await declined(s, said(at, wrong, s.sup_gen))
        good = "active" if wrong is C.CYCLE_ENDED else "cold"
        assert refusal == refusals.no_move(f"session/{at.id}", state.value, good)
        s = attrs.evolve(s, bob=attrs.evolve(s.bob, session=await fresh(s, s.bob.place)))


async def test_session_report_not_found(node: InProcessNode) -> None:
    s = await stage(node)
    other = await node.ok(CreateTeamRun(team_id=TeamRef(s.team.id)))
    ask = said(s.bob.session, C.LOST, s.sup_gen)
    refusal = await node.refused(ask, plane=Plane.SUPERVISOR, actor=other.id)
    assert refusal == refusals.not_found("session", s.bob.session.id)
    assert await declined(s, attrs.evolve(ask, session_id=NO_SESSION)) == refusals.not_found("session", "nothing")


async def test_session_report_row_quarantined(node: InProcessNode) -> None:
    s = await stage(node)
    await declined_while_spoilt(s, said(s.bob.session, C.CYCLE_STARTED, s.sup_gen), "sessions", s.bob.session.id)


async def test_session_report_supervisor_generation_fenced(node: InProcessNode) -> None:
    s = await stage(node)
    for gen in (s.sup_gen + 1, 9):
        assert await declined(s, said(s.bob.session, C.LOST, gen)) == fenced(s, gen)


async def test_session_report_work_binding_live(node: InProcessNode) -> None:
    """A session that still holds something is not closed, also while what it holds is orphaned."""
    s = await stage(node)
    work = await s.started(s.bob)
    refusal = await declined(s, said(s.bob.session, C.CLOSED, s.sup_gen))
    assert (refusal.code, refusal.about) == (Code.WORK_BINDING_LIVE, f"work/{work.id}")
    cold = await report(s, s.bob.session, C.EXITED)
    assert (await declined(s, said(cold, C.CLOSED, s.sup_gen))).code is Code.WORK_BINDING_LIVE
