"""Effects: rows and records."""

from __future__ import annotations

from typing import Any

from client.protocol.effect import EffectState, RuntimeEffect
from client.protocol.ids import SessionId, TeamRunId
from store.keeper import Keeper, Page, page
from store.sql import sql
from store.tx import Tx

EFFECTS = Keeper("effect", "effects", RuntimeEffect)

_PAGE = sql(f"""
    SELECT n, {EFFECTS.columns} FROM effects
    WHERE n > :after AND team_run_id = :run_id AND (:state IS NULL OR state = :state) ORDER BY n LIMIT :limit
""")  # noqa: S608


def list_page(tx: Tx, run_id: TeamRunId, *, state: EffectState | None, after: int, limit: int) -> Page[RuntimeEffect]:
    def load(a: int, m: int) -> list[tuple[Any, ...]]:
        return tx.rows(_PAGE, after=a, limit=m, run_id=run_id, state=state)

    return page(tx, EFFECTS, load, after, limit)


_UNSETTLED = EFFECTS.select("WHERE session_id = :session_id AND state <> 'settled' ORDER BY n")


def unsettled(tx: Tx, session_id: SessionId) -> list[RuntimeEffect]:
    """What was begun for this session and not settled."""
    return EFFECTS.many(tx, _UNSETTLED, session_id=session_id)


_LAUNCH = EFFECTS.select("WHERE session_id = :session_id AND kind = 'launch' ORDER BY n DESC LIMIT 1")


def launch_of(tx: Tx, session_id: SessionId) -> RuntimeEffect | None:
    """The last launch of this session."""
    return EFFECTS.one(tx, _LAUNCH, session_id=session_id)


_CYCLE = EFFECTS.select("""
    WHERE session_id = :session_id AND kind = 'deliver' AND certainty = 'applied' AND ending IS NULL
    ORDER BY n DESC LIMIT 1
""")


def cycle_of(tx: Tx, session_id: SessionId) -> RuntimeEffect | None:
    """The delivery whose cycle has not ended."""
    return EFFECTS.one(tx, _CYCLE, session_id=session_id)


_LAST = sql("SELECT coalesce(max(n), 0) FROM effects WHERE session_id = :session_id AND kind = 'deliver'")


def last_delivery(tx: Tx, session_id: SessionId) -> int:
    """The number of the last delivery to this session; 0 where there was none. A later one has a larger number."""
    return int(tx.value(_LAST, session_id=session_id))


_CONTROLS = EFFECTS.select("""
    WHERE team_run_id = :run_id AND state = 'prepared' AND kind NOT IN ('launch', 'archive') ORDER BY n
""")


def controls(tx: Tx, run_id: TeamRunId) -> list[RuntimeEffect]:
    """What the supervisor of a run was asked to do and has not settled."""
    return EFFECTS.many(tx, _CONTROLS, run_id=run_id)
