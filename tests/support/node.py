"""A whole node in this process: real SQLite, the real dispatcher, bytes both ways; only the sockets are missing.

    async with in_process(tmp_path) as node:
        ann = await node.ok(CreateAgent(name="ann"))
        assert await node.refused(PauseAgent(agent_member_id="x", expected_version=1)) == Refusal(…)

Its database runs inline by default, so that a mock clock sees no time pass; ``run=in_thread, quick=SLOW`` is
what production does on a slow disk.
"""

from __future__ import annotations

import contextlib
import importlib
import itertools
import math
import re
import shlex
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar, cast

import apsw
import attrs
import msgpack
import pytest
import trio

from client.cli.arguments import Usage, parse
from client.cli.main import ALIASES, BY_HAND
from client.protocol import codec
from client.protocol.board import Seat
from client.protocol.codec import Ask
from client.protocol.ids import AgentMemberId, TeamRunId, UnixMs
from client.protocol.node import ListQuarantine
from client.protocol.operation import Operation, Plane, Request
from client.protocol.refusals import Refusal
from client.protocol.session import AgentSession
from client.protocol.table import BY_NAME, BY_REQUEST
from daemon import instance
from daemon.call import Call
from daemon.dispatch import Dispatcher
from daemon.health import Health, now
from daemon.leases import Leases
from daemon.live import Live
from daemon.relay import Relay
from daemon.sessions import tokens
from daemon.socket import Counts
from providers.fake import Fake
from store import maintenance
from store.database import QUICK, Run, Store
from store.maintenance import Opened
from supervisor.folders import Folders
from supervisor.means import Means
from supervisor.screens import Screens
from tests.support.spoil import execute

#: Who asks: a session, an agent's id, the id of the run a supervisor holds, or nobody for the operator.
Actor = AgentSession | str

R = TypeVar("R")
T = TypeVar("T")

#: When the first request of every node is asked; each later one comes a millisecond after the one before.
BEGIN = UnixMs(1_700_000_000_000)
#: Every row of every table, as text that can be compared.
Rows = dict[str, list[tuple[Any, ...]]]


async def inline(fn: Callable[..., T], *args: object, limiter: trio.CapacityLimiter) -> T:
    """Runs what blocks right here: a mock clock knows nothing of threads and would jump over their work."""
    async with limiter:
        return fn(*args)


@attrs.frozen
class Exchange:
    """One request that has been sent: its replies, in order, and the scope that a peer's cancel would end."""

    op: Operation
    replies: trio.MemoryReceiveChannel[bytes]
    scope: trio.CancelScope

    async def frame(self) -> dict[str, Any]:
        """The next reply as a peer decodes it."""
        reply = codec.unpackb(await self.replies.receive())
        assert type(reply) is dict
        return reply

    async def outcome(self) -> object:
        """The next reply as the declared answer, or as one of the declared refusals."""
        return codec.outcome(self.op, await self.frame())

    def nothing_yet(self) -> bool:
        return self.replies.statistics().current_buffer_used == 0


