"""``effect.prepare``, ``effect.started`` and ``effect.settle``: a launch through the hands of its supervisor."""

from __future__ import annotations

import attrs
import pytest

from client.protocol.attempt import Custody
from client.protocol.effect import Certainty, EffectKind, EffectState, RuntimeEffect
from client.protocol.ids import EffectId, SessionId
from client.protocol.operation import Plane
from client.protocol.refusals import Code, Refusal
from client.protocol.session import CapabilityState, Driver, Liveness, SessionCause, SessionState
from client.protocol.team_run import Coordination, TakeTeamRun
from client.protocol.work_asks import ShowWork
from tests.support import effects, refusals
from tests.support.node import InProcessNode
from tests.support.supervised import (
    capability,
    declined,
    declined_while_spoilt,
    fenced,
    open_,
    place_now,
    report,
    supervised,
)
from tests.support.works import second_run

NOTHING = EffectId("nothing")
A, N, U = Certainty.APPLIED, Certainty.NOT_APPLIED, Certainty.UNKNOWN


async def test_effect_prepare_ok(node: InProcessNode) -> None:
    """It is unknown from its first moment, and stands for this generation of its session and its supervisor."""
    s = await effects.cold(node)
    made = await effects.prepared(s)
    assert made == RuntimeEffect(
        id=made.id,
        version=1,
        team_run_id=s.run.id,
        session_id=s.bob.session.id,
        session_gen=s.bob.session.session_gen,
        sup_gen=s.run.sup_gen,
        kind=EffectKind.LAUNCH,
        state=EffectState.PREPARED,
        certainty=U,
        cwd="/tmp",  # noqa: S108 — a folder
        pane="",
        pid=0,
        start_ticks=0,
        boot_id="",
        readback="",
        created_by=f"supervisor/{s.run.id}",
        created_at=made.created_at,
        updated_at=made.created_at,
        settled_at=None,
        wake=None,
        work_id=None,
        work_version=0,
        text="",
        ending=None,
    )


async def test_a_launch_that_is_prepared_twice_is_the_same(node: InProcessNode) -> None:
    """By this supervisor, by the next one, and also once its process is known."""
    s = await effects.cold(node)
    first = await effects.prepared(s)
    assert await effects.prepared(s) == first
    begun = await supervised(s, effects.started(s, first))
    run = await node.ok(TakeTeamRun(team_run_id=s.run.id), plane=Plane.SUPERVISOR, actor=s.run.id)
    assert await effects.prepared(attrs.evolve(s, run=run)) == begun


async def test_effect_prepare_effect_unsettled(node: InProcessNode) -> None:
    """Beside whatever else is under way, and while it is unknown what an earlier launch did."""
    s = await effects.cold(node)
    stop = await effects.control(s, EffectKind.INTERRUPT)
    refusal = await declined(s, effects.prepare(s))
    assert (refusal.code, refusal.about) == (Code.EFFECT_UNSETTLED, f"effect/{stop.id}")
    assert f"firm wait 'effect:{stop.id}.version>{stop.version}'" in refusal.lifted_by
    await supervised(s, effects.settle(s, stop, N))
    lost = await effects.unread(s)
    refusal = await declined(s, effects.prepare(s))
    said = f"find out what it did, then say it: firm resolve {lost.id}"
    assert refusal == Refusal(code=Code.EFFECT_UNSETTLED, about=f"effect/{lost.id}", lifted_by=said)


@pytest.mark.parametrize("driver", Driver)
async def test_effect_prepare_invalid_state_transition(node: InProcessNode, driver: Driver) -> None:
    """A session that has a process, or had one, gets no second one; nor does a person's own."""
    s = await effects.live(node) if driver is Driver.HOST_DRIVEN else await effects.cold(node)
    node.execute("UPDATE sessions SET driver = ? WHERE id = ?", driver.value, s.bob.session.id)
    refusal = await declined(s, effects.prepare(s))
    assert (refusal.code, refusal.about) == (Code.INVALID_STATE_TRANSITION, f"session/{s.bob.session.id}")
    if driver is Driver.HOST_DRIVEN:
        await report(s, s.bob.session, SessionCause.EXITED)
        assert await declined(s, effects.prepare(s)) == refusal, "its process has ended"


