"""What every verb that moves a Work says of one that stands where it cannot."""

from __future__ import annotations

from tests.support import works
from tests.support.node import InProcessNode
from tests.support.run import stage


async def test_work_accept_invalid_state_transition(node: InProcessNode) -> None:
    s = await stage(node)
    await works.no_move(s, "accept", await s.work(), "review and normal")


async def test_work_admit_invalid_state_transition(node: InProcessNode) -> None:
    s = await stage(node)
    await works.no_move(s, "admit", await s.started(s.bob), "open and normal")


async def test_work_assign_invalid_state_transition(node: InProcessNode) -> None:
    s = await stage(node)
    await works.no_move(s, "assign", await works.cancelled(s, await s.work()), "open")


async def test_work_block_invalid_state_transition(node: InProcessNode) -> None:
    s = await stage(node)
    await works.no_move(s, "block", await works.blocked(s), "active and normal")


async def test_work_cancel_invalid_state_transition(node: InProcessNode) -> None:
    s = await stage(node)
    await works.no_move(s, "cancel", await works.cancelled(s, await s.work()), "open or active or review")


async def test_work_claim_invalid_state_transition(node: InProcessNode) -> None:
    s = await stage(node)
    await works.no_move(s, "claim", await works.cancelled(s, await s.work()), "open and normal")


async def test_work_fail_invalid_state_transition(node: InProcessNode) -> None:
    s = await stage(node)
    await works.no_move(s, "fail", await works.cancelled(s, await s.work()), "open or active or review")


async def test_work_hold_invalid_state_transition(node: InProcessNode) -> None:
    s = await stage(node)
    await works.no_move(
        s, "hold", await works.cancelled(s, await s.work()), "open or active or review and normal or blocked"
    )


async def test_work_recover_invalid_state_transition(node: InProcessNode) -> None:
    s = await stage(node)
    await works.no_move(s, "recover", await s.submitted(s.bob), "open or active and normal or blocked")


async def test_work_redeliver_invalid_state_transition(node: InProcessNode) -> None:
    s = await stage(node)
    await works.no_move(s, "redeliver", await s.started(s.bob), "open and normal")


async def test_work_release_invalid_state_transition(node: InProcessNode) -> None:
    s = await stage(node)
    await works.no_move(s, "release", await s.submitted(s.bob), "open")


async def test_work_replace_dependencies_invalid_state_transition(node: InProcessNode) -> None:
    s = await stage(node)
    await works.no_move(s, "replace-dependencies", await works.cancelled(s, await s.work()), "open or active or review")


async def test_work_request_changes_invalid_state_transition(node: InProcessNode) -> None:
    s = await stage(node)
    await works.no_move(s, "request-changes", await s.work(), "review and normal")


async def test_work_resume_invalid_state_transition(node: InProcessNode) -> None:
    s = await stage(node)
    await works.no_move(s, "resume", await s.started(s.bob), "active and blocked")


async def test_work_retarget_invalid_state_transition(node: InProcessNode) -> None:
    s = await stage(node)
    await works.no_move(s, "retarget", await works.cancelled(s, await s.work()), "open or active or review")


async def test_work_start_invalid_state_transition(node: InProcessNode) -> None:
    s = await stage(node)
    await works.no_move(s, "start", await s.started(s.bob), "open and normal")


async def test_work_submit_invalid_state_transition(node: InProcessNode) -> None:
    s = await stage(node)
    await works.no_move(s, "submit", await works.admitted(s), "active and normal")


async def test_work_unhold_invalid_state_transition(node: InProcessNode) -> None:
    s = await stage(node)
    await works.no_move(s, "unhold", await s.work(), "open or active or review and on_hold")


async def test_work_update_invalid_state_transition(node: InProcessNode) -> None:
    s = await stage(node)
    await works.no_move(s, "update", await works.cancelled(s, await s.work()), "open or active or review")


async def test_work_verify_invalid_state_transition(node: InProcessNode) -> None:
    s = await stage(node)
    work = await s.work(verifier_id=s.cid.membership.id)
    await works.no_move(s, "verify", work, "review and normal")
