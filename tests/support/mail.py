"""Mail between the members of a stage: sending, taking, reporting, and where a delivery has got to."""

from __future__ import annotations

import contextlib
from typing import Any, TypeVar

import apsw
import attrs

from client.protocol.agent import ShowAgent, UpdateAgent
from client.protocol.ids import AgentMemberRef, MessageDeliveryId, TeamRunId
from client.protocol.membership import GuestRole, LeaveTeam, ShowMembership
from client.protocol.message import (
    AcknowledgeMail,
    AskInteraction,
    Mail,
    MailCause,
    MessageDelivery,
    ReceiveMail,
    ReportMail,
    SendMessage,
    Sent,
    ShowMessage,
)
from client.protocol.operation import Plane, Request
from client.protocol.refusals import Code, Refusal
from client.protocol.session import ReportSession, SessionCause
from client.protocol.team_run import AddMemberRun, CompleteTeamRun, ShowTeamRun, TeamRun
from tests.support import refusals, scene
from tests.support.node import advised
from tests.support.run import Member, Stage, session
from tests.support.spoil import mend, spoil

R = TypeVar("R")


def plane(stage: Stage, by: Member) -> Plane:
    if by.agent.id == stage.ann.agent.id:
        return Plane.HOST
    return Plane.OBSERVER if by.membership.role.value == "observer" else Plane.MEMBER


async def ok(stage: Stage, by: Member, request: Request[R], *, key: str = "") -> R:
    return await stage.node.ok(request, plane=plane(stage, by), actor=by.session, key=key)


async def refused(stage: Stage, by: Member, request: Request[Any]) -> Refusal:
    return await stage.node.refused(request, plane=plane(stage, by), actor=by.session)


async def refused_while_spoilt(stage: Stage, by: Member, request: Request[Any], table: str, row: str) -> None:
    """As in ``refusals``, for a member."""
    was = spoil(stage.node.store.path, table, row)
    refusal = await refused(stage, by, request)
    assert refusal == refusals.unreadable(f"{table}/{row}")
    mend(stage.node.store.path, table, row, was)
    assert not isinstance(await stage.node.follow(refusal), Refusal)
    await ok(stage, by, request)


def to(*members: Member, body: str = "hello", **more: object) -> SendMessage:
    return SendMessage(body=body, recipients=[each.membership.id for each in members], **more)  # type: ignore[arg-type]


async def sent(stage: Stage, by: Member, *members: Member, body: str = "hello", **more: object) -> Sent:
    return await ok(stage, by, to(*members, body=body, **more))


async def question(stage: Stage, by: Member, *options: str) -> Sent:
    return await ok(stage, by, AskInteraction(body="which one?", options=list(options)))


async def taken(stage: Stage, by: Member) -> list[Mail]:
    return (await ok(stage, by, ReceiveMail())).items


async def received(stage: Stage, by: Member, mail: MessageDelivery) -> MessageDelivery:
    """That delivery, received by ``by``."""
    (found,) = [each.delivery for each in await taken(stage, by) if each.delivery.id == mail.id]
    return found


async def acknowledged(stage: Stage, by: Member, mail: MessageDelivery) -> MessageDelivery:
    return await ok(stage, by, AcknowledgeMail(delivery_id=mail.id))


async def now(stage: Stage, mail: MessageDelivery) -> MessageDelivery:
    """Where a delivery is by now."""
    shown = await stage.node.ok(ShowMessage(message_id=mail.message_id))
    (found,) = [each for each in shown.deliveries if each.id == mail.id]
    return found


def report(stage: Stage, mail: MessageDelivery, cause: MailCause, **more: object) -> ReportMail:
    return ReportMail(delivery_id=MessageDeliveryId(mail.id), sup_gen=stage.sup_gen, cause=cause, **more)  # type: ignore[arg-type]


async def reported(stage: Stage, mail: MessageDelivery, cause: MailCause, **more: object) -> MessageDelivery:
    return await stage.node.ok(report(stage, mail, cause, **more), plane=Plane.SUPERVISOR, actor=stage.run.id)


