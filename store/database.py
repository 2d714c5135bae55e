"""The way into the database: one writer behind a queue, one reader on the event loop, a small pool of readers.

* ``submit`` queues a unit; the writer commits everything that waits in one transaction: on the event loop while the
  disk is quick, else in a worker thread.
* ``look`` runs a short read at once, on the event loop's own connection: a thread hop costs more than the read.
* ``scan`` runs a longer read in the pool.

A unit that has started always finishes: a cancelled caller may leave the queue, never the batch.
"""

from __future__ import annotations

import typing
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Protocol, TypeVar

import apsw
import outcome as trio_outcome
import trio

from client.protocol.boundary import Crash, no_crash
from client.protocol.refusals import Code, Refusal
from store import events, faults
from store.batch import Unit, Writer
from store.tx import Tx

T = TypeVar("T")

#: Units committed together at most; bounds how long the first of them waits for the last.
BATCH = 256
#: Seconds. While the disk takes less for a COMMIT the writer works on the event loop, else in a thread: two threads
#: that hand the interpreter to each other cost more than a short sync. Figures: docs/decisions/0003-group-commit.md.
QUICK = 0.02
#: What a slow COMMIT still counts after each further one.
_FADES = 0.9
_POOL = 3
_STATEMENTS = 512  # apsw's own default of 100 makes every statement four times as dear once there are more


class Run(Protocol):
    """Where blocking work executes: a worker thread, or inline under a mock clock."""

    def __call__(self, fn: Callable[..., T], *args: Any, limiter: trio.CapacityLimiter) -> Awaitable[T]: ...


def connect(path: Path, *, readonly: bool = False, vfs: str | None = None) -> apsw.Connection:
    """A connection with every setting this project relies on. Raises ``apsw.Error``."""
    flags = apsw.SQLITE_OPEN_READONLY if readonly else apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE
    connection = apsw.Connection(str(path), flags=flags, vfs=vfs, statementcachesize=_STATEMENTS)
    connection.set_busy_timeout(2000)
    connection.config(apsw.SQLITE_DBCONFIG_DQS_DDL, 0)
    connection.config(apsw.SQLITE_DBCONFIG_DQS_DML, 0)
    connection.config(apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0)
    # Else a statement whose plan could depend on a value is prepared anew for every value: most of what it costs.
    connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
    connection.execute("PRAGMA foreign_keys = ON")
    if not readonly:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA secure_delete = ON")  # what is removed is overwritten; see decision 20
        connection.execute("PRAGMA synchronous = FULL")  # NORMAL survives kill -9 and forgets on power loss
    return connection


async def in_thread(fn: Callable[..., T], *args: Any, limiter: trio.CapacityLimiter) -> T:
    """The way of production: a worker thread; cancelled or not, a started call ends first."""
    return await trio.to_thread.run_sync(fn, *args, limiter=limiter)


def _nobody(_: list[str], __: int) -> None:
    """Nobody listens."""


def _unwatched(_: Code | None, __: Code | None) -> None:
    """Nobody keeps health."""


