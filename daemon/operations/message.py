"""Handlers for ``message.*``. None of them changes a Work."""

from __future__ import annotations

import hashlib
from typing import Any

import attrs

from client.protocol.ids import CorrelationId, MembershipId, MessageDeliveryId, MessageId, TeamRunId, UnixMs, new_id
from client.protocol.membership import MembershipState, SubscriptionSource, TeamMembership
from client.protocol.message import (
    AddressKind,
    AnswerInteraction,
    AskInteraction,
    Intent,
    ListMessages,
    MailState,
    Message,
    MessageDelivery,
    MessageKind,
    MessagePage,
    MessageShown,
    ReplyMessage,
    Response,
    SendMessage,
    Sent,
    ShowMessage,
)
from client.protocol.operation import Plane
from client.protocol.refusals import Code, Refusal
from client.protocol.team_run import MemberRun, TeamRun
from daemon.call import Call
from daemon.kernel import cursor
from daemon.kernel.message import MOST_QUEUED, answer, causation, is_for, unknown_recipient
from daemon.kernel.team_run import goes_on
from daemon.operations import actor, find, mail
from store import membership as memberships
from store import message as messages
from store.agent import AGENTS
from store.membership import MEMBERSHIPS
from store.message import MAIL
from store.tx import Tx


@attrs.frozen
class _To:
    """One recipient of a message on admission."""

    membership: TeamMembership | None
    role: str = ""
    number: int = 0


@attrs.frozen
class _From:
    """Who speaks, and in which run."""

    run: TeamRun
    sender: TeamMembership


def _from(tx: Tx, call: Call, run_id: TeamRunId) -> _From | Refusal:
    """The calling member, in its own run only; or the person who is the Host, in any run of the team."""
    run, caller = actor.run(tx, call, run_id), actor.actor(tx, call)
    if isinstance(run, Refusal):
        return run
    if caller is not None:
        own = caller.place.team_run_id == run.id
        return _From(run, caller.membership) if own else find.not_found("team-run", run_id)
    host = memberships.host(tx, run.team_id)
    if refusal := actor.may_host(tx, call, run.team_id):
        return refusal
    assert host is not None, "who may host is the Host"
    return _From(run, host)


def may_send(tx: Tx, call: Call, ask: SendMessage) -> Refusal | None:
    found = _from(tx, call, ask.team_run_id)
    return found if isinstance(found, Refusal) else None


def send(tx: Tx, call: Call, ask: SendMessage) -> Sent | Refusal:
    found = _from(tx, call, ask.team_run_id)
    if isinstance(found, Refusal):
        return found
    to = _addressed(tx, found.run, ask)
    if isinstance(to, Refusal):
        return to
    kind = MessageKind.REQUEST_DECISION if ask.request_decision else MessageKind.MESSAGE
    needed = ask.response_required or ask.request_decision
    draft: dict[str, Any] = {
        "kind": kind,
        "intent": Intent.RESPONSE_REQUIRED if needed else Intent.INFORMATIONAL,
        "body": ask.body,
        "correlation_id": ask.correlation_id,
        "causation_id": ask.causation_id,
        "work_id": ask.work_id,
        "evidence_refs": ask.evidence_refs,
        "expires_at": UnixMs(call.now + ask.expires_in_ms) if ask.expires_in_ms else None,
    }
    return _admit(tx, call, found, to, draft)


def _addressed(tx: Tx, run: TeamRun, ask: SendMessage) -> list[_To] | Refusal:
    if bool(ask.recipients) + ask.to_team + bool(ask.to_role) != 1 or (ask.to_number and not ask.to_role):
        lifted_by = "address it one way: to members by name or id, to a role or one instance of it, or to the team"
        return Refusal(code=Code.RECIPIENT_UNKNOWN, about="recipients", lifted_by=lifted_by)
    if ask.to_team:
        return [_To(None)]
    if ask.to_role:
        return [_for_role(tx, run, ask.to_role, ask.to_number)]
    found: dict[str, _To] = {}
    for named in ask.recipients:
        membership = _member(tx, run, named)
        if isinstance(membership, Refusal):
            return membership
        found[membership.id] = _To(membership)
    return list(found.values())


