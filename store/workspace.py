"""Where members worked, as their launches say: rows, and the archives that are under way."""

from __future__ import annotations

from typing import Any

from client.protocol.effect import RuntimeEffect
from client.protocol.ids import AgentMemberId, EffectId, TeamId
from store.effect import EFFECTS
from store.sql import sql
from store.tx import Tx

_USED = sql("""
    SELECT DISTINCT e.cwd, j.root, a.id, a.name, t.id, t.name,
        (SELECT o.id FROM sessions o JOIN team_runs v ON v.id = o.team_run_id
         WHERE o.agent_member_id = a.id AND o.state <> 'closed' AND v.team_id = t.id)
    FROM effects e JOIN sessions s ON s.id = e.session_id JOIN agents a ON a.id = s.agent_member_id
    JOIN team_runs u ON u.id = e.team_run_id JOIN teams t ON t.id = u.team_id JOIN projects j ON j.id = t.project_id
    WHERE e.kind = 'launch' AND (:team_id IS NULL OR t.id = :team_id) ORDER BY t.n, a.name, e.cwd
""")


def used(tx: Tx, team_id: TeamId | None) -> list[tuple[Any, ...]]:
    """folder, the project's folder, agent, its name, team, its name, the session that it has open in that team."""
    return tx.rows(_USED, team_id=team_id)


_LAST_IN = EFFECTS.select("""
    WHERE kind = 'launch' AND (cwd = :path OR substr(cwd, 1, length(:path) + 1) = :path || '/') ORDER BY n DESC LIMIT 1
""")


def last_in(tx: Tx, path: str) -> RuntimeEffect | None:
    """The last launch whose process worked in that folder, or below it."""
    return EFFECTS.one(tx, _LAST_IN, path=path)


_PREPARED = EFFECTS.select("INDEXED BY effects_archives WHERE kind = 'archive' AND state = 'prepared' ORDER BY n")


def prepared(tx: Tx) -> list[RuntimeEffect]:
    """The worktrees that somebody asked to take away, and nobody has yet."""
    return EFFECTS.readable(tx, _PREPARED)


_BEING_ARCHIVED = EFFECTS.select("""
    WHERE kind = 'archive' AND state <> 'settled'
      AND session_id IN (SELECT id FROM sessions WHERE agent_member_id = :agent_id) ORDER BY n
""")


def being_archived(tx: Tx, agent_id: AgentMemberId) -> list[RuntimeEffect]:
    """What takes a worktree of this member away."""
    return EFFECTS.many(tx, _BEING_ARCHIVED, agent_id=agent_id)


_OF = sql("""
    SELECT j.root, s.agent_member_id FROM effects e JOIN sessions s ON s.id = e.session_id
    JOIN team_runs u ON u.id = e.team_run_id JOIN teams t ON t.id = u.team_id JOIN projects j ON j.id = t.project_id
    WHERE e.id = :effect_id
""")


def of(tx: Tx, effect_id: EffectId) -> tuple[str, str]:
    """The project's folder and the agent whose worktree it is."""
    found = tx.row(_OF, effect_id=effect_id)
    assert found is not None, "foreign keys hold them"
    return str(found[0]), str(found[1])
