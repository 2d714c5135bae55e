"""What a supervisor does to processes: each act is recorded before it is done and settled after it was read back."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path

import attrs
import trio

from client.protocol.board import Seat
from client.protocol.boundary import Boundary
from client.protocol.effect import (
    Certainty,
    EffectState,
    PrepareEffect,
    RuntimeEffect,
    SettleEffect,
    ShowEffect,
    StartedEffect,
)
from client.protocol.event import WaitForEvent
from client.protocol.ids import MemberRunId, SessionId, TeamRunId
from client.protocol.operation import Node, R, Request
from client.protocol.refusals import Code, Refusal
from client.protocol.session import AgentSession, DeriveToken, OpenSession, ReportSession, SessionCause, SessionState
from providers.port import Handle, NotStarted, Provider, Unreachable, Why
from providers.process import Process, boot_id, has_execd, over
from providers.records import Reading
from supervisor.decide import MOST_FAILURES, Action, Adopt
from supervisor.means import Means, cleared, end, give, goes_on, handle_of, start
from supervisor.records import Records
from supervisor.screens import UNREAD, values
from supervisor.starts import Starts

log = logging.getLogger(__name__)

#: After these a supervisor stops. Anything else may be lifted: a full disk is emptied, a record is repaired.
ENDS = frozenset({Code.NOT_FOUND, Code.SUPERVISOR_GENERATION_FENCED, Code.TEAM_RUN_NOT_OPEN})
#: Seconds before it asks again after something that may be lifted.
_AGAIN = 10.0
#: Seconds from the start of a launcher to the proof that it became its program.
HANDSHAKE_SECONDS = 15.0
#: Seconds before a place is tried again, doubled with each failure in a row.
_BACK_OFF = 0.5
#: Seconds that a process has to end once its terminal hung up on it.
_HUNG_UP = 4.0
#: What is read back of a launch that nobody saw to its end.
NO_TERMINAL, _UNPROVEN = "no terminal bears its id", "its process ended before it was proven"
#: A process that lived so long was no failure of its launch.
_SETTLED_IN = 60.0


async def lasting(node: Node, request: Request[R], *, key: str = "") -> R | Refusal:
    """The answer, or why the run is not this supervisor's any more; what stands in the way is waited out."""
    told: Code | None = None
    while True:
        outcome = await node.ask(request, key=key)
        if not isinstance(outcome, Refusal) or outcome.code in ENDS:
            return outcome
        if outcome.code is not told:
            told = outcome.code
            log.warning("asking again until it is lifted: %s, %s", outcome.code, outcome.lifted_by)
        await trio.sleep(_AGAIN)


