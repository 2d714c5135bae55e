"""``session.steer`` and ``session.type``, one test an outcome: a text for the turn that goes on, a person who types."""

from __future__ import annotations

import pytest
from trio.testing import wait_all_tasks_blocked

from client.protocol.agent import CreateAgent
from client.protocol.effect import EffectKind, EffectState, SteerSession, StepIn, Terminal
from client.protocol.event import ListEvents
from client.protocol.ids import SessionId, TeamRef
from client.protocol.refusals import Code, Refusal
from client.protocol.session import SessionCause, SessionState
from client.protocol.team_run import CreateTeamRun
from providers import profiles
from providers.port import Typing
from providers.profiles import Profile
from tests.operations.test_effect_deliver import given, to_bob, told, words
from tests.operations.test_terminal import stall
from tests.support import effects, refusals
from tests.support.node import InProcessNode
from tests.support.refusals import refused_while_spoilt
from tests.support.run import Stage
from tests.support.supervised import report, supervised
from tests.support.works import ann, bob, cid

#: The profile of the members of these tests.
NAME = CreateAgent(name="anybody").profile


@pytest.fixture(autouse=True)
def able(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their program takes a text while it works."""
    found = Profile(name=NAME, argv=["/bin/true"], typing=Typing(), steers=True)
    monkeypatch.setitem(profiles.PROFILES, NAME, found)


async def turning(node: InProcessNode) -> Stage:
    """Bob is in a turn."""
    s = await effects.live(node)
    await to_bob(s)
    await told(s)
    return s


def steer(s: Stage, text: str = "rather blue") -> SteerSession:
    return SteerSession(session_id=s.bob.session.id, text=text)


async def test_session_steer_ok(node: InProcessNode) -> None:
    """It is a control: its supervisor types it; no mail, no Work and no session are changed by it."""
    s = await turning(node)
    before = await effects.session_now(s)
    for voice in (ann(s), None):
        made = await (voice.ok(steer(s)) if voice else node.ok(steer(s)))
        assert (made.kind, made.state, made.text) == (EffectKind.STEER, EffectState.PREPARED, "rather blue")
        assert (await supervised(s, words(s, made))).text == "rather blue"
        await supervised(s, effects.settle(s, made))
    assert await effects.session_now(s) == before


async def test_a_member_steers_nobody(node: InProcessNode) -> None:
    s = await turning(node)
    for voice in (bob(s), cid(s)):
        assert (await voice.refused(steer(s))).code is Code.NOT_AUTHORIZED


async def test_session_steer_no_turn_running(node: InProcessNode) -> None:
    s = await effects.live(node)
    refusal = await node.refused(steer(s))
    assert (refusal.code, refusal.about) == (Code.NO_TURN_RUNNING, f"session/{s.bob.session.id}")
    said = "it is idle; send it as a message: firm message send --recipient MEMBER --body TEXT"
    assert refusal.lifted_by == said


@pytest.mark.parametrize("typing", [None, Typing()])
async def test_session_steer_steer_unsupported(
    node: InProcessNode, monkeypatch: pytest.MonkeyPatch, typing: Typing | None
) -> None:
    """Also while no turn goes on: that would come to the same."""
    s = await turning(node)
    unable = Profile(name=NAME, argv=["/bin/true"], typing=typing)
    monkeypatch.setitem(profiles.PROFILES, NAME, unable)
    refusal = await node.refused(steer(s))
    assert (refusal.code, refusal.about) == (Code.STEER_UNSUPPORTED, f"session/{s.bob.session.id}")
    monkeypatch.delitem(profiles.PROFILES, NAME)
    assert (await node.refused(steer(s))).code is Code.STEER_UNSUPPORTED


async def test_a_steer_is_for_the_program_that_runs(node: InProcessNode) -> None:
    """Its member may have been given another profile since; that is for the next session."""
    s = await turning(node)
    node.execute("UPDATE agents SET profile = 'command' WHERE id = ?", s.bob.agent.id)
    assert (await node.ok(steer(s))).kind is EffectKind.STEER


async def test_session_steer_effect_unsettled(node: InProcessNode) -> None:
    s = await turning(node)
    made = await node.ok(steer(s))
    refusal = await node.refused(steer(s, "rather green"))
    assert (refusal.code, refusal.about) == (Code.EFFECT_UNSETTLED, f"effect/{made.id}")


async def test_session_steer_invalid_state_transition(node: InProcessNode) -> None:
    """Somebody has stepped in; or the session is closed."""
    s = await turning(node)
    node.execute("UPDATE sessions SET typist = 'operator' WHERE id = ?", s.bob.session.id)
    refusal = await node.refused(steer(s))
    assert refusal.lifted_by == "operator has stepped in there; it goes on when they leave"
    node.execute("UPDATE sessions SET typist = '' WHERE id = ?", s.bob.session.id)
    await supervised(s, effects.settle(s, await effects.control(s, EffectKind.STOP)))
    refusal = await node.refused(steer(s))
    assert (refusal.code, refusal.lifted_by) == (Code.INVALID_STATE_TRANSITION, "it is closed already")


async def test_session_steer_team_run_dormant(node: InProcessNode) -> None:
    s = await turning(node)
    planned = await node.ok(CreateTeamRun(team_id=TeamRef(s.team.id)))
    node.execute("UPDATE sessions SET team_run_id = ? WHERE id = ?", planned.id, s.bob.session.id)
    refusal = await node.refused(steer(s))
    assert (refusal.code, refusal.about) == (Code.TEAM_RUN_DORMANT, f"team-run/{planned.id}")


async def test_session_steer_not_found(node: InProcessNode) -> None:
    asked = SteerSession(session_id=SessionId("nothing"), text="x")
    assert await node.refused(asked) == refusals.not_found("session", "nothing")


async def test_session_steer_row_quarantined(node: InProcessNode) -> None:
    s = await turning(node)
    await refused_while_spoilt(node, steer(s), "sessions", s.bob.session.id)


def of_bob(s: Stage) -> StepIn:
    return StepIn(session_id=s.bob.session.id)


async def test_session_type_ok(node: InProcessNode) -> None:
    """From its first answer until it is cancelled they are there; events say who came and left, and when."""
    s, _ = await given(node)
    typing = node.send(of_bob(s))
    shown = await typing.outcome()
    assert isinstance(shown, Terminal)
    assert shown.argv
    assert (await effects.session_now(s)).typist == "operator"
    typing.scope.cancel()
    await wait_all_tasks_blocked()
    now = await effects.session_now(s)
    assert (now.typist, now.state) == ("", SessionState.IDLE)
    events = (await node.ok(ListEvents(stream=f"session/{now.id}"))).items[-2:]
    assert [(e.kind, e.actor) for e in events] == [("stepped in", "operator"), ("stepped out", "operator")]
    host = node.send(of_bob(s), plane=ann(s).plane, actor=ann(s).actor)
    assert isinstance(await host.outcome(), Terminal)
    assert (await effects.session_now(s)).typist == f"agent/{s.ann.agent.id}"


async def test_whose_session_has_ended_meanwhile_leaves_it_as_it_is(node: InProcessNode) -> None:
    s, _ = await given(node)
    typing = node.send(of_bob(s))
    await typing.outcome()
    node.execute("UPDATE sessions SET typist = '' WHERE id = ?", s.bob.session.id)
    before = node.rows()["events"]
    typing.scope.cancel()
    await wait_all_tasks_blocked()
    assert node.rows()["events"] == before


async def test_session_type_invalid_state_transition(node: InProcessNode) -> None:
    """One at a time, and only where there is a terminal."""
    s, _ = await given(node)
    await node.send(of_bob(s)).outcome()
    refusal = await node.refused(of_bob(s))
    said = "operator has stepped in there; it goes on when they leave"
    assert refusal == Refusal(code=Code.INVALID_STATE_TRANSITION, about=f"session/{s.bob.session.id}", lifted_by=said)
    refusal = await node.refused(StepIn(session_id=s.cid.session.id))
    assert refusal.code is Code.INVALID_STATE_TRANSITION


async def test_session_type_not_found(node: InProcessNode) -> None:
    refusal = await node.refused(StepIn(session_id=SessionId("nothing")))
    assert refusal == refusals.not_found("session", "nothing")


async def test_session_type_row_quarantined(node: InProcessNode) -> None:
    s, _ = await given(node)
    await refused_while_spoilt(node, of_bob(s), "sessions", s.bob.session.id)


async def test_session_type_provider_unreachable(node: InProcessNode) -> None:
    s, _ = await given(node)
    stall(node)
    assert (await node.refused(of_bob(s))).code is Code.PROVIDER_UNREACHABLE


@pytest.mark.parametrize("anew", [True, False])
async def test_another_daemon_forgets_who_stepped_in_and_another_supervisor_does_not(
    node: InProcessNode, *, anew: bool
) -> None:
    """The connection by which they are known is the daemon's."""
    s, _ = await given(node)
    await node.send(of_bob(s)).outcome()
    if anew:
        node.execute("UPDATE capabilities SET daemon_gen = daemon_gen - 1 WHERE session_id = ?", s.bob.session.id)
    adopted = await report(s, s.bob.session, SessionCause.ADOPTED)
    assert adopted.typist == ("" if anew else "operator")
