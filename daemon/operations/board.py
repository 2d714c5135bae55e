"""Handlers for boards, and for what a supervisor has to look after: projections, recomputed at every question."""

from __future__ import annotations

from typing import Any

from client.protocol.agent import WorkspacePolicy
from client.protocol.board import (
    Board,
    BoardMember,
    BoardWork,
    Due,
    DueCheck,
    DueList,
    ListDue,
    Seat,
    ShowBoard,
    ShowSummary,
    Summary,
    Waking,
)
from client.protocol.effect import Wake
from client.protocol.ids import UnixMs, WorkId
from client.protocol.refusals import Refusal
from client.protocol.session import AgentSession, SessionState
from client.protocol.team_run import TeamRun, TeamRunState
from client.protocol.verdict import Verification
from client.protocol.work import Condition, Phase, Priority
from daemon.call import Call
from daemon.kernel import board as rules
from daemon.kernel.capacity import shown, unavailable_ms
from daemon.kernel.team_run import fenced, goes_on
from daemon.kernel.turn import in_turn
from daemon.operations import actor, attention, delivery
from daemon.operations.team_run import to_finish
from providers import profiles
from store import board as facts
from store import effect as effects
from store import events
from store import session as sessions
from store.tx import Tx
from supervisor.wake import wake


def board(tx: Tx, call: Call, ask: ShowBoard) -> Board | Refusal:
    run = actor.run(tx, call, ask.team_run_id)
    return run if isinstance(run, Refusal) else _board(tx, call, run)


def _board(tx: Tx, call: Call, run: TeamRun) -> Board:
    members: list[BoardMember] = []
    seated = {each.member_run_id: each for each in sessions.open_of_run(tx, run.id)}
    full = facts.under_way(tx, run.id) >= run.cycles
    for place, name, role, number, membership, session, mail, native, resumed in facts.members(tx, run.id):
        of = seated.get(place)
        work = facts.does(tx, run.id, membership)
        members.append(
            BoardMember(
                member_run_id=place,
                name=name,
                role=role,
                number=number,
                session=SessionState(session) if session else None,
                doing=rules.doing(session, work[2] if work else "", work[3] if work else ""),
                work_id=WorkId(work[0]) if work else None,
                work_title=work[1] if work else "",
                mail=mail,
                native_session=native,
                resumed=bool(resumed),
                **(_turn(tx, call, run, of, full=full) if of is not None else {}),
            )
        )
    counted = rules.counts(facts.standings(tx, run.id), facts.ready(tx, run.id))
    found = attention.items(tx, call, run)
    return Board(run=run, counts=counted, works=_works(tx, run), members=members, attention=found)


def _waking(tx: Tx, call: Call, run: TeamRun, of: AgentSession) -> Waking | None:
    """By the program that runs: another profile of its member is for the next session."""
    return delivery.waking(tx, call, run, of) if profiles.takes_text(of.profile) else None


def _turn(tx: Tx, call: Call, run: TeamRun, of: AgentSession, *, full: bool) -> dict[str, Any]:
    """Whether a turn goes on in a session, what its provider gives it, and what it waits for before it is told more.
    While the run is ``full`` nobody else begins a cycle.
    """
    waits = ""
    if unavailable_ms(of, call.now):
        waits = f"for its provider, which is {of.capacity.value}"
    elif of.state is SessionState.IDLE and in_turn(of):
        waits = "for the end of a turn that we did not begin"
    elif full and (facts_of := _waking(tx, call, run, of)) and isinstance(wake(of, facts_of), Wake):
        waits = f"for one of {run.cycles} cycles to end"
    return {
        "activity": of.activity,
        "activity_at": of.activity_at,
        "activity_source": of.activity_source,
        "capacity": shown(of, call.now).capacity,
        "waits": waits,
    }


def _works(tx: Tx, run: TeamRun) -> list[BoardWork]:
    """What somebody has to look at first comes first."""
    return [
        BoardWork(
            work_id=WorkId(work),
            title=title,
            phase=phase,
            condition=Condition(condition),
            priority=Priority(priority),
            owner=owner,
            ready=bool(ready),
            updated_at=UnixMs(since),
            verifier=verifier,
            verdict=Verification(verdict) if verdict else None,
        )
        for phase in (Phase.REVIEW, Phase.ACTIVE, Phase.OPEN)
        for work, title, condition, priority, owner, since, ready, verifier, verdict in facts.stands(
            tx, run.id, phase.value
        )
    ]


def summary(tx: Tx, call: Call, ask: ShowSummary) -> Summary | Refusal:
    run = actor.run(tx, call, ask.team_run_id)
    return run if isinstance(run, Refusal) else Summary(text=rules.summary(_board(tx, call, run)))


def due(tx: Tx, call: Call, ask: ListDue) -> DueList | Refusal:
    run = actor.run(tx, call, ask.team_run_id)
    if isinstance(run, Refusal):
        return run
    if refusal := fenced(run, ask.sup_gen) or goes_on(run):
        return refusal
    rows = facts.due(tx, run.id) if run.state is TeamRunState.RUNNING else []
    items = [Due(work_id=w, work_version=v, session_id=s, session_gen=g, failed=f) for w, v, s, g, f in rows]
    return DueList(
        items=items,
        seats=[_seat(tx, call, run, row) for row in facts.seats(tx, run.id)],
        controls=effects.controls(tx, run.id),
        sup_gen=run.sup_gen,
        seq=events.last(tx),
        checks=[
            DueCheck(work_id=w, receipt_id=r, fence=f, line=line, revision=revision, root=root)
            for w, r, f, line, revision, root in facts.checks_due(tx, run.id)
        ],
        finishes=to_finish(tx, run),
        cycles=run.cycles,
    )


def _seat(tx: Tx, call: Call, run: TeamRun, row: tuple[Any, ...]) -> Seat:
    place, run_gen, agent, name, team, profile, workspace, project, root, in_git, takes = row
    session = sessions.open_of_place(tx, place)
    return Seat(
        member_run_id=place,
        run_gen=run_gen,
        agent_member_id=agent,
        agent_name=name,
        team_name=team,
        profile=profile,
        workspace=WorkspacePolicy(workspace),
        project_id=project,
        root=root,
        in_git=bool(in_git),
        takes_sessions=bool(takes) and run.state is TeamRunState.RUNNING,
        session=session,
        launch=effects.launch_of(tx, session.id) if session else None,
        waking=_waking(tx, call, run, session) if session else None,
        cycle=effects.cycle_of(tx, session.id) if session else None,
        unavailable_ms=unavailable_ms(session, call.now) if session else 0,
    )
