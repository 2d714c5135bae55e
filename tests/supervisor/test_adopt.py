"""The next supervisor: what it finds of the former one's processes, and what it makes of launches nobody settled."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import attrs
import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from client.protocol.board import ListDue, Seat
from client.protocol.boundary import Boundary
from client.protocol.effect import Certainty, CloseSession, PrepareEffect, RuntimeEffect
from client.protocol.event import ListEvents
from client.protocol.operation import Plane
from client.protocol.refusals import Code
from client.protocol.session import AgentSession, Liveness, OpenSession, SessionState, ShowSession
from client.protocol.team_run import ShowTeamRun, TakeTeamRun
from providers.port import Handle, Launch, NotStarted, Seen, Stopped, Unreachable
from providers.process import Process
from supervisor import desk
from supervisor.means import cleared, give
from tests.support.runtime import Runtime, runtime
from tests.support.terminals import STRAY, until, written


@pytest.fixture
async def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Runtime]:
    async with runtime(tmp_path / "home", monkeypatch) as running:
        with trio.fail_after(25):
            yield running


async def kinds(world: Runtime, session: AgentSession) -> list[str]:
    return [each.kind for each in (await world.node.ok(ListEvents(stream=f"session/{session.id}"))).items]


async def in_state(world: Runtime, session: AgentSession, *states: SessionState) -> AgentSession:
    async def look() -> AgentSession | None:
        found = (await world.node.ok(ShowSession(session_id=session.id))).session
        return found if found.state in states else None

    found = await until(look)
    assert found is not None
    return found


async def test_nothing_is_begun_to_end_what_a_former_launch_left(world: Runtime) -> None:
    """Where its run is being ended the terminals may be closed by then: nobody would close them once more."""
    asked: list[str] = []

    async def ready() -> None:
        await trio.lowlevel.checkpoint()
        asked.append("ready")

    world.means = attrs.evolve(world.means, ready=ready)
    world.supervise()
    session = await world.live()
    (launch,) = await world.effects()
    (seat,) = [each for each in await seats(world) if each.launch is not None]
    await world.node.ok(CloseSession(session_id=session.id))
    await world.settled(2)
    asked.clear()
    assert await cleared(world.means, seat)
    assert (seat.launch, asked) == (launch, [])


async def test_a_launch_whose_profile_is_gone_comes_to_nothing_and_says_so(world: Runtime) -> None:
    """Its member may have another by now; the door would tell the process to become what its session is of."""
    world.supervise()
    session = await world.live()
    (launch,) = await world.effects()
    assert await give(world.means, session, launch) == ""
    world.programs["other"] = world.programs.pop("command")
    assert await give(world.means, session, launch) == "there is no profile 'command'"


async def test_a_session_that_had_a_process_of_which_it_does_not_know_has_a_successor(world: Runtime) -> None:
    """Its launch was found to have come to something when the session had moved on."""
    session = await orphaned(world)
    os.kill(session.pid, signal.SIGKILL)
    forgotten = "pid = 0, start_ticks = 0, boot_id = '', state = 'cold', process = 'unknown'"
    world.node.execute(f"UPDATE sessions SET {forgotten} WHERE id = ?", session.id)  # noqa: S608
    world.supervise()
    second = await world.live(after=session.session_gen)
    assert await world.living() == [second.pid]


async def seats(world: Runtime) -> list[Seat]:
    run = (await world.node.ok(ShowTeamRun(team_run_id=world.run.id))).run
    due = ListDue(team_run_id=run.id, sup_gen=run.sup_gen)
    return (await world.node.ok(due, plane=Plane.SUPERVISOR, actor=run.id)).seats


async def orphaned(world: Runtime) -> AgentSession:
    """A session with a process whose supervisor is gone."""
    former = world.supervise()
    session = await world.live()
    await world.end(former)
    return session


async def test_the_next_supervisor_goes_on_with_the_same_process(world: Runtime) -> None:
    session = await orphaned(world)
    world.supervise()
    adopted = await world.live(sup_gen=session.sup_gen + 1)
    assert (adopted.id, adopted.session_gen, adopted.pid) == (session.id, session.session_gen, session.pid)
    assert len(await world.effects()) == 1
    assert await world.living() == [session.pid]
    assert f"adopted: adopted: fake-{session.pid} pid={session.pid} ticks={session.start_ticks}" in await kinds(
        world, session
    )


async def test_one_that_was_adopted_is_followed_to_its_end(world: Runtime) -> None:
    session = await orphaned(world)
    world.supervise()
    await world.live(sup_gen=session.sup_gen + 1)
    handle = _handle((await world.effects())[0])
    await world.provider.interrupt(handle)
    assert (await world.live(after=session.session_gen)).pid != session.pid


async def test_a_process_that_ended_meanwhile_is_told_how(world: Runtime) -> None:
    session = await orphaned(world)
    handle = _handle((await world.effects())[0])
    await world.provider.interrupt(handle)
    await world.provider.ended(handle)
    world.supervise()
    await world.live(after=session.session_gen)
    assert "exited: ended by signal 2" in await kinds(world, session)


async def test_what_ended_together_with_its_terminal_gets_a_successor(world: Runtime) -> None:
    """As when somebody had looked: nothing of it is left, so nothing can be beside the next one."""
    session = await orphaned(world)
    await world.provider.stop(_handle((await world.effects())[0]))
    world.supervise()
    second = await world.live(after=session.session_gen)
    assert await world.living() == [second.pid]
    assert "exited: lost: its terminal is gone and its process has ended" in await kinds(world, session)
    assert len(await world.effects()) == 2


async def test_what_is_left_of_a_former_process_is_ended_before_its_successor_begins(
    world: Runtime, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its supervisor saw it end and died before it had ended the rest."""
    world.program(sys.executable, "-I", "-S", "-c", STRAY, str(tmp_path / "pid"), "meek")
    dying = trio.Event()

    async def stop(_: Handle) -> Stopped:
        dying.set()
        await trio.sleep_forever()
        raise AssertionError

    former = world.supervise()
    session = await world.live()
    stray = await written(tmp_path / "pid")
    with monkeypatch.context() as patch:
        patch.setattr(world.provider, "stop", stop)
        os.kill(session.pid, signal.SIGKILL)
        await dying.wait()
        await world.end(former)
    assert stray.lives()
    world.program("/bin/cat")
    world.supervise()
    second = await world.live(after=session.session_gen)
    assert not stray.lives()
    assert await world.living() == [second.pid]


