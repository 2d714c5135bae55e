"""What boards are computed from: counts, what members do, incidents, what is due. SQL that reads only."""

from __future__ import annotations

from typing import Any

from client.protocol.ids import MembershipId, TeamRunId, WorkId
from store.sql import sql
from store.tx import Tx
from store.work import needs_met

_STANDINGS = sql("""
    SELECT phase, condition, coalesce(resolution, ''), owner_id IS NOT NULL, count(*)
    FROM works WHERE team_run_id = :run_id GROUP BY 1, 2, 3, 4
""")


def standings(tx: Tx, run_id: TeamRunId) -> list[tuple[str, str, str, bool, int]]:
    """How many Works stand where: phase, condition, resolution, whether somebody answers for it."""
    return [(row[0], row[1], row[2], bool(row[3]), row[4]) for row in tx.rows(_STANDINGS, run_id=run_id)]


_READY = sql(f"""
    SELECT count(*) FROM works w
    WHERE w.team_run_id = :run_id AND w.phase = 'open' AND w.condition = 'normal' AND {needs_met("w")}
""")  # noqa: S608


def ready(tx: Tx, run_id: TeamRunId) -> int:
    return int(tx.value(_READY, run_id=run_id))


_MEMBERS = sql("""
    SELECT p.id, a.name, p.role, p.number, p.membership_id, coalesce(s.state, ''),
        (SELECT count(*) FROM message_deliveries d
         WHERE d.recipient_id = p.membership_id AND d.state IN ('queued', 'routed', 'claimed')
           AND d.team_run_id = p.team_run_id), coalesce(s.native_session, ''), s.resumed_from IS NOT NULL
    FROM member_runs p JOIN agents a ON a.id = p.agent_member_id
    LEFT JOIN sessions s ON s.member_run_id = p.id AND s.state <> 'closed'
    WHERE p.team_run_id = :run_id AND (p.coordination = 'active' OR s.id IS NOT NULL) ORDER BY p.role, p.number
""")


def members(tx: Tx, run_id: TeamRunId) -> list[tuple[Any, ...]]:
    """place, name, role, number, membership, session state, waiting mail, conversation, whether it is resumed.

    Also of a place that is closed, while its session is not: its process may go on.
    """
    return tx.rows(_MEMBERS, run_id=run_id)


_STANDS = sql(f"""
    SELECT w.id, w.title, w.condition, w.priority, coalesce(a.name, ''), w.updated_at,
        w.phase = 'open' AND w.condition = 'normal' AND {needs_met("w")}, coalesce(b.name, ''), v.outcome
    FROM works w INDEXED BY works_by_standing
    LEFT JOIN memberships m ON m.id = w.owner_id LEFT JOIN agents a ON a.id = m.agent_member_id
    LEFT JOIN memberships k ON k.id = w.verifier_id LEFT JOIN agents b ON b.id = k.agent_member_id
    LEFT JOIN verdicts v ON w.phase = 'review' AND v.receipt_id = w.receipt_id AND v.membership_id = w.verifier_id
    WHERE w.team_run_id = :run_id AND w.phase = :phase ORDER BY w.place LIMIT 50
""")  # noqa: S608


def stands(tx: Tx, run_id: TeamRunId, phase: str) -> list[tuple[Any, ...]]:
    """The first Works of a phase: work, title, condition, priority, owner's name, since, whether it is ready, its
    verifier's name, what that said of the submission in review.
    """
    return tx.rows(_STANDS, run_id=run_id, phase=phase)


_DOES = sql("""
    SELECT id, title, phase, condition FROM works
    WHERE owner_id = :owner_id AND team_run_id = :run_id AND phase IN ('active', 'review')
    ORDER BY phase = 'review' DESC, condition = 'normal' DESC, place LIMIT 1
""")


def does(tx: Tx, run_id: TeamRunId, owner_id: MembershipId) -> tuple[Any, ...] | None:
    """The Work that says what a member does: in review first, then the one it works on."""
    return tx.row(_DOES, run_id=run_id, owner_id=owner_id)


