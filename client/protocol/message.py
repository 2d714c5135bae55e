"""Messages: conversation only, never a change of Work. Records, requests and rows."""

from __future__ import annotations

import enum
from typing import Annotated

import attrs

from client.protocol.ids import (
    OWN_RUN,
    AgentMemberId,
    CorrelationId,
    MembershipId,
    MessageDeliveryId,
    MessageId,
    SessionId,
    SubscriptionId,
    TeamId,
    TeamRunId,
    UnixMs,
    WorkId,
)
from client.protocol.operation import MEMBER_OR_ABOVE, MEMBERS, READERS, SUPERVISOR, Effect, Operation, Request
from client.protocol.refusals import Code
from client.protocol.shape import ID, LABEL, OPTIONAL_ID, PAGE, VERSION, WORDS, Bounds

#: A body, in characters; large content is given as a reference.
BODY = Bounds(least=1, most=32 * 1024)
#: How long a message may wait at most before it expires: a year.
LONGEST = 366 * 86_400_000


class MessageKind(enum.StrEnum):
    """An interaction request takes exactly one answer; a decision is asked for in words."""

    MESSAGE = "message"
    REPLY = "reply"
    REQUEST_DECISION = "request_decision"
    INTERACTION_REQUEST = "interaction_request"
    INTERACTION_RESPONSE = "interaction_response"


class Intent(enum.StrEnum):
    """Informational mail starts no cycle by itself."""

    INFORMATIONAL = "informational"
    RESPONSE_REQUIRED = "response_required"


class AddressKind(enum.StrEnum):
    MEMBER = "member"
    ROLE = "role"
    TEAM = "team"


@attrs.frozen(kw_only=True)
class Message:
    """Immutable. The sender is who the server says it is; ``digest`` is the SHA-256 of the body's UTF-8."""

    id: MessageId
    team_id: TeamId
    team_run_id: TeamRunId
    sender_id: MembershipId
    sender_agent_id: AgentMemberId
    kind: MessageKind
    intent: Intent
    address: AddressKind
    body: str
    digest: str
    options: list[str]
    correlation_id: CorrelationId
    causation_id: MessageId | None
    work_id: WorkId | None
    evidence_refs: list[str]
    expires_at: UnixMs | None
    created_at: UnixMs


class MailState(enum.StrEnum):
    """Transport only: acknowledged mail has been seen, which is not an answer."""

    QUEUED = "queued"
    ROUTED = "routed"
    CLAIMED = "claimed"
    PROVIDER_RECEIVED = "provider_received"
    ACKNOWLEDGED = "acknowledged"
    FAILED = "failed"
    EXPIRED = "expired"
    INVALIDATED = "invalidated"


class MailCause(enum.StrEnum):
    """What moves a delivery."""

    ROUTE = "routed"
    CLAIM = "claimed"
    RECEIVE = "received"
    ACKNOWLEDGE = "acknowledged"
    FAIL = "failed"
    EXPIRE = "expired"
    INVALIDATE = "invalidated"


class Response(enum.StrEnum):
    """The recipient's answer in one word, given once; it changes no Work."""

    NONE = "none"
    COMPLETED = "completed"
    REJECTED = "rejected"


@attrs.frozen(kw_only=True)
class MessageDelivery:
    """One message to one recipient. Mail to a team or to a role without an instance has none until it is taken."""

    id: MessageDeliveryId
    version: int
    message_id: MessageId
    team_run_id: TeamRunId
    recipient_id: MembershipId | None
    role: str
    number: int
    subscription_id: SubscriptionId | None
    session_id: SessionId | None
    state: MailState
    failures: int
    reason: str
    response: Response
    told: bool
    expires_at: UnixMs | None
    created_at: UnixMs
    updated_at: UnixMs


@attrs.frozen(kw_only=True)
class Sent:
    """A message as admitted, with one delivery a recipient."""

    message: Message
    deliveries: list[MessageDelivery]


@attrs.frozen(kw_only=True)
class Mail:
    """One delivery as its recipient sees it."""

    delivery: MessageDelivery
    sender: str
    message: Message


