"""A launch at the door: what its process is told to become, and what became of it. In units of the daemon's own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs

from client import paths
from client.protocol.agent import AgentMember
from client.protocol.effect import Certainty, EffectKind, EffectState, RuntimeEffect
from client.protocol.ids import EffectId, SessionId
from client.protocol.project import Project
from client.protocol.refusals import Code, Refusal
from client.protocol.session import AgentSession, Liveness
from daemon.call import Call
from daemon.kernel.session import current
from daemon.kernel.team_run import present
from daemon.operations import effect as operations
from daemon.operations import find
from providers import profiles
from store.agent import AGENTS
from store.effect import EFFECTS
from store.project import PROJECTS
from store.session import SESSIONS
from store.team import TEAMS
from store.team_run import MEMBER_RUNS, TEAM_RUNS
from store.tx import Tx


@attrs.frozen
class Told:
    """What a process that was proven is told to become."""

    effect: RuntimeEffect
    argv: list[str]
    env: dict[str, str]
    cwd: str
    nice: int


def admit(
    tx: Tx, call: Call, effect_id: EffectId, environment: dict[str, str], folder: Callable[[SessionId], Path]
) -> Told | Refusal:
    """The process of this launch connected and is the very one. From now on it is its session, in every lineage."""
    effect = EFFECTS.load(tx, effect_id)
    if effect is None or effect.kind is not EffectKind.LAUNCH or effect.state is not EffectState.PREPARED:
        return find.not_found("effect", effect_id)
    session, project = _of(tx, effect)
    seat = MEMBER_RUNS.held(tx, session.member_run_id)
    if refusal := current(session, effect.session_gen) or present(seat):
        return refusal
    agent = AGENTS.held(tx, session.agent_member_id)
    profile = profiles.PROFILES.get(session.profile)
    if profile is None:
        lifted_by = f"there is no profile {session.profile!r}: firm agent update {agent.id} --profile command"
        return Refusal(code=Code.LAUNCH_DENIED, about=f"agent/{agent.id}", lifted_by=lifted_by)
    process: dict[str, Any] = {"pid": effect.pid, "start_ticks": effect.start_ticks, "boot_id": effect.boot_id}
    process["process"] = Liveness.UNKNOWN  # it may say yet that the process of the launch before had ended
    session = SESSIONS.change(tx, session, kind="launching", actor=call.actor, at=call.now, **process)
    place = profiles.Place(effect.cwd, str(folder(session.id)))
    env = {**environment, **place.env(profile), **_envelope(call, session, agent, project, effect)}
    argv = place.words(profile)
    if profile.native is not None and session.native_session:
        argv += profile.native.words(session.native_session, resumes=effect.resumes)
    return Told(effect, argv, env, effect.cwd, profile.nice)


def _of(tx: Tx, effect: RuntimeEffect) -> tuple[AgentSession, Project]:
    session, run = SESSIONS.held(tx, effect.session_id), TEAM_RUNS.held(tx, effect.team_run_id)
    return session, PROJECTS.held(tx, TEAMS.held(tx, run.team_id).project_id)


def _envelope(
    call: Call, session: AgentSession, agent: AgentMember, project: Project, effect: RuntimeEffect
) -> dict[str, str]:
    """Names are hints; the capability and the process decide."""
    return {
        "FIRM_TEAM_RUN_ID": session.team_run_id,
        paths.MARK: session.member_run_id,
        "FIRM_MEMBER_NAME": agent.name,
        "FIRM_SPACE": call.store_id,
        "FIRM_PROJECT": project.root,
        "FIRM_PROJECT_ID": project.id,
        "FIRM_LAUNCH_ID": effect.id,
        "FIRM_CAPABILITY": call.token(session),
    }


def settle(tx: Tx, call: Call, effect_id: EffectId, certainty: Certainty, readback: str) -> RuntimeEffect | Refusal:
    """What became of the process, as it was read at the door."""
    effect = EFFECTS.load(tx, effect_id)
    if effect is None:
        return find.not_found("effect", effect_id)
    return operations.settled(tx, call, effect, certainty, readback)
