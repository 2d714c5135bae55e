"""Which conversation of its program a session has, and that two never share one."""

from __future__ import annotations

import apsw
import attrs
import pytest

from client.protocol.agent import ShowAgent, UpdateAgent
from client.protocol.ceiling import Ceiling
from client.protocol.event import ListEvents
from client.protocol.ids import AgentMemberRef
from client.protocol.operation import Plane
from client.protocol.refusals import Code
from client.protocol.session import AgentSession, Driver, OpenSession, ReportSession, SessionCause, SessionState
from client.protocol.team_run import CloseMemberRun, ReopenMemberRun
from daemon.operations import cycle
from providers import profiles
from providers.port import Typing
from providers.profiles import Native, Profile
from tests.support import effects
from tests.support.node import InProcessNode
from tests.support.run import Member, Stage, again, stage
from tests.support.supervised import declined, open_, place_now, report, said, supervised

NATIVE = Native(start=["--begin={native_id}"], resume=["--go-on={native_id}"], transcript="/kept/{native_id}")
#: Where ``effects.prepare`` says that a process works.
CWD = "/tmp"  # noqa: S108 — a folder


@pytest.fixture(autouse=True)
def programs(monkeypatch: pytest.MonkeyPatch) -> None:
    """``agent`` is typed to and keeps its conversation, ``puller`` asks for its Work by itself and does too."""
    found = (
        Profile(name="agent", argv=["/bin/agent"], typing=Typing(), native=NATIVE),
        Profile(name="other", argv=["/bin/agent"], typing=Typing(), native=NATIVE),
        Profile(name="puller", argv=["/bin/agent"], native=NATIVE),
        Profile(name="forgets", argv=["/bin/agent"], typing=Typing()),
    )
    monkeypatch.setattr(profiles, "PROFILES", {each.name: each for each in found})


async def member(s: Stage, *, profile: str = "agent", ceiling: Ceiling | None = None) -> None:
    """Make of Bob one that is run by this program."""
    bob = await s.node.ok(ShowAgent(agent_member_id=AgentMemberRef(s.bob.agent.id)))
    shown = await s.node.ok(
        UpdateAgent(
            agent_member_id=AgentMemberRef(bob.id),
            expected_version=bob.version,
            profile=profile,
            ceiling=ceiling,
        )
    )
    assert shown.profile == profile


async def launched(node: InProcessNode, *, profile: str = "agent") -> Stage:
    """Bob's program runs, and was told nothing yet."""
    s = await stage(node)
    await member(s, profile=profile)
    s = await effects.again(s)
    await supervised(s, effects.settle(s, await effects.begun(s)))
    return attrs.evolve(s, bob=attrs.evolve(s.bob, session=await effects.session_now(s)))


async def ended(node: InProcessNode, *, profile: str = "agent") -> Stage:
    """Bob's program was told of a Work, and has ended."""
    s = await launched(node, profile=profile)
    await s.started(s.bob)
    return attrs.evolve(s, bob=attrs.evolve(s.bob, session=await report(s, s.bob.session, SessionCause.EXITED)))


async def following(s: Stage, cwd: str = CWD) -> AgentSession:
    ask = OpenSession(member_run_id=s.bob.place.id, sup_gen=s.sup_gen, supersede=True, cwd=cwd)
    return await supervised(s, ask)


async def how(s: Stage, session: AgentSession) -> str:
    """How a session was opened, for the record."""
    events = await s.node.ok(ListEvents(stream=f"session/{session.id}"))
    return events.items[0].kind


async def began_anew(s: Stage, session: AgentSession, why: str) -> None:
    former = s.bob.session.native_session
    assert former
    assert session.native_session not in {"", former}
    assert session.resumed_from is None
    assert await how(s, session) == f"opened: native session {session.native_session}, not {former}: {why}"


async def test_a_program_that_keeps_a_conversation_gets_an_id_for_it(node: InProcessNode) -> None:
    s = await launched(node)
    first = s.bob.session
    assert (len(first.native_session), first.profile, first.resumed_from) == (36, "agent", None)
    assert await how(s, first) == f"opened: native session {first.native_session}"


