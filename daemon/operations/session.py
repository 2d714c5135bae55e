"""Handlers for ``session.*``."""

from __future__ import annotations

import hashlib
from typing import Any

import attrs

from client.protocol.agent import AgentMember
from client.protocol.attempt import Custody
from client.protocol.effect import EffectKind
from client.protocol.ids import (
    OWN_RUN,
    CapabilityId,
    RunGen,
    SessionGen,
    SessionId,
    SupGen,
    TeamRunId,
    new_id,
)
from client.protocol.membership import MembershipState, TeamMembership
from client.protocol.operation import Plane
from client.protocol.refusals import Code, Refusal
from client.protocol.session import (
    AgentSession,
    BindSession,
    Capability,
    CapabilityState,
    Driver,
    Ending,
    ListSessions,
    Liveness,
    OpenSession,
    ReportSession,
    SessionCause,
    SessionPage,
    SessionShown,
    SessionState,
    ShowSession,
    UnbindSession,
)
from client.protocol.team_run import MemberRun
from daemon.call import Call
from daemon.kernel import cursor
from daemon.kernel.agent import available
from daemon.kernel.attempt import CustodyCause
from daemon.kernel.capacity import shown
from daemon.kernel.effect import admits
from daemon.kernel.session import ORPHANING, PROCESS, SESSION, current, detached, exists
from daemon.kernel.team_run import fenced, goes_on, present, takes_claims
from daemon.kernel.turn import UNHEARD
from daemon.operations import actor, attempt, conversation, cycle, find, mail
from store import attempt as attempts
from store import session as sessions
from store import team_run as runs
from store import workspace as workspaces
from store.agent import AGENTS
from store.membership import MEMBERSHIPS
from store.session import CAPABILITIES, SESSIONS
from store.team_run import MEMBER_RUNS, TEAM_RUNS
from store.tx import Tx


@attrs.frozen
class ProcessFacts:
    """What was seen of a process before the unit began: which one it is, for as long as this boot lasts."""

    pid: int
    start_ticks: int
    boot_id: str


_NO_PROCESS = ProcessFacts(0, 0, "")


def open_(tx: Tx, call: Call, ask: OpenSession) -> AgentSession | Refusal:
    place = MEMBER_RUNS.load(tx, ask.member_run_id)
    if place is None or place.team_run_id != call.team_run_id:
        return find.not_found("member-run", ask.member_run_id)
    run = TEAM_RUNS.held(tx, place.team_run_id)
    # Whoever ends the members of a run drains it first: after that nothing new begins.
    refusal = (
        fenced(run, ask.sup_gen)
        or takes_claims(run)
        or admits(workspaces.being_archived(tx, place.agent_member_id), EffectKind.LAUNCH)
    )
    if refusal:
        return refusal
    former = sessions.open_of(tx, place.agent_member_id)
    if former is not None and ask.supersede:
        if refusal := _may_open(tx, place) or _may_supersede(tx, place, former):
            return refusal
        _supersede(tx, call, former)
    session = _open(tx, call, place, ask.driver, SupGen(ask.sup_gen), _NO_PROCESS, cwd=ask.cwd)
    if isinstance(session, Refusal):
        return session
    capability = Capability(
        id=CapabilityId(new_id()),
        version=1,
        session_id=session.id,
        token_sha256=hashlib.sha256(call.token(session).encode()).hexdigest(),
        daemon_gen=call.daemon_gen,
        sup_gen=SupGen(ask.sup_gen),
        state=CapabilityState.ACTIVE,
        accepts_new_claims=True,
        expires_at=None,
        created_at=call.now,
        updated_at=call.now,
    )
    CAPABILITIES.insert(tx, capability, kind="issued", actor=call.actor, at=call.now)
    return session


def _may_open(tx: Tx, place: MemberRun) -> Refusal | None:
    run, agent = TEAM_RUNS.held(tx, place.team_run_id), AGENTS.held(tx, place.agent_member_id)
    membership = MEMBERSHIPS.held(tx, place.membership_id)
    return goes_on(run) or present(place) or available(agent) or _takes_part(membership)


