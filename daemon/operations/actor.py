"""Who the caller is in a team and a run, from its session; which run or Work it means; and what it may do there.

The operator decides as a Host only by being one: a Host whose agent has the profile ``me`` is the person at this
machine, in any shell of theirs.
"""

from __future__ import annotations

from typing import Protocol

import attrs

from client.protocol.ids import DELIVERED_WORK, TeamId, TeamRunId, WorkId
from client.protocol.membership import MembershipState, TeamMembership
from client.protocol.operation import Plane
from client.protocol.refusals import Code, Refusal
from client.protocol.session import AgentSession, CapabilityState
from client.protocol.team_run import MemberRun, TeamRun
from client.protocol.work import Work
from daemon.call import Call
from daemon.kernel.session import current, over
from daemon.kernel.version import moved
from daemon.operations import find
from store import attempt as attempts
from store import membership as memberships
from store import session as sessions
from store import team_run as runs
from store.membership import MEMBERSHIPS
from store.session import SESSIONS
from store.team import TEAMS
from store.team_run import MEMBER_RUNS, TEAM_RUNS
from store.tx import Tx
from store.work import WORKS

#: The profile of an agent member that is the person at this machine.
ME = "me"


@attrs.frozen
class Actor:
    """A caller that is a member: its session, its place in the run, its membership."""

    session: AgentSession
    place: MemberRun
    membership: TeamMembership


def standing(tx: Tx, call: Call) -> Refusal | None:
    """Why what this connection proved when it began no longer holds, or None. Asked in every unit and read."""
    if call.session_id is None or call.session_gen is None:
        return None
    session = SESSIONS.held(tx, call.session_id)
    if refusal := current(session, call.session_gen) or over(session) or _has_left(tx, session):
        return refusal
    return _by_capability(tx, call, session) if call.by_capability else None


def _has_left(tx: Tx, session: AgentSession) -> Refusal | None:
    """A member that left its team is a stranger there; one that is leaving still ends what it holds."""
    place = MEMBER_RUNS.held(tx, session.member_run_id)
    membership = MEMBERSHIPS.held(tx, place.membership_id)
    if membership.state is not MembershipState.INACTIVE:
        return None
    lifted_by = "its member left the team; it is invited again, joins, and gets another place and session"
    return Refusal(code=Code.NOT_AUTHORIZED, about=f"membership/{membership.id}", lifted_by=lifted_by)


def _by_capability(tx: Tx, call: Call, session: AgentSession) -> Refusal | None:
    capability = sessions.capability_of(tx, session.id)
    if capability is None or capability.state is not CapabilityState.ACTIVE:
        lifted_by = "a capability that was replaced or revoked stays so; the session's supervisor issues the next"
        return Refusal(code=Code.CAPABILITY_DENIED, about=f"session/{session.id}", lifted_by=lifted_by)
    if capability.expires_at is not None and capability.expires_at <= call.now:
        lifted_by = "a capability that has expired stays so; the session's supervisor issues the next"
        return Refusal(code=Code.CAPABILITY_DENIED, about=f"session/{session.id}", lifted_by=lifted_by)
    run = TEAM_RUNS.held(tx, session.team_run_id)
    if capability.daemon_gen != call.daemon_gen or capability.sup_gen != run.sup_gen:
        lifted_by = "ask again: the daemon or the run's supervisor is another, which proves the session's process again"
        return Refusal(code=Code.ADOPTION_PENDING, about=f"session/{session.id}", lifted_by=lifted_by)
    return None


def actor(tx: Tx, call: Call) -> Actor | None:
    """The member that calls; None on the planes of the operator and the supervisor."""
    if call.session_id is None:
        return None
    session = SESSIONS.held(tx, call.session_id)
    place = MEMBER_RUNS.held(tx, session.member_run_id)
    return Actor(session, place, MEMBERSHIPS.held(tx, place.membership_id))


def may_host(tx: Tx, call: Call, team_id: TeamId) -> Refusal | None:
    """Why the caller does not decide as the Host of this team, or None."""
    host, profile = memberships.host_agent(tx, team_id)
    if host and (profile == ME if call.plane is Plane.OPERATOR else host == call.agent_member_id):
        return None
    return Refusal(
        code=Code.NOT_AUTHORIZED,
        about=f"team/{team_id}",
        lifted_by="the Host of this team decides it; a person decides by being the Host, with the profile 'me'",
    )


