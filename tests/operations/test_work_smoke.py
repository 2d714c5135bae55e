"""One Work, all the way: the shortest use of the stage."""

from __future__ import annotations

from client.protocol.operation import Plane
from client.protocol.work_asks import AcceptWork
from tests.support.node import InProcessNode
from tests.support.run import stage


async def test_a_work_goes_all_the_way(node: InProcessNode) -> None:
    s = await stage(node)
    work = await s.submitted(s.bob)
    done = await node.ok(
        AcceptWork(work_id=work.id, expected_version=work.version, receipt_id=await s.receipt(work)),
        plane=Plane.HOST,
        actor=s.ann.session,
    )
    assert done.resolution == "accepted"
