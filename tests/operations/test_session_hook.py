"""``session.hook``, one test an outcome: what a member's own program says of its turn, and what it is not."""

from __future__ import annotations

import re

import attrs
import pytest

from client.protocol import codec
from client.protocol.agent import CreateAgent
from client.protocol.effect import EffectKind, EffectState, InterruptSession
from client.protocol.operation import Plane
from client.protocol.refusals import Code, Refusal
from client.protocol.session import Activity, AgentSession, Capacity, Ending, HookSession, SessionCause, Source
from daemon.operations import cycle
from providers import profiles
from providers.port import Typing
from providers.profiles import Hooks, Profile
from tests.operations.test_effect_deliver import cycle_ended, deliver, to_bob, told, waking
from tests.support import effects, mail
from tests.support.node import InProcessNode
from tests.support.run import Stage, stage
from tests.support.supervised import declined, report, supervised
from tests.support.works import ann, bob

#: The profile of the members of these tests.
NAME = CreateAgent(name="anybody").profile
HOOKS = Hooks(begun=["Begin"], ended=["Stop"], waiting=["Ask"])


@pytest.fixture(autouse=True)
def hooked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their program has hooks."""
    monkeypatch.setitem(profiles.PROFILES, NAME, Profile(name=NAME, argv=["/bin/true"], typing=Typing(), hooks=HOOKS))


async def said(s: Stage, event: str, sequence: int, turn: str = "one") -> AgentSession:
    return await bob(s).ok(HookSession(event=event, sequence=sequence, turn=turn))


async def test_session_hook_ok(node: InProcessNode) -> None:
    """What it says is on record with its source and its time; what comes late changes nothing at all."""
    s = await stage(node)
    found = await effects.session_now(s)
    for n, (event, activity) in enumerate((("Begin", "running"), ("Ask", "waiting_input"), ("Stop", "idle")), 10):
        found = await said(s, event, n)
        assert (found.activity, found.activity_source, found.activity_at) == (
            activity,
            Source.HOOK,
            found.updated_at,
        )
        assert found == await effects.session_now(s)
    before = node.rows()
    assert await said(s, "Ask", 99) == found
    assert await said(s, "Begin", 99) == found
    assert node.rows() == before
    assert (await said(s, "Begin", 100, "two")).activity is Activity.RUNNING


async def test_session_hook_hook_unknown(node: InProcessNode, monkeypatch: pytest.MonkeyPatch) -> None:
    s = await stage(node)
    asked = HookSession(event="PreToolUse", sequence=1)
    refusal = Refusal(
        code=Code.HOOK_UNKNOWN,
        about="event",
        lifted_by=f"name it under [hooks] in the profile {NAME!r}, or run nothing for it",
    )
    assert await bob(s).refused(asked) == refusal
    monkeypatch.setitem(profiles.PROFILES, NAME, Profile(name=NAME, argv=["/bin/true"]))
    assert (await bob(s).refused(HookSession(event="Stop", sequence=1))).code is Code.HOOK_UNKNOWN
    monkeypatch.delitem(profiles.PROFILES, NAME)
    assert (await bob(s).refused(HookSession(event="Stop", sequence=1))).code is Code.HOOK_UNKNOWN


async def test_a_hook_is_of_the_program_that_runs(node: InProcessNode, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its member may have been given another profile since; that is for the next session."""
    s = await stage(node)
    monkeypatch.setitem(profiles.PROFILES, "other", Profile(name="other", argv=["/bin/true"]))
    node.execute("UPDATE agents SET profile = 'other' WHERE id = ?", s.bob.agent.id)
    assert (await bob(s).ok(HookSession(event="Begin", sequence=1))).activity is Activity.RUNNING


async def test_session_hook_row_quarantined(node: InProcessNode) -> None:
    s = await stage(node)
    asked = HookSession(event="Begin", sequence=1)
    await mail.refused_while_spoilt(s, s.bob, asked, "member_runs", s.bob.place.id)


async def test_a_hook_is_heard_of_nobody_but_members(node: InProcessNode) -> None:
    s = await stage(node)
    asked = HookSession(event="Begin", sequence=1)
    assert (await node.refused(asked)).code is Code.NOT_AUTHORIZED
    assert (await node.refused(asked, plane=Plane.SUPERVISOR, actor=s.run.id)).code is Code.NOT_AUTHORIZED
    assert (await ann(s).ok(asked)).id == s.ann.session.id  # each speaks of itself


