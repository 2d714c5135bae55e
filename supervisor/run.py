"""The loop of one team run: see what is due, admit it, wait for the run to change. Nothing polls.

It is a client that holds a fence: everything it does names its ``sup_gen``, and the first refusal that says a newer
supervisor took over ends it. It runs inside the daemon, or over a socket; it cannot tell which.
"""

from __future__ import annotations

import logging

import trio

from client.protocol.attempt import AdmitWork
from client.protocol.board import Due, ListDue
from client.protocol.event import WaitForEvent
from client.protocol.ids import TeamRunId
from client.protocol.operation import Node, R, Request
from client.protocol.refusals import ROWS, Code, Refusal, Retry
from client.protocol.team_run import TakeTeamRun

log = logging.getLogger(__name__)

#: A wait without news ends after this and is begun again; nothing depends on its length.
_WAIT_MS = 600_000
#: After these a supervisor stops. Anything else may be lifted: a full disk is emptied, a record is repaired.
_ENDS = frozenset({Code.NOT_FOUND, Code.SUPERVISOR_GENERATION_FENCED, Code.TEAM_RUN_NOT_OPEN})
#: Seconds before it asks again after something that may be lifted.
_AGAIN = 10.0


async def supervise(node: Node, run_id: TeamRunId) -> Refusal:
    """Hold a run until a newer supervisor takes it or it ends; the refusal that said so."""
    taken = await _lasting(node, TakeTeamRun(team_run_id=run_id))
    if isinstance(taken, Refusal):
        return taken
    log.info("holding run=%s sup_gen=%d", run_id, taken.sup_gen)
    while True:
        seen = await _lasting(node, ListDue(team_run_id=run_id, sup_gen=taken.sup_gen))
        if isinstance(seen, Refusal):
            return seen
        faults = [due for due in seen.items if not await _admit(node, due, taken.sup_gen)]
        patience = int(_AGAIN * 1000) if faults else _WAIT_MS
        news = WaitForEvent(predicate=f"team-run:{run_id}.seq>{seen.seq}", timeout_ms=patience)
        waited = await _lasting(node, news)
        if isinstance(waited, Refusal):
            return waited


async def _lasting(node: Node, request: Request[R]) -> R | Refusal:
    """The answer, or why the run is not this supervisor's any more; what stands in the way is waited out."""
    told: Code | None = None
    while True:
        outcome = await node.ask(request)
        if not isinstance(outcome, Refusal) or outcome.code in _ENDS:
            return outcome
        if outcome.code is not told:
            told = outcome.code
            log.warning("asking again until it is lifted: %s, %s", outcome.code, outcome.lifted_by)
        await trio.sleep(_AGAIN)


async def _admit(node: Node, due: Due, sup_gen: int) -> bool:
    """Whether it was decided. A refusal means that the world moved since it was looked at; the next look sees why."""
    key = f"admit {due.work_id} {due.work_version} {due.session_gen} {sup_gen}"
    admitted = await node.ask(AdmitWork(work_id=due.work_id, session_id=due.session_id, sup_gen=sup_gen), key=key)
    if isinstance(admitted, Refusal) and admitted.code is not Code.MEMBER_BUSY:
        log.info("not admitted work=%s: %s", due.work_id, admitted.code)
    return not isinstance(admitted, Refusal) or ROWS[admitted.code].retry is not Retry.SAME
