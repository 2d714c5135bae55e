"""Projects: rows and records."""

from __future__ import annotations

from client.protocol.project import Project
from store.keeper import Keeper, Page, page
from store.sql import sql
from store.tx import Tx

PROJECTS = Keeper("project", "projects", Project)

_BY_ROOT = PROJECTS.select("WHERE root = :root")


def by_root(tx: Tx, root: str) -> Project | None:
    return PROJECTS.one(tx, _BY_ROOT, root=root)


_PAGE = sql(f"SELECT n, {PROJECTS.columns} FROM projects WHERE n > :after ORDER BY n LIMIT :limit")  # noqa: S608


def list_page(tx: Tx, *, after: int, limit: int) -> Page[Project]:
    return page(tx, PROJECTS, lambda a, m: tx.rows(_PAGE, after=a, limit=m), after, limit)
