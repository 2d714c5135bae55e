"""Who may accept what, as one table: every owner, every caller on every plane, in every situation of a Host.

Whether somebody may is asked with a version that never was: authority comes before state, so whoever may is told of
the version, and whoever may not learns nothing. Nothing changes, so one node answers for all of them.
"""

from __future__ import annotations

import itertools
from collections.abc import Awaitable, Callable, Mapping

import attrs
import pytest

from client.protocol.ids import AgentMemberRef, ReceiptId, TeamRef
from client.protocol.membership import GuestRole
from client.protocol.operation import Plane
from client.protocol.refusals import Code, Refusal
from client.protocol.session import AgentSession
from client.protocol.team import HandOverTeam
from client.protocol.team_run import AddMemberRun, CreateTeamRun, ShowTeamRun, StartTeamRun, TakeTeamRun
from client.protocol.work import Resolution, Work
from client.protocol.work_asks import AcceptWork, RequestChanges
from tests.support import refusals, scene, works
from tests.support.node import InProcessNode
from tests.support.run import Member, Stage, session, stage

#: The planes of a session; which one it holds was decided when it connected, and is not asked again.
PLANES = (Plane.HOST, Plane.MEMBER, Plane.OBSERVER)
#: Those on which acceptance exists at all.
OF_A_DECISION = {Plane.HOST, Plane.MEMBER, Plane.OPERATOR}


async def _as_it_is(_: Stage) -> None:  # noqa: ASYNC124 — like the others
    """Ann is the Host, Bob and Cid take part."""


async def _a_person(s: Stage) -> None:  # noqa: ASYNC124 — like the others
    """The Host is the person at this machine."""
    s.node.execute("UPDATE agents SET profile = 'me' WHERE id = ?", s.ann.agent.id)


async def _handed_to(s: Stage, who: Member) -> None:
    ask = HandOverTeam(team_id=TeamRef(s.team.id), expected_version=1, to_agent_id=AgentMemberRef(who.agent.id))
    await s.node.ok(ask)


async def _alone(s: Stage) -> None:  # noqa: ASYNC124 — like the others
    """The Host is the only one in the run; the others have left it."""
    for who in (s.bob, s.cid):
        s.node.execute("UPDATE member_runs SET coordination = 'retired' WHERE id = ?", who.place.id)


async def _a_peer_that_is_a_person(s: Stage) -> None:  # noqa: ASYNC124 — like the others
    s.node.execute("UPDATE agents SET profile = 'me' WHERE id = ?", s.bob.agent.id)


SITUATIONS: Mapping[str, Callable[[Stage], Awaitable[None]]] = {
    "as it is": _as_it_is,
    "the Host is a person": _a_person,
    "a member is a person": _a_peer_that_is_a_person,
    "handed over to Cid": lambda s: _handed_to(s, s.cid),
    "handed over to Bob": lambda s: _handed_to(s, s.bob),
    "the Host is alone": _alone,
}
#: Situation, then the owner of the Work in review: who may accept it. Nobody else does, on any plane.
MAY: Mapping[str, Mapping[str, set[str]]] = {
    "as it is": {"bob": {"ann"}, "ann": {"bob", "cid"}},
    "the Host is a person": {"bob": {"ann", "operator"}, "ann": {"bob", "cid"}},
    "a member is a person": {"bob": {"ann"}, "ann": {"bob", "cid"}},
    "handed over to Cid": {"bob": {"cid"}, "ann": {"cid"}},
    "handed over to Bob": {"bob": {"ann", "cid"}, "ann": {"bob"}},
    "the Host is alone": {"bob": {"ann"}, "ann": set()},
}


@attrs.frozen
class Around:
    """Others that ask: an observer of the run, the Host of another team in a run of its own."""

    eve: AgentSession
    dan: AgentSession


async def around(s: Stage) -> Around:
    eve = await scene.joined(s.node, s.team, await scene.agent(s.node, "eve"), GuestRole.OBSERVER)
    place = await s.node.ok(AddMemberRun(team_run_id=s.run.id, membership_id=eve.id))
    other = await scene.team(s.node, await scene.agent(s.node, "dan"), "other")
    run = await s.node.ok(CreateTeamRun(team_id=TeamRef(other.id)))
    run = await s.node.ok(StartTeamRun(team_run_id=run.id, expected_version=1))
    run = await s.node.ok(TakeTeamRun(team_run_id=run.id), plane=Plane.SUPERVISOR, actor=run.id)
    (his,) = (await s.node.ok(ShowTeamRun(team_run_id=run.id))).members
    return Around(eve=await session(s.node, s.run, place), dan=await session(s.node, run, his.member_run))


def asks(work: Work) -> tuple[AcceptWork | RequestChanges, ...]:
    receipt = ReceiptId(str(work.receipt_id))
    return (
        AcceptWork(work_id=work.id, expected_version=99, receipt_id=receipt),
        RequestChanges(work_id=work.id, expected_version=99, reason="no"),
    )


