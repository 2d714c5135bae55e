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
ROUNDS = 5
PER_ROUND = 4000
FLOOR_UNITS = 1500


def _seed(ask: Any) -> Any:
    agent = ask("agent.create", {"name": "host"})
    return ask("team.create", {"name": "bench", "host_agent_id": agent["id"], "project": "/"})


def _rename(team: Any) -> tuple[str, dict[str, Any]]:
    body = {"team_id": team["id"], "expected_version": team["version"], "name": f"bench {team['version']}"}
    return "team.update", body


def _renames(client: Client, team: Any) -> list[bytes]:
    """The next transitions of one team, packed: each names the version that the one before leaves."""
    frames: list[bytes] = []
    for _ in range(PER_ROUND // CLIENTS):
        frames.append(client.packed(*_rename(team), keyed=True))
        team["version"] += 1
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

    def prepare(self, op: str, body: dict[str, Any]) -> Unit:
        """The decoded unit of a request, not run yet."""
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
        return self._units.pop()

    def run(self, unit: Unit) -> Any:
        self._connection.execute("BEGIN IMMEDIATE")
        unit.outcome = unit.run(Tx(self._connection))
        self._connection.execute("COMMIT")
        unit.done(unit)
        return self._reply["answer"]

    def ask(self, op: str, body: dict[str, Any]) -> Any:
        return self.run(self.prepare(op, body))

    def laps(self, team: Any, count: int) -> tuple[Any, list[float]]:
        found: list[float] = []
        for _ in range(count):
            unit = self.prepare(*_rename(team))
            began = time.perf_counter()
            team = self.run(unit)
            found.append(time.perf_counter() - began)
        return team, found


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
    teams = [_seed(lambda op, body: clients[0].ask(op, body, keyed=True)) for _ in clients]
    with tempfile.TemporaryDirectory(prefix="firm-bench-") as folder:
        bare = _Bare(Path(folder))
        team = _seed(bare.ask)
        many: list[float] = []
        single: list[float] = []
        floors: list[float] = []
        for _ in range(ROUNDS):
            team, found = bare.laps(team, FLOOR_UNITS)
            floors += found
            many.append(throughput(clients, [_renames(*pair) for pair in zip(clients, teams, strict=True)]))
            single += _one_by_one(clients[0], teams, 400)
    floor = median(floors)
    return [
        Figure(
            "P1",
            f"durable transitions a second, {CLIENTS} clients, FULL",
            f"{median(many):.0f}/s",
            f"{1 / floor:.0f}/s",
            median(many) * floor,
            1.5,
            at_most=False,
        ),
        Figure(
            "P2",
            "one client's durable transition, p50",
            ms(median(single)),
            ms(floor),
            median(single) / floor,
            3,
            at_most=True,
        ),
    ]


def _one_by_one(client: Client, teams: list[Any], count: int) -> list[float]:
    def once() -> None:
        teams[0] = client.ask(*_rename(teams[0]), keyed=True)

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
    team = _seed(lambda op, body: client.ask(op, body, keyed=True))
    answer = client.ask("team.show", {"team_id": team["id"]})
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
                ours += laps(lambda: client.ask("team.show", {"team_id": team["id"]}), 1000)
        finally:
            echo.terminate()
            echo.wait()
    floor, mine = median(floors), median(ours)
    return [Figure("P3", "one read (team show), p50", ms(mine), ms(floor), mine / floor, 4, at_most=True)]


class _Echo(Client):
    def __init__(self, path: str) -> None:
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(path)
        self._buffer = b""
        self._request = framed({"id": 1, "op": "team.show", "body": {"team_id": "abcdefghij"}, "key": ""})

    def once(self) -> Any:
        self.socket.sendall(self._request)
        return self.read()
