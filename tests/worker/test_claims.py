"""What a worker that has nothing to do asks for: a page of what is for it, and that not more often than makes sense."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import attrs
import pytest
import trio
from trio.testing import MockClock

from client.protocol.event import Event, Waited, WaitForEvent
from client.protocol.ids import MembershipId, SessionId, TeamRunId, UnixMs
from client.protocol.operation import Plane, R, Request
from client.protocol.refusals import Code, Refusal
from client.protocol.work import WorkPage
from client.protocol.work_asks import ClaimWork, ListWorks
from client.worker.claims import claim_one
from client.worker.host import Host
from client.worker.identity import Me
from client.worker.link import Link
from client.worker.news import APART
from client.worker.serve import Worker
from client.worker.settings import Settings
from daemon.inside import Inside
from tests.support.node import InProcessNode
from tests.support.run import Member, Stage, stage


def me(who: Member) -> Me:
    return Me(
        name=who.agent.name,
        agent_id=who.agent.id,
        membership_id=who.membership.id,
        run_id=who.place.team_run_id,
        session_id=who.session.id,
    )


@attrs.define(eq=False)
class Inward(Link):
    """A link to a node in this process, which keeps what was asked and how many Works came with the answers."""

    node: Inside | None = None
    asked: list[str] = attrs.Factory(list)
    works: int = 0

    async def ask(self, request: Request[R], *, key: str = "") -> R | Refusal:
        assert self.node is not None
        self.asked.append(type(request).__name__)
        answer = await self.node.ask(request, key=key)
        if isinstance(answer, WorkPage):
            self.works += len(answer.items)
        return answer


def link_of(s: Stage, who: Member) -> Inward:
    return Inward("", "", print, node=Inside(s.node.dispatcher, lambda: s.node.call(Plane.MEMBER, who.session)))


async def test_an_idle_worker_reads_no_work_of_others(node: InProcessNode) -> None:
    s = await stage(node)
    for n in range(30):
        await s.owned(s.cid, f"owned {n}")
        await s.work(f"for another {n}", eligible_member_ids=[s.cid.agent.id])
    link = link_of(s, s.bob)
    assert await claim_one(link, me(s.bob)) is None
    assert (link.works, link.asked) == (0, ["ListWorks", "ListWorks"])


async def test_it_claims_the_first_that_is_for_it_and_only_one(node: InProcessNode) -> None:
    s = await stage(node)
    blocker = await s.owned(s.cid, "first of all")
    await s.work("waits", prerequisite_work_ids=[blocker.id])
    works = [await s.work(f"part {n}") for n in range(2)]
    link = link_of(s, s.bob)
    for _ in range(2):
        assert await claim_one(link, me(s.bob)) is None
    mine = [(await s.shown(work)).work.owner_id for work in works]
    assert mine == [s.bob.membership.id, None]
    assert link.asked == ["ListWorks", "ListWorks", "ClaimWork", "ListWorks"]


async def test_one_that_another_was_given_meanwhile_is_passed_over(node: InProcessNode) -> None:
    s = await stage(node)
    first, second = [await s.work(f"part {n}") for n in range(2)]

    @attrs.define(eq=False)
    class Late(Inward):
        async def ask(self, request: Request[R], *, key: str = "") -> R | Refusal:
            answer = await super().ask(request, key=key)
            if isinstance(answer, WorkPage) and answer.items:
                claim = ClaimWork(work_id=first.id, expected_version=first.version)
                await s.node.ok(claim, plane=Plane.MEMBER, actor=s.cid.session)
            return answer

    inside = Inside(s.node.dispatcher, lambda: s.node.call(Plane.MEMBER, s.bob.session))
    assert await claim_one(Late("", "", print, node=inside), me(s.bob)) is None
    owners = [(await s.shown(work)).work.owner_id for work in (first, second)]
    assert owners == [s.cid.membership.id, s.bob.membership.id]


@attrs.define(eq=False)
class Restless(Link):
    """A run in which a Work changes ``every`` seconds; none of them is for this worker."""

    every: float = 0.0
    looks: list[float] = attrs.Factory(list)

    async def ask_at(self, request: Request[R], *, key: str = "") -> tuple[R | Refusal, int]:
        self.looks.append(trio.current_time())
        return await self.ask(request, key=key), 1

    async def ask(self, request: Request[R], *, key: str = "") -> R | Refusal:
        assert not key
        await trio.lowlevel.checkpoint()
        if isinstance(request, WaitForEvent):
            with trio.move_on_after(self.every):
                await trio.sleep_forever()
        event = Event(seq=2, at=UnixMs(0), stream="work/w", version=1, kind="k", actor="a", body={})
        answers: dict[type, Any] = {
            WaitForEvent: Waited(timed_out=False, events=[event], cursor=""),
            ListWorks: WorkPage(items=[], next=None),
        }
        answer: Any = answers.get(type(request), Refusal(code=Code.WORK_UNCLEAR, about="", lifted_by=""))
        return answer  # type: ignore[no-any-return]


class Seeing(Host):
    """A Host to whom everything can be shown."""

    async def _look(self) -> bool:
        await trio.lowlevel.checkpoint()
        return True


ME = Me(
    name="bob",
    agent_id="a",
    membership_id=MembershipId("m"),
    run_id=TeamRunId("r"),
    session_id=SessionId("own"),
)


@pytest.mark.parametrize(("every", "apart"), [(0.001, APART), (APART / 2, APART), (5.0, 5.0)])
@pytest.mark.parametrize("cls", [Worker, Seeing])
async def test_what_happens_at_once_is_looked_at_once_and_what_happens_at_rest_immediately(
    autojump_clock: MockClock, *, every: float, apart: float, cls: type[Worker | Host]
) -> None:
    assert autojump_clock.autojump_threshold == 0
    link = Restless("", "", print, every=every)
    settings = Settings(socket="", command="", folder=Path("/"), logs=Path("/"), environment={}, capability="")
    with trio.move_on_after(4.5 * apart):
        await cls(link, ME, settings, print).serve()
    assert link.looks == pytest.approx([n * apart for n in range(5)])