@pytest.mark.parametrize(("profile", "driver"), [("forgets", Driver.HOST_DRIVEN), ("agent", Driver.USER_DRIVEN)])
async def test_nobody_else_gets_one(node: InProcessNode, profile: str, driver: Driver) -> None:
    s = await stage(node)
    await member(s, profile=profile)
    session = await supervised(s, open_(s.bob.place, s.sup_gen, driver=driver, supersede=True))
    assert (session.native_session, session.resumed_from) == ("", None)
    assert await how(s, session) == "opened"


@pytest.mark.parametrize("cwd", [CWD, ""], ids=["the same folder", "not known"])
async def test_the_next_session_of_a_place_goes_on_with_the_conversation(node: InProcessNode, cwd: str) -> None:
    s = await ended(node)
    former = s.bob.session
    second = await following(s, cwd)
    assert (second.native_session, second.resumed_from) == (former.native_session, former.id)
    assert second.session_gen == former.session_gen + 1
    assert await how(s, second) == f"opened: goes on with native session {former.native_session}"


async def test_so_does_one_after_a_session_that_never_came_to_a_process(node: InProcessNode) -> None:
    s = await ended(node)
    second = await following(s)
    third = await following(s)
    assert (third.native_session, third.resumed_from) == (s.bob.session.native_session, second.id)


async def reopened(s: Stage, *, fresh: bool) -> None:
    """Bob's place was closed, with its session, and opened again."""
    place = await place_now(s.node, s.bob.place)
    place = await s.node.ok(CloseMemberRun(member_run_id=place.id, expected_version=place.version))
    again = ReopenMemberRun(member_run_id=place.id, expected_version=place.version, fresh=fresh)
    assert (await s.node.ok(again)).fresh is fresh


async def stopped(node: InProcessNode) -> Stage:
    """The same, once the session was closed as well."""
    s = await launched(node)
    await s.node.store.write(lambda tx: cycle.stepped_in(tx, s.node.call(Plane.OPERATOR), s.bob.session.id))
    closed = await report(s, s.bob.session, SessionCause.CLOSED)
    return attrs.evolve(s, bob=attrs.evolve(s.bob, session=closed))


async def test_a_place_that_is_opened_again_goes_on_with_it(node: InProcessNode) -> None:
    """What a person typed there counts as said."""
    s = await stopped(node)
    await reopened(s, fresh=False)
    session = await supervised(s, open_(s.bob.place, s.sup_gen))
    assert (session.native_session, session.resumed_from) == (s.bob.session.native_session, s.bob.session.id)


async def test_a_place_that_is_opened_again_for_a_fresh_one_begins_it_once(node: InProcessNode) -> None:
    s = await stopped(node)
    await reopened(s, fresh=True)
    second = await supervised(s, open_(s.bob.place, s.sup_gen))
    await began_anew(s, second, "a fresh one was asked for")
    s = attrs.evolve(s, bob=attrs.evolve(s.bob, session=second))
    await supervised(s, effects.settle(s, await effects.begun(s)))
    await s.started(s.bob)
    s = attrs.evolve(s, bob=attrs.evolve(s.bob, session=await report(s, second, SessionCause.EXITED)))
    assert (await following(s)).native_session == second.native_session


@pytest.mark.parametrize("profile", ["other", "agent"])
async def test_another_program_or_ceiling_begins_anew(node: InProcessNode, profile: str) -> None:
    s = await ended(node)
    await member(s, profile=profile, ceiling=Ceiling.FULL_ACCESS if profile == "agent" else None)
    why = "its profile was agent" if profile == "other" else "its ceiling was workspace_write"
    await began_anew(s, await following(s), why)


async def test_in_another_folder_it_begins_anew(node: InProcessNode) -> None:
    s = await ended(node)
    await began_anew(s, await following(s, "/elsewhere"), f"it was in {CWD}")


async def test_what_was_told_nothing_begins_anew(node: InProcessNode) -> None:
    s = await launched(node)
    s = attrs.evolve(s, bob=attrs.evolve(s.bob, session=await report(s, s.bob.session, SessionCause.EXITED)))
    await began_anew(s, await following(s), "nothing was said in it")


