"""A run a test begins with: a Host, two members, their sessions; Works at every stage of their way.

Everything is made by the same requests that anybody makes it with; the supervisor's are asked on its plane.
"""

from __future__ import annotations

import attrs

from client.protocol.agent import AgentMember
from client.protocol.attempt import AdmitWork, Binding
from client.protocol.ids import ReceiptId, TeamRef, TeamRunId
from client.protocol.membership import TeamMembership
from client.protocol.operation import Plane
from client.protocol.session import AgentSession, OpenSession, ReportSession, SessionCause
from client.protocol.team import Team
from client.protocol.team_run import CreateTeamRun, MemberRun, ShowTeamRun, StartTeamRun, TakeTeamRun, TeamRun
from client.protocol.work import ClaimMode, Work
from client.protocol.work_asks import AssignWork, CreateWork, ShowWork, StartWork, SubmitWork, WorkShown
from tests.support import scene
from tests.support.node import InProcessNode


@attrs.frozen
class Member:
    """Somebody in a run: the person, its part in the team, its place in the run, its session."""

    agent: AgentMember
    membership: TeamMembership
    place: MemberRun
    session: AgentSession


@attrs.frozen
class Stage:
    """A running run with Ann as Host, Bob and Cid as members; everybody has an idle session."""

    node: InProcessNode
    team: Team
    run: TeamRun
    ann: Member
    bob: Member
    cid: Member

    @property
    def sup_gen(self) -> int:
        return self.run.sup_gen

    async def work(self, title: str = "build it", **more: object) -> Work:
        """An open Work that nobody answers for, made by the operator."""
        fields: dict[str, object] = {"claim_mode": ClaimMode.TEAM_CLAIM, "completion_criteria": "it works", **more}
        return await self.node.ok(CreateWork(team_run_id=TeamRunId(self.run.id), title=title, **fields))  # type: ignore[arg-type]

    async def owned(self, by: Member, title: str = "build it", **more: object) -> Work:
        """An open Work that ``by`` answers for."""
        made = await self.work(title, **more)
        ask = AssignWork(work_id=made.id, expected_version=made.version, membership_id=by.membership.id)
        return await self.node.ok(ask, plane=Plane.HOST, actor=self.ann.session)

    async def admit(self, work: Work, by: Member) -> Binding:
        """One attempt: binding and delivery to ``by``'s session."""
        ask = AdmitWork(work_id=work.id, session_id=by.session.id, sup_gen=self.sup_gen)
        return await self.node.ok(ask, plane=Plane.SUPERVISOR, actor=self.run.id)

    async def started(self, by: Member, title: str = "build it", **more: object) -> Work:
        """An active Work with a live attempt of ``by``."""
        work = await self.owned(by, title, **more)
        await self.admit(work, by)
        return await self.start(work, by)

    async def start(self, work: Work, by: Member) -> Work:
        ask = StartWork(work_id=work.id, expected_version=work.version)
        return await self.node.ok(ask, plane=_plane(self, by), actor=by.session)

    async def submitted(self, by: Member, title: str = "build it", **more: object) -> Work:
        """A Work in review, submitted as a report."""
        work = await self.started(by, title, **more)
        return await self.submit(work, by)

    async def submit(self, work: Work, by: Member) -> Work:
        ask = SubmitWork(work_id=work.id, expected_version=work.version, result_summary="done", report_only=True)
        return await self.node.ok(ask, plane=_plane(self, by), actor=by.session)

    async def shown(self, work: Work) -> WorkShown:
        return await self.node.ok(ShowWork(work_id=work.id))

    async def receipt(self, work: Work) -> ReceiptId:
        """The last submission of a Work."""
        return (await self.shown(work)).receipts[-1].id


def _plane(stage: Stage, by: Member) -> Plane:
    return Plane.HOST if by.agent.id == stage.ann.agent.id else Plane.MEMBER


async def stage(node: InProcessNode) -> Stage:
    """Ann's team ``crew`` in a running run, held by a supervisor."""
    ann, bob, cid = [await scene.agent(node, name) for name in ("ann", "bob", "cid")]
    team = await scene.team(node, ann)
    parts = {ann.id: await scene.host(node, team)}
    for each in (bob, cid):
        parts[each.id] = await scene.joined(node, team, each)
    return await _begun(node, team, [(each, parts[each.id]) for each in (ann, bob, cid)])


async def again(s: Stage) -> Stage:
    """The same people in the next run of their team."""
    return await _begun(s.node, s.team, [(each.agent, each.membership) for each in (s.ann, s.bob, s.cid)])


async def _begun(node: InProcessNode, team: Team, people: list[tuple[AgentMember, TeamMembership]]) -> Stage:
    run = await node.ok(CreateTeamRun(team_id=TeamRef(team.id)))
    run = await node.ok(StartTeamRun(team_run_id=run.id, expected_version=run.version))
    run = await node.ok(TakeTeamRun(team_run_id=run.id), plane=Plane.SUPERVISOR, actor=run.id)
    places = {
        p.member_run.agent_member_id: p.member_run for p in (await node.ok(ShowTeamRun(team_run_id=run.id))).members
    }
    members = [Member(who, part, places[who.id], await session(node, run, places[who.id])) for who, part in people]
    return Stage(node, team, run, *members)


async def session(node: InProcessNode, run: TeamRun, place: MemberRun) -> AgentSession:
    """A session of that place, opened by the supervisor and idle."""
    opened = await node.ok(
        OpenSession(member_run_id=place.id, sup_gen=run.sup_gen), plane=Plane.SUPERVISOR, actor=run.id
    )
    ready = ReportSession(
        session_id=opened.id, session_gen=opened.session_gen, sup_gen=run.sup_gen, cause=SessionCause.READY
    )
    return await node.ok(ready, plane=Plane.SUPERVISOR, actor=run.id)
