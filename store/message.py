"""Messages and deliveries: rows and records."""

from __future__ import annotations

import itertools
from collections.abc import Iterable

from client.protocol.ids import CorrelationId, MembershipId, MessageId, TeamRunId
from client.protocol.message import Intent, Message, MessageDelivery
from client.protocol.team_run import MemberRun
from store import rows
from store.keeper import Keeper
from store.sql import sql
from store.tx import Tx

MAIL = Keeper("mail", "message_deliveries", MessageDelivery)

_COLUMNS = """id, team_id, team_run_id, sender_id, sender_agent_id, kind, intent, address, body, digest, options,
    correlation_id, causation_id, work_id, evidence_refs, expires_at, created_at"""

_KEEP = sql(f"""
    INSERT INTO messages ({_COLUMNS})
    VALUES (:id, :team_id, :team_run_id, :sender_id, :sender_agent_id, :kind, :intent, :address, :body, :digest,
        :options, :correlation_id, :causation_id, :work_id, :evidence_refs, :expires_at, :created_at)
""")  # noqa: S608


def keep(tx: Tx, message: Message) -> None:
    tx.rows(_KEEP, **rows.encode(message))


_LOAD = sql(f"SELECT {_COLUMNS} FROM messages WHERE id = :id")  # noqa: S608


def load(tx: Tx, message_id: MessageId) -> Message | None:
    found = tx.row(_LOAD, id=message_id)
    return rows.decode(Message, "messages", found) if found else None


_SAID = sql(f"SELECT {_COLUMNS} FROM messages WHERE team_run_id = :run_id ORDER BY n")  # noqa: S608


def of_run(tx: Tx, run_id: TeamRunId) -> list[Message]:
    """All of them, or ``Unreadable``."""
    return [rows.decode(Message, "messages", row) for row in tx.rows(_SAID, run_id=run_id)]


_ANSWER = sql("SELECT id FROM messages WHERE causation_id = :message_id AND kind = 'interaction_response'")


def answer_of(tx: Tx, message_id: MessageId) -> MessageId | None:
    """The one answer that an interaction request has got."""
    found = tx.row(_ANSWER, message_id=message_id)
    return MessageId(found[0]) if found else None


_KNOWN = sql("SELECT 1 FROM messages WHERE team_run_id = :run_id AND correlation_id = :correlation_id LIMIT 1")


def correlated(tx: Tx, run_id: TeamRunId, correlation_id: CorrelationId) -> bool:
    """Whether that conversation exists in that run."""
    return tx.row(_KNOWN, run_id=run_id, correlation_id=correlation_id) is not None


_PAGE = sql(f"""
    SELECT n, {_COLUMNS} FROM messages
    WHERE team_run_id = :run_id AND n > :after AND (:correlation_id IS NULL OR correlation_id = :correlation_id)
      AND (:reader_id IS NULL OR sender_id = :reader_id OR EXISTS
           (SELECT 1 FROM message_deliveries d WHERE d.message_id = messages.id AND (d.recipient_id = :reader_id
            OR d.recipient_id IS NULL AND (d.role = '' OR d.role = :role AND d.number IN (0, :number)))))
    ORDER BY n LIMIT :limit
""")  # noqa: S608


def list_page(
    tx: Tx,
    run_id: TeamRunId,
    *,
    correlation_id: CorrelationId | None,
    seen_by: MemberRun | None,
    after: int,
    limit: int,
) -> tuple[list[Message], int | None]:
    """A page of a run's messages; with ``seen_by`` only those that it sent, was sent or could take."""
    found = tx.rows(
        _PAGE,
        run_id=run_id,
        after=after,
        limit=limit + 1,
        correlation_id=correlation_id,
        reader_id=seen_by and seen_by.membership_id,
        role=seen_by and seen_by.role,
        number=seen_by and seen_by.number,
    )
    page = rows.decode_all(tx, Message, "messages", (row[1:] for row in found[:limit]))
    return page, found[limit - 1][0] if len(found) > limit else None


