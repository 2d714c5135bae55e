"""Sessions as peers: which planes they hold, and the capability that is derived for each from the node's secret."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable, Mapping

from client.protocol.ids import SessionId
from client.protocol.membership import MembershipRole
from client.protocol.operation import Plane
from client.protocol.refusals import Code, Refusal
from client.protocol.session import AgentSession
from daemon.operations.quarantine import unreadable
from daemon.peer import Peer
from providers.process import boot_id
from store import session as sessions
from store.database import Store
from store.membership import MEMBERSHIPS
from store.session import SESSIONS
from store.team_run import MEMBER_RUNS
from store.tx import Tx, Unreadable

_PLANES = {
    MembershipRole.HOST: Plane.HOST,
    MembershipRole.MEMBER: Plane.MEMBER,
    MembershipRole.OBSERVER: Plane.OBSERVER,
}


def tokens(secret: str) -> Callable[[AgentSession], str]:
    """The capability of a session: derived again it is the same, and no table holds it."""

    def token(session: AgentSession) -> str:
        bound = (session.id, session.run_gen, session.session_gen, session.daemon_gen, session.sup_gen)
        return hmac.new(secret.encode(), repr(bound).encode(), hashlib.sha256).hexdigest()

    return token


def proven(store: Store) -> Mapping[tuple[int, int], SessionId]:
    """Sessions whose process was proven in this boot, by pid and start ticks."""
    return store.look(lambda tx: sessions.proven(tx, boot_id()))


def of_process(store: Store, session_id: SessionId) -> Peer | Refusal:
    """A session, found by its process, as a peer. Where it cannot be read its processes are nobody."""

    def find(tx: Tx) -> Peer:
        return _peer(tx, SESSIONS.held(tx, session_id), by_capability=False)

    try:
        return store.look(find)
    except Unreadable as error:
        return _cannot_be_read(error)


def by_token(store: Store, token: str) -> Peer | Refusal | None:
    """The session that this capability was issued to. Whether it still counts is asked at every request."""

    def find(tx: Tx) -> Peer | None:
        capability = sessions.by_token(tx, hashlib.sha256(token.encode()).hexdigest())
        session = SESSIONS.load(tx, capability.session_id) if capability else None
        return _peer(tx, session, by_capability=True) if session else None

    try:
        return store.look(find)
    except Unreadable as error:
        return _cannot_be_read(error)


def _cannot_be_read(error: Unreadable) -> Refusal:
    lifted_by = f"this is of a session that cannot be read; from another shell: {unreadable(error).lifted_by}"
    return Refusal(code=Code.NOT_AUTHORIZED, about=error.record, lifted_by=lifted_by)


def _peer(tx: Tx, session: AgentSession, *, by_capability: bool) -> Peer:
    membership = MEMBERSHIPS.held(tx, MEMBER_RUNS.held(tx, session.member_run_id).membership_id)
    return Peer(
        plane=_PLANES[membership.role],
        actor=f"agent/{session.agent_member_id}",
        pid=0,
        agent_member_id=session.agent_member_id,
        session_id=session.id,
        session_gen=session.session_gen,
        by_capability=by_capability,
    )
