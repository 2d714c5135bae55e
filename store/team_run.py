"""Runs and places in them: rows and records."""

from __future__ import annotations

from typing import Any

from client.protocol.ids import AgentMemberId, MembershipId, TeamId, TeamRunId
from client.protocol.team_run import MemberRun, TeamRun, TeamRunState
from store.keeper import Keeper, Page, page
from store.sql import sql
from store.tx import Tx

TEAM_RUNS = Keeper("team-run", "team_runs", TeamRun)
MEMBER_RUNS = Keeper("member-run", "member_runs", MemberRun)

_PAGE = sql(f"""
    SELECT n, {TEAM_RUNS.columns} FROM team_runs
    WHERE n > :after AND (:team_id IS NULL OR team_id = :team_id) AND (:state IS NULL OR state = :state)
    ORDER BY n LIMIT :limit
""")  # noqa: S608


def list_page(tx: Tx, *, team_id: TeamId | None, state: TeamRunState | None, after: int, limit: int) -> Page[TeamRun]:
    def load(a: int, m: int) -> list[tuple[Any, ...]]:
        return tx.rows(_PAGE, after=a, limit=m, team_id=team_id, state=state)

    return page(tx, TEAM_RUNS, load, after, limit)


_PLACES = MEMBER_RUNS.select("WHERE team_run_id = :run_id ORDER BY role, number")


def places(tx: Tx, run_id: TeamRunId) -> list[MemberRun]:
    return MEMBER_RUNS.many(tx, _PLACES, run_id=run_id)


_PLACE = MEMBER_RUNS.select(
    "WHERE team_run_id = :run_id AND membership_id = :membership_id AND coordination <> 'retired'"
)


def place(tx: Tx, run_id: TeamRunId, membership_id: MembershipId) -> MemberRun | None:
    """The place of that membership in that run which it has not left for good."""
    return MEMBER_RUNS.one(tx, _PLACE, run_id=run_id, membership_id=membership_id)


_NEXT_NUMBER = sql("""
    SELECT coalesce(max(number), 0) + 1 FROM member_runs WHERE team_run_id = :run_id AND role = :role
""")


def next_number(tx: Tx, run_id: TeamRunId, role: str) -> int:
    return int(tx.value(_NEXT_NUMBER, run_id=run_id, role=role))


_OPEN_PLACES = MEMBER_RUNS.select("""
    WHERE agent_member_id = :agent_id AND coordination = 'active'
      AND team_run_id IN (SELECT id FROM team_runs WHERE state IN ('planned', 'running', 'draining'))
      AND membership_id IN (SELECT id FROM memberships WHERE state = 'active') ORDER BY n
""")


def open_places(tx: Tx, agent_id: AgentMemberId) -> list[MemberRun]:
    """Where this member takes part now."""
    return MEMBER_RUNS.many(tx, _OPEN_PLACES, agent_id=agent_id)


_FLOOR = sql("SELECT generation_floor FROM node")


def floor(tx: Tx) -> int:
    """Every generation is issued above this."""
    return int(tx.value(_FLOOR))


_GOING_ON = sql("SELECT id FROM team_runs WHERE state IN ('running', 'draining') ORDER BY n")


def going_on(tx: Tx) -> list[TeamRunId]:
    """Every run that was started and has not ended."""
    return [TeamRunId(row[0]) for row in tx.rows(_GOING_ON)]