@attrs.define
class Desk:
    """``busy`` is what is done now, by name; ``failures`` counts launches of a place that came to nothing in a row."""

    node: Node
    means: Means
    run_id: TeamRunId
    sup_gen: int
    busy: dict[str, Action] = attrs.Factory(dict)
    failures: dict[MemberRunId, int] = attrs.Factory(dict)
    _gens: dict[MemberRunId, int] = attrs.Factory(dict)
    stopping: set[SessionId] = attrs.Factory(set)
    starts: Starts = attrs.Factory(Starts)
    #: When each cycle began that this supervisor has seen from its beginning; which of them it has interrupted, and
    #: what wakes who watches one when that is done.
    began: dict[SessionId, float] = attrs.Factory(dict)
    interrupted: set[SessionId] = attrs.Factory(set)
    prods: dict[SessionId, trio.Event] = attrs.Factory(dict)
    records: Records = attrs.Factory(lambda desk: Records(desk.means.transcript, desk.means.profiles), takes_self=True)
    #: Set when something that was busy has ended: look again.
    stirred: trio.Event = attrs.Factory(trio.Event)
    #: Once it leaves: set when it does nothing to a terminal or process any more. Nothing begins then.
    leaving: trio.Event | None = None

    def look_at(self, seats: Sequence[Seat]) -> None:
        """A place that was opened again begins anew: what failed before counts no more."""
        self.records.look_at(seats)
        for seat in seats:
            if self._gens.get(seat.member_run_id) != seat.run_gen:
                self._gens[seat.member_run_id] = seat.run_gen
                self.failures.pop(seat.member_run_id, None)

    async def open(self, seat: Seat) -> None:
        """Give a place a session and its process, and follow that to its end."""
        failed = self.failures.get(seat.member_run_id, 0)
        if failed:
            await trio.sleep(_BACK_OFF * 2**failed)
        if not await cleared(self.means, seat):
            await trio.sleep(_AGAIN)
            return
        folder = await self.means.folder(seat)
        session = await self._session(seat, folder)
        if session is None:  # such as a member that has its session in another run
            await trio.sleep(_AGAIN)
            return
        cwd = seat.root if isinstance(folder, Refusal) else str(folder)
        resumes = await goes_on(self.means, seat, session, folder)
        with self.starts.begun(session.id):
            effect = await self.ask(
                PrepareEffect(
                    session_id=session.id,
                    session_gen=session.session_gen,
                    sup_gen=self.sup_gen,
                    cwd=cwd,
                    resumes=resumes is True,
                )
            )
            if effect is None:
                self.starts.over(session.id)
                await trio.sleep(_AGAIN)
                return
            if isinstance(resumes, Refusal):  # on record like every launch that came to nothing
                log.warning("%s is not launched: %s, %s", seat.agent_name, resumes.code, resumes.lifted_by)
                await self.settle(effect, Certainty.NOT_APPLIED, f"{resumes.code.value}: {resumes.lifted_by}")
                self._failed(seat)
                return
            await self._launch(seat, session, effect)

    async def _session(self, seat: Seat, folder: Path | Refusal) -> AgentSession | None:
        """The session to launch for: the one that never had a process, or the next one."""
        if seat.session is not None and _unchanged(seat, seat.session, folder):
            return seat.session
        asked = OpenSession(
            member_run_id=seat.member_run_id,
            sup_gen=self.sup_gen,
            supersede=seat.session is not None,
            cwd="" if isinstance(folder, Refusal) else str(folder),
        )
        return await self.ask(asked)

    async def _launch(self, seat: Seat, session: AgentSession, effect: RuntimeEffect) -> None:
        self.means.crash(Boundary.LAUNCH_PREPARED)
        if wrong := await give(self.means, session, effect):
            await self.settle(effect, Certainty.NOT_APPLIED, wrong)
            self._failed(seat)
            return
        handle = await start(self.means, effect)
        if isinstance(handle, NotStarted):
            certainty = Certainty.UNKNOWN if handle.why is Why.UNREACHABLE else Certainty.NOT_APPLIED
            await self.settle(effect, certainty, f"{handle.why.value}: {handle.detail}")
            self._failed(seat)
            return
        self.means.crash(Boundary.LAUNCH_DONE)
        asked = StartedEffect(
            effect_id=effect.id,
            sup_gen=self.sup_gen,
            pane=handle.pane,
            pid=handle.pid,
            start_ticks=handle.start_ticks,
            boot_id=handle.boot_id,
        )
        if await self.ask(asked) is None:
            return
        self.starts.over(session.id)
        self.means.crash(Boundary.LAUNCH_RECORDED)
        if await self._became(effect, handle):
            self.means.crash(Boundary.LAUNCH_SETTLED)
            self.records.know(session, effect)
            await self._follow(seat, session, handle)
            return
        await self._give_up(seat, session, effect, handle)

    async def _became(self, effect: RuntimeEffect, handle: Handle) -> bool:
        """Whether the process was proven to have become its program, in time."""
        proven = False
        with trio.move_on_after(HANDSHAKE_SECONDS):
            async with trio.open_nursery() as either:

                async def wait() -> None:
                    nonlocal proven
                    settled = f"effect:{effect.id}.state={EffectState.SETTLED.value}"
                    await lasting(
                        self.node, WaitForEvent(predicate=settled, timeout_ms=int(HANDSHAKE_SECONDS * 1000), limit=0)
                    )
                    shown = await self.ask(ShowEffect(effect_id=effect.id))
                    proven = shown is not None and shown.certainty is Certainty.APPLIED
                    either.cancel_scope.cancel(reason="it is settled")

                either.start_soon(wait)
                await over(handle)
                await trio.sleep(_BACK_OFF)  # the door may be settling it in this very moment
                either.cancel_scope.cancel(reason="it ended")
        return proven

    async def _give_up(self, seat: Seat, session: AgentSession, effect: RuntimeEffect, handle: Handle) -> None:
        await keep_screen(self, session, await self.means.provider.capture(handle))
        await end(self.means, handle, effect.session_id)
        shown = await self.ask(ShowEffect(effect_id=effect.id))
        if shown is not None and shown.state is EffectState.PREPARED:
            last = f"its last screen: firm logs {session.id}"
            await self.settle(effect, Certainty.NOT_APPLIED, f"it did not become its program; {last}")
        self._failed(seat)

    async def _follow(self, seat: Seat, session: AgentSession, handle: Handle) -> None:
        """Wait for the end of a process that was proven, and report it: that it ended at once, how as soon as that was
        read. Its place is busy until what it left has ended too: that would go on in the workspace beside its
        successor.
        """
        began = trio.current_time()
        await self.records.begin(session.id)
        outlived = await _outlives(self.means.provider, handle)
        if session.id in self.stopping:
            return  # it was asked for, and whoever ends it reads it back
        if outlived:
            await self._report(session, SessionCause.LOST, "lost: its terminal is gone, its process is not")
            return
        said = await self.records.since(session.id)
        await self._report(session, SessionCause.EXITED, UNREAD, said)
        self.means.crash(Boundary.EXIT_REPORTED)
        await self._report(session, SessionCause.EXITED, await _how(self, session, handle))
        if trio.current_time() - began >= _SETTLED_IN:
            self.failures.pop(seat.member_run_id, None)
        else:
            self._failed(seat)
        stopped = await end(self.means, handle, session.id)
        if isinstance(stopped, Unreachable) or stopped.left:
            log.warning("not all of launch=%s is proven ended: %s", handle.launch_id, stopped)

    async def adopt(self, action: Adopt) -> None:
        """Look whether the process of a session is still the one that was launched; go on from there."""
        seat, session, launch = action.seat, action.session, action.launch
        if launch.state is not EffectState.SETTLED:
            with self.starts.begun(session.id):
                await self._reconcile(action)
            return
        await self.means.ready()
        seen = await self.means.provider.observe()
        if isinstance(seen, Unreachable):
            await self._unseen(session, launch, seen)
            return
        pane = seen.panes.get(launch.id)
        if pane is None:
            await self._gone(session, launch)
        elif not _same(pane.handle, launch):
            await self._report(session, SessionCause.LOST, "lost: foreign: its terminal holds another process")
        elif pane.ended is not None:
            await self._report(session, SessionCause.EXITED, await _how(self, session, pane.handle))
        else:
            seen_as = f"adopted: {pane.handle.pane} pid={pane.handle.pid} ticks={pane.handle.start_ticks}"
            if session.sup_gen != self.sup_gen or session.state is not SessionState.IDLE:
                await self._report(session, SessionCause.ADOPTED, seen_as)
            await self._follow(seat, session, pane.handle)

    async def _gone(self, session: AgentSession, launch: RuntimeEffect) -> None:
        """Its terminal went while nobody looked. Where all of it is proven to have ended it gets a successor, as when
        somebody had looked; otherwise, and after a start of the machine, a person decides.
        """
        handle = handle_of(launch)
        if handle is None or handle.boot_id != boot_id():
            await self._report(session, SessionCause.LOST, "lost: the machine was started again")
            return
        first = Process(handle.pid, handle.start_ticks)
        with trio.move_on_after(_AGAIN):  # it may be ending: its terminal hung up on it
            await first.ended()
        if first.lives():
            await self._report(session, SessionCause.LOST, "lost: its terminal is gone, its process is not")
            return
        stopped = await end(self.means, handle, session.id)
        if isinstance(stopped, Unreachable) or stopped.left:
            await self._report(session, SessionCause.LOST, f"lost: not all of it is proven ended: {stopped}")
            return
        await self._report(session, SessionCause.EXITED, "lost: its terminal is gone and its process has ended")

    async def _unseen(self, session: AgentSession, launch: RuntimeEffect, seen: Unreachable) -> None:
        """Nothing can be looked up. A process that has ended shows it by itself; any other is looked for again."""
        handle = handle_of(launch)
        if handle is not None:
            with trio.move_on_after(_AGAIN) as waited:
                await over(handle)
            if not waited.cancelled_caught:
                await self._gone(session, launch)
                return
        log.warning("cannot look for session=%s: %s", session.id, seen.detail)
        await trio.sleep(_AGAIN)

    async def _reconcile(self, action: Adopt) -> None:
        """A launch that nobody settled: a predecessor died over it. What the world shows decides."""
        seat, session, launch = action.seat, action.session, action.launch
        await self.means.ready()
        seen = await self.means.provider.observe()
        if isinstance(seen, Unreachable):
            self.starts.over(session.id)
            await self._unseen(session, launch, seen)
            return
        pane = seen.panes.get(launch.id)
        if pane is not None and pane.ended is None and _became_it(pane.handle, session):
            await self.settle(launch, Certainty.APPLIED, f"pid={pane.handle.pid} has become its program")
            self.starts.over(session.id)
            await self._follow(seat, session, pane.handle)
        elif pane is not None and pane.ended is None:
            await self._launch(seat, session, launch)
        else:
            if pane is not None:
                await keep_screen(self, session, await self.means.provider.capture(pane.handle))
            await self.settle(launch, Certainty.NOT_APPLIED, NO_TERMINAL if pane is None else _UNPROVEN)

    async def _report(
        self, session: AgentSession, cause: SessionCause, reason: str, said: Reading | None = None
    ) -> None:
        """A refusal means that the session has moved on meanwhile. ``said`` is what its records say."""
        asked = ReportSession(
            session_id=session.id,
            session_gen=session.session_gen,
            sup_gen=self.sup_gen,
            cause=cause,
            reason=" ".join(reason.split())[:200],
            failure=said.failure if said is not None else None,
            capacity=said.capacity if said is not None else None,
            capacity_source=said.source[:200] if said is not None else "",
        )
        await self.ask(asked)

    async def settle(self, effect: RuntimeEffect, certainty: Certainty, readback: str) -> None:
        await self.ask(SettleEffect(effect_id=effect.id, sup_gen=self.sup_gen, certainty=certainty, readback=readback))

    async def ask(self, request: Request[R]) -> R | None:
        """The answer; None when the world moved since it was looked at, which the next look sees."""
        outcome = await self.node.ask(request)
        if not isinstance(outcome, Refusal):
            return outcome
        log.info("refused %s: %s, %s", type(request).__name__, outcome.code, outcome.lifted_by)
        return None

    def _failed(self, seat: Seat) -> None:
        count = self.failures[seat.member_run_id] = self.failures.get(seat.member_run_id, 0) + 1
        if count >= MOST_FAILURES:
            log.warning("%s is not started again after %d failures in a row", seat.agent_name, count)


