"""A supervisor in a process of its own acts only while nobody else may: it holds a lease on its run.

The daemon gives the run to nobody before the lease is over. This side counts from before it asked, and less by a
margin, so it does nothing any more by then, also when it was itself stopped meanwhile. Inside the daemon there is no
need of this: whoever could take over lives in the same process, or after its end.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

import attrs
import trio

from client.connection import Disconnected
from client.protocol.board import Seat
from client.protocol.ids import TeamRunId
from client.protocol.operation import Node, R, Request
from client.protocol.refusals import Refusal
from client.protocol.team_run import RenewTeamRun, TakeTeamRun, TeamRun
from providers.port import Delivered, Exit, Handle, Launch, NotStarted, Provider, Seen, Stopped, Typing, Unreachable
from supervisor.desk import ENDS, lasting
from supervisor.means import Means
from supervisor.run import hold

log = logging.getLogger(__name__)

#: Seconds of a lease, and the part of it in which its holder no longer trusts itself.
TTL = 15.0
_MARGIN = 0.2
#: Seconds between two renewals at most, which is also how long one may take; and after a failure, doubled with each.
_RENEW, _FIRST = 3.0, 0.2
#: Renewals in a row that failed before the lease counts as lost.
_MOST_FAILURES = 3


@attrs.frozen
class Lost:
    """Why a supervisor lets go of a run that nobody has taken from it. Whatever it was doing has ended by then."""

    why: str


@attrs.frozen
class Left:
    """It was asked to leave, has finished what it had in hand, and let go of the run."""


async def supervise_apart(
    node: Node, lives: Callable[[], bool], means: Means, run_id: TeamRunId, leaving: trio.Event, *, ttl: float = TTL
) -> Refusal | Lost | Left:
    """``supervise`` under a lease, until ``leaving`` is set. ``lives`` asks the kernel whether the daemon at the other
    end is still there.

    Raises ``Disconnected`` only before it holds the run.
    """
    taken = await _taken(node, TakeTeamRun(team_run_id=run_id, lease_ms=int(ttl * 1000)), leaving)
    if not isinstance(taken, TeamRun):
        return taken
    lease = Lease(node, lives, run_id, taken.sup_gen, ttl)
    with lease.scope:
        async with trio.open_nursery() as tasks:
            await tasks.start(lease.keep)
            over = await hold(_Leased(lease), _guarded(means, lease), run_id, taken.sup_gen, leaving)
            lease.ended = lease.ended or over or Left()
            tasks.cancel_scope.cancel(reason="the run is not this supervisor's any more")
    ended = lease.ended or Lost("the lease was not renewed in time")
    if isinstance(ended, Refusal):
        return ended
    if isinstance(ended, Lost):
        log.warning("lost run=%s sup_gen=%d: %s", run_id, taken.sup_gen, ended.why)
    return await lease.let_go() or ended


async def _taken(node: Node, ask: TakeTeamRun, leaving: trio.Event) -> TeamRun | Refusal | Left:
    """The run, as soon as nobody else holds it. Raises ``Disconnected``."""
    found: TeamRun | Refusal | Left | Disconnected = Left()
    async with trio.open_nursery() as either:

        async def take() -> None:
            nonlocal found
            try:
                found = await lasting(node, ask)
            except Disconnected as why:
                found = why
            either.cancel_scope.cancel(reason="it was decided")

        either.start_soon(take)
        await leaving.wait()
        either.cancel_scope.cancel(reason="it was asked to leave")
    if isinstance(found, Disconnected):
        raise found
    return found


@attrs.define
class Lease:
    """``scope`` holds everything that is done under it; its deadline is the end of the trust."""

    node: Node
    lives: Callable[[], bool]
    run_id: TeamRunId
    sup_gen: int
    ttl: float
    scope: trio.CancelScope = attrs.Factory(trio.CancelScope)
    ended: Refusal | Lost | Left | None = None

    async def keep(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Renew it until that fails for good."""
        within, failures, held = min(self.ttl / 4, _RENEW), 0, False
        while True:
            asked_at = trio.current_time()
            refused = await self._renew(within)
            if refused is None:
                self.scope.deadline = asked_at + self.ttl * (1 - _MARGIN)
                failures = 0
                if not held:
                    held = True
                    task_status.started()
                await trio.sleep(within)
                continue
            failures += 1
            if isinstance(refused, Refusal) and refused.code in ENDS:
                self.lose(refused)
            elif failures == _MOST_FAILURES:
                self.lose(Lost(f"{failures} renewals in a row failed; the last: {_said(refused)}"))
            else:
                log.warning("renewal of run=%s failed, the next one follows: %s", self.run_id, _said(refused))
            await trio.sleep(min(_FIRST * 2**failures, within))

    async def _renew(self, within: float) -> Refusal | Lost | None:
        """Why it was not renewed."""
        ask = RenewTeamRun(team_run_id=self.run_id, sup_gen=self.sup_gen, lease_ms=int(self.ttl * 1000))
        with trio.move_on_after(within):
            outcome = await _Leased(self).ask(ask)
            return outcome if isinstance(outcome, Refusal) else None
        return Lost(f"no answer within {within:g} s")

    async def let_go(self) -> Refusal | None:
        """So that nobody waits for its end. Why the run is another's, where the daemon says so."""
        ask = RenewTeamRun(team_run_id=self.run_id, sup_gen=self.sup_gen, lease_ms=0)
        with trio.move_on_after(_RENEW):
            try:
                outcome = await self.node.ask(ask)
            except Disconnected:
                return None
            return outcome if isinstance(outcome, Refusal) and outcome.code in ENDS else None
        return None

    def lose(self, ended: Refusal | Lost) -> None:
        """Latch: from here on everything under the lease is cancelled, and nothing begins."""
        self.ended = self.ended or ended
        self.scope.cancel(reason="the lease is lost")

    async def confirm(self) -> None:
        """Before anything is done: who may not trust itself any more is cancelled here."""
        if not self.lives():
            self.lose(Lost("the daemon went away"))
        if self.scope.cancel_called:  # also when the end of the trust has just passed and nobody has noticed yet
            await trio.lowlevel.checkpoint()


