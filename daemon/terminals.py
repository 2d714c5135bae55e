"""The terminals of sessions, as a person sees them: what they show, how to look on, and their end."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator

import attrs
import trio

from client.protocol.effect import Certainty, RuntimeEffect, ShowTerminal, StepIn, SweepSessions, Swept, Terminal
from client.protocol.ids import SessionId, UnixMs
from client.protocol.refusals import Code, Refusal
from client.protocol.session import AgentSession, Liveness, SessionState
from daemon.call import Call
from daemon.health import now
from daemon.operations import actor, cycle, find
from providers.port import Handle, Unreachable
from store import effect as effects
from store import events
from store import session as sessions
from store.batch import Unit
from store.database import Store
from store.session import SESSIONS
from store.team_run import TEAM_RUNS
from store.tx import Tx
from supervisor.means import Means, handle_of
from supervisor.screens import KEPT, UNREAD, Screens

log = logging.getLogger(__name__)


@attrs.frozen
class _Found:
    """``over`` is how the process ended and when; None while it may live."""

    session: AgentSession
    handle: Handle
    over: tuple[str, UnixMs] | None
    purged: bool

    @property
    def lost(self) -> bool:
        """Whether it was lost sight of, and may still have its terminal."""
        return self.session.state is SessionState.RECOVERY_REQUIRED and self.session.process is not Liveness.STOPPED


@attrs.frozen
class Terminals:
    """``means`` is None where no process is ever started."""

    store: Store
    means: Means | None

    async def show(self, call: Call, ask: ShowTerminal) -> Terminal | Refusal:
        """What stands there now; where its process has ended, what stood there last."""
        found = self.store.look(lambda tx: _found(tx, call, ask))
        if isinstance(found, Refusal):
            return found
        if self.means is None:
            return _unreachable("this daemon starts no processes")
        live = found.over is None or (found.lost and await self._stands(found.handle))
        if isinstance(live, Refusal):
            return live
        return await (self._live(call, found) if live else self._last(call, self.means.screens, found))

    async def _live(self, call: Call, found: _Found) -> Terminal | Refusal:
        assert self.means is not None, "there is a terminal"
        await self.means.ready()
        screen = await self.means.provider.capture(found.handle)
        if isinstance(screen, Unreachable):
            return _unreachable(screen.detail)
        argv = self._argv(found.handle, read_only=True)
        return Terminal(session_id=found.session.id, argv=argv, screen=screen, live=True, at=call.now)

    async def _last(self, call: Call, screens: Screens, found: _Found) -> Terminal:
        assert found.over is not None, "its process has ended"
        ended, ended_at = found.over
        last = None if found.purged else await screens.last(found.session)
        why = ""
        if found.purged:
            why = "what was said in its run was purged"
        elif last is None:
            why = _why_none(ended, old=call.now - ended_at > KEPT)
        return Terminal(
            session_id=found.session.id,
            argv=[],
            screen=last.text if last else "",
            live=False,
            at=last.at if last else None,
            ended=ended,
            ended_at=ended_at,
            no_screen=why,
        )

    async def _stands(self, handle: Handle) -> bool | Refusal:
        """Whether the terminal of a process that was lost is still there."""
        assert self.means is not None, "there may be a terminal"
        await self.means.ready()
        seen = await self.means.provider.observe()
        if isinstance(seen, Unreachable):
            return _unreachable(seen.detail)
        pane = seen.panes.get(handle.launch_id)
        return pane is not None and pane.handle == handle and pane.ended is None

    def _argv(self, handle: Handle, *, read_only: bool) -> list[str]:
        assert self.means is not None, "there is a terminal"
        return self.means.provider.attach_command(handle, read_only=read_only)

    async def step_in(self, call: Call, ask: StepIn) -> AsyncGenerator[Terminal | Refusal, None]:
        """The terminal, then nothing until whoever asked lets go: by leaving, or by ending."""
        found = await self.show(call, ShowTerminal(session_id=ask.session_id))
        if isinstance(found, Terminal) and not found.live:
            found = _no_terminal(ask.session_id)
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
    found = actor.standing(tx, call) or _found(tx, call, ask)
    if isinstance(found, Refusal):
        return found
    if found.over is not None and not found.lost:
        return _no_terminal(ask.session_id)
    came = cycle.stepped_in(tx, call, ask.session_id)
    return came if isinstance(came, Refusal) else found.handle


def _found(tx: Tx, call: Call, ask: ShowTerminal | StepIn) -> _Found | Refusal:
    """Whoever may see what a terminal shows may see what it showed last, and nobody else."""
    found = SESSIONS.load(tx, ask.session_id)
    if found is None:
        return find.not_found("session", ask.session_id)
    run = TEAM_RUNS.held(tx, found.team_run_id)
    if refusal := actor.may_host_or_operate(tx, call, run.team_id):
        return refusal
    launch = effects.launch_of(tx, found.id)
    handle = handle_of(launch)
    if handle is None or launch is None:
        return _no_terminal(found.id)
    return _Found(found, handle, _over(tx, found, launch), purged=run.purged_at is not None)


def _over(tx: Tx, found: AgentSession, launch: RuntimeEffect) -> tuple[str, UnixMs] | None:
    """How the process of a session ended, and when; None while it may live."""
    if launch.certainty is Certainty.NOT_APPLIED:
        return launch.readback, launch.settled_at or launch.updated_at
    if found.process is not Liveness.STOPPED and found.state not in {
        SessionState.CLOSED,
        SessionState.RECOVERY_REQUIRED,
    }:
        return None
    kind, at = events.end_of_session(tx, found.id) or ("ended", found.updated_at)
    cause, _, reason = kind.partition(": ")
    return reason or cause, at


def _why_none(ended: str, *, old: bool) -> str:
    if old:
        return "it was kept for seven days"
    if ended == UNREAD:
        return "it is read together with how the process ended; where that stays so, whoever was to read it was killed"
    return "it was blank, or could not be read or kept at its end"


def _no_terminal(session_id: SessionId) -> Refusal:
    lifted_by = (
        "it has no terminal of ours: only a process that a supervisor started has one; what stood there before it "
        "ended, or on that of the one before: firm logs NAME --last"
    )
    return Refusal(code=Code.INVALID_STATE_TRANSITION, about=f"session/{session_id}", lifted_by=lifted_by)


def _unreachable(detail: str) -> Refusal:
    lifted_by = f"ask again when it answers: {detail}"
    return Refusal(code=Code.PROVIDER_UNREACHABLE, about="provider", lifted_by=lifted_by)
