"""A supervisor over real processes: what it starts, follows, ends and starts again."""

from __future__ import annotations

import logging
import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import attrs
import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from client.protocol.board import Seat
from client.protocol.boundary import Boundary
from client.protocol.effect import Certainty, CloseSession, EffectKind, EffectState, InterruptSession
from client.protocol.event import ListEvents
from client.protocol.operation import Plane
from client.protocol.refusals import Code, Refusal
from client.protocol.session import SessionState, ShowSession
from client.protocol.team_run import (
    CloseMemberRun,
    CompleteTeamRun,
    DrainTeamRun,
    ShowTeamRun,
    TakeTeamRun,
    TeamRun,
    TeamRunState,
)
from providers.port import Handle, Launch, NotStarted, Seen, Why
from providers.process import Process, stat
from supervisor import desk
from supervisor.run import hold
from tests.support.runtime import Runtime, runtime
from tests.support.terminals import STRAY, until, written


@pytest.fixture
async def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Runtime]:
    async with runtime(tmp_path / "home", monkeypatch) as running:
        with trio.fail_after(25):
            yield running


def kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)


async def test_a_member_is_launched_and_its_process_is_its_session(world: Runtime) -> None:
    world.supervise()
    session = await world.live()
    (effect,) = await world.effects()
    assert (effect.kind, effect.state, effect.certainty) == (EffectKind.LAUNCH, EffectState.SETTLED, Certainty.APPLIED)
    assert (session.pid, session.start_ticks, session.boot_id) == (effect.pid, effect.start_ticks, effect.boot_id)
    assert await world.living() == [session.pid]
    found = stat(session.pid)
    assert found is not None
    assert (found.comm, found.start_ticks) == ("cat", session.start_ticks)
    assert await trio.Path(f"/proc/{session.pid}/cwd").readlink() == trio.Path(world.node.home)
    variables = (await trio.Path(f"/proc/{session.pid}/environ").read_bytes()).split(b"\0")
    names = {each.partition(b"=")[0].decode() for each in variables if each}
    assert names == {"PATH", "TERM", "FIRM_LAUNCH_ID", "FIRM_CAPABILITY", *ENVELOPE}
    assert f"FIRM_LAUNCH_ID={effect.id}".encode() in variables


ENVELOPE = {
    "FIRM_TEAM_RUN_ID",
    "FIRM_MEMBER_RUN_ID",
    "FIRM_MEMBER_NAME",
    "FIRM_SPACE",
    "FIRM_PROJECT",
    "FIRM_PROJECT_ID",
}


async def test_a_process_that_dies_has_a_successor(world: Runtime) -> None:
    """The session says how it ended; the next one is of the next generation, and the former one is closed."""
    world.supervise()
    first = await world.live()
    kill(first.pid)
    second = await world.live(after=first.session_gen)
    assert second.session_gen == first.session_gen + 1
    assert second.pid != first.pid
    assert await world.living() == [second.pid]
    former = (await world.node.ok(ShowSession(session_id=first.id))).session
    assert former.state is SessionState.CLOSED
    kinds = [each.kind for each in (await world.node.ok(ListEvents(stream=f"session/{first.id}"))).items]
    said = [kind for kind in kinds if kind.startswith("exited")]
    assert said == ["exited: how it ended is not read yet", "exited: ended by signal 9"]


