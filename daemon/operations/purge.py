"""Handler for ``team-run.purge``: what was said in a run that is over is removed, which is itself an event."""

from __future__ import annotations

import datetime as dt

from client.protocol.refusals import Code, Refusal
from client.protocol.team_run import PurgeTeamRun, TeamRun
from daemon.call import Call
from daemon.kernel.team_run import purges
from daemon.kernel.version import moved
from daemon.operations import actor
from store import delegation as delegations
from store import events
from store import purge as store
from store.team_run import TEAM_RUNS
from store.tx import Tx


def purge(tx: Tx, call: Call, ask: PurgeTeamRun) -> TeamRun | Refusal:
    """A run that was purged is answered as it is: there is nothing more to remove."""
    run = actor.run(tx, call, ask.team_run_id)
    if isinstance(run, Refusal):
        return run
    about = f"team-run/{run.id}"
    if refusal := moved(about, current=run.version, expected=ask.expected_version):
        return refusal
    if run.purged_at is not None:
        return run
    if refusal := purges(run, delegations.proposed_by(tx, run.id)):
        return refusal
    if (last := events.last_of_run(tx, run.id)) > ask.exported_seq:
        lifted_by = f"event {last} of it is in no export; export it again: firm node purge --run {run.id}"
        return Refusal(code=Code.VERSION_CONFLICT, about=about, lifted_by=lifted_by, current_version=run.version)
    store.purge(tx, run.id, _words(call.now))
    return TEAM_RUNS.change(tx, run, kind="purged", actor=call.actor, at=call.now, purged_at=call.now)


def _words(at: int) -> str:
    """What stands where something was said, once that was removed at ``at``."""
    return f"[purged by the operator at {dt.datetime.fromtimestamp(at / 1000, dt.UTC):%Y-%m-%dT%H:%M:%SZ}]"