def may_host_or_operate(tx: Tx, call: Call, team_id: TeamId) -> Refusal | None:
    """The Host, or the operator for what keeps a run going."""
    return None if call.plane is Plane.OPERATOR else may_host(tx, call, team_id)


def sees_team(tx: Tx, call: Call, team_id: TeamId) -> bool:
    """The operator sees all teams, everybody else one."""
    return call.plane is Plane.OPERATOR or own_team(tx, call) == team_id


def own_team(tx: Tx, call: Call) -> TeamId:
    """The team of a member, or of the run that a supervisor holds; no team's id where there is none."""
    if call.plane is Plane.SUPERVISOR:
        run = TEAM_RUNS.load(tx, call.team_run_id or "")
        return run.team_id if run is not None else TeamId("")
    caller = actor(tx, call)
    return caller.membership.team_id if caller is not None else TeamId("")


def run(tx: Tx, call: Call, run_id: TeamRunId) -> TeamRun | Refusal:
    """The run that is named, or the caller's own where none is; never one the caller may not see.

    The operator's own is the one run that goes on, while it is the only one.
    """
    caller = actor(tx, call)
    wanted = run_id or (caller.place.team_run_id if caller else "")
    if not wanted and call.plane is Plane.OPERATOR:
        going_on = runs.going_on(tx)
        if len(going_on) != 1:
            return _no_only_run(tx, going_on)
        wanted = going_on[0]
    found = TEAM_RUNS.load(tx, wanted) if wanted else None
    if found is None or not sees_team(tx, call, found.team_id):
        return find.not_found("team-run", wanted)
    if call.plane is Plane.SUPERVISOR and found.id != call.team_run_id:
        return find.not_found("team-run", wanted)
    return found


#: Runs that are named to whom has to say which.
_NAMED = 5


def _no_only_run(tx: Tx, going_on: list[TeamRunId]) -> Refusal:
    """Why no run is the operator's own: there is none, or there are several."""
    named: list[str] = []
    for run_id in going_on[:_NAMED]:
        found = TEAM_RUNS.load(tx, run_id)
        team = TEAMS.load(tx, found.team_id) if found is not None else None
        named.append(f"{run_id} of {team.name}" if team is not None else run_id)
    more = f" and {len(going_on) - _NAMED} more: firm team-run list" if going_on[_NAMED:] else ""
    lifted_by = (
        f"several runs go on; say which with --team-run-id: {', '.join(named)}{more}"
        if going_on
        else "no run goes on; begin one: firm up FILE, or name one that ended: firm team-run list"
    )
    return Refusal(code=Code.NOT_FOUND, about="team_run_id", lifted_by=lifted_by)


def work(tx: Tx, call: Call, work_id: WorkId) -> Work | Refusal:
    """The Work that is named, or the one delivered to the caller; never one the caller may not see."""
    if work_id == DELIVERED_WORK:
        return _delivered(tx, call)
    found = WORKS.load(tx, work_id)
    if found is None or not sees_team(tx, call, found.team_id):
        return find.not_found("work", work_id)
    return found


class OfWork(Protocol):
    """A request that changes a Work."""

    @property
    def work_id(self) -> WorkId: ...

    @property
    def expected_version(self) -> int: ...


def seen(tx: Tx, call: Call, ask: OfWork) -> Work | Refusal:
    """The Work that is meant, at the version that the caller saw."""
    found = work(tx, call, ask.work_id)
    if isinstance(found, Refusal):
        return found
    return moved(f"work/{found.id}", current=found.version, expected=ask.expected_version) or found


def _delivered(tx: Tx, call: Call) -> Work | Refusal:
    live = attempts.live_of_session(tx, call.session_id) if call.session_id else []
    if len(live) == 1:
        return WORKS.held(tx, live[0].work_id)
    which = ", ".join(binding.work_id for binding in live) or "none is delivered to this session; see firm work list"
    return Refusal(code=Code.WORK_UNCLEAR, about="work_id", lifted_by=f"say which one with --work-id: {which}")