_OF_MESSAGE = MAIL.select("WHERE message_id = :message_id ORDER BY n")


def deliveries(tx: Tx, message_id: MessageId) -> list[MessageDelivery]:
    return MAIL.many(tx, _OF_MESSAGE, message_id=message_id)


_EVERYTHING = sql(f"""
    SELECT n, {MAIL.columns} FROM message_deliveries WHERE recipient_id = :recipient_id AND n > :after
    ORDER BY n LIMIT :limit
""")  # noqa: S608
_UNSETTLED = sql(f"""
    SELECT n, {MAIL.columns} FROM message_deliveries WHERE recipient_id = :recipient_id AND n > :after
      AND state IN ('queued', 'routed', 'claimed', 'provider_received')
    ORDER BY n LIMIT :limit
""")  # noqa: S608


def inbox(
    tx: Tx, readers: Iterable[MembershipId], *, everything: bool, after: int, limit: int
) -> tuple[list[MessageDelivery], int | None]:
    """A page of the mail of these memberships, oldest first."""
    statement = _EVERYTHING if everything else _UNSETTLED
    each = (tx.rows(statement, recipient_id=reader, after=after, limit=limit + 1) for reader in readers)
    found = sorted(itertools.chain.from_iterable(each), key=lambda row: int(row[0]))
    page = rows.decode_all(tx, MessageDelivery, MAIL.table, (row[1:] for row in found[:limit]))
    return page, found[limit - 1][0] if len(found) > limit else None


_ASKED = sql(f"""
    SELECT {", ".join(f"d.{name}" for name in MAIL.columns.split(", "))}
    FROM messages m JOIN message_deliveries d ON d.message_id = m.id
    WHERE m.sender_id = :sender_id AND m.kind = 'interaction_request' AND m.team_run_id = :run_id
      AND d.state IN ('queued', 'routed', 'claimed', 'provider_received', 'acknowledged') AND d.response = 'none'
      AND NOT EXISTS (SELECT 1 FROM messages a WHERE a.causation_id = m.id AND a.kind = 'interaction_response')
    ORDER BY d.n
""")  # noqa: S608


def unanswered(tx: Tx, sender_id: MembershipId, run_id: TeamRunId) -> list[MessageDelivery]:
    """The questions of this member in this run that still wait for their answer."""
    return MAIL.many(tx, _ASKED, sender_id=sender_id, run_id=run_id)


_WAITING = MAIL.select("""
    WHERE recipient_id = :recipient_id AND state IN ('queued', 'routed', 'claimed') AND team_run_id = :run_id
    ORDER BY n LIMIT :limit
""")


def waiting(tx: Tx, recipient_id: MembershipId, run_id: TeamRunId, limit: int) -> list[MessageDelivery]:
    """Mail of a run that has not reached its recipient's process. One that does not decode holds up no other."""
    return MAIL.readable(tx, _WAITING, recipient_id=recipient_id, run_id=run_id, limit=limit)


_INTENT = sql("SELECT intent FROM messages WHERE id = :id")


def intents(tx: Tx, ids: Iterable[MessageId]) -> list[Intent]:
    """What each of these messages wants."""
    return [Intent(tx.value(_INTENT, id=each)) for each in ids]


_QUEUED = sql("""
    SELECT count(*) FROM message_deliveries WHERE recipient_id = :recipient_id
      AND state IN ('queued', 'routed', 'claimed')
""")


def queued(tx: Tx, recipient_id: MembershipId) -> int:
    return int(tx.value(_QUEUED, recipient_id=recipient_id))


_QUEUED_IN_RUN = sql("""
    SELECT count(*) FROM message_deliveries WHERE recipient_id = :recipient_id
      AND state IN ('queued', 'routed', 'claimed') AND team_run_id = :run_id
""")


def queued_in_run(tx: Tx, recipient_id: MembershipId, run_id: TeamRunId) -> int:
    return int(tx.value(_QUEUED_IN_RUN, recipient_id=recipient_id, run_id=run_id))


