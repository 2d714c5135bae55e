"""``team-run.renew``, one test an outcome of the table, and what its lease keeps others from."""

from __future__ import annotations

import attrs
import trio

from client.protocol.ids import TeamRunId
from client.protocol.operation import Plane
from client.protocol.refusals import Code, Refusal
from client.protocol.team_run import LEASE, CompleteTeamRun, RenewTeamRun, TakeTeamRun, TeamRun
from tests.support import refusals
from tests.support.node import InProcessNode
from tests.support.run import Stage, stage
from tests.support.supervised import close_all, declined, declined_while_spoilt, fenced, run_now, supervised

assert LEASE.most is not None
LONG = LEASE.most


def renew(s: Stage, lease_ms: int = LONG, *, sup_gen: int = 0) -> RenewTeamRun:
    return RenewTeamRun(team_run_id=s.run.id, sup_gen=sup_gen or s.sup_gen, lease_ms=lease_ms)


def take(s: Stage, lease_ms: int = 0) -> TakeTeamRun:
    return TakeTeamRun(team_run_id=s.run.id, lease_ms=lease_ms)


async def test_team_run_renew_ok(node: InProcessNode) -> None:
    """Nothing of the run changes, and nobody who waits for it is woken."""
    s = await stage(node)
    before = node.rows()
    assert await supervised(s, renew(s)) == await run_now(node, s.run)
    assert node.rows() == before


async def test_team_run_renew_not_found(node: InProcessNode) -> None:
    s = await stage(node)
    refusal = await declined(s, attrs.evolve(renew(s), team_run_id=TeamRunId("nothing")))
    assert refusal == refusals.not_found("team-run", "nothing")


async def test_team_run_renew_row_quarantined(node: InProcessNode) -> None:
    s = await stage(node)
    await declined_while_spoilt(s, renew(s), "team_runs", s.run.id)


async def test_team_run_renew_supervisor_generation_fenced(node: InProcessNode) -> None:
    """And a lease of a generation that is over keeps nobody out."""
    s = await stage(node)
    assert await declined(s, renew(s, sup_gen=s.sup_gen + 1)) == fenced(s, s.sup_gen + 1)
    assert (await supervised(s, take(s))).sup_gen == s.sup_gen + 1


async def test_team_run_renew_team_run_not_open(node: InProcessNode) -> None:
    s = await stage(node)
    await close_all(s)
    run = await run_now(node, s.run)
    await node.ok(CompleteTeamRun(team_run_id=run.id, expected_version=run.version))
    refusal = await declined(s, renew(s))
    assert (refusal.code, refusal.about) == (Code.TEAM_RUN_NOT_OPEN, f"team-run/{run.id}")


async def test_team_run_take_supervisor_lease_held(node: InProcessNode) -> None:
    """While its holder may still act nobody takes the run; once it has let go, at once."""
    s = await stage(node)
    await supervised(s, renew(s))
    assert await declined(s, take(s)) == Refusal(
        code=Code.SUPERVISOR_LEASE_HELD,
        about=f"team-run/{s.run.id}",
        lifted_by=f"sup_gen={s.sup_gen} holds this run; ask again when it has let go of it or its lease is over",
    )
    await supervised(s, renew(s, 0))
    assert (await supervised(s, take(s))).sup_gen == s.sup_gen + 1


async def test_a_run_may_be_taken_under_a_lease(node: InProcessNode) -> None:
    """From the very moment: whom it was taken from cannot take it back at once."""
    s = await stage(node)
    taken = await supervised(s, take(s, LONG))
    assert (await declined(s, take(s))).code is Code.SUPERVISOR_LEASE_HELD
    let_go = await supervised(s, renew(s, 0, sup_gen=taken.sup_gen))
    assert (let_go.sup_gen, let_go.version) == (taken.sup_gen, taken.version + 1)  # which wakes whoever waits for it
    assert (await supervised(s, take(s))).sup_gen == taken.sup_gen + 1


async def test_a_lease_that_is_not_renewed_ends_by_itself(node: InProcessNode) -> None:
    s = await stage(node)
    began = trio.current_time()
    await supervised(s, renew(s, 200))
    with trio.fail_after(10):
        while isinstance(taken := await node.ask(take(s), plane=Plane.SUPERVISOR, actor=s.run.id), Refusal):
            assert taken.code is Code.SUPERVISOR_LEASE_HELD
    assert isinstance(taken, TeamRun)
    assert trio.current_time() - began >= 0.2
