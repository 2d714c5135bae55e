"""Handlers for ``team-run.*`` and ``member-run.*``."""

from __future__ import annotations

from typing import Any

from client.protocol.effect import EffectKind
from client.protocol.ids import MemberRunId, MembershipId, RunGen, SupGen, TeamRunId, new_id
from client.protocol.membership import MembershipState, TeamMembership
from client.protocol.operation import Plane
from client.protocol.refusals import Code, Refusal
from client.protocol.session import AgentSession, Driver
from client.protocol.team import TeamState
from client.protocol.team_run import (
    AddMemberRun,
    CancelTeamRun,
    CloseMemberRun,
    CompleteTeamRun,
    Coordination,
    CreateTeamRun,
    DrainTeamRun,
    FinishTeamRun,
    ListTeamRuns,
    MemberRun,
    Place,
    RenewTeamRun,
    ReopenMemberRun,
    ResumeTeamRun,
    RetireMemberRun,
    ShowTeamRun,
    StartTeamRun,
    TakeTeamRun,
    TeamRun,
    TeamRunPage,
    TeamRunShown,
    TeamRunState,
)
from client.protocol.work import Work
from daemon.call import Call
from daemon.kernel import cursor
from daemon.kernel.session import session_live
from daemon.kernel.team import kept
from daemon.kernel.team_run import MEMBER_RUN, TEAM_RUN, PlaceCause, RunCause, fenced, finishes, goes_on, leased, told
from daemon.kernel.version import moved
from daemon.kernel.work import WorkCause
from daemon.operations import actor, attempt, effect, find, mail
from daemon.operations.work import change
from store import attempt as attempts
from store import effect as effects
from store import membership as memberships
from store import message as messages
from store import session as sessions
from store import team_run as runs
from store import work as works
from store.agent import AGENTS
from store.membership import MEMBERSHIPS
from store.team_run import MEMBER_RUNS, TEAM_RUNS
from store.tx import Tx


def may_create(tx: Tx, call: Call, ask: CreateTeamRun) -> Refusal | None:
    team = find.team(tx, ask.team_id)
    return team if isinstance(team, Refusal) else actor.may_host_or_operate(tx, call, team.id)


def create(tx: Tx, call: Call, ask: CreateTeamRun) -> TeamRun | Refusal:
    team = find.team(tx, ask.team_id)
    if isinstance(team, Refusal):
        return team
    if refusal := kept(team):
        return refusal
    if team.state is not TeamState.ACTIVE:
        lifted_by = f"activate the team first: firm team activate {team.id} --expected-version {team.version}"
        return Refusal(code=Code.INVALID_STATE_TRANSITION, about=f"team/{team.id}", lifted_by=lifted_by)
    made = TeamRun(
        id=TeamRunId(new_id()),
        version=1,
        team_id=team.id,
        objective=ask.objective,
        state=TeamRunState.PLANNED,
        sup_gen=SupGen(runs.floor(tx)),
        created_by=call.actor,
        created_at=call.now,
        updated_at=call.now,
        ended_at=None,
        cycles=ask.cycles,
    )
    TEAM_RUNS.insert(tx, made, kind="created", actor=call.actor, at=call.now)
    for membership in memberships.active_of_team(tx, team.id):
        _place(tx, call, made, membership, "")
    return made


def _place(tx: Tx, call: Call, run: TeamRun, membership: TeamMembership, role: str) -> MemberRun:
    agent = AGENTS.held(tx, membership.agent_member_id)
    role = role or agent.role or membership.role.value
    made = MemberRun(
        id=MemberRunId(new_id()),
        version=1,
        team_run_id=run.id,
        membership_id=membership.id,
        agent_member_id=agent.id,
        role=role,
        number=runs.next_number(tx, run.id, role),
        coordination=Coordination.ACTIVE,
        run_gen=RunGen(runs.floor(tx) + 1),
        created_at=call.now,
        updated_at=call.now,
    )
    MEMBER_RUNS.insert(tx, made, kind="added", actor=call.actor, at=call.now)
    mail.arrived(tx, call, made)
    return made