class StorageFault(Exception):
    """A read met a fault of the disk or the file."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.code)
        self.refusal = refusal


class Store:
    """Units of work and reads against one database file."""

    def __init__(
        self,
        path: Path,
        *,
        run: Run = in_thread,
        vfs: str | None = None,
        crash: Crash = no_crash,
        quick: float = QUICK,
    ) -> None:
        self.path = path
        self._run = run
        self._connections = [connect(path, vfs=vfs)]
        self._connections += [connect(path, readonly=True, vfs=vfs) for _ in range(1 + _POOL)]
        self.writer = Writer(self._connections[0], crash)
        self._near = self._connections[1]
        self._pool = self._connections[2:]
        self._queue: list[Unit] = []
        self._wake = trio.Event()
        self._one = trio.CapacityLimiter(1)
        self._quick = quick
        #: Seconds of the slowest COMMIT of late.
        self._slowest = 0.0
        self._few = trio.CapacityLimiter(_POOL)
        #: Called on the loop after each commit with the streams that changed and the last sequence number.
        self.committed: Callable[[list[str], int], None] = _nobody
        #: Called on the loop after each batch, and when a read meets damage: the storage fault that the last batch met,
        #: and why writing has stopped.
        self.ended: Callable[[Code | None, Code | None], None] = _unwatched
        #: Set when the file turns out to be damaged.
        self.damaged = trio.Event()
        #: The last sequence number that whoever looks now is certain to see. The writer's own runs ahead of it where it
        #: commits in a thread, while a look that began before goes on.
        self.seq = self.writer.seq = self.look(events.last)

    def submit(self, unit: Unit) -> None:
        """Queue ``unit``; its ``done`` is called once its outcome is durable."""
        self._queue.append(unit)
        self._wake.set()

    def withdraw(self, unit: Unit) -> bool:
        """Take ``unit`` back if it has not started."""
        if unit not in self._queue:
            return False
        self._queue.remove(unit)
        return True

    async def write(self, run: Callable[[Tx], T]) -> T | Refusal:
        """Run one unit and wait for it. Cancelled while queued it never runs; once started it ends first."""
        task = trio.lowlevel.current_task()

        def done(unit: Unit) -> None:
            trio.lowlevel.reschedule(task, trio_outcome.Value(unit.outcome))

        unit = Unit(run, done)
        self.submit(unit)

        def abort(_: Any) -> trio.lowlevel.Abort:
            withdrawn = self.withdraw(unit)
            return trio.lowlevel.Abort.SUCCEEDED if withdrawn else trio.lowlevel.Abort.FAILED

        result: Any = await trio.lowlevel.wait_task_rescheduled(abort)
        if isinstance(result, BaseException):
            raise result
        return typing.cast("T | Refusal", result)

    def look(self, run: Callable[[Tx], T]) -> T:
        """A short read, now. One record or one page: it holds up every other peer while it runs."""
        try:
            return _reading(self._near, run)
        except StorageFault as fault:
            self._met(fault)
            raise

    async def scan(self, run: Callable[[Tx], T]) -> T:
        """A longer read, in the pool."""
        async with self._few:
            connection = self._pool.pop()
            try:
                return await self._run(_reading, connection, run, limiter=trio.CapacityLimiter(1))
            except StorageFault as fault:
                self._met(fault)
                raise
            finally:
                self._pool.append(connection)

    async def serve(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Commit what is queued, for ever. Cancelled, it first finishes the batch that it has begun."""
        task_status.started()
        while True:
            await self._wake.wait()
            await trio.lowlevel.checkpoint()  # one more pass: whoever asks at this moment comes along
            batch, self._queue = self._queue[:BATCH], self._queue[BATCH:]
            if not self._queue:
                self._wake = trio.Event()
            if batch:
                await self._commit(batch)

    async def _commit(self, batch: list[Unit]) -> None:
        try:
            with trio.CancelScope(shield=True):
                if self._slowest > self._quick or not self.writer.commit(batch, patient=False):
                    await self._run(self.writer.commit, batch, limiter=self._one)
        except BaseException:  # a bug of the writer ends the daemon; nobody may wait for ever until it has
            for unit in batch:
                unit.end(faults.refusal(Code.OUTCOME_UNKNOWN))
                unit.done(unit)
            raise
        self._slowest = max(self.writer.took, self._slowest * _FADES)
        self.seq = self.writer.seq
        streams = [stream for unit in batch if unit.kept for stream in unit.streams]
        for unit in batch:
            unit.done(unit)
        if self.writer.stopped is Code.STORE_CORRUPT:
            self.damaged.set()
        self.ended(self.writer.fault, self.writer.stopped)
        if streams:
            self.committed(streams, self.seq)

    def _met(self, fault: StorageFault) -> None:
        if fault.refusal.code is Code.STORE_CORRUPT:
            self.stop_writing()

    def stop_writing(self) -> None:
        """The file was found damaged: no more writes, reads go on."""
        self.writer.stopped = Code.STORE_CORRUPT
        self.damaged.set()
        self.ended(self.writer.fault, self.writer.stopped)

    def close(self) -> None:
        """Close every connection; the last one folds the log into the database file."""
        for connection in reversed(self._connections):
            connection.close()


def _reading(connection: apsw.Connection, run: Callable[[Tx], T]) -> T:
    try:
        connection.execute("BEGIN")
        return run(Tx(connection))
    except faults.STORAGE as error:
        raise StorageFault(faults.refusal(faults.code_of(error, connection.system_errno))) from error
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