@attrs.frozen(kw_only=True)
class Inbox:
    """``mail`` is for the caller; ``undelivered`` is its own mail that will not arrive, told until acknowledged."""

    items: list[Mail]
    undelivered: list[Mail]
    next: str | None


@attrs.frozen(kw_only=True)
class Received:
    items: list[Mail]


@attrs.frozen(kw_only=True)
class MessagePage:
    items: list[Message]
    next: str | None


@attrs.frozen(kw_only=True)
class MessageShown:
    message: Message
    deliveries: list[MessageDelivery]


@attrs.frozen(kw_only=True)
class SendMessage(Request[Sent]):
    """Send a message to members, to a role instance or to the whole team of a run."""

    team_run_id: Annotated[TeamRunId, "the run; the caller's own when empty", OPTIONAL_ID] = OWN_RUN
    body: Annotated[str, "what to say, as Markdown", BODY]
    recipients: Annotated[list[str], "members of the team, by membership id, member id or unique name", WORDS] = (
        attrs.Factory(list)
    )
    to_team: Annotated[bool, "to the team: one member takes it"] = False
    to_role: Annotated[str, "to this role; with to_number to one instance of it", LABEL] = ""
    to_number: Annotated[int, "the number of the role instance", Bounds(least=0, most=10_000)] = 0
    response_required: Annotated[bool, "an answer or an action is needed; wakes an idle recipient"] = False
    request_decision: Annotated[bool, "a decision is asked for"] = False
    work_id: Annotated[WorkId | None, "the Work it is about", ID] = None
    correlation_id: Annotated[CorrelationId | None, "the conversation it belongs to", ID] = None
    causation_id: Annotated[MessageId | None, "the message it follows from", ID] = None
    evidence_refs: Annotated[list[str], "references instead of large content", WORDS] = attrs.Factory(list)
    expires_in_ms: Annotated[int | None, "give up when not received within this", Bounds(least=1000, most=LONGEST)] = (
        None
    )


@attrs.frozen(kw_only=True)
class ReplyMessage(Request[Sent]):
    """Reply to a message on its correlation id; it goes to its sender."""

    causation_id: Annotated[MessageId, "the message replied to", ID]
    body: Annotated[str, "what to say, as Markdown", BODY]
    correlation_id: Annotated[CorrelationId | None, "must be that of the message, when given", ID] = None
    response_required: Annotated[bool, "an answer or an action is needed"] = False
    evidence_refs: Annotated[list[str], "references instead of large content", WORDS] = attrs.Factory(list)


@attrs.frozen(kw_only=True)
class AskInteraction(Request[Sent]):
    """Put a question that takes exactly one answer to the Host."""

    body: Annotated[str, "the question", BODY]
    options: Annotated[list[str], "the answers one can choose from; free text when none is given", WORDS] = (
        attrs.Factory(list)
    )
    work_id: Annotated[WorkId | None, "the Work it is about", ID] = None


@attrs.frozen(kw_only=True)
class AnswerInteraction(Request[Sent]):
    """Answer a question: one of its options, or text where it has none. The first answer wins."""

    message_id: Annotated[MessageId, "the question", ID]
    option: Annotated[str, "the chosen option", LABEL] = ""
    response_text: Annotated[str, "the answer in words", Bounds(most=32 * 1024)] = ""


@attrs.frozen(kw_only=True)
class ShowInbox(Request[Inbox]):
    """Show the caller's mail, oldest first; reading changes nothing."""

    all_mail: Annotated[bool, "also what was acknowledged"] = False
    limit: Annotated[int, "most rows", PAGE] = 50
    cursor: Annotated[str, "continue after an earlier page", Bounds(most=500)] = ""


@attrs.frozen(kw_only=True)
class ReceiveMail(Request[Received]):
    """Take the mail that waits: it is delivered to the process that asks."""

    limit: Annotated[int, "most messages", Bounds(least=1, most=50)] = 20


@attrs.frozen(kw_only=True)
class ClaimMail(Request[MessageDelivery]):
    """Take a message to the team, or to a role that several have; whoever comes later gets nothing."""

    delivery_id: Annotated[MessageDeliveryId, "the delivery", ID]


