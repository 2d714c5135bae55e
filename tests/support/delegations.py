"""Two teams of which one asks the other for something."""

from __future__ import annotations

import attrs

from client.protocol.board import Attention, ListAttention
from client.protocol.delegation import (
    AcceptDelegation,
    DeclineDelegation,
    ProposeDelegation,
    WithdrawDelegation,
    WorkDelegation,
)
from client.protocol.ids import TeamRef, TeamRunId
from client.protocol.work import Work
from client.protocol.work_asks import ShowWork
from tests.support.mail import ok
from tests.support.node import InProcessNode
from tests.support.run import Stage, stage


@attrs.frozen
class Two:
    """Two teams: ``our`` asks ``their`` for something that ``work`` needs."""

    our: Stage
    their: Stage
    work: Work

    async def proposed(self, title: str = "a parser") -> WorkDelegation:
        return await ok(self.our, self.our.ann, propose(self.work, self.their.team.id, title=title))

    async def accepted(self) -> tuple[WorkDelegation, Work]:
        """The delegation, and the Work that they made for it."""
        asked = await self.proposed()
        done = await ok(self.their, self.their.ann, accept(asked, self.their))
        assert done.target_work_id is not None
        return done, (await self.their.node.ok(ShowWork(work_id=done.target_work_id))).work

    async def told(self) -> list[Attention]:
        return await told(self.our)


async def two(node: InProcessNode) -> Two:
    our, their = await stage(node), await stage(node)
    return Two(our, their, await our.owned(our.bob))


async def told(s: Stage) -> list[Attention]:
    return (await ok(s, s.ann, ListAttention())).items


def propose(work: Work, team: str, **more: str) -> ProposeDelegation:
    fields = {"title": "a parser", "completion_criteria": "it reads\n\n it writes ", "context": "why", **more}
    return ProposeDelegation(work_id=work.id, target_team_id=TeamRef(team), **fields)


def accept(asked: WorkDelegation, s: Stage, run: str = "") -> AcceptDelegation:
    return AcceptDelegation(
        delegation_id=asked.id, expected_version=asked.version, team_run_id=TeamRunId(run or s.run.id)
    )


def decline(asked: WorkDelegation) -> DeclineDelegation:
    return DeclineDelegation(delegation_id=asked.id, expected_version=asked.version, reason="no time")


def withdraw(asked: WorkDelegation) -> WithdrawDelegation:
    return WithdrawDelegation(delegation_id=asked.id, expected_version=asked.version)
