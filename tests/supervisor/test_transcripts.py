"""Whether a member's program goes on with its conversation: what a supervisor looks at before it launches one."""

from __future__ import annotations

import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import attrs
import pytest
import trio

from client.protocol.agent import ShowAgent, UpdateAgent
from client.protocol.board import Seat
from client.protocol.effect import Certainty, PrepareEffect, SettleEffect
from client.protocol.event import ListEvents
from client.protocol.ids import AgentMemberRef
from client.protocol.operation import Plane
from client.protocol.refusals import Code, Refusal
from client.protocol.session import AgentSession, OpenSession
from client.protocol.team_run import TakeTeamRun
from providers.profiles import Native, Profile
from supervisor import transcripts
from tests.support.runtime import Runtime, runtime

#: Waits for its terminal, and shows the words behind it to whoever looks.
ARGV = ["/bin/sh", "-c", "read x; read x", "agent"]


@pytest.fixture
async def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Runtime]:
    async with runtime(tmp_path / "home", monkeypatch) as running:
        with trio.fail_after(25):
            yield running


@pytest.fixture
def kept(world: Runtime, tmp_path: Path) -> Path:
    """Bob's program keeps its conversations in that folder."""
    native = Native(
        start=["--begin", "{native_id}"], resume=["--go-on", "{native_id}"], transcript=f"{tmp_path}/{{native_id}}"
    )
    world.programs["command"] = Profile(name="command", argv=ARGV, native=native)
    return tmp_path


def words(session: AgentSession) -> list[str]:
    """How a process was told of its conversation."""
    return Path(f"/proc/{session.pid}/cmdline").read_text().split("\0")[len(ARGV) : -1]


async def how(world: Runtime, session: AgentSession) -> str:
    events = await world.node.ok(ListEvents(stream=f"session/{session.id}"))
    return events.items[0].kind


async def killed(world: Runtime) -> AgentSession:
    """A session whose process was killed."""
    session = await world.live()
    os.kill(session.pid, signal.SIGKILL)
    return session


async def test_a_transcript_that_is_there_is_gone_on_from(world: Runtime, kept: Path) -> None:
    world.supervise()
    first = await world.live()
    assert words(first) == ["--begin", first.native_session]
    (kept / first.native_session).write_text("said")
    await killed(world)
    second = await world.live(after=first.session_gen)
    assert words(second) == ["--go-on", first.native_session]
    assert [each.resumes for each in await world.effects()] == [False, True]


async def test_one_that_is_not_there_starts_nothing_and_says_why(world: Runtime, kept: Path) -> None:
    world.supervise()
    first = await killed(world)
    for effect in await world.refuted(3):
        assert (effect.pid, effect.resumes) == (0, False)
        assert effect.readback.startswith("NATIVE_SESSION_MISSING: ")
        assert f"there is nothing at {kept / first.native_session}; put it back" in effect.readback


async def failed(world: Runtime) -> AgentSession:
    """A session of which a launch came to nothing that may have begun its conversation."""
    run = await world.node.ok(TakeTeamRun(team_run_id=world.run.id), plane=Plane.SUPERVISOR, actor=world.run.id)
    opened = OpenSession(member_run_id=world.place.id, sup_gen=run.sup_gen, cwd=str(world.folder))
    session = await world.node.ok(opened, plane=Plane.SUPERVISOR, actor=world.run.id)
    ask = PrepareEffect(
        session_id=session.id, session_gen=session.session_gen, sup_gen=run.sup_gen, cwd=str(world.folder)
    )
    effect = await world.node.ok(ask, plane=Plane.SUPERVISOR, actor=world.run.id)
    settled = SettleEffect(effect_id=effect.id, sup_gen=run.sup_gen, certainty=Certainty.NOT_APPLIED)
    await world.node.ok(settled, plane=Plane.SUPERVISOR, actor=world.run.id)
    return session


@pytest.mark.parametrize("begun", [False, True])
async def test_a_session_that_is_launched_again_begins_or_goes_on_with_its_own(
    world: Runtime, kept: Path, *, begun: bool
) -> None:
    """A launch that nobody saw to become its program may have come so far as to write."""
    session = await failed(world)
    if begun:
        (kept / session.native_session).write_text("said")
    world.supervise()
    live = await world.live()
    assert (live.id, live.native_session) == (session.id, session.native_session)
    assert words(live) == ["--go-on" if begun else "--begin", session.native_session]


def folders(world: Runtime, *found: Path | Refusal) -> None:
    """What Bob's workspace is, one launch after the other."""
    left = list(found)

    async def folder(_: Seat) -> Path | Refusal:
        await trio.lowlevel.checkpoint()
        return left.pop(0)

    world.means = attrs.evolve(world.means, folder=folder)


async def test_in_another_folder_a_session_that_waits_for_its_conversation_makes_way(
    world: Runtime, kept: Path
) -> None:
    """Its workspace is another than when it was opened."""
    was, elsewhere = world.node.home, kept / "elsewhere"
    elsewhere.mkdir()
    folders(world, was, was, elsewhere)
    world.supervise()
    first = await killed(world)
    live = await world.live(after=first.session_gen)
    assert live.session_gen == first.session_gen + 2
    assert words(live) == ["--begin", live.native_session]
    why = f"not {first.native_session}: it was in {was}"
    assert await how(world, live) == f"opened: native session {live.native_session}, {why}"


async def test_a_workspace_that_is_refused_for_a_while_costs_no_conversation(world: Runtime, kept: Path) -> None:
    was = world.node.home
    folders(world, was, Refusal(code=Code.WORKSPACE_CONFLICT, about="there", lifted_by="move it away"), was)
    world.supervise()
    first = await world.live()
    (kept / first.native_session).write_text("said")
    await killed(world)
    live = await world.live(after=first.session_gen)
    assert words(live) == ["--go-on", first.native_session]
    assert [each.certainty.value for each in await world.effects()] == ["applied", "not_applied", "applied"]


async def test_another_program_is_not_launched_with_the_words_of_the_former(world: Runtime, kept: Path) -> None:
    """A session that never had a process makes way for one of the program that its member has now."""
    session = await failed(world)
    (kept / session.native_session).write_text("said")
    world.programs["other"] = attrs.evolve(world.programs["command"], name="other")
    bob = await world.node.ok(ShowAgent(agent_member_id=AgentMemberRef(session.agent_member_id)))
    await world.node.ok(
        UpdateAgent(agent_member_id=AgentMemberRef(bob.id), expected_version=bob.version, profile="other")
    )
    world.supervise()
    live = await world.live(after=session.session_gen)
    assert (live.profile, words(live)) == ("other", ["--begin", live.native_session])
    assert live.native_session != session.native_session


async def test_only_a_file_with_something_in_it_is_a_transcript(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    (tmp_path / "said").write_text("x")
    (tmp_path / "link").symlink_to("said")
    found = [name for name in ("said", "link", "empty", ".", "nothing") if await transcripts.found(tmp_path / name)]
    assert found == ["said", "link"]
    assert not await transcripts.found(None)
