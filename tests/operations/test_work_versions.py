"""What every verb that changes a Work refuses alike: another version, a Work on hold, and none named."""

from __future__ import annotations

from tests.support import works
from tests.support.node import InProcessNode
from tests.support.run import stage


async def test_work_accept_version_conflict(node: InProcessNode) -> None:
    await works.conflict(await stage(node), "accept")


async def test_work_accept_work_on_hold(node: InProcessNode) -> None:
    await works.on_hold(await stage(node), "accept")


async def test_work_admit_work_on_hold(node: InProcessNode) -> None:
    await works.on_hold(await stage(node), "admit")


async def test_work_assign_version_conflict(node: InProcessNode) -> None:
    await works.conflict(await stage(node), "assign")


async def test_work_block_version_conflict(node: InProcessNode) -> None:
    await works.conflict(await stage(node), "block")


async def test_work_block_work_on_hold(node: InProcessNode) -> None:
    await works.on_hold(await stage(node), "block")


async def test_work_block_work_unclear(node: InProcessNode) -> None:
    await works.unclear(await stage(node), "block")


async def test_work_cancel_version_conflict(node: InProcessNode) -> None:
    await works.conflict(await stage(node), "cancel")


async def test_work_claim_version_conflict(node: InProcessNode) -> None:
    await works.conflict(await stage(node), "claim")


async def test_work_claim_work_on_hold(node: InProcessNode) -> None:
    await works.on_hold(await stage(node), "claim")


async def test_work_fail_version_conflict(node: InProcessNode) -> None:
    await works.conflict(await stage(node), "fail")


async def test_work_heartbeat_work_unclear(node: InProcessNode) -> None:
    await works.unclear(await stage(node), "heartbeat")


async def test_work_hold_version_conflict(node: InProcessNode) -> None:
    await works.conflict(await stage(node), "hold")


async def test_work_recover_version_conflict(node: InProcessNode) -> None:
    await works.conflict(await stage(node), "recover")


async def test_work_recover_work_on_hold(node: InProcessNode) -> None:
    await works.on_hold(await stage(node), "recover")


async def test_work_redeliver_version_conflict(node: InProcessNode) -> None:
    await works.conflict(await stage(node), "redeliver")


async def test_work_redeliver_work_on_hold(node: InProcessNode) -> None:
    await works.on_hold(await stage(node), "redeliver")


async def test_work_release_version_conflict(node: InProcessNode) -> None:
    await works.conflict(await stage(node), "release")


async def test_work_replace_dependencies_version_conflict(node: InProcessNode) -> None:
    await works.conflict(await stage(node), "replace-dependencies")


async def test_work_request_changes_version_conflict(node: InProcessNode) -> None:
    await works.conflict(await stage(node), "request-changes")


async def test_work_request_changes_work_on_hold(node: InProcessNode) -> None:
    await works.on_hold(await stage(node), "request-changes")


async def test_work_resume_version_conflict(node: InProcessNode) -> None:
    await works.conflict(await stage(node), "resume")


async def test_work_resume_work_on_hold(node: InProcessNode) -> None:
    await works.on_hold(await stage(node), "resume")


async def test_work_resume_work_unclear(node: InProcessNode) -> None:
    await works.unclear(await stage(node), "resume")


async def test_work_retarget_version_conflict(node: InProcessNode) -> None:
    await works.conflict(await stage(node), "retarget")


async def test_work_show_work_unclear(node: InProcessNode) -> None:
    await works.unclear(await stage(node), "show")


async def test_work_start_version_conflict(node: InProcessNode) -> None:
    await works.conflict(await stage(node), "start")


async def test_work_start_work_on_hold(node: InProcessNode) -> None:
    await works.on_hold(await stage(node), "start")


async def test_work_start_work_unclear(node: InProcessNode) -> None:
    await works.unclear(await stage(node), "start")


async def test_work_submit_version_conflict(node: InProcessNode) -> None:
    await works.conflict(await stage(node), "submit")


async def test_work_submit_work_on_hold(node: InProcessNode) -> None:
    await works.on_hold(await stage(node), "submit")


async def test_work_submit_work_unclear(node: InProcessNode) -> None:
    await works.unclear(await stage(node), "submit")


async def test_work_unhold_version_conflict(node: InProcessNode) -> None:
    await works.conflict(await stage(node), "unhold")


async def test_work_update_version_conflict(node: InProcessNode) -> None:
    await works.conflict(await stage(node), "update")


async def test_work_verify_version_conflict(node: InProcessNode) -> None:
    await works.conflict(await stage(node), "verify")


async def test_work_verify_work_on_hold(node: InProcessNode) -> None:
    await works.on_hold(await stage(node), "verify")
