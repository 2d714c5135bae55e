"""Who asks about a Work, and for every verb a Work for which it is answered."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

import attrs

from client.protocol.attempt import (
    AdmitWork,
    DeliveryCause,
    Finding,
    HeartbeatWork,
    ListReceipts,
    RecordCheck,
    RecoverWork,
    RedeliverWork,
    ReportDelivery,
    Responsibility,
)
from client.protocol.ids import ReceiptId, TeamRef, TeamRunId
from client.protocol.operation import Plane, Request
from client.protocol.refusals import Code, Refusal
from client.protocol.session import ReportSession, SessionCause
from client.protocol.team_run import CreateTeamRun, StartTeamRun, TeamRun
from client.protocol.verdict import Verification, VerifyWork
from client.protocol.work import Work
from client.protocol.work_asks import (
    AcceptWork,
    AssignWork,
    BlockWork,
    CancelWork,
    ClaimWork,
    FailWork,
    HoldWork,
    ReleaseWork,
    ReplaceDependencies,
    RequestChanges,
    ResumeWork,
    RetargetWork,
    ShowWork,
    StartWork,
    SubmitWork,
    UnholdWork,
    UpdateWork,
)
from tests.support import refusals
from tests.support.node import Actor, InProcessNode
from tests.support.run import Member, Stage
from tests.support.spoil import mend, spoil

R = TypeVar("R")


@attrs.frozen
class Voice:
    """One caller."""

    node: InProcessNode
    plane: Plane
    actor: Actor

    async def ask(self, request: Request[R], *, key: str = "") -> R | Refusal:
        return await self.node.ask(request, plane=self.plane, actor=self.actor, key=key)

    async def ok(self, request: Request[R], *, key: str = "") -> R:
        return await self.node.ok(request, plane=self.plane, actor=self.actor, key=key)

    async def refused(self, request: Request[Any], *, key: str = "") -> Refusal:
        return await self.node.refused(request, plane=self.plane, actor=self.actor, key=key)


def operator(s: Stage) -> Voice:
    return Voice(s.node, Plane.OPERATOR, "")


def supervisor(s: Stage) -> Voice:
    return Voice(s.node, Plane.SUPERVISOR, s.run.id)


def member(s: Stage, who: Member) -> Voice:
    return Voice(s.node, Plane.HOST if who is s.ann else Plane.MEMBER, who.session)


def ann(s: Stage) -> Voice:
    """The Host."""
    return member(s, s.ann)


def bob(s: Stage) -> Voice:
    return member(s, s.bob)


def cid(s: Stage) -> Voice:
    return member(s, s.cid)


async def lost(s: Stage, who: Member) -> None:
    """The process of a session is gone, and nobody knows what it did."""
    ask = ReportSession(
        session_id=who.session.id,
        session_gen=who.session.session_gen,
        sup_gen=s.sup_gen,
        cause=SessionCause.LOST,
    )
    await supervisor(s).ok(ask)


async def held(s: Stage, work: Work) -> Work:
    return await ann(s).ok(HoldWork(work_id=work.id, expected_version=work.version, reason="wait"))


async def blocked(s: Stage) -> Work:
    """A Work of Bob's that cannot go on."""
    work = await s.started(s.bob)
    return await bob(s).ok(BlockWork(work_id=work.id, expected_version=work.version, reason="no key"))


async def orphaned(s: Stage) -> Work:
    """An active Work of Bob's whose process was lost; fence=1."""
    work = await s.started(s.bob)
    await lost(s, s.bob)
    return work


async def admitted(s: Stage) -> Work:
    """A Work of Bob's that was delivered to his session; fence=1."""
    work = await s.owned(s.bob)
    await s.admit(work, s.bob)
    return work


async def unheard(s: Stage) -> Work:
    return await held(s, await s.work())


async def cancelled(s: Stage, work: Work) -> Work:
    return await ann(s).ok(CancelWork(work_id=work.id, expected_version=work.version, reason="no need"))


async def accepted(s: Stage, work: Work) -> Work:
    """Accepted by the Host, or by Cid for a Work of the Host's."""
    assert work.receipt_id is not None
    who = cid(s) if work.owner_id == s.ann.membership.id else ann(s)
    return await who.ok(AcceptWork(work_id=work.id, expected_version=work.version, receipt_id=work.receipt_id))


