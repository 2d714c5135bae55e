"""``message.inbox``, ``list`` and ``show``, one test an outcome of the table; and who sees which mail."""

from __future__ import annotations

import pytest

from client.protocol.agent import CreateAgent
from client.protocol.ids import CorrelationId, MessageId, TeamRef, TeamRunId
from client.protocol.membership import GuestRole
from client.protocol.message import (
    ClaimMail,
    Inbox,
    ListMessages,
    MailState,
    MessagePage,
    MessageShown,
    ReplyMessage,
    SendMessage,
    Sent,
    ShowInbox,
    ShowMessage,
)
from client.protocol.operation import Plane
from client.protocol.refusals import Refusal
from client.protocol.team_run import CreateTeamRun
from tests.support import mail, refusals, scene
from tests.support.mail import also, ok, refused, sent, taken
from tests.support.node import InProcessNode
from tests.support.run import Member, Stage, stage
from tests.support.spoil import spoil


def show(what: Sent) -> ShowMessage:
    return ShowMessage(message_id=what.message.id)


async def listed(s: Stage, by: Member) -> list[MessageId]:
    return [each.id for each in (await ok(s, by, ListMessages())).items]


async def inbox(s: Stage, by: Member, **more: object) -> list[MessageId]:
    return [each.message.id for each in (await ok(s, by, ShowInbox(**more))).items]  # type: ignore[arg-type]


async def unseen(s: Stage, by: Member, what: Sent) -> None:
    """For ``by`` there is no such message, wherever it looks."""
    assert await refused(s, by, show(what)) == refusals.not_found("message", what.message.id)
    assert what.message.id not in await listed(s, by)
    assert what.message.id not in await inbox(s, by, all_mail=True)


async def test_message_inbox_ok(node: InProcessNode) -> None:
    """Oldest first; looking changes nothing; what was acknowledged is shown when asked for."""
    s = await stage(node)
    first, second = await sent(s, s.bob, s.cid), await sent(s, s.ann, s.cid)
    team = await ok(s, s.ann, SendMessage(body="who can?", to_team=True))
    await sent(s, s.ann, s.bob)
    before = node.rows()
    found = await ok(s, s.cid, ShowInbox())
    assert node.rows() == before
    assert [(each.sender, each.delivery.id) for each in found.items] == [
        ("bob", first.deliveries[0].id),
        ("ann", second.deliveries[0].id),
        ("ann", team.deliveries[0].id),
    ]
    assert (found.undelivered, found.next) == ([], None)
    await mail.acknowledged(s, s.cid, first.deliveries[0])
    assert first.message.id not in await inbox(s, s.cid)
    assert (await inbox(s, s.cid, all_mail=True))[:2] == [first.message.id, second.message.id]


async def test_an_inbox_is_shown_in_pages(node: InProcessNode) -> None:
    s = await stage(node)
    all_sent = [(await sent(s, s.bob, s.cid)).message.id for _ in range(5)]
    page = await ok(s, s.cid, ShowInbox(limit=2))
    seen = [each.message.id for each in page.items]
    while page.next:
        page = await ok(s, s.cid, ShowInbox(limit=2, cursor=page.next))
        seen += [each.message.id for each in page.items]
    assert seen == all_sent


async def test_message_inbox_cursor_invalid(node: InProcessNode) -> None:
    """Made up, of another query, of another member."""
    s = await stage(node)
    for _ in range(2):
        await sent(s, s.ann, s.cid, s.bob)
    cursor = (await ok(s, s.cid, ShowInbox(limit=1))).next
    assert cursor
    for by, ask in (
        (s.cid, ShowInbox(cursor="nothing")),
        (s.cid, ShowInbox(cursor=cursor, all_mail=True)),
        (s.bob, ShowInbox(cursor=cursor)),
    ):
        assert await refused(s, by, ask) == refusals.stale_cursor()


async def test_message_inbox_row_quarantined(node: InProcessNode) -> None:
    s = await stage(node)
    await mail.refused_while_spoilt(s, s.cid, ShowInbox(), "memberships", s.cid.membership.id)