def _said(refused: Refusal | Lost) -> str:
    return refused.why if isinstance(refused, Lost) else f"{refused.code}, {refused.lifted_by}"


@attrs.frozen
class _Leased:
    """The daemon, asked under a lease."""

    lease: Lease

    async def ask(self, request: Request[R], *, key: str = "") -> R | Refusal:
        await self.lease.confirm()
        try:
            return await self.lease.node.ask(request, key=key)
        except Disconnected as why:
            gone = why
        self.lease.lose(Lost(str(gone)))
        await trio.lowlevel.checkpoint()  # which cancels
        raise gone


def _guarded(means: Means, lease: Lease) -> Means:
    async def ready() -> None:
        await lease.confirm()
        await means.ready()

    async def folder(seat: Seat) -> Path | Refusal:
        await lease.confirm()
        return await means.folder(seat)

    return attrs.evolve(means, provider=_Guarded(means.provider, lease), ready=ready, folder=folder)


@attrs.frozen
class _Guarded:
    """A provider to which nothing is done without trust. Looking needs none."""

    of: Provider
    lease: Lease

    async def start(self, launch: Launch) -> Handle | NotStarted:
        await self.lease.confirm()
        return await self.of.start(launch)

    async def observe(self) -> Seen | Unreachable:
        return await self.of.observe()

    async def died(self) -> None:
        await self.of.died()

    async def ended(self, handle: Handle) -> Exit:
        return await self.of.ended(handle)

    async def stop(self, handle: Handle) -> Stopped | Unreachable:
        await self.lease.confirm()
        return await self.of.stop(handle)

    async def strays(self) -> tuple[int, ...] | Unreachable:
        return await self.of.strays()

    async def deliver(self, handle: Handle, text: str, typing: Typing, delivery_id: str) -> Delivered | Unreachable:
        await self.lease.confirm()
        return await self.of.deliver(handle, text, typing, delivery_id)

    async def clear(self, handle: Handle, typing: Typing, reason: str = "") -> None:
        await self.of.clear(handle, typing, reason)

    async def quiet(self, handle: Handle, seconds: float, resting: Typing | None = None) -> None:
        await self.of.quiet(handle, seconds, resting)

    async def interrupt(self, handle: Handle) -> bool | Unreachable:
        await self.lease.confirm()
        return await self.of.interrupt(handle)

    async def capture(self, handle: Handle) -> str | Unreachable:
        return await self.of.capture(handle)

    def attach_command(self, handle: Handle, *, read_only: bool) -> list[str]:
        return self.of.attach_command(handle, read_only=read_only)

    async def close(self) -> Stopped | Unreachable:
        await self.lease.confirm()
        return await self.of.close()
