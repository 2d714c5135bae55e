"""What may happen to a delegation."""

from __future__ import annotations

import enum

from client.protocol.delegation import DelegationState
from daemon.kernel.machine import Lifecycle


class DelegationCause(enum.StrEnum):
    ACCEPT = "accept"
    DECLINE = "decline"
    WITHDRAW = "withdraw"


DELEGATION = Lifecycle(
    "delegation",
    start=DelegationState.PROPOSED,
    moves={
        DelegationState.PROPOSED: {
            DelegationCause.ACCEPT: DelegationState.ACCEPTED,
            DelegationCause.DECLINE: DelegationState.DECLINED,
            DelegationCause.WITHDRAW: DelegationState.WITHDRAWN,
        },
        DelegationState.ACCEPTED: {},
        DelegationState.DECLINED: {},
        DelegationState.WITHDRAWN: {},
    },
)
