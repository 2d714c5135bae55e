"""The runs in which a Work is needed that is of another run."""

from __future__ import annotations

from client.protocol.work import Work
from daemon.call import Call
from store import work as works
from store.tx import Tx


def tell(tx: Tx, call: Call, work: Work) -> None:
    """A Work was closed: each other run in which one needs it gets an event, so that whoever looks after that run looks
    again at once.
    """
    if work.resolution is None:
        return
    body = {"resolution": work.resolution.value, "work_id": work.id}
    for run_id in works.dependent_runs(tx, work):
        stream = f"prerequisite/{work.id}/{run_id}"
        tx.append(stream, 1, work.resolution.value, actor=call.actor, at=call.now, body=body, run=run_id)