async def not_reported(stage: Stage, mail: MessageDelivery, cause: MailCause, **more: object) -> Refusal:
    ask = report(stage, mail, cause, **more)
    return await stage.node.refused(ask, plane=Plane.SUPERVISOR, actor=stage.run.id)


async def failed(stage: Stage, mail: MessageDelivery, reason: str = "no such tool") -> MessageDelivery:
    """Refused by the provider as often as it takes."""
    for _ in range(2):
        await reported(stage, mail, MailCause.FAIL, reason=reason)
    return await reported(stage, mail, MailCause.FAIL, reason=reason)


async def also(stage: Stage, name: str, role: GuestRole = GuestRole.MEMBER, *, place: str = "") -> Member:
    """Somebody else in the run, whose place there has the role ``place``."""
    node = stage.node
    agent = await scene.agent(node, name)
    membership = await scene.joined(node, stage.team, agent, role)
    ask = AddMemberRun(team_run_id=TeamRunId(stage.run.id), membership_id=membership.id, role=place)
    there = await node.ok(ask)
    return Member(agent, membership, there, await session(node, stage.run, there))


async def with_person(stage: Stage) -> Stage:
    """The same stage, whose Host is the person at this machine."""
    ann = AgentMemberRef(stage.ann.agent.id)
    before = await stage.node.ok(ShowAgent(agent_member_id=ann))
    person = UpdateAgent(agent_member_id=ann, expected_version=before.version, profile="me")
    return attrs.evolve(stage, ann=attrs.evolve(stage.ann, agent=await stage.node.ok(person)))


async def left(stage: Stage, who: Member) -> None:
    """``who`` leaves the team, or begins to while it still has an attempt."""
    membership = (await stage.node.ok(ShowMembership(membership_id=who.membership.id))).membership
    await stage.node.ok(LeaveTeam(membership_id=membership.id, expected_version=membership.version))


async def closed(stage: Stage, who: Member) -> None:
    """The session of ``who`` ends."""
    report = ReportSession(
        session_id=who.session.id,
        session_gen=who.session.session_gen,
        sup_gen=stage.sup_gen,
        cause=SessionCause.CLOSED,
    )
    await stage.node.ok(report, plane=Plane.SUPERVISOR, actor=stage.run.id)


async def over(stage: Stage) -> TeamRun:
    """The run, completed. Its sessions are people's own, so that they outlive it."""
    stage.node.execute("UPDATE sessions SET driver = 'user_driven' WHERE team_run_id = ?", stage.run.id)
    run = (await stage.node.ok(ShowTeamRun(team_run_id=stage.run.id))).run
    return await stage.node.ok(CompleteTeamRun(team_run_id=run.id, expected_version=run.version))


def filled(stage: Stage, mail: MessageDelivery, most: int = 1000) -> None:
    """As if ``mail`` had been sent often enough to be one of ``most`` that wait for its recipient."""
    with contextlib.closing(apsw.Connection(str(stage.node.store.path))) as connection:
        (columns,) = connection.execute("SELECT group_concat(name, ', ') FROM pragma_table_info('message_deliveries')")
        names = [name for name in str(columns[0]).split(", ") if name not in {"n", "id", "message_id"}]
        same = ", ".join(names)
        connection.execute(
            f"""INSERT INTO message_deliveries (id, message_id, {same})
                WITH RECURSIVE i(v) AS (SELECT 2 UNION ALL SELECT v + 1 FROM i WHERE v < ?)
                SELECT 'mail' || v, 'message' || v, {same} FROM i, message_deliveries d WHERE d.id = ?""",  # noqa: S608
            (most, mail.id),
        )


def typed(lifted_by: str, **placeholders: str) -> None:
    """Whether the commands in an advice can be typed."""
    advised(Refusal(code=Code.NOT_FOUND, about="advice", lifted_by=lifted_by), **placeholders)
