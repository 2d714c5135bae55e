"""P10: what people and agents look at, in a large store against a small one.

The Works of the run stand as those of a long run do: most open, some of them waiting for others, many closed. They are
written by the store's own keepers before the daemon starts, without waiting for the disk.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import msgpack

from benchmarks.client import Client
from benchmarks.figures import Figure, laps, median, ms
from benchmarks.node import Daemon, started
from benchmarks.store import Place
from client.protocol import codec
from client.protocol.ids import MembershipId, WorkId, new_id
from client.protocol.work import Condition, Phase, Resolution, Work
from store.database import connect
from store.tx import Tx
from store.work import WORKS, index

SMALL = 100, 1_000
LARGE = 10_000, 1_000_000
#: Of a hundred Works: phase, condition, resolution, how many, whether they wait for the one before.
_MIX = (
    (Phase.OPEN, Condition.NORMAL, None, 35, False),
    (Phase.OPEN, Condition.NORMAL, None, 20, True),
    (Phase.OPEN, Condition.ON_HOLD, None, 3, False),
    (Phase.ACTIVE, Condition.BLOCKED, None, 4, False),
    (Phase.REVIEW, Condition.NORMAL, None, 8, False),
    (Phase.CLOSED, Condition.NORMAL, Resolution.ACCEPTED, 27, False),
    (Phase.CLOSED, Condition.NORMAL, Resolution.CANCELLED, 3, False),
)
ROUNDS = 10


@attrs.frozen
class Store:
    """A daemon with a store of that size; ``run`` is the run, ``work`` a Work in it that can be moved."""

    daemon: Daemon
    client: Client
    waiter: Client
    place: Place
    run: str
    work: dict[str, Any]

    def page(self) -> None:
        found = self.client.ask("work.list", {"team_run_id": self.run, "limit": 100})
        assert len(found["items"]) == 100

    def board(self) -> None:
        firm = Path(sys.executable).parent / "firm"
        environment = {**os.environ, "FIRM_HOME": str(self.daemon.home)}
        subprocess.run([firm, "board", self.run], env=environment, stdout=subprocess.DEVNULL, check=True)

    def wakes(self) -> float:
        """Seconds from a transition to the answer of whoever waited for the run to change."""
        self.client.socket.sendall(self.client.packed("event.list", {"limit": 1}, keyed=False))
        seq = self.client.read()["seq"]
        body = {"predicate": f"team-run:{self.run}.seq>{seq}", "timeout_ms": 60_000}
        self.waiter.socket.sendall(self.waiter.packed("event.wait", body, keyed=False))
        self.client.ask("node.status", {})  # the wait is parked by then
        op, asked = self.place.step(self.work)
        began = time.perf_counter()
        self.client.socket.sendall(self.client.packed(op, asked, keyed=True))
        woken = self.waiter.read()
        seconds = time.perf_counter() - began
        assert woken["answer"]["events"], woken
        self.work.update(self.client.read()["answer"])
        return seconds


def scale() -> Iterator[Figure]:
    with tempfile.TemporaryDirectory(prefix="firm-bench-") as folder:
        homes = [Path(folder) / name for name in ("small", "large")]
        for home, size in zip(homes, (SMALL, LARGE), strict=True):
            make(home, *size)
        with started(homes[0]) as one, started(homes[1]) as other:
            small, large = _opened(one), _opened(other)
            yield from (_page(small, large), _wake(small, large), _board(small, large))


def _page(small: Store, large: Store) -> Figure:
    ours: list[float] = []
    floors: list[float] = []
    for _ in range(ROUNDS):
        floors += laps(small.page, 20)
        ours += laps(large.page, 20)
    return _figure("first page of 100 Works, p50", ours, floors)


def _wake(small: Store, large: Store) -> Figure:
    ours: list[float] = []
    floors: list[float] = []
    for _ in range(ROUNDS):
        floors += [small.wakes() for _ in range(20)]
        ours += [large.wakes() for _ in range(20)]
    return _figure("from a transition to whoever waits for it, p50", ours, floors)


def _board(small: Store, large: Store) -> Figure:
    ours: list[float] = []
    floors: list[float] = []
    for _ in range(ROUNDS):
        floors += laps(small.board, 2)
        ours += laps(large.board, 2)
    return _figure("firm board, whole process", ours, floors)


def _figure(what: str, ours: list[float], floors: list[float]) -> Figure:
    mine, floor = median(ours), median(floors)
    sizes = f"{LARGE[0]} Works and {LARGE[1]} events against {SMALL[0]} and {SMALL[1]}"
    return Figure("P10", f"{what}, {sizes}", ms(mine), ms(floor), mine / floor, 2, at_most=True)


def _opened(daemon: Daemon) -> Store:
    client = daemon.client()
    (run,) = client.ask("team-run.list", {})["items"]
    place = Place.__new__(Place)
    (host,) = [each for each in client.ask("membership.list", {})["items"] if each["role"] == "host"]
    place.membership = host["id"]
    work = client.ask("work.list", {"team_run_id": run["id"], "limit": 1})["items"][0]
    return Store(daemon, client, daemon.client(), place, run["id"], work)


def make(home: Path, works: int, events: int) -> None:
    """A store of that size: its run by a daemon, the rest of it by hand."""
    with started(home) as daemon:
        client = daemon.client()
        place = Place(lambda op, body: client.ask(op, body, keyed=True))
        sample = codec.structure(place.work(), Work)
    connection = connect(home / "node.db")
    connection.execute("PRAGMA synchronous = OFF")
    with connection:
        tx = Tx(connection)
        _works(tx, sample, MembershipId(place.membership), works)
    each = events // works
    packed = msgpack.packb({"version": 1})
    with connection:
        for n in range(2, each + 1):
            connection.execute(
                """INSERT INTO events (at, stream, version, kind, actor, body, run)
                   SELECT created_at, 'work/' || id, :n, 'updated', 'operator', :body, team_run_id FROM works
                   WHERE id <> :sample""",
                {"n": n, "body": packed, "sample": sample.id},
            )
        connection.execute("UPDATE works SET version = :n WHERE id <> :sample", {"n": each, "sample": sample.id})
        connection.execute("UPDATE events SET kind = 'blocked' WHERE version = :n AND kind = 'updated'", {"n": each})
    connection.close()


def _works(tx: Tx, sample: Work, owner: MembershipId, count: int) -> None:
    before: WorkId | None = None
    for n in range(count - 1):
        phase, condition, resolution, waits = _standing(n)
        work = attrs.evolve(
            sample,
            id=WorkId(new_id()),
            title=f"build part {n}",
            phase=phase,
            condition=condition,
            held=Condition.NORMAL if condition is Condition.ON_HOLD else None,
            resolution=resolution,
            owner_id=owner if phase in {Phase.ACTIVE, Phase.REVIEW} else None,
            needs=[before] if waits and before else [],
        )
        WORKS.insert(tx, work, kind="created", actor="operator", at=work.created_at)
        index(tx, work)
        tx.known.clear()
        tx.streams.clear()
        before = work.id


def _standing(n: int) -> tuple[Phase, Condition, Resolution | None, bool]:
    place = n * 37 % 100
    for phase, condition, resolution, many, waits in _MIX:
        if place < many:
            return phase, condition, resolution, waits
        place -= many
    raise AssertionError("the mix is of a hundred")
