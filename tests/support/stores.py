"""A store of its own for a test, units of work to give it, and the proof that a database is whole."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, Callable, Iterable
from pathlib import Path
from typing import Any

import apsw
import attrs
import trio

from client.protocol.agent import AgentMember, AgentStatus, WorkspacePolicy
from client.protocol.boundary import Crash, no_crash
from client.protocol.ceiling import Ceiling
from client.protocol.codec import to_plain, unpackb
from client.protocol.ids import AgentMemberId, UnixMs, new_id
from client.protocol.refusals import Code, Refusal
from store import maintenance, node
from store.agent import AGENTS
from store.batch import Unit
from store.database import QUICK, Run, Store, in_thread
from store.keeper import Keeper
from store.membership import MEMBERSHIPS
from store.project import PROJECTS
from store.rows import decode
from store.team import TEAMS
from store.tx import Tx

NOON = UnixMs(1_700_000_000_000)
#: For ``quick``: every disk is slow, so that every batch is committed in a thread.
SLOW = -1.0
KEEPERS: tuple[Keeper[Any], ...] = (AGENTS, TEAMS, MEMBERSHIPS, PROJECTS)
NO = Refusal(code=Code.NOT_FOUND, about="agent/nobody", lifted_by="say who")

Work = Callable[[Tx], Any]


@contextlib.asynccontextmanager
async def serving(
    path: Path,
    *,
    vfs: str | None = None,
    run: Run = in_thread,
    crash: Crash = no_crash,
    quick: float = QUICK,
) -> AsyncGenerator[Store]:
    """A store that commits what is submitted. A fault that a shim still has is the test's to heal."""
    maintenance.take(path, vfs=vfs)
    store = Store(path, vfs=vfs, run=run, crash=crash, quick=quick)
    try:
        async with trio.open_nursery() as nursery:
            await nursery.start(store.serve)
            yield store
            nursery.cancel_scope.cancel(reason="the test is over")
    finally:
        store.close()


def made(path: Path, *works: Work) -> Path:
    """A database at ``path`` that holds what ``works`` wrote, its daemon ended in good order."""
    maintenance.take(path)
    with contextlib.closing(apsw.Connection(str(path))) as connection:
        for work in (*works, node.leave):
            maintenance.in_one(connection, work)
    return path


async def together(store: Store, works: Iterable[Work]) -> list[Any]:
    """Submit all at once, in order, so that they wait together; their outcomes, exceptions too."""
    over = trio.Event()
    open_ = 0

    def done(_: Unit) -> None:
        nonlocal open_
        open_ -= 1
        if not open_:
            over.set()

    units = [Unit(work, done) for work in works]
    open_ = len(units)
    for unit in units:
        store.submit(unit)
    await over.wait()
    return [unit.outcome for unit in units]


def codes(outcomes: Iterable[Any]) -> list[str | None]:
    """The code of each refusal, the name of each exception, None for what was done."""
    return [
        outcome.code.value
        if isinstance(outcome, Refusal)
        else type(outcome).__name__
        if isinstance(outcome, BaseException)
        else None
        for outcome in outcomes
    ]


def member(name: str, description: str = "") -> AgentMember:
    return AgentMember(
        id=AgentMemberId(new_id()),
        version=1,
        name=name,
        description=description,
        role="",
        capabilities=[],
        skills=[],
        profile="external",
        model="",
        workspace=WorkspacePolicy.WORKTREE,
        ceiling=Ceiling.WORKSPACE_WRITE,
        status=AgentStatus.ACTIVE,
        created_by="operator",
        created_at=NOON,
        updated_at=NOON,
    )


def put(name: str, *, size: int = 0) -> Callable[[Tx], AgentMember]:
    """A unit that creates an agent member, ``size`` bytes large."""
    return lambda tx: AGENTS.insert(tx, member(name, "x" * size), kind="created", actor="operator", at=NOON)


def rename(agent_id: str, name: str) -> Callable[[Tx], AgentMember]:
    """A unit that changes an agent member once more."""

    def run(tx: Tx) -> AgentMember:
        before = AGENTS.load(tx, agent_id)
        assert before is not None
        return AGENTS.change(tx, before, kind="updated", actor="operator", at=NOON, name=name)

    return run


_NAMES = AGENTS.select("ORDER BY n")


def names_in(tx: Tx) -> list[str]:
    return [agent.name for agent in AGENTS.many(tx, _NAMES)]


def names(path: Path) -> list[str]:
    """The agent members in a database that is whole, in the order they were written."""
    assert faults_in(path) == []
    with contextlib.closing(apsw.Connection(str(path))) as connection:
        return names_in(Tx(connection))


def faults_in(path: Path) -> list[str]:
    """What is not whole: damaged pages, rows that are not the fold of their events, gaps in versions."""
    with contextlib.closing(apsw.Connection(str(path))) as connection:
        found = [str(line) for (line,) in connection.execute("PRAGMA integrity_check") if line != "ok"]
        found += [f"foreign key: {row}" for row in connection.execute("PRAGMA foreign_key_check")]
        streams: dict[str, list[tuple[int, dict[str, Any]]]] = {}
        for stream, version, body in connection.execute("SELECT stream, version, body FROM events ORDER BY seq"):
            streams.setdefault(str(stream), []).append((int(str(version)), unpackb(bytes(body))))
        for keeper in KEEPERS:
            for row in connection.execute(f"SELECT {keeper.columns} FROM {keeper.table}"):  # noqa: S608 — ours
                found += _unlike(keeper, row, streams)
        return found + [f"{stream} has events and no row" for stream in streams]


def _unlike(
    keeper: Keeper[Any], row: tuple[Any, ...], streams: dict[str, list[tuple[int, dict[str, Any]]]]
) -> list[str]:
    record = decode(keeper.cls, keeper.table, row)
    stream = f"{keeper.noun}/{record.id}"
    events = streams.pop(stream, [])
    versions = [version for version, _ in events]
    fold: dict[str, Any] = {}
    for _, body in events:
        fold |= body
    found = [] if versions == list(range(1, record.version + 1)) else [f"{stream} v{record.version}: {versions}"]
    plain = to_plain(record)
    return found if fold == plain else [*found, f"{stream} is {plain}, its events say {fold}"]


@attrs.define
class Announcements:
    """What a store announced after its commits, and where it stood then."""

    streams: list[str] = attrs.Factory(list)
    seqs: list[int] = attrs.Factory(list)

    def __call__(self, streams: list[str], seq: int) -> None:
        self.streams += streams
        self.seqs.append(seq)
