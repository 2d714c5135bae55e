"""Who is asking, and when."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs

from client.protocol.ids import AgentMemberId, DaemonGen, NodeId, SessionGen, SessionId, StoreId, TeamRunId, UnixMs
from client.protocol.operation import Plane
from daemon.leases import Leases


def _no_tokens(_: Any) -> str:
    raise AssertionError("this call derives no capability")


@attrs.frozen(kw_only=True)
class Call:
    """Resolved from the connection, never from the request."""

    plane: Plane
    actor: str  # "operator", "agent/<id>" or "supervisor/<run>"
    now: UnixMs
    node_id: NodeId
    store_id: StoreId
    daemon_gen: DaemonGen
    agent_member_id: AgentMemberId | None = None  # on every plane but the operator's
    session_id: SessionId | None = None  # the same
    session_gen: SessionGen | None = None  # the same
    by_capability: bool = False  # proven by a token, not by the process alone
    team_run_id: TeamRunId | None = None  # on the supervisor's plane: the one run it may touch
    leases: Leases = attrs.Factory(Leases)
    token: Callable[[Any], str] = _no_tokens  # the capability of a session, derived from the node's secret
    firm: str = "firm"  # what members type for the command
    facts: Any = None  # what was read outside the database before the unit, where the operation needs it, or a refusal