@attrs.frozen(kw_only=True)
class AcknowledgeMail(Request[MessageDelivery]):
    """Confirm that a message was seen, or that one's own undeliverable mail was noticed."""

    delivery_id: Annotated[MessageDeliveryId, "the delivery", ID]


@attrs.frozen(kw_only=True)
class RespondMail(Request[MessageDelivery]):
    """Say once that what a message asked is completed or rejected; no Work changes by it."""

    delivery_id: Annotated[MessageDeliveryId, "the delivery", ID]
    response: Annotated[Response, "completed or rejected"]


@attrs.frozen(kw_only=True)
class ReportMail(Request[MessageDelivery]):
    """Report how far a message came."""

    delivery_id: Annotated[MessageDeliveryId, "the delivery", ID]
    sup_gen: Annotated[int, "the supervisor generation that reports", VERSION]
    cause: Annotated[MailCause, "what happened"]
    session_id: Annotated[SessionId | None, "the session it was routed to", ID] = None
    reason: Annotated[str, "why it failed", LABEL] = ""


@attrs.frozen(kw_only=True)
class ListMessages(Request[MessagePage]):
    """List the messages of a run that the caller may see, oldest first."""

    team_run_id: Annotated[TeamRunId, "the run; the caller's own when empty", OPTIONAL_ID] = OWN_RUN
    correlation_id: Annotated[CorrelationId | None, "only this conversation", ID] = None
    limit: Annotated[int, "most rows", PAGE] = 100
    cursor: Annotated[str, "continue after an earlier page", Bounds(most=500)] = ""


@attrs.frozen(kw_only=True)
class ShowMessage(Request[MessageShown]):
    """Show one message and how far each delivery came."""

    message_id: Annotated[MessageId, "the message", ID]


_FIND = (Code.NOT_FOUND, Code.ROW_QUARANTINED)
_W = Effect.WRITE
_ADMIT = (*_FIND, Code.QUEUE_FULL, Code.RECIPIENT_UNKNOWN, Code.TEAM_RUN_NOT_OPEN)
_STATE = Code.INVALID_STATE_TRANSITION

OPERATIONS = (
    Operation("message.ack", AcknowledgeMail, planes=MEMBER_OR_ABOVE, effect=_W, refuses=(*_FIND, _STATE)),
    Operation(
        "message.answer",
        AnswerInteraction,
        planes=MEMBER_OR_ABOVE,
        effect=_W,
        refuses=(*_ADMIT, Code.ANSWER_INVALID, Code.ANSWERED_ALREADY),
    ),
    Operation("message.ask", AskInteraction, planes=MEMBERS, effect=_W, refuses=_ADMIT),
    Operation("message.claim", ClaimMail, planes=MEMBERS, effect=_W, refuses=(*_FIND, Code.CLAIM_LOST, _STATE)),
    Operation(
        "message.delivery",
        ReportMail,
        planes=SUPERVISOR,
        effect=_W,
        refuses=(*_FIND, _STATE, Code.SUPERVISOR_GENERATION_FENCED),
    ),
    Operation(
        "message.inbox",
        ShowInbox,
        planes=MEMBER_OR_ABOVE,
        effect=Effect.READ,
        refuses=(Code.CURSOR_INVALID, Code.ROW_QUARANTINED),
    ),
    Operation("message.list", ListMessages, planes=READERS, effect=Effect.READ, refuses=(*_FIND, Code.CURSOR_INVALID)),
    Operation("message.receive", ReceiveMail, planes=MEMBERS, effect=_W, refuses=(Code.ROW_QUARANTINED,)),
    Operation(
        "message.reply",
        ReplyMessage,
        planes=MEMBER_OR_ABOVE,
        effect=_W,
        refuses=(*_ADMIT, Code.CAUSATION_INVALID),
    ),
    Operation("message.respond", RespondMail, planes=MEMBER_OR_ABOVE, effect=_W, refuses=(*_FIND, _STATE)),
    Operation(
        "message.send",
        SendMessage,
        planes=MEMBER_OR_ABOVE,
        effect=_W,
        refuses=(*_ADMIT, Code.CAUSATION_INVALID, Code.NAME_AMBIGUOUS),
    ),
    Operation("message.show", ShowMessage, planes=READERS, effect=Effect.READ, refuses=_FIND),
)
