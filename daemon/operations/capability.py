"""Handlers for what a session's capability lets it do: whether it takes new claims, and its token."""

from __future__ import annotations

from client.protocol.operation import Plane
from client.protocol.refusals import Refusal
from client.protocol.session import AgentSession, Capability, DeriveToken, SessionToken, SetClaims
from daemon.call import Call
from daemon.kernel.team_run import fenced
from daemon.operations import find
from store import session as sessions
from store.session import CAPABILITIES, SESSIONS
from store.team_run import TEAM_RUNS
from store.tx import Tx


def claims(tx: Tx, call: Call, ask: SetClaims) -> Capability | Refusal:
    session = SESSIONS.load(tx, ask.session_id)
    shown = sessions.capability_of(tx, ask.session_id)
    if session is None or shown is None or not _sees(call, session):
        return find.not_found("session", ask.session_id)
    run = TEAM_RUNS.held(tx, session.team_run_id)
    if call.plane is Plane.SUPERVISOR and (refusal := fenced(run, ask.sup_gen or 0)):
        return refusal
    return CAPABILITIES.change(
        tx,
        shown,
        kind="takes claims" if ask.accepts_new_claims else "takes no claims",
        actor=call.actor,
        at=call.now,
        accepts_new_claims=ask.accepts_new_claims,
    )


def token(tx: Tx, call: Call, ask: DeriveToken) -> SessionToken | Refusal:
    session = SESSIONS.load(tx, ask.session_id)
    if session is None or session.team_run_id != call.team_run_id:
        return find.not_found("session", ask.session_id)
    run = TEAM_RUNS.held(tx, session.team_run_id)
    return fenced(run, ask.sup_gen) or SessionToken(session_id=session.id, token=call.token(session))


def _sees(call: Call, session: AgentSession) -> bool:
    """A supervisor touches sessions of its own run only."""
    return call.team_run_id is None or session.team_run_id == call.team_run_id
