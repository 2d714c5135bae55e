"""The one row about this node: ids, daemon generation, generation floor, whether the last end was clean."""

from __future__ import annotations

import attrs

from client.protocol.ids import DaemonGen, NodeId, StoreId, new_id
from store.sql import sql
from store.tx import Tx

#: How far a restore raises every generation. Far more than one store can issue between two restores.
FLOOR_STEP = 1_000_000_000


@attrs.frozen
class NodeRow:
    node_id: NodeId
    store_id: StoreId
    daemon_gen: DaemonGen
    generation_floor: int
    open: int


_LOAD = sql("SELECT node_id, store_id, daemon_gen, generation_floor, open FROM node")


def load(tx: Tx) -> NodeRow:
    found = tx.row(_LOAD)
    assert found is not None, "a migrated store has its node row"
    return NodeRow(*found)


_TAKE = sql("UPDATE node SET daemon_gen = max(daemon_gen, generation_floor) + 1, open = 1")


def take(tx: Tx) -> NodeRow:
    """Begin the next daemon generation. The first commit of every daemon."""
    tx.rows(_TAKE)
    return load(tx)


_LEAVE = sql("UPDATE node SET open = 0")


def leave(tx: Tx) -> None:
    """Say that this daemon ends cleanly. Its last commit."""
    tx.rows(_LEAVE)


_RENEW = sql("UPDATE node SET store_id = :store_id, generation_floor = :floor, open = 0")


def renew(tx: Tx, *, floor: int) -> NodeRow:
    """After a restore: another store id, and every generation above ``floor`` from here on."""
    tx.rows(_RENEW, store_id=new_id(), floor=floor)
    return load(tx)