async def second_run(s: Stage) -> TeamRun:
    """Another running run of the same team."""
    made = await s.node.ok(CreateTeamRun(team_id=TeamRef(s.team.id)))
    return await s.node.ok(StartTeamRun(team_run_id=made.id, expected_version=1))


@attrs.frozen
class Verb:
    """Who asks it, of what Work, and how. What has no ``expected_version`` changes no Work."""

    who: Callable[[Stage], Voice]
    work: Callable[[Stage], Awaitable[Work]]
    request: Callable[[Stage, Work], Request[Any]]


def _of(kind: Callable[..., Request[Any]], **fields: object) -> Callable[[Stage, Work], Request[Any]]:
    return lambda _, work: kind(work_id=work.id, expected_version=work.version, **fields)


def _sup(kind: Callable[..., Request[Any]], **fields: object) -> Callable[[Stage, Work], Request[Any]]:
    return lambda s, work: kind(work_id=work.id, sup_gen=s.sup_gen, **fields)


def _accept(_: Stage, work: Work) -> Request[Any]:
    receipt = work.receipt_id or ReceiptId("rr-0")
    return AcceptWork(work_id=work.id, expected_version=work.version, receipt_id=receipt)


def _check(s: Stage, work: Work) -> Request[Any]:
    receipt = work.receipt_id or ReceiptId("rr-0")
    return RecordCheck(work_id=work.id, receipt_id=receipt, sup_gen=s.sup_gen, line="unit=make unit", passed=True)


def _verify(_: Stage, work: Work) -> Request[Any]:
    receipt = work.receipt_id or ReceiptId("rr-0")
    return VerifyWork(
        work_id=work.id,
        expected_version=work.version,
        receipt_id=receipt,
        outcome=Verification.PASSED,
        reason="tried it",
    )


_recover = _of(
    RecoverWork,
    fence=1,
    finding=Finding.NO_SIDE_EFFECTS,
    responsibility=Responsibility.KEEP,
    reason="looked",
)

#: Every verb about one Work that exists.
VERBS: Mapping[str, Verb] = {
    "accept": Verb(ann, lambda s: s.submitted(s.bob), _accept),
    "admit": Verb(
        supervisor, lambda s: s.owned(s.bob), lambda s, work: _sup(AdmitWork, session_id=s.bob.session.id)(s, work)
    ),
    "assign": Verb(ann, lambda s: s.work(), lambda s, w: _of(AssignWork, membership_id=s.bob.membership.id)(s, w)),
    "block": Verb(bob, lambda s: s.started(s.bob), _of(BlockWork, reason="no key")),
    "cancel": Verb(ann, lambda s: s.work(), _of(CancelWork, reason="no need")),
    "check": Verb(supervisor, lambda s: s.submitted(s.bob, checks=["unit=make unit"]), _check),
    "claim": Verb(bob, lambda s: s.work(), _of(ClaimWork)),
    "delivery": Verb(supervisor, admitted, _sup(ReportDelivery, fence=1, cause=DeliveryCause.TAKEN)),
    "fail": Verb(ann, lambda s: s.work(), _of(FailWork, reason="impossible")),
    "heartbeat": Verb(bob, admitted, lambda _, work: HeartbeatWork(work_id=work.id)),
    "hold": Verb(ann, lambda s: s.work(), _of(HoldWork, reason="wait")),
    "receipts": Verb(operator, lambda s: s.submitted(s.bob), lambda _, work: ListReceipts(work_id=work.id)),
    "recover": Verb(operator, orphaned, _recover),
    "redeliver": Verb(operator, lambda s: s.owned(s.bob), _of(RedeliverWork)),
    "release": Verb(bob, lambda s: s.owned(s.bob), _of(ReleaseWork)),
    "replace-dependencies": Verb(ann, lambda s: s.work(), _of(ReplaceDependencies)),
    "request-changes": Verb(ann, lambda s: s.submitted(s.bob), _of(RequestChanges, reason="too slow")),
    "resume": Verb(bob, blocked, _of(ResumeWork, resolution="found it")),
    "retarget": Verb(
        operator, lambda s: s.work(), lambda s, w: _of(RetargetWork, successor_team_run_id=TeamRunId(s.run.id))(s, w)
    ),
    "show": Verb(operator, lambda s: s.work(), lambda _, work: ShowWork(work_id=work.id)),
    "start": Verb(bob, admitted, _of(StartWork)),
    "submit": Verb(bob, lambda s: s.started(s.bob), _of(SubmitWork, result_summary="done", report_only=True)),
    "unhold": Verb(ann, unheard, _of(UnholdWork)),
    "update": Verb(ann, lambda s: s.work(), _of(UpdateWork, context="more")),
    "verify": Verb(cid, lambda s: s.submitted(s.bob, verifier_id=s.cid.membership.id), _verify),
}