async def test_a_hook_is_no_sign_that_its_member_did_something(node: InProcessNode) -> None:
    """Hooks run also in a turn that comes to nothing."""
    s = await effects.live(node)
    await to_bob(s)
    await told(s)
    await said(s, "Begin", 1)
    await said(s, "Stop", 2)
    assert node.dispatcher.heard_at(s.bob.session.id) == float("-inf")
    assert (await cycle_ended(s, Ending.EMPTY_OUTPUT)).streak == 1
    assert (await said(s, "Begin", 3, "two")).streak == 1
    assert {"session.hook"} == cycle.REFLEXES


async def test_a_hook_cannot_say_what_a_provider_gives(node: InProcessNode) -> None:
    """I37: not even the member itself can; there is no such field, and no meaning of a hook is one."""
    s = await stage(node)
    asked = {"event": "Stop", "sequence": 1, "capacity": "exhausted", "capacity_source": "record error=quota"}
    refusal = codec.from_plain(asked, HookSession)
    assert isinstance(refusal, Refusal)
    assert refusal.code is Code.MALFORMED
    assert {"capacity", "capacity_source"} <= set(re.findall(r"\w+", refusal.lifted_by))
    for n, event in enumerate(('{"type":"error","error":"quota_exhausted"}', "quota_exhausted", "exhausted"), 1):
        assert (await bob(s).refused(HookSession(event=event, sequence=n))).code is Code.HOOK_UNKNOWN
    found = await bob(s).ok(HookSession(event="Stop", sequence=9, turn='{"error":"quota_exhausted"}'))
    assert (found.capacity, found.capacity_at) == (Capacity.UNKNOWN, None)


async def test_nothing_is_typed_into_a_turn_that_we_did_not_begin(node: InProcessNode) -> None:
    s = await effects.live(node)
    await to_bob(s)
    await said(s, "Begin", 1)
    assert waking(s, await effects.session_now(s)) is None
    refusal = await declined(s, deliver(s))
    assert refusal.lifted_by == (
        "its hooks say that a turn goes on (running) that we did not begin; it is told when that ends, or: "
        f"firm session interrupt {s.bob.session.id}"
    )
    await said(s, "Stop", 2)
    await supervised(s, deliver(s))


async def test_an_interrupt_lifts_a_turn_whose_end_nothing_told_of(node: InProcessNode) -> None:
    s = await effects.live(node)
    await to_bob(s)
    await said(s, "Begin", 1)
    key = await node.ok(InterruptSession(session_id=s.bob.session.id))
    await supervised(s, effects.settle(s, key))
    found = await effects.session_now(s)
    assert (found.activity, found.activity_at, found.activity_source) == (Activity.UNKNOWN, None, None)
    made = await supervised(s, deliver(s))
    assert (made.kind, made.state) == (EffectKind.DELIVER, EffectState.PREPARED)


async def test_a_delivery_knows_the_last_end_before_it(node: InProcessNode) -> None:
    s = await effects.live(node)
    await said(s, "Begin", 5)
    await said(s, "Stop", 6)
    await to_bob(s)
    assert (await supervised(s, deliver(s))).after_turn == 6


async def test_a_quick_turn_is_over_before_it_is_seen_that_its_text_was_taken(node: InProcessNode) -> None:
    """Its hooks say so, and nothing that comes afterwards takes that back."""
    s = await effects.live(node)
    await to_bob(s)
    made = await supervised(s, deliver(s))
    await said(s, "Begin", 1)
    await said(s, "Stop", 2)
    await supervised(s, effects.settle(s, made))
    found = await effects.session_now(s)
    assert (found.state, found.activity, found.activity_source) == ("active", Activity.IDLE, Source.HOOK)
    assert found.turn_ended > made.after_turn


@pytest.mark.parametrize("cause", [SessionCause.EXITED, SessionCause.LOST])
async def test_without_a_process_nothing_is_known_of_its_turn(node: InProcessNode, cause: SessionCause) -> None:
    s = await effects.live(node)
    await to_bob(s)
    await told(s)
    await said(s, "Begin", 1)
    found = await report(s, s.bob.session, cause)
    assert (found.activity, found.activity_source, found.activity_at) == (Activity.UNKNOWN, None, None)


async def test_a_daemon_that_was_not_there_knows_nothing_of_a_turn(node: InProcessNode) -> None:
    """Its end may have been told to nobody."""
    s = await effects.live(node)
    running = await said(s, "Begin", 1)
    same = await report(s, running, SessionCause.ADOPTED)
    assert same.activity is Activity.RUNNING
    node.execute("UPDATE capabilities SET daemon_gen = 99 WHERE session_id = ?", s.bob.session.id)
    found = await report(s, same, SessionCause.ADOPTED)
    assert (found.activity, found.turn_begun) == (Activity.UNKNOWN, 1)
    assert attrs.evolve(found, activity=same.activity).turn == "one"
