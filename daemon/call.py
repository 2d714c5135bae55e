"""Who is asking, and when."""

from __future__ import annotations

from typing import Any

import attrs

from client.protocol.ids import AgentMemberId, NodeId, StoreId, UnixMs
from client.protocol.operation import Plane


@attrs.frozen(kw_only=True)
class Call:
    """Resolved from the connection, never from the request."""

    plane: Plane
    actor: str  # "operator", or "agent/<id>"
    now: UnixMs
    node_id: NodeId
    store_id: StoreId
    agent_member_id: AgentMemberId | None = None  # on every plane but the operator's
    facts: Any = None  # what was read outside the database before the unit, where the operation needs it, or a refusal