_IN_REVIEW = sql("""
    SELECT w.id, w.receipt_id, w.title, coalesce(v.created_at, r.created_at, w.updated_at), w.owner_id, a.name,
        coalesce(b.name, ''), coalesce(v.outcome, ''), coalesce(v.reason, '')
    FROM works w
    JOIN memberships m ON m.id = w.owner_id JOIN agents a ON a.id = m.agent_member_id
    LEFT JOIN receipts r ON r.id = w.receipt_id
    LEFT JOIN memberships k ON k.id = w.verifier_id LEFT JOIN agents b ON b.id = k.agent_member_id
    LEFT JOIN verdicts v ON v.receipt_id = w.receipt_id AND v.membership_id = w.verifier_id
    WHERE w.team_run_id = :run_id AND w.phase = 'review' AND w.condition = 'normal' ORDER BY 4 LIMIT 100
""")


def in_review(tx: Tx, run_id: TeamRunId) -> list[tuple[Any, ...]]:
    """work, receipt, title, since, owner, its name, its verifier's name, what that said and why."""
    return tx.rows(_IN_REVIEW, run_id=run_id)


_BLOCKED = sql("""
    SELECT w.id, w.version, w.title, w.reason, e.version, e.at, e.actor FROM works w
    JOIN events e ON e.stream = 'work/' || w.id AND e.version =
        (SELECT max(b.version) FROM events b WHERE b.stream = 'work/' || w.id AND b.kind = 'blocked')
    WHERE w.team_run_id = :run_id AND w.phase = 'active' AND w.condition = 'blocked' ORDER BY e.at LIMIT 100
""")


def blocked(tx: Tx, run_id: TeamRunId) -> list[tuple[Any, ...]]:
    """work, version, title, reason; at which version, when and by whom it was blocked."""
    return tx.rows(_BLOCKED, run_id=run_id)


_ORPHANED = sql("""
    SELECT w.id, b.fence, b.version, w.title, b.updated_at, b.reason
    FROM bindings b INDEXED BY bindings_one_live CROSS JOIN works w ON w.id = b.work_id
    WHERE b.custody IN ('claimed', 'orphaned_unverified') AND b.custody = 'orphaned_unverified'
      AND w.team_run_id = :run_id ORDER BY b.updated_at LIMIT 100
""")


def orphaned(tx: Tx, run_id: TeamRunId) -> list[tuple[Any, ...]]:
    """work, fence, version of the attempt, title, since, reason."""
    return tx.rows(_ORPHANED, run_id=run_id)


_STUCK = sql("""
    SELECT w.id, w.version, w.title, n.id, n.resolution, n.updated_at
    FROM works w JOIN work_needs e ON e.work_id = w.id JOIN works n ON n.id = e.needs_id
    WHERE w.team_run_id = :run_id AND w.phase IN ('open', 'active', 'review')
      AND n.resolution IN ('cancelled', 'failed')
    ORDER BY n.updated_at, n.n LIMIT 500
""")


def stuck(tx: Tx, run_id: TeamRunId) -> list[tuple[Any, ...]]:
    """work, version, title, prerequisite, its resolution, since: the one that was closed last comes last."""
    return tx.rows(_STUCK, run_id=run_id)


_LEFT = sql("""
    SELECT n.id FROM work_needs e JOIN works n ON n.id = e.needs_id
    WHERE e.work_id = :work_id AND coalesce(n.resolution, '') NOT IN ('cancelled', 'failed') ORDER BY n.id
""")


def needs_left(tx: Tx, work_id: WorkId) -> list[str]:
    """The prerequisites that were not cancelled or failed."""
    return [row[0] for row in tx.rows(_LEFT, work_id=work_id)]


_ACKNOWLEDGED = sql("SELECT key FROM attention_seen WHERE reader = :reader AND team_run_id = :run_id")


def acknowledged(tx: Tx, run_id: TeamRunId, reader: str) -> set[str]:
    return {row[0] for row in tx.rows(_ACKNOWLEDGED, reader=reader, run_id=run_id)}


_ACKNOWLEDGE = sql("""
    INSERT INTO attention_seen (team_run_id, reader, key, at) VALUES (:run_id, :reader, :key, :at)
    ON CONFLICT DO NOTHING
""")


def acknowledge(tx: Tx, run_id: TeamRunId, reader: str, key: str, *, at: int) -> None:
    tx.rows(_ACKNOWLEDGE, run_id=run_id, reader=reader, key=key, at=at)


