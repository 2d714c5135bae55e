"""Works: rows and records."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from client.protocol.ids import MemberRunId, MembershipId, TeamId, TeamRunId, WorkId
from client.protocol.team_run import MemberRun
from client.protocol.work import Condition, Phase, Work
from store.keeper import Keeper, Page, page
from store.sql import sql
from store.tx import Tx

WORKS = Keeper("work", "works", Work)


def needs_met(of: str) -> str:
    """The condition, as SQL, that everything which the Work ``of`` needs was accepted."""
    return f"""NOT EXISTS (SELECT 1 FROM work_needs e JOIN works n ON n.id = e.needs_id
        WHERE e.work_id = {of}.id AND n.resolution IS NOT 'accepted')"""  # noqa: S608


_PAGE = sql(f"""
    SELECT place, {WORKS.columns} FROM works
    WHERE team_run_id = :run_id AND place > :after AND (:phase IS NULL OR phase = :phase)
      AND (:condition IS NULL OR condition = :condition)
    ORDER BY place LIMIT :limit
""")  # noqa: S608

_OF_OWNER = sql(f"""
    SELECT place, {WORKS.columns} FROM works INDEXED BY works_by_owner
    WHERE owner_id = :owner_id AND team_run_id = :run_id AND place > :after
      AND (:condition IS NULL OR condition = :condition)
    ORDER BY place LIMIT :limit
""")  # noqa: S608

_OF_OWNER_IN_PHASE = sql(f"""
    SELECT place, {WORKS.columns} FROM works INDEXED BY works_by_owner
    WHERE owner_id = :owner_id AND phase = :phase AND team_run_id = :run_id AND place > :after
      AND (:condition IS NULL OR condition = :condition)
    ORDER BY place LIMIT :limit
""")  # noqa: S608


def list_page(  # noqa: PLR0913 — every filter of the list
    tx: Tx,
    run_id: TeamRunId,
    *,
    phase: Phase | None,
    condition: Condition | None,
    owner_id: MembershipId | None,
    after: int,
    limit: int,
) -> Page[Work]:
    def load(a: int, m: int) -> list[tuple[Any, ...]]:
        if owner_id is None:
            return tx.rows(_PAGE, run_id=run_id, after=a, limit=m, phase=phase, condition=condition)
        if phase is None:
            return tx.rows(_OF_OWNER, run_id=run_id, after=a, limit=m, condition=condition, owner_id=owner_id)
        return tx.rows(
            _OF_OWNER_IN_PHASE, run_id=run_id, after=a, limit=m, phase=phase, condition=condition, owner_id=owner_id
        )

    return page(tx, WORKS, load, after, limit)


def some(tx: Tx, ids: Iterable[str]) -> dict[str, Work]:
    """Those of ``ids`` that exist."""
    found = ((key, WORKS.load(tx, key)) for key in ids)
    return {key: work for key, work in found if work is not None}


_SUCCESSORS = sql("SELECT work_id FROM work_needs WHERE needs_id = :work_id ORDER BY work_id")


def successors(tx: Tx, work_id: WorkId) -> list[str]:
    return [row[0] for row in tx.rows(_SUCCESSORS, work_id=work_id)]


_DEPENDENT_RUNS = sql("""
    SELECT DISTINCT w.team_run_id FROM work_needs e JOIN works w ON w.id = e.work_id
    WHERE e.needs_id = :work_id AND w.team_run_id <> :run_id AND w.phase <> 'closed' ORDER BY 1
""")


def dependent_runs(tx: Tx, work: Work) -> list[TeamRunId]:
    """The other runs in which a Work that goes on needs this one."""
    return [TeamRunId(row[0]) for row in tx.rows(_DEPENDENT_RUNS, work_id=work.id, run_id=work.team_run_id)]


_UNLINK = sql("DELETE FROM work_needs WHERE work_id = :work_id")
_LINK = sql("INSERT INTO work_needs (work_id, needs_id) VALUES (:work_id, :needs_id)")
_TITLE = sql("""
    INSERT INTO work_titles (work_id, team_run_id, folded) VALUES (:work_id, :run_id, :folded)
    ON CONFLICT (work_id) DO UPDATE SET team_run_id = excluded.team_run_id, folded = excluded.folded
""")


def index(tx: Tx, work: Work) -> None:
    """Bring the indexes of prerequisites and of titles in line with the record."""
    tx.rows(_UNLINK, work_id=work.id)
    for key in work.needs:
        tx.rows(_LINK, work_id=work.id, needs_id=key)
    tx.rows(_TITLE, work_id=work.id, run_id=work.team_run_id, folded=work.title.casefold())


_NAMESAKE = sql("""
    SELECT w.id FROM work_titles t JOIN works w ON w.id = t.work_id
    WHERE t.team_run_id = :run_id AND t.folded = :folded AND w.phase <> 'closed' AND w.id <> :but LIMIT 1