_QUEUED_FOR = sql("""
    SELECT count(*) FROM message_deliveries WHERE team_run_id = :run_id AND recipient_id IS NULL
      AND state = 'queued' AND role = :role AND number = :number
""")


def queued_for(tx: Tx, run_id: TeamRunId, role: str, number: int) -> int:
    """Mail that waits for somebody to take it: for a role instance, or for the team where ``role`` is empty."""
    return int(tx.value(_QUEUED_FOR, run_id=run_id, role=role, number=number))


_LOST = """state IN ('failed', 'expired', 'invalidated') AND told = 0 AND EXISTS
        (SELECT 1 FROM messages m WHERE m.id = message_deliveries.message_id AND m.sender_id = :sender_id)
    ORDER BY n LIMIT 50"""
_UNTOLD = MAIL.select(f"WHERE team_run_id = :run_id AND {_LOST}")
_UNTOLD_ANYWHERE = MAIL.select(f"""
    WHERE team_run_id IN (SELECT r.id FROM team_runs r JOIN memberships o ON o.team_id = r.team_id
                          WHERE o.id = :sender_id) AND {_LOST}
""")  # noqa: S608


def untold(tx: Tx, sender_id: MembershipId, run_id: TeamRunId | None) -> list[MessageDelivery]:
    """The sender's own mail that will not arrive, and that it has not noticed yet; in one run or in all."""
    if run_id is None:
        return MAIL.readable(tx, _UNTOLD_ANYWHERE, sender_id=sender_id)
    return MAIL.readable(tx, _UNTOLD, sender_id=sender_id, run_id=run_id)


_UNADDRESSED = MAIL.select("""
    WHERE team_run_id = :run_id AND recipient_id IS NULL AND state = 'queued' AND role = :role
      AND number IN (0, :number) ORDER BY n
""")


def for_role(tx: Tx, run_id: TeamRunId, role: str, number: int) -> list[MessageDelivery]:
    """Mail that has waited for this role instance."""
    return MAIL.many(tx, _UNADDRESSED, run_id=run_id, role=role, number=number)


_TO_TAKE = MAIL.select("""
    WHERE team_run_id = :run_id AND recipient_id IS NULL AND state = 'queued'
      AND (role = '' OR role = :role AND number IN (0, :number)) ORDER BY n LIMIT 50
""")


def to_take(tx: Tx, run_id: TeamRunId, role: str, number: int) -> list[MessageDelivery]:
    """Mail that nobody has taken and this role instance may: to the team, or to a role that several have."""
    return MAIL.readable(tx, _TO_TAKE, run_id=run_id, role=role, number=number)


_DUE = MAIL.select("""
    WHERE expires_at <= :now AND state IN ('queued', 'routed', 'claimed') ORDER BY expires_at LIMIT 500
""")


def expired(tx: Tx, now: int) -> list[MessageDelivery]:
    return MAIL.many(tx, _DUE, now=now)


_NEXT_EXPIRY = sql("""
    SELECT min(expires_at) FROM message_deliveries
    WHERE expires_at IS NOT NULL AND state IN ('queued', 'routed', 'claimed')
""")


def next_expiry(tx: Tx) -> int | None:
    """When the next waiting message expires."""
    found = tx.value(_NEXT_EXPIRY)
    return None if found is None else int(found)


_OF_RECIPIENT = MAIL.select("""
    WHERE recipient_id = :recipient_id AND state IN ('queued', 'routed', 'claimed') ORDER BY +n
""")


def unsettled_of(tx: Tx, recipient_id: MembershipId) -> list[MessageDelivery]:
    return MAIL.many(tx, _OF_RECIPIENT, recipient_id=recipient_id)


_OF_RUN = MAIL.select("WHERE team_run_id = :run_id AND state IN ('queued', 'routed', 'claimed') ORDER BY n")


def unsettled_of_run(tx: Tx, run_id: TeamRunId) -> list[MessageDelivery]:
    return MAIL.many(tx, _OF_RUN, run_id=run_id)
