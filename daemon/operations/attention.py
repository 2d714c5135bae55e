"""Handlers for attention: what somebody has to look at, recomputed at every question."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from typing import Any

import attrs

from client.protocol.board import AcknowledgeAttention, Attention, AttentionKind, AttentionList, ListAttention
from client.protocol.ids import MembershipId, UnixMs, WorkId
from client.protocol.membership import MembershipRole
from client.protocol.operation import Plane
from client.protocol.refusals import Refusal
from client.protocol.team_run import TeamRun
from daemon.call import Call
from daemon.kernel.verdict import checks_passed
from daemon.operations import actor, find
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
        found += [*_terminals(tx, run), *_unended(tx, run), *_stuck(tx, run), *_delegations(tx, run)]
    elif caller is not None and host is not None and caller.membership.role is MembershipRole.MEMBER:
        found += _reviews(tx, run, lambda owner: owner == host.id)
    if caller is not None:
        found += [*_verifications(tx, run, caller.membership.id), *_mail(tx, caller.membership.id, run)]
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
        "review/{work}/{receipt}{verdict}",
        "work/{work}",
        "{name} submitted {title!r}{verified}",
        "look at it, then accept it or request changes: firm work show --work-id {work}",
    ),
    "verify": _Words(
        AttentionKind.VERIFY,
        "verify/{work}/{receipt}",
        "work/{work}",
        "you are to say whether the submission of {title!r} holds: {looked_at}",
        "look at exactly that, then say what you found: firm member work verify {work} --expected-version {version} "
        "--receipt-id {receipt}{revision} --outcome passed --reason TEXT, or --outcome failed",
    ),
    "verifier": _Words(
        AttentionKind.VERIFIER,
        "verifier/{work}/{verifier}",
        "work/{work}",
        "{name} cannot say whether a submission of {title!r} holds: {reason}",
        "name another verifier, or none: "
        "firm work update {work} --expected-version {version} --verifier-id MEMBERSHIP, or "
        "firm work update {work} --expected-version {version} --remove-verifier",
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
        "see what it left behind: firm work show --work-id {work}; then say what you found: firm recover {work}",
    ),
    "stopped": _Words(
        AttentionKind.STOPPED,
        "stopped/{session}/{version}",
        "session/{session}",
        "{name} has no process: {reason}",
        "it is tried again a few times; mend what stands in the way, then: firm session close {session}, and "
        "firm reopen {name}{resumes}",
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
    "unended": _Words(
        AttentionKind.NOT_ENDED,
        "unended/{effect}",
        "session/{session}",
        "{name} was to end and has not: {readback}{then}",
        "see what is left and end it, then ask for it again: firm session close {session}",
    ),
    "unread": _Words(
        AttentionKind.NOT_ENDED,
        "unread/{effect}",
        "effect/{effect}",
        "whether the process of {name} has ended is not known: {readback}{then}",
        "look: firm logs {name}; then say what you found: firm effect resolve {effect} --expected-version {version} "
        "--finding confirm_applied --reason TEXT, or with confirm_not_applied, after which it can be ended again",
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
    for effect, version, state, session, name, readback, since in facts.untold(tx, run.id):
        sort = "held" if state == "settled" else "unsubmitted"
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