async def not_found(s: Stage, name: str) -> None:
    """Of a Work that does not exist."""
    verb = VERBS[name]
    request: Any = verb.request(s, await verb.work(s))
    refusal = await verb.who(s).refused(attrs.evolve(request, work_id="nothing"))
    assert refusal == refusals.not_found("work", "nothing")


async def conflict(s: Stage, name: str) -> None:
    """Of a version that was, and of one that may come."""
    verb = VERBS[name]
    work = await verb.work(s)
    request: Any = verb.request(s, work)
    for version in {max(1, work.version - 1), work.version + 1} - {work.version}:
        refusal = await verb.who(s).refused(attrs.evolve(request, expected_version=version))
        assert refusal == refusals.conflict(f"work/{work.id}", work.version)


async def quarantined(s: Stage, name: str) -> None:
    """Of a Work whose row does not decode; asked again once that was lifted, it is answered."""
    verb = VERBS[name]
    work = await verb.work(s)
    request = verb.request(s, work)
    was = spoil(s.node.store.path, "works", work.id)
    refusal = await verb.who(s).refused(request)
    assert refusal == refusals.unreadable(f"works/{work.id}")
    mend(s.node.store.path, "works", work.id, was)
    assert not isinstance(await s.node.follow(refusal), Refusal)
    await verb.who(s).ok(request)


async def on_hold(s: Stage, name: str) -> None:
    """Of a Work on hold. Its Host does what is advised, and the same is answered."""
    verb = VERBS[name]
    work = await held(s, await verb.work(s))
    refusal = await verb.who(s).refused(verb.request(s, work))
    command = f"firm work unhold {work.id} --expected-version {work.version}"
    assert refusal == Refusal(
        code=Code.WORK_ON_HOLD, about=f"work/{work.id}", lifted_by=f"its Host takes it off hold: {command}"
    )
    off = await ann(s).ok(UnholdWork(work_id=work.id, expected_version=work.version))
    await verb.who(s).ok(verb.request(s, off))


async def no_move(s: Stage, name: str, work: Work, good: str) -> None:
    """Of a Work that stands where the verb is not possible."""
    verb = VERBS[name]
    refusal = await verb.who(s).refused(verb.request(s, work))
    standing = f"{work.phase.value} and {work.condition.value}"
    assert refusal == refusals.no_move(f"work/{work.id}", standing, good)


async def unclear(s: Stage, name: str) -> None:
    """With no Work named, while none or two are delivered to the caller."""
    verb = VERBS[name]
    request: Any = verb.request(s, await s.work("other"))
    refusal = await bob(s).refused(attrs.evolve(request, work_id=""))
    said = "say which one with --work-id: none is delivered to this session; see firm work list"
    assert refusal == Refusal(code=Code.WORK_UNCLEAR, about="work_id", lifted_by=said)


async def fenced(s: Stage, request: Request[Any]) -> None:
    """Of a supervisor of another generation than the one that holds the run."""
    refusal = await supervisor(s).refused(request)
    sup_gen = getattr(request, "sup_gen", None)
    said = f"sup_gen={s.sup_gen} holds this run; a supervisor of sup_gen={sup_gen} stops"
    assert refusal == Refusal(code=Code.SUPERVISOR_GENERATION_FENCED, about=f"team-run/{s.run.id}", lifted_by=said)
