"""What may happen to a run and to a member's place in it."""

from __future__ import annotations

import enum
from collections.abc import Collection

from client.protocol.delegation import WorkDelegation
from client.protocol.ids import MembershipId, TeamRunId
from client.protocol.refusals import Code, Refusal
from client.protocol.team_run import Coordination, MemberRun, TeamRun, TeamRunState
from daemon.kernel.machine import Lifecycle


class RunCause(enum.StrEnum):
    START = "start"
    DRAIN = "drain"
    RESUME = "resume"
    COMPLETE = "complete"
    CANCEL = "cancel"


_S, _C = TeamRunState, RunCause

TEAM_RUN = Lifecycle(
    "team run",
    start=_S.PLANNED,
    moves={
        _S.PLANNED: {_C.START: _S.RUNNING, _C.CANCEL: _S.CANCELLED},
        _S.RUNNING: {_C.DRAIN: _S.DRAINING, _C.COMPLETE: _S.COMPLETED, _C.CANCEL: _S.CANCELLED},
        _S.DRAINING: {_C.RESUME: _S.RUNNING, _C.COMPLETE: _S.COMPLETED, _C.CANCEL: _S.CANCELLED},
        _S.COMPLETED: {},
        _S.CANCELLED: {},
    },
)


class PlaceCause(enum.StrEnum):
    CLOSE = "close"
    REOPEN = "reopen"
    RETIRE = "retire"


MEMBER_RUN = Lifecycle(
    "member run",
    start=Coordination.ACTIVE,
    moves={
        Coordination.ACTIVE: {PlaceCause.CLOSE: Coordination.CLOSED, PlaceCause.RETIRE: Coordination.RETIRED},
        Coordination.CLOSED: {PlaceCause.REOPEN: Coordination.ACTIVE, PlaceCause.RETIRE: Coordination.RETIRED},
        Coordination.RETIRED: {},
    },
)

#: What a run still takes: Works may be planned, claims need it running.
_TAKES_WORKS = {TeamRunState.PLANNED, TeamRunState.RUNNING}
_OVER = {TeamRunState.COMPLETED, TeamRunState.CANCELLED}


def takes_works(run: TeamRun) -> Refusal | None:
    """Why no Work can be added to this run now, or None."""
    return None if run.state in _TAKES_WORKS else _not_open(run, "planned or running")


def takes_claims(run: TeamRun) -> Refusal | None:
    """Why nothing can be claimed, assigned, admitted or started in this run now, or None."""
    return None if run.state is TeamRunState.RUNNING else _not_open(run, "running")


def tells(run: TeamRun, *, at_work: bool) -> bool:
    """Whether mail is told to a member now. A run that drains begins no turn with one that has no Work of it to see to
    its end; who has one may need the answer for it.
    """
    return run.state is TeamRunState.RUNNING or at_work


def goes_on(run: TeamRun) -> Refusal | None:
    """Why a run that has ended takes no session and no member, or None."""
    return None if run.state not in _OVER else _not_open(run, "not ended")


def told(run: TeamRun) -> Refusal | None:
    """Why a supervisor does not end this run, or None."""
    if run.completing:
        return None
    lifted_by = "nobody told it to complete; its Host or the operator does"
    return Refusal(code=Code.INVALID_STATE_TRANSITION, about=f"team-run/{run.id}", lifted_by=lifted_by)


def finishes(run: TeamRun, *, unclosed: bool, driven: Collection[MemberRun]) -> bool:
    """Whether a supervisor goes on with the end of this run now: it was told to, and its Works are closed.

    ``driven`` are the places whose sessions it drives. One that is closed was asked to end: that is under way, or it
    failed and is a person's to look at.
    """
    asked = all(place.coordination is not Coordination.ACTIVE for place in driven)
    return run.completing and not unclosed and not (driven and asked)


def purges(run: TeamRun, proposed: Collection[WorkDelegation]) -> Refusal | None:
    """Why what was said in this run is not removed now, or None. ``proposed`` are its delegations that somebody may
    still accept, for which their words are needed.
    """
    about = f"team-run/{run.id}"
    if run.state not in _OVER:
        verb = "cancel" if run.state is TeamRunState.PLANNED else "complete"
        lifted_by = f"it is {run.state.value}; end it first: firm team-run {verb} {run.id}"
        lifted_by += f" --expected-version {run.version}" + (" --reason WHY" if verb == "cancel" else "")
        return Refusal(code=Code.INVALID_STATE_TRANSITION, about=about, lifted_by=lifted_by)
    for each in proposed:
        lifted_by = f"its delegation is still proposed; its Host ends that: firm delegation withdraw {each.id}"
        lifted_by += f" --expected-version {each.version}"
        return Refusal(code=Code.INVALID_STATE_TRANSITION, about=about, lifted_by=lifted_by)
    return None


def _not_open(run: TeamRun, wanted: str) -> Refusal:
    verb = {TeamRunState.PLANNED: "start", TeamRunState.DRAINING: "resume"}.get(run.state)
    lifted_by = (
        f"it is {run.state.value}, not {wanted}: firm team-run {verb} {run.id} --expected-version {run.version}"
        if verb
        else f"it is {run.state.value}; use another run of the team, or create one"
    )
    return Refusal(code=Code.TEAM_RUN_NOT_OPEN, about=f"team-run/{run.id}", lifted_by=lifted_by)


def no_place(run_id: TeamRunId, membership_id: MembershipId) -> Refusal:
    """Why a member without a place in a run does nothing there."""
    command = f"firm member-run add --team-run-id {run_id} --membership-id {membership_id}"
    lifted_by = f"give the member a place in the run: {command}"
    return Refusal(code=Code.MEMBER_RUN_CLOSED, about=f"membership/{membership_id}", lifted_by=lifted_by)


def present(place: MemberRun) -> Refusal | None:
    """Why a member run takes nothing up now, or None."""
    if place.coordination is Coordination.ACTIVE:
        return None
    lifted_by = (
        f"open its place again: firm member-run reopen {place.id} --expected-version {place.version}"
        if place.coordination is Coordination.CLOSED
        else "choose another member; a retired place stays retired"
    )
    return Refusal(code=Code.MEMBER_RUN_CLOSED, about=f"member-run/{place.id}", lifted_by=lifted_by)


def fenced(run: TeamRun, sup_gen: int) -> Refusal | None:
    """Why a supervisor of another generation changes nothing, or None."""
    if run.sup_gen == sup_gen:
        return None
    return Refusal(
        code=Code.SUPERVISOR_GENERATION_FENCED,
        about=f"team-run/{run.id}",
        lifted_by=f"sup_gen={run.sup_gen} holds this run; a supervisor of sup_gen={sup_gen} stops",
    )


def leased(run: TeamRun) -> Refusal:
    """Why nobody takes a run whose supervisor may still act."""
    return Refusal(
        code=Code.SUPERVISOR_LEASE_HELD,
        about=f"team-run/{run.id}",
        lifted_by=f"sup_gen={run.sup_gen} holds this run; ask again when it has let go of it or its lease is over",
    )