async def test_what_ended_and_cannot_be_looked_for_has_a_successor_where_nothing_is_left(
    world: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its server died between the moment in which it answered and the look."""
    session = await orphaned(world)
    await world.provider.stop(_handle((await world.effects())[0]))

    async def observe() -> Unreachable:
        await trio.lowlevel.checkpoint()
        return Unreachable(detail="it has ended")

    with monkeypatch.context() as patch:
        patch.setattr(world.provider, "observe", observe)
        world.supervise()
        await in_state(world, session, SessionState.COLD, SessionState.CLOSED)
    assert "exited: lost: its terminal is gone and its process has ended" in await kinds(world, session)


async def left_to_a_person(world: Runtime, session: AgentSession, why: str) -> None:
    """Nobody knows what it does; a person looks, and nothing is started in its place by itself."""
    world.supervise()
    lost = await in_state(world, session, SessionState.RECOVERY_REQUIRED)
    assert lost.process is Liveness.UNKNOWN
    assert (await kinds(world, session))[-1] == f"lost: lost: {why}"
    await wait_all_tasks_blocked()
    assert len(await world.effects()) == 1


async def test_a_process_that_outlived_its_terminal_is_left_to_a_person(
    world: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(desk, "_AGAIN", 0.2)
    session = await orphaned(world)
    (launch,) = await world.effects()
    terminal = world.provider._terminals.pop(launch.id)
    try:
        await left_to_a_person(world, session, "its terminal is gone, its process is not")
        assert Process(launch.pid, launch.start_ticks).lives()
    finally:
        world.provider._terminals[launch.id] = terminal


async def test_what_is_not_proven_to_have_ended_is_left_to_a_person(
    world: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = await orphaned(world)
    await world.provider.stop(_handle((await world.effects())[0]))

    async def stop(_: Handle) -> Stopped:
        await trio.lowlevel.checkpoint()
        return Stopped(left=(7,))

    with monkeypatch.context() as patch:
        patch.setattr(world.provider, "stop", stop)
        await left_to_a_person(world, session, "not all of it is proven ended: Stopped(left=(7,))")


async def test_after_a_start_of_the_machine_everything_is_left_to_a_person(world: Runtime) -> None:
    """Whatever has that pid now."""
    session = await orphaned(world)
    await world.provider.stop(_handle((await world.effects())[0]))
    world.node.execute("UPDATE effects SET boot_id = 'earlier'")
    await left_to_a_person(world, session, "the machine was started again")


async def test_a_terminal_that_holds_another_process_is_foreign(world: Runtime) -> None:
    """It is neither taken for the session's nor ended."""
    session = await orphaned(world)
    world.node.execute("UPDATE effects SET start_ticks = start_ticks + 1")
    world.supervise()
    await in_state(world, session, SessionState.RECOVERY_REQUIRED)
    assert (await kinds(world, session))[-1] == "lost: lost: foreign: its terminal holds another process"
    assert await world.living() == [session.pid]


async def test_a_control_that_nobody_did_is_done_by_the_next_supervisor(world: Runtime) -> None:
    session = await orphaned(world)
    asked = await world.node.ok(CloseSession(session_id=session.id))
    assert await world.living() == [session.pid]
    world.supervise()
    await in_state(world, session, SessionState.CLOSED)
    assert await world.living() == []
    (done,) = [each for each in await world.effects() if each.id == asked.id]
    assert done.certainty is Certainty.APPLIED


async def prepared(world: Runtime) -> tuple[AgentSession, RuntimeEffect]:
    """A supervisor died over a launch that it had recorded."""
    run = await world.node.ok(TakeTeamRun(team_run_id=world.run.id), plane=Plane.SUPERVISOR, actor=world.run.id)
    ask = OpenSession(member_run_id=world.place.id, sup_gen=run.sup_gen)
    session = await world.node.ok(ask, plane=Plane.SUPERVISOR, actor=world.run.id)
    wanted = PrepareEffect(
        session_id=session.id, session_gen=session.session_gen, sup_gen=run.sup_gen, cwd=str(world.node.home)
    )
    return session, await world.node.ok(wanted, plane=Plane.SUPERVISOR, actor=world.run.id)


async def test_a_launch_that_had_been_started_goes_on(world: Runtime) -> None:
    """Its process waits at the door until somebody says which one it is; no second one is started."""
    session, effect = await prepared(world)
    handle = await started(world, effect)
    world.supervise()
    live = await world.live()
    assert (live.id, live.pid) == (session.id, handle.pid)
    assert [each.id for each in await world.effects()] == [effect.id]
    assert await world.living() == [handle.pid]


async def test_a_launch_that_had_not_been_started_is_not_applied(world: Runtime) -> None:
    """And its session is launched again, once."""
    session, effect = await prepared(world)
    world.supervise()
    live = await world.live()
    assert live.id == session.id
    first, second = await world.effects()
    assert (first.id, first.certainty, first.readback) == (
        effect.id,
        Certainty.NOT_APPLIED,
        "no terminal bears its id",
    )
    assert (second.certainty, second.pid) == (Certainty.APPLIED, live.pid)
    assert await world.living() == [live.pid]


@pytest.mark.parametrize("recorded", [True, False])
async def test_a_stop_ends_what_a_predecessor_started_and_settles_its_launch(world: Runtime, *, recorded: bool) -> None:
    """It died over it, before or after it had recorded the process, which waits at the door."""
    session, launch = await prepared(world)
    handle = await started(world, launch)
    if recorded:
        of = (handle.pane, handle.pid, handle.start_ticks, handle.boot_id, launch.id)
        world.node.execute("UPDATE effects SET pane = ?, pid = ?, start_ticks = ?, boot_id = ? WHERE id = ?", *of)
    await world.node.ok(CloseSession(session_id=session.id))
    world.supervise()
    await in_state(world, session, SessionState.CLOSED)
    first, stop = await world.settled(2)
    assert (first.certainty, first.readback) == (Certainty.NOT_APPLIED, "it was ended before it was proven")
    assert (stop.certainty, stop.readback) == (Certainty.APPLIED, "nothing of it is left below our server")
    assert not Process(handle.pid, handle.start_ticks).lives()
    assert await world.provider.observe() == Seen(panes={})


async def test_a_stop_waits_for_nobody_where_a_predecessor_had_started_nothing(world: Runtime) -> None:
    """What it read back is on record for the launch too: nobody has to find out what became of that."""
    session, _ = await prepared(world)
    await world.node.ok(CloseSession(session_id=session.id))
    world.supervise()
    await in_state(world, session, SessionState.CLOSED)
    launch, stop = await world.settled(2)
    assert (launch.certainty, launch.readback) == (Certainty.NOT_APPLIED, "no terminal bears its id")
    assert (stop.certainty, stop.readback) == (Certainty.APPLIED, "it has no process: no terminal bears its id")


async def test_a_stop_waits_for_a_launch_that_is_being_taken_up_from_a_predecessor(
    world: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else its terminal would be ended first, and then begun once more."""
    session, launch = await prepared(world)
    first = await started(world, launch)
    begun, may, over, start = trio.Event(), trio.Event(), trio.Event(), world.provider.start

    async def slow(wanted: Launch) -> Handle | NotStarted:
        begun.set()
        await may.wait()
        begins = await start(wanted)
        over.set()
        return begins

    monkeypatch.setattr(world.provider, "start", slow)
    stopping = world.reached(Boundary.STOP_PREPARED)
    world.supervise()
    await begun.wait()
    await world.node.ok(CloseSession(session_id=session.id))
    await stopping.wait()
    await wait_all_tasks_blocked(0.1)
    may.set()
    await over.wait()
    await in_state(world, session, SessionState.CLOSED)
    await wait_all_tasks_blocked()
    assert await world.provider.observe() == Seen(panes={})
    assert not Process(first.pid, first.start_ticks).lives()


async def started(world: Runtime, launch: RuntimeEffect) -> Handle:
    """The terminal of that launch, of which the record does not know yet."""
    wanted = Launch(launch_id=launch.id, argv=world.means.launcher(launch.id), cwd=launch.cwd)
    handle = await world.provider.start(wanted)
    assert isinstance(handle, Handle)
    return handle


async def test_ten_supervisors_at_once_end_with_one_process(world: Runtime) -> None:
    many = [world.supervise() for _ in range(10)]

    async def one_left() -> bool:
        await trio.lowlevel.checkpoint()
        return sum(not each.over.is_set() for each in many) == 1

    await until(one_left)
    session = await world.live(sup_gen=10)
    assert {each.ended.code for each in many if each.ended} == {Code.SUPERVISOR_GENERATION_FENCED}

    async def alone() -> bool:
        return await world.living() == [session.pid]

    await until(alone)
    assert session.session_gen == 1


def _handle(launch: RuntimeEffect) -> Handle:
    return Handle(
        launch_id=launch.id,
        pane=launch.pane,
        pid=launch.pid,
        start_ticks=launch.start_ticks,
        boot_id=launch.boot_id,
    )