async def test_a_launch_that_came_to_something_too_late_was_the_only_one(node: InProcessNode) -> None:
    """Its session was lost sight of meanwhile, and knows of no process."""
    s = await effects.cold(node)
    launch = await effects.begun(s)
    lost = await report(s, await effects.session_now(s), SessionCause.LOST)
    await supervised(s, effects.settle(s, launch, Certainty.APPLIED, "it is there"))
    after = await report(s, lost, SessionCause.RESOLVED)
    assert (after.state, after.pid) == (SessionState.COLD, 0)
    refusal = await declined(s, effects.prepare(s))
    assert (refusal.code, refusal.about) == (Code.INVALID_STATE_TRANSITION, f"session/{after.id}")


async def test_effect_prepare_member_run_closed(node: InProcessNode) -> None:
    """Whoever is to end a session closes its place first: after that nothing is launched for it."""
    s = await effects.cold(node)
    stop = await effects.control(s, EffectKind.STOP)
    await supervised(s, effects.settle(s, stop, Certainty.NOT_APPLIED, "still there: 7"))
    refusal = await declined(s, effects.prepare(s))
    assert (refusal.code, refusal.about) == (Code.MEMBER_RUN_CLOSED, f"member-run/{s.bob.place.id}")


async def test_effect_prepare_not_found(node: InProcessNode) -> None:
    """Of a session of another run as of one that does not exist."""
    s = await effects.cold(node)
    other = await second_run(s)
    ask = effects.prepare(s)
    refusal = await node.refused(ask, plane=Plane.SUPERVISOR, actor=other.id)
    assert refusal == refusals.not_found("session", s.bob.session.id)
    assert await declined(s, attrs.evolve(ask, session_id=SessionId("nothing"))) == refusals.not_found(
        "session", "nothing"
    )


async def test_effect_prepare_row_quarantined(node: InProcessNode) -> None:
    s = await effects.cold(node)
    await declined_while_spoilt(s, effects.prepare(s), "sessions", s.bob.session.id)


async def test_effect_prepare_supervisor_generation_fenced(node: InProcessNode) -> None:
    s = await effects.cold(node)
    assert await declined(s, effects.prepare(s, sup_gen=s.sup_gen + 1)) == fenced(s, s.sup_gen + 1)


async def test_a_launch_of_another_generation_of_a_session_is_not_prepared(node: InProcessNode) -> None:
    s = await effects.cold(node)
    for gen in (s.bob.session.session_gen - 1, s.bob.session.session_gen + 1):
        refusal = await declined(s, effects.prepare(s, session_gen=gen))
        assert refusal.code is Code.AGENT_SESSION_GENERATION_FENCED


async def test_effect_started_ok(node: InProcessNode) -> None:
    """Its process is known, and nothing is proven by that: the session stays as it was. Said again, it is the same."""
    s = await effects.cold(node)
    begun = await effects.begun(s)
    assert (begun.pane, begun.pid, begun.start_ticks, begun.boot_id) == (
        "%0",
        effects.PID,
        effects.TICKS,
        effects.BOOT,
    )
    assert (begun.state, begun.certainty) == (EffectState.PREPARED, U)
    assert await effects.session_now(s) == s.bob.session
    assert await supervised(s, effects.started(s, begun)) == begun


