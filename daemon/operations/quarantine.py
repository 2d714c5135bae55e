"""Handlers for ``node.quarantine`` and ``node.release``."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from client.protocol.node import ListQuarantine, Quarantined, QuarantineList, ReleaseQuarantine
from client.protocol.refusals import Code, Refusal
from daemon.call import Call
from daemon.operations import find
from store import events, quarantine
from store.agent import AGENTS
from store.membership import MEMBERSHIPS
from store.project import PROJECTS
from store.team import TEAMS
from store.tx import Tx, Unreadable

#: How a record of each table is read again.
_READ: Mapping[str, Callable[[Tx, str], object]] = {
    **{keeper.table: keeper.load for keeper in (AGENTS, MEMBERSHIPS, PROJECTS, TEAMS)},
    "events": lambda tx, seq: events.load(tx, int(seq)),
}


def list_(tx: Tx, call: Call, ask: ListQuarantine) -> QuarantineList:
    return QuarantineList(items=quarantine.all_of(tx))


def unreadable(error: Unreadable) -> Refusal:
    """What a caller is told who needs a record that does not decode."""
    return Refusal(
        code=Code.ROW_QUARANTINED,
        about=error.record,
        lifted_by=f"repair it or restore a backup, then: firm node release {error.record}",
    )


def release(tx: Tx, call: Call, ask: ReleaseQuarantine) -> Quarantined | Refusal:
    held = quarantine.load(tx, ask.record)
    if held is None:
        return find.not_found("node quarantine", ask.record)
    table, _, row = ask.record.partition("/")
    try:
        if table in _READ:
            _READ[table](tx, row)
    except Unreadable as error:
        return unreadable(error)
    quarantine.drop(tx, ask.record)
    return held
