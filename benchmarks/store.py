"""P1 to P3: durable transitions and one read, through the socket, against the same work without one.

The floor of a write is the very unit the daemon runs (guard, remembered reply, verb, event, packed answer) on a bare
apsw connection in its own FULL transaction, decoding excluded. The floor of a read is a trio and msgpack echo of an
answer of that size. Floors and figures alternate in each round; the medians of the rounds are compared.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgpack
import trio

from benchmarks.client import Client, framed, throughput
from benchmarks.figures import Figure, laps, median, ms
from benchmarks.node import Daemon
from client.protocol.codec import Ask
from client.protocol.operation import Plane
from daemon.call import Call
from daemon.dispatch import Dispatcher
from daemon.health import now
from store import maintenance
from store.batch import Unit
from store.database import connect
from store.tx import Tx

CLIENTS = 32
#: Many short rounds: a machine whose clock changes within seconds gives each figure and its floor the same share.
ROUNDS = 15
PER_ROUND = 1600
FLOOR_UNITS = 400


#: What happens to one Work again and again, each step a transition that names the version that the one before left.
_ROUND = ("assign", "hold", "unhold", "release")
_FIELDS: dict[str, dict[str, Any]] = {"hold": {"reason": "wait"}, "unhold": {}, "release": {"reason": "not now"}}


class Place:
    """A run of a team whose Host is the person at the machine, with Works to move."""

    def __init__(self, ask: Any) -> None:
        self._ask = ask
        host = ask("agent.create", {"name": "host", "profile": "me"})
        team = ask("team.create", {"name": "bench", "host_agent_id": host["id"], "project": "/"})
        run = ask("team-run.create", {"team_id": team["id"]})
        self.run = ask("team-run.start", {"team_run_id": run["id"], "expected_version": run["version"]})
        self.membership = ask("team.show", {"team_id": team["id"]})["members"][0]["membership"]["id"]

    def work(self) -> Any:
        body = {
            "team_run_id": self.run["id"],
            "title": "build it",
            "completion_criteria": "it works",
            "duplicate_ok": True,
        }
        return self._ask("work.create", body)

    def step(self, work: Any) -> tuple[str, dict[str, Any]]:
        """The next transition of ``work``, which has gone through so many as its version says."""
        verb = _ROUND[(work["version"] - 1) % len(_ROUND)]
        more = _FIELDS.get(verb, {"membership_id": self.membership})
        return f"work.{verb}", {"work_id": work["id"], "expected_version": work["version"], **more}

    def steps(self, client: Client, work: Any) -> list[bytes]:
        """The next transitions of one Work, packed."""
        frames: list[bytes] = []
        for _ in range(PER_ROUND // CLIENTS):
            frames.append(client.packed(*self.step(work), keyed=True))
            work["version"] += 1
        return frames


class _Bare:
    """A dispatcher's units on a bare connection, one transaction each."""

    def __init__(self, folder: Path) -> None:
        path = folder / "floor.db"
        opened = maintenance.take(path)
        self._connection = connect(path)
        self._row = opened.row
        self._units: list[Unit] = []
        self._reply: Any = None
        self._dispatcher = Dispatcher(self, {}, {})  # type: ignore[arg-type]
        self.seq = 0
        self._asked = 0

    def submit(self, unit: Unit) -> None:
        self._units.append(unit)

    def look(self, run: Callable[[Tx], Any]) -> Any:
        return run(Tx(self._connection))

    def prepare(self, op: str, body: dict[str, Any]) -> Unit | None:
        """The decoded unit of a request, not run yet; None of a read, which is answered."""
        self._asked += 1
        call = Call(
            plane=Plane.OPERATOR,
            actor="operator",
            now=now(),
            node_id=self._row.node_id,
            store_id=self._row.store_id,
            daemon_gen=self._row.daemon_gen,
        )

        def reply(payload: bytes) -> None:
            self._reply = msgpack.unpackb(payload)

        ask = Ask(self._asked, op, body, f"key {self._asked}")
        self._dispatcher.ask(call, ask, reply, trio.run, trio.lowlevel.checkpoint)
        return self._units.pop() if self._units else None

    def run(self, unit: Unit) -> Any:
        self._connection.execute("BEGIN IMMEDIATE")
        unit.outcome = unit.run(Tx(self._connection))
        self._connection.execute("COMMIT")
        unit.done(unit)
        return self._reply["answer"]

    def ask(self, op: str, body: dict[str, Any]) -> Any:
        unit = self.prepare(op, body)
        return self.run(unit) if unit else self._reply["answer"]

    def laps(self, place: Place, work: Any, count: int) -> tuple[Any, list[float]]:
        found: list[float] = []
        for _ in range(count):
            unit = self.prepare(*place.step(work))
            assert unit is not None, "a transition is a write"
            began = time.perf_counter()
            work = self.run(unit)
            found.append(time.perf_counter() - began)
        return work, found


