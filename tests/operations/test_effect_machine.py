"""Effects at random: whatever a supervisor and a person ask, in whatever order and at any generation."""

from __future__ import annotations

import collections
import random
from typing import Any

import attrs

from client.protocol.effect import Certainty, CloseSession, EffectFinding, InterruptSession, RuntimeEffect
from client.protocol.effect import ResolveEffect as Resolve
from client.protocol.operation import Plane, Request
from client.protocol.refusals import Refusal
from client.protocol.session import AgentSession, SessionCause
from client.protocol.table import BY_REQUEST
from client.protocol.team_run import ReopenMemberRun, TakeTeamRun
from tests.support import effects, ledger
from tests.support.crash import dice
from tests.support.node import InProcessNode
from tests.support.run import Stage
from tests.support.supervised import open_, place_now, run_now, said


@attrs.define
class Chance:
    """Bob's sessions and what was begun for them; most of what is asked is possible, some is stale."""

    stage: Stage
    moments: random.Random
    begun: list[RuntimeEffect] = attrs.Factory(list)
    sessions: list[AgentSession] = attrs.Factory(list)

    async def request(self) -> tuple[Request[Any], bool]:
        """What is asked next, and whether by the supervisor."""
        dice, s = self.moments, self.stage
        stale = dice.random() < 0.1
        gen = max(1, s.sup_gen - stale)
        session = dice.choice(self.sessions[-2:])
        at = attrs.evolve(s, bob=attrs.evolve(s.bob, session=session))
        kind = dice.randrange(9 if self.begun else 3)
        place = await place_now(s.node, s.bob.place)
        if kind == 0:
            if place.coordination.value == "closed":
                return ReopenMemberRun(member_run_id=place.id, expected_version=place.version), False
            return open_(s.bob.place, gen, supersede=dice.random() < 0.5), True
        if kind <= 2:
            return effects.prepare(at, sup_gen=gen), True
        effect = dice.choice(self.begun[-3:])
        if kind <= 4:
            return effects.started(s, effect, sup_gen=gen, pid=dice.choice([70, 70, 71])), True
        if kind <= 6:
            certainty = dice.choice([Certainty.APPLIED, Certainty.APPLIED, Certainty.NOT_APPLIED, Certainty.UNKNOWN])
            return effects.settle(s, effect, certainty, sup_gen=gen), True
        if kind == 7:
            cause = dice.choice([SessionCause.EXITED, SessionCause.LOST, SessionCause.ADOPTED, SessionCause.CLOSED])
            return said(session, cause, gen), True
        return self._of_a_person(session, effect), False

    def _of_a_person(self, session: AgentSession, effect: RuntimeEffect) -> Request[Any]:
        asks: list[Request[Any]] = [
            CloseSession(session_id=session.id),
            InterruptSession(session_id=session.id),
            *(
                Resolve(effect_id=effect.id, expected_version=effect.version, finding=finding, reason="looked")
                for finding in EffectFinding
            ),
        ]
        return self.moments.choice(asks)

    async def happen(self) -> str:
        """One request; the operation that was done, or nothing. A refusal changes nothing."""
        request, own = await self.request()
        node, run = self.stage.node, self.stage.run.id
        before = node.rows()
        outcome = await node.ask(request, plane=Plane.SUPERVISOR if own else Plane.OPERATOR, actor=run if own else "")
        if isinstance(outcome, Refusal):
            assert node.rows() == before, (request, outcome)
            return ""
        if isinstance(outcome, RuntimeEffect):
            self.begun = [each for each in self.begun if each.id != outcome.id] + [outcome]
        if isinstance(outcome, AgentSession):
            self.sessions = [each for each in self.sessions if each.id != outcome.id] + [outcome]
        return BY_REQUEST[type(request)].name


async def test_whatever_is_asked_of_effects_what_must_hold_holds(node: InProcessNode) -> None:
    """And every row of them is the fold of its events."""
    s = await effects.cold(node)
    chance, done = Chance(s, dice()), collections.Counter[str]()
    chance.sessions.append(s.bob.session)
    for number in range(400):
        if number % 60 == 59:
            await node.ok(TakeTeamRun(team_run_id=s.run.id), plane=Plane.SUPERVISOR, actor=s.run.id)
            chance.stage = attrs.evolve(s, run=await run_now(node, s.run))
        done[await chance.happen()] += 1
        if number % 10 == 0:
            ledger.check(node.store.path)
    ledger.check(node.store.path)
    assert ledger.check_fold(node.store.path) > 20
    wanted = {"effect.prepare", "effect.started", "effect.settle", "session.open"}
    assert wanted <= set(done), done
