"""A node with a run in it for a state machine: ``hypothesis`` asks from a thread, the node lives in the test's loop."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, ClassVar, TypeAlias

import attrs
import trio
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant

from client.protocol.ids import MembershipId, WorkId
from client.protocol.operation import Plane, Request
from client.protocol.refusals import Code, Refusal
from client.protocol.session import AgentSession
from client.protocol.work_asks import ShowWork
from tests.support import ledger
from tests.support.node import InProcessNode, in_process
from tests.support.run import Stage, again, stage
from tests.support.run_model import HOST, Item, Model, Person

#: An answer of whatever kind, or a refusal; each rule knows which.
Outcome: TypeAlias = Any


@attrs.frozen
class World:
    """A node with a run in it, reached from the thread of ``hypothesis``."""

    node: InProcessNode
    scene: Stage
    ended: trio.Event
    gone: trio.Event
    asked: list[str] = attrs.Factory(list)

    def ask(self, request: Request[Any], who: AgentSession | None = None, *, host: bool = False) -> Outcome:
        self.asked.append(type(request).__name__)
        plane = Plane.OPERATOR if who is None else Plane.HOST if host else Plane.MEMBER
        return self._run(lambda: self.node.ask(request, plane=plane, actor=who or ""))

    def supervise(self, request: Request[Any]) -> Outcome:
        self.asked.append(type(request).__name__)
        run = self.scene.run.id
        return self._run(lambda: self.node.ask(request, plane=Plane.SUPERVISOR, actor=run))

    def _run(self, ask: Callable[[], Awaitable[Outcome]]) -> Outcome:
        async def go() -> Outcome:
            return await ask()

        return trio.from_thread.run(go)


class Asking(RuleBasedStateMachine):
    """What every rule needs. ``begin`` makes a world; the test sets it."""

    begin: ClassVar[Callable[[Path], Awaitable[World]]]
    #: How often each kind of request was done, or refused with which code.
    done: ClassVar[Counter[str]] = Counter()
    steps = 0

    @initialize()
    def raise_the_curtain(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.world: World = trio.from_thread.run(type(self).begin, Path(self.folder.name) / "home")
        self.meet()
        self.some()

    def some(self) -> None:
        """What every world begins with."""

    def teardown(self) -> None:
        if self.steps or hasattr(self, "world"):
            assert ledger.check_fold(self.world.node.store.path) > 10
            trio.from_thread.run_sync(self.world.ended.set)
            trio.from_thread.run(self.world.gone.wait)  # its doors and files are still its own
            self.folder.cleanup()

    def next_run(self) -> None:
        """The same people in the next run of their team, which begins as the first did; nobody is paused."""
        scene = self.world._run(lambda: again(self.world.scene))
        self.world = attrs.evolve(self.world, scene=scene)
        self.meet()

    def meet(self) -> None:
        self.members = {name: getattr(self.world.scene, name) for name in ("ann", "bob", "cid")}
        self.sessions: dict[str, AgentSession] = {name: each.session for name, each in self.members.items()}
        self.model = Model({name: Person() for name in self.members})
        self.sup_gen = int(self.world.scene.sup_gen)

    def membership(self, who: str | None) -> MembershipId | None:
        return self.members[who].membership.id if who else None

    def works(self) -> list[str]:
        return list(self.model.works)

    def by(self, who: str, request: Request[Any]) -> Outcome:
        outcome = self.world.ask(request, self.sessions[who], host=who == HOST)
        assert denied(outcome) == self.model.people[who].ended
        return outcome

    def settled(self, outcome: Outcome, *, may: bool) -> bool:
        """Whether it was done, which is what the model says, unless nobody asked for it."""
        may = may and not denied(outcome)
        assert isinstance(outcome, Refusal) != may, (outcome, may, self.model)
        self.done[f"{self.world.asked[-1]} {'done' if may else outcome.code}"] += 1
        return may

    def pick(self, number: int, rather: Callable[[Item], bool] = bool) -> tuple[str, Item]:
        """One of the Works, of those that are meant where there is one."""
        every = list(self.model.works.items())
        found = [(work, item) for work, item in every if rather(item)] or every
        return found[number % len(found)]

    def of(self, work: str, item: Item, seen: int) -> dict[str, Any]:
        return {"work_id": WorkId(work), "expected_version": item.version + seen}

    @invariant()
    def nothing_is_found_that_never_is(self) -> None:
        if not hasattr(self, "world"):
            return
        self.steps += 1
        ledger.check(self.world.node.store.path)
        for work, item in self.model.works.items():
            shown = self.world.ask(ShowWork(work_id=WorkId(work)))
            now, owner = shown.work, item.owner
            assert (now.version, now.phase, now.condition, now.held) == (
                item.version,
                item.phase,
                item.condition,
                item.held,
            )
            assert (now.resolution, now.owner_id) == (
                item.resolution,
                self.members[owner].membership.id if owner else None,
            )
            assert now.verifier_id == self.membership(item.verifier)
            said = item.said.get(item.verifier) if item.verifier else None
            assert (shown.verdict and shown.verdict.outcome) == said
            last = shown.bindings[-1] if shown.bindings else None
            assert (last and (last.fence, last.custody)) == (item.last and (item.last.fence, item.last.custody))
            assert len(shown.receipts) == item.receipts


def denied(outcome: Outcome) -> bool:
    """Whether who asked speaks for nobody."""
    return isinstance(outcome, Refusal) and outcome.code is Code.CAPABILITY_DENIED


@asynccontextmanager
async def worlds() -> AsyncIterator[Callable[[Path], Awaitable[World]]]:
    """Makes worlds, each of which lives until it is ended."""
    async with trio.open_nursery() as nursery:

        async def live(folder: Path, *, task_status: trio.TaskStatus[World]) -> None:
            gone = trio.Event()
            async with in_process(folder) as node:
                world = World(node, await stage(node), trio.Event(), gone)
                task_status.started(world)
                await world.ended.wait()
            gone.set()

        async def begin(folder: Path) -> World:
            world: World = await nursery.start(live, folder)
            return world

        yield begin
        nursery.cancel_scope.cancel(reason="all have played")