async def test_effect_started_invalid_state_transition(node: InProcessNode) -> None:
    """A second process for the same launch, a launch that is settled, or what is no launch."""
    s = await effects.cold(node)
    begun = await effects.begun(s)
    assert (await declined(s, effects.started(s, begun, pid=77))).code is Code.INVALID_STATE_TRANSITION
    await supervised(s, effects.settle(s, begun, N))
    fresh = await effects.prepared(s)
    await supervised(s, effects.settle(s, fresh, N))
    control = await effects.control(s, EffectKind.INTERRUPT)
    for each, state in ((fresh, "settled"), (control, "prepared")):
        lifted_by = f"it is a {each.kind.value} that is {state}; a launch is started once"
        assert await declined(s, effects.started(s, each)) == Refusal(
            code=Code.INVALID_STATE_TRANSITION, about=f"effect/{each.id}", lifted_by=lifted_by
        )


async def test_effect_started_not_found(node: InProcessNode) -> None:
    s = await effects.cold(node)
    ask, other = effects.started(s, await effects.prepared(s)), await second_run(s)
    refusal = await node.refused(ask, plane=Plane.SUPERVISOR, actor=other.id)
    assert refusal == refusals.not_found("effect", ask.effect_id)
    assert await declined(s, attrs.evolve(ask, effect_id=NOTHING)) == refusals.not_found("effect", NOTHING)


async def test_effect_started_row_quarantined(node: InProcessNode) -> None:
    s = await effects.cold(node)
    made = await effects.prepared(s)
    await declined_while_spoilt(s, effects.started(s, made), "effects", made.id)


async def test_effect_started_supervisor_generation_fenced(node: InProcessNode) -> None:
    s = await effects.cold(node)
    made = await effects.prepared(s)
    assert await declined(s, effects.started(s, made, sup_gen=s.sup_gen + 1)) == fenced(s, s.sup_gen + 1)


async def test_effect_settle_ok(node: InProcessNode) -> None:
    """A launch that is proven makes its session ready, with the process that was proven."""
    s = await effects.cold(node)
    begun = await effects.begun(s)
    done = await supervised(s, effects.settle(s, begun, A, "it runs"))
    assert done == attrs.evolve(
        begun,
        version=begun.version + 1,
        state=EffectState.SETTLED,
        certainty=A,
        readback="it runs",
        updated_at=done.updated_at,
        settled_at=done.updated_at,
    )
    now = await effects.session_now(s)
    assert (now.state, now.process) == (SessionState.IDLE, Liveness.LIVE)
    assert (now.pid, now.start_ticks, now.boot_id) == (effects.PID, effects.TICKS, effects.BOOT)


async def test_what_cannot_be_read_stays_unknown_until_it_can(node: InProcessNode) -> None:
    s = await effects.cold(node)
    lost = await effects.unread(s)
    assert (lost.state, lost.certainty, lost.settled_at) == (EffectState.RECOVERY_REQUIRED, U, None)
    assert (await effects.session_now(s)).state is SessionState.COLD
    assert (await supervised(s, effects.settle(s, lost, A))).state is EffectState.SETTLED
    assert (await effects.session_now(s)).state is SessionState.IDLE


async def test_a_launch_that_came_to_nothing_leaves_a_session_that_can_be_launched_again(node: InProcessNode) -> None:
    s = await effects.cold(node)
    first = await effects.begun(s)
    await supervised(s, effects.settle(s, first, N, "no such program"))
    now = await effects.session_now(s)
    assert (now.state, now.pid) == (SessionState.COLD, 0)
    second = await effects.begun(s)
    assert second.id != first.id
    await supervised(s, effects.settle(s, second, A))
    assert (await effects.session_now(s)).state is SessionState.IDLE


