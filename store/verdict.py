"""Verdicts: rows and records."""

from __future__ import annotations

from typing import Any

from client.protocol.ids import AgentMemberId, MembershipId, TeamRunId, WorkId
from client.protocol.verdict import Verdict
from client.protocol.work import Work
from store.keeper import Keeper
from store.sql import sql
from store.tx import Tx
from store.work import WORKS

VERDICTS = Keeper("verdict", "verdicts", Verdict)

_OF = VERDICTS.select("WHERE receipt_id = :receipt_id AND membership_id = :verifier_id")


def of(tx: Tx, work: Work) -> Verdict | None:
    """What the verifier that the Work names now said of its last submission."""
    if work.receipt_id is None or work.verifier_id is None:
        return None
    return VERDICTS.one(tx, _OF, receipt_id=work.receipt_id, verifier_id=work.verifier_id)


_BUILT = sql("""
    SELECT max(b.fence) FROM bindings b JOIN memberships m ON m.id = b.membership_id
    WHERE b.work_id = :work_id AND m.agent_member_id = :agent_id
""")


def built(tx: Tx, work_id: WorkId, agent_id: AgentMemberId) -> int:
    """The fence of the last attempt of that person at this Work, under whatever membership; 0 where there is none."""
    return int(tx.value(_BUILT, work_id=work_id, agent_id=agent_id) or 0)


_ASKED = WORKS.select("""
    INDEXED BY works_by_standing
    WHERE team_run_id = :run_id AND phase = 'review' AND condition = 'normal' AND verifier_id = :verifier_id
      AND NOT EXISTS (SELECT 1 FROM verdicts v
                      WHERE v.receipt_id = works.receipt_id AND v.membership_id = works.verifier_id)
    ORDER BY place LIMIT 100
""")


def asked_of(tx: Tx, run_id: TeamRunId, verifier_id: MembershipId) -> list[Work]:
    """The Works in review of which that member is the verifier and has not said anything yet."""
    return WORKS.readable(tx, _ASKED, run_id=run_id, verifier_id=verifier_id)


_MISSING = sql("""
    SELECT w.id, w.version, w.title, w.verifier_id, a.name, CASE m.state WHEN 'inactive' THEN 'it has left the team'
        ELSE 'it has no open place in the run' END,
        max(w.updated_at, m.updated_at)
    FROM works w INDEXED BY works_by_standing
    JOIN memberships m ON m.id = w.verifier_id JOIN agents a ON a.id = m.agent_member_id
    WHERE w.team_run_id = :run_id AND w.phase IN ('open', 'active', 'review')
      AND (m.state = 'inactive' OR NOT EXISTS
          (SELECT 1 FROM member_runs p
           WHERE p.team_run_id = w.team_run_id AND p.membership_id = m.id AND p.coordination = 'active'))
      AND NOT EXISTS (SELECT 1 FROM verdicts v WHERE w.phase = 'review' AND v.receipt_id = w.receipt_id
                      AND v.membership_id = w.verifier_id)
    ORDER BY w.place LIMIT 100
""")


def cannot_come(tx: Tx, run_id: TeamRunId) -> list[tuple[Any, ...]]:
    """work, version, title, verifier, its name, why its verdict cannot come, since."""
    return tx.rows(_MISSING, run_id=run_id)
