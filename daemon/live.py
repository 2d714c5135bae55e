"""Operations answered by the running daemon itself: status, stop, backup, wait, watch."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import Any

import attrs
import trio

from client.protocol.event import EventPage, Waited, WaitForEvent, WatchEvents
from client.protocol.ids import DaemonGen, UnixMs
from client.protocol.node import BackedUp, BackUpNode, NodeStatus, ShowStatus, StopNode, StopReceipt, Trouble
from client.protocol.node import Health as HealthState
from client.protocol.refusals import Code, Refusal
from client.protocol.table import DIGEST
from daemon.build import COMMIT, NOT_BUILT, VERSION
from daemon.call import Call
from daemon.health import Health
from daemon.instance import Doors
from daemon.peer import BOUNDARY
from daemon.relay import Relay
from daemon.socket import Counts
from daemon.waiting import wait, watch
from store import agent as agents
from store import quarantine
from store import team as teams
from store.database import Store
from store.maintenance import Opened, back_up
from store.tx import Tx


@attrs.frozen(kw_only=True)
class Live:
    """What the running daemon answers from."""

    store: Store
    relay: Relay
    health: Health
    opened: Opened
    doors: Doors
    home: Path
    started_at: UnixMs
    counts: Counts
    stopping: trio.Event

    @property
    def answers(self) -> Mapping[str, Callable[[Call, Any], Any]]:
        return {
            "event.wait": self.wait,
            "node.backup": self.back_up,
            "node.status": self.status,
            "node.stop": self.stop,
        }

    @property
    def streams(self) -> Mapping[str, Callable[[Call, Any], AsyncIterator[Any]]]:
        return {"event.watch": self.watch}

    async def wait(self, call: Call, ask: WaitForEvent) -> Waited | Refusal:
        return await wait(self.store, self.relay, call, ask)

    def watch(self, call: Call, ask: WatchEvents) -> AsyncIterator[EventPage | Refusal]:
        return watch(self.store, self.relay, call, ask)

    async def back_up(self, _: Call, ask: BackUpNode) -> BackedUp | Refusal:
        target = Path(ask.file)
        if not target.is_absolute():
            return Refusal(code=Code.FILE_UNUSABLE, about=ask.file, lifted_by="give an absolute path")
        return await trio.to_thread.run_sync(back_up, self.store.path, target)

    async def stop(self, _: Call, __: StopNode) -> StopReceipt:
        """The connection that asked sends the receipt before it lets go."""
        self.stopping.set()
        return StopReceipt(
            daemon_gen=DaemonGen(self.opened.row.daemon_gen),
            pid=os.getpid(),
            open_requests=self.counts.waits - 1,
        )

    async def status(self, _: Call, __: ShowStatus) -> NodeStatus:
        def count(tx: Tx) -> tuple[int, int, int]:
            return agents.count(tx), teams.count(tx), len(quarantine.all_of(tx))

        n_agents, n_teams, n_aside = await self.store.scan(count)
        troubles = self.health.troubles + _quarantined(n_aside, self.started_at)
        row = self.opened.row
        return NodeStatus(
            live=True,
            ready=self.store.writer.stopped is None and not self.stopping.is_set(),
            health=HealthState.DEGRADED if troubles else HealthState.OK,
            troubles=troubles,
            version=VERSION,
            commit=COMMIT,
            table=DIGEST,
            node_id=row.node_id,
            store_id=row.store_id,
            daemon_gen=row.daemon_gen,
            pid=os.getpid(),
            started_at=self.started_at,
            home=str(self.home),
            socket=str(self.doors.node.path),
            member_socket=str(self.doors.member.path),
            schema_version=self.opened.schema_version,
            seq=self.store.seq,
            connections=self.counts.connections,
            waits=self.counts.waits,
            agents=n_agents,
            teams=n_teams,
            boundary=BOUNDARY,
            not_built=NOT_BUILT,
        )


def _quarantined(count: int, since: UnixMs) -> list[Trouble]:
    if not count:
        return []
    return [
        Trouble(
            code=Code.ROW_QUARANTINED,
            what=f"{count} stored records cannot be read and were set aside",
            since=since,
            lifted_by="see them: firm node quarantine",
        )
    ]