async def test_a_program_that_ends_at_once_is_not_started_for_ever(
    world: Runtime, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    pause = 0.6
    monkeypatch.setattr(desk, "_BACK_OFF", pause)
    world.program("/bin/false")
    began = trio.current_time()
    with caplog.at_level(logging.WARNING):
        world.supervise()

        async def given_up() -> bool:
            await trio.lowlevel.checkpoint()
            return "bob is not started again after 3 failures in a row" in caplog.text

        await until(given_up)
    await wait_all_tasks_blocked()
    assert len(await world.settled(3)) == 3
    assert trio.current_time() - began >= (2 + 4) * pause, (
        "it waits before the second, and twice as long before the third"
    )
    assert await world.living() == []


async def test_a_missing_workspace_is_the_reason(world: Runtime) -> None:
    world.folder = world.node.home / "nothing"
    world.supervise()
    for effect in await world.refuted(3):
        assert effect.readback == f"workspace_missing: there is no folder {str(world.folder)!r}"
    assert await world.living() == []


async def test_a_workspace_that_is_refused_starts_nothing_and_says_why(
    world: Runtime, caplog: pytest.LogCaptureFixture
) -> None:
    world.folder = Refusal(code=Code.WORKSPACE_CONFLICT, about="there", lifted_by="move it away")
    world.supervise()

    async def given_up() -> bool:
        await trio.lowlevel.checkpoint()
        return "not started again" in caplog.text

    await until(given_up)
    assert "bob is not launched: WORKSPACE_CONFLICT, move it away" in caplog.text
    for effect in await world.refuted(3):
        assert (effect.pid, effect.readback) == (0, "WORKSPACE_CONFLICT: move it away")


async def test_a_launcher_that_never_says_anything_is_ended(world: Runtime, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(desk, "HANDSHAKE_SECONDS", 0.2)
    script = "echo I do not know you; read x"
    world.means = attrs.evolve(world.means, launcher=lambda launch_id: ("/bin/sh", "-c", script, launch_id))
    world.supervise()
    for effect in await world.refuted(3):
        assert effect.readback == f"it did not become its program; its last screen: firm logs {effect.session_id}"
        assert effect.pid
        assert not Process(effect.pid, effect.start_ticks).lives()
    session = world.session()
    assert session is not None
    assert (session.state, session.pid) == (SessionState.COLD, 0)
    last = await world.means.screens.last(session)
    assert last is not None
    assert last.text == "I do not know you"


async def test_a_launch_whose_answer_is_lost_is_the_process_that_it_started(
    world: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is asked for again by its id, and nothing else is started."""
    begun: list[Handle | NotStarted] = []
    start = world.provider.start

    async def lost(launch: Launch) -> Handle | NotStarted:
        begun.append(await start(launch))
        return NotStarted(why=Why.UNREACHABLE, detail="it did not answer") if len(begun) == 1 else begun[-1]

    monkeypatch.setattr(world.provider, "start", lost)
    world.supervise()
    live = await world.live()
    first, second = begun
    assert isinstance(first, Handle)
    assert (first, live.pid, live.session_gen) == (second, first.pid, 1)
    ((certainty, pid),) = [(each.certainty, each.pid) for each in await world.effects()]
    assert (certainty, pid) == (Certainty.APPLIED, first.pid)
    assert await world.living() == [first.pid]


async def test_a_launch_that_nobody_answers_twice_is_unknown_until_its_terminal_is_looked_for(
    world: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    start, asked = world.provider.start, 0

    async def silent(launch: Launch) -> Handle | NotStarted:
        nonlocal asked
        asked += 1
        await trio.lowlevel.checkpoint()
        return NotStarted(why=Why.UNREACHABLE, detail="it did not answer") if asked < 3 else await start(launch)

    monkeypatch.setattr(world.provider, "start", silent)
    world.supervise()
    live = await world.live()
    first, second = await world.effects()
    assert (first.certainty, first.readback) == (Certainty.NOT_APPLIED, "no terminal bears its id")
    assert (second.certainty, second.pid) == (Certainty.APPLIED, live.pid)
    said = (await world.node.ok(ListEvents(stream=f"effect/{first.id}"))).items
    assert [each.kind for each in said] == ["launch prepared", "unknown", "not_applied"]


async def test_a_program_that_cannot_be_run_is_the_reason(world: Runtime) -> None:
    world.program("/nothing/here")
    world.supervise()
    for effect in await world.refuted(3):
        assert effect.readback == "exec failed: cannot run the program: No such file or directory (errno 2)"

    async def nobody() -> bool:  # the door settles what the launcher says; then the launcher ends
        return await world.living() == []

    await until(nobody)


async def test_a_stop_ends_everything_that_the_process_started(world: Runtime, tmp_path: Path) -> None:
    """Also what left its session and its parents, and does not listen. The place stays closed."""
    stray = tmp_path / "stray"
    world.program(sys.executable, "-I", "-S", "-c", STRAY, str(stray), "stubborn")
    world.supervise()
    session, child = await world.live(), await written(stray)
    asked = await world.node.ok(CloseSession(session_id=session.id))
    (stop,) = [each for each in await world.settled(2) if each.kind is EffectKind.STOP]
    assert stop.id == asked.id
    assert (stop.certainty, stop.readback) == (Certainty.APPLIED, "nothing of it is left below our server")
    assert not child.lives()
    assert await world.living() == []
    await wait_all_tasks_blocked()
    assert world.session() is None
    assert len(await world.effects()) == 2


async def closed_once(world: Runtime, begun: trio.Event) -> None:
    """Somebody closes the session once its process is being started; whoever stops it has begun to."""
    stopping = world.reached(Boundary.STOP_PREPARED)
    world.supervise()
    await begun.wait()
    session = world.session()
    assert session is not None
    await world.node.ok(CloseSession(session_id=session.id))
    await stopping.wait()
    await wait_all_tasks_blocked(0.1)


async def test_a_stop_waits_for_the_launch_whose_start_is_under_way(
    world: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However long that takes: until it is over nobody knows whether there is a process. What it started is ended."""
    begun, may = trio.Event(), trio.Event()
    start, handles = world.provider.start, list[Handle]()

    async def slow(launch: Launch) -> Handle | NotStarted:
        begun.set()
        await may.wait()
        started = await start(launch)
        assert isinstance(started, Handle)
        handles.append(started)
        return started

    monkeypatch.setattr(world.provider, "start", slow)
    await closed_once(world, begun)
    assert [each.state for each in await world.effects()] == [EffectState.PREPARED, EffectState.PREPARED]
    may.set()
    launch, stop = await world.settled(2)
    (handle,) = handles
    assert (launch.pid, launch.certainty) == (handle.pid, Certainty.NOT_APPLIED)
    assert (stop.certainty, stop.readback) == (Certainty.APPLIED, "nothing of it is left below our server")
    assert not Process(handle.pid, handle.start_ticks).lives()
    assert await world.provider.observe() == Seen(panes={})


async def test_a_stop_says_why_a_session_has_no_process(world: Runtime, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where what was being started came to nothing."""
    begun, may = trio.Event(), trio.Event()

    async def slow(_: Launch) -> NotStarted:
        begun.set()
        await may.wait()
        return NotStarted(why=Why.TERMINAL_LIMIT, detail="no pty is left")

    monkeypatch.setattr(world.provider, "start", slow)
    await closed_once(world, begun)
    may.set()
    launch, stop = await world.settled(2)
    assert launch.certainty is Certainty.NOT_APPLIED
    came_to = "its launch came to nothing, terminal_limit: no pty is left"
    assert (stop.certainty, stop.readback) == (Certainty.APPLIED, f"it has no process: {came_to}")


async def test_whoever_leaves_in_the_middle_of_a_start_records_first_what_it_started(
    world: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else whoever comes next might look a moment too early, and say that nothing was started."""
    begun, may, leaving, left = trio.Event(), trio.Event(), trio.Event(), trio.Event()
    start = world.provider.start

    async def slow(launch: Launch) -> Handle | NotStarted:
        begun.set()
        await may.wait()
        return await start(launch)

    async def held() -> None:
        taken = await world.node.ok(TakeTeamRun(team_run_id=world.run.id), plane=Plane.SUPERVISOR, actor=world.run.id)
        assert await hold(world.inside(), world.means, world.run.id, taken.sup_gen, leaving) is None
        left.set()

    monkeypatch.setattr(world.provider, "start", slow)
    world.tasks.start_soon(held)
    await begun.wait()
    leaving.set()
    await wait_all_tasks_blocked()
    assert not left.is_set()
    may.set()
    await left.wait()
    (launch,) = await world.effects()
    assert [launch.pid] == await world.living()


async def test_an_interrupt_is_the_key(world: Runtime) -> None:
    """What it does is the program's: this one ends by it, and has a successor."""
    world.supervise()
    first = await world.live()
    asked = await world.node.ok(InterruptSession(session_id=first.id))
    await world.live(after=first.session_gen)
    (done,) = [each for each in await world.effects() if each.id == asked.id]
    assert (done.certainty, done.readback) == (Certainty.APPLIED, "the key was sent")
    kinds = [each.kind for each in (await world.node.ok(ListEvents(stream=f"session/{first.id}"))).items]
    assert "exited: ended by signal 2" in kinds, kinds


async def test_a_run_that_is_to_complete_ends_its_processes_and_is_completed(world: Runtime) -> None:
    """By its supervisor: nobody asks for anything more."""
    supervisor = world.supervise()
    session = await world.live()
    told = await world.node.ok(CompleteTeamRun(team_run_id=world.run.id, expected_version=(await now(world)).version))
    assert (told.state, told.completing) == (TeamRunState.DRAINING, True)
    with trio.fail_after(10):
        await supervisor.over.wait()
    assert supervisor.ended is not None
    assert supervisor.ended.code is Code.TEAM_RUN_NOT_OPEN
    assert (await now(world)).state is TeamRunState.COMPLETED
    assert await world.living() == []
    assert world.session() is None
    (stop,) = [each for each in await world.effects() if each.kind is EffectKind.STOP]
    assert (stop.session_id, stop.certainty) == (session.id, Certainty.APPLIED)


async def now(world: Runtime) -> TeamRun:
    return (await world.node.ok(ShowTeamRun(team_run_id=world.run.id))).run


async def test_what_is_being_started_when_a_run_is_drained_is_started_no_more(
    world: Runtime, caplog: pytest.LogCaptureFixture
) -> None:
    """A workspace may take long to be made; whoever ends the members meanwhile sees no session, and none comes."""
    begun, made = trio.Event(), trio.Event()

    async def slow(_: Seat) -> Path | Refusal:
        begun.set()
        await made.wait()
        return world.folder

    world.means = attrs.evolve(world.means, folder=slow)
    world.supervise()
    await begun.wait()
    await world.node.ok(DrainTeamRun(team_run_id=world.run.id, expected_version=(await now(world)).version))

    async def decided() -> bool:
        await trio.lowlevel.checkpoint()
        return "refused OpenSession: TEAM_RUN_NOT_OPEN" in caplog.text or world.session() is not None

    with caplog.at_level(logging.INFO):
        made.set()
        await until(decided)
    assert world.session() is None
    assert await world.effects() == []


@pytest.mark.parametrize("how", ["drained", "closed"])
async def test_nothing_is_started_where_nothing_new_is_taken(world: Runtime, how: str) -> None:
    """And never for the person at this machine, who is the Host here."""
    if how == "drained":
        await world.node.ok(DrainTeamRun(team_run_id=world.run.id, expected_version=world.run.version))
    else:
        place = world.place
        await world.node.ok(CloseMemberRun(member_run_id=place.id, expected_version=place.version))
    world.supervise()
    await wait_all_tasks_blocked()
    assert await world.effects() == []
    assert world.session() is None
