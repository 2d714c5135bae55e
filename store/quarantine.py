"""Records that do not decode: named, set aside, and read again on request."""

from __future__ import annotations

import functools
import logging
from collections.abc import Iterable

from client.protocol.ids import UnixMs
from client.protocol.node import Quarantined
from store.batch import Unit
from store.database import StorageFault, Store
from store.sql import sql
from store.tx import Tx, Unreadable

log = logging.getLogger(__name__)


def set_aside(store: Store, found: Iterable[Unreadable], *, at: int) -> None:
    """Name records that do not decode, in units of their own: whoever met them goes on. Not inside a read."""
    for error in found:
        try:
            known = store.look(functools.partial(load, record=error.record))
        except StorageFault:
            continue  # whoever meets the record again tries again
        if known is None:
            log.error("quarantined %s: %s", error.record, error.why)
            store.submit(Unit(functools.partial(add, unreadable=error, at=at), _noted))


def _noted(unit: Unit) -> None:
    if not unit.kept:
        log.error("could not record a quarantine: %s", unit.outcome)


_ADD = sql("INSERT INTO quarantine (record, why, since) VALUES (:record, :why, :since) ON CONFLICT DO NOTHING")


def add(tx: Tx, unreadable: Unreadable, *, at: int) -> None:
    tx.rows(_ADD, record=unreadable.record, why=unreadable.why, since=at)


_LIST = sql("SELECT record, why, since FROM quarantine ORDER BY since, record LIMIT 500")


def all_of(tx: Tx) -> list[Quarantined]:
    """The 500 oldest."""
    return [Quarantined(record=row[0], why=row[1], since=UnixMs(row[2])) for row in tx.rows(_LIST)]


_ONE = sql("SELECT record, why, since FROM quarantine WHERE record = :record")


def load(tx: Tx, record: str) -> Quarantined | None:
    found = tx.row(_ONE, record=record)
    return Quarantined(record=found[0], why=found[1], since=UnixMs(found[2])) if found else None


_DROP = sql("DELETE FROM quarantine WHERE record = :record")


def drop(tx: Tx, record: str) -> None:
    tx.rows(_DROP, record=record)
