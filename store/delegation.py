"""Delegations: rows and records."""

from __future__ import annotations

from typing import Any

from client.protocol.delegation import WorkDelegation
from client.protocol.ids import TeamId, TeamRunId
from store.keeper import Keeper, Page, page
from store.sql import sql
from store.tx import Tx

DELEGATIONS = Keeper("delegation", "delegations", WorkDelegation)

_PAGE = sql(f"""
    SELECT n, {DELEGATIONS.columns} FROM delegations
    WHERE n > :after AND (source_team_id = :team_id OR target_team_id = :team_id) ORDER BY n LIMIT :limit
""")  # noqa: S608


def list_page(tx: Tx, team_id: TeamId, *, after: int, limit: int) -> Page[WorkDelegation]:
    def load(a: int, m: int) -> list[tuple[Any, ...]]:
        return tx.rows(_PAGE, team_id=team_id, after=a, limit=m)

    return page(tx, DELEGATIONS, load, after, limit)


_PROPOSED = DELEGATIONS.select("WHERE target_team_id = :team_id AND state = 'proposed' ORDER BY n LIMIT 100")


def proposed_to(tx: Tx, team_id: TeamId) -> list[WorkDelegation]:
    return DELEGATIONS.many(tx, _PROPOSED, team_id=team_id)


_PROPOSED_BY = DELEGATIONS.select("WHERE team_run_id = :run_id AND state = 'proposed' ORDER BY n LIMIT 1")


def proposed_by(tx: Tx, run_id: TeamRunId) -> list[WorkDelegation]:
    """The first of what a run asked of others that nobody has decided; none where all is decided."""
    return DELEGATIONS.many(tx, _PROPOSED_BY, run_id=run_id)


_DECLINED = DELEGATIONS.select("WHERE team_run_id = :run_id AND state = 'declined' ORDER BY n DESC LIMIT 100")


def declined(tx: Tx, run_id: TeamRunId) -> list[WorkDelegation]:
    return DELEGATIONS.many(tx, _DECLINED, run_id=run_id)


_FINISHED = sql("""
    SELECT d.id, d.source_work_id, d.title, w.id, w.resolution, w.result_summary, w.updated_at,
        coalesce(r.id, ''), coalesce(r.digest, '')
    FROM delegations d JOIN works w ON w.id = d.target_work_id LEFT JOIN receipts r ON r.id = w.receipt_id
    WHERE d.team_run_id = :run_id AND w.phase = 'closed' ORDER BY w.updated_at DESC LIMIT 100
""")


def finished(tx: Tx, run_id: TeamRunId) -> list[tuple[Any, ...]]:
    """delegation, our Work, title, their Work, its resolution, its summary, since, its receipt and the digest."""
    return tx.rows(_FINISHED, run_id=run_id)
