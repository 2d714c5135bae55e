"""Mail's way, every state with every cause; what may be reported, claimed, answered and responded, by rule alone."""

from __future__ import annotations

import hashlib
import itertools
import typing
from typing import Any

import pytest

from client.protocol.ids import (
    AgentMemberId,
    CorrelationId,
    MemberRunId,
    MembershipId,
    MessageDeliveryId,
    MessageId,
    RunGen,
    SessionId,
    TeamId,
    TeamRunId,
    UnixMs,
)
from client.protocol.message import (
    AddressKind,
    Intent,
    MailCause,
    MailState,
    Message,
    MessageDelivery,
    MessageKind,
    Response,
)
from client.protocol.refusals import Code, Refusal
from client.protocol.team_run import Coordination, MemberRun
from daemon.kernel import message as rules
from daemon.kernel.message import HAS_IT, LOST, MAIL_LIFE, ON_ITS_WAY

S, C = MailState, MailCause
RUN = TeamRunId("run")
#: The whole table: what is not here is refused.
WAYS: dict[tuple[MailState, MailCause], MailState] = {
    (S.QUEUED, C.ROUTE): S.ROUTED,
    (S.QUEUED, C.CLAIM): S.CLAIMED,
    (S.QUEUED, C.RECEIVE): S.PROVIDER_RECEIVED,
    (S.ROUTED, C.CLAIM): S.CLAIMED,
    (S.ROUTED, C.RECEIVE): S.PROVIDER_RECEIVED,
    (S.CLAIMED, C.RECEIVE): S.PROVIDER_RECEIVED,
    (S.PROVIDER_RECEIVED, C.ACKNOWLEDGE): S.ACKNOWLEDGED,
    **{
        (state, cause): lost
        for state in (S.QUEUED, S.ROUTED, S.CLAIMED)
        for cause, lost in ((C.FAIL, S.FAILED), (C.EXPIRE, S.EXPIRED), (C.INVALIDATE, S.INVALIDATED))
    },
}

every_move = pytest.mark.parametrize(("state", "cause"), list(itertools.product(S, C)))


def place(role: str = "tester", number: int = 2) -> MemberRun:
    return MemberRun(
        id=MemberRunId("place"),
        version=1,
        team_run_id=RUN,
        membership_id=MembershipId("bob"),
        agent_member_id=AgentMemberId("agent"),
        role=role,
        number=number,
        coordination=Coordination.ACTIVE,
        run_gen=RunGen(1),
        created_at=UnixMs(1),
        updated_at=UnixMs(1),
    )


def message(address: AddressKind = AddressKind.MEMBER, options: tuple[str, ...] = ()) -> Message:
    return Message(
        id=MessageId("m"),
        team_id=TeamId("team"),
        team_run_id=RUN,
        sender_id=MembershipId("ann"),
        sender_agent_id=AgentMemberId("agent"),
        kind=MessageKind.MESSAGE,
        intent=Intent.INFORMATIONAL,
        address=address,
        body="b",
        digest=hashlib.sha256(b"b").hexdigest(),
        options=list(options),
        correlation_id=CorrelationId("talk"),
        causation_id=None,
        work_id=None,
        evidence_refs=[],
        expires_at=None,
        created_at=UnixMs(1),
    )


def delivery(state: MailState = S.QUEUED, **more: object) -> MessageDelivery:
    fields: dict[str, Any] = {
        "id": MessageDeliveryId("d"),
        "version": 1,
        "message_id": MessageId("m"),
        "team_run_id": RUN,
        "recipient_id": MembershipId("bob"),
        "role": "",
        "number": 0,
        "subscription_id": None,
        "session_id": None,
        "state": state,
        "failures": 0,
        "reason": "",
        "response": Response.NONE,
        "told": False,
        "expires_at": None,
        "created_at": UnixMs(1),
        "updated_at": UnixMs(1),
        **more,
    }
    return MessageDelivery(**fields)


@every_move
def test_every_state_and_cause_leads_where_the_table_says_or_is_refused(state: MailState, cause: MailCause) -> None:
    after = MAIL_LIFE.after(state, cause, "mail/d")
    if (state, cause) in WAYS:
        assert after == WAYS[state, cause]
        return
    assert isinstance(after, Refusal)
    assert (after.code, after.about) == (Code.INVALID_STATE_TRANSITION, "mail/d")
    assert after.lifted_by.startswith(f"it is {state.value}; this is possible while it is ")


def test_the_sets_of_states_are_what_their_names_say() -> None:
    assert set(S) == ON_ITS_WAY | HAS_IT | LOST
    assert len(ON_ITS_WAY) + len(HAS_IT) + len(LOST) == len(S)
    assert MAIL_LIFE.final == {*LOST, S.ACKNOWLEDGED}
    assert {lost for (_, _), lost in WAYS.items() if lost in LOST} == LOST
    assert {state for (state, _), after in WAYS.items() if after in LOST} == ON_ITS_WAY