async def test_a_person_who_is_no_host_has_an_empty_inbox(node: InProcessNode) -> None:
    s = await stage(node)
    await sent(s, s.bob, s.ann)
    assert await node.ok(ShowInbox()) == Inbox(items=[], undelivered=[], next=None)


async def test_a_person_has_the_mail_of_every_team_it_is_the_host_of(node: InProcessNode) -> None:
    me = await node.ok(CreateAgent(name="me", profile="me"))
    kept: list[MessageId] = []
    for name in ("one", "two"):
        team = await scene.team(node, me, name)
        bob = await scene.joined(node, team, await scene.agent(node, f"bob of {name}"))
        run = await node.ok(CreateTeamRun(team_id=TeamRef(team.id)))
        ask = SendMessage(team_run_id=run.id, body="to myself", recipients=["me"])
        kept += [(await node.ok(ask)).message.id, (await node.ok(ask)).message.id]
        lost = await node.ok(SendMessage(team_run_id=run.id, body="hello", recipients=[bob.id]))
        await scene.left(node, bob)
        kept += [lost.message.id]
    found = await node.ok(ShowInbox(limit=3))
    rest = await node.ok(ShowInbox(limit=3, cursor=found.next or ""))
    assert [each.message.id for each in [*found.items, *rest.items]] == [kept[0], kept[1], kept[3], kept[4]]
    assert [each.message.id for each in found.undelivered] == [kept[2], kept[5]]
    for each in [*found.items, *rest.items, *found.undelivered]:
        await mail_seen(node, each.delivery.id)
    assert await node.ok(ShowInbox()) == Inbox(items=[], undelivered=[], next=None)


async def mail_seen(node: InProcessNode, delivery_id: str) -> None:
    outcome = await node.begin("message.ack", {"delivery_id": delivery_id}).outcome()
    assert not isinstance(outcome, Refusal), outcome


@pytest.mark.parametrize("table", ["message_deliveries", "messages"])
async def test_mail_that_cannot_be_read_is_left_out(node: InProcessNode, table: str) -> None:
    s = await stage(node)
    broken, good = await sent(s, s.bob, s.cid), await sent(s, s.bob, s.cid)
    row = broken.deliveries[0].id if table == "message_deliveries" else broken.message.id
    spoil(node.store.path, table, row)
    assert await inbox(s, s.cid) == [good.message.id]
    assert await node.set_aside() == [f"{table}/{row}"]


async def test_message_list_ok(node: InProcessNode) -> None:
    """The Host, the operator and the supervisor see all of a run; a member what it sent and was sent."""
    s = await stage(node)
    one, two, three = await sent(s, s.bob, s.ann), await sent(s, s.cid, s.bob), await sent(s, s.ann, s.cid)
    everything = [each.message for each in (one, two, three)]
    ask = ListMessages(team_run_id=s.run.id)
    assert await ok(s, s.ann, ask) == MessagePage(items=everything, next=None)
    assert (await node.ok(ask)).items == everything
    assert (await node.ok(ask, plane=Plane.SUPERVISOR, actor=s.run.id)).items == everything
    assert await listed(s, s.bob) == [one.message.id, two.message.id]
    assert await listed(s, s.cid) == [two.message.id, three.message.id]
    talk = CorrelationId(two.message.correlation_id)
    answer = await ok(s, s.bob, ReplyMessage(causation_id=two.message.id, body="indeed"))
    spoken = (await ok(s, s.cid, ListMessages(correlation_id=talk))).items
    assert spoken == [two.message, answer.message]


async def test_messages_are_listed_in_pages(node: InProcessNode) -> None:
    s = await stage(node)
    all_sent: list[MessageId] = []
    for _ in range(3):
        all_sent.append((await sent(s, s.bob, s.cid)).message.id)
        await sent(s, s.bob, s.ann)
    page = await ok(s, s.cid, ListMessages(limit=1))
    seen = [each.id for each in page.items]
    while page.next:
        page = await ok(s, s.cid, ListMessages(limit=1, cursor=page.next))
        seen += [each.id for each in page.items]
    assert seen == all_sent


async def test_message_list_cursor_invalid(node: InProcessNode) -> None:
    s = await stage(node)
    for _ in range(2):
        await sent(s, s.bob, s.cid)
    cursor = (await ok(s, s.cid, ListMessages(limit=1))).next
    assert cursor
    for by in (s.bob, s.ann):
        assert await refused(s, by, ListMessages(limit=1, cursor=cursor)) == refusals.stale_cursor()


