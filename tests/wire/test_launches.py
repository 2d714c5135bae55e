"""The door of a launch, over a real socket: who is told what to become, and what is believed of it afterwards."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import attrs
import msgpack
import pytest
import trio

from client.protocol.effect import Certainty, EffectState, PrepareEffect, RuntimeEffect, SettleEffect, StartedEffect
from client.protocol.event import WaitForEvent
from client.protocol.frames import MAX_ANSWER, Frames
from client.protocol.operation import Plane, R, Request
from client.protocol.refusals import Code
from client.protocol.session import AgentSession, Liveness, OpenSession, SessionState
from client.protocol.team_run import TakeTeamRun, TeamRun
from daemon import launches
from providers.port import Exit, Handle, Launch, Provider
from providers.process import boot_id, start_ticks_of
from tests.support.runtime import LAUNCHER, Runtime, runtime
from tests.support.terminals import until
from tests.support.wire import packed

#: Whose first word is the door and whose last one is the launch, in place of our launcher: it says hello and then what
#: stands in ``sys.argv[2]``.
SPEAKER = """
import os, socket, sys
door, says, launch = sys.argv[1:]
sock = socket.socket(socket.AF_UNIX)
sock.connect(door)
name = launch.encode()
sock.sendall(b"\\0\\0\\0" + bytes([26 + len(name)]) + b"\\x81\\xa5hello\\x82\\xa8protocol\\x01\\xa6launch"
             + bytes([0xA0 + len(name)]) + name)
size = int.from_bytes(sock.recv(4, socket.MSG_WAITALL), "big")
answer = sock.recv(size, socket.MSG_WAITALL)
print("told" if b"argv" in answer else "refused", flush=True)
if says == "half":
    sock.shutdown(socket.SHUT_WR)
elif says == "exec and die":
    sock.sendall(b"\\0\\0\\0\\x07\\x81\\xa4exec\\xc3")
    os.kill(os.getpid(), 9)
elif says == "die":
    os.kill(os.getpid(), 9)
sys.stdin.read()
"""


@attrs.frozen
class Scene:
    """A launch of Bob's that was prepared, and nobody supervises the run: the test is the supervisor."""

    world: Runtime
    run: TeamRun
    session: AgentSession
    effect: RuntimeEffect

    async def ok(self, ask: Request[R]) -> R:
        return await self.world.node.ok(ask, plane=Plane.SUPERVISOR, actor=self.run.id)

    async def start(self, *argv: str) -> Handle:
        """Begin the launch in a terminal; with our launcher unless other words are given."""
        words = argv or self.world.means.launcher(self.effect.id)
        found = await self.provider.start(Launch(launch_id=self.effect.id, argv=words, cwd=self.effect.cwd))
        assert isinstance(found, Handle)
        return found

    @property
    def provider(self) -> Provider:
        return self.world.provider

    async def speak(self, says: str) -> Handle:
        """Begin something in place of our launcher that talks as told."""
        door = str(self.world.node.live.doors.member.path)
        return await self.start(sys.executable, "-I", "-S", "-c", SPEAKER, door, says, self.effect.id)

    async def started(self, handle: Handle) -> RuntimeEffect:
        ask = StartedEffect(
            effect_id=self.effect.id,
            sup_gen=self.run.sup_gen,
            pane=handle.pane,
            pid=handle.pid,
            start_ticks=handle.start_ticks,
            boot_id=handle.boot_id,
        )
        return await self.ok(ask)

    async def settled(self) -> RuntimeEffect:
        predicate = f"effect:{self.effect.id}.state=settled"
        assert not (await self.world.node.ok(WaitForEvent(predicate=predicate, timeout_ms=8000))).timed_out
        return await self.now()

    async def now(self) -> RuntimeEffect:
        (found,) = await self.world.effects()
        return found

    async def told(self) -> bool:
        """Whether the process was told what to become."""
        await trio.lowlevel.checkpoint()
        return self.session_now().pid != 0

    def session_now(self) -> AgentSession:
        found = self.world.session()
        assert found is not None
        return found


@pytest.fixture
async def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Scene]:
    async with runtime(tmp_path / "home", monkeypatch) as world:
        with trio.fail_after(25):
            yield await prepared(world)


async def prepared(world: Runtime) -> Scene:
    node = world.node
    run = await node.ok(TakeTeamRun(team_run_id=world.run.id), plane=Plane.SUPERVISOR, actor=world.run.id)
    ask = OpenSession(member_run_id=world.place.id, sup_gen=run.sup_gen)
    session = await node.ok(ask, plane=Plane.SUPERVISOR, actor=run.id)
    wanted = PrepareEffect(
        session_id=session.id, session_gen=session.session_gen, sup_gen=run.sup_gen, cwd=str(node.home)
    )
    return Scene(world, run, session, await node.ok(wanted, plane=Plane.SUPERVISOR, actor=run.id))


@asynccontextmanager
async def dialled(world: Runtime, launch_id: str) -> AsyncIterator[Any]:
    """This very process says hello with a launch; what it is answered."""
    async with await trio.open_unix_socket(str(world.node.live.doors.member.path)) as stream:
        await stream.send_all(packed({"hello": {"protocol": 1, "launch": launch_id}}))
        frames, heard = Frames(MAX_ANSWER), list[bytes]()
        while not heard:
            data = await stream.receive_some()
            assert data
            heard += frames.feed(data)
        yield msgpack.unpackb(heard[0])