def _for_role(tx: Tx, run: TeamRun, role: str, number: int) -> _To:
    """A role instance, or an honest wait for one that does not exist yet."""
    fits = [place for place in mail.instances(tx, run.id, role) if number in {0, place.number}]
    only = fits[0] if len(fits) == 1 else None
    return _To(MEMBERSHIPS.load(tx, only.membership_id) if only else None, role, number)


def _member(tx: Tx, run: TeamRun, named: str) -> TeamMembership | Refusal:
    """An active member of the run's team, by membership id, member id or a name that fits one."""
    known: dict[str, TeamMembership] = {}
    fits: list[TeamMembership] = []
    for membership in memberships.open_of_team(tx, run.team_id):
        agent = AGENTS.load(tx, membership.agent_member_id)
        if membership.state is not MembershipState.ACTIVE or agent is None:
            continue
        known[agent.name] = membership
        if named in {membership.id, membership.agent_member_id}:
            return membership
        if agent.name == named:
            fits.append(membership)
    if len(fits) == 1:
        return fits[0]
    if fits:
        lifted_by = f"say which one by id: {' or '.join(m.id for m in fits)}"
        return Refusal(code=Code.NAME_AMBIGUOUS, about=f"recipient/{named}", lifted_by=lifted_by)
    return unknown_recipient(named, known, run.id)


def _admit(tx: Tx, call: Call, by: _From, to: list[_To], draft: dict[str, Any]) -> Sent | Refusal:
    """Write the message and one delivery a recipient, in this one transaction."""
    run = by.run
    if refusal := goes_on(run):
        return refusal
    correlation = _conversation(tx, run, draft["causation_id"], draft["correlation_id"])
    if isinstance(correlation, Refusal):
        return correlation
    if draft["work_id"] is not None:
        work = actor.work(tx, call, draft["work_id"])
        if isinstance(work, Refusal):
            return work
    for each in to:
        if refusal := _full(tx, run, each):
            return refusal
    first = to[0]
    address = AddressKind.ROLE if first.role else AddressKind.MEMBER if first.membership else AddressKind.TEAM
    fields: dict[str, Any] = {**draft, "correlation_id": correlation}
    message = Message(
        id=MessageId(new_id()),
        team_id=run.team_id,
        team_run_id=run.id,
        sender_id=by.sender.id,
        sender_agent_id=by.sender.agent_member_id,
        address=address,
        digest=hashlib.sha256(draft["body"].encode()).hexdigest(),
        options=fields.pop("options", []),
        created_at=call.now,
        **fields,
    )
    messages.keep(tx, message)
    return Sent(message=message, deliveries=[_deliver_to(tx, call, message, each) for each in to])


def _full(tx: Tx, run: TeamRun, to: _To) -> Refusal | None:
    """Why no more mail may wait for this recipient, or None."""
    if to.membership is not None:
        waits, about = messages.queued(tx, to.membership.id), f"membership/{to.membership.id}"
    else:
        waits = messages.queued_for(tx, run.id, to.role, to.number)
        about = f"role/{to.role}" if to.role else f"team/{run.team_id}"
    if waits < MOST_QUEUED:
        return None
    lifted_by = f"let what waits be read first: at most {MOST_QUEUED} messages wait for one recipient"
    return Refusal(code=Code.QUEUE_FULL, about=about, lifted_by=lifted_by)


def _conversation(
    tx: Tx, run: TeamRun, cause: MessageId | None, named: CorrelationId | None
) -> CorrelationId | Refusal:
    if cause is not None:
        found = messages.load(tx, cause)
        refusal = causation(found, cause, run.id, named)
        assert refusal is not None or found is not None, "causation refuses what does not exist"
        return refusal or (found.correlation_id if found else CorrelationId(""))
    if named is not None and not messages.correlated(tx, run.id, named):
        lifted_by = "leave it out to begin a conversation, or name one of this run"
        return Refusal(code=Code.CAUSATION_INVALID, about=f"correlation/{named}", lifted_by=lifted_by)
    return named or CorrelationId(new_id())