def bare_fdatasync(folder: Path) -> float:
    """Seconds of one small write and fdatasync on this disk, the median of many."""
    with (folder / "sync").open("wb", buffering=0) as file:

        def once() -> None:
            file.write(b"x" * 4096)
            os.fdatasync(file.fileno())

        return median(laps(once, 300))


def writes(daemon: Daemon) -> list[Figure]:
    """P1 and P2."""
    clients = [daemon.client() for _ in range(CLIENTS)]
    place = Place(lambda op, body: clients[0].ask(op, body, keyed=True))
    works = [place.work() for _ in clients]
    with tempfile.TemporaryDirectory(prefix="firm-bench-") as folder:
        bare = _Bare(Path(folder))
        bare_place = Place(bare.ask)
        work = bare_place.work()
        many: list[float] = []
        single: list[float] = []
        floors: list[float] = []
        ratios: list[float] = []
        for _ in range(ROUNDS):
            work, found = bare.laps(bare_place, work, FLOOR_UNITS)
            floors += found
            many.append(throughput(clients, [place.steps(*pair) for pair in zip(clients, works, strict=True)]))
            ratios.append(many[-1] * median(found))
            single += _one_by_one(clients[0], place, works, 100)
    floor = median(floors)
    return [
        Figure(
            "P1",
            f"durable Work transitions a second, {CLIENTS} clients, FULL",
            f"{median(many):.0f}/s",
            f"{1 / floor:.0f}/s",
            median(ratios),
            1.5,
            at_most=False,
        ),
        Figure(
            "P2",
            "one client's durable Work transition, p50",
            ms(median(single)),
            ms(floor),
            median(single) / floor,
            3,
            at_most=True,
        ),
    ]


def _one_by_one(client: Client, place: Place, works: list[Any], count: int) -> list[float]:
    def once() -> None:
        works[0] = client.ask(*place.step(works[0]), keyed=True)

    return laps(once, count)


_ECHO = """
import sys, msgpack, trio
async def main():
    listener = trio.SocketListener(trio.socket.from_stdlib_socket(bind()))
    async def serve(stream):
        buffer = b""
        async for data in stream:
            buffer += data
            while len(buffer) >= 4 and len(buffer) >= 4 + (size := int.from_bytes(buffer[:4], "big")):
                asked = msgpack.unpackb(buffer[4 : 4 + size]); buffer = buffer[4 + size :]
                payload = msgpack.packb({"id": asked["id"], "answer": ANSWER})
                await stream.send_all(len(payload).to_bytes(4, "big") + payload)
    print("ready", flush=True)
    await trio.serve_listeners(serve, [listener])
def bind():
    import socket
    s = socket.socket(socket.AF_UNIX); s.bind(sys.argv[1]); s.listen(); return s
ANSWER = msgpack.unpackb(bytes.fromhex(sys.argv[2]))
trio.run(main)
"""


def reads(daemon: Daemon) -> list[Figure]:
    """P3."""
    client = daemon.client()
    work = Place(lambda op, body: client.ask(op, body, keyed=True)).work()
    show = "work.show", {"work_id": work["id"]}
    answer = client.ask(*show)
    with tempfile.TemporaryDirectory(prefix="firm-bench-") as folder:
        path = f"{folder}/echo"
        echo = subprocess.Popen(
            [sys.executable, "-c", _ECHO, path, msgpack.packb(answer).hex()], stdout=subprocess.PIPE
        )
        try:
            assert echo.stdout is not None
            assert echo.stdout.readline() == b"ready\n"
            bare = _Echo(path)
            ours: list[float] = []
            floors: list[float] = []
            for _ in range(ROUNDS):
                floors += laps(bare.once, 1000)
                ours += laps(lambda: client.ask(*show), 1000)
        finally:
            echo.terminate()
            echo.wait()
    floor, mine = median(floors), median(ours)
    return [Figure("P3", "one read (work show), p50", ms(mine), ms(floor), mine / floor, 4, at_most=True)]


class _Echo(Client):
    def __init__(self, path: str) -> None:
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(path)
        self._buffer = b""
        self._request = framed({"id": 1, "op": "work.show", "body": {"work_id": "abcdefghij"}, "key": ""})

    def once(self) -> Any:
        self.socket.sendall(self._request)
        return self.read()
