"""Who this process is to the daemon, and which attempts are its own."""

from __future__ import annotations

import attrs

from client.git import Author
from client.protocol.attempt import Binding, Custody
from client.protocol.ids import MembershipId, SessionId, TeamRunId
from client.protocol.operation import MEMBERS, Plane, R, Request
from client.protocol.refusals import ROWS, Code, Refusal
from client.protocol.session import AgentSession, ListSessions, SessionState
from client.protocol.team_run import ShowTeamRun
from client.protocol.work import Phase
from client.protocol.work_asks import ListWorks, ShowWork, WorkShown
from client.worker.link import Gone, Link, told

#: An attempt of such custody is not over.
_LIVE = frozenset({Custody.CLAIMED, Custody.ORPHANED_UNVERIFIED})


@attrs.frozen(kw_only=True)
class Me:
    """The member that this session is in its run. ``hosts``: it is the Host of its team."""

    name: str
    agent_id: str
    membership_id: MembershipId
    run_id: TeamRunId
    session_id: SessionId
    hosts: bool = False

    @property
    def author(self) -> Author:
        # .invalid belongs to nobody, so that no mail of a forge ever goes there.
        return Author(self.name, f"{self.agent_id}@firm.invalid")

    def attempt(self, shown: WorkShown) -> Binding | None:
        """The live attempt that this session holds at a Work."""
        last = max(shown.bindings, key=lambda binding: binding.fence, default=None)
        if last is None or last.session_id != self.session_id or last.custody not in _LIVE:
            return None
        return last

    def may_go_on(self, shown: WorkShown, fence: int) -> bool:
        """Whether the program of that attempt is still wanted: also when it submitted its Work itself."""
        last = max(shown.bindings, key=lambda binding: binding.fence, default=None)
        if last is None or last.fence != fence or last.session_id != self.session_id:
            return False
        return last.custody in _LIVE or last.custody is Custody.COMPLETED


async def _must(link: Link, request: Request[R]) -> R:
    """Raises ``Gone``: without this answer a worker does not know what it is."""
    outcome = await link.ask(request)
    if isinstance(outcome, Refusal):
        raise Gone(told(outcome), ROWS[outcome.code].exit)
    return outcome


async def identify(link: Link) -> Me:
    """Ask the daemon who we are. Raises ``Gone``."""
    welcome = await link.welcome()
    if welcome.plane not in MEMBERS:
        raise Gone(f"this process is taken for {welcome.plane}; a worker runs in the session of a member", 1)
    agent_id = welcome.actor.removeprefix("agent/")
    own = await _session(link, agent_id)
    run_id = own.team_run_id
    for place in (await _must(link, ShowTeamRun(team_run_id=run_id))).members:
        if place.member_run.id == own.member_run_id:
            return Me(
                name=place.name,
                agent_id=agent_id,
                membership_id=place.member_run.membership_id,
                run_id=run_id,
                session_id=own.id,
                hosts=welcome.plane is Plane.HOST,
            )
    raise Gone(f"{agent_id} has no place in the run {run_id}", 1)


async def _session(link: Link, agent_id: str) -> AgentSession:
    """The one session of this member that is not closed. A member is shown those of its own run."""
    cursor: str | None = ""
    while cursor is not None:
        page = await _must(link, ListSessions(limit=500, cursor=cursor))
        for each in page.items:
            if each.agent_member_id == agent_id and each.state is not SessionState.CLOSED:
                return each
        cursor = page.next
    raise Gone(f"{agent_id} has no session", 1)


async def delivered(link: Link, me: Me) -> list[WorkShown] | Refusal:
    """Every Work with a live attempt of this session. More than one is delivered only after one was blocked."""
    only = await link.ask(ShowWork())
    if not isinstance(only, Refusal):
        return [only]
    if only.code is not Code.WORK_UNCLEAR:
        return only
    active = await _own(link, me, Phase.ACTIVE)
    if isinstance(active, Refusal) or not active:
        return active
    waiting = await _own(link, me, Phase.OPEN)
    return waiting if isinstance(waiting, Refusal) else [*active, *waiting]


async def _own(link: Link, me: Me, phase: Phase) -> list[WorkShown] | Refusal:
    found: list[WorkShown] = []
    cursor: str | None = ""
    while cursor is not None:
        asked = ListWorks(team_run_id=me.run_id, phase=phase, owner_id=me.membership_id, limit=500, cursor=cursor)
        page = await link.ask(asked)
        if isinstance(page, Refusal):
            return page
        for work in page.items:
            shown = await link.ask(ShowWork(work_id=work.id))
            if isinstance(shown, Refusal):
                return shown
            if me.attempt(shown) is not None:
                found.append(shown)
        cursor = page.next
    return found
