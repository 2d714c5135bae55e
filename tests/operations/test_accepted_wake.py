"""A member whose Work is blocked gets one cycle when another of its Works is accepted, and one only."""

from __future__ import annotations

import pytest

from client.protocol.agent import CreateAgent
from client.protocol.board import Waking
from client.protocol.effect import Certainty, Wake
from client.protocol.session import Ending
from client.protocol.work import Work
from client.protocol.work_asks import BlockWork, ResumeWork
from providers import profiles
from providers.port import Typing
from providers.profiles import Profile
from supervisor.wake import wake
from tests.operations.test_effect_deliver import cycle_ended, deliver, told, waking, words
from tests.support import effects
from tests.support.node import InProcessNode
from tests.support.run import Stage
from tests.support.supervised import declined, supervised
from tests.support.works import accepted, bob

NAME = CreateAgent(name="anybody").profile


@pytest.fixture(autouse=True)
def able(monkeypatch: pytest.MonkeyPatch) -> None:
    """The members of these tests take text."""
    monkeypatch.setitem(profiles.PROFILES, NAME, Profile(name=NAME, argv=["/bin/true"], typing=Typing()))


async def do(s: Stage, title: str) -> Work:
    """Bob was given a Work, was told of it, and began."""
    work = await s.owned(s.bob, title)
    await s.admit(work, s.bob)
    await told(s)
    await cycle_ended(s, Ending.COMPLETED)
    return await s.start(work, s.bob)


async def blocked(s: Stage, title: str = "blocked") -> Work:
    work = await do(s, title)
    return await bob(s).ok(BlockWork(work_id=work.id, expected_version=work.version, reason="needs the other one"))


async def facts(s: Stage) -> Waking:
    found = waking(s, await effects.session_now(s))
    assert found is not None
    return found


async def test_an_acceptance_wakes_once(node: InProcessNode) -> None:
    s = await effects.live(node)
    stuck = await blocked(s)
    other = await s.submit(await do(s, "other"), s.bob)
    assert not (await facts(s)).accepted
    await accepted(s, other)
    assert wake(await effects.session_now(s), await facts(s)) is Wake.ACCEPTED
    made = await supervised(s, deliver(s, Wake.ACCEPTED))
    assert (made.wake, made.work_id, made.work_version) == (Wake.ACCEPTED, stuck.id, stuck.version)
    text = (await supervised(s, words(s, made))).text
    submit = f"work submit --work-id {stuck.id} --expected-version VERSION --result-summary TEXT"
    assert text.splitlines() == [
        f"Work {stuck.id}, version {stuck.version}: blocked",
        "It is blocked, and another Work of yours was accepted since. See whether it can go on now.",
        f"read it: firm work show --work-id {stuck.id}",
        f"then: firm work resume --work-id {stuck.id} --expected-version {stuck.version} --resolution TEXT",
        f"when it is done: firm {submit} --candidate-revision COMMIT (or --report-only)",
    ]
    await supervised(s, effects.settle(s, made))
    await cycle_ended(s, Ending.EMPTY_OUTPUT)
    assert not (await facts(s)).accepted
    assert (await declined(s, deliver(s, Wake.ACCEPTED))).lifted_by.startswith("nothing waits")
    # And once more for the next one.
    await accepted(s, await s.submit(await do(s, "third"), s.bob))
    assert (await facts(s)).accepted


async def test_what_was_accepted_before_it_was_blocked_wakes_nobody(node: InProcessNode) -> None:
    s = await effects.live(node)
    await accepted(s, await s.submit(await do(s, "other"), s.bob))
    await blocked(s)
    assert not (await facts(s)).accepted


async def test_the_work_of_another_wakes_nobody(node: InProcessNode) -> None:
    s = await effects.live(node)
    await blocked(s)
    await accepted(s, await s.submitted(s.cid, "of cid"))
    assert not (await facts(s)).accepted


async def test_a_work_that_goes_on_needs_no_such_wake(node: InProcessNode) -> None:
    s = await effects.live(node)
    stuck = await blocked(s)
    other = await s.submit(await do(s, "other"), s.bob)
    await bob(s).ok(ResumeWork(work_id=stuck.id, expected_version=stuck.version, resolution="found a way"))
    await accepted(s, other)
    assert not (await facts(s)).accepted


@pytest.mark.parametrize("certainty", Certainty)
async def test_a_text_that_was_held_is_told_again(node: InProcessNode, certainty: Certainty) -> None:
    """One of which nobody knows whether it was taken is not."""
    s = await effects.live(node)
    await blocked(s)
    await accepted(s, await s.submit(await do(s, "other"), s.bob))
    made = await supervised(s, deliver(s, Wake.ACCEPTED))
    await supervised(s, effects.settle(s, made, certainty, "held: draft"))
    if certainty is Certainty.NOT_APPLIED:
        assert (await facts(s)).accepted
    elif certainty is Certainty.UNKNOWN:
        assert waking(s, await effects.session_now(s)) is None
    else:
        await cycle_ended(s, Ending.COMPLETED)
        assert not (await facts(s)).accepted