def _deliver_to(tx: Tx, call: Call, message: Message, to: _To) -> MessageDelivery:
    to_id = to.membership.id if to.membership else None
    delivery = MessageDelivery(
        id=MessageDeliveryId(new_id()),
        version=1,
        message_id=message.id,
        team_run_id=message.team_run_id,
        recipient_id=to_id,
        role=to.role,
        number=to.number,
        subscription_id=mail.subscription(tx, to_id, SubscriptionSource.AGENT) if to_id else None,
        session_id=None,
        state=MailState.QUEUED,
        failures=0,
        reason="",
        response=Response.NONE,
        told=False,
        expires_at=message.expires_at,
        created_at=call.now,
        updated_at=call.now,
    )
    return MAIL.insert(tx, delivery, kind="queued", actor=call.actor, at=call.now)


def _following(tx: Tx, call: Call, message_id: MessageId) -> tuple[Message, _From] | Refusal:
    """A message that the caller sees, and itself as a speaker in that run."""
    cause = visible(tx, call, message_id)
    if isinstance(cause, Refusal):
        return cause
    found = _from(tx, call, cause.team_run_id)
    return found if isinstance(found, Refusal) else (cause, found)


def may_reply(tx: Tx, call: Call, ask: ReplyMessage) -> Refusal | None:
    found = _following(tx, call, ask.causation_id)
    return found if isinstance(found, Refusal) else None


def reply(tx: Tx, call: Call, ask: ReplyMessage) -> Sent | Refusal:
    found = _following(tx, call, ask.causation_id)
    if isinstance(found, Refusal):
        return found
    cause, by = found
    draft: dict[str, Any] = {
        "kind": MessageKind.REPLY,
        "intent": Intent.RESPONSE_REQUIRED if ask.response_required else Intent.INFORMATIONAL,
        "body": ask.body,
        "correlation_id": ask.correlation_id,
        "causation_id": cause.id,
        "work_id": cause.work_id,
        "evidence_refs": ask.evidence_refs,
        "expires_at": None,
    }
    return _to_one(tx, call, by, cause.sender_id, draft)


def _to_one(tx: Tx, call: Call, by: _From, to: MembershipId, draft: dict[str, Any]) -> Sent | Refusal:
    """To one member. One that is leaving takes no new mail, but for the answer to a question it still has."""
    recipient = MEMBERSHIPS.load(tx, to)
    answered = draft["kind"] is MessageKind.INTERACTION_RESPONSE
    states = {MembershipState.ACTIVE, *([MembershipState.LEAVING] if answered else [])}
    if recipient is None or recipient.state not in states:
        return unknown_recipient(to, [], by.run.id)
    sent = _admit(tx, call, by, [_To(recipient)], draft)
    if isinstance(sent, Sent):
        mail.answered(tx, call, sent.message)
    return sent


def ask_interaction(tx: Tx, call: Call, ask: AskInteraction) -> Sent | Refusal:
    caller = actor.actor(tx, call)
    assert caller is not None, "only members have this operation"
    by = _from(tx, call, caller.place.team_run_id)
    if isinstance(by, Refusal):
        return by
    host = memberships.host(tx, by.run.team_id)
    if host is None or host.id == caller.membership.id:
        lifted_by = "a question goes to the Host, who asks members in a message: firm message send BODY --recipient WHO"
        return Refusal(code=Code.RECIPIENT_UNKNOWN, about="recipient/host", lifted_by=lifted_by)
    draft: dict[str, Any] = {
        "kind": MessageKind.INTERACTION_REQUEST,
        "intent": Intent.RESPONSE_REQUIRED,
        "body": ask.body,
        "options": [option for option in dict.fromkeys(ask.options) if option.strip()],
        "correlation_id": None,
        "causation_id": None,
        "work_id": ask.work_id,
        "evidence_refs": [],
        "expires_at": None,
    }
    return _to_one(tx, call, by, host.id, draft)


def may_answer(tx: Tx, call: Call, ask: AnswerInteraction) -> Refusal | None:
    """Who was asked, and nobody else."""
    found = _following(tx, call, ask.message_id)
    if isinstance(found, Refusal):
        return found
    question, by = found
    asked = any(d.recipient_id == by.sender.id for d in messages.deliveries(tx, question.id))
    return None if asked else find.not_found("message", question.id)