def test_nothing_leads_back() -> None:
    """So a delivery that has arrived is never lost, and one that is lost never arrives."""
    order = list(S)
    assert all(order.index(state) < order.index(after) for (state, _), after in WAYS.items())


@every_move
def test_what_a_supervisor_may_report(state: MailState, cause: MailCause) -> None:
    session = SessionId("s")
    of_somebody = rules.reportable(delivery(state), cause, session)
    assert (of_somebody is None) == (cause not in {C.EXPIRE, C.INVALIDATE})
    of_nobody = rules.reportable(delivery(state, recipient_id=None), cause, session)
    assert of_nobody is not None
    assert of_nobody.code is Code.INVALID_STATE_TRANSITION
    without = rules.reportable(delivery(state), cause, None)
    assert (without is None) == (cause not in {C.EXPIRE, C.INVALIDATE, C.ROUTE})


@every_move
def test_overdue_mail_goes_no_further(state: MailState, cause: MailCause) -> None:
    late = delivery(state, expires_at=UnixMs(10))
    assert rules.too_late(late, cause, UnixMs(9)) is None
    assert rules.too_late(delivery(state), cause, UnixMs(10)) is None
    refusal = rules.too_late(late, cause, UnixMs(10))
    onward = cause in {C.ROUTE, C.CLAIM, C.RECEIVE} and state in ON_ITS_WAY
    assert (refusal is not None) == onward
    assert rules.overdue(late, UnixMs(10)) == (state in ON_ITS_WAY)


def test_mail_that_nobody_has_taken_is_for_the_team_or_for_a_role() -> None:
    here = place("tester", 2)
    assert rules.is_for("", 0, here)
    assert rules.is_for("tester", 0, here)
    assert rules.is_for("tester", 2, here)
    assert not rules.is_for("tester", 1, here)
    assert not rules.is_for("builder", 0, here)


@pytest.mark.parametrize("address", AddressKind)
def test_who_could_take_a_delivery_is_known_after_it_was_taken(address: AddressKind) -> None:
    others = delivery(recipient_id=MembershipId("cid"), role="tester" if address is AddressKind.ROLE else "")
    assert rules.may_take(message(address), others, place()) == (address is not AddressKind.MEMBER)
    assert rules.may_take(message(address), delivery(), place())
    wrong = delivery(recipient_id=None, role="builder")
    assert not rules.may_take(message(AddressKind.ROLE), wrong, place())


@pytest.mark.parametrize(
    ("options", "option", "text", "body"),
    [
        (("red", "blue"), "red", "", "red"),
        (("red", "blue"), "green", "", None),
        (("red", "blue"), "", "red", None),
        (("red", "blue"), "red", "because", None),
        (("red", "blue"), "", "", None),
        ((), "", "in words", "in words"),
        ((), "red", "", None),
        ((), "red", "in words", None),
        ((), "", "", None),
    ],
)
def test_an_answer_is_one_of_the_options_or_words_where_there_are_none(
    options: tuple[str, ...], option: str, text: str, body: str | None
) -> None:
    found = rules.answer(message(options=options), option, text)
    if body is not None:
        assert found == body
    else:
        assert isinstance(found, Refusal)
        assert (found.code, found.about) == (Code.ANSWER_INVALID, "message/m")
        assert all(each in found.lifted_by for each in options)


@pytest.mark.parametrize(("state", "given", "wanted"), list(itertools.product(S, Response, Response)))
def test_a_response_is_given_once_by_whoever_has_the_message(
    state: MailState, given: Response, wanted: Response
) -> None:
    refusal = rules.respond(state, given, wanted, "mail/d")
    legal = state in HAS_IT and given is Response.NONE and wanted is not Response.NONE
    assert (refusal is None) == legal
    if refusal is not None:
        assert refusal.code is Code.INVALID_STATE_TRANSITION


@pytest.mark.parametrize("correlation", [None, "talk", "other"])
@pytest.mark.parametrize("run", ["run", "another"])
def test_a_message_follows_from_one_of_its_run_and_conversation(run: str, correlation: str | None) -> None:
    refusal = rules.causation(message(), "m", run, correlation)
    assert (refusal is None) == (run == "run" and correlation != "other")
    assert typing.cast("Refusal", rules.causation(None, "m", run, None)).code is Code.CAUSATION_INVALID


def test_an_unknown_recipient_is_told_the_near_names() -> None:
    near = rules.unknown_recipient("anne", ["ann", "bob"], RUN)
    assert near == Refusal(
        code=Code.RECIPIENT_UNKNOWN,
        about="recipient/anne",
        lifted_by="did you mean ann? Else see who takes part: firm team-run show run",
    )
    far = rules.unknown_recipient("zebedee", ["ann", "bob"], RUN)
    assert far.lifted_by == "see who takes part: firm team-run show run"