async def test_a_stop_that_is_proven_closes_the_session_and_orphans_what_it_held(node: InProcessNode) -> None:
    s = await effects.live(node)
    work = await s.started(s.bob)
    stop = await effects.control(s, EffectKind.STOP)
    assert (await effects.session_now(s)).state is SessionState.IDLE, "until it is proven"
    await supervised(s, effects.settle(s, stop, A, "nothing is left"))
    now = await effects.session_now(s)
    assert (now.state, now.process) == (SessionState.CLOSED, Liveness.STOPPED)
    assert (await capability(node, now)).state is CapabilityState.REVOKED
    shown = await node.ok(ShowWork(work_id=work.id))
    assert shown.work == work, "its Work keeps its owner"
    assert [each.custody for each in shown.bindings] == [Custody.ORPHANED_UNVERIFIED]
    assert (await place_now(node, s.bob.place)).coordination is Coordination.CLOSED


@pytest.mark.parametrize("certainty", [N, U])
async def test_a_stop_that_is_not_proven_closes_nothing(node: InProcessNode, certainty: Certainty) -> None:
    s = await effects.live(node)
    stop = await effects.control(s, EffectKind.STOP)
    await supervised(s, effects.settle(s, stop, certainty, "still there: 7"))
    assert (await effects.session_now(s)).state is SessionState.IDLE


@pytest.mark.parametrize("certainty", [A, N])
async def test_what_is_settled_late_changes_nothing_of_the_next_session(
    node: InProcessNode, certainty: Certainty
) -> None:
    """Another session took the place meanwhile; what the launch of the former one did is on record, no more."""
    s = await effects.cold(node)
    begun = await effects.begun(s)
    newer = await supervised(s, open_(s.bob.place, s.sup_gen, supersede=True))
    former = await effects.session_now(s)
    done = await supervised(s, effects.settle(s, begun, certainty))
    assert done.certainty is certainty
    assert await effects.session_now(s) == former
    assert await effects.session_now(s, newer) == newer


async def test_effect_settle_invalid_state_transition(node: InProcessNode) -> None:
    """What was read once is not read otherwise later; and not read again is not known less."""
    s = await effects.cold(node)
    lost = await effects.unread(s)
    refusal = await declined(s, effects.settle(s, lost, U))
    assert refusal == refusals.no_move(f"effect/{lost.id}", "recovery_required", "prepared")
    await supervised(s, effects.settle(s, lost, A))
    for again in (A, N):
        refusal = await declined(s, effects.settle(s, lost, again))
        assert refusal == refusals.no_move(f"effect/{lost.id}", "settled", "prepared or recovery_required")


async def test_effect_settle_not_found(node: InProcessNode) -> None:
    s = await effects.cold(node)
    ask, other = effects.settle(s, await effects.begun(s)), await second_run(s)
    refusal = await node.refused(ask, plane=Plane.SUPERVISOR, actor=other.id)
    assert refusal == refusals.not_found("effect", ask.effect_id)
    assert await declined(s, attrs.evolve(ask, effect_id=NOTHING)) == refusals.not_found("effect", NOTHING)


async def test_effect_settle_row_quarantined(node: InProcessNode) -> None:
    s = await effects.cold(node)
    made = await effects.begun(s)
    await declined_while_spoilt(s, effects.settle(s, made), "effects", made.id)


async def test_effect_settle_supervisor_generation_fenced(node: InProcessNode) -> None:
    s = await effects.cold(node)
    made = await effects.begun(s)
    assert await declined(s, effects.settle(s, made, sup_gen=s.sup_gen + 1)) == fenced(s, s.sup_gen + 1)


async def test_the_database_itself_holds_one_launch_a_session(node: InProcessNode) -> None:
    s = await effects.cold(node)
    made = await effects.prepared(s)
    columns = "version, team_run_id, session_id, session_gen, sup_gen, kind, state, certainty, cwd, pane, pid"
    rest = "start_ticks, boot_id, readback, created_by, created_at, updated_at, settled_at, work_version, text"
    rest += ", resumes, after_turn"
    copy = f"INSERT INTO effects (id, {columns}, {rest}) SELECT 'other', {columns}, {rest} FROM effects WHERE id = ?"  # noqa: S608 — ours
    with pytest.raises(Exception, match="UNIQUE constraint failed"):
        node.execute(copy, made.id)
