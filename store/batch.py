"""Group commit: every unit that waits runs in one transaction, then one COMMIT with FULL sync.

A unit that came to nothing has written nothing, as a rule. Where one has, the batch is rolled back and runs again, each
unit in a savepoint; for all of them at once a savepoint would be a fifth of what a unit costs.

Three traps of SQLite shape this file; each was reproduced.

* FULL, IOERR, NOMEM or an interrupt inside a unit may end the *whole* transaction. The next statement would then
  commit by itself. So SQLite asks before every commit, and only ours may happen; and after every unit the
  transaction is asked whether it still lives: a lost one is run again unit by unit.
* A COMMIT whose fsync failed may come back after a crash, although nobody sees it now. One further successful
  commit overwrites it for good. So a failed COMMIT is followed by one small commit: if that succeeds the batch is
  proven absent; if not, the outcome is unknown and the store takes no more writes.
* A refusal may rest on what an unsaved neighbour wrote, so refusals too are released only after the COMMIT.
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable, Sequence
from typing import Any, Final

import apsw
import attrs

from client.protocol.boundary import Boundary, Crash
from client.protocol.refusals import Code, Refusal
from store import faults
from store.sql import sql
from store.tx import Tx

log = logging.getLogger(__name__)

_PROBE = sql("UPDATE node SET probe = probe + 1")


PENDING: Final = object()
#: How long another program's lock is waited for, in milliseconds.
_PATIENCE_MS = 2000


@attrs.define(eq=False)
class Unit:
    """A function of a ``Tx`` and what became of it. ``outcome`` is its value, a ``Refusal`` or an exception."""

    run: Callable[[Tx], Any]
    done: Callable[[Unit], None]  # called on the event loop, after the commit
    outcome: Any = PENDING
    seq: int = 0
    streams: list[str] = attrs.Factory(list)

    @property
    def kept(self) -> bool:
        return not isinstance(self.outcome, (Refusal, BaseException))

    def end(self, outcome: Refusal | BaseException) -> None:
        self.outcome, self.seq, self.streams = outcome, 0, []


class _Lost(Exception):
    """SQLite ended the transaction by itself."""


class Writer:
    """The one connection that writes. Used by one thread at a time."""

    def __init__(self, connection: apsw.Connection, crash: Crash) -> None:
        self._connection = connection
        self._crash = crash
        self._control = connection.execute
        self._committing = False
        connection.set_commit_hook(lambda: not self._committing)
        #: The last sequence number committed.
        self.seq = 0
        #: Why nothing is written any more, until the daemon starts again or a backup is restored.
        self.stopped: Code | None = None
        self._patient = True
        self._lost = False
        #: Seconds that the last COMMIT took.
        self.took = 0.0
        #: The storage fault that the last transaction met, if it met one.
        self.fault: Code | None = None

    def commit(self, units: Sequence[Unit], *, patient: bool = True) -> bool:
        """Give every unit its outcome. Nothing is released to anybody before this returns.

        Not ``patient``, it does nothing that may take long, and says False: another program holds the lock, or the
        transaction was lost and its units have to run one by one.
        """
        self.fault, self._patient = None, patient
        if self.stopped is not None:
            self._refuse(units, self._while_stopped())
            return True
        self._connection.set_busy_timeout(_PATIENCE_MS if patient else 0)
        try:
            if not self._lost and self._run_all(units):
                self._keep(units)
        except apsw.BusyError:
            return False
        except _Lost:
            log.warning("transaction lost, running %d units one by one", len(units))
            self._lost = True
        finally:
            self._connection.set_busy_timeout(_PATIENCE_MS)
        if self._lost and patient:
            self._lost = False
            for unit in units:
                self._alone(unit)
        return not self._lost

    def _alone(self, unit: Unit) -> None:
        if self.stopped is not None:
            unit.end(self._while_stopped())
            return
        if self.fault is Code.STORE_BUSY:  # one of them waited for the lock in vain; not each for itself
            unit.end(faults.refusal(self.fault))
            return
        try:
            if self._run_all([unit]):
                self._keep([unit])
        except _Lost:
            unit.end(faults.refusal(self.fault or Code.STORE_IO_ERROR))

    def _run_all(self, units: Sequence[Unit], *, savepoints: bool = False) -> bool:
        try:
            self._control("BEGIN IMMEDIATE")
        except faults.STORAGE as error:
            if isinstance(error, apsw.BusyError) and not self._patient:
                raise
            self._refuse(units, self._met(error))
            return False
        run = self._run_in_savepoint if savepoints else self._run
        for unit in units:
            if not run(unit):
                self._abandon()
                return self._run_all(units, savepoints=True)
            self._crash(Boundary.AFTER_UNIT)
            if self.stopped is not None:  # a transaction that met a damaged page can only be rolled back
                self._abandon()
                self._refuse(units, faults.refusal(self.stopped))
                return False
        return True

    def _keep(self, units: Sequence[Unit]) -> None:
        self._crash(Boundary.BEFORE_COMMIT)
        try:
            self._commit()
        except faults.STORAGE as error:
            self._failed(units, error)
            return
        self._crash(Boundary.AFTER_COMMIT)
        self.seq = max([self.seq, *(unit.seq for unit in units)])

    def _run(self, unit: Unit) -> bool:
        """False where it has written something before it came to nothing."""
        written = self._connection.total_changes()
        self._try(unit)
        return unit.kept or self.stopped is not None or self._connection.total_changes() == written

    def _run_in_savepoint(self, unit: Unit) -> bool:
        self._control("SAVEPOINT unit")
        self._try(unit)
        if not unit.kept:
            self._control("ROLLBACK TO unit")
        self._control("RELEASE unit")
        return True

    def _try(self, unit: Unit) -> None:
        """Give it the outcome that it has if all goes well."""
        tx = Tx(self._connection)
        try:
            outcome: Any = unit.run(tx)
        except faults.STORAGE as error:
            outcome = self._met(error)
        except Exception as error:  # noqa: BLE001 — a bug of one unit must not take its neighbours along
            outcome = error
        if not self._connection.in_transaction:
            raise _Lost
        if isinstance(outcome, (Refusal, BaseException)):
            unit.end(outcome)
        else:
            unit.outcome, unit.seq, unit.streams = outcome, tx.seq, tx.streams

    def _commit(self) -> None:
        self._committing = True
        began = time.monotonic()
        try:
            self._control("COMMIT")
        finally:
            self.took = time.monotonic() - began
            self._committing = False

    def _failed(self, units: Sequence[Unit], error: apsw.Error) -> None:
        """A COMMIT failed: prove the batch absent, or say that its outcome is unknown."""
        refusal = self._met(error)
        self._abandon()
        self._connection.set_busy_timeout(_PATIENCE_MS)
        if not self._probe() and not faults.never_whole(error):
            log.error("commit failed and could not be proven absent; no more writes until restart")
            self.stopped = Code.OUTCOME_UNKNOWN
            refusal = faults.refusal(Code.OUTCOME_UNKNOWN)
        self._refuse(units, refusal)

    def _probe(self) -> bool:
        try:
            self._control("BEGIN IMMEDIATE")
            self._control(_PROBE.text)
            self._commit()
        except apsw.Error:
            self._abandon()
            return False
        return True

    def _abandon(self) -> None:
        """End the transaction if it still lives. SQLite ends it even where it fails to read on the way."""
        if self._connection.in_transaction:
            with contextlib.suppress(*faults.STORAGE):
                self._control("ROLLBACK")

    def _met(self, error: apsw.Error) -> Refusal:
        code = faults.code_of(error, self._connection.system_errno)
        log.error("storage fault %s: %s", code, error)
        self.fault = code
        if code is Code.STORE_CORRUPT:
            self.stopped = code
        return faults.refusal(code)

    def _while_stopped(self) -> Refusal:
        """Nothing of *these* units was tried, so their outcome is known even where an earlier one's is not."""
        assert self.stopped is not None
        code = Code.STORE_IO_ERROR if self.stopped is Code.OUTCOME_UNKNOWN else self.stopped
        return attrs.evolve(faults.refusal(code), lifted_by=faults.refusal(self.stopped).lifted_by)

    def _refuse(self, units: Sequence[Unit], refusal: Refusal) -> None:
        for unit in units:
            unit.end(refusal)
