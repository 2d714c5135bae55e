"""``work.verify``, one test an outcome; when its verifier is asked, and what a verdict does and does not."""

from __future__ import annotations

import attrs
import pytest

from client.protocol.board import Attention, AttentionKind, ListAttention, ShowBoard
from client.protocol.event import ListEvents, WaitForEvent
from client.protocol.ids import ReceiptId
from client.protocol.operation import Plane
from client.protocol.refusals import Code, Refusal
from client.protocol.verdict import Verdict, Verification
from client.protocol.work import Phase, Resolution, Work
from client.protocol.work_asks import RequestChanges, UpdateWork
from tests.support import ledger, mail, scene, works
from tests.support.node import InProcessNode
from tests.support.run import Stage, stage
from tests.support.verdicts import COMMIT, OTHER, UNIT, accept, again, checked, says, shut, submitted
from tests.support.works import Voice


async def asked(s: Stage, who: Voice) -> list[Attention]:
    items = (await who.ok(ListAttention(team_run_id=s.run.id))).items
    return [each for each in items if each.kind is AttentionKind.VERIFY]


async def reviews(s: Stage) -> list[str]:
    """What the Host is asked to decide about."""
    items = (await works.ann(s).ok(ListAttention(team_run_id=s.run.id))).items
    return [each.what for each in items if each.kind is AttentionKind.REVIEW]


async def test_work_verify_ok(node: InProcessNode) -> None:
    """It is kept as it was said, moves the Work's version and nothing else, and accepts nothing."""
    s = await stage(node)
    work = await submitted(s, checks=[UNIT])
    await works.supervisor(s).ok(checked(s, work))
    after = await works.cid(s).ok(says(work))
    assert after == attrs.evolve(work, version=work.version + 1, updated_at=after.updated_at)
    shown = await s.shown(after)
    assert shown.verdict is not None
    assert shown.verifier == "cid"
    assert shown.verdict == Verdict(
        id=shown.verdict.id,
        version=1,
        team_run_id=s.run.id,
        work_id=work.id,
        receipt_id=await s.receipt(work),
        membership_id=s.cid.membership.id,
        outcome=Verification.PASSED,
        revision=COMMIT,
        snapshot="tree",
        reason="read it and ran it",
        evidence=["make exit 0"],
        created_at=after.updated_at,
    )
    events = (await node.ok(ListEvents(stream=f"work/{work.id}"))).items
    assert [(each.version, each.kind, each.actor) for each in events[-1:]] == [
        (after.version, "verified: passed", f"agent/{s.cid.agent.id}")
    ]
    assert ledger.check_fold(node.store.path) > 10
    ledger.check(node.store.path)


async def test_an_acceptance_waits_for_the_verdict(node: InProcessNode) -> None:
    """None given yet, then given: the Host looks at the version that has it."""
    s = await stage(node)
    work = await submitted(s)
    assert await works.ann(s).refused(accept(work)) == shut(work, "has not said yet whether it holds")
    after = await works.cid(s).ok(says(work))
    assert (await works.ann(s).refused(accept(work))).code is Code.VERSION_CONFLICT
    assert (await works.ann(s).ok(accept(after))).resolution is Resolution.ACCEPTED


async def test_a_submission_that_does_not_hold_is_not_accepted_and_a_new_attempt_lifts_it(node: InProcessNode) -> None:
    s = await stage(node)
    work = await works.cid(s).ok(says(first := await submitted(s), Verification.FAILED))
    assert await works.ann(s).refused(accept(work)) == shut(work, "says that it does not hold")
    second = await again(s, work)
    assert second.receipt_id != first.receipt_id
    assert (await s.shown(second)).verdict is None
    assert await works.ann(s).refused(accept(second)) == shut(second, "has not said yet whether it holds")
    assert (await works.ann(s).ok(accept(await works.cid(s).ok(says(second))))).resolution is Resolution.ACCEPTED
    ledger.check(node.store.path)