@pytest.mark.parametrize("situation", SITUATIONS)
async def test_who_may_accept_what(node: InProcessNode, situation: str) -> None:
    s = await stage(node)
    others = await around(s)
    reviewed = {"bob": await s.submitted(s.bob, "a"), "ann": await s.submitted(s.ann, "b")}
    await SITUATIONS[situation](s)
    callers = {
        "ann": s.ann.session,
        "bob": s.bob.session,
        "cid": s.cid.session,
        "eve": others.eve,
        "dan": others.dan,
    }
    voices = [(who, works.Voice(node, plane, callers[who])) for who, plane in itertools.product(callers, PLANES)]
    voices += [("operator", works.operator(s)), ("supervisor", works.supervisor(s))]
    for (owner, work), (who, voice) in itertools.product(reviewed.items(), voices):
        wanted = expected(work, owner, who, situation)
        for ask in asks(work):
            said = wanted if voice.plane in OF_A_DECISION else wrong_plane(ask, voice.plane)
            assert await voice.refused(ask) == said, (owner, who, voice.plane)


def wrong_plane(ask: AcceptWork | RequestChanges, plane: Plane) -> Refusal:
    name = "work.accept" if isinstance(ask, AcceptWork) else "work.request-changes"
    said = f"ask as host or member or operator; this connection is {plane}"
    return Refusal(code=Code.NOT_AUTHORIZED, about=name, lifted_by=said)


def expected(work: Work, owner: str, who: str, situation: str) -> Refusal:
    """One row of the table: a conflict for whoever may, else why not."""
    about = f"work/{work.id}"
    if who == "dan":
        return refusals.not_found("work", work.id)
    if who in MAY[situation][owner]:
        return refusals.conflict(about, work.version)
    if situation == "the Host is alone" and owner == "ann":
        said = "add a member to the run, who then can; or cancel the Work"
        return Refusal(code=Code.NO_ACCEPTOR, about=about, lifted_by=said)
    host = {"handed over to Cid": "cid", "handed over to Bob": "bob"}.get(situation, "ann")
    if owner == host:
        said = "the Host does not accept its own; any other active member of the run does"
        return Refusal(code=Code.NOT_AUTHORIZED, about=about, lifted_by=said)
    said = "the Host of this team decides it; a person decides by being the Host, with the profile 'me'"
    return Refusal(code=Code.NOT_AUTHORIZED, about=f"team/{work.team_id}", lifted_by=said)


@pytest.mark.parametrize("situation", [name for name in SITUATIONS if name != "the Host is alone"])
async def test_whoever_may_accept_does(node: InProcessNode, situation: str) -> None:
    """Each of them, on a Work of its own."""
    s = await stage(node)
    reviewed = {
        (owner, who): await s.submitted(s.bob if owner == "bob" else s.ann, f"{owner} for {who}")
        for owner, allowed in MAY[situation].items()
        for who in sorted(allowed)
    }
    await SITUATIONS[situation](s)
    callers = {"ann": works.ann(s), "bob": works.bob(s), "cid": works.cid(s), "operator": works.operator(s)}
    for (_, who), work in reviewed.items():
        ask = AcceptWork(work_id=work.id, expected_version=work.version, receipt_id=ReceiptId(str(work.receipt_id)))
        assert (await callers[who].ok(ask)).resolution is Resolution.ACCEPTED


async def test_a_peer_gains_nothing_over_other_works(node: InProcessNode) -> None:
    """Cid may accept the Host's, not Bob's in the same run."""
    s = await stage(node)
    hosts, bobs = await s.submitted(s.ann, "a"), await s.submitted(s.bob, "b")
    assert (await works.cid(s).refused(asks(bobs)[0])).code is Code.NOT_AUTHORIZED
    await works.accepted(s, hosts)
    assert (await works.cid(s).refused(asks(bobs)[0])).code is Code.NOT_AUTHORIZED


async def test_nobody_accepts_their_own_under_a_later_membership(node: InProcessNode) -> None:
    """Bob left with a Work in review, joined again and became Host: it is still his own."""
    s = await stage(node)
    work = await s.submitted(s.bob)
    await scene.left(node, s.bob.membership)
    await scene.joined(node, s.team, s.bob.agent)
    await _handed_to(s, s.bob)
    for ask in asks(work):
        assert (await works.member(s, s.bob).refused(ask)).code is Code.NOT_AUTHORIZED
        assert await works.cid(s).refused(ask) == refusals.conflict(f"work/{work.id}", work.version)


@pytest.mark.parametrize("owner", ["ann", "bob"])
async def test_a_work_is_accepted_from_its_own_run(node: InProcessNode, owner: str) -> None:
    """The Host, or a peer, whose session is in another run of the team is not the one that is meant."""
    s = await stage(node)
    work = await s.submitted(s.ann if owner == "ann" else s.bob)
    acceptor = s.cid if owner == "ann" else s.ann
    run = await works.second_run(s)
    places = (await node.ok(ShowTeamRun(team_run_id=run.id))).members
    (there,) = [p.member_run for p in places if p.member_run.agent_member_id == acceptor.agent.id]
    node.execute("UPDATE sessions SET member_run_id = ? WHERE id = ?", there.id, acceptor.session.id)
    for ask in asks(work):
        refusal = await works.member(s, acceptor).refused(ask)
        assert (refusal.code, refusal.about) == (Code.NOT_AUTHORIZED, f"work/{work.id}")