@attrs.frozen
class InProcessNode:
    """What a test asks. ``spawn`` runs what is not answered at once."""

    store: Store
    relay: Relay
    dispatcher: Dispatcher
    live: Live
    opened: Opened
    home: Path
    spawn: Callable[..., object]
    leases: Leases = attrs.Factory(Leases)
    _ids: itertools.count[int] = attrs.Factory(lambda: itertools.count(1))

    def begin(
        self, op: str, body: object, *, plane: Plane = Plane.OPERATOR, actor: Actor = "", key: str = ""
    ) -> Exchange:
        """Send a request as bytes and come back at once. ``actor`` says who."""
        number = next(self._ids)
        sent = codec.unpackb(msgpack.packb({"id": number, "op": op, "body": body, "key": key}))
        put, take = trio.open_memory_channel[bytes](math.inf)
        scope = trio.CancelScope()

        async def within(work: Callable[[], Awaitable[None]]) -> None:
            self.live.counts.waits += 1
            with scope:
                await work()
            self.live.counts.waits -= 1

        def spawn(work: Callable[[], Awaitable[None]]) -> None:
            self.spawn(within, work)

        self.dispatcher.ask(
            self.call(plane, actor, UnixMs(BEGIN + number)),
            Ask(sent["id"], sent["op"], sent["body"], sent["key"]),
            put.send_nowait,
            spawn,
            trio.lowlevel.checkpoint,
        )
        row = BY_NAME.get(op) or BY_NAME["node.status"]  # the refusal of an unknown operation is one of every row's
        return Exchange(row, take, scope)

    def call(self, plane: Plane = Plane.OPERATOR, actor: Actor = "", now: UnixMs = BEGIN) -> Call:
        """What a connection of that plane would resolve to: a session, a run's supervisor, or the operator."""
        base = Call(
            plane=plane,
            actor="operator",
            now=now,
            node_id=self.opened.row.node_id,
            store_id=self.opened.row.store_id,
            daemon_gen=self.opened.row.daemon_gen,
            leases=self.leases,
            token=tokens("0" * 64),
        )
        if isinstance(actor, AgentSession):
            return attrs.evolve(
                base,
                actor=f"agent/{actor.agent_member_id}",
                agent_member_id=actor.agent_member_id,
                session_id=actor.id,
                session_gen=actor.session_gen,
            )
        if plane is Plane.SUPERVISOR:
            return attrs.evolve(base, actor=f"supervisor/{actor}", team_run_id=TeamRunId(actor))
        if not actor:
            return base
        return attrs.evolve(base, actor=f"agent/{actor}", agent_member_id=AgentMemberId(actor))

    def now(self, request: Request[R], *, plane: Plane = Plane.OPERATOR, actor: str = "") -> R | Refusal:
        """``ask`` without an event loop, for a node out of ``assembled`` and what needs no other task."""
        exchange = self.send(request, plane=plane, actor=actor)
        self.commit()
        return cast("R | Refusal", codec.outcome(exchange.op, codec.unpackb(exchange.replies.receive_nowait())))

    def commit(self) -> None:
        """Commit what is queued and announce it, here and now instead of in the writer's task."""
        batch, self.store._queue = self.store._queue, []
        self.store.writer.commit(batch)
        self.store.seq = self.store.writer.seq
        for unit in batch:
            unit.done(unit)
        self.store.committed([stream for unit in batch for stream in unit.streams], self.store.seq)

    def send(
        self, request: Request[Any], *, plane: Plane = Plane.OPERATOR, actor: Actor = "", key: str = ""
    ) -> Exchange:
        """``begin`` for a record."""
        op = BY_REQUEST[type(request)]
        return self.begin(op.name, codec.to_plain(request), plane=plane, actor=actor, key=key)

    async def ask(
        self, request: Request[R], *, plane: Plane = Plane.OPERATOR, actor: Actor = "", key: str = ""
    ) -> R | Refusal:
        return cast("R | Refusal", await self.send(request, plane=plane, actor=actor, key=key).outcome())

    async def ok(self, request: Request[R], *, plane: Plane = Plane.OPERATOR, actor: Actor = "", key: str = "") -> R:
        """The answer; a refusal fails the test."""
        answer = await self.ask(request, plane=plane, actor=actor, key=key)
        assert not isinstance(answer, Refusal), answer
        return answer

    async def refused(
        self, request: Request[Any], *, plane: Plane = Plane.OPERATOR, actor: Actor = "", key: str = ""
    ) -> Refusal:
        """The refusal, once it is certain that it changed nothing and that what it advises can be typed."""
        before = self.rows()
        answer = await self.ask(request, plane=plane, actor=actor, key=key)
        assert isinstance(answer, Refusal), answer
        assert self.rows() == before
        advised(answer)
        return answer

    async def follow(self, refusal: Refusal, **placeholders: str) -> object:
        """Do what a refusal advises: its first ``firm …`` command, as the operator. The answer, or a refusal."""
        op, body = advised(refusal, **placeholders)[0]
        return await self.begin(op, body).outcome()

    async def set_aside(self) -> list[str]:
        """The records that were found unreadable, once what is queued has been written."""
        await self.store.write(lambda _: None)
        return [each.record for each in (await self.ok(ListQuarantine())).items]

    def execute(self, statement: str, *values: apsw.SQLiteValue) -> None:
        """One statement past the daemon."""
        execute(self.store.path, statement, *values)

    def rows(self) -> Rows:
        """Everything the database holds, but for what was set aside: to notice that is no change of a record."""
        return rows_of(self.store.path, without=("quarantine",))


