"""What a supervisor does next, from what it sees. Pure: no clock, no process, no daemon."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import attrs

from client.protocol.board import Due, DueCheck, DueList, Seat
from client.protocol.effect import EffectKind, EffectState, RuntimeEffect
from client.protocol.ids import MemberRunId
from client.protocol.session import AgentSession, Driver, Liveness, SessionState

#: Launches of one place that came to nothing in a row, before a person has to look.
MOST_FAILURES = 3


@attrs.frozen
class Admit:
    """Bind a Work to the session of who answers for it, and deliver it."""

    due: Due

    @property
    def busy(self) -> str:
        return f"admit {self.due.work_id}"


@attrs.frozen
class Open:
    """Give a place a session with a process."""

    seat: Seat

    @property
    def busy(self) -> str:
        return f"place {self.seat.member_run_id}"


@attrs.frozen
class Adopt:
    """A session has a process, or had one, that this supervisor does not follow yet: look which, and follow it."""

    seat: Seat
    session: AgentSession
    launch: RuntimeEffect

    @property
    def busy(self) -> str:
        return f"place {self.seat.member_run_id}"


@attrs.frozen
class Control:
    """Do what somebody asked for."""

    effect: RuntimeEffect
    launch: RuntimeEffect | None

    @property
    def busy(self) -> str:
        return f"control {self.effect.id}"


@attrs.frozen
class Check:
    """Run a named check on a submission in review."""

    due: DueCheck

    @property
    def busy(self) -> str:
        return f"check {self.due.work_id} {self.due.receipt_id} {self.due.line}"


Action = Admit | Open | Adopt | Control | Check


def decide(
    seen: DueList, *, profiles: Collection[str], busy: Collection[str], failures: Mapping[MemberRunId, int]
) -> list[Action]:
    """Everything to begin now. What is busy is left alone; controls come first."""
    launches = {seat.session.id: seat.launch for seat in seen.seats if seat.session}
    stopped = {effect.session_id for effect in seen.controls if effect.kind is EffectKind.STOP}
    found: list[Action] = [Control(effect, launches.get(effect.session_id)) for effect in seen.controls]
    for seat in seen.seats:
        if seat.session is not None and seat.session.id in stopped:
            continue
        if action := _of_seat(seat, profiles, failures.get(seat.member_run_id, 0)):
            found.append(action)
    found += [Admit(due) for due in seen.items]
    found += [Check(due) for due in seen.checks]
    return [action for action in found if action.busy not in busy]


def _of_seat(seat: Seat, profiles: Collection[str], failures: int) -> Action | None:
    session, launch = seat.session, seat.launch
    if session is not None and session.driver is Driver.USER_DRIVEN:
        return None
    if session is not None and launch is not None and _may_run(session, launch):
        return Adopt(seat, session, launch)
    wanted = session is None or session.state is SessionState.COLD
    if wanted and seat.takes_sessions and seat.profile in profiles and failures < MOST_FAILURES:
        return Open(seat)
    return None


def _may_run(session: AgentSession, launch: RuntimeEffect) -> bool:
    """Whether there may be a process: a launch is under way or unread, or its process was not seen to end."""
    if launch.state is not EffectState.SETTLED:
        return True
    ends = {SessionState.COLD, SessionState.RECOVERY_REQUIRED, SessionState.CLOSED}
    return session.state not in ends and session.process is not Liveness.STOPPED