def _takes_part(membership: TeamMembership) -> Refusal | None:
    if membership.state is MembershipState.ACTIVE:
        return None
    lifted_by = f"its membership is {membership.state.value}; it joins the team again and gets another place"
    return Refusal(code=Code.MEMBER_RUN_CLOSED, about=f"membership/{membership.id}", lifted_by=lifted_by)


def _may_supersede(tx: Tx, place: MemberRun, former: AgentSession) -> Refusal | None:
    """A supervisor ends sessions of its own run, and what a run that is over left behind."""
    run = TEAM_RUNS.held(tx, former.team_run_id)
    return detached(former) if run.id == place.team_run_id or goes_on(run) else exists(former)


def _open(  # noqa: PLR0913 — what each way of opening one knows
    tx: Tx, call: Call, place: MemberRun, driver: Driver, sup_gen: SupGen, process: ProcessFacts, *, cwd: str = ""
) -> AgentSession | Refusal:
    if refusal := _may_open(tx, place):
        return refusal
    if former := sessions.open_of(tx, place.agent_member_id):
        return exists(former)
    agent = AGENTS.held(tx, place.agent_member_id)
    proven = process.pid > 0
    driven = driver is Driver.HOST_DRIVEN
    has = conversation.chosen(tx, place, agent, cwd) if driven else conversation.Conversation()
    made = AgentSession(
        id=SessionId(new_id()),
        version=1,
        agent_member_id=place.agent_member_id,
        member_run_id=place.id,
        team_run_id=place.team_run_id,
        session_gen=SessionGen(sessions.last_gen(tx, place.agent_member_id) + 1),
        run_gen=RunGen(place.run_gen),
        sup_gen=sup_gen,
        daemon_gen=call.daemon_gen,
        state=SessionState.IDLE if proven else SessionState.COLD,
        driver=driver,
        process=Liveness.LIVE if proven else Liveness.UNKNOWN,
        pid=process.pid,
        start_ticks=process.start_ticks,
        boot_id=process.boot_id,
        native_session=has.native_id,
        created_at=call.now,
        updated_at=call.now,
        closed_at=None,
        streak=0,
        degraded_at=None,
        hinted_at=None,
        typist="",
        ceiling=agent.ceiling,
        profile=agent.profile,
        resumed_from=has.resumed_from,
    )
    return SESSIONS.insert(tx, made, kind="bound" if proven else has.how, actor=call.actor, at=call.now)


def _supersede(tx: Tx, call: Call, former: AgentSession) -> None:
    """End a session that another takes the place of: what it held is orphaned, its capability replaced."""
    orphan(tx, call, former, "session superseded")
    close_(tx, call, former, "superseded", CapabilityState.REPLACED)


def close_(
    tx: Tx, call: Call, session: AgentSession, kind: str, capability: CapabilityState, process: Liveness | None = None
) -> AgentSession:
    """``process`` is what is known of it now; without it, what was."""
    _withdraw_questions(tx, call, session)
    _end_capability(tx, call, session, kind, capability)
    cycle.ended(tx, call, session, Ending.CLOSED)
    return SESSIONS.change(
        tx,
        session,
        kind=kind,
        actor=call.actor,
        at=call.now,
        state=SessionState.CLOSED,
        process=process or session.process,
        closed_at=call.now,
        **UNHEARD,
    )


def _end_capability(tx: Tx, call: Call, session: AgentSession, kind: str, state: CapabilityState) -> None:
    held = sessions.capability_of(tx, session.id)
    if held is not None and held.state is CapabilityState.ACTIVE:
        CAPABILITIES.change(tx, held, kind=kind, actor=call.actor, at=call.now, state=state)


def _withdraw_questions(tx: Tx, call: Call, session: AgentSession) -> None:
    place = MEMBER_RUNS.held(tx, session.member_run_id)
    mail.withdraw_questions(tx, call, place, "the session that asked has ended")


