"""The terminals of sessions, as a person sees them: what they show, how to look on, and their end."""

from __future__ import annotations

import attrs

from client.protocol.effect import ShowTerminal, SweepSessions, Swept, Terminal
from client.protocol.refusals import Code, Refusal
from client.protocol.session import SessionState
from daemon.call import Call
from daemon.kernel.session import exists
from daemon.operations import actor, find
from providers.port import Handle, Unreachable
from store import effect as effects
from store import session as sessions
from store.database import Store
from store.session import SESSIONS
from store.team_run import TEAM_RUNS
from store.tx import Tx
from supervisor.desk import Means


@attrs.frozen
class Terminals:
    """``means`` is None where no process is ever started."""

    store: Store
    means: Means | None

    async def show(self, call: Call, ask: ShowTerminal) -> Terminal | Refusal:
        handle = self.store.look(lambda tx: _handle(tx, call, ask))
        if isinstance(handle, Refusal):
            return handle
        if self.means is None:
            return _unreachable("this daemon starts no processes")
        await self.means.ready()
        screen = await self.means.provider.capture(handle)
        if isinstance(screen, Unreachable):
            return _unreachable(screen.detail)
        argv = self.means.provider.attach_command(handle, read_only=True)
        return Terminal(session_id=ask.session_id, argv=argv, screen=screen)

    async def sweep(self, _: Call, __: SweepSessions) -> Swept | Refusal:
        if (needed := self.store.look(sessions.driven)) is not None:
            lifted_by = f"end the runs first: firm down {needed.team_run_id}"
            return attrs.evolve(exists(needed), code=Code.SESSION_LIVE, lifted_by=lifted_by)
        if self.means is None:
            return Swept(left=[])
        await self.means.ready()  # what an earlier daemon left is ended too
        ended = await self.means.provider.close()
        return _unreachable(ended.detail) if isinstance(ended, Unreachable) else Swept(left=list(ended.left))


def _handle(tx: Tx, call: Call, ask: ShowTerminal) -> Handle | Refusal:
    session = SESSIONS.load(tx, ask.session_id)
    if session is None:
        return find.not_found("session", ask.session_id)
    run = TEAM_RUNS.load(tx, session.team_run_id)
    assert run is not None, "a foreign key holds it"
    if refusal := actor.may_host_or_operate(tx, call, run.team_id):
        return refusal
    launch = effects.launch_of(tx, session.id)
    if launch is None or not launch.pid or session.state is SessionState.CLOSED:
        lifted_by = "it has no terminal of ours; only a process that a supervisor started has one, while it is open"
        return Refusal(code=Code.INVALID_STATE_TRANSITION, about=f"session/{session.id}", lifted_by=lifted_by)
    return Handle(
        launch_id=launch.id,
        pane=launch.pane,
        pid=launch.pid,
        start_ticks=launch.start_ticks,
        boot_id=launch.boot_id,
    )


def _unreachable(detail: str) -> Refusal:
    lifted_by = f"ask again when it answers: {detail}"
    return Refusal(code=Code.PROVIDER_UNREACHABLE, about="provider", lifted_by=lifted_by)