_DUE = sql(f"""
    SELECT w.id, w.version, s.id, s.session_gen,
        (SELECT count(*) FROM work_deliveries d WHERE d.work_id = w.id AND d.n > coalesce(
            (SELECT max(g.n) FROM work_deliveries g WHERE g.work_id = w.id AND g.state <> 'failed'), 0))
    FROM works w INDEXED BY works_by_owner
    JOIN member_runs p ON p.membership_id = w.owner_id AND p.team_run_id = w.team_run_id AND p.coordination = 'active'
    JOIN memberships m ON m.id = w.owner_id AND m.state = 'active'
    JOIN agents a ON a.id = p.agent_member_id AND a.status = 'active'
    JOIN sessions s ON s.member_run_id = p.id AND s.state IN ('idle', 'active')
    WHERE w.team_run_id = :run_id AND w.phase = 'open' AND w.condition = 'normal'
      AND NOT EXISTS (SELECT 1 FROM bindings b WHERE b.work_id = w.id
                      AND b.custody IN ('claimed', 'orphaned_unverified'))
      AND {needs_met("w")}
      AND NOT EXISTS (SELECT 1 FROM bindings b JOIN works o ON o.id = b.work_id
                      WHERE b.membership_id = w.owner_id AND b.custody IN ('claimed', 'orphaned_unverified')
                        AND (o.phase = 'open' OR (o.phase = 'active' AND o.condition = 'normal')))
    ORDER BY +w.place LIMIT 100
""")  # noqa: S608


def due(tx: Tx, run_id: TeamRunId) -> list[tuple[Any, ...]]:
    """work, version, session, session generation, deliveries in a row that failed; ready, answered for, undelivered,
    its member free.
    """
    return tx.rows(_DUE, run_id=run_id)


_CHECKS = sql("""
    SELECT w.id, r.id, r.fence, c.value, json_extract(r.body, '$.candidate_revision'), j.root
    FROM works w INDEXED BY works_by_standing JOIN receipts r ON r.id = w.receipt_id AND json_valid(r.body)
    JOIN teams t ON t.id = w.team_id JOIN projects j ON j.id = t.project_id
    JOIN json_each(iif(json_valid(w.checks), w.checks, '[]')) c
    WHERE w.team_run_id = :run_id AND w.phase = 'review' AND w.condition = 'normal' AND c.type = 'text'
      AND NOT EXISTS (SELECT 1 FROM check_results k WHERE k.receipt_id = r.id
                      AND k.name = substr(c.value, 1, instr(c.value, '=') - 1) AND k.line = c.value)
    ORDER BY w.place, c.key LIMIT 100
""")


def checks_due(tx: Tx, run_id: TeamRunId) -> list[tuple[Any, ...]]:
    """work, receipt, fence, line of the check, revision, project's folder: named, in review, and without a result."""
    return tx.rows(_CHECKS, run_id=run_id)


_STOPPED = sql("""
    SELECT s.id, s.version, a.name, s.updated_at, s.native_session <> '', coalesce(
        (SELECT e.readback FROM effects e WHERE e.session_id = s.id AND e.kind = 'launch'
         AND e.certainty = 'not_applied' AND s.pid = 0 ORDER BY e.n DESC LIMIT 1),
        (SELECT v.kind FROM events v WHERE v.stream = 'session/' || s.id AND s.pid > 0 ORDER BY v.version DESC LIMIT 1))
    FROM sessions s JOIN member_runs p ON p.id = s.member_run_id AND p.coordination = 'active'
    JOIN agents a ON a.id = s.agent_member_id
    WHERE s.team_run_id = :run_id AND s.state IN ('cold', 'recovery_required') AND s.driver = 'host_driven'
    ORDER BY s.updated_at LIMIT 100
""")


def stopped(tx: Tx, run_id: TeamRunId) -> list[tuple[Any, ...]]:
    """session, version, who, since, whether it has a conversation, how its process ended or why it was not started;
    none that was not tried yet.
    """
    return [row for row in tx.rows(_STOPPED, run_id=run_id) if row[5] is not None]


_DEGRADED = sql("""
    SELECT s.id, a.name, s.streak, s.degraded_at FROM sessions s JOIN agents a ON a.id = s.agent_member_id
    WHERE s.team_run_id = :run_id AND s.degraded_at IS NOT NULL AND s.state <> 'closed' ORDER BY s.degraded_at LIMIT 100
""")


def degraded(tx: Tx, run_id: TeamRunId) -> list[tuple[Any, ...]]:
    """session, who, cycles in a row that came to nothing, since."""
    return tx.rows(_DEGRADED, run_id=run_id)


