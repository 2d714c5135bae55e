"""Handlers for ``node.quarantine`` and ``node.release``."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from client.protocol.ids import MessageId
from client.protocol.node import ListQuarantine, Quarantined, QuarantineList, ReleaseQuarantine
from client.protocol.refusals import Code, Refusal
from daemon.call import Call
from store import attempt, events, message, quarantine
from store.agent import AGENTS
from store.attempt import BINDINGS, DELIVERIES
from store.delegation import DELEGATIONS
from store.effect import EFFECTS
from store.membership import MEMBERSHIPS, subscription
from store.message import MAIL
from store.project import PROJECTS
from store.session import CAPABILITIES, SESSIONS
from store.team import TEAMS
from store.team_run import MEMBER_RUNS, TEAM_RUNS
from store.tx import Tx, Unreadable
from store.verdict import VERDICTS
from store.work import WORKS

_KEEPERS = (
    AGENTS,
    BINDINGS,
    CAPABILITIES,
    DELEGATIONS,
    DELIVERIES,
    EFFECTS,
    MAIL,
    MEMBERSHIPS,
    MEMBER_RUNS,
    PROJECTS,
    SESSIONS,
    TEAMS,
    TEAM_RUNS,
    VERDICTS,
    WORKS,
)

#: How a record of each table is read again: every table whose rows become records stands here.
_READ: Mapping[str, Callable[[Tx, str], object]] = {
    **{keeper.table: keeper.load for keeper in _KEEPERS},
    "events": lambda tx, seq: events.load(tx, int(seq)),
    "messages": lambda tx, row: message.load(tx, MessageId(row)),
    "receipts": attempt.receipt,
    "subscriptions": subscription,
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
        lifted_by = "see what is set aside: firm node quarantine"
        return Refusal(code=Code.NOT_FOUND, about=ask.record, lifted_by=lifted_by)
    table, _, row = ask.record.partition("/")
    if table not in _READ:
        lifted_by = "use the build that set it aside; this one does not know such records"
        return Refusal(code=Code.ROW_QUARANTINED, about=ask.record, lifted_by=lifted_by)
    try:
        _READ[table](tx, row)
    except Unreadable as error:
        return unreadable(error)
    quarantine.drop(tx, ask.record)
    return held