async def test_message_list_not_found(node: InProcessNode) -> None:
    """No such run, one of another team, one that the member has no part in."""
    s, other = await stage(node), await stage(node)
    second = await node.ok(CreateTeamRun(team_id=TeamRef(s.team.id)))
    for run in ("nothing", other.run.id, second.id):
        refusal = await refused(s, s.bob, ListMessages(team_run_id=TeamRunId(run)))
        assert refusal == refusals.not_found("team-run", run)
    assert (await ok(s, s.ann, ListMessages(team_run_id=second.id))).items == []


async def test_message_list_row_quarantined(node: InProcessNode) -> None:
    s = await stage(node)
    ask = ListMessages(team_run_id=s.run.id)
    await refusals.refused_while_spoilt(node, ask, "team_runs", s.run.id)


async def test_message_show_ok(node: InProcessNode) -> None:
    """For those who sent it and were sent it, the Host, the operator and the supervisor; how far it came, to each."""
    s = await stage(node)
    made = await sent(s, s.bob, s.cid, s.ann)
    whole = MessageShown(message=made.message, deliveries=made.deliveries)
    for who in (s.ann, s.bob, s.cid):
        assert await ok(s, who, show(made)) == whole
    assert await node.ok(show(made)) == whole
    assert await node.ok(show(made), plane=Plane.SUPERVISOR, actor=s.run.id) == whole
    await taken(s, s.cid)
    states = [each.state for each in (await node.ok(show(made))).deliveries]
    assert states == [MailState.PROVIDER_RECEIVED, MailState.QUEUED]


async def test_message_show_not_found(node: InProcessNode) -> None:
    s, other = await stage(node), await stage(node)
    nothing = ShowMessage(message_id=MessageId("nothing"))
    assert await refused(s, s.bob, nothing) == refusals.not_found("message", "nothing")
    foreign = await sent(other, other.bob, other.ann)
    assert await refused(s, s.ann, show(foreign)) == refusals.not_found("message", foreign.message.id)


async def test_message_show_row_quarantined(node: InProcessNode) -> None:
    s = await stage(node)
    made = await sent(s, s.bob, s.cid)
    await refusals.refused_while_spoilt(node, show(made), "messages", made.message.id)


async def test_mail_between_two_is_hidden_from_every_third(node: InProcessNode) -> None:
    s = await stage(node)
    dan, eve = await also(s, "dan"), await also(s, "eve", GuestRole.OBSERVER)
    private = await sent(s, s.bob, s.cid)
    await unseen(s, dan, private)
    assert await refused(s, eve, show(private)) == refusals.not_found("message", private.message.id)
    assert await listed(s, eve) == []


async def test_an_observer_reads_what_it_was_sent(node: InProcessNode) -> None:
    s = await stage(node)
    eve = await also(s, "eve", GuestRole.OBSERVER)
    made = await sent(s, s.bob, eve)
    assert (await ok(s, eve, show(made))).message == made.message
    assert await listed(s, eve) == [made.message.id]


async def test_mail_to_the_team_is_everybodys_until_one_has_it(node: InProcessNode) -> None:
    s = await stage(node)
    dan = await also(s, "dan")
    made = await ok(s, s.ann, SendMessage(body="who can?", to_team=True))
    for who in (s.bob, s.cid, dan):
        assert made.message.id in await listed(s, who)
        assert made.message.id in await inbox(s, who)
        await ok(s, who, show(made))
    await ok(s, s.cid, ClaimMail(delivery_id=made.deliveries[0].id))
    await ok(s, s.cid, show(made))
    for who in (s.bob, dan):
        await unseen(s, who, made)


async def test_mail_to_a_role_is_hidden_from_those_who_have_another(node: InProcessNode) -> None:
    s = await stage(node)
    made = await ok(s, s.ann, SendMessage(body="hello", to_role="tester"))
    await unseen(s, s.bob, made)
    tess = await also(s, "tess", place="tester")
    await ok(s, tess, show(made))
    await unseen(s, s.bob, made)