def list_(tx: Tx, call: Call, ask: ListTeamRuns) -> TeamRunPage | Refusal:
    team_id = None if call.plane is Plane.OPERATOR else actor.own_team(tx, call)
    if ask.team_id is not None:
        team = find.team(tx, ask.team_id)
        if isinstance(team, Refusal):
            return team
        if not actor.sees_team(tx, call, team.id):
            return find.not_found("team", ask.team_id)
        team_id = team.id
    query = ("team-run.list", team_id, ask.state)
    after = cursor.read(ask.cursor, call.store_id, *query)
    if isinstance(after, Refusal):
        return after
    items, last = runs.list_page(tx, team_id=team_id, state=ask.state, after=after, limit=ask.limit)
    return TeamRunPage(items=items, next=cursor.write(last, call.store_id, *query) if last else None)


def show(tx: Tx, call: Call, ask: ShowTeamRun) -> TeamRunShown | Refusal:
    run = actor.run(tx, call, ask.team_run_id)
    if isinstance(run, Refusal):
        return run
    members: list[Place] = []
    for place in runs.places(tx, run.id):
        agent, membership = AGENTS.held(tx, place.agent_member_id), MEMBERSHIPS.held(tx, place.membership_id)
        members.append(Place(name=agent.name, membership_role=membership.role.value, member_run=place))
    return TeamRunShown(run=run, members=members)


Change = StartTeamRun | DrainTeamRun | ResumeTeamRun | CompleteTeamRun | CancelTeamRun


def may(tx: Tx, call: Call, ask: Change | AddMemberRun) -> Refusal | None:
    run = actor.run(tx, call, ask.team_run_id)
    return run if isinstance(run, Refusal) else actor.may_host_or_operate(tx, call, run.team_id)


def start(tx: Tx, call: Call, ask: StartTeamRun) -> TeamRun | Refusal:
    return _move(tx, call, ask, RunCause.START)


def drain(tx: Tx, call: Call, ask: DrainTeamRun) -> TeamRun | Refusal:
    return _move(tx, call, ask, RunCause.DRAIN)


def resume(tx: Tx, call: Call, ask: ResumeTeamRun) -> TeamRun | Refusal:
    return _move(tx, call, ask, RunCause.RESUME)


def complete(tx: Tx, call: Call, ask: CompleteTeamRun) -> TeamRun | Refusal:
    left = works.unclosed(tx, ask.team_run_id, 4)
    run = _movable(tx, call, ask, RunCause.COMPLETE)
    if isinstance(run, Refusal):
        return run
    if left:
        return _told(tx, call, run, run.state) if ask.when_closed else _not_closed(left)
    return _end(tx, call, run)


def finish(tx: Tx, call: Call, ask: FinishTeamRun) -> TeamRun | Refusal:
    left = works.unclosed(tx, ask.team_run_id, 4)
    run = actor.run(tx, call, ask.team_run_id)
    if isinstance(run, Refusal):
        return run
    if refusal := fenced(run, ask.sup_gen) or goes_on(run) or told(run):
        return refusal
    return _not_closed(left) if left else _end(tx, call, run)


def _end(tx: Tx, call: Call, run: TeamRun) -> TeamRun | Refusal:
    """At once where no session is driven. Else it drains, so that no Work slips in, and its sessions have to end."""
    driven = _driven(tx, run)
    if not driven:
        return _to(tx, call, run, RunCause.COMPLETE)
    for session in driven:
        asked = any(each.kind is EffectKind.STOP for each in effects.unsettled(tx, session.id))
        stopped = None if asked else effect.stop(tx, call, session, "the run completes")
        if isinstance(stopped, Refusal):
            return stopped
    return _told(tx, call, run, TeamRunState.DRAINING)


def _driven(tx: Tx, run: TeamRun) -> list[AgentSession]:
    return [each for each in sessions.open_of_run(tx, run.id) if each.driver is Driver.HOST_DRIVEN]


