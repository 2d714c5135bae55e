"""The composition root: builds values, opens the nursery tree, and closes it in order.

Order of a start: private folder, lock, secrets, store (migrated, next daemon generation committed), doors,
``node.json``, READY. Order of an end: STOPPING, doors closed, connections answered within a bound, the last commit,
the store closed, the lock let go by the end of the process.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import logging
import os
import resource
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import trio

from client.protocol import codec
from client.protocol.boundary import Boundary, Crash
from client.protocol.digest import DIGEST
from client.protocol.hello import PROTOCOL, Hello, Welcome
from client.protocol.operation import Plane
from client.protocol.refusals import Code, Refusal
from daemon import instance, logs
from daemon.build import COMMIT, VERSION
from daemon.call import Call
from daemon.cannot_start import CannotStart, StartCode
from daemon.config import Config, from_environment
from daemon.dispatch import Dispatcher
from daemon.health import Health, now
from daemon.instance import Door, Doors
from daemon.intake import Intake
from daemon.launches import Launches
from daemon.leases import Leases
from daemon.live import Live
from daemon.loops import Loops
from daemon.notify import Notifier
from daemon.peer import Known, Peer, PeerProcess, resolve
from daemon.processes import below_which, command, environment, means, read_profiles, terminals
from daemon.relay import Relay
from daemon.sessions import by_token, of_process, proven, tokens
from daemon.socket import Counts, Server, serve
from store import maintenance, node, replies
from store.database import Store
from store.maintenance import Opened
from store.migrate import NotOurs, TooNew
from store.tx import Tx
from supervisor.means import Means

log = logging.getLogger(__name__)

#: Seconds that connections may take to end once the daemon stops.
GRACE_SECONDS = 15
_DAY_SECONDS = 24 * 3600
#: New objects that may stay before Python looks for cycles among them, instead of its own 700. Nearly all that a
#: request makes is gone with its answer, and a batch in hand is no garbage: looking it through cost a twentieth.
_GARBAGE = 20_000


def run() -> int:
    """The daemon as a process: its exit status."""
    config = from_environment()
    os.umask(0o077)  # nothing in FIRM_HOME is for others, whatever a library creates
    logs.set_up(config.environment)
    try:
        instance.prepare_home(config.home)
        lock = instance.take_lock(config.home)
        secrets = instance.secret(config.home, "operator.key"), instance.secret(config.home, "node.secret")
        opened = open_store(config.database)
        doors = instance.open_doors(config.home, config.environment)
    except CannotStart as refusal:
        print(refusal, file=sys.stderr)  # noqa: T201 — the person who started it reads this
        return 1
    except OSError as error:
        what, lifted_by = f"{error.filename or config.home}: {error.strerror}", "make FIRM_HOME writable and free space"
        print(CannotStart(StartCode.HOME_UNUSABLE, what, lifted_by), file=sys.stderr)  # noqa: T201 — as above
        return 1
    _raise_descriptors()
    trio.run(_daemon, config, secrets, opened, doors)
    os.close(lock)
    return 0


def open_store(path: Path) -> Opened:
    """The migrated store with the next daemon generation begun, or the reason to end."""
    try:
        return maintenance.take(path)
    except TooNew as error:
        raise CannotStart(
            StartCode.STORE_NEWER,
            f"{path} has schema {error.found}, this firm knows up to {error.known}",
            "use the newer firm, or restore a backup made by this one",
        ) from error
    except NotOurs as error:
        raise CannotStart(StartCode.STORE_UNUSABLE, f"{path} is not a firm database", "move it away") from error
    except maintenance.Unusable as error:
        raise CannotStart(
            StartCode.STORE_UNUSABLE,
            f"{path}: {error}",
            error.lifted_by,
        ) from error


async def _daemon(config: Config, secrets: tuple[str, str], opened: Opened, doors: Doors) -> None:
    health, relay, counts, stopping = Health(), Relay(), Counts(), trio.Event()
    notifier, crash = Notifier(config.environment), crash_at(config.crash_at)
    store = Store(config.database, crash=crash)
    store.committed, store.ended = relay.announce, health.batch_ended
    tools = _means(config, doors.member.path, crash, secrets, health)
    live = Live(
        store=store,
        relay=relay,
        health=health,
        opened=opened,
        doors=doors,
        home=config.home,
        started_at=now(),
        counts=counts,
        stopping=stopping,
        means=tools,
    )
    dispatcher = Dispatcher(store, live.answers, live.streams)
    given = environment(config.environment, firm_bin=config.firm_bin, socket=doors.member.path)
    call = _caller(opened, secrets[1], command(config.firm_bin, given["PATH"]))
    own = functools.partial(call, Peer(Plane.OPERATOR, "node", os.getpid()))
    launches = Launches(
        store=store,
        relay=relay,
        call=own,
        environment=given,
        folder=tools.folders.of,
        crash=crash,
    )
    server = _server(config, secrets[0], live, dispatcher, call, launches)
    loops = Loops(dispatcher, relay, health, own, attrs.evolve(tools, heard=dispatcher.heard_at))
    try:
        async with trio.open_nursery() as services:
            await services.start(store.serve)
            await services.start(server.intake.serve)
            await services.start(stops, stopping)  # before anybody who waits for READY may send one
            services.start_soon(notifier.keep_alive)
            services.start_soon(_forget, store)
            await services.start(loops.serve)
            services.start_soon(_inspect, store, health, opened.unclean)
            async with trio.open_nursery() as connections:
                async with trio.open_nursery() as listeners:
                    await listeners.start(serve, server, doors.node, connections)
                    await listeners.start(serve, server, doors.member, connections)
                    _ready(config, doors, opened, notifier)
                    await stopping.wait()
                    dispatcher.draining = True
                    notifier.tell("STOPPING=1")
                    instance.close_doors(doors)
                    listeners.cancel_scope.cancel(reason="the daemon stops")
                connections.cancel_scope.deadline = trio.current_time() + GRACE_SECONDS
            left = await store.write(node.leave)
            if isinstance(left, Refusal):
                log.error("could not record the clean end: %s", left.code)
            services.cancel_scope.cancel(reason="the daemon stops")
    finally:
        store.close()
    log.info("ended daemon_gen=%d seq=%d", opened.row.daemon_gen, store.seq)


def _means(config: Config, door: Path, crash: Crash, secrets: tuple[str, str], health: Health) -> Means:
    for wrong in read_profiles(config.environment):
        health.meet("PROFILE_UNUSABLE", wrong, "mend it, then: firm node stop, and firm node start", about=wrong)
    return means(terminals(door), config.environment, socket=door, crash=crash, secrets=secrets)


def _caller(opened: Opened, secret: str, firm: str) -> Callable[[Peer], Call]:
    """Makes the call of a peer at the moment at which it asks."""
    row, token, leases = opened.row, tokens(secret), Leases()

    def call(peer: Peer) -> Call:
        return Call(
            plane=peer.plane,
            actor=peer.actor,
            now=now(),
            node_id=row.node_id,
            store_id=row.store_id,
            daemon_gen=row.daemon_gen,
            agent_member_id=peer.agent_member_id,
            session_id=peer.session_id,
            session_gen=peer.session_gen,
            by_capability=peer.by_capability,
            team_run_id=peer.team_run_id,
            token=token,
            leases=leases,
            firm=firm,
        )

    return call


def _server(
    config: Config,
    key: str,
    live: Live,
    dispatcher: Dispatcher,
    call: Callable[[Peer], Call],
    launches: Launches,
) -> Server:
    row, store = live.opened.row, live.store
    known = Known(
        operator_key=key,
        proven=lambda: proven(store),
        of_process=lambda session_id: of_process(store, session_id),
        by_token=lambda token: by_token(store, token),
        terminals=functools.partial(below_which, live.doors.member.path),
    )

    def admit(process: PeerProcess, hello: Hello, door: Door) -> Peer | Refusal:
        return resolve(process, hello, known, member_door=door.member)

    def welcome(peer: Peer) -> bytes:
        said = Welcome(
            protocol=PROTOCOL,
            table=DIGEST,
            plane=peer.plane,
            actor=peer.actor,
            node_id=row.node_id,
            store_id=row.store_id,
            daemon_gen=row.daemon_gen,
            version=VERSION,
            firm_bin=config.firm_bin,
        )
        return codec.packb({"hello": codec.to_plain(said)})

    return Server(dispatcher, admit, welcome, call, live.stopping, launches.converse, Intake(), live.counts)


def _ready(config: Config, doors: Doors, opened: Opened, notifier: Notifier) -> None:
    facts = {"daemon_gen": opened.row.daemon_gen, "pid": os.getpid(), "version": VERSION, "commit": COMMIT}
    instance.publish(config.home, doors, {**facts, "firm_bin": config.firm_bin, "table": DIGEST})
    notifier.tell("READY=1")
    if config.ready_fd is not None:
        with contextlib.suppress(BrokenPipeError):  # who started it did not stay to hear it
            os.write(config.ready_fd, b"ready\n")
        os.close(config.ready_fd)
    gc.freeze()  # what is loaded by now lives as long as the daemon; looking through it again finds nothing
    gc.set_threshold(_GARBAGE)
    log.info("ready daemon_gen=%d home=%s", opened.row.daemon_gen, config.home)


async def stops(stopping: trio.Event, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
    """The first one begins the end; none of them cuts it off."""
    numbers = signal.SIGTERM, signal.SIGINT
    try:
        with trio.open_signal_receiver(*numbers) as received:
            task_status.started()
            async for number in received:
                log.info("stopping on %s", signal.Signals(number).name)
                stopping.set()
    finally:
        for number in numbers:
            signal.signal(number, signal.SIG_IGN)


async def _inspect(store: Store, health: Health, unclean: bool) -> None:  # noqa: FBT001 — for start_soon
    """After an unclean end, and once damage is met: look at the whole file, while peers are served."""
    if not unclean or not await _check(store, health):
        await store.damaged.wait()
        await _check(store, health)


async def _check(store: Store, health: Health) -> bool:
    """Whether the file is damaged; then nothing is written any more, and health says what SQLite says."""
    try:
        found = await trio.to_thread.run_sync(maintenance.check, store.path)
    except maintenance.Unusable as error:
        log.error("integrity check: could not look: %s", error)  # noqa: TRY400 — a fact about the disk, no bug
        return False
    if found:
        log.error("integrity check: %s", "; ".join(found))
        store.stop_writing()
        lifted_by = "stop the daemon and restore a backup: firm node restore FILE"
        health.meet(Code.STORE_CORRUPT, f"integrity check: {'; '.join(found[:3])}", lifted_by)
    return bool(found)


async def _forget(store: Store) -> None:
    """Once a day of running, and at the start: drop remembered replies that are older than they are kept."""
    while True:
        forgotten: Any = 1
        while isinstance(forgotten, int) and forgotten > 0:
            forgotten = await store.write(_forget_some)
        await trio.sleep(_DAY_SECONDS)


def _forget_some(tx: Tx) -> int:
    return replies.forget(tx, now=now())


def crash_at(named: str) -> Crash:
    """A function that kills this process at a boundary, the N-th time it is reached: NAME, NAME:N, or NAME:N:stop to
    stand still there instead. Raises ``ValueError`` for a name that is none.
    """
    name, _, how = named.partition(":")
    nth, _, stands = how.partition(":")
    wanted, left = Boundary(name) if name else None, int(nth or 1)

    def reach(boundary: Boundary) -> None:
        nonlocal left
        if boundary is wanted:
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGSTOP if stands else signal.SIGKILL)

    return reach


def _raise_descriptors() -> None:
    """One descriptor a peer and one more for its pidfd: the usual soft limit of 1 024 is soon reached."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
