"""``session.token``, ``claims``, ``list`` and ``show``, one test an outcome that the table declares."""

from __future__ import annotations

import attrs
import pytest

from client.protocol.ids import SessionId, TeamRef, TeamRunId
from client.protocol.operation import Plane
from client.protocol.refusals import Refusal
from client.protocol.session import (
    DeriveToken,
    ListSessions,
    SessionCause,
    SessionState,
    SetClaims,
    ShowSession,
)
from client.protocol.team_run import CreateTeamRun, ShowTeamRun, TakeTeamRun
from tests.support import refusals, scene
from tests.support.node import InProcessNode
from tests.support.run import stage
from tests.support.spoil import spoil
from tests.support.supervised import (
    capability,
    declined,
    declined_while_spoilt,
    fenced,
    open_,
    report,
    started,
    supervised,
)

NO_SESSION = SessionId("nothing")
C = SessionCause


async def test_session_token_ok(node: InProcessNode) -> None:
    """Derived again it is the same, and of each session another."""
    s = await stage(node)
    bob = DeriveToken(session_id=s.bob.session.id, sup_gen=s.sup_gen)
    first, again = await supervised(s, bob), await supervised(s, bob)
    assert first == again
    cid = await supervised(s, DeriveToken(session_id=s.cid.session.id, sup_gen=s.sup_gen))
    assert cid.token != first.token
    assert len(first.token) == 64


async def test_session_token_not_found(node: InProcessNode) -> None:
    s = await stage(node)
    other = await node.ok(CreateTeamRun(team_id=TeamRef(s.team.id)))
    ask = DeriveToken(session_id=s.bob.session.id, sup_gen=s.sup_gen)
    refusal = await node.refused(ask, plane=Plane.SUPERVISOR, actor=other.id)
    assert refusal == refusals.not_found("session", s.bob.session.id)
    assert await declined(s, attrs.evolve(ask, session_id=NO_SESSION)) == refusals.not_found("session", "nothing")


async def test_session_token_row_quarantined(node: InProcessNode) -> None:
    s = await stage(node)
    ask = DeriveToken(session_id=s.bob.session.id, sup_gen=s.sup_gen)
    await declined_while_spoilt(s, ask, "sessions", s.bob.session.id)


async def test_session_token_supervisor_generation_fenced(node: InProcessNode) -> None:
    s = await stage(node)
    assert await declined(s, DeriveToken(session_id=s.bob.session.id, sup_gen=9)) == fenced(s, 9)


async def test_session_claims_ok(node: InProcessNode) -> None:
    """By the operator, who names no generation, or by the supervisor, which does."""
    s = await stage(node)
    before = await capability(node, s.bob.session)
    off = await node.ok(SetClaims(session_id=s.bob.session.id, accepts_new_claims=False))
    assert off == attrs.evolve(before, version=2, accepts_new_claims=False, updated_at=off.updated_at)
    on = await supervised(s, SetClaims(session_id=s.bob.session.id, accepts_new_claims=True, sup_gen=s.sup_gen))
    assert (on.version, on.accepts_new_claims) == (3, True)


async def test_session_claims_not_found(node: InProcessNode) -> None:
    s = await stage(node)
    ask = SetClaims(session_id=NO_SESSION, accepts_new_claims=False)
    assert await node.refused(ask) == refusals.not_found("session", "nothing")
    other = await node.ok(CreateTeamRun(team_id=TeamRef(s.team.id)))
    ask = SetClaims(session_id=s.bob.session.id, accepts_new_claims=False, sup_gen=s.sup_gen)
    refusal = await node.refused(ask, plane=Plane.SUPERVISOR, actor=other.id)
    assert refusal == refusals.not_found("session", s.bob.session.id)


async def test_session_claims_row_quarantined(node: InProcessNode) -> None:
    s = await stage(node)
    shown = await capability(node, s.bob.session)
    ask = SetClaims(session_id=s.bob.session.id, accepts_new_claims=False)
    await refusals.refused_while_spoilt(node, ask, "capabilities", shown.id)


@pytest.mark.parametrize("gen", [None, 9])
async def test_session_claims_supervisor_generation_fenced(node: InProcessNode, gen: int | None) -> None:
    s = await stage(node)
    ask = SetClaims(session_id=s.bob.session.id, accepts_new_claims=False, sup_gen=gen)
    assert await declined(s, ask) == fenced(s, gen or 0)


