"""Attention for members that were to end: a run that completes waits for them, and says so."""

from __future__ import annotations

from client.cli.eyes.board import completes, ends
from client.protocol import codec
from client.protocol.board import Attention, AttentionKind, Board, ListAttention, ShowBoard
from client.protocol.effect import Certainty, CloseSession, EffectFinding, EffectKind, ListEffects, ResolveEffect
from client.protocol.team_run import CompleteTeamRun
from tests.support import effects
from tests.support.node import InProcessNode
from tests.support.run import Stage, stage
from tests.support.supervised import supervised


async def attention(s: Stage) -> list[Attention]:
    return (await s.node.ok(ListAttention(team_run_id=s.run.id))).items


async def items(s: Stage) -> list[Attention]:
    return [item for item in await attention(s) if item.kind is AttentionKind.NOT_ENDED]


async def board(s: Stage) -> Board:
    return await s.node.ok(ShowBoard(team_run_id=s.run.id))


async def completing(node: InProcessNode, certainty: Certainty, readback: str) -> Stage:
    """A run that waits for the end of one member only, of which so much is known."""
    s = await stage(node)
    await node.ok(CompleteTeamRun(team_run_id=s.run.id, expected_version=s.run.version))
    for stop in (await node.ok(ListEffects(team_run_id=s.run.id))).items:
        bobs = stop.session_id == s.bob.session.id
        settled = effects.settle(s, stop, certainty, readback) if bobs else effects.settle(s, stop)
        await supervised(s, settled)
    return s


async def test_a_run_that_waits_for_a_member_that_did_not_end_says_for_whom_and_what_lifts_it(
    node: InProcessNode,
) -> None:
    s = await completing(node, Certainty.NOT_APPLIED, "still there: 4711")
    (item,) = await items(s)
    assert item.about == f"session/{s.bob.session.id}"
    assert item.what == "bob was to end and has not: still there: 4711; the run completes after that"
    again = await node.ok(CloseSession(session_id=s.bob.session.id))
    assert item.lifted_by.endswith(f"firm session close {s.bob.session.id}")
    assert await items(s) == [], "it is under way again"
    await supervised(s, effects.settle(s, again))
    assert await items(s) == []


async def test_a_run_that_waits_for_an_end_that_nobody_could_read_asks_a_person(node: InProcessNode) -> None:
    s = await completing(node, Certainty.UNKNOWN, "the server does not answer")
    (item,) = await items(s)
    said = "whether the process of bob has ended is not known: the server does not answer; the run completes after that"
    assert (item.about.partition("/")[0], item.what) == ("effect", said)
    (stop,) = [e for e in (await node.ok(ListEffects(team_run_id=s.run.id))).items if f"effect/{e.id}" == item.about]
    assert (
        f"firm effect resolve {stop.id} --expected-version {stop.version} --finding confirm_applied" in item.lifted_by
    )
    found = ResolveEffect(
        effect_id=stop.id, expected_version=stop.version, finding=EffectFinding.CONFIRM_APPLIED, reason="it is gone"
    )
    await node.ok(found)
    assert await items(s) == []


async def test_a_member_that_did_not_end_is_told_of_also_where_the_run_goes_on(node: InProcessNode) -> None:
    s = await effects.live(node)
    await supervised(
        s, effects.settle(s, await effects.control(s, EffectKind.STOP), Certainty.NOT_APPLIED, "still there")
    )
    (item,) = await items(s)
    assert item.what == "bob was to end and has not: still there"


async def test_an_interrupt_that_nobody_could_read_is_told_of_until_somebody_says_what_it_did(
    node: InProcessNode,
) -> None:
    """Nothing else is done to its session before that."""
    s = await effects.live(node)
    made = await effects.control(s, EffectKind.INTERRUPT)
    await supervised(s, effects.settle(s, made, Certainty.UNKNOWN, "the server does not answer"))
    (item,) = [i for i in await attention(s) if i.about == f"effect/{made.id}"]
    said = "whether bob was interrupted is not known: the server does not answer"
    assert (item.kind, item.what) == (AttentionKind.UNINTERRUPTED, said)
    found = ResolveEffect(
        effect_id=made.id,
        expected_version=made.version + 1,
        finding=EffectFinding.CONFIRM_NOT_APPLIED,
        reason="it goes on",
    )
    await node.ok(found)
    assert await attention(s) == []


async def test_a_board_says_what_its_run_waits_for_before_it_completes(node: InProcessNode) -> None:
    s = await stage(node)
    assert (completes(plain := codec.to_plain(await board(s))), ends(plain)) == ([], [])
    await s.owned(s.bob)
    await node.ok(CompleteTeamRun(team_run_id=s.run.id, expected_version=s.run.version, when_closed=True))
    assert completes(codec.to_plain(await board(s))) == ["Completes by itself once 1 Work more is closed"]


async def test_a_list_of_members_says_what_a_run_waits_for_and_what_is_in_the_way(node: InProcessNode) -> None:
    s = await completing(node, Certainty.NOT_APPLIED, "still there: 4711")
    lines = ends(codec.to_plain(await board(s)))
    assert lines[:2] == [f"Run {s.run.id}:", "  Completes by itself once the processes of bob have ended"]
    assert "bob was to end and has not" in lines[2]
    assert lines[-1].endswith(f"firm session close {s.bob.session.id}")
