"""For every operation of a run what asks for it and is answered: the other half of ``samples``."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from client.protocol.board import AcknowledgeAttention, ListAttention, ListDue, ShowBoard, ShowSummary
from client.protocol.delegation import ListDelegations
from client.protocol.effect import (
    Certainty,
    CloseSession,
    EffectFinding,
    InterruptSession,
    ListEffects,
    ResolveEffect,
    ShowEffect,
    ShowTerminal,
    ShowWords,
    StepIn,
)
from client.protocol.ids import AgentMemberRef, Folder, TeamRef, TeamRunId
from client.protocol.message import (
    AcknowledgeMail,
    AnswerInteraction,
    AskInteraction,
    ClaimMail,
    ListMessages,
    MailCause,
    ReceiveMail,
    ReplyMessage,
    RespondMail,
    Response,
    SendMessage,
    ShowInbox,
    ShowMessage,
)
from client.protocol.operation import Request
from client.protocol.session import (
    BindSession,
    DeriveToken,
    ListSessions,
    OpenSession,
    ReportSession,
    SessionCause,
    SetClaims,
    ShowSession,
    UnbindSession,
)
from client.protocol.team_run import (
    AddMemberRun,
    CancelTeamRun,
    CloseMemberRun,
    CompleteTeamRun,
    CreateTeamRun,
    DrainTeamRun,
    FinishTeamRun,
    ListTeamRuns,
    PurgeTeamRun,
    RenewTeamRun,
    ReopenMemberRun,
    ResumeTeamRun,
    RetireMemberRun,
    ShowTeamRun,
    StartTeamRun,
    TakeTeamRun,
)
from client.protocol.work_asks import CreateWork, DrawWorks, ListWorks
from client.protocol.workspace import ArchiveWorkspace, ListWorkspaces
from tests.support import delegations, effects, mail, profiled, scene
from tests.support.node import InProcessNode
from tests.support.run import Stage, stage
from tests.support.supervised import report
from tests.support.works import VERBS, Voice, ann, blocked, bob, operator, second_run, supervisor

Asked = tuple[Voice, Request[Any]]
OnStage = Callable[[Stage], Awaitable[Asked]]


def _by(who: Callable[[Stage], Voice], make: Callable[[Stage], Request[Any]]) -> OnStage:
    """A request that needs no more than the stage."""

    async def sample(s: Stage) -> Asked:  # noqa: ASYNC124 — like those that prepare something
        return who(s), make(s)

    return sample


def _run(s: Stage) -> TeamRunId:
    return TeamRunId(s.run.id)


async def _terminal(s: Stage) -> Asked:
    own = await effects.again(s)
    await effects.begun(own)
    return ann(own), ShowTerminal(session_id=own.bob.session.id)


async def _type(s: Stage) -> Asked:
    own = await effects.again(s)
    await effects.begun(own)
    return ann(own), StepIn(session_id=own.bob.session.id)


async def _deliver(s: Stage) -> Asked:
    own, ask = await profiled.waits(s)
    return supervisor(own), ask


async def _words(s: Stage) -> Asked:
    own, ask = await profiled.waits(s)
    made = await supervisor(own).ok(ask)
    return supervisor(own), ShowWords(effect_id=made.id, sup_gen=s.sup_gen)


async def _archive(s: Stage) -> Asked:
    """Bob has worked there, and no more."""
    own = await effects.again(s)
    await supervisor(own).ok(effects.settle(own, await effects.prepared(own), Certainty.NOT_APPLIED))
    await report(own, own.bob.session, SessionCause.CLOSED)
    return operator(own), ArchiveWorkspace(path=Folder(effects.CWD))


async def _seen(s: Stage) -> Asked:
    await blocked(s)
    (item,) = (await ann(s).ok(ListAttention())).items
    return ann(s), AcknowledgeAttention(key=item.key)


async def _propose(s: Stage) -> Asked:
    other = await stage(s.node)
    return ann(s), delegations.propose(await s.owned(s.bob), other.team.id)


async def _accept(s: Stage) -> Asked:
    two = await delegations.two(s.node)
    return ann(two.their), delegations.accept(await two.proposed(), two.their)


async def _decline(s: Stage) -> Asked:
    two = await delegations.two(s.node)
    return ann(two.their), delegations.decline(await two.proposed())


async def _withdraw(s: Stage) -> Asked:
    two = await delegations.two(s.node)
    return ann(two.our), delegations.withdraw(await two.proposed())


async def _prepare(s: Stage) -> Asked:
    s = await effects.again(s)
    return supervisor(s), effects.prepare(s)


async def _started(s: Stage) -> Asked:
    s = await effects.again(s)
    return supervisor(s), effects.started(s, await effects.prepared(s))


async def _settle(s: Stage) -> Asked:
    s = await effects.again(s)
    return supervisor(s), effects.settle(s, await effects.begun(s))


async def _resolve(s: Stage) -> Asked:
    effect = await effects.unread(await effects.again(s))
    finding = EffectFinding.CONFIRM_NOT_APPLIED
    ask = ResolveEffect(effect_id=effect.id, expected_version=effect.version, finding=finding, reason="looked")
    return operator(s), ask


async def _show_effect(s: Stage) -> Asked:
    return operator(s), ShowEffect(effect_id=(await effects.prepared(await effects.again(s))).id)


async def _add(s: Stage) -> Asked:
    dan = await scene.joined(s.node, s.team, await scene.agent(s.node, "dan"))
    return ann(s), AddMemberRun(team_run_id=_run(s), membership_id=dan.id)


async def _close(s: Stage) -> Asked:
    await mail.closed(s, s.cid)
    return ann(s), CloseMemberRun(member_run_id=s.cid.place.id, expected_version=s.cid.place.version)


async def _reopen(s: Stage) -> Asked:
    host, close = await _close(s)
    closed = await host.ok(close)
    return host, ReopenMemberRun(member_run_id=closed.id, expected_version=closed.version)


async def _retire(s: Stage) -> Asked:
    await mail.closed(s, s.cid)
    return ann(s), RetireMemberRun(member_run_id=s.cid.place.id, expected_version=s.cid.place.version)


async def _acknowledge(s: Stage) -> Asked:
    sent = await mail.sent(s, s.ann, s.bob)
    return bob(s), AcknowledgeMail(delivery_id=sent.deliveries[0].id)


async def _answer(s: Stage) -> Asked:
    asked = await mail.question(s, s.bob, "red", "blue")
    return ann(s), AnswerInteraction(message_id=asked.message.id, option="red")


async def _claim(s: Stage) -> Asked:
    sent = await ann(s).ok(SendMessage(body="who can?", to_team=True))
    return bob(s), ClaimMail(delivery_id=sent.deliveries[0].id)


async def _report(s: Stage) -> Asked:
    sent = await mail.sent(s, s.ann, s.bob)
    return supervisor(s), mail.report(s, sent.deliveries[0], MailCause.FAIL, reason="no such tool")


async def _reply(s: Stage) -> Asked:
    sent = await mail.sent(s, s.ann, s.bob)
    return bob(s), ReplyMessage(causation_id=sent.message.id, body="yes")


async def _respond(s: Stage) -> Asked:
    sent = await mail.sent(s, s.ann, s.bob, response_required=True)
    await mail.taken(s, s.bob)
    return bob(s), RespondMail(delivery_id=sent.deliveries[0].id, response=Response.COMPLETED)


async def _show_message(s: Stage) -> Asked:
    return operator(s), ShowMessage(message_id=(await mail.sent(s, s.ann, s.bob)).message.id)


async def _bind(s: Stage) -> Asked:
    await mail.closed(s, s.bob)
    return operator(s), BindSession(agent_member_id=AgentMemberRef(s.bob.agent.id), pid=os.getppid())


async def _unbind(s: Stage) -> Asked:
    who, bind = await _bind(s)
    return who, UnbindSession(session_id=(await who.ok(bind)).id)


async def _open(s: Stage) -> Asked:
    await mail.closed(s, s.bob)
    return supervisor(s), OpenSession(member_run_id=s.bob.place.id, sup_gen=s.sup_gen)


def _cycle(s: Stage) -> Request[Any]:
    session = s.bob.session
    return ReportSession(
        session_id=session.id, session_gen=session.session_gen, sup_gen=s.sup_gen, cause=SessionCause.CYCLE_STARTED
    )


async def _cancel(s: Stage) -> Asked:
    run = await second_run(s)
    return ann(s), CancelTeamRun(team_run_id=run.id, expected_version=run.version, reason="no need")


async def _complete(s: Stage) -> Asked:
    run = await second_run(s)
    return ann(s), CompleteTeamRun(team_run_id=run.id, expected_version=run.version)


async def _purge(s: Stage) -> Asked:
    who, cancel = await _cancel(s)
    over: Any = await who.ok(cancel)
    return operator(s), PurgeTeamRun(team_run_id=over.id, expected_version=over.version, exported_seq=1_000_000)


async def _finish(s: Stage) -> Asked:
    await ann(s).ok(CompleteTeamRun(team_run_id=_run(s), expected_version=s.run.version))
    return supervisor(s), FinishTeamRun(team_run_id=_run(s), sup_gen=s.sup_gen)


async def _resume(s: Stage) -> Asked:
    run = await ann(s).ok(DrainTeamRun(team_run_id=_run(s), expected_version=s.run.version))
    return ann(s), ResumeTeamRun(team_run_id=run.id, expected_version=run.version)


async def _start(s: Stage) -> Asked:
    run = await ann(s).ok(CreateTeamRun(team_id=TeamRef(s.team.id)))
    return ann(s), StartTeamRun(team_run_id=run.id, expected_version=run.version)


def _work(verb: str) -> OnStage:
    async def sample(s: Stage) -> Asked:
        row = VERBS[verb]
        work = await row.work(s)
        return row.who(s), row.request(s, work)

    return sample


async def _retarget(s: Stage) -> Asked:
    other = await second_run(s)
    row = VERBS["retarget"]
    work = await row.work(s)
    request: Any = row.request(s, work)
    return row.who(s), type(request)(
        work_id=work.id, expected_version=work.version, successor_team_run_id=TeamRunId(other.id)
    )


ON_STAGE: Mapping[str, OnStage] = {
    **{f"work.{verb}": _work(verb) for verb in VERBS},
    "attention.ack": _seen,
    "attention.list": _by(ann, lambda _: ListAttention()),
    "delegation.accept": _accept,
    "delegation.decline": _decline,
    "delegation.list": _by(ann, lambda s: ListDelegations(team_id=TeamRef(s.team.id))),
    "delegation.propose": _propose,
    "delegation.withdraw": _withdraw,
    "effect.deliver": _deliver,
    "effect.list": _by(operator, lambda s: ListEffects(team_run_id=_run(s))),
    "effect.prepare": _prepare,
    "effect.resolve": _resolve,
    "effect.settle": _settle,
    "effect.show": _show_effect,
    "effect.started": _started,
    "effect.words": _words,
    "member-run.add": _add,
    "member-run.close": _close,
    "member-run.reopen": _reopen,
    "member-run.retire": _retire,
    "message.ack": _acknowledge,
    "message.answer": _answer,
    "message.ask": _by(bob, lambda _: AskInteraction(body="which one?")),
    "message.claim": _claim,
    "message.delivery": _report,
    "message.inbox": _by(bob, lambda _: ShowInbox()),
    "message.list": _by(bob, lambda _: ListMessages()),
    "message.receive": _by(bob, lambda _: ReceiveMail()),
    "message.reply": _reply,
    "message.respond": _respond,
    "message.send": _by(ann, lambda s: mail.to(s.bob)),
    "message.show": _show_message,
    "session.bind": _bind,
    "session.claims": _by(operator, lambda s: SetClaims(session_id=s.bob.session.id, accepts_new_claims=False)),
    "session.close": _by(ann, lambda s: CloseSession(session_id=s.cid.session.id)),
    "session.hook": profiled.hook,
    "session.interrupt": _by(ann, lambda s: InterruptSession(session_id=s.bob.session.id)),
    "session.list": _by(operator, lambda _: ListSessions()),
    "session.open": _open,
    "session.report": _by(supervisor, _cycle),
    "session.steer": profiled.steer,
    "session.terminal": _terminal,
    "session.type": _type,
    "session.show": _by(operator, lambda s: ShowSession(session_id=s.bob.session.id)),
    "session.token": _by(supervisor, lambda s: DeriveToken(session_id=s.bob.session.id, sup_gen=s.sup_gen)),
    "session.unbind": _unbind,
    "team-run.board": _by(operator, lambda s: ShowBoard(team_run_id=_run(s))),
    "team-run.board-summary": _by(operator, lambda s: ShowSummary(team_run_id=_run(s))),
    "team-run.cancel": _cancel,
    "team-run.complete": _complete,
    "team-run.create": _by(ann, lambda s: CreateTeamRun(team_id=TeamRef(s.team.id))),
    "team-run.drain": _by(ann, lambda s: DrainTeamRun(team_run_id=_run(s), expected_version=s.run.version)),
    "team-run.due": _by(supervisor, lambda s: ListDue(team_run_id=_run(s), sup_gen=s.sup_gen)),
    "team-run.finish": _finish,
    "team-run.list": _by(operator, lambda _: ListTeamRuns()),
    "team-run.purge": _purge,
    "team-run.renew": _by(supervisor, lambda s: RenewTeamRun(team_run_id=_run(s), sup_gen=s.sup_gen, lease_ms=1000)),
    "team-run.resume": _resume,
    "team-run.show": _by(operator, lambda s: ShowTeamRun(team_run_id=_run(s))),
    "team-run.start": _start,
    "team-run.take": _by(supervisor, lambda s: TakeTeamRun(team_run_id=_run(s))),
    "work.create": _by(
        operator, lambda s: CreateWork(team_run_id=_run(s), title="build it", completion_criteria="it works")
    ),
    "work.graph": _by(operator, lambda s: DrawWorks(team_run_id=_run(s))),
    "work.list": _by(operator, lambda s: ListWorks(team_run_id=_run(s))),
    "work.retarget": _retarget,
    "workspace.archive": _archive,
    "workspace.list": _by(operator, lambda _: ListWorkspaces()),
}


async def on_stage(node: InProcessNode, operation: str) -> Asked:
    return await ON_STAGE[operation](await stage(node))