""")


def namesake(tx: Tx, run_id: TeamRunId, title: str, *, but: str = "") -> WorkId | None:
    """Another Work of the run that is not closed and has this title, whatever the case of its letters."""
    found = tx.row(_NAMESAKE, run_id=run_id, folded=title.casefold(), but=but)
    return WorkId(found[0]) if found else None


_OPEN_OF_TEAM = sql("SELECT count(*) FROM works WHERE team_id = :team_id AND phase <> 'closed'")


def open_of_team(tx: Tx, team_id: TeamId) -> int:
    return int(tx.value(_OPEN_OF_TEAM, team_id=team_id))


_UNCLOSED = WORKS.select("WHERE team_run_id = :run_id AND phase <> 'closed' ORDER BY place LIMIT :limit")


def unclosed(tx: Tx, run_id: TeamRunId, limit: int = 10_001) -> list[Work]:
    return WORKS.many(tx, _UNCLOSED, run_id=run_id, limit=limit)


_ANY_UNCLOSED = sql("SELECT EXISTS (SELECT 1 FROM works WHERE team_run_id = :run_id AND phase <> 'closed')")


def any_unclosed(tx: Tx, run_id: TeamRunId) -> bool:
    """Also those that do not decode."""
    return bool(tx.value(_ANY_UNCLOSED, run_id=run_id))


_NOT_BEGUN = WORKS.select("""
    WHERE owner_id = :owner_id AND phase = 'open' AND NOT EXISTS
        (SELECT 1 FROM bindings b WHERE b.work_id = works.id AND b.custody IN ('claimed', 'orphaned_unverified'))
    ORDER BY place
""")


def not_begun(tx: Tx, owner_id: MembershipId) -> list[Work]:
    """Open Works that a member answers for and has no attempt at."""
    return WORKS.many(tx, _NOT_BEGUN, owner_id=owner_id)


_BUSY = sql("""
    SELECT id FROM works WHERE owner_id = :owner_id AND phase = 'active' AND condition = 'normal'
      AND team_run_id = :run_id AND id <> :but LIMIT 1
""")


def busy_with(tx: Tx, owner_id: MembershipId, run_id: TeamRunId, *, but: WorkId) -> WorkId | None:
    """Another Work that this member is doing right now in this run."""
    found = tx.row(_BUSY, owner_id=owner_id, run_id=run_id, but=but)
    return WorkId(found[0]) if found else None


_OF_RUN = WORKS.select("WHERE team_run_id = :run_id ORDER BY place")


def of_run(tx: Tx, run_id: TeamRunId) -> list[Work]:
    """All of them: for a graph, never for a page."""
    return WORKS.many(tx, _OF_RUN, run_id=run_id)


#: What ``works_claimable`` is an index of.
_FREE = "team_run_id = :run_id AND phase = 'open' AND condition = 'normal' AND owner_id IS NULL\
 AND claim_mode = 'team_claim'"

# From one list of eligible members to the next, and into those that name this one: what is for others is passed over.
_CLAIMABLE = sql(f"""
    SELECT place, {WORKS.columns} FROM works WHERE n IN (
        WITH RECURSIVE lists (names) AS (
            SELECT min(eligible) FROM works INDEXED BY works_claimable WHERE {_FREE}
            UNION ALL
            SELECT (SELECT min(eligible) FROM works INDEXED BY works_claimable WHERE {_FREE} AND eligible > names)
            FROM lists WHERE names IS NOT NULL
        ), roles (role) AS (SELECT '' UNION SELECT :role)
        SELECT c.n FROM lists CROSS JOIN roles CROSS JOIN works c ON c.n IN (
            SELECT w.n FROM works w INDEXED BY works_claimable
            WHERE {_FREE} AND w.eligible = lists.names AND w.required_role = roles.role AND w.place > :after
              AND w.verifier_id IS NOT :membership_id
              AND {needs_met("w")}
            ORDER BY w.place LIMIT :limit)
        WHERE lists.names = '[]' OR EXISTS (
            SELECT 1 FROM json_each(iif(json_valid(lists.names), lists.names, '[]')) WHERE value = :agent_id)
    ) ORDER BY place LIMIT :limit
""")  # noqa: S608


def claimable(tx: Tx, place: MemberRun, *, after: int = 0, limit: int = 5) -> Page[Work]:
    """The ready Works that nobody answers for and the member of that place may claim in its run."""

    def load(a: int, m: int) -> list[tuple[Any, ...]]:
        return tx.rows(
            _CLAIMABLE,
            run_id=place.team_run_id,
            role=place.role,
            agent_id=place.agent_member_id,
            membership_id=place.membership_id,
            after=a,
            limit=m,
        )

    return page(tx, WORKS, load, after, limit)


_UNBLOCKING = WORKS.select("""
    WHERE owner_id = :owner_id AND team_run_id = :run_id AND phase = 'active' AND condition = 'blocked'
      AND (SELECT max(a.seq) FROM works w JOIN events a ON a.stream = 'work/' || w.id AND a.version = w.version
           WHERE w.owner_id = :owner_id AND w.team_run_id = :run_id AND w.resolution = 'accepted')
        > max((SELECT max(b.seq) FROM events b WHERE b.stream = 'work/' || works.id AND b.kind = 'blocked'),
              coalesce((SELECT max(p.seq) FROM effects f JOIN events p ON p.stream = 'effect/' || f.id AND p.version = 1
                        WHERE f.session_id IN (SELECT s.id FROM sessions s WHERE s.member_run_id = :place_id)
                          AND f.kind = 'deliver' AND f.wake = 'accepted' AND f.certainty <> 'not_applied'), 0))
    ORDER BY place LIMIT 1
""")


def unblocking(tx: Tx, run_id: TeamRunId, owner_id: MembershipId, place_id: MemberRunId) -> Work | None:
    """A blocked Work of a member. Another of its Works was accepted since, and it was not told so."""
    return WORKS.one(tx, _UNBLOCKING, run_id=run_id, owner_id=owner_id, place_id=place_id)
