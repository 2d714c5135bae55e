"""Identifiers and generations: distinct types that encode nothing and are never compared with each other."""

from __future__ import annotations

import base64
import os
import uuid
from typing import NewType

ProjectId = NewType("ProjectId", str)
AgentMemberId = NewType("AgentMemberId", str)
TeamId = NewType("TeamId", str)
MembershipId = NewType("MembershipId", str)
SubscriptionId = NewType("SubscriptionId", str)
TeamRunId = NewType("TeamRunId", str)
MemberRunId = NewType("MemberRunId", str)
SessionId = NewType("SessionId", str)
CapabilityId = NewType("CapabilityId", str)
EffectId = NewType("EffectId", str)
WorkId = NewType("WorkId", str)
BindingId = NewType("BindingId", str)
WorkDeliveryId = NewType("WorkDeliveryId", str)
ReceiptId = NewType("ReceiptId", str)
MessageId = NewType("MessageId", str)
MessageDeliveryId = NewType("MessageDeliveryId", str)
CorrelationId = NewType("CorrelationId", str)
VerdictId = NewType("VerdictId", str)
DelegationId = NewType("DelegationId", str)
NodeId = NewType("NodeId", str)
StoreId = NewType("StoreId", str)

#: An id, or a name that fits exactly one record. Only the operator's convenience: records hold ids.
AgentMemberRef = NewType("AgentMemberRef", str)
TeamRef = NewType("TeamRef", str)

#: An absolute path. On the command line a relative one is resolved, and the current folder is the default.
Folder = NewType("Folder", str)
#: An absolute path of a file. On the command line a relative one is resolved.
FilePath = NewType("FilePath", str)

#: In a request: the Work that was delivered to the caller, the run that the caller takes part in.
DELIVERED_WORK = WorkId("")
OWN_RUN = TeamRunId("")

#: Milliseconds since 1970. For people; no rule orders by it.
UnixMs = NewType("UnixMs", int)

DaemonGen = NewType("DaemonGen", int)
MemberGen = NewType("MemberGen", int)
SupGen = NewType("SupGen", int)
RunGen = NewType("RunGen", int)
SessionGen = NewType("SessionGen", int)
Fence = NewType("Fence", int)


def new_id() -> str:
    """Ten characters of lower-case base32: 50 random bits."""
    return base64.b32encode(os.urandom(7)).decode()[:10].lower()


def new_native_id() -> str:
    """A random UUID, which is what programs take as the id of a conversation."""
    return str(uuid.uuid4())


def new_receipt_id() -> ReceiptId:
    """``rr-`` and 128 random bits."""
    return ReceiptId("rr-" + os.urandom(16).hex())
