"""The loop of one team run: see what is due, decide, act, report, wait for the run to change. Nothing polls.

It is a client that holds a fence: everything it does names its ``sup_gen``, and the first refusal that says a newer
supervisor took over ends it. It runs inside the daemon, or over a socket under a lease (``lease.py``); it cannot tell
which.
"""

from __future__ import annotations

import logging

import trio

from client.protocol.attempt import AdmitWork
from client.protocol.board import Due, ListDue
from client.protocol.effect import DeliverEffect, RuntimeEffect
from client.protocol.event import WaitForEvent
from client.protocol.ids import TeamRunId
from client.protocol.operation import Node
from client.protocol.refusals import ROWS, Code, Refusal, Retry
from client.protocol.session import AgentSession, ReportSession, SessionCause
from client.protocol.team_run import FinishTeamRun, TakeTeamRun
from supervisor.checks import check
from supervisor.controls import control
from supervisor.decide import MOST_FAILURES, Action, Admit, Adopt, Check, Control, Degrade, Open, Tell, Watch, decide
from supervisor.desk import Desk, lasting
from supervisor.means import Means
from supervisor.telling import watch
from supervisor.wake import look_again

log = logging.getLogger(__name__)

#: A wait without news ends after this and is begun again; nothing depends on its length.
_WAIT_MS = 600_000
#: Milliseconds before it looks again after something that may be lifted.
_AGAIN_MS = 10_000
#: Seconds that one who leaves may take to finish what it has in hand.
_LEAVE_SECONDS = 5.0
#: Seconds that anything done for a place or a control takes at least.
_BREATH = 0.1
#: Seconds from one look to the next at least: a run in which much happens is looked at once for all of it. Whatever
#: happens in a run at rest is looked at immediately.
APART = 0.05


async def supervise(node: Node, means: Means | None, run_id: TeamRunId) -> Refusal:
    """Hold a run until a newer supervisor takes it or it ends; the refusal that said so. Without ``means`` it starts
    no process.

    What it does for one place or one control is a task of its own; they end with it, the processes do not.
    """
    taken = await lasting(node, TakeTeamRun(team_run_id=run_id))
    if isinstance(taken, Refusal):
        return taken
    desk = Desk(node, means, run_id, taken.sup_gen) if means else None
    return await _held(node, desk, run_id, taken.sup_gen)


async def hold(node: Node, means: Means, run_id: TeamRunId, sup_gen: int, leaving: trio.Event) -> Refusal | None:
    """The same for a run that was taken already, until somebody asks it to leave: None, once nothing is in its hands
    any more that the next one could not go on with.
    """
    desk = Desk(node, means, run_id, sup_gen)
    ended: Refusal | None = None
    async with trio.open_nursery() as tasks:

        async def held() -> None:
            nonlocal ended
            ended = await _held(node, desk, run_id, sup_gen)
            tasks.cancel_scope.cancel(reason="the run is not this supervisor's any more")

        tasks.start_soon(held)
        await leaving.wait()
        await _leave(desk)
        tasks.cancel_scope.cancel(reason="it was asked to leave")
    return ended


async def _held(node: Node, desk: Desk | None, run_id: TeamRunId, sup_gen: int) -> Refusal:
    log.info("holding run=%s sup_gen=%d", run_id, sup_gen)
    async with trio.open_nursery() as tasks:
        ended = await _hold(node, desk, run_id, sup_gen, tasks)
        tasks.cancel_scope.cancel(reason="the run is not this supervisor's any more")
    return ended


async def _hold(node: Node, desk: Desk | None, run_id: TeamRunId, sup_gen: int, tasks: trio.Nursery) -> Refusal:
    while True:
        looked = trio.current_time()
        seen = await lasting(node, ListDue(team_run_id=run_id, sup_gen=sup_gen))
        if isinstance(seen, Refusal):
            return seen
        if desk is not None:
            desk.look_at(seen.seats)
        profiles = desk.means.profiles if desk else {}
        actions = decide(
            seen, profiles=profiles, busy=desk.busy if desk else (), failures=desk.failures if desk else {}
        )
        if seen.finishes and await _finish(node, run_id, sup_gen):
            continue
        faults = int(seen.finishes)
        for action in actions:
            if isinstance(action, Admit):
                faults += not await _admit(node, action.due, sup_gen)
            elif isinstance(action, Tell | Degrade):
                faults += desk is not None and not await _record(node, action, sup_gen)
            elif desk is not None and _begins(desk, action):
                desk.busy[action.busy] = action
                tasks.start_soon(_act, desk, action)
        patience = _AGAIN_MS if faults else look_again(seen.seats, _WAIT_MS)
        news = WaitForEvent(predicate=f"team-run:{run_id}.seq>{seen.seq}", timeout_ms=patience, limit=0)
        ended = await (_news(desk, news) if desk else lasting(node, news))
        if isinstance(ended, Refusal):
            return ended
        await trio.sleep_until(looked + APART)


