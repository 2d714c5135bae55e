"""``delegation.list``; and how a delegated Work ends: as news at its source, never as an acceptance."""

from __future__ import annotations

import attrs
import pytest

from client.protocol.board import AcknowledgeAttention, AttentionKind
from client.protocol.delegation import DelegationPage, DelegationState, ListDelegations
from client.protocol.ids import TeamRef
from client.protocol.operation import Plane
from client.protocol.refusals import Code
from client.protocol.work import Phase, Work
from client.protocol.work_asks import AcceptWork, AssignWork, CancelWork, CreateWork, ReplaceDependencies, ShowWork
from tests.support import mail, refusals
from tests.support.delegations import Two, accept, decline, told, two
from tests.support.mail import ok, refused
from tests.support.node import InProcessNode


async def finished(t: Two, work: Work, how: str) -> Work:
    """Their Work, closed by their Host."""
    their = t.their
    if how == "cancelled":
        return await ok(
            their, their.ann, CancelWork(work_id=work.id, expected_version=work.version, reason="not needed")
        )
    assign = AssignWork(work_id=work.id, expected_version=work.version, membership_id=their.bob.membership.id)
    work = await ok(their, their.ann, assign)
    await their.admit(work, their.bob)
    work = await their.submit(await their.start(work, their.bob), their.bob)
    ask = AcceptWork(work_id=work.id, expected_version=work.version, receipt_id=await their.receipt(work))
    return await ok(their, their.ann, ask)


@pytest.mark.parametrize("how", ["accepted", "cancelled"])
async def test_a_delegated_work_that_is_finished_is_told_to_who_asked_with_its_evidence(
    node: InProcessNode, how: str
) -> None:
    """Once, at the source; the source Work is not accepted, submitted or moved by it."""
    t = await two(node)
    done, work = await t.accepted()
    assert await t.told() == []
    closed = await finished(t, work, how)
    (item,) = await t.told()
    assert (item.kind, item.about) == (AttentionKind.DELEGATION, f"work/{t.work.id}")
    assert item.what.startswith(f"'a parser' was {how} there: ")
    if how == "accepted":
        receipt = (await node.ok(ShowWork(work_id=work.id))).receipts[-1]
        assert item.what.endswith(f" done [{receipt.id} sha256:{receipt.digest}]")
    mail.typed(item.lifted_by)
    source = (await node.ok(ShowWork(work_id=t.work.id))).work
    assert (source, source.phase) == (t.work, Phase.OPEN)
    assert (await node.ok(ListDelegations(team_id=TeamRef(t.our.team.id)))).items == [done]
    assert (await ok(t.our, t.our.ann, AcknowledgeAttention(key=item.key))).items == []
    assert closed.team_id == t.their.team.id
    assert await told(t.their) == []


async def test_another_delegation_of_the_same_work_speaks_again(node: InProcessNode) -> None:
    t = await two(node)
    _, first = await t.accepted()
    await finished(t, first, "cancelled")
    (item,) = await t.told()
    await ok(t.our, t.our.ann, AcknowledgeAttention(key=item.key))
    _, second = await t.accepted()
    await finished(t, second, "cancelled")
    (again,) = await t.told()
    assert again.key != item.key


async def test_no_work_needs_one_of_another_team(node: InProcessNode) -> None:
    """A delegation makes no edge, and none can be made beside it."""
    t = await two(node)
    _, work = await t.accepted()
    before = node.rows()["work_needs"]
    ask = ReplaceDependencies(work_id=t.work.id, expected_version=t.work.version, prerequisite_work_ids=[work.id])
    assert (await refused(t.our, t.our.ann, ask)).code is Code.PREREQUISITE_INVALID
    create = CreateWork(title="another", completion_criteria="it works", prerequisite_work_ids=[work.id])
    assert (await refused(t.our, t.our.ann, create)).code is Code.PREREQUISITE_INVALID
    assert node.rows()["work_needs"] == before == []


async def test_the_two_teams_stay_strangers(node: InProcessNode) -> None:
    """What was delegated gives nobody a look at the other's Works."""
    t = await two(node)
    _, work = await t.accepted()
    refusal = await refused(t.our, t.our.ann, ShowWork(work_id=work.id))
    assert refusal == refusals.not_found("work", work.id)
    refusal = await refused(t.their, t.their.ann, ShowWork(work_id=t.work.id))
    assert refusal == refusals.not_found("work", t.work.id)


async def test_of_two_who_decide_at_once_one_does(node: InProcessNode) -> None:
    t = await two(node)
    asked = await t.proposed()
    host = t.their.ann.session
    asks = [
        node.send(each, plane=Plane.HOST, actor=host)
        for each in (accept(asked, t.their), decline(asked), accept(asked, t.their))
    ]
    first, *others = [await each.outcome() for each in asks]
    assert isinstance(first, type(asked))
    assert first.state is DelegationState.ACCEPTED
    assert others == [refusals.conflict(f"delegation/{asked.id}", 2)] * 2
    assert len([row for row in node.rows()["works"] if t.their.team.id in row]) == 1


async def test_delegation_list_ok(node: InProcessNode) -> None:
    """To and from the team, oldest first, in pages; to its Host and the operator."""
    t = await two(node)
    made = [await t.proposed(title) for title in ("a parser", "a lexer", "a printer")]
    back = attrs.evolve(t, our=t.their, their=t.our, work=await t.their.work("theirs"))
    made.append(await back.proposed())
    whole = DelegationPage(items=made, next=None)
    for s in (t.our, t.their):
        ask = ListDelegations(team_id=TeamRef(s.team.id))
        assert await ok(s, s.ann, ask) == whole
        assert await node.ok(ask) == whole
    page = await node.ok(ListDelegations(team_id=TeamRef(t.our.team.id), limit=3))
    rest = ListDelegations(team_id=TeamRef(t.our.team.id), limit=3, cursor=page.next or "")
    assert [*page.items, *(await node.ok(rest)).items] == made


async def test_delegation_list_cursor_invalid(node: InProcessNode) -> None:
    t = await two(node)
    await t.proposed()
    await t.proposed()
    cursor = (await node.ok(ListDelegations(team_id=TeamRef(t.our.team.id), limit=1))).next
    assert cursor
    ask = ListDelegations(team_id=TeamRef(t.their.team.id), limit=1, cursor=cursor)
    assert await node.refused(ask) == refusals.stale_cursor()


async def test_delegation_list_name_ambiguous(node: InProcessNode) -> None:
    t = await two(node)
    refusal = await node.refused(ListDelegations(team_id=TeamRef("crew")))
    assert refusal == refusals.ambiguous("team", "crew", t.our.team.id, t.their.team.id)


async def test_delegation_list_not_found(node: InProcessNode) -> None:
    t = await two(node)
    for team in ("nothing", t.their.team.id):
        refusal = await refused(t.our, t.our.ann, ListDelegations(team_id=TeamRef(team)))
        assert refusal == refusals.not_found("team", team)


async def test_delegation_list_row_quarantined(node: InProcessNode) -> None:
    t = await two(node)
    ask = ListDelegations(team_id=TeamRef(t.our.team.id))
    await refusals.refused_while_spoilt(node, ask, "teams", t.our.team.id)
