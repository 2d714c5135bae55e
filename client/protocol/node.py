"""The node itself: status, stop, backup, quarantine. Records, requests and rows."""

from __future__ import annotations

import enum
from typing import Annotated

import attrs

from client.protocol.ids import DaemonGen, FilePath, NodeId, StoreId, UnixMs
from client.protocol.operation import OPERATOR, READERS, Effect, Operation, Request
from client.protocol.refusals import Code
from client.protocol.shape import ID, PATH


@attrs.frozen(kw_only=True)
class Trouble:
    """One thing that is wrong, since when, and what lifts it."""

    code: str
    what: str
    since: UnixMs
    lifted_by: str


class Health(enum.StrEnum):
    """``ok`` exactly when nothing is wrong."""

    OK = "ok"
    DEGRADED = "degraded"


@attrs.frozen(kw_only=True)
class NodeStatus:
    """What the daemon knows of itself. That it answers at all is what ``live`` says."""

    live: bool
    ready: bool  # lock held, store open and taking writes, not draining
    health: Health
    troubles: list[Trouble]
    version: str
    commit: str
    table: str
    node_id: NodeId
    store_id: StoreId
    daemon_gen: DaemonGen
    pid: int
    started_at: UnixMs
    home: str
    socket: str
    member_socket: str
    schema_version: int
    seq: int
    connections: int
    waits: int
    agents: int | None  # not known while the database cannot be read
    teams: int | None
    boundary: str  # what the operator plane proves for an unconfined session, and what it does not
    not_built: list[str]


@attrs.frozen(kw_only=True)
class StopReceipt:
    """The daemon takes nothing new from here on and ends once its answers have left."""

    daemon_gen: DaemonGen
    pid: int
    open_requests: int


@attrs.frozen(kw_only=True)
class BackedUp:
    """A whole database at one moment: file, size in bytes, and the last sequence number in it."""

    file: str
    size: int
    seq: int


@attrs.frozen(kw_only=True)
class Quarantined:
    """A stored record that could not be read."""

    record: str  # "<table>/<row>"
    why: str
    since: UnixMs


@attrs.frozen(kw_only=True)
class QuarantineList:
    items: list[Quarantined]


@attrs.frozen(kw_only=True)
class ShowStatus(Request[NodeStatus]):
    """Say what is wrong with the daemon, since when, and what lifts it."""


@attrs.frozen(kw_only=True)
class StopNode(Request[StopReceipt]):
    """Drain the daemon and end it; nothing that was acknowledged is lost."""


@attrs.frozen(kw_only=True)
class BackUpNode(Request[BackedUp]):
    """Write a copy of the whole database to a new file while the daemon runs."""

    file: Annotated[FilePath, "the file to make; must not exist", PATH]


@attrs.frozen(kw_only=True)
class ListQuarantine(Request[QuarantineList]):
    """List stored records that could not be read and were set aside."""


@attrs.frozen(kw_only=True)
class ReleaseQuarantine(Request[Quarantined]):
    """Read a record that was set aside again; if it can be read now, it is back."""

    record: Annotated[str, "the record, as the list names it", ID]


OPERATIONS = (
    Operation(
        "node.backup",
        BackUpNode,
        planes=OPERATOR,
        effect=Effect.LIVE,
        refuses=(Code.FILE_EXISTS, Code.FILE_UNUSABLE),
    ),
    Operation("node.quarantine", ListQuarantine, planes=OPERATOR, effect=Effect.READ),
    Operation(
        "node.release",
        ReleaseQuarantine,
        planes=OPERATOR,
        effect=Effect.WRITE,
        refuses=(Code.NOT_FOUND, Code.ROW_QUARANTINED),
    ),
    Operation("node.status", ShowStatus, planes=READERS, effect=Effect.LIVE),
    Operation("node.stop", StopNode, planes=OPERATOR, effect=Effect.LIVE),
)
