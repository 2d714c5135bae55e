"""Operations answered by the running daemon itself: status, stop, backup, wait, watch."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import attrs
import trio

from client.protocol.digest import DIGEST
from client.protocol.event import EventPage, Waited, WaitForEvent, WatchEvents
from client.protocol.ids import DaemonGen, UnixMs
from client.protocol.node import (
    BackedUp,
    BackUpNode,
    NodeStatus,
    Quarantined,
    ShowStatus,
    StopNode,
    StopReceipt,
    Trouble,
)
from client.protocol.node import Health as HealthState
from client.protocol.refusals import Code, Refusal
from client.protocol.team_run import RenewTeamRun, TeamRun
from daemon.archives import Archives
from daemon.build import COMMIT, NOT_BUILT, VERSION
from daemon.call import Call
from daemon.health import Health
from daemon.instance import Doors
from daemon.operations import team_run
from daemon.peer import BOUNDARY
from daemon.relay import Relay
from daemon.socket import Counts
from daemon.terminals import Terminals
from daemon.waiting import wait, watch
from store import agent as agents
from store import quarantine
from store import team as teams
from store.database import StorageFault, Store
from store.maintenance import Opened, back_up
from store.tx import Tx
from supervisor.means import Means

T = TypeVar("T")


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
    means: Means | None = None

    @property
    def answers(self) -> Mapping[str, Callable[[Call, Any], Any]]:
        return {
            "event.wait": self.wait,
            "node.backup": self.back_up,
            "node.status": self.status,
            "node.stop": self.stop,
            "session.sweep": Terminals(self.store, self.means).sweep,
            "session.terminal": Terminals(self.store, self.means).show,
            "team-run.renew": self.renew,
            "workspace.list": Archives(self.store, self.means).list,
        }

    @property
    def streams(self) -> Mapping[str, Callable[[Call, Any], AsyncGenerator[Any, None]]]:
        return {"event.watch": self.watch, "session.type": Terminals(self.store, self.means).step_in}

    async def wait(self, call: Call, ask: WaitForEvent) -> Waited | Refusal:
        return await wait(self.store, self.relay, call, ask)

    def watch(self, call: Call, ask: WatchEvents) -> AsyncGenerator[EventPage | Refusal, None]:
        return watch(self.store, self.relay, call, ask)

    async def back_up(self, _: Call, ask: BackUpNode) -> BackedUp | Refusal:
        target = Path(ask.file)
        if not target.is_absolute():
            return Refusal(code=Code.FILE_UNUSABLE, about=ask.file, lifted_by="give an absolute path")
        done = await trio.to_thread.run_sync(back_up, self.store.path, target)
        if isinstance(done, Refusal) and done.code is Code.STORE_CORRUPT:
            self.store.stop_writing()
        return done

    async def renew(self, call: Call, ask: RenewTeamRun) -> TeamRun | Refusal:
        """As a unit of work: whoever takes the run comes before it or after it."""
        return await self.store.write(lambda tx: team_run.renew(tx, call, ask))

    async def stop(self, _: Call, __: StopNode) -> StopReceipt:
        """The connection that asked sends the receipt before it lets go."""
        self.stopping.set()
        return StopReceipt(
            daemon_gen=DaemonGen(self.opened.row.daemon_gen),
            pid=os.getpid(),
            open_requests=self.counts.waits - 1,
        )

    async def status(self, _: Call, __: ShowStatus) -> NodeStatus:
        n_agents = await self._ask(agents.count, None)
        n_teams = await self._ask(teams.count, None)
        aside = await self._ask(quarantine.all_of, list[Quarantined]())
        troubles = self.health.troubles + _quarantined(aside)
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

    async def _ask(self, run: Callable[[Tx], T], otherwise: T) -> T:
        """What a disk or a file that fails cannot say is left out: status must answer then above all."""
        try:
            return await self.store.scan(run)
        except StorageFault:
            return otherwise


def _quarantined(aside: list[Quarantined]) -> list[Trouble]:
    if not aside:
        return []
    return [
        Trouble(
            code=Code.ROW_QUARANTINED,
            what=f"{len(aside)} stored records cannot be read and were set aside",
            since=aside[0].since,
            lifted_by="see them: firm node quarantine",
        )
    ]