async def test_session_list_ok(node: InProcessNode) -> None:
    s = await stage(node)
    ann, bob, cid = s.ann.session, s.bob.session, s.cid.session
    first = await node.ok(ListSessions(limit=2))
    assert first.items == [ann, bob]
    assert first.next is not None
    rest = await node.ok(ListSessions(limit=2, cursor=first.next))
    assert (rest.items, rest.next) == ([cid], None)
    closed = await report(s, bob, C.CLOSED)
    assert (await node.ok(ListSessions(state=SessionState.CLOSED))).items == [closed]
    assert (await node.ok(ListSessions(team_run_id=TeamRunId("nothing")))).items == []


async def test_a_member_and_a_supervisor_see_the_sessions_of_their_own_run(node: InProcessNode) -> None:
    s = await stage(node)
    eve = await scene.agent(node, "eve")
    other = await scene.team(node, eve, "other")
    theirs = await started(node, await node.ok(CreateTeamRun(team_id=TeamRef(other.id))))
    taken = await node.ok(TakeTeamRun(team_run_id=theirs.id), plane=Plane.SUPERVISOR, actor=theirs.id)
    place = (await node.ok(ShowTeamRun(team_run_id=theirs.id))).members[0].member_run
    stranger = await node.ok(open_(place, taken.sup_gen), plane=Plane.SUPERVISOR, actor=theirs.id)
    assert len((await node.ok(ListSessions())).items) == 4
    for plane, who in ((Plane.MEMBER, s.bob.session), (Plane.SUPERVISOR, s.run.id)):
        assert (await node.ok(ListSessions(), plane=plane, actor=who)).items == [
            s.ann.session,
            s.bob.session,
            s.cid.session,
        ]
        refusal = await node.refused(ShowSession(session_id=stranger.id), plane=plane, actor=who)
        assert refusal == refusals.not_found("session", stranger.id)


async def test_session_list_cursor_invalid(node: InProcessNode) -> None:
    await stage(node)
    onward = (await node.ok(ListSessions(limit=1))).next
    assert onward is not None
    for ask in (ListSessions(state=SessionState.IDLE, cursor=onward), ListSessions(cursor="nonsense")):
        assert await node.refused(ask) == refusals.stale_cursor()


async def test_session_list_not_found(node: InProcessNode) -> None:
    s = await stage(node)
    other = await scene.team(node, await scene.agent(node, "eve"), "other")
    theirs = await node.ok(CreateTeamRun(team_id=TeamRef(other.id)))
    ask = ListSessions(team_run_id=theirs.id)
    refusal = await node.refused(ask, plane=Plane.MEMBER, actor=s.bob.session)
    assert refusal == refusals.not_found("team-run", theirs.id)


async def test_session_list_row_quarantined(node: InProcessNode) -> None:
    """The caller's own run has to be read; a session that cannot be is left out and named."""
    s = await stage(node)
    await declined_while_spoilt(s, ListSessions(), "team_runs", s.run.id)
    spoil(node.store.path, "sessions", s.bob.session.id)
    assert (await node.ok(ListSessions())).items == [s.ann.session, s.cid.session]
    assert await node.set_aside() == [f"sessions/{s.bob.session.id}"]


async def test_session_show_ok(node: InProcessNode) -> None:
    s = await stage(node)
    shown = await node.ok(ShowSession(session_id=s.bob.session.id))
    assert shown.session == s.bob.session
    for plane, who in ((Plane.MEMBER, s.cid.session), (Plane.SUPERVISOR, s.run.id)):
        assert await node.ok(ShowSession(session_id=s.bob.session.id), plane=plane, actor=who) == shown


async def test_session_show_not_found(node: InProcessNode) -> None:
    refusal = await node.refused(ShowSession(session_id=NO_SESSION))
    assert refusal == refusals.not_found("session", "nothing")
    assert not isinstance(await node.follow(refusal), Refusal)


async def test_session_show_row_quarantined(node: InProcessNode) -> None:
    s = await stage(node)
    ask = ShowSession(session_id=s.bob.session.id)
    await refusals.refused_while_spoilt(node, ask, "sessions", s.bob.session.id)
