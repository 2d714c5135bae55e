"""Sessions and capabilities: rows and records."""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any

from client.protocol.ids import AgentMemberId, MemberRunId, SessionId, TeamRunId
from client.protocol.session import AgentSession, Capability, SessionState
from store.keeper import Keeper, Page, page
from store.sql import sql
from store.tx import Tx

SESSIONS = Keeper("session", "sessions", AgentSession)
CAPABILITIES = Keeper("capability", "capabilities", Capability)

_PAGE = sql(f"""
    SELECT n, {SESSIONS.columns} FROM sessions
    WHERE n > :after AND (:run_id IS NULL OR team_run_id = :run_id) AND (:state IS NULL OR state = :state)
    ORDER BY n LIMIT :limit
""")  # noqa: S608


def list_page(
    tx: Tx, *, run_id: TeamRunId | None, state: SessionState | None, after: int, limit: int
) -> Page[AgentSession]:
    def load(a: int, m: int) -> list[tuple[Any, ...]]:
        return tx.rows(_PAGE, after=a, limit=m, run_id=run_id, state=state)

    return page(tx, SESSIONS, load, after, limit)


_OPEN = SESSIONS.select("WHERE agent_member_id = :agent_id AND state <> 'closed'")


def open_of(tx: Tx, agent_id: AgentMemberId) -> AgentSession | None:
    """The one session of this member that is not closed."""
    return SESSIONS.one(tx, _OPEN, agent_id=agent_id)


_OPEN_OF_PLACE = SESSIONS.select("WHERE member_run_id = :place_id AND state <> 'closed'")


def open_of_place(tx: Tx, place_id: MemberRunId) -> AgentSession | None:
    return SESSIONS.one(tx, _OPEN_OF_PLACE, place_id=place_id)


_OPEN_OF_RUN = SESSIONS.select("WHERE team_run_id = :run_id AND state <> 'closed' ORDER BY n")


def open_of_run(tx: Tx, run_id: TeamRunId) -> list[AgentSession]:
    return SESSIONS.many(tx, _OPEN_OF_RUN, run_id=run_id)


_DRIVEN = SESSIONS.select("WHERE state <> 'closed' AND driver = 'host_driven' ORDER BY n LIMIT 1")


def driven(tx: Tx) -> AgentSession | None:
    """A session of a supervisor that is not closed, in any run."""
    return SESSIONS.one(tx, _DRIVEN)


_PROVEN = sql("""
    SELECT pid, start_ticks, id FROM sessions WHERE pid > 0 AND state <> 'closed' AND boot_id = :boot_id
""")


def proven(tx: Tx, boot_id: str) -> dict[tuple[int, int], SessionId]:
    """Sessions with a proven process of this boot, by pid and start ticks; also those that do not decode."""
    return {(row[0], row[1]): SessionId(row[2]) for row in tx.rows(_PROVEN, boot_id=boot_id)}


_OF_PROCESS = SESSIONS.select("""
    WHERE pid = :pid AND start_ticks = :start_ticks AND boot_id = :boot_id AND pid > 0 AND state <> 'closed'
""")


def of_process(tx: Tx, pid: int, start_ticks: int, boot_id: str) -> AgentSession | None:
    """The session that this very process proves."""
    return SESSIONS.one(tx, _OF_PROCESS, pid=pid, start_ticks=start_ticks, boot_id=boot_id)


_LAST_GEN = sql("""
    SELECT max(coalesce((SELECT max(session_gen) FROM sessions WHERE agent_member_id = :agent_id), 0),
               (SELECT generation_floor FROM node))
""")


def last_gen(tx: Tx, agent_id: AgentMemberId) -> int:
    """No session generation of this member was ever issued above this."""
    return int(tx.value(_LAST_GEN, agent_id=agent_id))


_OF_SESSION = CAPABILITIES.select("WHERE session_id = :session_id")


def capability_of(tx: Tx, session_id: SessionId) -> Capability | None:
    return CAPABILITIES.one(tx, _OF_SESSION, session_id=session_id)