async def test_the_host_takes_a_verifier_away_or_names_another(node: InProcessNode) -> None:
    """Each an event like any other. The word of the former counts no more; it counts again once it is named again."""
    s = await stage(node)
    dan = await mail.also(s, "dan")
    work = await works.cid(s).ok(says(await submitted(s), Verification.FAILED))
    other = await works.ann(s).ok(
        UpdateWork(work_id=work.id, expected_version=work.version, verifier_id=dan.membership.id)
    )
    assert (await s.shown(other)).verdict is None
    assert (await works.cid(s).refused(says(other))).code is Code.NOT_AUTHORIZED
    held = await works.member(s, dan).ok(says(other))
    back = await works.ann(s).ok(
        UpdateWork(work_id=work.id, expected_version=held.version, verifier_id=s.cid.membership.id)
    )
    refusal = await works.ann(s).refused(accept(back))
    assert refusal == shut(back, "says that it does not hold")
    free = await works.ann(s).ok(UpdateWork(work_id=work.id, expected_version=back.version, remove_verifier=True))
    assert (free.verifier_id, (await s.shown(free)).verifier, (await s.shown(free)).verdict) == (None, "", None)
    assert (await works.ann(s).ok(accept(free))).resolution is Resolution.ACCEPTED


async def test_work_verify_fence_stale(node: InProcessNode) -> None:
    """A verdict about an earlier submission, which it was asked about before; and about one that never was."""
    s = await stage(node)
    first = await submitted(s)
    second = await again(s, first)
    for receipt in (first.receipt_id, ReceiptId("rr-0")):
        refusal = await works.cid(s).refused(says(second, receipt_id=receipt))
        said = f"the submission in review is {second.receipt_id}; look at that one"
        assert refusal == Refusal(code=Code.FENCE_STALE, about=f"receipt/{receipt}", lifted_by=said)
    await works.cid(s).ok(says(second))


async def test_work_verify_gate_not_passed(node: InProcessNode) -> None:
    """Not before every named check passed: without a result, red, then green."""
    s = await stage(node)
    work = await submitted(s, checks=[UNIT, "lint=make lint"])

    def refusal(name: str, said: str) -> Refusal:
        command = f"firm work update {work.id} --expected-version {work.version} --remove-check {name}"
        lifted_by = f"check {name} {said}; a new attempt lifts it, or the Host takes the check away: {command}"
        return Refusal(code=Code.GATE_NOT_PASSED, about=f"work/{work.id}", lifted_by=lifted_by)

    assert await works.cid(s).refused(says(work)) == refusal("unit", "has no result yet")
    await works.supervisor(s).ok(checked(s, work))
    await works.supervisor(s).ok(checked(s, work, "lint=make lint", passed=False))
    assert await works.cid(s).refused(says(work)) == refusal("lint", "failed")
    await works.supervisor(s).ok(checked(s, work, "lint=make lint"))
    await works.cid(s).ok(says(work))


async def test_a_verdict_names_the_commit_that_was_submitted(node: InProcessNode) -> None:
    s = await stage(node)
    work = await submitted(s)
    report = await s.submitted(s.ann, "report", verifier_id=s.cid.membership.id)
    for which, wrong, right in ((work, OTHER, COMMIT), (work, "", COMMIT), (report, COMMIT, "")):
        refusal = await works.cid(s).refused(says(which, revision=wrong))
        said = f"this is about {wrong or 'no commit'}; the submission names {right or 'none'}"
        assert refusal == Refusal(code=Code.INVALID_STATE_TRANSITION, about=f"work/{which.id}", lifted_by=said)
    await works.cid(s).ok(says(report, revision=""))


@pytest.mark.parametrize("first", Verification)
async def test_a_verdict_is_given_once_of_a_submission(node: InProcessNode, first: Verification) -> None:
    """Whatever it was, and whatever it would be now. Asked at once, one of two is given."""
    s = await stage(node)
    work = await submitted(s)
    sent = [
        node.send(says(work, outcome), plane=Plane.MEMBER, actor=s.cid.session)
        for outcome in (first, *(set(Verification) - {first}))
    ]
    one, two = [await each.outcome() for each in sent]
    assert isinstance(one, Work)
    assert isinstance(two, Refusal)
    assert two.code is Code.VERSION_CONFLICT
    for outcome in Verification:
        refusal = await works.cid(s).refused(says(one, outcome))
        said = f"its verifier said {first.value} of this submission already; the next one is another matter"
        assert refusal == Refusal(code=Code.INVALID_STATE_TRANSITION, about=f"work/{work.id}", lifted_by=said)


async def test_work_verify_receipt_chain_broken(node: InProcessNode) -> None:
    s = await stage(node)
    work = await submitted(s)
    node.execute("UPDATE receipts SET body = replace(body, 'done', 'gone')")
    refusal = await works.cid(s).refused(says(work))
    assert (refusal.code, refusal.about) == (Code.RECEIPT_CHAIN_BROKEN, f"receipt/{work.receipt_id}")