def rows_of(path: Path, *, without: tuple[str, ...] = ()) -> Rows:
    """Every row of every table of a database, seen through a connection of its own."""
    with contextlib.closing(apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)) as connection:
        tables = [str(name) for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
        return {
            table: connection.execute(f"SELECT * FROM {table} ORDER BY 1").fetchall()  # noqa: S608 — names of ours
            for table in tables
            if table not in without and not table.startswith("sqlite_")
        }


@contextlib.contextmanager
def assembled(
    home: Path, *, run: Run = inline, vfs: str | None = None, quick: float = QUICK
) -> Iterator[InProcessNode]:
    """A node over ``home``, which may hold a store already. Nobody commits but ``commit``."""
    instance.prepare_home(home)
    path = home / "node.db"
    opened = maintenance.take(path, vfs=vfs)
    doors = instance.open_doors(home, {})
    store, relay, health = Store(path, run=run, vfs=vfs, quick=quick), Relay(), Health()
    if vfs is None:  # this process outlives its store, and the machine both: a disk that is waited for tells nothing
        store.writer._connection.execute("PRAGMA synchronous = OFF")
    store.committed, store.ended = relay.announce, health.batch_ended
    live = Live(
        store=store,
        relay=relay,
        health=health,
        opened=opened,
        doors=doors,
        home=home,
        started_at=BEGIN,
        counts=Counts(),
        stopping=trio.Event(),
    )
    try:
        yield InProcessNode(
            store, relay, Dispatcher(store, live.answers, live.streams), live, opened, home, spawn=trio.run
        )
    finally:
        store.close()
        instance.close_doors(doors)


@contextlib.asynccontextmanager
async def in_process(
    home: Path, *, run: Run = inline, vfs: str | None = None, quick: float = QUICK
) -> AsyncIterator[InProcessNode]:
    """The same within an event loop, with its writer at work. Ends with everything it started."""
    with assembled(home, run=run, vfs=vfs, quick=quick) as idle:
        async with trio.open_nursery() as tasks:
            await tasks.start(idle.store.serve)
            able = attrs.evolve(idle.live, means=_means(Fake(tasks), home))
            idle.dispatcher.live, idle.dispatcher.streams = able.answers, able.streams
            yield attrs.evolve(idle, spawn=tasks.start_soon)
            tasks.cancel_scope.cancel(reason="the test is over")


def _means(provider: Fake, home: Path) -> Means:
    """With a provider that has started nothing; nobody supervises."""

    async def ready() -> None:
        await trio.lowlevel.checkpoint()

    async def nowhere(_: Seat) -> Path | Refusal:  # noqa: ASYNC124 — as the supervisor calls it
        raise AssertionError("nobody supervises here")

    return Means(
        provider=provider,
        ready=ready,
        folder=nowhere,
        launcher=lambda _: ("/bin/false", ""),
        profiles={},
        folders=Folders(Path("/nowhere")),
        screens=Screens(home / "screens", now),
        home="/",
    )


@pytest.fixture
async def node(tmp_path: Path) -> AsyncIterator[InProcessNode]:
    """A node in this process, with an empty store. Its database runs inline, so a mock clock may run too."""
    async with in_process(tmp_path / "home") as running:
        yield running


_COMMAND = re.compile(r"\bfirm (?:[a-z-]+)(?: [^\s,;)]+)*")


def advised(refusal: Refusal, **placeholders: str) -> list[tuple[str, Mapping[str, object]]]:
    """The commands in ``lifted_by``, read by the command line's own parser. Fails on one that cannot be typed.

    A refusal always says what lifts it; a command in it is whole but for words in capitals, which stand for what
    only the caller knows.
    """
    assert refusal.lifted_by
    assert refusal.lifted_by == refusal.lifted_by.strip(" .\n")
    found: list[tuple[str, Mapping[str, object]]] = []
    for text in _COMMAND.findall(refusal.lifted_by):
        words = [placeholders.get(word, word) for word in shlex.split(text)[1:]]
        found += _typed(words)
    return found


def _typed(words: list[str]) -> list[tuple[str, Mapping[str, object]]]:
    noun, *rest = words
    if noun.startswith("-") or (noun, "") in BY_HAND or (noun, "".join(rest[:1])) in BY_HAND:
        return []
    if noun in ALIASES:
        noun, verb = ALIASES[noun]
        rest = [verb, *rest]
    index, verb = importlib.import_module(f"client.cli.index.{noun.replace('-', '_')}").VERBS, rest[0]
    assert verb in index, f"firm {noun} has no verb {verb}"
    try:
        body, _ = parse(noun, verb, index[verb], rest[1:])
    except Usage as wrong:
        raise AssertionError(f"cannot be typed: firm {' '.join(words)}: {wrong.what}") from None
    return [(index[verb][0], body)]