async def _outlives(provider: Provider, handle: Handle) -> bool:
    """Wait for the end of a process, or for that of its terminal: whether it does not end with that."""
    outlived = False
    async with trio.open_nursery() as either:

        async def hung_up() -> None:
            nonlocal outlived
            await provider.died()
            await trio.sleep(_HUNG_UP)
            outlived = True
            either.cancel_scope.cancel(reason="it has no terminal any more")

        either.start_soon(hung_up)
        await over(handle)
        either.cancel_scope.cancel(reason="it ended")
    return outlived


def _unchanged(seat: Seat, session: AgentSession, folder: Path | Refusal) -> bool:
    """Whether a session that never had a process is still to have one, of the program and with the conversation that
    were chosen for it.
    """
    moved = seat.launch is not None and not isinstance(folder, Refusal) and seat.launch.cwd != str(folder)
    had = session.pid != 0 or (seat.launch is not None and seat.launch.certainty is Certainty.APPLIED)
    return not had and session.profile == seat.profile and not (moved and session.resumed_from is not None)


def _same(handle: Handle, launch: RuntimeEffect) -> bool:
    found = (handle.pid, handle.start_ticks, handle.boot_id)
    return found == (launch.pid, launch.start_ticks, launch.boot_id)


def _became_it(handle: Handle, session: AgentSession) -> bool:
    """Whether the process of a launch was told at the door what to become, which is on record, and has become that."""
    told = (session.pid, session.start_ticks, session.boot_id)
    return told == (handle.pid, handle.start_ticks, handle.boot_id) and has_execd(handle.pid, handle.start_ticks)


async def _how(desk: Desk, session: AgentSession, handle: Handle) -> str:
    """How a process ended. What its terminal shows then is kept before that is told: whoever waits for it looks."""
    ended = await desk.means.provider.ended(handle)
    await keep_screen(desk, session, ended.screen)
    if ended.signal is not None:
        return f"ended by signal {ended.signal}"
    return "ended, its status is unknown" if ended.status is None else f"ended with status {ended.status}"


async def keep_screen(desk: Desk, session: AgentSession, screen: str | Unreachable) -> None:
    """Without the capability of the session, which may stand there and could not be masked, nothing is kept."""
    asked = DeriveToken(session_id=session.id, sup_gen=desk.sup_gen)
    if isinstance(screen, str) and screen and (told := await desk.ask(asked)) is not None:
        profile = desk.means.profiles.get(session.profile)
        given = values(profile.env) if profile is not None else []
        await desk.means.screens.keep(session, screen, [told.token, *given])
