"""Teams: rows and records."""

from __future__ import annotations

from client.protocol.ids import AgentMemberId
from client.protocol.team import Team, TeamState
from store.keeper import Keeper, Page, page
from store.sql import sql
from store.tx import Tx

TEAMS = Keeper("team", "teams", Team)

_NAMED = TEAMS.select("WHERE name = :name AND state <> 'trashed' ORDER BY n LIMIT 10")


def named(tx: Tx, name: str) -> list[Team]:
    """Teams of that name outside the trash; more than one makes the name useless as a reference."""
    return TEAMS.many(tx, _NAMED, name=name)


_PAGE = sql(f"""
    SELECT n, {TEAMS.columns} FROM teams
    WHERE n > :after AND (:state IS NULL OR state = :state) ORDER BY n LIMIT :limit
""")  # noqa: S608


def list_page(tx: Tx, *, state: TeamState | None, after: int, limit: int) -> Page[Team]:
    return page(tx, TEAMS, lambda a, m: tx.rows(_PAGE, after=a, limit=m, state=state), after, limit)


_HOSTED = TEAMS.select("""
    WHERE state = 'active' AND id IN (SELECT team_id FROM memberships
                                      WHERE agent_member_id = :agent_id AND role = 'host' AND state = 'active')
    ORDER BY n
""")


def active_hosted_by(tx: Tx, agent_id: AgentMemberId) -> list[Team]:
    return TEAMS.many(tx, _HOSTED, agent_id=agent_id)


_COUNT = sql("SELECT count(*) FROM teams WHERE state <> 'trashed'")


def count(tx: Tx) -> int:
    return int(tx.value(_COUNT))
