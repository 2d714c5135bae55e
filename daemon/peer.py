"""Who a peer is: the kernel's word about its process, then what it shows. Never an argument or a name.

The operator plane needs the daemon's own uid, the operator key, and no sign of a session: no session mark in the
peer's environment and no such process among its ancestors, not the daemon itself, and not the server of our terminals,
below which everything hangs that lost its parent there. For an unconfined session this stops mistakes, not malice: a
process of the same uid can read the key.
"""

from __future__ import annotations

import errno
import math
import os
import select
import socket
import struct
from collections.abc import Callable, Mapping
from typing import Any

import attrs
import trio

from client import paths
from client.protocol import codec
from client.protocol.hello import PROTOCOL, Hello, same
from client.protocol.ids import AgentMemberId, SessionGen, SessionId, TeamRunId
from client.protocol.operation import Plane
from client.protocol.refusals import Code, Refusal
from providers.process import Process, environment_of, stat

_SO_PEERPIDFD = 77  # Linux 6.5; not yet in the socket module
_MARK = f"{paths.MARK}=".encode()
_DEPTH = 64

BOUNDARY = (
    "An unconfined process of the same user can read the operator key and the database, and can leave our process "
    "tree. For such sessions the operator plane stops mistakes, not malice."
)


@attrs.frozen
class PeerProcess:
    """A process the kernel named. ``fd`` is its pidfd; until that says ``ended`` the pid means no other process."""

    pid: int
    uid: int
    fd: int

    @property
    def ended(self) -> bool:
        poll = select.poll()
        poll.register(self.fd, select.POLLIN)
        return bool(poll.poll(0))

    def close(self) -> None:
        os.close(self.fd)


@attrs.frozen
class Peer:
    """A connection's plane and actor, for all of its life."""

    plane: Plane
    actor: str
    pid: int
    agent_member_id: AgentMemberId | None = None
    session_id: SessionId | None = None
    session_gen: SessionGen | None = None
    by_capability: bool = False
    team_run_id: TeamRunId | None = None  # on the supervisor's plane


def process_of(sock: socket.socket | trio.socket.SocketType) -> PeerProcess | None:
    """The process at the other end, or None when it is gone already."""
    pid, uid, _ = struct.unpack("3i", sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    try:
        fd = sock.getsockopt(socket.SOL_SOCKET, _SO_PEERPIDFD)
    except OSError as error:
        if error.errno != errno.ENOPROTOOPT:
            return None  # it has ended, and its number may be another's by now
        try:
            fd = os.pidfd_open(pid)
        except OSError:
            return None
    return PeerProcess(pid, uid, fd)


def read_hello(message: dict[Any, Any]) -> Hello | Refusal:
    """The first frame of a peer. Another protocol is known by its number, whatever else it says."""
    if message.keys() != {"hello"}:
        lifted_by = "say hello first, as a frame of its own"
        return Refusal(code=Code.MALFORMED, about="hello", lifted_by=lifted_by)
    said = message["hello"]
    if isinstance(said, dict) and type(found := said.get("protocol")) is int and found != PROTOCOL:
        return Refusal(
            code=Code.PROTOCOL_UNSUPPORTED,
            about="hello",
            lifted_by=f"use a client of this daemon's build; it speaks protocol {PROTOCOL}",
        )
    return codec.exact(said, Hello, "hello")


@attrs.frozen(kw_only=True)
class Known:
    """What a peer is compared with: the operator key, and the sessions of this store."""

    operator_key: str
    proven: Callable[[], Mapping[tuple[int, int], SessionId]]  # by pid and start ticks of this boot
    of_process: Callable[[SessionId], Peer | Refusal]
    by_token: Callable[[str], Peer | Refusal | None]
    terminals: Callable[[], Process | None]  # the server of our terminals, as it recorded itself


def resolve(process: PeerProcess, hello: Hello, known: Known, *, member_door: bool) -> Peer | Refusal:
    """The plane this peer holds from now on, or why it holds none.

    A peer with a session's proven process among its ancestors, or that is one, is that session, whatever it shows.
    """
    lineage = ancestors(process.pid)
    sessions = known.proven()
    for each in lineage:
        if session_id := sessions.get(each):
            peer = known.of_process(session_id)
            return peer if isinstance(peer, Refusal) else attrs.evolve(peer, pid=process.pid)
    if hello.capability:
        shown = known.by_token(hello.capability)
        denied = "no session is open that this capability could belong to; a launch gives a session its own"
        if shown is None:
            return Refusal(code=Code.CAPABILITY_DENIED, about="capability", lifted_by=denied)
        return shown if isinstance(shown, Refusal) else attrs.evolve(shown, pid=process.pid)
    if member_door:
        return _denied("show a capability: this socket knows sessions only")
    if not hello.key or not same(hello.key, known.operator_key):
        return _denied("show the operator key, which stands in operator.key in FIRM_HOME")
    sign = session_sign(process.pid, os.getpid(), known.terminals())
    if process.ended:
        return _denied("ask from a process that lives: the one that connected has ended")
    if sign:
        return _denied(f"ask from a shell of your own: {sign}")
    if hello.supervises:  # whoever may do everything may also do only this
        run_id = TeamRunId(hello.supervises)
        return Peer(Plane.SUPERVISOR, f"supervisor/{run_id}", process.pid, team_run_id=run_id)
    return Peer(Plane.OPERATOR, "operator", process.pid)


def ancestors(pid: int) -> list[tuple[int, int]]:
    """A process and those above it, nearest first, as pid and start ticks. Ends where one has ended."""
    found: list[tuple[int, int]] = []
    youngest: float = math.inf
    while pid > 1 and len(found) < _DEPTH:
        seen = stat(pid)
        if seen is None or seen.start_ticks > youngest:  # one younger than its child got the number of an ended one
            break
        found.append((pid, seen.start_ticks))
        pid, youngest = seen.parent, seen.start_ticks
    return found


def session_sign(pid: int, daemon: int, terminals: Process | None = None) -> str:
    """What says that ``pid`` belongs to a session or to the daemon, or an empty string. What a member started and what
    has lost its parents hangs below the server of the ``terminals``, whatever stands in its environment.
    """
    at, born = pid, math.inf
    for _ in range(_DEPTH):
        if at == daemon:
            return "the daemon is among this process's ancestors"
        if at <= 1:
            return ""
        if _marked(at):
            return f"process {at} carries the mark of a session"
        found = stat(at)
        if found is None or found.start_ticks > born:  # as with ancestors
            return f"process {at} ended while it was looked at"
        if terminals is not None and (at, found.start_ticks) == (terminals.pid, terminals.start_ticks):
            return f"process {pid} hangs below the terminals of members"
        at, born = found.parent, found.start_ticks
    return f"process {pid} has more than {_DEPTH} ancestors"


def _marked(pid: int) -> bool:
    """An environment we may not read belongs to another user or a privileged program, so to no session of ours."""
    return any(entry.startswith(_MARK) for entry in environment_of(pid))


def _denied(lifted_by: str) -> Refusal:
    return Refusal(code=Code.NOT_AUTHORIZED, about="hello", lifted_by=lifted_by)