def _told(tx: Tx, call: Call, run: TeamRun, state: TeamRunState) -> TeamRun:
    if run.completing and run.state is state:
        return run
    kind = "completing" if state is TeamRunState.DRAINING else "to complete when every work is closed"
    return TEAM_RUNS.change(tx, run, kind=kind, actor=call.actor, at=call.now, state=state, completing=True)


def to_finish(tx: Tx, run: TeamRun) -> bool:
    """Whether its supervisor goes on with the end of a run now."""
    if not run.completing:
        return False
    places = [MEMBER_RUNS.load(tx, each.member_run_id) for each in _driven(tx, run)]
    return finishes(run, unclosed=works.any_unclosed(tx, run.id), driven=[place for place in places if place])


def _not_closed(left: list[Work]) -> Refusal:
    shown = ", ".join(f"{work.id} ({work.title}, {work.phase.value})" for work in left[:3])
    return Refusal(
        code=Code.WORK_NOT_CLOSED,
        about=f"work/{left[0].id}",
        lifted_by=f"accept, cancel or retarget {shown}{' and others' if len(left) > 3 else ''}",  # noqa: PLR2004
    )


def cancel(tx: Tx, call: Call, ask: CancelTeamRun) -> TeamRun | Refusal:
    after = _move(tx, call, ask, RunCause.CANCEL)
    if isinstance(after, Refusal):
        return after
    if open_sessions := sessions.open_of_run(tx, after.id):
        return session_live(open_sessions[0])
    for work in works.unclosed(tx, after.id):
        attempt.release(tx, call, work.id, ask.reason)
        closed = change(tx, call, work, WorkCause.CANCEL, reason=ask.reason)
        assert not isinstance(closed, Refusal), "whatever is not closed can be cancelled"
    return after


def _movable(tx: Tx, call: Call, ask: Change, cause: RunCause) -> TeamRun | Refusal:
    """The run, where this may happen to it."""
    run = actor.run(tx, call, ask.team_run_id)
    if isinstance(run, Refusal):
        return run
    about = f"team-run/{run.id}"
    if refusal := moved(about, current=run.version, expected=ask.expected_version):
        return refusal
    state = TEAM_RUN.after(run.state, cause, about)
    return state if isinstance(state, Refusal) else run


def _move(tx: Tx, call: Call, ask: Change, cause: RunCause) -> TeamRun | Refusal:
    run = _movable(tx, call, ask, cause)
    return run if isinstance(run, Refusal) else _to(tx, call, run, cause)


def _to(tx: Tx, call: Call, run: TeamRun, cause: RunCause) -> TeamRun | Refusal:
    state = TEAM_RUN.after(run.state, cause, f"team-run/{run.id}")
    if isinstance(state, Refusal):
        return state
    changes: dict[str, Any] = {"state": state}
    if cause in {RunCause.DRAIN, RunCause.RESUME}:  # whoever moves it says anew whether it shall complete
        changes["completing"] = False
    if state in TEAM_RUN.final:
        changes["ended_at"] = call.now
        mail.invalidate(tx, call, messages.unsettled_of_run(tx, run.id), f"the run was {state.value}")
    return TEAM_RUNS.change(tx, run, kind=cause.value, actor=call.actor, at=call.now, **changes)


def take(tx: Tx, call: Call, ask: TakeTeamRun) -> TeamRun | Refusal:
    run = actor.run(tx, call, ask.team_run_id)
    if isinstance(run, Refusal):
        return run
    if refusal := goes_on(run):
        return refusal
    if call.leases.held(run.id, run.sup_gen):
        return leased(run)
    sup_gen = SupGen(max(run.sup_gen, runs.floor(tx)) + 1)
    if ask.lease_ms:
        call.leases.renew(run.id, sup_gen, ask.lease_ms)
    return TEAM_RUNS.change(tx, run, kind="taken", actor=call.actor, at=call.now, sup_gen=sup_gen)


def renew(tx: Tx, call: Call, ask: RenewTeamRun) -> TeamRun | Refusal:
    """Changes no record, but for a lease that is given back: whoever waits for the run hears of that. Where a unit is
    run again its lease is the longer for it, never the shorter.
    """
    run = actor.run(tx, call, ask.team_run_id)
    if isinstance(run, Refusal):
        return run
    if refusal := fenced(run, ask.sup_gen) or goes_on(run):
        return refusal
    call.leases.renew(run.id, run.sup_gen, ask.lease_ms)
    return run if ask.lease_ms else TEAM_RUNS.change(tx, run, kind="let go", actor=call.actor, at=call.now)


