"""A supervisor that runs apart: it survives what passes, stops at once where somebody else may act, and says that it
has lost the run only after it has stopped.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import attrs
import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from client.connection import Disconnected
from client.protocol.board import Seat
from client.protocol.effect import CloseSession
from client.protocol.event import WaitForEvent
from client.protocol.operation import Node, Plane, R, Request
from client.protocol.refusals import Code, Refusal
from client.protocol.team_run import RenewTeamRun, TakeTeamRun
from daemon.health import now
from daemon.inside import Inside
from providers import fake
from providers.fake import Fake
from providers.port import Launch, Provider, Seen
from supervisor import lease as leases
from supervisor.folders import Folders
from supervisor.lease import TTL, Lease, Left, Lost, supervise_apart
from supervisor.means import Means
from supervisor.screens import Screens
from tests.support.node import InProcessNode
from tests.support.run import Stage, stage
from tests.support.terminals import shell

#: When a holder stops trusting itself that was last renewed at the beginning.
TRUSTED = TTL * 0.8
BUSY = Refusal(code=Code.STORE_BUSY, about="store", lifted_by="ask again")

#: What a renewal meets: nothing in its way, a refusal, silence, or the end of the connection.
Fate = Refusal | Exception | None


async def never() -> None:
    await trio.sleep_forever()


@attrs.define
class Line:
    """The real node, but for what happens to renewals: one fate each, then the last one again and again.

    The run itself never says that something happened, so that all news come through renewals.
    """

    node: Node
    fates: list[Fate | Callable[..., Any]] = attrs.Factory(lambda: [None])
    renewals: list[float] = attrs.Factory(list)
    asked: list[str] = attrs.Factory(list)

    async def ask(self, request: Request[R], *, key: str = "") -> R | Refusal:
        self.asked.append(type(request).__name__)
        if isinstance(request, WaitForEvent):
            await trio.sleep_forever()
        if self._is_renewal(request):
            self.renewals.append(trio.current_time())
            fate = self.fates.pop(0) if len(self.fates) > 1 else self.fates[0]
            if callable(fate):
                await fate()
            elif isinstance(fate, Exception):
                raise fate
            elif fate is not None:
                return fate
        return await self.node.ask(request, key=key)

    def _is_renewal(self, request: object) -> bool:
        return isinstance(request, RenewTeamRun) and request.lease_ms > 0


@attrs.define
class Holder:
    """A supervisor apart; ``ended`` is why it let go, and when."""

    line: Line
    ended: Refusal | Lost | Left | None = None
    at: float = 0.0
    leaving: trio.Event = attrs.Factory(trio.Event)
    over: trio.Event = attrs.Factory(trio.Event)

    async def watched(self, seconds: float = TTL) -> None:
        """Until it let go, or for so long."""
        with trio.move_on_after(seconds):
            await self.over.wait()


@asynccontextmanager
async def apart(
    s: Stage, clock: MockClock, *fates: Fate | Callable[..., Any], means: Means | None = None
) -> AsyncIterator[Holder]:
    line = Line(Inside(s.node.dispatcher, lambda: s.node.call(Plane.SUPERVISOR, s.run.id)), [*fates])
    holder = Holder(line)

    async def run() -> None:
        holder.ended = await supervise_apart(line, lambda: True, means or nothing(), s.run.id, holder.leaving)
        holder.at = clock.current_time()
        holder.over.set()

    async with trio.open_nursery() as tasks:
        tasks.start_soon(run)
        await wait_all_tasks_blocked()
        yield holder
        tasks.cancel_scope.cancel(reason="the test is over")


def nothing(ready: Callable[[], Any] = trio.lowlevel.checkpoint, provider: Provider | None = None) -> Means:
    """Means that start nothing; without a provider nothing reaches for it."""

    async def nowhere(_: Seat) -> Path | Refusal:  # noqa: ASYNC124 — as the supervisor calls it
        raise AssertionError("no profile is ours")

    return Means(
        provider=cast("Provider", provider),
        ready=ready,
        folder=nowhere,
        launcher=lambda _: ("/bin/false", ""),
        profiles={},
        home="/",
        folders=Folders(Path("/nowhere")),
        screens=Screens(Path("/nowhere"), now),
    )


async def test_transient_failures_survive_and_it_goes_on_renewing(
    node: InProcessNode, autojump_clock: MockClock
) -> None:
    """I32. Each failure is followed by a back-off that never exceeds a quarter of the lease or three seconds."""
    s = await stage(node)
    async with apart(s, autojump_clock, None, BUSY, BUSY, None, BUSY, never, None) as holder:
        await holder.watched(100)
        assert holder.ended is None
    gaps = [after - before for before, after in zip(holder.line.renewals, holder.line.renewals[1:], strict=False)]
    assert gaps[:3] == pytest.approx([3.0, 0.4, 0.8])
    assert len(gaps) > 30
    assert max(gaps) <= 3.0 + 0.81  # one that got no answer, and its back-off


async def test_three_failures_in_a_row_latch(node: InProcessNode, autojump_clock: MockClock) -> None:
    s = await stage(node)
    async with apart(s, autojump_clock, None, BUSY) as holder:
        await holder.watched()
    assert holder.ended == Lost("3 renewals in a row failed; the last: STORE_BUSY, ask again")
    assert len(holder.line.renewals) == 4
    assert holder.at < TRUSTED


async def test_one_that_gets_no_answer_stops_before_its_lease_is_over(
    node: InProcessNode, autojump_clock: MockClock
) -> None:
    s = await stage(node)
    async with apart(s, autojump_clock, None, never) as holder:
        await holder.watched()
    assert holder.ended == Lost("the lease was not renewed in time")
    assert holder.at == pytest.approx(TRUSTED)


async def test_a_terminal_fence_latches_in_one_attempt(node: InProcessNode, autojump_clock: MockClock) -> None:
    """I32."""
    s = await stage(node)
    refusal = Refusal(code=Code.SUPERVISOR_GENERATION_FENCED, about="team-run/x", lifted_by="stop")
    async with apart(s, autojump_clock, None, refusal) as holder:
        await holder.watched()
    assert holder.ended == refusal
    assert len(holder.line.renewals) == 2


async def test_the_end_of_the_connection_latches_in_one_attempt(node: InProcessNode, autojump_clock: MockClock) -> None:
    s = await stage(node)
    async with apart(s, autojump_clock, None, Disconnected("the daemon hung up")) as holder:
        await holder.watched()
    assert holder.ended == Lost("the daemon hung up")
    assert len(holder.line.renewals) == 2


async def test_one_that_was_superseded_meanwhile_is_told_by_whom(
    node: InProcessNode, autojump_clock: MockClock
) -> None:
    """It finds out for itself that its time is over; what it still says is refused by name."""
    s = await stage(node)

    async def taken() -> None:
        s.node.leases.renew(s.run.id, s.sup_gen + 1, 0)  # it is over
        await node.ok(TakeTeamRun(team_run_id=s.run.id), plane=Plane.SUPERVISOR, actor=s.run.id)
        await trio.sleep_forever()

    async with apart(s, autojump_clock, None, taken, never) as holder:
        await holder.watched()
    assert isinstance(holder.ended, Refusal)
    said = f"sup_gen={s.sup_gen + 2} holds this run; a supervisor of sup_gen={s.sup_gen + 1} stops"
    assert (holder.ended.code, holder.ended.lifted_by) == (Code.SUPERVISOR_GENERATION_FENCED, said)


async def test_the_loss_is_told_only_after_everything_has_stopped(
    node: InProcessNode, autojump_clock: MockClock
) -> None:
    """I33."""
    s = await stage(node)
    order: list[str] = []

    class Marker(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if record.getMessage().startswith("lost run="):
                order.append("told")

    async def busy() -> None:
        order.append("begun")
        try:
            await trio.sleep_forever()
        finally:
            order.append("stopped")

    marker = Marker()
    leases.log.addHandler(marker)
    try:
        await node.ok(CloseSession(session_id=s.bob.session.id))
        async with apart(s, autojump_clock, None, BUSY, means=nothing(busy)) as holder:
            await holder.watched()
            after = len(holder.line.asked)
            with trio.move_on_after(TTL):
                await trio.sleep_forever()
    finally:
        leases.log.removeHandler(marker)
    assert order == ["begun", "stopped", "told"]
    assert len(holder.line.asked) == after


@pytest.fixture
async def provider() -> AsyncIterator[Fake]:
    async with fake.running() as running:
        yield running


async def attempted(provider: Fake, held: Lease, wanted: Launch) -> int:
    """How many terminals there are after a start under that lease."""
    with held.scope:
        await leases._guarded(nothing(provider=provider), held).provider.start(wanted)
    seen = await provider.observe()
    assert isinstance(seen, Seen)
    return len(seen.panes)


def held_by(lives: bool = True) -> Lease:  # noqa: FBT001, FBT002 — the one thing that varies
    return Lease(Line(None), lambda: lives, Any, 1, TTL)  # type: ignore[arg-type]


async def test_nothing_is_started_by_one_whose_trust_has_ended_unnoticed(provider: Fake, tmp_path: Path) -> None:
    """As after a SIGCONT: the moment has passed, and no task has been told yet."""
    held = held_by()
    held.scope.deadline = trio.current_time() - 0.001
    assert await attempted(provider, held, shell(tmp_path, "read -r line")) == 0


async def test_nothing_is_started_by_one_whose_daemon_is_gone(provider: Fake, tmp_path: Path) -> None:
    assert await attempted(provider, held_by(lives=False), shell(tmp_path, "read -r line")) == 0


async def test_whoever_is_trusted_starts(provider: Fake, tmp_path: Path) -> None:
    held = held_by()
    held.scope.deadline = trio.current_time() + 60
    assert await attempted(provider, held, shell(tmp_path, "read -r line")) == 1
