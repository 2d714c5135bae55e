"""Handlers for boards and attention: projections, recomputed at every question."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from typing import Any

import attrs

from client.protocol.agent import WorkspacePolicy
from client.protocol.board import (
    AcknowledgeAttention,
    Attention,
    AttentionKind,
    AttentionList,
    Board,
    BoardMember,
    BoardWork,
    Due,
    DueCheck,
    DueList,
    ListAttention,
    ListDue,
    Seat,
    ShowBoard,
    ShowSummary,
    Summary,
)
from client.protocol.ids import MembershipId, UnixMs, WorkId
from client.protocol.membership import MembershipRole
from client.protocol.operation import Plane
from client.protocol.refusals import Refusal
from client.protocol.session import SessionState
from client.protocol.team_run import TeamRun, TeamRunState
from client.protocol.work import Condition, Phase, Priority
from daemon.call import Call
from daemon.kernel import board as rules
from daemon.kernel.team_run import fenced, goes_on
from daemon.operations import actor, delivery, find
from providers import profiles
from store import board as facts
from store import delegation as delegations
from store import effect as effects
from store import membership as memberships
from store import message as messages
from store import session as sessions
from store.tx import Tx


def board(tx: Tx, call: Call, ask: ShowBoard) -> Board | Refusal:
    run = actor.run(tx, call, ask.team_run_id)
    return run if isinstance(run, Refusal) else _board(tx, call, run)


def _board(tx: Tx, call: Call, run: TeamRun) -> Board:
    members: list[BoardMember] = []
    for place, name, role, number, membership, session, mail in facts.members(tx, run.id):
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
            )
        )
    counted = rules.counts(facts.standings(tx, run.id), facts.ready(tx, run.id))
    attention = _attention(tx, call, run)
    return Board(run=run, counts=counted, works=_works(tx, run), members=members, attention=attention)


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
        )
        for phase in (Phase.REVIEW, Phase.ACTIVE, Phase.OPEN)
        for work, title, condition, priority, owner, since, ready in facts.stands(tx, run.id, phase.value)
    ]


def summary(tx: Tx, call: Call, ask: ShowSummary) -> Summary | Refusal:
    run = actor.run(tx, call, ask.team_run_id)
    return run if isinstance(run, Refusal) else Summary(text=rules.summary(_board(tx, call, run)))


def attention(tx: Tx, call: Call, ask: ListAttention) -> AttentionList | Refusal:
    run = actor.run(tx, call, ask.team_run_id)
    return run if isinstance(run, Refusal) else AttentionList(items=_attention(tx, call, run))


def acknowledge(tx: Tx, call: Call, ask: AcknowledgeAttention) -> AttentionList | Refusal:
    run = actor.run(tx, call, ask.team_run_id)
    if isinstance(run, Refusal):
        return run
    if ask.key not in {item.key for item in _attention(tx, call, run)}:
        return find.not_found("attention", ask.key)
    facts.acknowledge(tx, run.id, call.actor, ask.key, at=call.now)
    return AttentionList(items=_attention(tx, call, run))


def _attention(tx: Tx, call: Call, run: TeamRun) -> list[Attention]:
    """What the caller has to look at. Nobody is told of what they did themselves."""
    caller = actor.actor(tx, call)
    host = memberships.host(tx, run.team_id)
    hosts = actor.may_host(tx, call, run.team_id) is None
    found: list[Attention] = []
    if call.plane is Plane.OPERATOR or hosts:
        found += _reviews(tx, run, lambda owner: host is None or owner != host.id)
        found += [*_blocked(tx, call, run), *_orphaned(tx, run), *_stopped(tx, run)]
        found += [*_terminals(tx, run), *_stuck(tx, run), *_delegations(tx, run)]
    elif caller is not None and host is not None and caller.membership.role is MembershipRole.MEMBER:
        found += _reviews(tx, run, lambda owner: owner == host.id)
    if caller is not None:
        found += _mail(tx, caller.membership.id, run)
    elif host is not None and hosts:
        found += _mail(tx, host.id, run)
    seen = facts.acknowledged(tx, run.id, call.actor)
    return sorted((item for item in found if item.key not in seen), key=lambda item: (item.since, item.key))


@attrs.frozen
class _Words:
    """What is said of one sort of incident, with the facts of each put in."""

    kind: AttentionKind
    key: str
    about: str
    what: str
    lifted_by: str


_SAID = {
    "review": _Words(
        AttentionKind.REVIEW,
        "review/{work}/{receipt}",
        "work/{work}",
        "{name} submitted {title!r}",
        "look at it, then accept it or request changes: firm work show --work-id {work}",
    ),
    "blocked": _Words(
        AttentionKind.BLOCKED,
        "blocked/{work}/{incident}",
        "work/{work}",
        "{title!r} is blocked: {reason}",
        "answer its owner; the Host resumes it, or cancels it: "
        "firm work resume --work-id {work} --expected-version {version} --resolution TEXT, or "
        "firm work cancel {work} --expected-version {version} --reason TEXT",
    ),
    "orphaned": _Words(
        AttentionKind.ORPHANED,
        "orphaned/{work}/{fence}/{incident}",
        "work/{work}",
        "the attempt fence={fence} at {title!r} was lost: {reason}",
        "see what it left behind, then review it with work recover: firm work show --work-id {work}",
    ),
    "stopped": _Words(
        AttentionKind.STOPPED,
        "stopped/{session}/{version}",
        "session/{session}",
        "{name} has no process: {reason}",
        "it is tried again a few times; mend what stands in the way, then: firm session close {session}, and "
        "firm reopen {name}",
    ),
    "prerequisite": _Words(
        AttentionKind.PREREQUISITE,
        "prerequisite/{work}/{last}",
        "work/{work}",
        "{title!r} needs {needs}",
        "give it other prerequisites, or cancel it; to do without: {command}",
    ),
    "proposed": _Words(
        AttentionKind.DELEGATION,
        "proposed/{delegation}",
        "delegation/{delegation}",
        "another team asks for {title!r}",
        "accept it in a run of yours, or decline it: "
        "firm delegation accept {delegation} --expected-version {version} --team-run-id {run}, or "
        "firm delegation decline {delegation} --expected-version {version} --reason TEXT",
    ),
    "declined": _Words(
        AttentionKind.DELEGATION,
        "declined/{delegation}",
        "work/{work}",
        "{title!r} was declined: {reason}",
        "decide how it goes on without: firm work show --work-id {work}",
    ),
    "delegated": _Words(
        AttentionKind.DELEGATION,
        "delegated/{delegation}/{target}",
        "work/{work}",
        "{title!r} was {resolution} there: {said}{evidence}",
        "nothing of yours was accepted by it; decide about your own: firm work show --work-id {work}",
    ),
    "degraded": _Words(
        AttentionKind.DEGRADED,
        "degraded/{session}/{since}",
        "session/{session}",
        "{name} was told {streak} times what to do, and did nothing that was seen",
        "it is told nothing more until it does something; look, and help: firm attach {name} --type; or begin it anew: "
        "firm close {name}, and firm reopen {name}",
    ),
    "held": _Words(
        AttentionKind.HELD,
        "held/{effect}",
        "session/{session}",
        "nothing can be typed to {name}: {readback}",
        "it is typed when that ends; see it: firm logs {name}, or end it there: firm attach {name} --type",
    ),
    "unsubmitted": _Words(
        AttentionKind.UNSUBMITTED,
        "unsubmitted/{effect}",
        "effect/{effect}",
        "whether {name} took what was typed is not known: {readback}",
        "look: firm logs {name}; then say what you found: firm effect resolve {effect} --expected-version {version} "
        "--finding confirm_applied --reason TEXT, or with confirm_not_applied, after which it is typed again",
    ),
    "mail": _Words(
        AttentionKind.MAIL,
        "mail/{delivery}",
        "message/{message}",
        "your message will not arrive: {state}, {reason}",
        "send it again if it is still needed, and say that you noticed: firm message ack {delivery}",
    ),
}


def _item(sort: str, *, since: int, **facts: object) -> Attention:
    said, facts = _SAID[sort], {"since": since, **facts}
    return Attention(
        key=said.key.format(**facts),
        kind=said.kind,
        about=said.about.format(**facts),
        what=said.what.format(**facts),
        lifted_by=said.lifted_by.format(**facts),
        since=UnixMs(since),
    )


def _reviews(tx: Tx, run: TeamRun, accepts: Callable[[MembershipId], bool]) -> list[Attention]:
    """The Host decides about its members' Works, any member about the Host's."""
    return [
        _item("review", since=since, work=work, receipt=receipt, name=name, title=title)
        for work, receipt, title, since, owner, name in facts.in_review(tx, run.id)
        if accepts(owner)
    ]


def _blocked(tx: Tx, call: Call, run: TeamRun) -> list[Attention]:
    return [
        _item("blocked", since=since, work=work, version=version, title=title, reason=reason, incident=incident)
        for work, version, title, reason, incident, since, by in facts.blocked(tx, run.id)
        if by != call.actor
    ]


def _orphaned(tx: Tx, run: TeamRun) -> list[Attention]:
    return [
        _item("orphaned", since=since, work=work, fence=fence, incident=incident, title=title, reason=reason)
        for work, fence, incident, title, since, reason in facts.orphaned(tx, run.id)
    ]


def _stopped(tx: Tx, run: TeamRun) -> list[Attention]:
    return [
        _item("stopped", since=since, session=session, version=version, name=shlex.quote(name), reason=reason)
        for session, version, name, since, reason in facts.stopped(tx, run.id)
    ]


def _terminals(tx: Tx, run: TeamRun) -> list[Attention]:
    """Members that nothing gets through to, by what stands in the way."""
    found = [
        _item("degraded", since=since, session=session, name=shlex.quote(name), streak=streak)
        for session, name, streak, since in facts.degraded(tx, run.id)
    ]
    for effect, version, state, session, name, readback, since in facts.untold(tx, run.id):
        sort = "held" if state == "settled" else "unsubmitted"
        about = {"effect": effect, "version": version, "session": session, "name": shlex.quote(name)}
        found.append(_item(sort, since=since, readback=readback, **about))
    return found


def _stuck(tx: Tx, run: TeamRun) -> list[Attention]:
    """One item a Work, however many of its prerequisites will never be accepted; the last of them is the incident."""
    closed: dict[str, list[tuple[Any, ...]]] = {}
    for row in facts.stuck(tx, run.id):
        closed.setdefault(row[0], []).append(row)
    found: list[Attention] = []
    for work, rows in closed.items():
        _, version, title, last, _, since = rows[-1]
        left = [f"--prerequisite-work-id {need}" for need in facts.needs_left(tx, WorkId(work))]
        command = " ".join([f"firm work replace-dependencies {work} --expected-version {version}", *left])
        more = f" and {len(rows) - 3} more" if len(rows) > 3 else ""  # noqa: PLR2004
        needs = ", ".join(f"{row[3]} ({row[4]})" for row in rows[-3:]) + more
        found.append(
            _item("prerequisite", since=since, work=work, last=last, title=title, needs=needs, command=command)
        )
    return found


def _delegations(tx: Tx, run: TeamRun) -> list[Attention]:
    found = [
        _item("proposed", since=d.created_at, delegation=d.id, title=d.title, version=d.version, run=run.id)
        for d in delegations.proposed_to(tx, run.team_id)
    ]
    found += [
        _item("declined", since=d.updated_at, delegation=d.id, work=d.source_work_id, title=d.title, reason=d.reason)
        for d in delegations.declined(tx, run.id)
    ]
    return found + [_delegated(row) for row in delegations.finished(tx, run.id)]


def _delegated(row: tuple[Any, ...]) -> Attention:
    delegation, source, title, target, resolution, said, since, receipt, digest = row
    return _item(
        "delegated",
        since=since,
        delegation=delegation,
        work=source,
        title=title,
        target=target,
        resolution=resolution,
        said=said[:200],
        evidence=f" [{receipt} sha256:{digest}]" if receipt else "",
    )


def _mail(tx: Tx, reader: MembershipId, run: TeamRun) -> list[Attention]:
    return [
        _item("mail", since=d.updated_at, delivery=d.id, message=d.message_id, state=d.state.value, reason=d.reason)
        for d in messages.untold(tx, reader, run.id)
    ]


def due(tx: Tx, call: Call, ask: ListDue) -> DueList | Refusal:
    run = actor.run(tx, call, ask.team_run_id)
    if isinstance(run, Refusal):
        return run
    if refusal := fenced(run, ask.sup_gen) or goes_on(run):
        return refusal
    rows = facts.due(tx, run.id) if run.state.value == "running" else []
    items = [Due(work_id=w, work_version=v, session_id=s, session_gen=g, failed=f) for w, v, s, g, f in rows]
    return DueList(
        items=items,
        seats=[_seat(tx, call, run, row) for row in facts.seats(tx, run.id)],
        controls=effects.controls(tx, run.id),
        sup_gen=run.sup_gen,
        seq=facts.seq(tx),
        checks=[
            DueCheck(work_id=w, receipt_id=r, fence=f, line=line, revision=revision, root=root)
            for w, r, f, line, revision, root in facts.checks_due(tx, run.id)
        ],
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
        waking=delivery.waking(tx, call, run, session) if session and profiles.takes_text(profile) else None,
    )