async def _news(desk: Desk, news: WaitForEvent) -> Refusal | None:
    """Wait until the run changes or something that was busy ends; why the run is not ours any more."""
    refused: list[Refusal] = []
    async with trio.open_nursery() as either:

        async def wait() -> None:
            outcome = await lasting(desk.node, news)
            if isinstance(outcome, Refusal):
                refused.append(outcome)
            either.cancel_scope.cancel(reason="the run changed")

        either.start_soon(wait)
        await desk.stirred.wait()
        desk.stirred = trio.Event()
        either.cancel_scope.cancel(reason="something that was busy has ended")
    return refused[0] if refused else None


async def _act(desk: Desk, action: Action) -> None:
    began = trio.current_time()
    try:
        match action:
            case Open():
                await desk.open(action.seat)
            case Adopt():
                await desk.adopt(action)
            case Control():
                await control(desk, action)
            case Check():
                assert desk.means.checks is not None, "nothing else begins one"
                await check(desk.node, desk.means.checks, action.due, desk.sup_gen)
            case Watch():
                await watch(desk, action)
            case Admit() | Tell() | Degrade():
                raise AssertionError("recorded in the loop itself")
        # What ended at once and changed nothing would be begun again at once.
        await trio.sleep(max(0.0, _BREATH - (trio.current_time() - began)))
    finally:
        del desk.busy[action.busy]
        desk.stirred.set()
        if desk.leaving is not None and not _in_hand(desk):
            desk.leaving.set()


def _begins(desk: Desk, action: Action) -> bool:
    return desk.leaving is None and not (isinstance(action, Check) and desk.means.checks is None)


def _in_hand(desk: Desk) -> bool:
    """Whether something is being done to a terminal or process of which whoever comes next could not always read back
    how far it came.
    """
    return any(isinstance(action, Control) for action in desk.busy.values())


async def _leave(desk: Desk) -> None:
    """Begin nothing more, and see to its end what is in hand: controls, and what is being started. What takes longer is
    found as after a kill.
    """
    desk.leaving = trio.Event()
    with trio.move_on_after(_LEAVE_SECONDS):
        if _in_hand(desk):
            await desk.leaving.wait()
        await desk.starts.all_awaited()


async def _finish(node: Node, run_id: TeamRunId, sup_gen: int) -> bool:
    """Whether the end of a run went on: its sessions were asked to end, which comes back as controls, or it is over."""
    done = await node.ask(FinishTeamRun(team_run_id=run_id, sup_gen=sup_gen))
    if isinstance(done, Refusal):
        log.info("not finished run=%s: %s, %s", run_id, done.code, done.lifted_by)
    return not isinstance(done, Refusal)


async def _record(node: Node, action: Tell | Degrade, sup_gen: int) -> bool:
    """Whether it was decided, as with an admission."""
    of = action.session
    outcome: RuntimeEffect | AgentSession | Refusal
    if isinstance(action, Tell):
        told = DeliverEffect(session_id=of.id, session_gen=of.session_gen, sup_gen=sup_gen, wake=action.wake)
        outcome = await node.ask(told)
    else:
        tired = ReportSession(
            session_id=of.id,
            session_gen=of.session_gen,
            sup_gen=sup_gen,
            cause=SessionCause.DEGRADED,
            reason=f"{of.streak} cycles in a row came to nothing",
        )
        outcome = await node.ask(tired)
    if isinstance(outcome, Refusal):
        log.info("not told session=%s: %s, %s", of.id, outcome.code, outcome.lifted_by)
    return not isinstance(outcome, Refusal) or ROWS[outcome.code].retry is not Retry.SAME


async def _admit(node: Node, due: Due, sup_gen: int) -> bool:
    """Whether it was decided. A refusal means that the world moved since it was looked at; the next look sees why."""
    # A delivery that failed is made again; where that fails again and again, the Host says when.
    failed = min(due.failed, MOST_FAILURES - 1)
    key = f"admit {due.work_id} {due.work_version} {failed} {due.session_gen} {sup_gen}"
    admitted = await node.ask(AdmitWork(work_id=due.work_id, session_id=due.session_id, sup_gen=sup_gen), key=key)
    if isinstance(admitted, Refusal) and admitted.code is not Code.MEMBER_BUSY:
        log.info("not admitted work=%s: %s", due.work_id, admitted.code)
    return not isinstance(admitted, Refusal) or ROWS[admitted.code].retry is not Retry.SAME
