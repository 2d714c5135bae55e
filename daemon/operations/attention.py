"""Handlers for attention: what somebody has to look at, recomputed at every question."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from typing import Any

from client.protocol.board import AcknowledgeAttention, Attention, AttentionList, ListAttention
from client.protocol.effect import EffectKind
from client.protocol.ids import MembershipId, UnixMs, WorkId
from client.protocol.membership import MembershipRole
from client.protocol.operation import Plane
from client.protocol.refusals import Refusal
from client.protocol.team_run import TeamRun
from daemon.call import Call
from daemon.kernel.capacity import FRESH_MS
from daemon.kernel.verdict import checks_passed
from daemon.operations import actor, find
from daemon.operations.attention_words import SAID
from store import attempt as attempts
from store import board as facts
from store import delegation as delegations
from store import membership as memberships
from store import message as messages
from store import verdict as verdicts
from store.tx import Tx


def list_(tx: Tx, call: Call, ask: ListAttention) -> AttentionList | Refusal:
    run = actor.run(tx, call, ask.team_run_id)
    return run if isinstance(run, Refusal) else AttentionList(items=items(tx, call, run))


def acknowledge(tx: Tx, call: Call, ask: AcknowledgeAttention) -> AttentionList | Refusal:
    run = actor.run(tx, call, ask.team_run_id)
    if isinstance(run, Refusal):
        return run
    if ask.key not in {item.key for item in items(tx, call, run)}:
        return find.not_found("attention", ask.key)
    facts.acknowledge(tx, run.id, call.actor, ask.key, at=call.now)
    return AttentionList(items=items(tx, call, run))


def items(tx: Tx, call: Call, run: TeamRun) -> list[Attention]:
    """What the caller has to look at. Nobody is told of what they did themselves."""
    caller = actor.actor(tx, call)
    host = memberships.host(tx, run.team_id)
    hosts = actor.may_host(tx, call, run.team_id) is None
    found: list[Attention] = []
    if call.plane is Plane.OPERATOR or hosts:
        found += _reviews(tx, run, lambda owner: host is None or owner != host.id)
        found += [*_blocked(tx, call, run), *_orphaned(tx, run), *_stopped(tx, run), *_unverified(tx, run)]
        found += [*_terminals(tx, run), *_unended(tx, run), *_capacity(tx, call, run), *_stuck(tx, run)]
        found += _delegations(tx, run)
    elif caller is not None and host is not None and caller.membership.role is MembershipRole.MEMBER:
        found += _reviews(tx, run, lambda owner: owner == host.id)
    if caller is not None:
        found += [*_verifications(tx, run, caller.membership.id), *_mail(tx, caller.membership.id, run)]
    elif host is not None and hosts:
        found += _mail(tx, host.id, run)
    seen = facts.acknowledged(tx, run.id, call.actor)
    return sorted((item for item in found if item.key not in seen), key=lambda item: (item.since, item.key))


def _item(sort: str, *, since: int, **facts: object) -> Attention:
    said, facts = SAID[sort], {"since": since, **facts}
    return Attention(
        key=said.key.format(**facts),
        kind=said.kind,
        about=said.about.format(**facts),
        what=said.what.format(**facts),
        lifted_by=said.lifted_by.format(**facts),
        since=UnixMs(since),
    )


def _reviews(tx: Tx, run: TeamRun, accepts: Callable[[MembershipId], bool]) -> list[Attention]:
    """The Host decides about its members' Works, any member about the Host's; with a verdict it is another incident."""
    found: list[Attention] = []
    for work, receipt, title, since, owner, name, verifier, outcome, reason in facts.in_review(tx, run.id):
        if accepts(owner):
            said = (
                f"; {verifier} verified it, {outcome}: {reason[:200]}" if outcome else f"; {verifier} is to verify it"
            )
            facts_of = {"verified": said if verifier else "", "verdict": f"/{outcome}" if outcome else ""}
            found.append(_item("review", since=since, work=work, receipt=receipt, name=name, title=title, **facts_of))
    return found


def _verifications(tx: Tx, run: TeamRun, verifier: MembershipId) -> list[Attention]:
    """What a verifier is asked for: not before every named check passed."""
    found: list[Attention] = []
    for work in verdicts.asked_of(tx, run.id, verifier):
        assert work.receipt_id is not None, "nothing is in review without one"
        results = attempts.results(tx, work.receipt_id)
        if isinstance(checks_passed(work, results), Refusal):
            continue
        revision, submitted = attempts.revision(tx, work.receipt_id), attempts.submitted_at(tx, work.receipt_id)
        item = _item(
            "verify",
            since=max([submitted, *(result.at for result in results.values())]),
            work=work.id,
            version=work.version,
            receipt=work.receipt_id,
            title=work.title,
            looked_at=f"commit {revision}" if revision else "a report, without a commit",
            revision=f" --revision {revision}" if revision else "",
        )
        found.append(item)
    return found


def _unverified(tx: Tx, run: TeamRun) -> list[Attention]:
    return [
        _item(
            "verifier",
            since=since,
            work=work,
            version=version,
            title=title,
            verifier=verifier,
            name=name,
            reason=reason,
        )
        for work, version, title, verifier, name, reason, since in verdicts.cannot_come(tx, run.id)
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
    goes_on = ", which goes on with its conversation; with --fresh it begins a new one"
    return [
        _item(
            "stopped",
            since=since,
            session=session,
            version=version,
            name=shlex.quote(name),
            reason=reason,
            resumes=goes_on if native else "",
        )
        for session, version, name, since, native, reason in facts.stopped(tx, run.id)
    ]


def _terminals(tx: Tx, run: TeamRun) -> list[Attention]:
    """Members that nothing gets through to, by what stands in the way."""
    found = [
        _item("degraded", since=since, session=session, name=shlex.quote(name), streak=streak)
        for session, name, streak, since in facts.degraded(tx, run.id)
    ]
    for effect, version, kind, state, session, name, readback, since in facts.untold(tx, run.id):
        unknown = "uninterrupted" if kind == EffectKind.INTERRUPT else "unsubmitted"
        sort = "held" if state == "settled" else unknown
        about = {"effect": effect, "version": version, "session": session, "name": shlex.quote(name)}
        found.append(_item(sort, since=since, readback=readback, **about))
    return found


def _unended(tx: Tx, run: TeamRun) -> list[Attention]:
    """Members whose end was asked for and is not proven. A run that completes does not go on before that."""
    then = "; the run completes after that" if run.completing else ""
    return [
        _item(
            "unended" if state == "settled" else "unread",
            since=since,
            effect=effect,
            version=version,
            session=session,
            name=shlex.quote(name),
            readback=readback,
            then=then,
        )
        for effect, version, state, session, name, readback, since in facts.unended(tx, run.id)
    ]


def _capacity(tx: Tx, call: Call, run: TeamRun) -> list[Attention]:
    """Only while it counts: what is older says nothing."""
    rows = facts.without_capacity(tx, run.id, since=call.now - FRESH_MS + 1, now=call.now)
    return [
        _item(
            "capacity",
            since=since,
            session=session,
            name=shlex.quote(name),
            capacity=capacity,
            source=source,
            minutes=FRESH_MS // 60_000,
        )
        for session, name, capacity, source, since in rows
    ]


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
