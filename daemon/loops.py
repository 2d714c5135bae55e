"""The daemon's own loops: a supervisor for every run that goes on, process ends, leases, mail that expires, logs.

Each waits for a commit, a pidfd or a moment; none of them polls. What they do goes through the same units of work as
every request.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from typing import Any, TypeVar

import attrs
import trio

from client.protocol.ids import BindingId, SessionId, TeamRunId
from client.protocol.operation import Plane
from client.protocol.refusals import ROWS, Code, Refusal, Retry
from client.protocol.session import AgentSession
from daemon.archives import Archives
from daemon.call import Call
from daemon.dispatch import Dispatcher
from daemon.health import Health
from daemon.inside import Inside
from daemon.leases import Leases
from daemon.operations import attempt, mail, session
from daemon.relay import Relay
from providers.process import boot_id, start_ticks_of
from store import attempt as attempts
from store import message as messages
from store import quarantine
from store import session as sessions
from store import team_run as runs
from store.database import StorageFault, Store
from store.tx import Tx, Unreadable
from supervisor.checks import Checks
from supervisor.means import Means
from supervisor.run import supervise
from supervisor.screens import Screens

log = logging.getLogger(__name__)

#: Seconds between two looks at leases. A tick adds what passed, at most two ticks: a machine that slept, a daemon that
#: was stopped or a disk that stalled expire nothing.
TICK = 15.0
#: Seconds in which what waits in the sockets is read before a lease ends: a heartbeat may be among it.
READ_FIRST = 1.0
#: Seconds before something that met a fault is tried again.
AGAIN = 10.0
#: What a person is told of a supervisor that failed, until another has held the run for these seconds.
FAILED, CALM = "SUPERVISOR_FAILED", 60.0
#: Seconds between two looks for logs of checks that nothing names any more; and how long what a result names is kept
#: after the end of its run, in milliseconds: as long as events are.
TIDY, KEPT = 86_400.0, 90 * 86_400_000

T = TypeVar("T")


@attrs.frozen
class Loops:
    """``call`` makes the daemon's own caller; with ``means`` supervisors start processes."""

    dispatcher: Dispatcher
    relay: Relay
    health: Health
    call: Callable[[], Call]
    means: Means | None

    @property
    def store(self) -> Store:
        return self.dispatcher.store

    async def serve(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        async with trio.open_nursery() as nursery:
            if not await self._try(self._restored):
                nursery.start_soon(self._write, self._restored)
            task_status.started()
            nursery.start_soon(self._supervise_runs)
            nursery.start_soon(self._watch_processes)
            nursery.start_soon(self._count_leases)
            nursery.start_soon(self._expire_mail)
            if self.means is not None and self.means.worktrees is not None:
                archives = Archives(self.store, self.means)
                nursery.start_soon(archives.serve, self.relay, self.call, self._seen, self._write)
            if self.means is not None and self.means.checks is not None:
                nursery.start_soon(_tidy, self.means.checks, self.store, self.call)
            if self.means is not None:
                nursery.start_soon(_sweep, self.means.screens, self.store)

    def _restored(self, tx: Tx) -> int:
        return session.restored(tx, self.call())

    async def _supervise_runs(self) -> None:
        held: set[TeamRunId] = set()
        async with trio.open_nursery() as nursery:
            while True:
                with self.relay.next("team-run") as changed:
                    for run_id in set(await self._seen(runs.going_on)) - held:
                        held.add(run_id)
                        nursery.start_soon(self._supervise, run_id, held)
                    await changed.wait()

    async def _supervise(self, run_id: TeamRunId, held: set[TeamRunId]) -> None:
        def call() -> Call:
            own = self.call()
            return attrs.evolve(own, plane=Plane.SUPERVISOR, actor=f"supervisor/{run_id}", team_run_id=run_id)

        ended = await self._held(run_id, Inside(self.dispatcher, call))
        log.info("let go of run=%s: %s, %s", run_id, ended.code, ended.lifted_by)
        held.discard(run_id)

    async def _held(self, run_id: TeamRunId, node: Inside) -> Refusal:
        """Hold a run until it ends, and again when a supervisor in a process of its own has let go of it.

        A bug over one run ends neither the daemon nor the other runs.
        """
        while True:
            try:
                ended = await _supervised(node, self.means, run_id, self.health)
                if ended.code is not Code.SUPERVISOR_GENERATION_FENCED:
                    return ended
                log.info("run=%s was taken by another process: %s", run_id, ended.lifted_by)
                await _until_free(self.relay, self.call().leases, run_id)
            except Exception:
                log.exception("the supervisor of run=%s failed; the next one begins in %.0f s", run_id, AGAIN)
                self.health.meet(
                    FAILED,
                    f"the supervisor of run {run_id} failed: nobody follows its members, which go on",
                    f"the next one begins within {AGAIN:.0f} s; where that fails too, read why: firm node logs",
                    about=run_id,
                )
                await trio.sleep(AGAIN)

    async def _watch_processes(self) -> None:
        """A session that a process proves ends with that process, and is lost when the process is another now."""
        watched: set[SessionId] = set()
        async with trio.open_nursery() as nursery:
            while True:
                with self.relay.next("session") as changed:
                    for found in await self._seen(sessions.with_process):
                        if found.id not in watched:
                            watched.add(found.id)
                            nursery.start_soon(self._watch, found)
                    await changed.wait()

    async def _watch(self, found: AgentSession) -> None:
        reason = await _ended(found)
        await self._write(lambda tx: session.ended(tx, self.call(), found.id, reason))

    async def _count_leases(self) -> None:
        used: dict[BindingId, float] = {}
        last = trio.current_time()
        while True:
            await trio.sleep(TICK)
            now = trio.current_time()
            passed, last = min(now - last, 2 * TICK), now
            live = await self._seen(attempts.leased)
            # What passed before an attempt was first seen here is not its own.
            used = {
                binding: used[binding] + passed if binding in used and not self._heard(session_id, passed) else 0.0
                for binding, session_id, _ in live
            }
            if over := [(b, s) for b, s, lease_ms in live if used[b] * 1000 >= lease_ms]:
                await trio.sleep(READ_FIRST)
                for binding, session_id in over:
                    if not self._heard(session_id, passed + READ_FIRST):
                        await self._expire(binding)

    def _heard(self, session_id: SessionId, within: float) -> bool:
        """Whether that session called in the last seconds of awake time."""
        return trio.current_time() - self.dispatcher.heard_at(session_id) < within

    async def _expire(self, binding: BindingId) -> None:
        log.warning("lease expired binding=%s", binding)
        await self._write(lambda tx: attempt.expire(tx, self.call(), binding))

    async def _expire_mail(self) -> None:
        while True:
            with self.relay.next("mail") as changed:
                due = await self._seen(messages.next_expiry)
                with trio.move_on_after(max(0.0, (due - self.call().now) / 1000) if due else float("inf")):
                    await changed.wait()
            if due and due <= self.call().now:
                await self._write(lambda tx: mail.expire(tx, self.call()))

    async def _seen(self, run: Callable[[Tx], T]) -> T:
        """A look that outlives a fault of the disk."""
        while True:
            try:
                found, left_out = self.store.look(lambda tx: (run(tx), tx.unreadable))
            except StorageFault as fault:
                log.warning("cannot look: %s", fault.refusal.code)
                await trio.sleep(AGAIN)
            else:
                quarantine.set_aside(self.store, left_out, at=self.call().now)
                return found

    async def _write(self, run: Callable[[Tx], Any]) -> None:
        """A write that outlives a fault of the disk, and a record that cannot be read."""
        while not await self._try(run):  # noqa: ASYNC110 — nothing tells when a disk works again
            await trio.sleep(AGAIN)

    async def _try(self, run: Callable[[Tx], Any]) -> bool:
        """Whether it was done, or can never be."""
        try:
            outcome = await self.store.write(run)
        except Unreadable as error:
            quarantine.set_aside(self.store, [error], at=self.call().now)
            return False
        if not isinstance(outcome, Refusal):
            return True
        log.warning("the daemon's own write was refused: %s, %s", outcome.code, outcome.lifted_by)
        return ROWS[outcome.code].retry is not Retry.SAME


async def _supervised(node: Inside, means: Means | None, run_id: TeamRunId, health: Health) -> Refusal:
    """Supervise; that the one before failed is over once this one has ended, or gone on for a while."""

    async def calm() -> None:
        await trio.sleep(CALM)
        health.over(FAILED, about=run_id)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(calm)
        ended = await supervise(node, means, run_id)
        health.over(FAILED, about=run_id)
        nursery.cancel_scope.cancel(reason="it let go of the run")
    return ended


async def _until_free(relay: Relay, leases: Leases, run_id: TeamRunId) -> None:
    """Until the lease on a run is over, or given back, which is a change of the run."""
    while leases.left(run_id):
        with relay.next(f"team-run/{run_id}") as changed, trio.move_on_after(leases.left(run_id)):
            await changed.wait()


async def _tidy(checks: Checks, store: Store, call: Callable[[], Call]) -> None:
    """When the daemon begins, and every day."""

    def named() -> set[str]:
        return store.look(lambda tx: attempts.logs(tx, since=call().now - KEPT))

    while True:
        try:
            gone = await checks.tidy(named)
        except (StorageFault, OSError) as fault:
            log.warning("cannot look for logs of checks that nothing names: %s", fault)
            await trio.sleep(AGAIN)
            continue
        if gone:
            log.info("removed logs of checks that nothing names any more: %d", gone)
        await trio.sleep(TIDY)


async def _sweep(screens: Screens, store: Store) -> None:
    """When the daemon begins: last screens that are too old, and those of runs that were purged."""
    try:
        await screens.sweep(lambda ids: store.look(lambda tx: sessions.unpurged(tx, ids)))
    except StorageFault as fault:
        log.warning("cannot look for last screens of runs that were purged: %s", fault)


async def _ended(found: AgentSession) -> str:
    """Wait for the end of the process that proves a session; why the session ends."""
    if found.boot_id != boot_id():
        return "the machine was started again"
    try:
        fd = os.pidfd_open(found.pid)
    except ProcessLookupError:
        return "its process had ended"
    try:
        # Only now: the pidfd holds whoever has the pid, the ticks say whether that is the one that was bound.
        if start_ticks_of(found.pid) != found.start_ticks:
            return "its process had ended"
        await trio.lowlevel.wait_readable(fd)
    finally:
        os.close(fd)
    return "its process ended"
