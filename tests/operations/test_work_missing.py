"""What every verb about one Work refuses alike: one that is not there, or that cannot be read."""

from __future__ import annotations

from tests.support import works
from tests.support.node import InProcessNode
from tests.support.run import stage


async def test_work_accept_not_found(node: InProcessNode) -> None:
    await works.not_found(await stage(node), "accept")


async def test_work_accept_row_quarantined(node: InProcessNode) -> None:
    await works.quarantined(await stage(node), "accept")


async def test_work_admit_not_found(node: InProcessNode) -> None:
    await works.not_found(await stage(node), "admit")


async def test_work_admit_row_quarantined(node: InProcessNode) -> None:
    await works.quarantined(await stage(node), "admit")


async def test_work_assign_not_found(node: InProcessNode) -> None:
    await works.not_found(await stage(node), "assign")


async def test_work_assign_row_quarantined(node: InProcessNode) -> None:
    await works.quarantined(await stage(node), "assign")


async def test_work_block_not_found(node: InProcessNode) -> None:
    await works.not_found(await stage(node), "block")


async def test_work_block_row_quarantined(node: InProcessNode) -> None:
    await works.quarantined(await stage(node), "block")


async def test_work_cancel_not_found(node: InProcessNode) -> None:
    await works.not_found(await stage(node), "cancel")


async def test_work_cancel_row_quarantined(node: InProcessNode) -> None:
    await works.quarantined(await stage(node), "cancel")


async def test_work_check_not_found(node: InProcessNode) -> None:
    await works.not_found(await stage(node), "check")


async def test_work_check_row_quarantined(node: InProcessNode) -> None:
    await works.quarantined(await stage(node), "check")


async def test_work_claim_not_found(node: InProcessNode) -> None:
    await works.not_found(await stage(node), "claim")


async def test_work_claim_row_quarantined(node: InProcessNode) -> None:
    await works.quarantined(await stage(node), "claim")


async def test_work_delivery_not_found(node: InProcessNode) -> None:
    await works.not_found(await stage(node), "delivery")


async def test_work_delivery_row_quarantined(node: InProcessNode) -> None:
    await works.quarantined(await stage(node), "delivery")


async def test_work_fail_not_found(node: InProcessNode) -> None:
    await works.not_found(await stage(node), "fail")


async def test_work_fail_row_quarantined(node: InProcessNode) -> None:
    await works.quarantined(await stage(node), "fail")


async def test_work_heartbeat_not_found(node: InProcessNode) -> None:
    await works.not_found(await stage(node), "heartbeat")


async def test_work_heartbeat_row_quarantined(node: InProcessNode) -> None:
    await works.quarantined(await stage(node), "heartbeat")


async def test_work_hold_not_found(node: InProcessNode) -> None:
    await works.not_found(await stage(node), "hold")


async def test_work_hold_row_quarantined(node: InProcessNode) -> None:
    await works.quarantined(await stage(node), "hold")


async def test_work_receipts_not_found(node: InProcessNode) -> None:
    await works.not_found(await stage(node), "receipts")


async def test_work_receipts_row_quarantined(node: InProcessNode) -> None:
    await works.quarantined(await stage(node), "receipts")


async def test_work_recover_not_found(node: InProcessNode) -> None:
    await works.not_found(await stage(node), "recover")


async def test_work_recover_row_quarantined(node: InProcessNode) -> None:
    await works.quarantined(await stage(node), "recover")


async def test_work_redeliver_not_found(node: InProcessNode) -> None:
    await works.not_found(await stage(node), "redeliver")


async def test_work_redeliver_row_quarantined(node: InProcessNode) -> None:
    await works.quarantined(await stage(node), "redeliver")


async def test_work_release_not_found(node: InProcessNode) -> None:
    await works.not_found(await stage(node), "release")


async def test_work_release_row_quarantined(node: InProcessNode) -> None:
    await works.quarantined(await stage(node), "release")


async def test_work_replace_dependencies_not_found(node: InProcessNode) -> None:
    await works.not_found(await stage(node), "replace-dependencies")


async def test_work_replace_dependencies_row_quarantined(node: InProcessNode) -> None:
    await works.quarantined(await stage(node), "replace-dependencies")


async def test_work_request_changes_not_found(node: InProcessNode) -> None:
    await works.not_found(await stage(node), "request-changes")


async def test_work_request_changes_row_quarantined(node: InProcessNode) -> None:
    await works.quarantined(await stage(node), "request-changes")


async def test_work_resume_not_found(node: InProcessNode) -> None:
    await works.not_found(await stage(node), "resume")


async def test_work_resume_row_quarantined(node: InProcessNode) -> None:
    await works.quarantined(await stage(node), "resume")


async def test_work_retarget_not_found(node: InProcessNode) -> None:
    await works.not_found(await stage(node), "retarget")


async def test_work_retarget_row_quarantined(node: InProcessNode) -> None:
    await works.quarantined(await stage(node), "retarget")


async def test_work_show_not_found(node: InProcessNode) -> None:
    await works.not_found(await stage(node), "show")


async def test_work_show_row_quarantined(node: InProcessNode) -> None:
    await works.quarantined(await stage(node), "show")


async def test_work_start_not_found(node: InProcessNode) -> None:
    await works.not_found(await stage(node), "start")


async def test_work_start_row_quarantined(node: InProcessNode) -> None:
    await works.quarantined(await stage(node), "start")


async def test_work_submit_not_found(node: InProcessNode) -> None:
    await works.not_found(await stage(node), "submit")


async def test_work_submit_row_quarantined(node: InProcessNode) -> None:
    await works.quarantined(await stage(node), "submit")


async def test_work_unhold_not_found(node: InProcessNode) -> None:
    await works.not_found(await stage(node), "unhold")


async def test_work_unhold_row_quarantined(node: InProcessNode) -> None:
    await works.quarantined(await stage(node), "unhold")


async def test_work_update_not_found(node: InProcessNode) -> None:
    await works.not_found(await stage(node), "update")


async def test_work_update_row_quarantined(node: InProcessNode) -> None:
    await works.quarantined(await stage(node), "update")


async def test_work_verify_not_found(node: InProcessNode) -> None:
    await works.not_found(await stage(node), "verify")


async def test_work_verify_row_quarantined(node: InProcessNode) -> None:
    await works.quarantined(await stage(node), "verify")
