"""Samples of what is asked about a member that takes text: mail waits for it, it is steered, its program has hooks."""

from __future__ import annotations

from client.protocol.agent import UpdateAgent
from client.protocol.effect import DeliverEffect, SteerSession, Wake
from client.protocol.ids import AgentMemberRef
from client.protocol.session import HookSession
from providers import profiles
from providers.port import Typing
from providers.profiles import Hooks, Profile
from tests.support import effects, mail
from tests.support.run import Stage
from tests.support.works import Voice, ann, bob, supervisor

#: A profile of tests only, whose program takes text, also while it works, and has hooks.
ABLE = Profile(
    name="able",
    argv=["/bin/true"],
    typing=Typing(),
    steers=True,
    hooks=Hooks(begun=["Begin"], ended=["Stop"], waiting=["Ask"]),
)


async def _able(s: Stage) -> None:
    """That of Bob from now on."""
    profiles.PROFILES[ABLE.name] = ABLE
    await s.node.ok(UpdateAgent(agent_member_id=AgentMemberRef(s.bob.agent.id), expected_version=1, profile=ABLE.name))


async def waits(s: Stage) -> tuple[Stage, DeliverEffect]:
    """Mail waits for Bob, whose process lives."""
    own = await effects.again(s)
    await supervisor(own).ok(effects.settle(own, await effects.begun(own)))
    await mail.sent(own, own.ann, own.bob, response_required=True)
    of = own.bob.session
    ask = DeliverEffect(session_id=of.id, session_gen=of.session_gen, sup_gen=s.sup_gen, wake=Wake.DELIVERY)
    return own, ask


async def steer(s: Stage) -> tuple[Voice, SteerSession]:
    await _able(s)
    own, ask = await waits(s)
    made = await supervisor(own).ok(ask)
    await supervisor(own).ok(effects.settle(own, made))
    return ann(own), SteerSession(session_id=own.bob.session.id, text="rather blue")


async def hook(s: Stage) -> tuple[Voice, HookSession]:
    """Of the session that his program runs in from then on."""
    await _able(s)
    own = await effects.again(s)
    return bob(own), HookSession(event="Begin", sequence=1)