def orphan(tx: Tx, call: Call, session: AgentSession, reason: str) -> None:
    """Nobody knows what the process of this session did with what it held."""
    for binding in attempts.live_of_session(tx, session.id):
        if binding.custody is Custody.CLAIMED:
            attempt.move(tx, call, binding, CustodyCause.ORPHAN, reason)


def report(tx: Tx, call: Call, ask: ReportSession) -> AgentSession | Refusal:
    session = SESSIONS.load(tx, ask.session_id)
    if session is None or session.team_run_id != call.team_run_id:
        return find.not_found("session", ask.session_id)
    run = TEAM_RUNS.held(tx, session.team_run_id)
    if refusal := fenced(run, ask.sup_gen) or current(session, ask.session_gen):
        return refusal
    state = SESSION.after(session.state, ask.cause, f"session/{session.id}")
    if isinstance(state, Refusal):
        return state
    if refusal := conversation.renamed(tx, session, ask.native_session):
        return refusal
    live = attempts.live_of_session(tx, session.id)
    if ask.cause is SessionCause.CLOSED:
        if live:
            lifted_by = "its Work is submitted, or its custody is reviewed; or the session is superseded"
            return Refusal(code=Code.WORK_BINDING_LIVE, about=f"work/{live[0].work_id}", lifted_by=lifted_by)
        return close_(tx, call, session, "closed", CapabilityState.REVOKED)
    if ask.cause in ORPHANING:
        orphan(tx, call, session, f"session {ask.cause.value}")
        _withdraw_questions(tx, call, session)
    if ask.cause is SessionCause.LOST:
        _end_capability(tx, call, session, "lost", CapabilityState.REVOKED)
    changes = {"state": state, "process": PROCESS.get(ask.cause, session.process), **_said(tx, call, session, ask)}
    if state is not SessionState.ACTIVE:
        changes |= cycle.reported(tx, call, session, ask)
    kind = f"{ask.cause.value}: {ask.reason}" if ask.reason else ask.cause.value
    return SESSIONS.change(tx, session, kind=kind, actor=call.actor, at=call.now, **changes)


def _said(tx: Tx, call: Call, session: AgentSession, ask: ReportSession) -> dict[str, Any]:
    """What a report says beside the state."""
    said: dict[str, Any] = {"native_session": ask.native_session} if ask.native_session else {}
    if ask.cause is SessionCause.DEGRADED:
        said["degraded_at"] = call.now
    if ask.cause is SessionCause.ADOPTED and renew(tx, call, session, SupGen(ask.sup_gen)):
        # The daemon that would have seen a person leave, and heard the hooks meanwhile, is gone.
        said |= {"typist": "", **UNHEARD}
    return said


def renew(tx: Tx, call: Call, session: AgentSession, sup_gen: SupGen) -> bool:
    """The process has just been proven: its capability goes on under the daemon and the supervisor of now. Whether the
    daemon is another than before.
    """
    held = sessions.capability_of(tx, session.id)
    now = (call.daemon_gen, sup_gen)
    if held is not None and held.state is CapabilityState.ACTIVE and (held.daemon_gen, held.sup_gen) != now:
        CAPABILITIES.change(
            tx, held, kind="adopted", actor=call.actor, at=call.now, daemon_gen=call.daemon_gen, sup_gen=sup_gen
        )
    return held is None or held.daemon_gen != call.daemon_gen


def bind(tx: Tx, call: Call, ask: BindSession) -> AgentSession | Refusal:
    agent = find.agent(tx, ask.agent_member_id)
    if isinstance(agent, Refusal):
        return agent
    if refusal := available(agent):
        return refusal
    place = _place_of(tx, agent, ask.team_run_id)
    if isinstance(place, Refusal):
        return place
    facts: ProcessFacts = call.facts
    taken = sessions.of_process(tx, facts.pid, facts.start_ticks, facts.boot_id)
    if taken is not None:
        return exists(taken)
    return _open(tx, call, place, Driver.USER_DRIVEN, SupGen(0), facts)


