"""What a supervisor and a session do in a test: reports, tokens, and calls proven by a capability."""

from __future__ import annotations

import subprocess
from collections.abc import Generator
from typing import Any

import attrs
import pytest

from client.protocol.ids import DaemonGen, UnixMs
from client.protocol.operation import Plane, R, Request
from client.protocol.refusals import Code, Refusal
from client.protocol.session import (
    AgentSession,
    Capability,
    Driver,
    OpenSession,
    ReportSession,
    SessionCause,
    SessionState,
    ShowSession,
)
from client.protocol.team_run import DrainTeamRun, MemberRun, ShowTeamRun, StartTeamRun, TeamRun
from daemon.inside import Inside
from tests.support import refusals
from tests.support.node import InProcessNode
from tests.support.run import Stage
from tests.support.spoil import mend, spoil

#: How a session that is idle comes into each state.
WAYS: dict[SessionState, tuple[SessionCause, ...]] = {
    SessionState.IDLE: (),
    SessionState.COLD: (SessionCause.EXITED,),
    SessionState.ACTIVE: (SessionCause.CYCLE_STARTED,),
    SessionState.INTERRUPTED: (SessionCause.CYCLE_STARTED, SessionCause.INTERRUPTED),
    SessionState.RECOVERY_REQUIRED: (SessionCause.LOST,),
    SessionState.CLOSED: (SessionCause.CLOSED,),
}


def said(
    session: AgentSession,
    cause: SessionCause,
    sup_gen: int,
    *,
    session_gen: int | None = None,
    reason: str = "",
    native_session: str = "",
) -> ReportSession:
    return ReportSession(
        session_id=session.id,
        session_gen=session.session_gen if session_gen is None else session_gen,
        sup_gen=sup_gen,
        cause=cause,
        reason=reason,
        native_session=native_session,
    )


def open_(
    place: MemberRun, sup_gen: int, *, driver: Driver = Driver.HOST_DRIVEN, supersede: bool = False
) -> OpenSession:
    return OpenSession(member_run_id=place.id, sup_gen=sup_gen, driver=driver, supersede=supersede)


async def supervised(s: Stage, ask: Request[R]) -> R:
    """The answer to the supervisor of the run."""
    return await s.node.ok(ask, plane=Plane.SUPERVISOR, actor=s.run.id)


async def declined(s: Stage, ask: Request[Any]) -> Refusal:
    """The refusal of the supervisor of the run."""
    return await s.node.refused(ask, plane=Plane.SUPERVISOR, actor=s.run.id)


def fenced(s: Stage, gen: int) -> Refusal:
    return Refusal(
        code=Code.SUPERVISOR_GENERATION_FENCED,
        about=f"team-run/{s.run.id}",
        lifted_by=f"sup_gen={s.sup_gen} holds this run; a supervisor of sup_gen={gen} stops",
    )


async def declined_while_spoilt(
    s: Stage, ask: Request[Any], table: str, record: str, *, then: Code | None = None
) -> None:
    """The supervisor is refused while that row does not decode, and is not any more once that was lifted, or ``then``
    for another reason.
    """
    was = spoil(s.node.store.path, table, record)
    refusal = await declined(s, ask)
    assert refusal == refusals.unreadable(f"{table}/{record}")
    mend(s.node.store.path, table, record, was)
    assert not isinstance(await s.node.follow(refusal), Refusal)
    if then is None:
        await supervised(s, ask)
    else:
        assert (await declined(s, ask)).code == then


async def report(s: Stage, session: AgentSession, *causes: SessionCause) -> AgentSession:
    """The session after its supervisor has reported each of ``causes``."""
    for cause in causes:
        session = await supervised(s, said(session, cause, s.sup_gen))
    return session


async def fresh(s: Stage, place: MemberRun) -> AgentSession:
    """The next session of that place, in the place of the former one, and idle."""
    made = await supervised(s, open_(place, s.sup_gen, supersede=True))
    return await report(s, made, SessionCause.READY)


async def close_all(s: Stage) -> None:
    for each in (s.ann, s.bob, s.cid):
        await report(s, each.session, SessionCause.CLOSED)


async def capability(node: InProcessNode, session: AgentSession) -> Capability:
    found = (await node.ok(ShowSession(session_id=session.id))).capability
    assert found is not None
    return found


@attrs.frozen
class Shown:
    """A caller that shows the capability of ``session``, at a moment and to a daemon of the test's choice."""

    node: InProcessNode
    session: AgentSession
    plane: Plane = Plane.MEMBER
    now: UnixMs | None = None
    daemon_gen: int | None = None

    async def ask(self, request: Request[Any]) -> object:
        call = self.node.call(self.plane, self.session)
        call = attrs.evolve(
            call,
            by_capability=True,
            now=self.now or call.now,
            daemon_gen=DaemonGen(self.daemon_gen or call.daemon_gen),
        )
        return await Inside(self.node.dispatcher, lambda: call).ask(request)

    async def refused(self, request: Request[Any]) -> Refusal:
        """The refusal, once it is certain that it changed nothing."""
        before = self.node.rows()
        outcome = await self.ask(request)
        assert isinstance(outcome, Refusal), outcome
        assert self.node.rows() == before
        return outcome


async def run_now(node: InProcessNode, run: TeamRun) -> TeamRun:
    return (await node.ok(ShowTeamRun(team_run_id=run.id))).run


async def place_now(node: InProcessNode, place: MemberRun) -> MemberRun:
    shown = await node.ok(ShowTeamRun(team_run_id=place.team_run_id))
    (found,) = [each.member_run for each in shown.members if each.member_run.id == place.id]
    return found


async def started(node: InProcessNode, run: TeamRun) -> TeamRun:
    return await node.ok(StartTeamRun(team_run_id=run.id, expected_version=run.version))


async def drained(node: InProcessNode, run: TeamRun) -> TeamRun:
    return await node.ok(DrainTeamRun(team_run_id=run.id, expected_version=run.version))


@pytest.fixture
def living() -> Generator[subprocess.Popen[bytes]]:
    """A process of this user that lives until it is ended, or until the test is over."""
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as process:
        yield process
        process.kill()