async def test_of_a_program_that_is_told_nothing_nobody_knows_what_it_did(node: InProcessNode) -> None:
    s = await launched(node, profile="puller")
    ended_ = await report(s, s.bob.session, SessionCause.EXITED)
    assert (await following(s)).native_session == ended_.native_session


async def test_what_never_had_a_process_begins_anew(node: InProcessNode) -> None:
    s = await stage(node)
    await member(s)
    s = await effects.again(s)
    await began_anew(s, await following(s), "it never began")


async def test_after_a_restore_nobody_knows_who_went_on_with_it(node: InProcessNode) -> None:
    s = await ended(node)
    node.execute("UPDATE node SET generation_floor = 1000")
    await began_anew(s, await following(s), "the store was restored, and who went on with it since is not known")


async def test_another_run_begins_conversations_of_its_own(node: InProcessNode) -> None:
    s = await stopped(node)
    for each in (s.ann, s.cid):
        await report(s, each.session, SessionCause.CLOSED)
    other = (await again(s)).bob.session
    assert (other.native_session not in {"", s.bob.session.native_session}, other.resumed_from) == (True, None)
    assert await how(s, other) == f"opened: native session {other.native_session}"


async def test_session_open_native_session_taken(node: InProcessNode) -> None:
    """Nobody goes on with it before its process is proven to have ended, though its supervisor lost sight of that."""
    s = await launched(node)
    for cause in (None, SessionCause.LOST):
        if cause is not None:
            await report(s, s.bob.session, cause)
        refusal = await declined(s, open_(s.bob.place, s.sup_gen, supersede=True))
        assert (refusal.code, refusal.about) == (Code.NATIVE_SESSION_TAKEN, f"session/{s.bob.session.id}")
        assert refusal.lifted_by.endswith(f"firm session close {s.bob.session.id}")


@pytest.mark.parametrize("closed", [False, True])
async def test_session_report_native_session_taken(node: InProcessNode, *, closed: bool) -> None:
    """A program that says it is in the conversation of another one's place, also where nobody is in that now."""
    s = await stage(node)
    await supervised(s, reported(s, s.bob, "abc"))
    if closed:
        await report(s, s.bob.session, SessionCause.CYCLE_ENDED, SessionCause.CLOSED)
    refusal = await declined(s, reported(s, s.cid, "abc"))
    assert (refusal.code, refusal.about) == (Code.NATIVE_SESSION_TAKEN, f"session/{s.bob.session.id}")
    assert (await supervised(s, reported(s, s.cid, "abd"))).native_session == "abd"


def reported(s: Stage, of: Member, native_id: str) -> ReportSession:
    return said(of.session, SessionCause.CYCLE_STARTED, s.sup_gen, native_session=native_id)


@pytest.mark.parametrize("native_id", ["-x", "../etc", "a/b", "a b", "x" * 129])
async def test_what_is_no_id_is_not_taken_for_one(node: InProcessNode, native_id: str) -> None:
    """It becomes a word of a program and a part of a path."""
    s = await stage(node)
    refusal = await declined(s, reported(s, s.bob, native_id))
    assert (refusal.code, refusal.about) == (Code.MALFORMED, "native_session")


async def test_the_store_itself_keeps_two_sessions_out_of_one_conversation(node: InProcessNode) -> None:
    s = await launched(node)
    taken = s.bob.session.native_session
    with pytest.raises(apsw.ConstraintError, match=r"sessions\.native_session"):
        node.execute("UPDATE sessions SET native_session = ? WHERE id = ?", taken, s.cid.session.id)


@pytest.mark.parametrize("resumes", [False, True])
async def test_whether_a_launch_goes_on_is_recorded_before_it_is_done(node: InProcessNode, *, resumes: bool) -> None:
    """And stays so, whoever asks for it again."""
    s = await ended(node)
    second = await following(s)
    assert second.state is SessionState.COLD
    s = attrs.evolve(s, bob=attrs.evolve(s.bob, session=second))
    first = await supervised(s, attrs.evolve(effects.prepare(s), resumes=resumes))
    assert first.resumes is resumes
    assert await supervised(s, attrs.evolve(effects.prepare(s), resumes=not resumes)) == first
