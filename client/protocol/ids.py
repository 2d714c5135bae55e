"""Identifiers and generations: distinct types that encode nothing and are never compared with each other."""

from __future__ import annotations

import base64
import os
from typing import NewType

ProjectId = NewType("ProjectId", str)
AgentMemberId = NewType("AgentMemberId", str)
TeamId = NewType("TeamId", str)
MembershipId = NewType("MembershipId", str)
SubscriptionId = NewType("SubscriptionId", str)
NodeId = NewType("NodeId", str)
StoreId = NewType("StoreId", str)

#: An id, or a name that fits exactly one record. Only the operator's convenience: records hold ids.
AgentMemberRef = NewType("AgentMemberRef", str)
TeamRef = NewType("TeamRef", str)

#: An absolute path. On the command line a relative one is resolved, and the current folder is the default.
Folder = NewType("Folder", str)
#: An absolute path of a file. On the command line a relative one is resolved.
FilePath = NewType("FilePath", str)

#: Milliseconds since 1970. For people; no rule orders by it.
UnixMs = NewType("UnixMs", int)

DaemonGen = NewType("DaemonGen", int)
MemberGen = NewType("MemberGen", int)


def new_id() -> str:
    """Ten characters of lower-case base32: 50 random bits."""
    return base64.b32encode(os.urandom(7)).decode()[:10].lower()