def answer_interaction(tx: Tx, call: Call, ask: AnswerInteraction) -> Sent | Refusal:
    found = _following(tx, call, ask.message_id)
    if isinstance(found, Refusal):
        return found
    question, by = found
    about = f"message/{question.id}"
    if question.kind is not MessageKind.INTERACTION_REQUEST:
        lifted_by = f"it takes replies: firm message reply {question.id} --body TEXT"
        return Refusal(code=Code.ANSWER_INVALID, about=about, lifted_by=lifted_by)
    if earlier := messages.answer_of(tx, question.id):
        lifted_by = f"another answer came first: firm message show {earlier}"
        return Refusal(code=Code.ANSWERED_ALREADY, about=about, lifted_by=lifted_by)
    if refusal := goes_on(by.run) or _cancelled(tx, question):
        return refusal
    body = answer(question, ask.option, ask.response_text)
    if isinstance(body, Refusal):
        return body
    draft: dict[str, Any] = {
        "kind": MessageKind.INTERACTION_RESPONSE,
        "intent": Intent.RESPONSE_REQUIRED,
        "body": body,
        "correlation_id": None,
        "causation_id": question.id,
        "work_id": question.work_id,
        "evidence_refs": [],
        "expires_at": None,
    }
    return _to_one(tx, call, by, question.sender_id, draft)


def _cancelled(tx: Tx, question: Message) -> Refusal | None:
    """Why nobody waits for the answer any more, or None."""
    found = messages.deliveries(tx, question.id)
    gone = next((d for d in found if d.state is MailState.INVALIDATED or d.response is Response.REJECTED), None)
    if gone is None:
        return None
    lifted_by = f"nobody waits for it: {gone.reason or 'it was rejected'}; write to its member: firm message send TEXT"
    return Refusal(code=Code.ANSWER_INVALID, about=f"message/{question.id}", lifted_by=lifted_by)


def visible(tx: Tx, call: Call, message_id: MessageId) -> Message | Refusal:
    """A message for its participants, the Host and the operator; for everybody else it does not exist."""
    message = messages.load(tx, message_id)
    if message is None or not actor.sees_team(tx, call, message.team_id):
        return find.not_found("message", message_id)
    if call.plane in {Plane.OPERATOR, Plane.SUPERVISOR} or actor.may_host(tx, call, message.team_id) is None:
        return message
    caller = actor.actor(tx, call)
    assert caller is not None, "the other planes are sessions"
    sees = message.sender_id == caller.membership.id or _sent_to(tx, message, caller.place)
    return message if sees else find.not_found("message", message_id)


def _sent_to(tx: Tx, message: Message, place: MemberRun) -> bool:
    """Whether the holder of that place was sent the message, or could still take it."""
    here = message.team_run_id == place.team_run_id
    return any(
        d.recipient_id == place.membership_id or (here and d.recipient_id is None and is_for(d.role, d.number, place))
        for d in messages.deliveries(tx, message.id)
    )


def show(tx: Tx, call: Call, ask: ShowMessage) -> MessageShown | Refusal:
    message = visible(tx, call, ask.message_id)
    if isinstance(message, Refusal):
        return message
    return MessageShown(message=message, deliveries=messages.deliveries(tx, message.id))


def list_(tx: Tx, call: Call, ask: ListMessages) -> MessagePage | Refusal:
    run = actor.run(tx, call, ask.team_run_id)
    if isinstance(run, Refusal):
        return run
    everything = call.plane in {Plane.OPERATOR, Plane.SUPERVISOR} or actor.may_host(tx, call, run.team_id) is None
    caller = actor.actor(tx, call)
    seen_by = caller.place if caller is not None and not everything else None
    if seen_by is not None and seen_by.team_run_id != run.id:
        return find.not_found("team-run", ask.team_run_id)
    query = ("message.list", run.id, ask.correlation_id, seen_by and seen_by.id)
    after = cursor.read(ask.cursor, call.store_id, *query)
    if isinstance(after, Refusal):
        return after
    items, last = messages.list_page(
        tx, run.id, correlation_id=ask.correlation_id, seen_by=seen_by, after=after, limit=ask.limit
    )
    return MessagePage(items=items, next=cursor.write(last, call.store_id, *query) if last else None)
