"""``work.accept``, ``request-changes``, ``cancel``, ``fail``, ``check``: what is decided, one test an outcome."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import attrs
import pytest

from client.protocol.attempt import CheckResult, Custody, RecordCheck
from client.protocol.ids import ReceiptId
from client.protocol.refusals import Code, Refusal
from client.protocol.session import ReportSession, SessionCause
from client.protocol.work import Condition, Phase, Resolution, Work
from client.protocol.work_asks import AcceptWork, CancelWork, FailWork, RequestChanges, UpdateWork
from tests.support import works
from tests.support.node import InProcessNode
from tests.support.run import Stage, stage


def accept(work: Work, receipt: str = "") -> AcceptWork:
    receipt_id = ReceiptId(receipt or str(work.receipt_id))
    return AcceptWork(work_id=work.id, expected_version=work.version, receipt_id=receipt_id)


def changes(work: Work) -> RequestChanges:
    return RequestChanges(work_id=work.id, expected_version=work.version, reason="too slow")


def check(s: Stage, work: Work, name: str = "unit", *, passed: bool = True) -> RecordCheck:
    assert work.receipt_id is not None
    return RecordCheck(
        work_id=work.id,
        receipt_id=work.receipt_id,
        sup_gen=s.sup_gen,
        line=f"{name}=make {name}",
        passed=passed,
        snapshot="sha256:1",
        log_digest="sha256:2",
    )


async def test_work_accept_ok(node: InProcessNode) -> None:
    s = await stage(node)
    work = await s.submitted(s.bob)
    after = await works.ann(s).ok(accept(work))
    assert after == attrs.evolve(
        work, version=5, phase=Phase.CLOSED, resolution=Resolution.ACCEPTED, updated_at=after.updated_at
    )


async def test_work_accept_fence_stale(node: InProcessNode) -> None:
    """The receipt of an earlier attempt, though it is of the same Work; and one that never was."""
    s = await stage(node)
    first = await s.submitted(s.bob)
    back = await works.ann(s).ok(changes(first))
    await s.admit(back, s.bob)
    work = await s.submit(await s.start(back, s.bob), s.bob)
    for other in (str(first.receipt_id), "rr-0"):
        assert await works.ann(s).refused(accept(work, other)) == Refusal(
            code=Code.FENCE_STALE,
            about=f"receipt/{other}",
            lifted_by=f"the submission in review is {work.receipt_id}; review that one",
        )
    await works.ann(s).ok(accept(work))


async def test_work_accept_gate_not_passed(node: InProcessNode) -> None:
    """Missing, red, then green; or the Host takes the check away, an event like any other."""
    s = await stage(node)
    work = await s.submitted(s.bob, checks=["unit=make unit", "lint=make lint"])

    def refusal(name: str, said: str, version: int = work.version) -> Refusal:
        command = f"firm work update {work.id} --expected-version {version} --remove-check {name}"
        lifted_by = f"check {name} {said}; a new attempt lifts it, or the Host takes the check away: {command}"
        return Refusal(code=Code.GATE_NOT_PASSED, about=f"work/{work.id}", lifted_by=lifted_by)

    assert await works.ann(s).refused(accept(work)) == refusal("unit", "has no result yet")
    await works.supervisor(s).ok(check(s, work, passed=False))
    assert await works.ann(s).refused(accept(work)) == refusal("unit", "failed")
    await works.supervisor(s).ok(check(s, work))
    assert await works.ann(s).refused(accept(work)) == refusal("lint", "has no result yet")
    fewer = await works.ann(s).ok(UpdateWork(work_id=work.id, expected_version=work.version, remove_check="lint"))
    assert (await works.ann(s).ok(accept(fewer))).resolution is Resolution.ACCEPTED


async def test_a_result_of_an_earlier_submission_opens_no_gate(node: InProcessNode) -> None:
    s = await stage(node)
    work = await s.submitted(s.bob, checks=["unit=make unit"])
    await works.supervisor(s).ok(check(s, work))
    back = await works.ann(s).ok(changes(work))
    await s.admit(back, s.bob)
    again = await s.submit(await s.start(back, s.bob), s.bob)
    assert (await works.ann(s).refused(accept(again))).code is Code.GATE_NOT_PASSED


async def test_work_accept_no_acceptor(node: InProcessNode) -> None:
    """A Host's own Work without a peer in the run; adding one lifts it."""
    s = await stage(node)
    work = await s.submitted(s.ann)
    for who in (s.bob, s.cid):
        node.execute("UPDATE member_runs SET coordination = 'retired' WHERE id = ?", who.place.id)
    said = "add a member to the run, who then can; or cancel the Work"
    refusal = Refusal(code=Code.NO_ACCEPTOR, about=f"work/{work.id}", lifted_by=said)
    assert await works.ann(s).refused(accept(work)) == refusal
    assert await works.cid(s).refused(accept(work)) == refusal
    node.execute("UPDATE member_runs SET coordination = 'active' WHERE id = ?", s.cid.place.id)
    await works.cid(s).ok(accept(work))


