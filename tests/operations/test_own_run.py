"""Which run is meant where none is named."""

from __future__ import annotations

from client.protocol.board import ShowBoard
from client.protocol.ids import TeamRef
from client.protocol.operation import Plane
from client.protocol.refusals import Code
from client.protocol.team_run import CreateTeamRun, StartTeamRun
from tests.support.node import InProcessNode
from tests.support.run import stage


async def test_a_member_means_its_own_run(node: InProcessNode) -> None:
    s = await stage(node)
    assert (await node.ok(ShowBoard(), plane=Plane.MEMBER, actor=s.bob.session)).run.id == s.run.id


async def test_the_operator_means_the_only_run_that_goes_on(node: InProcessNode) -> None:
    s = await stage(node)
    assert (await node.ok(ShowBoard())).run.id == s.run.id


async def test_the_operator_has_to_say_which_where_several_go_on(node: InProcessNode) -> None:
    s = await stage(node)
    other = await node.ok(CreateTeamRun(team_id=TeamRef(s.team.id)))
    await node.ok(StartTeamRun(team_run_id=other.id, expected_version=other.version))
    assert (await node.refused(ShowBoard())).code is Code.NOT_FOUND
