"""Whether a program can go on with its conversation: what it kept of it is there, where it will look for it."""

from __future__ import annotations

import shlex
import stat
from pathlib import Path

import trio

from client.protocol.refusals import Code, Refusal
from client.protocol.session import AgentSession


async def found(path: Path | None) -> bool:
    """Whether there is anything to go on from. An empty file is a blank conversation under an old id."""
    if path is None:
        return False
    return await trio.to_thread.run_sync(_written, path, abandon_on_cancel=True)


def _written(path: Path) -> bool:
    try:
        seen = path.stat()
    except OSError:
        return False
    return stat.S_ISREG(seen.st_mode) and seen.st_size > 0


def missing(session: AgentSession, name: str, path: Path | None) -> Refusal:
    """Why a member is not launched whose conversation is not there."""
    where = f"there is nothing at {path}; put it back" if path else f"profile {session.profile} keeps none any more"
    member = shlex.quote(name)
    lifted_by = (
        f"it should go on with native session {session.native_session}, and {where}, or begin a new conversation: "
        f"firm close {member}, and firm reopen {member} --fresh"
    )
    return Refusal(code=Code.NATIVE_SESSION_MISSING, about=f"session/{session.id}", lifted_by=lifted_by)
