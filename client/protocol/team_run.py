"""TeamRun and MemberRun: one execution of a team, and each member's place in it. Records, requests and rows."""

from __future__ import annotations

import enum
from typing import Annotated

import attrs

from client.protocol.ids import (
    AgentMemberId,
    MemberRunId,
    MembershipId,
    RunGen,
    SupGen,
    TeamId,
    TeamRef,
    TeamRunId,
    UnixMs,
)
from client.protocol.operation import HOST_OR_OPERATOR, OPERATOR, READERS, SUPERVISOR, Effect, Operation, Request
from client.protocol.refusals import Code
from client.protocol.shape import ID, LABEL, LINE, PAGE, TEXT, VERSION, Bounds

#: Of a supervisor that runs in a process of its own, in milliseconds.
LEASE = Bounds(least=0, most=60_000)
#: Members of a run that may be in a cycle at once, where nobody says how many.
CYCLES = 4
#: How many that can be.
SOME_CYCLES = Bounds(least=1, most=1000)


class TeamRunState(enum.StrEnum):
    """A draining run takes no Work, no claim and no session; what is claimed goes on. Who has no Work gets no mail."""

    PLANNED = "planned"
    RUNNING = "running"
    DRAINING = "draining"
    COMPLETED = "completed"
    CANCELLED = "cancelled"


@attrs.frozen(kw_only=True)
class TeamRun:
    """A run that is ``completing`` was told to: its supervisor does it, once every Work is closed and its sessions have
    ended. At most ``cycles`` of its members are in a cycle at once; the others wait for one of them to end. What was
    said in a run that was ``purged_at`` some moment is not in the database any more. Why it needs somebody is no fact
    of its own: ``attention.list`` says it, with what lifts it.
    """

    id: TeamRunId
    version: int
    team_id: TeamId
    objective: str
    state: TeamRunState
    sup_gen: SupGen
    created_by: str
    created_at: UnixMs
    updated_at: UnixMs
    ended_at: UnixMs | None
    completing: bool = False
    cycles: int = CYCLES
    purged_at: UnixMs | None = None


class Coordination(enum.StrEnum):
    """A closed place can be opened again; a retired one is left for good."""

    ACTIVE = "active"
    CLOSED = "closed"
    RETIRED = "retired"


@attrs.frozen(kw_only=True)
class MemberRun:
    """``role`` and ``number`` together name the place: DESIGNER-2. A ``fresh`` one was opened the last time for a new
    conversation: what its sessions had before that is not gone on with.
    """

    id: MemberRunId
    version: int
    team_run_id: TeamRunId
    membership_id: MembershipId
    agent_member_id: AgentMemberId
    role: str
    number: int
    coordination: Coordination
    run_gen: RunGen
    created_at: UnixMs
    updated_at: UnixMs
    fresh: bool = False


@attrs.frozen(kw_only=True)
class TeamRunPage:
    items: list[TeamRun]
    next: str | None


@attrs.frozen(kw_only=True)
class Place:
    """A member run with the name people know its member by, and what its membership is."""

    name: str
    membership_role: str
    member_run: MemberRun


@attrs.frozen(kw_only=True)
class TeamRunShown:
    run: TeamRun
    members: list[Place]


@attrs.frozen(kw_only=True)
class CreateTeamRun(Request[TeamRun]):
    """Plan a run of a team; every active member of the team gets its place in it."""

    team_id: Annotated[TeamRef, "the team, by id or unique name", ID]
    objective: Annotated[str, "what the run is for", TEXT] = ""
    cycles: Annotated[int, "how many members may be in a cycle at once", SOME_CYCLES] = CYCLES


@attrs.frozen(kw_only=True)
class ListTeamRuns(Request[TeamRunPage]):
    """List runs, oldest first."""

    team_id: Annotated[TeamRef | None, "only of this team", ID] = None
    state: Annotated[TeamRunState | None, "only in this state"] = None
    limit: Annotated[int, "most rows", PAGE] = 100
    cursor: Annotated[str, "continue after an earlier page", Bounds(most=500)] = ""


@attrs.frozen(kw_only=True)
class ShowTeamRun(Request[TeamRunShown]):
    """Show one run and everybody's place in it."""

    team_run_id: Annotated[TeamRunId, "the run", ID]


