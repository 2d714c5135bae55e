"""The chain of receipts: a link that is missing, doubled or altered fails closed and names itself (RF-A14)."""

from __future__ import annotations

import hashlib
import json

import pytest

from client.protocol.attempt import ListReceipts, Receipt
from client.protocol.refusals import Code, Refusal
from client.protocol.work import Work
from client.protocol.work_asks import RequestChanges
from tests.support import refusals, works
from tests.support.node import InProcessNode
from tests.support.run import Stage, stage
from tests.support.spoil import mend, spoil


async def chain(s: Stage, links: int = 3) -> tuple[Work, list[Receipt]]:
    """A Work in review for the third time."""
    work = await s.submitted(s.bob)
    for _ in range(links - 1):
        ask = RequestChanges(work_id=work.id, expected_version=work.version, reason="again")
        work = await works.ann(s).ok(ask)
        await s.admit(work, s.bob)
        work = await s.submit(await s.start(work, s.bob), s.bob)
    return work, (await s.node.ok(ListReceipts(work_id=work.id))).items


def broken(receipt: str) -> Refusal:
    said = "nothing here mends it: restore a backup, or cancel the Work and have it done again"
    return Refusal(code=Code.RECEIPT_CHAIN_BROKEN, about=f"receipt/{receipt}", lifted_by=said)


async def fails_closed(s: Stage, work: Work, receipt: str) -> None:
    """Listing and accepting both refuse, and name the link; the Work can be cancelled."""
    assert await s.node.refused(ListReceipts(work_id=work.id)) == broken(receipt)
    assert await works.ann(s).refused(works.VERBS["accept"].request(s, work)) == broken(receipt)
    await works.cancelled(s, work)


async def test_each_receipt_covers_the_one_before_it(node: InProcessNode) -> None:
    """Numbers and fences rise by one; a digest is over the digest before it, a line feed and the body."""
    s = await stage(node)
    work, found = await chain(s)
    assert [(r.number, r.fence) for r in found] == [(1, 1), (2, 2), (3, 3)]
    previous = ""
    for receipt in found:
        assert receipt.previous == previous
        previous = receipt.digest
        assert previous == hashlib.sha256(f"{receipt.previous}\n{receipt.body}".encode()).hexdigest()
    assert found[-1].id == work.receipt_id


async def test_a_body_is_canonical_and_whole(node: InProcessNode) -> None:
    """Names in order, no space, text as it is; and what the receipt says of itself is in it."""
    s = await stage(node)
    _, (receipt,) = await chain(s, 1)
    body = json.loads(receipt.body)
    assert list(body) == sorted(body)
    assert receipt.body == json.dumps(body, separators=(",", ":"), ensure_ascii=False)
    assert (body["receipt_id"], body["number"], body["fence"]) == (receipt.id, 1, 1)
    assert (body["outcome"], body["created_by"], body["work_id"]) == (
        receipt.outcome,
        receipt.created_by,
        receipt.work_id,
    )


@pytest.mark.parametrize(
    "damage",
    [
        "body = replace(body, 'done', 'gone')",
        "body = body || ' '",
        "digest = 'f' || substr(digest, 2) || 'x'",
        "previous = digest",
        "outcome = 'failed'",
        "number = number + 7",
        "fence = fence + 7",
        "created_by = (SELECT id FROM agents WHERE name = 'cid')",
        "id = 'rr-other'",
    ],
)
async def test_an_altered_link_names_itself(node: InProcessNode, damage: str) -> None:
    """Any column of the second of three."""
    s = await stage(node)
    work, found = await chain(s)
    node.execute(f"UPDATE receipts SET {damage} WHERE id = ?", found[1].id)  # noqa: S608 — ours
    named = {"number": found[2].id, "id": "rr-other"}.get(damage.partition(" ")[0], found[1].id)
    await fails_closed(s, work, named)


@pytest.mark.parametrize(("gone", "named"), [(0, 1), (1, 2), (2, 2)])
async def test_a_missing_link_fails_closed(node: InProcessNode, gone: int, named: int) -> None:
    """The first link that does not follow is named; of the last one the Work itself remembers the name."""
    s = await stage(node)
    work, found = await chain(s)
    node.execute("DELETE FROM receipts WHERE id = ?", found[gone].id)
    await fails_closed(s, work, found[named].id)


async def test_a_missing_end_is_missed_though_the_work_forgot_it_too(node: InProcessNode) -> None:
    """Its attempt was completed, and a completed attempt has a receipt."""
    s = await stage(node)
    work, found = await chain(s)
    node.execute("DELETE FROM receipts WHERE id = ?", found[2].id)
    node.execute("UPDATE works SET receipt_id = ? WHERE id = ?", found[1].id, work.id)
    assert await node.refused(ListReceipts(work_id=work.id)) == broken("fence=3")


async def test_a_doubled_link_names_itself(node: InProcessNode) -> None:
    s = await stage(node)
    work, found = await chain(s)
    node.execute(
        "INSERT INTO receipts (id, work_id, fence, number, outcome, body, digest, previous, created_by, created_at) "
        "SELECT 'rr-twin', work_id, fence, 4, outcome, body, digest, previous, created_by, created_at "
        "FROM receipts WHERE id = ?",
        found[2].id,
    )
    await fails_closed(s, work, "rr-twin")


async def test_a_receipt_of_an_attempt_that_was_not_completed_names_itself(node: InProcessNode) -> None:
    """Claim lineage: the fence must be of a binding of this Work whose custody was completed."""
    s = await stage(node)
    work, found = await chain(s)
    node.execute("UPDATE bindings SET custody = 'released' WHERE work_id = ? AND fence = 2", work.id)
    await fails_closed(s, work, found[1].id)


async def test_a_receipt_of_another_work_is_none_of_this_one(node: InProcessNode) -> None:
    s = await stage(node)
    work, found = await chain(s, 1)
    other = await s.submitted(s.cid, "other")
    node.execute("UPDATE receipts SET work_id = ?, number = 2 WHERE id = ?", other.id, found[0].id)
    await fails_closed(s, other, found[0].id)
    await fails_closed(s, work, found[0].id)


async def test_a_receipt_that_cannot_be_read_is_set_aside_and_fails_closed(node: InProcessNode) -> None:
    s = await stage(node)
    work, found = await chain(s, 1)
    was = spoil(node.store.path, "receipts", found[0].id)
    for ask in (ListReceipts(work_id=work.id), works.VERBS["show"].request(s, work)):
        assert await node.refused(ask) == refusals.unreadable(f"receipts/{found[0].id}")
    refusal = await works.ann(s).refused(works.VERBS["accept"].request(s, work))
    assert refusal == refusals.unreadable(f"receipts/{found[0].id}")
    mend(node.store.path, "receipts", found[0].id, was)
    assert not isinstance(await node.follow(refusal), Refusal)
    await works.accepted(s, work)


async def test_work_receipts_receipt_chain_broken(node: InProcessNode) -> None:
    s = await stage(node)
    work, found = await chain(s, 1)
    node.execute("UPDATE receipts SET body = '{}'")
    await fails_closed(s, work, found[0].id)
