"""Which conversation of its program a session has: one of its own, or that of the former session of its place."""

from __future__ import annotations

import attrs

from client.protocol.agent import AgentMember
from client.protocol.ids import SessionId, new_native_id
from client.protocol.refusals import Code, Refusal
from client.protocol.session import AgentSession
from client.protocol.team_run import MemberRun
from daemon.kernel.session import misnamed, parts
from providers import profiles
from store import session as sessions
from store import team_run as runs
from store.tx import Tx


@attrs.frozen
class Conversation:
    """``how`` it came to be, for the record."""

    native_id: str = ""
    resumed_from: SessionId | None = None
    how: str = "opened"


def chosen(tx: Tx, place: MemberRun, agent: AgentMember, cwd: str) -> Conversation:
    """The conversation of the next session of a place, whose former one has ended."""
    if not profiles.keeps(agent.profile):
        return Conversation()
    former = sessions.last_native(tx, place.id)
    why = _anew(tx, place, agent, former, cwd) if former is not None else ""
    if former is not None and not why:
        how = f"opened: goes on with native session {former.native_session}"
        return Conversation(former.native_session, former.id, how)
    begun = new_native_id()
    apart = f", not {former.native_session}: {why}" if former is not None else ""
    return Conversation(begun, None, f"opened: native session {begun}{apart}")


def _anew(tx: Tx, place: MemberRun, agent: AgentMember, former: AgentSession, cwd: str) -> str:
    """Why a session does not go on with the conversation of the former one; empty: it does."""
    if place.fresh and former.run_gen < place.run_gen:
        return "a fresh one was asked for"
    if former.session_gen <= runs.floor(tx):
        return "the store was restored, and who went on with it since is not known"
    was_in = sessions.held_in(tx, former.native_session)
    if not was_in:
        return "it never began"
    # A program that is not typed to finds its Work by itself; nothing shows whether it did.
    if profiles.takes_text(agent.profile) and not sessions.anything_said(tx, former.native_session):
        return "nothing was said in it"
    return parts(former, agent, was_in=was_in, cwd=cwd)


def renamed(tx: Tx, session: AgentSession, native_id: str) -> Refusal | None:
    """Why this session does not have the conversation that was reported, or None."""
    if not native_id or native_id == session.native_session:
        return None
    other = sessions.elsewhere(tx, native_id, session.member_run_id)
    if other is None:
        return misnamed(native_id)
    lifted_by = f"it is that of session {other.id}; a program that goes on with it would read what another is told"
    return Refusal(code=Code.NATIVE_SESSION_TAKEN, about=f"session/{other.id}", lifted_by=lifted_by)