async def denied(world: Runtime, launch_id: str, why: str) -> None:
    """And nothing is changed by it."""
    before = world.node.rows()
    async with dialled(world, launch_id) as answer:
        assert answer["refusal"]["code"] == Code.LAUNCH_DENIED
        assert answer["refusal"]["lifted_by"] == why
    assert world.node.rows() == before


NONE, WRONG = "no launch of this id is under way", "this is not the process that was started for it"


async def test_another_process_with_the_id_of_a_launch_is_refused(scene: Scene) -> None:
    sleeper = await scene.start("/bin/sh", "-c", "read x", scene.effect.id)
    await scene.started(sleeper)
    await denied(scene.world, scene.effect.id, WRONG)
    assert (await scene.now()).state is EffectState.PREPARED
    assert scene.session_now().pid == 0


async def test_the_same_pid_of_another_time_is_refused(scene: Scene) -> None:
    pid, ticks = os.getpid(), start_ticks_of(os.getpid())
    assert ticks is not None
    handle = Handle(launch_id=scene.effect.id, pane="%0", pid=pid, start_ticks=ticks - 1, boot_id=boot_id())
    await scene.started(handle)
    await denied(scene.world, scene.effect.id, WRONG)


@pytest.mark.parametrize("launch_id", ["nothing1", "x" * 64, "größer-字"])
async def test_an_id_that_is_none_is_refused(scene: Scene, launch_id: str) -> None:
    await denied(scene.world, launch_id, NONE)


async def test_the_id_of_a_launch_that_is_settled_is_refused(scene: Scene) -> None:
    ask = SettleEffect(effect_id=scene.effect.id, sup_gen=scene.run.sup_gen, certainty=Certainty.NOT_APPLIED)
    await scene.ok(ask)
    await denied(scene.world, scene.effect.id, NONE)


async def test_a_launch_whose_process_nobody_says_is_refused_in_time(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(launches, "STARTED_SECONDS", 0.05)
    await denied(scene.world, scene.effect.id, NONE)


async def test_a_launcher_that_is_early_waits_until_its_process_is_known(scene: Scene) -> None:
    """The supervisor says which one it is only after it was started."""
    handle = await scene.start()
    await scene.world.connected(some=True)
    assert (await scene.now()).state is EffectState.PREPARED
    await scene.started(handle)
    done = await scene.settled()
    assert (done.certainty, done.readback) == (Certainty.APPLIED, f"pid={handle.pid} runs /bin/cat")
    session = scene.session_now()
    assert (session.state, session.pid) == (SessionState.IDLE, handle.pid)


async def test_a_launcher_whose_daemon_begins_again_is_served_by_the_next_one(scene: Scene) -> None:
    handle = await scene.start()
    await scene.world.connected(some=True)
    await scene.world.serve_anew()
    await scene.started(handle)
    assert (await scene.settled()).certainty is Certainty.APPLIED
    assert scene.session_now().pid == handle.pid


async def test_a_program_that_is_missing_is_settled_with_the_reason(scene: Scene) -> None:
    scene.world.program("/nothing/here")
    await scene.started(await scene.start())
    done = await scene.settled()
    assert done.certainty is Certainty.NOT_APPLIED
    assert done.readback == "exec failed: cannot run the program: No such file or directory (errno 2)"
    session = scene.session_now()
    assert (session.state, session.pid) == (SessionState.COLD, 0)


async def test_a_launch_after_one_that_failed_has_a_process_that_may_live(scene: Scene) -> None:
    """Whoever it becomes may ask before it is settled."""
    scene.world.program("/nothing/here")
    await scene.started(await scene.start())
    await scene.settled()
    assert scene.session_now().process is Liveness.STOPPED
    of = scene.session
    ask = PrepareEffect(
        session_id=of.id, session_gen=of.session_gen, sup_gen=scene.run.sup_gen, cwd=str(scene.world.node.home)
    )
    again = attrs.evolve(scene, effect=await scene.ok(ask))
    await again.started(await again.speak("half"))
    await until(again.told)
    assert scene.session_now().process is Liveness.UNKNOWN


@pytest.mark.parametrize("says", ["die", "exec and die", "half"])
async def test_a_socket_that_closes_proves_nothing(scene: Scene, says: str) -> None:
    """Killed before its exec, killed after it said that it execs, or only silent: it is never taken for applied."""
    handle = await scene.speak(says)
    await scene.started(handle)
    await until(scene.told)
    if says != "half":
        assert await scene.provider.ended(handle) == Exit(status=None, signal=9, screen="told")
    await scene.world.connected(some=False)
    now = await scene.now()
    assert (now.state, now.certainty) == (EffectState.PREPARED, Certainty.UNKNOWN)
    assert scene.session_now().state is SessionState.COLD


async def test_a_launcher_is_told_once_what_to_become_and_that_it_is_refused(scene: Scene) -> None:
    """Our own launcher ends with a status of its own where it is refused."""
    door = str(scene.world.node.live.doors.member.path)
    words = [sys.executable, "-I", "-S", str(LAUNCHER), door, "nothing1"]
    done = await trio.run_process(words, check=False, capture_stderr=True, stdin=subprocess.DEVNULL)
    assert done.returncode == 126
    assert done.stderr.decode() == f"firm: LAUNCH_DENIED: {NONE}\n"
