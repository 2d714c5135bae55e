"""Mail while a run drains: nobody begins a turn for it alone."""

from __future__ import annotations

import pytest

from client.protocol.effect import Wake
from client.protocol.message import MailState
from client.protocol.refusals import Code
from client.protocol.session import Ending
from client.protocol.team_run import DrainTeamRun, ResumeTeamRun
from tests.operations.test_effect_deliver import cycle_ended, deliver, given, to_bob, told, waking
from tests.support import effects, mail
from tests.support.node import InProcessNode
from tests.support.run import Stage
from tests.support.supervised import declined, run_now


async def asked(s: Stage) -> int:
    found = waking(s, await effects.session_now(s))
    assert found is not None
    return found.asked


async def test_while_a_run_drains_mail_waits_for_who_has_no_work_in_it(node: InProcessNode) -> None:
    s = await effects.live(node)
    run = await run_now(node, s.run)
    run = await node.ok(DrainTeamRun(team_run_id=run.id, expected_version=run.version))
    sent = await to_bob(s)
    assert await asked(s) == 0
    assert (await declined(s, deliver(s))).code is Code.INVALID_STATE_TRANSITION
    assert (await mail.now(s, sent.deliveries[0])).state is MailState.QUEUED
    await node.ok(ResumeTeamRun(team_run_id=run.id, expected_version=run.version))
    assert await asked(s) == 1
    assert (await told(s)).wake is Wake.DELIVERY


@pytest.mark.parametrize("phase", ["open", "active", "review"])
async def test_while_a_run_drains_who_has_a_work_in_it_is_told_what_it_may_need(
    node: InProcessNode, phase: str
) -> None:
    s, work = await given(node)
    await told(s)
    await cycle_ended(s, Ending.COMPLETED)
    if phase != "open":
        work = await s.start(work, s.bob)
    if phase == "review":
        await s.submit(work, s.bob)
    run = await run_now(node, s.run)
    await node.ok(DrainTeamRun(team_run_id=run.id, expected_version=run.version))
    await to_bob(s)
    assert await asked(s) == 1