_CAPACITY = sql("""
    SELECT s.id, a.name, s.capacity, s.capacity_source, s.capacity_at FROM sessions s JOIN agents a
    ON a.id = s.agent_member_id WHERE s.team_run_id = :run_id AND s.capacity IN ('exhausted', 'unauthorized')
      AND s.state <> 'closed' AND s.capacity_at BETWEEN :since AND :now ORDER BY s.capacity_at LIMIT 100
""")


def without_capacity(tx: Tx, run_id: TeamRunId, *, since: int, now: int) -> list[tuple[Any, ...]]:
    """session, who, what its provider gives, by which rule, when that was read."""
    return tx.rows(_CAPACITY, run_id=run_id, since=since, now=now)


_UNDER_WAY = sql("""
    SELECT count(*) FROM sessions s WHERE s.team_run_id = :run_id AND s.state <> 'closed' AND (s.state = 'active' OR
        EXISTS (SELECT 1 FROM effects e WHERE e.session_id = s.id AND e.kind = 'deliver' AND e.state = 'prepared'))
""")


def under_way(tx: Tx, run_id: TeamRunId) -> int:
    """Cycles of a run that go on, or are about to begin."""
    return int(tx.value(_UNDER_WAY, run_id=run_id))


_UNTOLD = sql("""
    SELECT e.id, e.version, e.kind, e.state, s.id, a.name, e.readback, e.updated_at
    FROM sessions s JOIN agents a ON a.id = s.agent_member_id
    JOIN effects e ON e.n IN (SELECT max(t.n) FROM effects t
                              WHERE t.session_id = s.id AND t.kind IN ('deliver', 'steer', 'interrupt') GROUP BY t.kind)
    WHERE s.team_run_id = :run_id AND s.state <> 'closed' AND (e.state = 'recovery_required'
        OR e.kind = 'deliver' AND e.state = 'settled' AND e.certainty = 'not_applied' AND s.state = 'idle')
    ORDER BY e.n LIMIT 100
""")


def untold(tx: Tx, run_id: TeamRunId) -> list[tuple[Any, ...]]:
    """effect, version, kind, state, session, who, what was read back, since: texts that were held, and texts and
    interrupts of which nobody knows whether they were taken.
    """
    return tx.rows(_UNTOLD, run_id=run_id)


_UNENDED = sql("""
    SELECT e.id, e.version, e.state, s.id, a.name, e.readback, e.updated_at
    FROM sessions s JOIN agents a ON a.id = s.agent_member_id
    JOIN effects e ON e.n = (SELECT max(t.n) FROM effects t WHERE t.session_id = s.id AND t.kind = 'stop')
    WHERE s.team_run_id = :run_id AND s.state <> 'closed'
      AND (e.state = 'recovery_required' OR e.state = 'settled' AND e.certainty = 'not_applied')
    ORDER BY e.n LIMIT 100
""")


def unended(tx: Tx, run_id: TeamRunId) -> list[tuple[Any, ...]]:
    """effect, version, state, session, who, what was read back, since: ends of processes that were asked for and are
    not proven.
    """
    return tx.rows(_UNENDED, run_id=run_id)


_SEATS = sql("""
    SELECT p.id, p.run_gen, a.id, a.name, t.name, a.profile, a.workspace, j.id, j.root, j.git_dir <> '',
        p.coordination = 'active' AND a.status = 'active' AND m.state = 'active'
    FROM member_runs p JOIN agents a ON a.id = p.agent_member_id JOIN memberships m ON m.id = p.membership_id
    JOIN teams t ON t.id = m.team_id JOIN projects j ON j.id = t.project_id
    WHERE p.team_run_id = :run_id AND p.coordination <> 'retired' ORDER BY p.n
""")


def seats(tx: Tx, run_id: TeamRunId) -> list[tuple[Any, ...]]:
    """place, its generation, agent, its name, team, profile, workspace policy, project, its folder, whether in git, and
    whether it takes sessions now.
    """
    return tx.rows(_SEATS, run_id=run_id)


_OCCUPIED = sql("""
    SELECT o.id FROM bindings b JOIN works o ON o.id = b.work_id
    WHERE b.membership_id = :owner_id AND b.custody IN ('claimed', 'orphaned_unverified')
      AND (o.phase = 'open' OR (o.phase = 'active' AND o.condition = 'normal')) LIMIT 1
""")


def occupied(tx: Tx, owner_id: MembershipId) -> str | None:
    """A Work that this member has been given and not finished or blocked."""
    found = tx.row(_OCCUPIED, owner_id=owner_id)
    return str(found[0]) if found else None
