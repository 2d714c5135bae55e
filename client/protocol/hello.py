"""The first frame of each side: protocol version, table digest, and who the client says it is.

``{"hello": {"protocol": 1, "table": DIGEST, "key": OPERATOR_KEY}}``; a session shows ``capability`` instead, a launcher
``launch``. The daemon answers with a hello of its own, or with a refusal, and then closes. Another protocol version is
refused; another table digest is only told, since unknown operations and fields are refused one by one.
"""

from __future__ import annotations

import hmac

import attrs

from client.protocol.ids import DaemonGen, NodeId, StoreId
from client.protocol.operation import Plane

PROTOCOL = 1


@attrs.frozen(kw_only=True)
class Hello:
    """What a client says first."""

    protocol: int
    table: str = ""
    key: str = ""
    capability: str = ""
    launch: str = ""  # a launcher names its launch and nothing else
    supervises: str = ""  # the run that whoever shows the operator key supervises on this connection, and nothing else


@attrs.frozen(kw_only=True)
class Welcome:
    """What the daemon answers to a hello that it accepts."""

    protocol: int
    table: str
    plane: Plane
    actor: str
    node_id: NodeId
    store_id: StoreId
    daemon_gen: DaemonGen
    version: str
    firm_bin: str  # the daemon's own build, for a client whose table differs


def same(left: str, right: str) -> bool:
    """Whether two secrets are equal, in time that does not tell where they differ."""
    return hmac.compare_digest(left.encode(), right.encode())