async def test_work_request_changes_no_acceptor(node: InProcessNode) -> None:
    """A Host that has no place in the run decides nothing in it."""
    s = await stage(node)
    work = await s.submitted(s.bob)
    node.execute("UPDATE member_runs SET coordination = 'closed' WHERE id = ?", s.ann.place.id)
    refusal = await works.ann(s).refused(changes(work))
    command = f"firm member-run reopen {s.ann.place.id} --expected-version {s.ann.place.version}"
    assert refusal == Refusal(
        code=Code.NO_ACCEPTOR, about=f"work/{work.id}", lifted_by=f"open its place again: {command}"
    )
    node.execute("UPDATE member_runs SET coordination = 'retired' WHERE id = ?", s.ann.place.id)
    refusal = await works.ann(s).refused(changes(work))
    command = f"firm member-run add --team-run-id {s.run.id} --membership-id {s.ann.membership.id}"
    assert refusal.lifted_by == f"give its Host a place in the run: {command}"
    await node.follow(refusal)
    await works.ann(s).ok(changes(work))


async def test_work_accept_receipt_chain_broken(node: InProcessNode) -> None:
    s = await stage(node)
    work = await s.submitted(s.bob)
    node.execute("UPDATE receipts SET body = replace(body, 'done', 'gone')")
    said = "nothing here mends it: restore a backup, or cancel the Work and have it done again"
    assert await works.ann(s).refused(accept(work)) == Refusal(
        code=Code.RECEIPT_CHAIN_BROKEN, about=f"receipt/{work.receipt_id}", lifted_by=said
    )
    assert (await works.cancelled(s, work)).resolution is Resolution.CANCELLED


async def test_work_request_changes_ok(node: InProcessNode) -> None:
    """Open again, with its owner; the next attempt gets the next fence."""
    s = await stage(node)
    work = await s.submitted(s.bob)
    after = await works.ann(s).ok(changes(work))
    assert after == attrs.evolve(work, version=5, phase=Phase.OPEN, reason="too slow", updated_at=after.updated_at)
    assert (await s.admit(after, s.bob)).fence == 2


@pytest.mark.parametrize("before", ["open", "active", "blocked", "held", "orphaned", "review"])
@pytest.mark.parametrize("how", [Resolution.CANCELLED, Resolution.FAILED])
async def test_a_work_is_closed_from_anywhere(node: InProcessNode, before: str, how: Resolution) -> None:
    """Its live attempt ends with the reason."""
    s = await stage(node)
    make: dict[str, Callable[[], Awaitable[Work]]] = {
        "open": s.work,
        "active": lambda: s.started(s.bob),
        "blocked": lambda: works.blocked(s),
        "held": lambda: works.unheard(s),
        "orphaned": lambda: works.orphaned(s),
        "review": lambda: s.submitted(s.bob),
    }
    work = await make[before]()
    kind = CancelWork if how is Resolution.CANCELLED else FailWork
    after = await works.ann(s).ok(kind(work_id=work.id, expected_version=work.version, reason="no need"))
    assert after == attrs.evolve(
        work,
        version=work.version + 1,
        phase=Phase.CLOSED,
        condition=Condition.NORMAL,
        held=None,
        resolution=how,
        reason="no need",
        updated_at=after.updated_at,
    )
    ended = {"active", "blocked", "orphaned"}
    found = [(b.custody, b.reason) for b in (await s.shown(work)).bindings if before in ended]
    assert found == ([(Custody.RELEASED, "no need")] if before in ended else [])


