"""A supervisor as a process of its own: ``python -I -m daemon supervise RUN [SECONDS]``.

It takes the run from the daemon's own supervisor, which takes it again when this one is gone for longer than its lease.
It asks over the socket as whoever shows the operator key: no member can.
"""

from __future__ import annotations

import logging
import os
from pathlib import Path

import trio

from client import paths
from client.connection import Disconnected, connect
from client.protocol.ids import TeamRunId
from client.protocol.refusals import ROWS, Refusal
from daemon import instance, logs
from daemon.config import Config, from_environment
from daemon.main import crash_at, stops
from daemon.processes import means, read_profiles, terminals
from supervisor.lease import TTL, Left, Lost, supervise_apart

log = logging.getLogger(__name__)

#: Seconds before it looks for a daemon again.
_AGAIN = 1.0


def run(run_id: str, ttl: float = TTL) -> int:
    """The supervisor as a process, with a lease of ``ttl`` seconds: its exit status, once the run is another's."""
    config = from_environment()
    os.umask(0o077)
    logs.set_up(config.environment)
    ended = trio.run(_supervise, config, TeamRunId(run_id), ttl)
    if ended is None:
        log.info("let go of run=%s: it was asked to leave", run_id)
        return 0
    log.info("let go of run=%s: %s, %s", run_id, ended.code, ended.lifted_by)
    return ROWS[ended.code].exit


async def _supervise(config: Config, run_id: TeamRunId, ttl: float) -> Refusal | None:
    """Hold the run under one daemon after another, until somebody else takes it or it ends; None when a signal asked
    to leave before that.
    """
    leaving, ended = trio.Event(), None
    async with trio.open_nursery() as tasks:
        await tasks.start(stops, leaving)
        ended = await _until(leaving, config, run_id, ttl)
        tasks.cancel_scope.cancel(reason="it leaves")
    return ended


async def _until(leaving: trio.Event, config: Config, run_id: TeamRunId, ttl: float) -> Refusal | None:
    while not leaving.is_set():
        try:
            ended = await _under_one(leaving, config, run_id, ttl)
        except Disconnected as why:
            if why.refusal is not None:
                return why.refusal
            log.warning("no daemon: %s", why)
            await _again(leaving)
        except paths.NoDaemon:
            log.warning("no daemon serves in %s yet", config.home)
            await _again(leaving)
        else:
            if isinstance(ended, Refusal):
                return ended
    return None


async def _again(leaving: trio.Event) -> None:
    with trio.move_on_after(_AGAIN):
        await leaving.wait()


async def _under_one(leaving: trio.Event, config: Config, run_id: TeamRunId, ttl: float) -> Refusal | Lost | Left:
    home = str(config.home)
    said, key = paths.node_file(home), paths.operator_key(home)
    door = Path(str(said["member_socket"]))
    folder = terminals(door)
    read_profiles(config.environment)
    tools = means(
        folder,
        config.environment,
        socket=door,
        crash=crash_at(config.crash_at),
        secrets=(key, instance.secret(config.home, "node.secret")),
        checks=folder / run_id,
    )
    async with connect(str(said["socket"]), key, supervises=run_id) as node:
        return await supervise_apart(node, node.lives, tools, run_id, leaving, ttl=ttl)
