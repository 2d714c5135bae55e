"""A node in this process whose runs start real processes: the real launcher and the real door, above the fake
provider. Nothing of them is left afterwards, however the test ended.
"""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import attrs
import pytest
import trio

from client.protocol.agent import CreateAgent, WorkspacePolicy
from client.protocol.board import Seat
from client.protocol.boundary import Boundary
from client.protocol.effect import Certainty, EffectState, ListEffects, RuntimeEffect
from client.protocol.ids import TeamRef, TeamRunId
from client.protocol.operation import Plane
from client.protocol.refusals import Refusal
from client.protocol.session import AgentSession, Liveness, SessionState
from client.protocol.team_run import CreateTeamRun, MemberRun, ShowTeamRun, StartTeamRun, TeamRun
from daemon import instance, main
from daemon.config import Config
from daemon.health import now
from daemon.inside import Inside
from daemon.instance import Doors
from daemon.launches import Launches
from daemon.socket import Server, serve
from providers import fake, launcher, profiles
from providers.fake import Fake
from providers.port import Seen
from providers.process import Process
from providers.profiles import Profile
from store import session as sessions
from supervisor import desk
from supervisor.folders import Folders
from supervisor.means import Means
from supervisor.run import supervise
from supervisor.screens import Screens
from tests.support import scene
from tests.support.node import InProcessNode, in_process
from tests.support.terminals import until

LAUNCHER = Path(launcher.__file__).resolve()
#: What the members of these runs are, unless a test says otherwise: it ends with its terminal, or on the interrupt key.
CAT = ["/bin/cat"]


@attrs.define
class Supervisor:
    """One that runs; ``ended`` is what ended it."""

    scope: trio.CancelScope
    over: trio.Event = attrs.Factory(trio.Event)
    ended: Refusal | None = None


@attrs.define
class Runtime:
    """A running run in which Bob is ours to start; Ann, its Host, is the person at this machine."""

    node: InProcessNode
    provider: Fake
    programs: dict[str, Profile]
    run: TeamRun
    place: MemberRun
    host: MemberRun
    tasks: trio.Nursery
    means: Means
    #: What the workspace of a member is; a refusal where it has none.
    folder: Path | Refusal
    server: Server
    doors: Doors
    serving: trio.CancelScope = attrs.Factory(trio.CancelScope)

    async def serve(self) -> None:
        """Take connections."""

        async def run(*, task_status: trio.TaskStatus[None]) -> None:
            with trio.CancelScope() as self.serving:
                async with trio.open_nursery() as connections:
                    await connections.start(serve, self.server, self.doors.member, connections)
                    task_status.started()

        await self.tasks.start(run)

    async def serve_anew(self) -> None:
        """As a daemon that was killed and began again: every connection is gone, and the door is another."""
        self.serving.cancel()
        instance.close_doors(self.doors)
        self.doors = instance.open_doors(self.node.home, {})
        await self.serve()

    async def connected(self, *, some: bool) -> None:
        """Wait until somebody is connected, or nobody is."""

        async def look() -> bool:
            await trio.lowlevel.checkpoint()
            return (self.node.live.counts.connections > 0) == some

        await until(look)

    def program(self, *argv: str) -> None:
        self.programs["command"] = Profile(name="command", argv=list(argv))

    def supervise(self) -> Supervisor:
        """Begin one more supervisor of the run."""
        begun = Supervisor(trio.CancelScope())

        async def run() -> None:
            with begun.scope:
                begun.ended = await supervise(self.inside(), self.means, self.run.id)
            begun.over.set()

        self.tasks.start_soon(run)
        return begun

    def reached(self, boundary: Boundary) -> trio.Event:
        """Set when a supervisor that is begun later comes to that boundary, which it survives."""
        there = trio.Event()
        self.means = attrs.evolve(self.means, crash=lambda at: there.set() if at is boundary else None)
        return there

    async def end(self, supervisor: Supervisor) -> None:
        """As if its daemon had been killed; the processes stay."""
        supervisor.scope.cancel()
        await supervisor.over.wait()

    def inside(self) -> Inside:
        return Inside(self.node.dispatcher, lambda: self.node.call(Plane.SUPERVISOR, self.run.id))

    def _held_by(self, session: AgentSession) -> int:
        """The generation of the supervisor that proved it last."""
        shown = self.node.store.look(lambda tx: sessions.capability_of(tx, session.id))
        assert shown is not None
        return shown.sup_gen

    def session(self) -> AgentSession | None:
        return self.node.store.look(lambda tx: sessions.open_of_place(tx, self.place.id))

    async def live(self, *, after: int = 0, sup_gen: int = 0) -> AgentSession:
        """Bob's session, once its process is proven; of a generation above ``after``, held by ``sup_gen`` or later."""

        async def look() -> AgentSession | None:
            await trio.lowlevel.checkpoint()
            found = self.session()
            good = (
                found is not None
                and found.state is SessionState.IDLE
                and found.process is Liveness.LIVE
                and found.session_gen > after
                and self._held_by(found) >= sup_gen
            )
            return found if good else None

        found = await until(look)
        assert found is not None
        return found

    async def effects(self) -> list[RuntimeEffect]:
        return (await self.node.ok(ListEffects(team_run_id=TeamRunId(self.run.id)))).items

    async def settled(self, count: int = 1) -> list[RuntimeEffect]:
        """The effects, once so many of them are settled."""

        async def look() -> list[RuntimeEffect]:
            found = [each for each in await self.effects() if each.state is EffectState.SETTLED]
            return found if len(found) >= count else []

        return await until(look)

    async def refuted(self, count: int = 1) -> list[RuntimeEffect]:
        """The same of those that came to nothing."""
        return [each for each in await self.settled(count) if each.certainty is Certainty.NOT_APPLIED]

    async def living(self) -> list[int]:
        """The first processes of all terminals that still run."""
        seen = await self.provider.observe()
        assert isinstance(seen, Seen)
        handles = [pane.handle for pane in seen.panes.values()]
        return [each.pid for each in handles if Process(each.pid, each.start_ticks).lives()]