@attrs.frozen(kw_only=True)
class StartTeamRun(Request[TeamRun]):
    """Start a planned run."""

    team_run_id: Annotated[TeamRunId, "the run", ID]
    expected_version: Annotated[int, "version last read", VERSION]


@attrs.frozen(kw_only=True)
class DrainTeamRun(Request[TeamRun]):
    """Take nothing new into a running run; what is claimed goes on."""

    team_run_id: Annotated[TeamRunId, "the run", ID]
    expected_version: Annotated[int, "version last read", VERSION]


@attrs.frozen(kw_only=True)
class ResumeTeamRun(Request[TeamRun]):
    """Let a draining run take new Works again."""

    team_run_id: Annotated[TeamRunId, "the run", ID]
    expected_version: Annotated[int, "version last read", VERSION]


@attrs.frozen(kw_only=True)
class CompleteTeamRun(Request[TeamRun]):
    """Complete a run; refused while one of its Works is not closed.

    Sessions that it drives are ended first: it drains until then, and is completed when all were proven ended.
    """

    team_run_id: Annotated[TeamRunId, "the run", ID]
    expected_version: Annotated[int, "version last read", VERSION]
    when_closed: Annotated[bool, "while a Work is not closed, wait for that instead of refusing"] = False


@attrs.frozen(kw_only=True)
class FinishTeamRun(Request[TeamRun]):
    """Go on with the end of a run that was told to complete: its sessions are asked to end, then it is completed."""

    team_run_id: Annotated[TeamRunId, "the run", ID]
    sup_gen: Annotated[int, "the supervisor generation that asks", VERSION]


@attrs.frozen(kw_only=True)
class CancelTeamRun(Request[TeamRun]):
    """Cancel a run; each Work that is not closed is closed as cancelled under the caller's name."""

    team_run_id: Annotated[TeamRunId, "the run", ID]
    expected_version: Annotated[int, "version last read", VERSION]
    reason: Annotated[str, "why, for the record", LINE]


@attrs.frozen(kw_only=True)
class PurgeTeamRun(Request[TeamRun]):
    """Remove what was said in a run that is over. Ids, versions, times, titles, digests and receipts stay.

    ``firm node purge`` exports it first.
    """

    team_run_id: Annotated[TeamRunId, "the run", ID]
    expected_version: Annotated[int, "version last read", VERSION]
    exported_seq: Annotated[int, "the last sequence number of its events that was exported", VERSION]


@attrs.frozen(kw_only=True)
class TakeTeamRun(Request[TeamRun]):
    """Become the supervisor of a run: the next supervisor generation begins, the former one is fenced."""

    team_run_id: Annotated[TeamRunId, "the run", ID]
    lease_ms: Annotated[int, "milliseconds for which nobody else may take it", LEASE] = 0


@attrs.frozen(kw_only=True)
class RenewTeamRun(Request[TeamRun]):
    """Keep a run that was taken under a lease: nobody else takes it before that is over; 0 lets go of it."""

    team_run_id: Annotated[TeamRunId, "the run", ID]
    sup_gen: Annotated[int, "the supervisor generation that asks", VERSION]
    lease_ms: Annotated[int, "milliseconds for which nobody else may take it", LEASE]


@attrs.frozen(kw_only=True)
class AddMemberRun(Request[MemberRun]):
    """Give a membership its place in a run."""

    team_run_id: Annotated[TeamRunId, "the run", ID]
    membership_id: Annotated[MembershipId, "the membership", ID]
    role: Annotated[str, "the role it has in this run; its agent's usual one when empty", LABEL] = ""


@attrs.frozen(kw_only=True)
class CloseMemberRun(Request[MemberRun]):
    """Close a place: no new Work and no mail for it until it is opened again."""

    member_run_id: Annotated[MemberRunId, "the place", ID]
    expected_version: Annotated[int, "version last read", VERSION]


@attrs.frozen(kw_only=True)
class ReopenMemberRun(Request[MemberRun]):
    """Open a closed place again, under its next run generation."""

    member_run_id: Annotated[MemberRunId, "the place", ID]
    expected_version: Annotated[int, "version last read", VERSION]
    fresh: Annotated[bool, "begin a new conversation instead of going on with the last one"] = False


