"""Which run is meant where none is named."""

from __future__ import annotations

from client.protocol.board import ShowBoard
from client.protocol.ids import TeamRef
from client.protocol.operation import Plane
from client.protocol.refusals import Code, Refusal
from client.protocol.team_run import CreateTeamRun, StartTeamRun
from client.protocol.work_asks import DrawWorks, ListWorks
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
    named = f"{s.run.id} of {s.team.name}, {other.id} of {s.team.name}"
    said = f"several runs go on; say which with --team-run-id: {named}"
    refusal = Refusal(code=Code.NOT_FOUND, about="team_run_id", lifted_by=said)
    assert await node.refused(ShowBoard()) == refusal
    for _ in range(4):
        another = await node.ok(CreateTeamRun(team_id=TeamRef(s.team.id)))
        await node.ok(StartTeamRun(team_run_id=another.id, expected_version=another.version))
    assert (await node.refused(ShowBoard())).lifted_by.endswith(" and 1 more: firm team-run list")


async def test_the_operator_is_told_how_a_run_is_begun_where_none_goes_on(node: InProcessNode) -> None:
    said = "no run goes on; begin one: firm up FILE, or name one that ended: firm team-run list"
    refusal = Refusal(code=Code.NOT_FOUND, about="team_run_id", lifted_by=said)
    for ask in (ShowBoard(), ListWorks(), DrawWorks()):
        assert await node.refused(ask) == refusal
