"""Named checks, from what a supervisor finds due to what the Host is shown of them."""

from __future__ import annotations

import attrs

from client.protocol.attempt import CheckResult, RecordCheck
from client.protocol.board import DueCheck, ListDue
from client.protocol.event import WaitForEvent
from client.protocol.ids import Fence
from client.protocol.operation import Plane
from client.protocol.project import ShowProject
from client.protocol.refusals import Code, Refusal
from client.protocol.team_run import CompleteTeamRun
from client.protocol.work import Work
from client.protocol.work_asks import AcceptWork, HoldWork, RequestChanges, SubmitWork, UnholdWork, UpdateWork
from store import attempt as attempts
from tests.support import works
from tests.support.node import InProcessNode
from tests.support.run import Member, Stage, stage
from tests.support.supervised import close_all

COMMIT, OTHER = "a" * 40, "b" * 40
CHECKS = ["unit=make unit", "lint=limit=5 make lint"]


async def due(s: Stage) -> list[DueCheck]:
    return (await works.supervisor(s).ok(ListDue(team_run_id=s.run.id, sup_gen=s.sup_gen))).checks


async def submitted(s: Stage, by: Member, work: Work | None = None) -> Work:
    """A Work in review with a commit and two named checks."""
    started = work or await s.started(by, checks=CHECKS)
    ask = SubmitWork(
        work_id=started.id, expected_version=started.version, result_summary="done", candidate_revision=COMMIT
    )
    return await works.Voice(s.node, Plane.MEMBER, by.session).ok(ask)


def said(
    s: Stage, work: Work, name: str, *, passed: bool = True, revision: str = COMMIT, line: str = ""
) -> RecordCheck:
    assert work.receipt_id is not None
    return RecordCheck(
        work_id=work.id,
        receipt_id=work.receipt_id,
        sup_gen=s.sup_gen,
        line=line or next(each for each in work.checks if each.startswith(f"{name}=")),
        passed=passed,
        snapshot="tree",
        revision=revision,
        log_digest="log",
    )


async def test_the_checks_of_a_submission_are_due_until_each_has_its_result(node: InProcessNode) -> None:
    s = await stage(node)
    assert await due(s) == []
    work = await submitted(s, s.bob)
    assert work.receipt_id is not None
    root = (await node.ok(ShowProject(project_id=s.team.project_id))).root
    both = [
        DueCheck(work_id=work.id, receipt_id=work.receipt_id, fence=Fence(1), line=line, revision=COMMIT, root=root)
        for line in CHECKS
    ]
    assert await due(s) == both
    await works.supervisor(s).ok(said(s, work, "unit", passed=False))
    assert await due(s) == both[1:]
    await works.supervisor(s).ok(said(s, work, "lint"))
    assert await due(s) == []


async def test_a_report_is_due_without_a_commit_and_what_is_on_hold_waits(node: InProcessNode) -> None:
    s = await stage(node)
    work = await s.submitted(s.bob, checks=["unit=make unit"])
    assert [each.revision for each in await due(s)] == [""]
    held = await works.ann(s).ok(HoldWork(work_id=work.id, expected_version=work.version, reason="later"))
    assert await due(s) == []
    await works.ann(s).ok(UnholdWork(work_id=held.id, expected_version=held.version))
    assert len(await due(s)) == 1


async def test_what_cannot_be_read_holds_no_other_check_up(node: InProcessNode) -> None:
    """Its receipt is broken, and acceptance says so; the supervisor goes on with the others."""
    s = await stage(node)
    broken, sound = await submitted(s, s.bob), await s.submitted(s.cid, "sound", checks=["unit=a"])
    node.execute("UPDATE receipts SET body = '{' WHERE id = ?", broken.receipt_id)
    assert [each.work_id for each in await due(s)] == [sound.id]
    refusal = await works.supervisor(s).refused(said(s, broken, "unit"))
    assert refusal.code is Code.INVALID_STATE_TRANSITION


async def test_a_result_of_another_commit_is_refused(node: InProcessNode) -> None:
    s = await stage(node)
    work = await submitted(s, s.bob)
    for revision in (OTHER, ""):
        refusal = await works.supervisor(s).refused(said(s, work, "unit", revision=revision))
        assert refusal.code is Code.INVALID_STATE_TRANSITION
        assert refusal.lifted_by == f"it ran on {revision or 'no commit'}; the submission names {COMMIT}"
    await works.supervisor(s).ok(said(s, work, "unit"))


async def test_who_waits_for_the_run_hears_of_every_result_and_is_shown_the_last(node: InProcessNode) -> None:
    s = await stage(node)
    work = await submitted(s, s.bob)
    for passed in (False, True):
        before = node.store.seq
        result = await works.supervisor(s).ok(said(s, work, "unit", passed=passed))
        assert isinstance(result, CheckResult)
        waited = await node.ok(WaitForEvent(predicate=f"team-run:{s.run.id}.seq>{before}", timeout_ms=0))
        assert not waited.timed_out
        assert (await s.shown(work)).checks == [result]


