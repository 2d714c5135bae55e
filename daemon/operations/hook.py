"""Handler for ``session.hook``: what the caller's own program says of its turn. It says nothing of its Works."""

from __future__ import annotations

from client.protocol.refusals import Code, Refusal
from client.protocol.session import AgentSession, HookSession
from daemon.call import Call
from daemon.kernel.turn import heard
from daemon.operations import actor
from providers import profiles
from store.session import SESSIONS
from store.tx import Tx


def hook(tx: Tx, call: Call, ask: HookSession) -> AgentSession | Refusal:
    caller = actor.actor(tx, call)
    assert caller is not None, "its plane is that of members"
    profile = caller.session.profile  # of the program that runs; its member may have been given another since
    meaning = profiles.meaning(profile, ask.event)
    if meaning is None:
        lifted_by = f"name it under [hooks] in the profile {profile!r}, or run nothing for it"
        return Refusal(code=Code.HOOK_UNKNOWN, about="event", lifted_by=lifted_by)
    changes = heard(caller.session, meaning, ask.turn, ask.sequence, call.now)
    if not changes:
        return caller.session
    kind = f"hook: {meaning.value}"
    return SESSIONS.change(tx, caller.session, kind=kind, actor=call.actor, at=call.now, **changes)