@asynccontextmanager
async def runtime(home: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Runtime]:
    """Nobody supervises the run yet."""
    monkeypatch.setattr(desk, "_BACK_OFF", 0.02)
    programs = {"command": Profile(name="command", argv=CAT)}
    monkeypatch.setattr(profiles, "PROFILES", programs)
    async with in_process(home) as node, fake.running() as provider, trio.open_nursery() as tasks:
        environment = {"PATH": os.defpath, "TERM": "xterm"}
        folders = Folders(home / "sessions")
        launches = Launches(
            store=node.store, relay=node.relay, call=node.call, environment=environment, folder=folders.of
        )
        config = Config(home=home, crash_at="", ready_fd=None, environment={})
        door = node.live.doors.member
        server = main._server(config, "", node.live, node.dispatcher, lambda peer: node.call(peer.plane), launches)

        async def ready() -> None:
            await trio.lowlevel.checkpoint()

        async def folder(seat: Seat) -> Path | Refusal:
            await trio.lowlevel.checkpoint()
            assert seat.agent_name == "bob", "nobody else is ours to start"
            return running.folder

        means = Means(
            provider=provider,
            ready=ready,
            folder=folder,
            launcher=lambda launch_id: (sys.executable, "-I", "-S", str(LAUNCHER), str(door.path), launch_id),
            profiles=programs,
            home=str(home),
            folders=folders,
            screens=Screens(home / "screens", now),
            heard=node.dispatcher.heard_at,
        )
        run, host, place = await _run(node)
        running = Runtime(node, provider, programs, run, place, host, tasks, means, home, server, node.live.doors)
        await tasks.start(server.intake.serve)
        await running.serve()
        try:
            yield running
        finally:
            instance.close_doors(running.doors)
        tasks.cancel_scope.cancel(reason="the test is over")


async def _run(node: InProcessNode) -> tuple[TeamRun, MemberRun, MemberRun]:
    ann = await node.ok(CreateAgent(name="ann", profile="me"))
    bob = await node.ok(CreateAgent(name="bob", profile="command", workspace=WorkspacePolicy.SHARED))
    team = await scene.team(node, ann)
    await scene.joined(node, team, bob)
    run = await node.ok(CreateTeamRun(team_id=TeamRef(team.id)))
    run = await node.ok(StartTeamRun(team_run_id=run.id, expected_version=run.version))
    shown = await node.ok(ShowTeamRun(team_run_id=run.id))
    places = {each.member_run.agent_member_id: each.member_run for each in shown.members}
    return run, places[ann.id], places[bob.id]