async def test_nobody_but_the_verifier_gives_a_verdict(node: InProcessNode) -> None:
    """Neither its owner nor the Host, nor a member that another Work names; on no other plane at all."""
    s = await stage(node)
    dan = await mail.also(s, "dan")
    work, free = await submitted(s), await s.submitted(s.ann, "free")
    said = f"its verifier is {s.cid.membership.id}; nobody else speaks for it"
    for who in (works.ann(s), works.bob(s), works.member(s, dan)):
        refusal = await who.refused(says(work))
        assert refusal == Refusal(code=Code.NOT_AUTHORIZED, about=f"work/{work.id}", lifted_by=said)
    for who in (works.operator(s), works.supervisor(s), Voice(node, Plane.OBSERVER, s.cid.session)):
        assert (await who.refused(says(work))).about == "work.verify"
    command = f"firm work update {free.id} --expected-version {free.version} --verifier-id MEMBERSHIP"
    refusal = await works.cid(s).refused(says(free, revision=""))
    assert refusal == Refusal(
        code=Code.NOT_AUTHORIZED,
        about=f"work/{free.id}",
        lifted_by=f"it names no verifier; its Host names one: {command}",
    )


async def test_a_verifier_speaks_from_the_run_of_the_work(node: InProcessNode) -> None:
    s = await stage(node)
    work = await submitted(s)
    run = await works.second_run(s)
    node.execute(
        "UPDATE sessions SET member_run_id = (SELECT id FROM member_runs WHERE team_run_id = ? AND membership_id = ?) "
        "WHERE id = ?",
        run.id,
        s.cid.membership.id,
        s.cid.session.id,
    )
    refusal = await works.cid(s).refused(says(work))
    said = f"its verifier speaks from a session in the run {s.run.id}"
    assert refusal == Refusal(code=Code.NOT_AUTHORIZED, about=f"work/{work.id}", lifted_by=said)


async def test_a_verifier_is_asked_once_every_check_passed_and_not_after_it_answered(node: InProcessNode) -> None:
    """Who waits for the run hears of each step."""
    s = await stage(node)
    work = await submitted(s, checks=[UNIT])
    assert await asked(s, works.cid(s)) == []
    before = node.store.seq
    await works.supervisor(s).ok(checked(s, work, passed=False))
    assert await asked(s, works.cid(s)) == []
    result = await works.supervisor(s).ok(checked(s, work))
    waited = await works.cid(s).ok(WaitForEvent(predicate=f"team-run:{s.run.id}.seq>{before}", timeout_ms=0))
    assert not waited.timed_out
    command = (
        f"firm member work verify {work.id} --expected-version {work.version} --receipt-id {work.receipt_id} "
        f"--revision {COMMIT} --outcome passed --reason TEXT"
    )
    assert await asked(s, works.cid(s)) == [
        Attention(
            key=f"verify/{work.id}/{work.receipt_id}",
            kind=AttentionKind.VERIFY,
            about=f"work/{work.id}",
            what=f"you are to say whether the submission of 'build it' holds: commit {COMMIT}",
            lifted_by=f"look at exactly that, then say what you found: {command}, or --outcome failed",
            since=result.at,
        )
    ]
    for other in (works.ann(s), works.bob(s), works.operator(s)):
        assert await asked(s, other) == []
    await works.cid(s).ok(says(work))
    assert await asked(s, works.cid(s)) == []


async def test_a_verdict_is_another_incident_for_who_accepts(node: InProcessNode) -> None:
    s = await stage(node)
    work = await submitted(s)
    assert await reviews(s) == ["bob submitted 'build it'; cid is to verify it"]
    await works.cid(s).ok(says(work, Verification.FAILED))
    assert await reviews(s) == ["bob submitted 'build it'; cid verified it, failed: read it and ran it"]
    keys = [each.key for each in (await works.ann(s).ok(ListAttention(team_run_id=s.run.id))).items]
    assert keys == [f"review/{work.id}/{work.receipt_id}/failed"]


async def test_a_board_shows_who_is_to_verify_and_what_was_said(node: InProcessNode) -> None:
    s = await stage(node)
    work = await submitted(s)

    async def seen() -> tuple[str, Verification | None]:
        (found,) = [each for each in (await works.ann(s).ok(ShowBoard())).works if each.work_id == work.id]
        return found.verifier, found.verdict

    assert await seen() == ("cid", None)
    after = await works.cid(s).ok(says(work))
    assert await seen() == ("cid", Verification.PASSED)
    await works.ann(s).ok(RequestChanges(work_id=work.id, expected_version=after.version, reason="again"))
    assert await seen() == ("cid", None)