_BY_TOKEN = CAPABILITIES.select("WHERE token_sha256 = :digest")


def by_token(tx: Tx, digest: str) -> Capability | None:
    return CAPABILITIES.one(tx, _BY_TOKEN, digest=digest)


_WITH_PROCESS = SESSIONS.select("WHERE pid > 0 AND state <> 'closed' AND driver = 'user_driven' ORDER BY n")


def with_process(tx: Tx) -> list[AgentSession]:
    """Sessions that a person's process proves, of this boot or an earlier one; a supervisor follows its own. One that
    does not decode is left out.
    """
    return SESSIONS.readable(tx, _WITH_PROCESS)


_BELOW_FLOOR = SESSIONS.select("""
    WHERE state <> 'closed' AND session_gen <= (SELECT generation_floor FROM node) AND (state <> 'recovery_required'
        OR EXISTS (SELECT 1 FROM capabilities c WHERE c.session_id = sessions.id AND c.state = 'active')) ORDER BY n
""")


def below_floor(tx: Tx) -> list[AgentSession]:
    """Sessions of before the last restore that nobody has looked at since."""
    return SESSIONS.readable(tx, _BELOW_FLOOR)


_LAST_NATIVE = SESSIONS.select("""
    WHERE member_run_id = :place_id AND native_session <> '' ORDER BY session_gen DESC LIMIT 1
""")


def last_native(tx: Tx, place_id: MemberRunId) -> AgentSession | None:
    """The last session of this place that had a conversation."""
    return SESSIONS.one(tx, _LAST_NATIVE, place_id=place_id)


_OTHER_NATIVE = SESSIONS.select("WHERE native_session = :native_id AND member_run_id <> :place_id LIMIT 1")


def elsewhere(tx: Tx, native_id: str, place_id: MemberRunId) -> AgentSession | None:
    """A session of another place that has, or had, this conversation."""
    return SESSIONS.one(tx, _OTHER_NATIVE, native_id=native_id, place_id=place_id)


_HELD_IN = sql("""
    SELECT e.cwd FROM sessions s INDEXED BY sessions_by_native JOIN effects e ON e.session_id = s.id
    WHERE s.native_session = :native_id AND s.native_session <> '' AND e.kind = 'launch' AND e.certainty = 'applied'
    ORDER BY e.n DESC LIMIT 1
""")


def held_in(tx: Tx, native_id: str) -> str:
    """The folder in which a program had this conversation the last time; empty where none ever had."""
    found = tx.row(_HELD_IN, native_id=native_id)
    return str(found[0]) if found else ""


_SAID = sql("""
    SELECT EXISTS (
        SELECT 1 FROM sessions s INDEXED BY sessions_by_native
        WHERE s.native_session = :native_id AND s.native_session <> '' AND (
            EXISTS (SELECT 1 FROM effects e WHERE e.session_id = s.id AND e.kind IN ('deliver', 'steer')
                    AND e.certainty <> 'not_applied')
            OR EXISTS (SELECT 1 FROM bindings b WHERE b.session_id = s.id)
            OR EXISTS (SELECT 1 FROM events v WHERE v.stream = 'session/' || s.id AND v.kind = 'stepped in')))
""")


def anything_said(tx: Tx, native_id: str) -> bool:
    """Whether its program may have been told anything in this conversation: a text, a Work, by a person."""
    return bool(tx.value(_SAID, native_id=native_id))


_UNPURGED = sql("""
    SELECT s.id FROM sessions s JOIN team_runs r ON r.id = s.team_run_id
    WHERE r.purged_at IS NULL AND s.id IN (SELECT value FROM json_each(:ids))
""")


def unpurged(tx: Tx, ids: Collection[SessionId]) -> set[SessionId]:
    """Those of them that there are, in runs that were not purged."""
    return {SessionId(row[0]) for row in tx.rows(_UNPURGED, ids=json.dumps(sorted(ids)))}
