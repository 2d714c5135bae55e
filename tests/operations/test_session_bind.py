"""``session.bind`` and ``session.unbind``, one test an outcome that the table declares. The processes are real."""

from __future__ import annotations

import os
import subprocess
import threading

import attrs
import pytest

from client.protocol.attempt import Custody
from client.protocol.ceiling import Ceiling
from client.protocol.ids import AgentMemberRef, SessionId, TeamRef, TeamRunId
from client.protocol.operation import Plane
from client.protocol.refusals import Code, Refusal
from client.protocol.session import (
    AgentSession,
    BindSession,
    Driver,
    Liveness,
    SessionCause,
    SessionState,
    ShowSession,
    UnbindSession,
)
from client.protocol.team_run import CreateTeamRun, ShowTeamRun, StartTeamRun
from client.protocol.work_asks import ShowWork
from providers.process import boot_id, start_ticks_of
from tests.support import refusals, scene
from tests.support.node import InProcessNode
from tests.support.refusals import refused_while_spoilt
from tests.support.run import Member, Stage, stage
from tests.support.supervised import report

Process = subprocess.Popen[bytes]
BOB = AgentMemberRef("bob")
#: Above every pid that the kernel gives out here.
NOBODY = 2**22


def bind(process: Process, who: AgentMemberRef = BOB, run: str | None = None) -> BindSession:
    return BindSession(agent_member_id=who, pid=process.pid, team_run_id=TeamRunId(run) if run else None)


async def without_bobs(node: InProcessNode) -> Stage:
    s = await stage(node)
    await report(s, s.bob.session, SessionCause.CLOSED)
    return s


async def second_run(s: Stage) -> str:
    return (await s.node.ok(CreateTeamRun(team_id=TeamRef(s.team.id)))).id


async def test_session_bind_ok(node: InProcessNode, living: Process) -> None:
    """Proven by its process alone: it has no capability, and nobody supervises it."""
    s = await without_bobs(node)
    made = await node.ok(bind(living))
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
        state=SessionState.IDLE,
        driver=Driver.USER_DRIVEN,
        process=Liveness.LIVE,
        pid=living.pid,
        start_ticks=start_ticks_of(living.pid) or 0,
        boot_id=boot_id(),
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
    assert (made.session_gen, made.sup_gen) == (s.bob.session.session_gen + 1, 0)
    assert (await node.ok(ShowSession(session_id=made.id))).capability is None
    work = await s.started(attrs.evolve(s.bob, session=made))
    assert work.owner_id == s.bob.membership.id


async def test_session_bind_agent_member_paused(node: InProcessNode, living: Process) -> None:
    s = await without_bobs(node)
    paused = await scene.paused(node, s.bob.agent)
    refusal = await node.refused(bind(living))
    assert refusal == refusals.paused(paused.id, paused.version)
    assert not isinstance(await node.follow(refusal), Refusal)
    await node.ok(bind(living))


async def test_session_bind_agent_member_retired(node: InProcessNode, living: Process) -> None:
    s = await without_bobs(node)
    await scene.retired(node, s.bob.agent)
    refusal = await node.refused(bind(living, AgentMemberRef(s.bob.agent.id)))
    assert refusal == refusals.retired(s.bob.agent.id)


async def test_session_bind_agent_session_exists(node: InProcessNode, living: Process) -> None:
    """One session that is open for each member, and one for each process."""
    s = await stage(node)
    refusal = await node.refused(bind(living))
    assert (refusal.code, refusal.about) == (Code.AGENT_SESSION_EXISTS, f"session/{s.bob.session.id}")
    await report(s, s.bob.session, SessionCause.CLOSED)
    await report(s, s.cid.session, SessionCause.CLOSED)
    made = await node.ok(bind(living))
    for again in (BOB, AgentMemberRef("cid")):
        refusal = await node.refused(bind(living, again))
        assert (refusal.code, refusal.about) == (Code.AGENT_SESSION_EXISTS, f"session/{made.id}")
    assert not isinstance(await node.follow(refusal), Refusal)
    await node.ok(bind(living, AgentMemberRef("cid")))


async def test_session_bind_member_run_closed(node: InProcessNode, living: Process) -> None:
    """A member that takes part in no run that goes on, or not in the one that is named."""
    s = await without_bobs(node)
    await scene.agent(node, "eve")
    for refusal in (
        await node.refused(bind(living, AgentMemberRef("eve"))),
        await node.refused(bind(living, BOB, "-")),
    ):
        assert refusal.code is Code.MEMBER_RUN_CLOSED
        assert "firm member-run add --team-run-id RUN --membership-id MEMBERSHIP" in refusal.lifted_by
    await scene.left(node, s.bob.membership)
    assert (await node.refused(bind(living))).code is Code.MEMBER_RUN_CLOSED


