"""The terminals of sessions, as a person sees them: what they show, how to look on, and their end."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator

import attrs
import trio

from client.protocol.effect import ShowTerminal, StepIn, SweepSessions, Swept, Terminal
from client.protocol.refusals import Code, Refusal
from client.protocol.session import SessionState
from daemon.call import Call
from daemon.health import now
from daemon.operations import actor, cycle, find
from providers.port import Handle, Unreachable
from store import effect as effects
from store import session as sessions
from store.batch import Unit
from store.database import Store
from store.session import SESSIONS
from store.team_run import TEAM_RUNS
from store.tx import Tx
from supervisor.means import Means, handle_of

log = logging.getLogger(__name__)


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
        return Terminal(session_id=ask.session_id, argv=self._argv(handle, read_only=True), screen=screen)

    def _argv(self, handle: Handle, *, read_only: bool) -> list[str]:
        assert self.means is not None, "there is a terminal"
        return self.means.provider.attach_command(handle, read_only=read_only)

    async def step_in(self, call: Call, ask: StepIn) -> AsyncGenerator[Terminal | Refusal, None]:
        """The terminal, then nothing until whoever asked lets go: by leaving, or by ending."""
        found = await self.show(call, ShowTerminal(session_id=ask.session_id))
        came = found if isinstance(found, Refusal) else await self.store.write(lambda tx: _come(tx, call, ask))
        if isinstance(found, Refusal) or isinstance(came, Refusal):
            yield came if isinstance(came, Refusal) else found
            return
        try:
            yield attrs.evolve(found, argv=self._argv(came, read_only=False))
            await trio.sleep_forever()
        finally:
            # Not waited for: whoever asked may be gone, and this be cancelled. The store outlives every connection.
            left = attrs.evolve(call, now=now())
            self.store.submit(Unit(lambda tx: cycle.stepped_out(tx, left, ask.session_id), _noted))

    async def sweep(self, _: Call, __: SweepSessions) -> Swept | Refusal:
        if self.means is None:
            return Swept(left=[], strays=[])
        await self.means.ready()  # what an earlier daemon left is looked for, too
        if self.store.look(sessions.driven) is not None:
            strays = await self.means.provider.strays()
            return _unreachable(strays.detail) if isinstance(strays, Unreachable) else Swept(left=[], strays=[*strays])
        ended = await self.means.provider.close()
        return _unreachable(ended.detail) if isinstance(ended, Unreachable) else Swept(left=[*ended.left], strays=[])


def _noted(unit: Unit) -> None:
    """A disk that fails keeps somebody there who has left, until the session is adopted by the next daemon."""
    if isinstance(unit.outcome, BaseException):
        log.error("that somebody left a terminal could not be recorded", exc_info=unit.outcome)


def _come(tx: Tx, call: Call, ask: StepIn) -> Handle | Refusal:
    """Note who steps in; the terminal is looked for again, since it may have gone meanwhile."""
    handle = _handle(tx, call, ask)
    if isinstance(handle, Refusal):
        return handle
    came = cycle.stepped_in(tx, call, ask.session_id)
    return came if isinstance(came, Refusal) else handle


def _handle(tx: Tx, call: Call, ask: ShowTerminal | StepIn) -> Handle | Refusal:
    found = SESSIONS.load(tx, ask.session_id)
    if found is None:
        return find.not_found("session", ask.session_id)
    run = TEAM_RUNS.held(tx, found.team_run_id)
    if refusal := actor.may_host_or_operate(tx, call, run.team_id):
        return refusal
    handle = handle_of(effects.launch_of(tx, found.id))
    if handle is None or found.state is SessionState.CLOSED:
        lifted_by = "it has no terminal of ours; only a process that a supervisor started has one, while it is open"
        return Refusal(code=Code.INVALID_STATE_TRANSITION, about=f"session/{found.id}", lifted_by=lifted_by)
    return handle


def _unreachable(detail: str) -> Refusal:
    lifted_by = f"ask again when it answers: {detail}"
    return Refusal(code=Code.PROVIDER_UNREACHABLE, about="provider", lifted_by=lifted_by)
