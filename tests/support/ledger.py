"""What must hold of a store whatever was asked of it, read past our own decoding."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import apsw
import msgpack

#: Noun, as streams name it, to its table.
TABLES = {
    "agent": "agents",
    "binding": "bindings",
    "capability": "capabilities",
    "delegation": "delegations",
    "delivery": "work_deliveries",
    "effect": "effects",
    "mail": "message_deliveries",
    "member-run": "member_runs",
    "membership": "memberships",
    "project": "projects",
    "session": "sessions",
    "team": "teams",
    "team-run": "team_runs",
    "verdict": "verdicts",
    "work": "works",
}
#: No row of these is ever found.
NEVER = {
    "two live attempts at one Work": """
        SELECT work_id FROM bindings WHERE custody IN ('claimed', 'orphaned_unverified')
        GROUP BY work_id HAVING count(*) > 1""",
    "a fence that is not above the one before": """
        SELECT b.work_id FROM bindings b JOIN bindings a ON a.work_id = b.work_id AND a.n < b.n
        WHERE a.fence >= b.fence""",
    "closed without a resolution, or resolved without being closed": """
        SELECT id FROM works WHERE (phase = 'closed') <> (resolution IS NOT NULL)""",
    "a run completed over a Work that is not closed": """
        SELECT w.id FROM works w JOIN team_runs r ON r.id = w.team_run_id
        WHERE r.state IN ('completed', 'cancelled') AND w.phase <> 'closed'""",
    "a live attempt at a Work that is closed or in review": """
        SELECT w.id FROM works w JOIN bindings b ON b.work_id = w.id
        WHERE b.custody IN ('claimed', 'orphaned_unverified') AND w.phase IN ('closed', 'review')""",
    "a claimed attempt of a session that is closed, or whose process has ended": """
        SELECT b.id FROM bindings b JOIN sessions s ON s.id = b.session_id
        WHERE b.custody = 'claimed' AND (s.state = 'closed' OR s.process = 'stopped')""",
    "two sessions of one member that are not closed": """
        SELECT agent_member_id FROM sessions WHERE state <> 'closed' GROUP BY 1 HAVING count(*) > 1""",
    "a session whose process nothing proved": """
        SELECT s.id FROM sessions s WHERE s.driver = 'host_driven' AND s.pid > 0 AND s.state <> 'cold'
        AND s.state <> 'closed' AND NOT EXISTS (SELECT 1 FROM effects e WHERE e.session_id = s.id AND e.pid = s.pid
        AND e.kind = 'launch' AND e.certainty = 'applied')""",
    "two launches of one session that were applied": """
        SELECT session_id FROM effects WHERE kind = 'launch' AND certainty = 'applied'
        GROUP BY session_id HAVING count(*) > 1""",
    "a session that is open though its process was stopped": """
        SELECT s.id FROM sessions s JOIN effects e ON e.session_id = s.id
        WHERE e.kind = 'stop' AND e.certainty = 'applied' AND s.state <> 'closed'""",
    "a capability that is active and its session closed": """
        SELECT c.id FROM capabilities c JOIN sessions s ON s.id = c.session_id
        WHERE c.state = 'active' AND s.state = 'closed'""",
    "a Work accepted by its owner": """
        SELECT w.id FROM works w JOIN events e ON e.stream = 'work/' || w.id AND e.kind = 'accepted'
        JOIN memberships m ON m.id = w.owner_id WHERE e.actor = 'agent/' || m.agent_member_id""",
    "a Work accepted without the word of its verifier": """
        SELECT w.id FROM works w WHERE w.resolution = 'accepted' AND w.verifier_id IS NOT NULL
        AND NOT EXISTS (SELECT 1 FROM verdicts v WHERE v.receipt_id = w.receipt_id AND v.outcome = 'passed'
                        AND v.membership_id = w.verifier_id)""",
    "a submission verified by who had made an attempt at its Work": """
        SELECT v.id FROM verdicts v JOIN memberships m ON m.id = v.membership_id
        JOIN receipts r ON r.id = v.receipt_id JOIN bindings b ON b.work_id = v.work_id AND b.fence <= r.fence
        JOIN memberships o ON o.id = b.membership_id WHERE o.agent_member_id = m.agent_member_id""",
    "a verifier of a Work that answers for it": """
        SELECT w.id FROM works w JOIN memberships v ON v.id = w.verifier_id JOIN memberships o ON o.id = w.owner_id
        WHERE w.phase <> 'closed' AND v.agent_member_id = o.agent_member_id""",
    "a Work accepted without a submission": """
        SELECT id FROM works WHERE resolution = 'accepted' AND receipt_id IS NULL""",
    "a receipt of an attempt that was not completed": """
        SELECT r.id FROM receipts r JOIN bindings b ON b.work_id = r.work_id AND b.fence = r.fence
        WHERE b.custody <> 'completed'""",
    "an attempt without its delivery": """
        SELECT id FROM bindings WHERE id NOT IN (SELECT binding_id FROM work_deliveries)""",
}


def check(path: Path) -> None:
    """Nothing of what is never found is found."""
    with contextlib.closing(_reader(path)) as connection:
        for what, statement in NEVER.items():
            found = connection.execute(statement).fetchall()
            assert not found, f"{what}: {found}"


def check_fold(path: Path) -> int:
    """Every versioned row equals the fold of its events, and no event is of a row that is not there. How many rows."""
    with contextlib.closing(_reader(path)) as connection:
        rows = _stored(connection)
        folded: dict[str, dict[str, Any]] = {}
        for stream, version, body in connection.execute("SELECT stream, version, body FROM events ORDER BY seq"):
            if str(stream).partition("/")[0] not in TABLES:
                continue
            record = folded.setdefault(str(stream), {"version": 0})
            assert version == record["version"] + 1, f"{stream} goes from {record['version']} to {version}"
            assert isinstance(body, bytes)
            record.update({name: _stands(value) for name, value in msgpack.unpackb(body).items()})
            assert record["version"] == version, f"{stream}: an event says which version it made"
    assert folded == rows
    return len(rows)


def _stored(connection: apsw.Connection) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for noun, table in TABLES.items():
        cursor = connection.execute(f"SELECT * FROM {table}")  # noqa: S608 — names of ours
        for row in cursor:
            names = [column[0] for column in cursor.getdescription()]
            record = {name: value for name, value in zip(names, row, strict=True) if name not in {"n", "place"}}
            found[f"{noun}/{record['id']}"] = record
    return found


def _stands(value: object) -> object:
    """A value of an event as its column holds it."""
    if isinstance(value, list):
        return json.dumps(value, ensure_ascii=False)
    return int(value) if isinstance(value, bool) else value


def _reader(path: Path) -> apsw.Connection:
    return apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