async def test_a_result_is_shown_for_the_last_submission_only(node: InProcessNode) -> None:
    s = await stage(node)
    work = await submitted(s, s.bob)
    await works.supervisor(s).ok(said(s, work, "unit"))
    back = await works.ann(s).ok(RequestChanges(work_id=work.id, expected_version=work.version, reason="again"))
    await s.admit(back, s.bob)
    again = await submitted(s, s.bob, await s.start(back, s.bob))
    assert (await s.shown(again)).checks == []
    assert [each.fence for each in await due(s)] == [2, 2]


async def test_another_check_of_the_same_name_has_no_result_yet(node: InProcessNode) -> None:
    """The Host replaces what is run: what the former one said counts no more."""
    s = await stage(node)
    work = await submitted(s, s.bob)
    for name in ("unit", "lint"):
        await works.supervisor(s).ok(said(s, work, name))
    update = UpdateWork(
        work_id=work.id, expected_version=work.version, remove_check="unit", add_checks=["unit=make more"]
    )
    work = await works.ann(s).ok(update)
    assert [each.line for each in await due(s)] == ["unit=make more"]
    assert work.receipt_id is not None
    accept = AcceptWork(work_id=work.id, expected_version=work.version, receipt_id=work.receipt_id)
    assert (await works.ann(s).refused(accept)).code is Code.GATE_NOT_PASSED
    await works.supervisor(s).ok(said(s, work, "unit"))
    await works.ann(s).ok(accept)


async def test_a_check_that_was_replaced_while_it_ran_says_nothing_of_its_successor(node: InProcessNode) -> None:
    """What the former one says comes late and is refused, good or bad; the one that the Work names is still due."""
    s = await stage(node)
    work = await submitted(s, s.bob)
    await works.supervisor(s).ok(said(s, work, "lint"))
    update = UpdateWork(
        work_id=work.id, expected_version=work.version, remove_check="unit", add_checks=["unit=make more"]
    )
    after = await works.ann(s).ok(update)
    for passed in (True, False):
        refusal = await works.supervisor(s).refused(said(s, work, "unit", passed=passed))
        lifted_by = "its Host replaced the check unit while this one ran; the one that the Work names now is due"
        assert refusal == Refusal(code=Code.INVALID_STATE_TRANSITION, about=f"work/{work.id}", lifted_by=lifted_by)
    assert [each.line for each in await due(s)] == ["unit=make more"]
    assert [each.line for each in (await s.shown(after)).checks] == ["lint=limit=5 make lint"]
    found = await works.supervisor(s).ok(said(s, after, "unit"))
    assert (found.name, found.line) == ("unit", "unit=make more")
    assert await due(s) == []


async def test_a_result_of_another_line_that_is_stored_opens_no_gate_and_is_due_again(node: InProcessNode) -> None:
    """As after a migration: of a result whose check is not known nothing is concluded."""
    s = await stage(node)
    work = await submitted(s, s.bob)
    for name in ("unit", "lint"):
        await works.supervisor(s).ok(said(s, work, name))
    node.execute("UPDATE check_results SET line = '' WHERE name = 'unit'")
    assert work.receipt_id is not None
    accept = AcceptWork(work_id=work.id, expected_version=work.version, receipt_id=work.receipt_id)
    assert "check unit has no result yet" in (await works.ann(s).refused(accept)).lifted_by
    assert [each.line for each in await due(s)] == ["unit=make unit"]
    await works.supervisor(s).ok(said(s, work, "unit"))
    await works.ann(s).ok(accept)


async def test_a_log_is_named_by_results_of_runs_that_go_on_or_ended_not_long_ago(node: InProcessNode) -> None:
    """Of every submission, also one that was sent back or failed; not of a result that another took the place of."""
    s = await stage(node)
    first = await submitted(s, s.bob)
    for log in ("old", "red"):
        await works.supervisor(s).ok(attrs.evolve(said(s, first, "unit", passed=False), log_digest=log))
    back = await works.ann(s).ok(RequestChanges(work_id=first.id, expected_version=first.version, reason="again"))
    await s.admit(back, s.bob)
    second = await submitted(s, s.bob, await s.start(back, s.bob))
    await works.supervisor(s).ok(attrs.evolve(said(s, second, "lint"), log_digest="green"))

    def named(since: int) -> set[str]:
        return node.store.look(lambda tx: attempts.logs(tx, since=since))

    assert named(10**15) == {"red", "green"}, "whatever the time, while the run goes on"
    await works.cancelled(s, second)
    await close_all(s)
    ended = await node.ok(CompleteTeamRun(team_run_id=s.run.id, expected_version=s.run.version))
    assert ended.ended_at is not None
    assert (named(ended.ended_at - 1), named(ended.ended_at)) == ({"red", "green"}, set())
