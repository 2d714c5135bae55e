"""Agent members: rows and records."""

from __future__ import annotations

from client.protocol.agent import AgentMember, AgentStatus
from store.keeper import Keeper, Page, page
from store.sql import sql
from store.tx import Tx

AGENTS = Keeper("agent", "agents", AgentMember)

_NAMED = AGENTS.select("WHERE name = :name AND status <> 'retired' ORDER BY n LIMIT 10")


def named(tx: Tx, name: str) -> list[AgentMember]:
    """Members of that name who are not retired; more than one makes the name useless as a reference."""
    return AGENTS.many(tx, _NAMED, name=name)


_PAGE = sql(f"""
    SELECT n, {AGENTS.columns} FROM agents
    WHERE n > :after AND (:status IS NULL OR status = :status) ORDER BY n LIMIT :limit
""")  # noqa: S608


def list_page(tx: Tx, *, status: AgentStatus | None, after: int, limit: int) -> Page[AgentMember]:
    return page(tx, AGENTS, lambda a, m: tx.rows(_PAGE, after=a, limit=m, status=status), after, limit)


_COUNT = sql("SELECT count(*) FROM agents WHERE status <> 'retired'")


def count(tx: Tx) -> int:
    return int(tx.value(_COUNT))