@attrs.frozen(kw_only=True)
class RetireMemberRun(Request[MemberRun]):
    """Leave a place for good in this run."""

    member_run_id: Annotated[MemberRunId, "the place", ID]
    expected_version: Annotated[int, "version last read", VERSION]


_FIND = (Code.NOT_FOUND, Code.ROW_QUARANTINED)
_MOVE = (*_FIND, Code.INVALID_STATE_TRANSITION, Code.VERSION_CONFLICT)
_W = Effect.WRITE

OPERATIONS = (
    Operation(
        "member-run.add",
        AddMemberRun,
        planes=HOST_OR_OPERATOR,
        effect=_W,
        refuses=(*_FIND, Code.INVALID_STATE_TRANSITION, Code.MEMBER_RUN_EXISTS, Code.TEAM_RUN_NOT_OPEN),
    ),
    Operation(
        "member-run.close",
        CloseMemberRun,
        planes=HOST_OR_OPERATOR,
        effect=_W,
        refuses=(*_MOVE, Code.SESSION_LIVE),
    ),
    Operation(
        "member-run.reopen",
        ReopenMemberRun,
        planes=HOST_OR_OPERATOR,
        effect=_W,
        refuses=(*_MOVE, Code.TEAM_RUN_NOT_OPEN),
    ),
    Operation(
        "member-run.retire",
        RetireMemberRun,
        planes=HOST_OR_OPERATOR,
        effect=_W,
        refuses=(*_MOVE, Code.SESSION_LIVE, Code.WORK_BINDING_LIVE),
    ),
    Operation(
        "team-run.cancel",
        CancelTeamRun,
        planes=HOST_OR_OPERATOR,
        effect=_W,
        refuses=(*_MOVE, Code.SESSION_LIVE),
    ),
    Operation(
        "team-run.complete",
        CompleteTeamRun,
        planes=HOST_OR_OPERATOR,
        effect=_W,
        refuses=(*_MOVE, Code.WORK_NOT_CLOSED),
    ),
    Operation(
        "team-run.create",
        CreateTeamRun,
        planes=HOST_OR_OPERATOR,
        effect=_W,
        refuses=(*_FIND, Code.INVALID_STATE_TRANSITION, Code.NAME_AMBIGUOUS),
    ),
    Operation("team-run.drain", DrainTeamRun, planes=HOST_OR_OPERATOR, effect=_W, refuses=_MOVE),
    Operation(
        "team-run.finish",
        FinishTeamRun,
        planes=SUPERVISOR,
        effect=_W,
        refuses=(
            *_FIND,
            Code.INVALID_STATE_TRANSITION,
            Code.SUPERVISOR_GENERATION_FENCED,
            Code.TEAM_RUN_NOT_OPEN,
            Code.WORK_NOT_CLOSED,
        ),
    ),
    Operation(
        "team-run.list",
        ListTeamRuns,
        planes=READERS,
        effect=Effect.READ,
        refuses=(*_FIND, Code.CURSOR_INVALID, Code.NAME_AMBIGUOUS),
    ),
    Operation("team-run.purge", PurgeTeamRun, planes=OPERATOR, effect=_W, refuses=_MOVE),
    Operation(
        "team-run.renew",
        RenewTeamRun,
        planes=SUPERVISOR,
        effect=Effect.LIVE,
        refuses=(*_FIND, Code.SUPERVISOR_GENERATION_FENCED, Code.TEAM_RUN_NOT_OPEN),
    ),
    Operation("team-run.resume", ResumeTeamRun, planes=HOST_OR_OPERATOR, effect=_W, refuses=_MOVE),
    Operation("team-run.show", ShowTeamRun, planes=READERS, effect=Effect.READ, refuses=_FIND),
    Operation("team-run.start", StartTeamRun, planes=HOST_OR_OPERATOR, effect=_W, refuses=_MOVE),
    Operation(
        "team-run.take",
        TakeTeamRun,
        planes=SUPERVISOR,
        effect=_W,
        refuses=(*_FIND, Code.SUPERVISOR_LEASE_HELD, Code.TEAM_RUN_NOT_OPEN),
    ),
)