def _place_of(tx: Tx, agent: AgentMember, run_id: TeamRunId | None) -> MemberRun | Refusal:
    fits = [p for p in runs.open_places(tx, agent.id) if run_id in {None, p.team_run_id}]
    if len(fits) == 1:
        return fits[0]
    if fits:
        which = " or ".join(place.team_run_id for place in fits)
        return Refusal(code=Code.NAME_AMBIGUOUS, about=f"agent/{agent.id}", lifted_by=f"say which run: {which}")
    add = "firm member-run add --team-run-id RUN --membership-id MEMBERSHIP"
    lifted_by = f"give it a place in a run that goes on: {add}"
    return Refusal(code=Code.MEMBER_RUN_CLOSED, about=f"agent/{agent.id}", lifted_by=lifted_by)


def unbind(tx: Tx, call: Call, ask: UnbindSession) -> AgentSession | Refusal:
    session = SESSIONS.load(tx, ask.session_id)
    if session is None:
        return find.not_found("session", ask.session_id)
    if session.state is SessionState.CLOSED or session.driver is not Driver.USER_DRIVEN:
        lifted_by = (
            "it is closed; this ends the session of a person's own process"
            if session.state is SessionState.CLOSED
            else f"its process is ours to end: firm session close {session.id}"
        )
        return Refusal(code=Code.INVALID_STATE_TRANSITION, about=f"session/{session.id}", lifted_by=lifted_by)
    orphan(tx, call, session, "session unbound")
    return close_(tx, call, session, "unbound", CapabilityState.REVOKED, Liveness.UNKNOWN)


def ended(
    tx: Tx, call: Call, session_id: SessionId, reason: str, process: Liveness = Liveness.STOPPED
) -> AgentSession | None:
    """What proves a session is no more: its process has ended. None when the session was closed before."""
    session = SESSIONS.load(tx, session_id)
    if session is None or session.state is SessionState.CLOSED:
        return None
    orphan(tx, call, session, reason)
    return close_(tx, call, session, f"ended: {reason}", CapabilityState.REVOKED, process)


def restored(tx: Tx, call: Call) -> int:
    """After a restore, what an earlier store had handed out proves nobody any more. How many sessions that ended."""
    found = sessions.below_floor(tx)
    for session in found:
        reason = "the store was restored"
        if session.driver is Driver.USER_DRIVEN:
            ended(tx, call, session.id, reason, Liveness.UNKNOWN)
            continue
        orphan(tx, call, session, reason)
        _withdraw_questions(tx, call, session)
        _end_capability(tx, call, session, "restored", CapabilityState.REVOKED)
        SESSIONS.change(
            tx,
            session,
            kind=f"lost: {reason}",
            actor=call.actor,
            at=call.now,
            state=SessionState.RECOVERY_REQUIRED,
            process=Liveness.UNKNOWN,
        )
    return len(found)


def list_(tx: Tx, call: Call, ask: ListSessions) -> SessionPage | Refusal:
    run_id = ask.team_run_id
    if call.plane is not Plane.OPERATOR:
        run = actor.run(tx, call, run_id or call.team_run_id or OWN_RUN)
        if isinstance(run, Refusal):
            return run
        run_id = run.id
    query = ("session.list", run_id, ask.state)
    after = cursor.read(ask.cursor, call.store_id, *query)
    if isinstance(after, Refusal):
        return after
    items, last = sessions.list_page(tx, run_id=run_id, state=ask.state, after=after, limit=ask.limit)
    items = [shown(each, call.now) for each in items]
    return SessionPage(items=items, next=cursor.write(last, call.store_id, *query) if last else None)


def show(tx: Tx, call: Call, ask: ShowSession) -> SessionShown | Refusal:
    session = SESSIONS.load(tx, ask.session_id)
    if session is None or isinstance(actor.run(tx, call, session.team_run_id), Refusal):
        return find.not_found("session", ask.session_id)
    return SessionShown(session=shown(session, call.now), capability=sessions.capability_of(tx, session.id))