def add_member(tx: Tx, call: Call, ask: AddMemberRun) -> MemberRun | Refusal:
    run = actor.run(tx, call, ask.team_run_id)
    membership = MEMBERSHIPS.load(tx, ask.membership_id)
    if isinstance(run, Refusal):
        return run
    if membership is None or membership.team_id != run.team_id:
        return find.not_found("membership", ask.membership_id)
    if refusal := goes_on(run):
        return refusal
    if membership.state is not MembershipState.ACTIVE:
        lifted_by = f"it is {membership.state.value}; only an active membership has a place in a run"
        return Refusal(code=Code.INVALID_STATE_TRANSITION, about=f"membership/{membership.id}", lifted_by=lifted_by)
    there = runs.place(tx, run.id, membership.id)
    if there is not None:
        lifted_by = f"use its place {there.id}, which is {there.coordination.value}"
        return Refusal(code=Code.MEMBER_RUN_EXISTS, about=f"member-run/{there.id}", lifted_by=lifted_by)
    return _place(tx, call, run, membership, ask.role)


PlaceChange = CloseMemberRun | ReopenMemberRun | RetireMemberRun


def may_place(tx: Tx, call: Call, ask: PlaceChange) -> Refusal | None:
    place = MEMBER_RUNS.load(tx, ask.member_run_id)
    if place is None:
        return find.not_found("member-run", ask.member_run_id)
    run = actor.run(tx, call, place.team_run_id)
    return run if isinstance(run, Refusal) else actor.may_host_or_operate(tx, call, run.team_id)


def close(tx: Tx, call: Call, ask: CloseMemberRun) -> MemberRun | Refusal:
    return _move_place(tx, call, ask, PlaceCause.CLOSE)


def reopen(tx: Tx, call: Call, ask: ReopenMemberRun) -> MemberRun | Refusal:
    return _move_place(tx, call, ask, PlaceCause.REOPEN)


def retire(tx: Tx, call: Call, ask: RetireMemberRun) -> MemberRun | Refusal:
    return _move_place(tx, call, ask, PlaceCause.RETIRE)


def _move_place(tx: Tx, call: Call, ask: PlaceChange, cause: PlaceCause) -> MemberRun | Refusal:
    place = MEMBER_RUNS.load(tx, ask.member_run_id)
    if place is None:
        return find.not_found("member-run", ask.member_run_id)
    about = f"member-run/{place.id}"
    if refusal := moved(about, current=place.version, expected=ask.expected_version):
        return refusal
    coordination = MEMBER_RUN.after(place.coordination, cause, about)
    if isinstance(coordination, Refusal):
        return coordination
    changes: dict[str, Any] = {"coordination": coordination}
    if isinstance(ask, ReopenMemberRun):
        run = TEAM_RUNS.held(tx, place.team_run_id)
        if refusal := goes_on(run):
            return refusal
        changes["run_gen"] = RunGen(max(place.run_gen, runs.floor(tx)) + 1)
        changes["fresh"] = ask.fresh
    elif session := sessions.open_of_place(tx, place.id):
        return session_live(session)
    if cause is PlaceCause.RETIRE and (live := _live_in(tx, place)):
        lifted_by = (
            f"look at its lost attempt: firm work show --work-id {live}; then say what you found: firm recover {live}"
        )
        return Refusal(code=Code.WORK_BINDING_LIVE, about=f"work/{live}", lifted_by=lifted_by)
    return MEMBER_RUNS.change(tx, place, kind=cause.value, actor=call.actor, at=call.now, **changes)


def _live_in(tx: Tx, place: MemberRun) -> str | None:
    found = attempts.live_of_membership(tx, MembershipId(place.membership_id))
    return next((binding.work_id for binding in found if binding.member_run_id == place.id), None)
