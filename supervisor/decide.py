"""What a supervisor does next, from what it sees. Pure: no clock, no process, no daemon."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import attrs

from client.protocol.board import Due, DueCheck, DueList, Seat
from client.protocol.effect import EffectKind, EffectState, RuntimeEffect, Wake
from client.protocol.ids import MemberRunId, SessionId
from client.protocol.session import AgentSession, Driver, Liveness, SessionState
from providers.port import Typing
from providers.profiles import Profile
from supervisor.wake import Rest, wake

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
class _OfPlace:
    """What is one at a time for a place."""

    seat: Seat

    @property
    def busy(self) -> str:
        return f"place {self.seat.member_run_id}"


@attrs.frozen
class Open(_OfPlace):
    """Give a place a session with a process."""


@attrs.frozen
class Adopt(_OfPlace):
    """A session has a process, or had one, that this supervisor does not follow yet: look which, and follow it."""

    session: AgentSession
    launch: RuntimeEffect


@attrs.frozen
class Control:
    """Do what somebody asked for. What is typed into a terminal, as its program likes it, is one at a time."""

    effect: RuntimeEffect
    launch: RuntimeEffect | None
    typing: Typing | None = None

    @property
    def busy(self) -> str:
        if self.effect.kind is EffectKind.DELIVER:
            return _terminal(self.effect.session_id)
        return f"control {self.effect.id}"


@attrs.frozen
class _AtTerminal:
    """What is one at a time for a terminal, with what is typed there."""

    session: AgentSession

    @property
    def busy(self) -> str:
        return _terminal(self.session.id)


@attrs.frozen
class Tell(_AtTerminal):
    """Record that a member is told what waits for it; that record is then a control."""

    wake: Wake


@attrs.frozen
class Degrade(_AtTerminal):
    """Record that a member is told nothing more for now."""


@attrs.frozen
class Watch:
    """See a cycle that is under way to its end: with ``hooks``, to the first end of a turn that they tell of after
    ``after_turn``.
    """

    session: AgentSession
    launch: RuntimeEffect
    typing: Typing
    hooks: bool = False
    after_turn: int = 0

    @property
    def busy(self) -> str:
        return f"cycle {self.session.id}"


@attrs.frozen
class Check:
    """Run a named check on a submission in review."""

    due: DueCheck

    @property
    def busy(self) -> str:
        return f"check {self.due.work_id} {self.due.receipt_id} {self.due.line}"


def _terminal(session_id: SessionId) -> str:
    return f"terminal {session_id}"


Action = Admit | Open | Adopt | Control | Tell | Degrade | Watch | Check


def decide(
    seen: DueList, *, profiles: Mapping[str, Profile], busy: Collection[str], failures: Mapping[MemberRunId, int]
) -> list[Action]:
    """Everything to begin now. What is busy is left alone; controls come first. Where more members have something to be
    told than cycles may be under way, whoever was told longest ago comes first.
    """
    occupied = {seat.session.id: seat for seat in seen.seats if seat.session}
    stopped = {effect.session_id for effect in seen.controls if effect.kind is EffectKind.STOP}
    found: list[Action] = [_control(effect, occupied.get(effect.session_id), profiles) for effect in seen.controls]
    for seat in seen.seats:
        if seat.session is not None and seat.session.id in stopped:
            continue
        if action := _of_seat(seat, profiles, failures.get(seat.member_run_id, 0)):
            found.append(action)
        if seat.session is not None and (action := _at_terminal(seat, seat.session, profiles)):
            found.append(action)
    unavailable = {seat.session.id for seat in seen.seats if seat.session and seat.unavailable_ms}
    found += [Admit(due) for due in seen.items if due.session_id not in unavailable]
    found += [Check(due) for due in seen.checks]
    found = [action for action in found if action.busy not in busy]
    told = {seat.session.id: seat.waking.last for seat in seen.seats if seat.session and seat.waking}
    tells = sorted((each for each in found if isinstance(each, Tell)), key=lambda each: told[each.session.id])
    over = {each.busy for each in tells[max(0, seen.cycles - under_way(seen)) :]}
    return [action for action in found if not isinstance(action, Tell) or action.busy not in over]


def under_way(seen: DueList) -> int:
    """Cycles of a run that go on, or are about to begin."""
    active = {seat.session.id for seat in seen.seats if seat.session and seat.session.state is SessionState.ACTIVE}
    return len(active | {effect.session_id for effect in seen.controls if effect.kind is EffectKind.DELIVER})


def _control(effect: RuntimeEffect, seat: Seat | None, profiles: Mapping[str, Profile]) -> Control:
    if seat is None or seat.session is None:
        return Control(effect, None)
    return Control(effect, seat.launch, _typing(seat.session, profiles))


def _typing(session: AgentSession, profiles: Mapping[str, Profile]) -> Typing | None:
    """As the program likes it that runs: another profile of its member is for the next session."""
    return profiles[session.profile].typing if session.profile in profiles else None


def _at_terminal(seat: Seat, session: AgentSession, profiles: Mapping[str, Profile]) -> Tell | Degrade | Watch | None:
    """What begins or ends a cycle of a member that takes text. While nothing can be told, ``waking`` is not there."""
    typing = _typing(session, profiles)
    if typing is None:
        return None
    if session.state is SessionState.ACTIVE and seat.launch is not None and session.driver is Driver.HOST_DRIVEN:
        hooks, cycle = profiles[session.profile].hooks is not None, seat.cycle
        after_turn = cycle.after_turn if cycle is not None else session.turn_ended
        return Watch(session, seat.launch, typing, hooks, after_turn)
    if seat.waking is None or seat.unavailable_ms:
        return None
    why = wake(session, seat.waking)
    if isinstance(why, Wake):
        return Tell(session, why)
    return Degrade(session) if why is Rest.DEGRADE else None


def _of_seat(seat: Seat, profiles: Mapping[str, Profile], failures: int) -> Action | None:
    session, launch = seat.session, seat.launch
    if session is not None and session.driver is Driver.USER_DRIVEN:
        return None
    if session is not None and launch is not None and _may_run(session, launch):
        return Adopt(seat, session, launch)
    if (
        (session is None or _over(session))
        and not seat.unavailable_ms
        and seat.takes_sessions
        and seat.profile in profiles
        and failures < MOST_FAILURES
    ):
        return Open(seat)
    return None


def _over(session: AgentSession) -> bool:
    """Whether a session makes way for the next one of its place: it has no process, or that was seen to end, also in
    the middle of a cycle. One that was lost may have a process, and waits for a person.
    """
    ended = session.state is SessionState.RECOVERY_REQUIRED and session.process is Liveness.STOPPED
    return ended or session.state is SessionState.COLD


def _may_run(session: AgentSession, launch: RuntimeEffect) -> bool:
    """Whether there may be a process: a launch is under way or unread, or its process was not seen to end."""
    if launch.state is not EffectState.SETTLED:
        return True
    ends = {SessionState.COLD, SessionState.RECOVERY_REQUIRED, SessionState.CLOSED}
    return session.state not in ends and session.process is not Liveness.STOPPED
