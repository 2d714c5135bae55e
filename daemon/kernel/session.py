"""What may happen to a session."""

from __future__ import annotations

import re
from collections.abc import Mapping

from client.protocol.agent import AgentMember
from client.protocol.refusals import Code, Refusal
from client.protocol.session import AgentSession, Driver, Ending, Failure, Liveness, SessionCause, SessionState
from daemon.kernel.machine import Lifecycle

_S, _C = SessionState, SessionCause

SESSION = Lifecycle(
    "agent session",
    start=_S.COLD,
    moves={
        # That a process ended is said at once, how it ended when that was read.
        _S.COLD: {_C.READY: _S.IDLE, _C.EXITED: _S.COLD, _C.LOST: _S.RECOVERY_REQUIRED, _C.CLOSED: _S.CLOSED},
        _S.IDLE: {
            _C.ADOPTED: _S.IDLE,
            _C.CYCLE_STARTED: _S.ACTIVE,
            _C.EXITED: _S.COLD,
            _C.LOST: _S.RECOVERY_REQUIRED,
            _C.CLOSED: _S.CLOSED,
            _C.DEGRADED: _S.IDLE,
        },
        _S.ACTIVE: {
            _C.ADOPTED: _S.ACTIVE,
            _C.CYCLE_ENDED: _S.IDLE,
            _C.INTERRUPTED: _S.INTERRUPTED,
            _C.EXITED: _S.RECOVERY_REQUIRED,
            _C.LOST: _S.RECOVERY_REQUIRED,
        },
        _S.INTERRUPTED: {
            _C.REOPENED: _S.COLD,
            _C.ADOPTED: _S.IDLE,
            _C.LOST: _S.RECOVERY_REQUIRED,
            _C.CLOSED: _S.CLOSED,
        },
        _S.RECOVERY_REQUIRED: {_C.EXITED: _S.RECOVERY_REQUIRED, _C.RESOLVED: _S.COLD, _C.ADOPTED: _S.IDLE},
        _S.CLOSED: {},
    },
)

#: What each report says about the process; what it does not speak of stays as it was known.
PROCESS: Mapping[SessionCause, Liveness] = {
    _C.READY: Liveness.LIVE,
    _C.ADOPTED: Liveness.LIVE,
    _C.CYCLE_STARTED: Liveness.LIVE,
    _C.CYCLE_ENDED: Liveness.LIVE,
    _C.EXITED: Liveness.STOPPED,
    _C.LOST: Liveness.UNKNOWN,
}

#: Reports after which nobody knows what the process did with the Work that it held.
ORPHANING = frozenset({_C.EXITED, _C.LOST})


#: How a cycle ended with a report that is about something else, and how its provider failed it, where nobody read more.
ENDS: Mapping[SessionCause, tuple[Ending, Failure | None]] = {
    _C.EXITED: (Ending.PROVIDER_FAILED, Failure.RUNNER_ERROR),
    _C.LOST: (Ending.TRANSPORT_LOST, None),
    _C.INTERRUPTED: (Ending.INTERRUPTED_BY_HOST, None),
}


def streak_after(streak: int, ending: Ending) -> int:
    """Cycles in a row that came to nothing. One that nobody saw to its end says nothing about that."""
    counted = {Ending.EMPTY_OUTPUT: streak + 1, Ending.COMPLETED: 0}
    return counted.get(ending, streak)


def current(session: AgentSession, session_gen: int) -> Refusal | None:
    """Why a report or a call of another generation of this session changes nothing, or None."""
    if session.state is not SessionState.CLOSED and session.session_gen == session_gen:
        return None
    return Refusal(
        code=Code.AGENT_SESSION_GENERATION_FENCED,
        about=f"session/{session.id}",
        lifted_by=f"this session is {session.state.value} at session_gen={session.session_gen}; "
        f"a process of session_gen={session_gen} stops",
    )


def over(session: AgentSession) -> Refusal | None:
    """Why nobody speaks for a session that is not closed yet, or None: the process that proved it has ended. What that
    left behind is ended too, and says nothing more.
    """
    if session.process is not Liveness.STOPPED:
        return None
    lifted_by = "the process that proved this session has ended; its member goes on in the next one"
    return Refusal(code=Code.CAPABILITY_DENIED, about=f"session/{session.id}", lifted_by=lifted_by)


def exists(session: AgentSession) -> Refusal:
    """Why its member gets no other one."""
    more = "; or its supervisor opens the next one in its place" if session.driver is Driver.HOST_DRIVEN else ""
    return Refusal(
        code=Code.AGENT_SESSION_EXISTS, about=f"session/{session.id}", lifted_by=f"{_ended_by(session)}{more}"
    )


def session_live(session: AgentSession) -> Refusal:
    """Why nothing is done that would take its run, its place or its worktree away from under it."""
    return Refusal(code=Code.SESSION_LIVE, about=f"session/{session.id}", lifted_by=_ended_by(session))


def _ended_by(session: AgentSession) -> str:
    verb = "close" if session.driver is Driver.HOST_DRIVEN else "unbind"
    return f"end it first: firm session {verb} {session.id}"


def detached(former: AgentSession) -> Refusal | None:
    """Why no other session may go on with the conversation of this one yet, or None."""
    if not former.native_session or not former.pid or former.process is Liveness.STOPPED:
        return None
    lifted_by = f"its process may still be in it; end it, with a look at what is left: firm session close {former.id}"
    return Refusal(code=Code.NATIVE_SESSION_TAKEN, about=f"session/{former.id}", lifted_by=lifted_by)


def parts(former: AgentSession, agent: AgentMember, *, was_in: str, cwd: str) -> str:
    """Why the next session of a place does not go on with the conversation of the former one: what is not the same.

    ``was_in`` is the folder in which that was held. A folder stands for repository and branch: a worktree is of one
    repository and on the branch of its member, and what is checked out in a shared one changes below a living process
    too. An empty ``cwd`` is not known.
    """
    if former.profile != agent.profile:
        return f"its profile was {former.profile}"
    if former.ceiling is not agent.ceiling:
        return f"its ceiling was {former.ceiling.value}"
    return f"it was in {was_in}" if cwd and cwd != was_in else ""


_NATIVE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")


def misnamed(native_id: str) -> Refusal | None:
    """Why this is no id of a conversation, or None: it stands in the words of a program and in a path."""
    if not native_id or _NATIVE.fullmatch(native_id):
        return None
    lifted_by = "give the program's own id: letters, digits, '.', '_' and '-', the first a letter or a digit"
    return Refusal(code=Code.MALFORMED, about="native_session", lifted_by=lifted_by)
