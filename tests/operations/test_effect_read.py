"""``effect.list``, ``effect.show`` and ``effect.resolve``: what a person sees of effects, and decides."""

from __future__ import annotations

import attrs
import pytest

from client.protocol.effect import (
    Certainty,
    EffectFinding,
    EffectKind,
    EffectState,
    ListEffects,
    ResolveEffect,
    RuntimeEffect,
    ShowEffect,
)
from client.protocol.event import ListEvents
from client.protocol.ids import EffectId, TeamRunId
from client.protocol.operation import Plane
from client.protocol.refusals import Code
from client.protocol.session import SessionState
from tests.support import effects, refusals
from tests.support.node import InProcessNode
from tests.support.refusals import refused_while_spoilt
from tests.support.run import stage
from tests.support.supervised import supervised
from tests.support.works import ann, bob

NOTHING = EffectId("nothing")
F = EffectFinding


def resolve(effect: RuntimeEffect, finding: EffectFinding = F.CONFIRM_NOT_APPLIED, version: int = 0) -> ResolveEffect:
    return ResolveEffect(
        effect_id=effect.id, expected_version=version or effect.version, finding=finding, reason="looked at the machine"
    )


async def test_effect_list_ok(node: InProcessNode) -> None:
    """Oldest first, page by page, of one state if that is wanted; a member sees those of its own run."""
    s = await effects.cold(node)
    first = await supervised(s, effects.settle(s, await effects.begun(s), Certainty.NOT_APPLIED))
    second = await effects.prepared(s)
    third = await effects.control(s, EffectKind.INTERRUPT)
    assert (await node.ok(ListEffects(team_run_id=s.run.id))).items == [first, second, third]
    assert (await ann(s).ok(ListEffects())).items == [first, second, third]
    found: list[RuntimeEffect] = []
    page = await node.ok(ListEffects(team_run_id=s.run.id, limit=2))
    while True:
        found += page.items
        if page.next is None:
            break
        page = await node.ok(ListEffects(team_run_id=s.run.id, limit=2, cursor=page.next))
    assert found == [first, second, third]
    assert (await node.ok(ListEffects(state=EffectState.PREPARED))).items == [second, third]


async def test_effect_list_cursor_invalid(node: InProcessNode) -> None:
    s = await effects.cold(node)
    await effects.prepared(s)
    await effects.control(s, EffectKind.INTERRUPT)
    page = await node.ok(ListEffects(limit=1))
    assert page.next is not None
    for wrong in (ListEffects(cursor="x"), ListEffects(cursor=page.next, state=EffectState.SETTLED)):
        assert await node.refused(wrong) == refusals.stale_cursor()


async def test_effect_list_not_found(node: InProcessNode) -> None:
    await stage(node)
    refusal = await node.refused(ListEffects(team_run_id=TeamRunId("nothing")))
    assert refusal == refusals.not_found("team-run", "nothing")


async def test_effect_list_row_quarantined(node: InProcessNode) -> None:
    s = await stage(node)
    await refused_while_spoilt(node, ListEffects(team_run_id=s.run.id), "team_runs", s.run.id)


async def test_effect_show_ok(node: InProcessNode) -> None:
    s = await effects.cold(node)
    made = await effects.prepared(s)
    assert await node.ok(ShowEffect(effect_id=made.id)) == made
    assert await ann(s).ok(ShowEffect(effect_id=made.id)) == made


async def test_effect_show_not_found(node: InProcessNode) -> None:
    """One of another run is not there for a member."""
    s, other = await effects.cold(node), await stage(node)
    made = await effects.prepared(s)
    assert await node.refused(ShowEffect(effect_id=NOTHING)) == refusals.not_found("effect", NOTHING)
    assert await bob(other).refused(ShowEffect(effect_id=made.id)) == refusals.not_found("effect", made.id)


async def test_effect_show_row_quarantined(node: InProcessNode) -> None:
    s = await effects.cold(node)
    made = await effects.prepared(s)
    await refused_while_spoilt(node, ShowEffect(effect_id=made.id), "effects", made.id)


@pytest.mark.parametrize(
    ("finding", "certainty", "state"),
    [
        (F.CONFIRM_APPLIED, Certainty.APPLIED, SessionState.IDLE),
        (F.CONFIRM_NOT_APPLIED, Certainty.NOT_APPLIED, SessionState.COLD),
    ],
)
async def test_effect_resolve_ok(
    node: InProcessNode, finding: EffectFinding, certainty: Certainty, state: SessionState
) -> None:
    """What a person found out counts as what was read back would have."""
    s = await effects.cold(node)
    lost = await effects.unread(s)
    done = await ann(s).ok(resolve(lost, finding))
    assert done == attrs.evolve(
        lost,
        version=lost.version + 1,
        state=EffectState.SETTLED,
        certainty=certainty,
        readback="looked at the machine",
        updated_at=done.updated_at,
        settled_at=done.updated_at,
    )
    assert (await effects.session_now(s)).state is state


async def test_what_is_kept_stays_unknown_and_says_who_looked(node: InProcessNode) -> None:
    s = await effects.cold(node)
    lost = await effects.unread(s)
    kept = await node.ok(resolve(lost, F.KEEP))
    assert kept == attrs.evolve(lost, version=lost.version + 1, updated_at=kept.updated_at)
    events = (await node.ok(ListEvents(stream=f"effect/{lost.id}"))).items
    assert (events[-1].kind, events[-1].actor) == ("kept: looked at the machine", "operator")
    assert (await node.ok(resolve(kept, F.CONFIRM_APPLIED))).certainty is Certainty.APPLIED


async def test_effect_resolve_invalid_state_transition(node: InProcessNode) -> None:
    """What is still under way is its supervisor's to read back; what is settled is settled."""
    s = await effects.cold(node)
    made = await effects.begun(s)
    for finding in F:
        refusal = await node.refused(resolve(made, finding))
        assert refusal == refusals.no_move(f"effect/{made.id}", "prepared", "recovery_required")
    done = await supervised(s, effects.settle(s, made))
    assert (await node.refused(resolve(done))).code is Code.INVALID_STATE_TRANSITION


async def test_effect_resolve_not_found(node: InProcessNode) -> None:
    s = await effects.cold(node)
    ask = attrs.evolve(resolve(await effects.unread(s)), effect_id=NOTHING)
    for plane, actor in ((Plane.OPERATOR, ""), (Plane.HOST, s.ann.session)):
        assert await node.refused(ask, plane=plane, actor=actor) == refusals.not_found("effect", NOTHING)


async def test_effect_resolve_row_quarantined(node: InProcessNode) -> None:
    s = await effects.cold(node)
    lost = await effects.unread(s)
    await refused_while_spoilt(node, resolve(lost), "effects", lost.id)


async def test_effect_resolve_version_conflict(node: InProcessNode) -> None:
    s = await effects.cold(node)
    lost = await effects.unread(s)
    for version in (lost.version - 1, lost.version + 1):
        refusal = await node.refused(resolve(lost, version=version))
        assert refusal == refusals.conflict(f"effect/{lost.id}", lost.version)


async def test_only_the_host_of_the_team_decides_an_effect(node: InProcessNode) -> None:
    s, other = await effects.cold(node), await stage(node)
    lost = await effects.unread(s)
    refusal = await ann(other).refused(resolve(lost))
    assert (refusal.code, refusal.about) == (Code.NOT_AUTHORIZED, f"team/{s.team.id}")
