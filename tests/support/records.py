"""One Work and one session, whole, for tables of pure rules: a test evolves what it is about."""

from __future__ import annotations

from client.protocol.ceiling import Ceiling
from client.protocol.ids import (
    AgentMemberId,
    DaemonGen,
    MemberRunId,
    RunGen,
    SessionGen,
    SessionId,
    SupGen,
    TeamId,
    TeamRunId,
    UnixMs,
    WorkId,
)
from client.protocol.session import AgentSession, Driver, Liveness, SessionState
from client.protocol.work import ClaimMode, Condition, Phase, Priority, Work

NOW = UnixMs(1)

#: Open, and nobody's.
WORK = Work(
    id=WorkId("w1"),
    version=1,
    team_id=TeamId("t1"),
    team_run_id=TeamRunId("r1"),
    owner_id=None,
    title="build it",
    context="",
    criteria=["it works"],
    phase=Phase.OPEN,
    condition=Condition.NORMAL,
    held=None,
    resolution=None,
    claim_mode=ClaimMode.TEAM_CLAIM,
    eligible=[],
    required_role="",
    priority=Priority.NORMAL,
    needs=[],
    checks=[],
    reason="",
    result_summary="",
    receipt_id=None,
    created_by="operator",
    created_at=NOW,
    updated_at=NOW,
    verifier_id=None,
)

#: Idle, of a live process.
SESSION = AgentSession(
    id=SessionId("session"),
    version=1,
    agent_member_id=AgentMemberId("bob"),
    member_run_id=MemberRunId("place"),
    team_run_id=TeamRunId("run"),
    session_gen=SessionGen(2),
    run_gen=RunGen(1),
    sup_gen=SupGen(1),
    daemon_gen=DaemonGen(1),
    state=SessionState.IDLE,
    driver=Driver.HOST_DRIVEN,
    process=Liveness.LIVE,
    pid=7,
    start_ticks=8,
    boot_id="boot",
    native_session="",
    created_at=NOW,
    updated_at=NOW,
    closed_at=None,
    streak=0,
    degraded_at=None,
    hinted_at=None,
    typist="",
    ceiling=Ceiling.WORKSPACE_WRITE,
)
