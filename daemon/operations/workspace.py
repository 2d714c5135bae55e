"""Handlers for ``workspace.*``, and what came of an archive."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from client.protocol.effect import Certainty, EffectKind, RuntimeEffect
from client.protocol.ids import EffectId
from client.protocol.refusals import Refusal
from client.protocol.session import AgentSession
from client.protocol.workspace import ArchiveWorkspace, ListWorkspaces
from daemon.call import Call
from daemon.kernel.effect import admits
from daemon.kernel.session import session_live
from daemon.operations import effect, find
from store import session as sessions
from store import workspace as workspaces
from store.effect import EFFECTS
from store.session import SESSIONS
from store.team_run import TEAM_RUNS
from store.tx import Tx


def archive(tx: Tx, call: Call, ask: ArchiveWorkspace) -> RuntimeEffect | Refusal:
    """Recorded first; the daemon does it, and settles it. While it is under way its member gets no session."""
    launch = workspaces.last_in(tx, ask.path)
    if launch is None:
        return find.not_found("workspace", ask.path)
    of = SESSIONS.held(tx, launch.session_id)
    if refusal := admits(workspaces.being_archived(tx, of.agent_member_id), EffectKind.ARCHIVE):
        return refusal
    live = sessions.open_of(tx, of.agent_member_id)
    if live is not None and _team(tx, live) == _team(tx, of):
        return session_live(live)
    return effect.new(tx, call, of, EffectKind.ARCHIVE, cwd=ask.path, reason=ask.reason)


def _team(tx: Tx, of: AgentSession) -> str:
    return TEAM_RUNS.held(tx, of.team_run_id).team_id


def used(tx: Tx, ask: ListWorkspaces) -> list[tuple[Any, ...]] | Refusal:
    """Where members worked."""
    if ask.team_id is None:
        return workspaces.used(tx, None)
    team = find.team(tx, ask.team_id)
    return team if isinstance(team, Refusal) else workspaces.used(tx, team.id)


def archived(
    call: Callable[[], Call], effect_id: EffectId, outcome: Certainty, readback: str, tx: Tx
) -> RuntimeEffect | Refusal:
    """Settle what was read back."""
    return effect.settled(tx, call(), EFFECTS.held(tx, effect_id), outcome, readback)