async def test_a_verifier_that_is_named_after_the_submission_is_asked_and_waited_for(node: InProcessNode) -> None:
    s = await stage(node)
    work = await submitted(s, verifier_id=None, checks=[UNIT])
    await works.supervisor(s).ok(checked(s, work))
    named = await works.ann(s).ok(
        UpdateWork(work_id=work.id, expected_version=work.version, verifier_id=s.cid.membership.id)
    )
    assert await works.ann(s).refused(accept(named)) == shut(named, "has not said yet whether it holds")
    assert len(await asked(s, works.cid(s))) == 1
    await works.ann(s).ok(accept(await works.cid(s).ok(says(named))))


async def test_checks_that_change_after_a_verdict_leave_it_what_it_is(node: InProcessNode) -> None:
    """Fewer: it stands. More: they have to pass as well, on the snapshot that was looked at."""
    s = await stage(node)
    work = await submitted(s, checks=[UNIT, "lint=make lint"])
    for line in (UNIT, "lint=make lint"):
        await works.supervisor(s).ok(checked(s, work, line))
    work = await works.cid(s).ok(says(work))
    work = await works.ann(s).ok(UpdateWork(work_id=work.id, expected_version=work.version, remove_check="lint"))
    work = await works.ann(s).ok(
        UpdateWork(work_id=work.id, expected_version=work.version, remove_check="unit", add_checks=["slow=make slow"])
    )
    assert "check slow has no result yet" in (await works.ann(s).refused(accept(work))).lifted_by
    await works.supervisor(s).ok(checked(s, work, "slow=make slow", snapshot="another"))
    assert await works.ann(s).refused(accept(work)) == shut(work, "looked at another snapshot")
    await works.supervisor(s).ok(checked(s, work, "slow=make slow"))
    assert await asked(s, works.cid(s)) == []
    assert (await works.ann(s).ok(accept(work))).phase is Phase.CLOSED


@pytest.mark.parametrize("way", ["left", "retired", "closed"])
async def test_a_verifier_that_cannot_speak_any_more_is_told_to_the_host(node: InProcessNode, way: str) -> None:
    """Once, with what lifts it. What it has said stands."""
    s = await stage(node)
    work, said = await submitted(s), await s.submitted(s.ann, "said", verifier_id=s.cid.membership.id)
    said = await works.cid(s).ok(says(said, revision=""))
    await mail.closed(s, s.cid)
    if way == "left":
        await scene.left(node, s.cid.membership)
    elif way == "retired":
        await scene.retired(node, s.cid.agent)
    else:
        node.execute("UPDATE member_runs SET coordination = 'closed' WHERE id = ?", s.cid.place.id)
    items = (await works.ann(s).ok(ListAttention(team_run_id=s.run.id))).items
    (item,) = [each for each in items if each.kind is AttentionKind.VERIFIER]
    why = {"left": "has left the team", "retired": "has left the team", "closed": "has no open place in the run"}[way]
    command = f"firm work update {work.id} --expected-version {work.version}"
    assert (item.key, item.about, item.what, item.lifted_by) == (
        f"verifier/{work.id}/{s.cid.membership.id}",
        f"work/{work.id}",
        f"cid cannot say whether a submission of 'build it' holds: it {why}",
        f"name another verifier, or none: {command} --verifier-id MEMBERSHIP, or {command} --remove-verifier",
    )
    dan = await mail.also(s, "dan")
    named = await works.ann(s).ok(
        UpdateWork(work_id=work.id, expected_version=work.version, verifier_id=dan.membership.id)
    )
    items = (await works.ann(s).ok(ListAttention(team_run_id=s.run.id))).items
    assert not [each for each in items if each.kind is AttentionKind.VERIFIER]
    await works.ann(s).ok(accept(await works.member(s, dan).ok(says(named))))
    await works.member(s, dan).ok(accept(said))


async def test_a_member_that_comes_back_is_not_the_verifier_that_left(node: InProcessNode) -> None:
    """It is another membership, which the Host names or does not."""
    s = await stage(node)
    work = await submitted(s)
    await scene.left(node, s.cid.membership)
    refusal = await works.cid(s).refused(says(work))
    assert (refusal.code, refusal.about) == (Code.NOT_AUTHORIZED, f"membership/{s.cid.membership.id}")
    await scene.joined(node, s.team, s.cid.agent)
    assert (await works.cid(s).refused(says(work))).code is Code.NOT_AUTHORIZED
    assert await works.ann(s).refused(accept(work)) == shut(work, "has not said yet whether it holds")