async def test_session_bind_name_ambiguous(node: InProcessNode, living: Process) -> None:
    """Two members of that name, or one member in two runs."""
    s = await without_bobs(node)
    other = await second_run(s)
    refusal = await node.refused(bind(living))
    assert refusal == Refusal(
        code=Code.NAME_AMBIGUOUS,
        about=f"agent/{s.bob.agent.id}",
        lifted_by=f"say which run: {s.run.id} or {other}",
    )
    namesake = await scene.agent(node, "bob")
    refusal = await node.refused(bind(living))
    assert refusal == refusals.ambiguous("agent", "bob", s.bob.agent.id, namesake.id)
    made = await node.ok(bind(living, AgentMemberRef(s.bob.agent.id), other))
    assert made.team_run_id == other


async def test_session_bind_not_found(node: InProcessNode, living: Process) -> None:
    assert await node.refused(bind(living)) == refusals.not_found("agent", "bob")


async def test_session_bind_process_unproven(node: InProcessNode, living: Process) -> None:
    """A process that does not run, that is the daemon itself, or that is only a thread of one."""
    await without_bobs(node)
    born, done = threading.Event(), threading.Event()

    def wait() -> None:
        born.set()
        done.wait()

    thread = threading.Thread(target=wait)
    thread.start()
    born.wait()
    assert thread.native_id is not None
    try:
        for pid in (NOBODY, os.getpid(), thread.native_id):
            refusal = await node.refused(BindSession(agent_member_id=BOB, pid=pid))
            assert (refusal.code, refusal.about) == (Code.PROCESS_UNPROVEN, f"process/{pid}")
            assert refusal.lifted_by.endswith("name one that runs, such as your shell: --pid $$")
    finally:
        done.set()
        thread.join()
    living.kill()
    living.wait()
    assert (await node.refused(bind(living))).code is Code.PROCESS_UNPROVEN


async def test_session_bind_row_quarantined(node: InProcessNode, living: Process) -> None:
    s = await without_bobs(node)
    ask = bind(living, AgentMemberRef(s.bob.agent.id))
    await refused_while_spoilt(node, ask, "member_runs", s.bob.place.id)


async def test_only_the_operator_binds(node: InProcessNode, living: Process) -> None:
    s = await without_bobs(node)
    for plane, who in ((Plane.HOST, s.ann.session), (Plane.MEMBER, s.cid.session), (Plane.SUPERVISOR, s.run.id)):
        refusal = await node.refused(bind(living), plane=plane, actor=who)
        assert (refusal.code, refusal.about) == (Code.NOT_AUTHORIZED, "session.bind")


async def test_session_unbind_ok(node: InProcessNode, living: Process) -> None:
    """What it answers for stays with the member; what it held is orphaned."""
    s = await without_bobs(node)
    made = await node.ok(bind(living))
    work = await s.started(Member(s.bob.agent, s.bob.membership, s.bob.place, made))
    closed = await node.ok(UnbindSession(session_id=made.id))
    assert closed == attrs.evolve(
        made,
        version=2,
        state=SessionState.CLOSED,
        process=Liveness.UNKNOWN,  # nobody looks at it any more
        updated_at=closed.updated_at,
        closed_at=closed.updated_at,
    )
    shown = await node.ok(ShowWork(work_id=work.id))
    assert shown.work == work
    assert [b.custody for b in shown.bindings] == [Custody.ORPHANED_UNVERIFIED]
    again = await node.ok(bind(living))
    assert again.session_gen == made.session_gen + 1


async def test_session_unbind_invalid_state_transition(node: InProcessNode, living: Process) -> None:
    """One that is closed already, or one that its supervisor drives."""
    s = await stage(node)
    refusal = await node.refused(UnbindSession(session_id=s.bob.session.id))
    driven = f"its process is ours to end: firm session close {s.bob.session.id}"
    said = "this ends the session of a person's own process"
    code = Code.INVALID_STATE_TRANSITION
    assert refusal == Refusal(code=code, about=f"session/{s.bob.session.id}", lifted_by=driven)
    await report(s, s.bob.session, SessionCause.CLOSED)
    made = await node.ok(bind(living))
    await node.ok(UnbindSession(session_id=made.id))
    refusal = await node.refused(UnbindSession(session_id=made.id))
    assert refusal == Refusal(code=code, about=f"session/{made.id}", lifted_by=f"it is closed; {said}")


async def test_session_unbind_not_found(node: InProcessNode) -> None:
    ask = UnbindSession(session_id=SessionId("nothing"))
    assert await node.refused(ask) == refusals.not_found("session", "nothing")


async def test_session_unbind_row_quarantined(node: InProcessNode, living: Process) -> None:
    await without_bobs(node)
    made = await node.ok(bind(living))
    await refused_while_spoilt(node, UnbindSession(session_id=made.id), "sessions", made.id)


@pytest.mark.parametrize("planned", [True, False])
async def test_a_shell_is_bound_before_its_run_has_started_too(
    node: InProcessNode, living: Process, *, planned: bool
) -> None:
    await scene.crew(node)
    run = await node.ok(CreateTeamRun(team_id=TeamRef("crew")))
    if not planned:
        await node.ok(StartTeamRun(team_run_id=run.id, expected_version=1))
    made = await node.ok(bind(living))
    assert made.team_run_id == run.id
    places = (await node.ok(ShowTeamRun(team_run_id=run.id))).members
    assert made.member_run_id == places[1].member_run.id
