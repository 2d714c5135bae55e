"""Attempts: bindings, deliveries, receipts and check results. Rows and records."""

from __future__ import annotations

from client.protocol.attempt import Binding, CheckResult, Receipt, WorkDelivery
from client.protocol.ids import BindingId, MembershipId, ReceiptId, SessionId, UnixMs, WorkId
from store import rows
from store.keeper import Keeper
from store.sql import sql
from store.tx import Tx

BINDINGS = Keeper("binding", "bindings", Binding)
DELIVERIES = Keeper("delivery", "work_deliveries", WorkDelivery)

_LIVE = BINDINGS.select("WHERE work_id = :work_id AND custody IN ('claimed', 'orphaned_unverified')")


def live(tx: Tx, work_id: WorkId) -> Binding | None:
    """The attempt at this Work that is not over."""
    return BINDINGS.one(tx, _LIVE, work_id=work_id)


_OF_WORK = BINDINGS.select("WHERE work_id = :work_id ORDER BY fence")


def of_work(tx: Tx, work_id: WorkId) -> list[Binding]:
    return BINDINGS.many(tx, _OF_WORK, work_id=work_id)


_OF_SESSION = BINDINGS.select(
    "WHERE session_id = :session_id AND custody IN ('claimed', 'orphaned_unverified') ORDER BY n"
)


def live_of_session(tx: Tx, session_id: SessionId) -> list[Binding]:
    return BINDINGS.many(tx, _OF_SESSION, session_id=session_id)


_OF_MEMBERSHIP = BINDINGS.select(
    "WHERE membership_id = :membership_id AND custody IN ('claimed', 'orphaned_unverified') ORDER BY n"
)


def live_of_membership(tx: Tx, membership_id: MembershipId) -> list[Binding]:
    return BINDINGS.many(tx, _OF_MEMBERSHIP, membership_id=membership_id)


_LAST_FENCE = sql("""
    SELECT max(coalesce((SELECT max(fence) FROM bindings WHERE work_id = :work_id), 0),
               (SELECT generation_floor FROM node))
""")


def last_fence(tx: Tx, work_id: WorkId) -> int:
    """No fence of this Work was ever issued above this."""
    return int(tx.value(_LAST_FENCE, work_id=work_id))


_DELIVERY = DELIVERIES.select("WHERE binding_id = :binding_id")


def delivery_of(tx: Tx, binding: Binding) -> WorkDelivery | None:
    return DELIVERIES.one(tx, _DELIVERY, binding_id=binding.id)


_DELIVERIES = DELIVERIES.select("WHERE work_id = :work_id ORDER BY n")


def deliveries(tx: Tx, work_id: WorkId) -> list[WorkDelivery]:
    return DELIVERIES.many(tx, _DELIVERIES, work_id=work_id)


_RECEIPT = """id, work_id, fence, number, outcome, body, digest, previous, created_by, created_at"""
_RECEIPTS = sql(f"SELECT {_RECEIPT} FROM receipts WHERE work_id = :work_id ORDER BY number")  # noqa: S608


def receipts(tx: Tx, work_id: WorkId) -> list[Receipt]:
    """Every receipt of a Work, first to last. Raises ``Unreadable``: a chain with a hole is no chain."""
    return [rows.decode(Receipt, "receipts", row) for row in tx.rows(_RECEIPTS, work_id=work_id)]


_ONE_RECEIPT = sql(f"SELECT {_RECEIPT} FROM receipts WHERE id = :id")  # noqa: S608


def receipt(tx: Tx, receipt_id: str) -> Receipt | None:
    found = tx.row(_ONE_RECEIPT, id=receipt_id)
    return rows.decode(Receipt, "receipts", found) if found else None


_KEEP = sql(f"""
    INSERT INTO receipts ({_RECEIPT})
    VALUES (:id, :work_id, :fence, :number, :outcome, :body, :digest, :previous, :created_by, :created_at)
""")  # noqa: S608


def keep(tx: Tx, receipt: Receipt) -> None:
    tx.rows(_KEEP, **rows.encode(receipt))


_RESULTS = sql("""
    SELECT name, passed, snapshot, log_digest, at, line FROM check_results
    WHERE receipt_id = :receipt_id ORDER BY name
""")


def results(tx: Tx, receipt_id: ReceiptId) -> dict[str, CheckResult]:
    """What each named check said of this submission."""
    return {
        name: CheckResult(
            receipt_id=receipt_id,
            name=name,
            passed=bool(passed),
            snapshot=snapshot,
            log_digest=log,
            at=UnixMs(at),
            line=line,
        )
        for name, passed, snapshot, log, at, line in tx.rows(_RESULTS, receipt_id=receipt_id)
    }


_FORGET = sql("DELETE FROM check_results WHERE receipt_id = :receipt_id AND name = :name")


def forget(tx: Tx, receipt_id: ReceiptId, name: str) -> None:
    """The check of this name is another one from now on, or none."""
    tx.rows(_FORGET, receipt_id=receipt_id, name=name)


_LOGS = sql("""
    SELECT DISTINCT k.log_digest FROM check_results k
    JOIN receipts r ON r.id = k.receipt_id JOIN works w ON w.id = r.work_id JOIN team_runs t ON t.id = w.team_run_id
    WHERE t.purged_at IS NULL AND (t.ended_at IS NULL OR t.ended_at > :since)
""")


def logs(tx: Tx, *, since: int) -> set[str]:
    """The logs that results name, of every run that goes on or ended after ``since`` and was not purged."""
    return {row[0] for row in tx.rows(_LOGS, since=since)}


_REVISION = sql("""
    SELECT json_extract(body, '$.candidate_revision') FROM receipts WHERE id = :id AND json_valid(body)
""")


def revision(tx: Tx, receipt_id: ReceiptId) -> str | None:
    """The commit that a submission names, empty where there is none; None where that cannot be read."""
    found = tx.row(_REVISION, id=receipt_id)
    return found[0] if found else None


_SUBMITTED = sql("SELECT created_at FROM receipts WHERE id = :id")


def submitted_at(tx: Tx, receipt_id: ReceiptId) -> UnixMs:
    return UnixMs(tx.value(_SUBMITTED, id=receipt_id))


_RECORD = sql("""
    INSERT INTO check_results (receipt_id, name, passed, snapshot, log_digest, at, line)
    VALUES (:receipt_id, :name, :passed, :snapshot, :log_digest, :at, :line)
    ON CONFLICT (receipt_id, name) DO UPDATE
    SET passed = excluded.passed, snapshot = excluded.snapshot, log_digest = excluded.log_digest, at = excluded.at,
        line = excluded.line
""")


def record(tx: Tx, result: CheckResult) -> None:
    tx.rows(_RECORD, **rows.encode(result))


_LEASED = sql("""
    SELECT b.id, b.session_id, b.lease_ms FROM bindings b JOIN sessions s ON s.id = b.session_id
    WHERE b.custody = 'claimed' AND s.process <> 'live'
""")


def leased(tx: Tx) -> list[tuple[BindingId, SessionId, int]]:
    """Attempts whose session no live process proves: they need to be heard from."""
    return [(BindingId(row[0]), SessionId(row[1]), row[2]) for row in tx.rows(_LEASED)]