async def test_work_cancel_ok(node: InProcessNode) -> None:
    """Nothing is concluded for the Works that need it."""
    s = await stage(node)
    need = await s.work("need")
    later = await s.work("later", prerequisite_work_ids=[need.id])
    assert (await works.cancelled(s, need)).resolution is Resolution.CANCELLED
    assert (await s.shown(later)).work == later


async def test_work_fail_ok(node: InProcessNode) -> None:
    s = await stage(node)
    need = await s.work("need")
    later = await s.work("later", prerequisite_work_ids=[need.id])
    after = await works.ann(s).ok(FailWork(work_id=need.id, expected_version=1, reason="impossible"))
    assert (after.phase, after.resolution, after.reason) == (Phase.CLOSED, Resolution.FAILED, "impossible")
    assert (await s.shown(later)).work == later


async def test_work_check_ok(node: InProcessNode) -> None:
    """It changes no Work; the last result of a name counts."""
    s = await stage(node)
    work = await s.submitted(s.bob, checks=["unit=make unit"])
    found = await works.supervisor(s).ok(check(s, work))
    assert work.receipt_id is not None
    assert found == CheckResult(
        receipt_id=work.receipt_id,
        name="unit",
        passed=True,
        snapshot="sha256:1",
        log_digest="sha256:2",
        at=found.at,
        line="unit=make unit",
    )
    await works.supervisor(s).ok(check(s, work, passed=False))
    assert (await s.shown(work)).work == work
    assert (await works.ann(s).refused(accept(work))).code is Code.GATE_NOT_PASSED


async def test_work_check_invalid_state_transition(node: InProcessNode) -> None:
    s = await stage(node)
    work = await s.submitted(s.bob, checks=["unit=make unit"])
    other = attrs.evolve(check(s, work), receipt_id=ReceiptId("rr-0"))
    said = "a check runs on the submission in review; this one is not"
    refusal = Refusal(code=Code.INVALID_STATE_TRANSITION, about=f"work/{work.id}", lifted_by=said)
    assert await works.supervisor(s).refused(other) == refusal
    await works.ann(s).ok(changes(work))
    assert await works.supervisor(s).refused(check(s, work)) == refusal


async def test_a_result_is_of_a_check_that_the_work_names(node: InProcessNode) -> None:
    s = await stage(node)
    work = await s.submitted(s.bob, checks=["unit=make unit"])
    refusal = await works.supervisor(s).refused(check(s, work, "slow"))
    said = f"the checks of {work.id}: unit"
    assert refusal == Refusal(code=Code.NOT_FOUND, about="check/slow", lifted_by=said)


async def test_work_check_supervisor_generation_fenced(node: InProcessNode) -> None:
    s = await stage(node)
    work = await s.submitted(s.bob, checks=["unit=make unit"])
    await works.fenced(s, attrs.evolve(check(s, work), sup_gen=s.sup_gen + 1))


async def test_a_session_that_ends_after_a_submission_takes_nothing_back(node: InProcessNode) -> None:
    s = await stage(node)
    work = await s.submitted(s.bob)
    ask = ReportSession(session_id=s.bob.session.id, session_gen=1, sup_gen=s.sup_gen, cause=SessionCause.EXITED)
    await works.supervisor(s).ok(ask)
    assert (await s.shown(work)).work == work
    await works.ann(s).ok(accept(work))
