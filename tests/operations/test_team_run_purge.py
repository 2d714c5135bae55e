"""``team-run.purge``, one test an outcome of the table; what it removes, what stays, and that a row stays the fold."""

from __future__ import annotations

import datetime as dt
import hashlib

import attrs
import pytest

from client.protocol.event import ListEvents
from client.protocol.ids import TeamRef, TeamRunId
from client.protocol.message import AnswerInteraction, ListMessages, Message, SendMessage, ShowMessage
from client.protocol.operation import Plane
from client.protocol.refusals import Code
from client.protocol.session import SessionCause
from client.protocol.team_run import CompleteTeamRun, CreateTeamRun, PurgeTeamRun, TeamRun
from client.protocol.work import Work
from client.protocol.work_asks import CreateWork, RetargetWork
from providers import profiles
from providers.port import Typing
from providers.profiles import Profile
from store import attempt as attempts
from store import events
from tests.operations.test_effect_deliver import to_bob, told
from tests.operations.test_session_steer import NAME, steer
from tests.operations.test_team_run_end import NO_RUN, cancel
from tests.support import effects, ledger, mail, refusals, works
from tests.support.delegations import Two, two, withdraw
from tests.support.node import InProcessNode, rows_of
from tests.support.refusals import refused_while_spoilt
from tests.support.run import Stage, stage
from tests.support.run import again as next_run
from tests.support.spoil import mend, spoil
from tests.support.supervised import close_all, report, supervised
from tests.support.verdicts import UNIT, accept, checked, says, submitted

#: Stands in everything that somebody says in these tests and that is to go.
SECRET = "hunter2"  # noqa: S105 — none of anything


def purge(run: TeamRun, node: InProcessNode, *, version: int = 0, seq: int = 0) -> PurgeTeamRun:
    last = node.store.look(lambda tx: events.last_of_run(tx, run.id))
    return PurgeTeamRun(team_run_id=run.id, expected_version=version or run.version, exported_seq=seq or last)


def left(node: InProcessNode) -> list[tuple[str, object]]:
    """The rows in which it still stands."""
    return [(table, row) for table, found in rows_of(node.store.path).items() for row in found if SECRET in str(row)]


def words(run: TeamRun) -> str:
    assert run.purged_at is not None
    return f"[purged by the operator at {dt.datetime.fromtimestamp(run.purged_at / 1000, dt.UTC):%Y-%m-%dT%H:%M:%SZ}]"


async def over(node: InProcessNode) -> tuple[Stage, TeamRun]:
    s = await stage(node)
    await close_all(s)
    return s, await node.ok(cancel(s.run))


async def talked(s: Stage) -> list[Message]:
    """A letter whose key and answer are remembered, a question and its answer."""
    ask = mail.to(s.bob, body=f"say {SECRET}")
    letter = await s.node.ok(ask, plane=Plane.HOST, actor=s.ann.session, key="letter")
    asked = await mail.question(s, s.bob, SECRET, "no")
    answer = await mail.ok(s, s.ann, AnswerInteraction(message_id=asked.message.id, option=SECRET))
    await mail.failed(s, letter.deliveries[0], reason=f"no {SECRET}")
    return [letter.message, asked.message, answer.message]


async def test_team_run_purge_ok(node: InProcessNode) -> None:
    """What was said is gone from rows, events and remembered replies; what happened is what it was."""
    s = await stage(node)
    said = await talked(s)
    work = await submitted(s, context=f"why {SECRET}", checks=[UNIT])
    await works.supervisor(s).ok(checked(s, work))
    work = await works.cid(s).ok(says(work, reason=f"saw {SECRET}"))
    await works.ann(s).ok(accept(work))
    before = await s.shown(work)
    await close_all(s)
    run = await node.ok(CompleteTeamRun(team_run_id=s.run.id, expected_version=s.run.version))
    past = (await node.ok(ListEvents(team_run_id=run.id, limit=500))).items
    assert SECRET in str(rows_of(node.store.path))
    done = await node.ok(purge(run, node), key="purge")
    assert done == attrs.evolve(run, version=run.version + 1, updated_at=done.updated_at, purged_at=done.updated_at)
    assert not left(node)
    assert ledger.check_fold(node.store.path) > 10
    now = (await node.ok(ListEvents(team_run_id=run.id, limit=500))).items
    assert [attrs.evolve(each, body={}) for each in now[:-1]] == [attrs.evolve(each, body={}) for each in past]
    assert (now[-1].stream, now[-1].kind, now[-1].actor) == (f"team-run/{run.id}", "purged", "operator")
    shown = await s.shown(work)
    assert shown.receipts == before.receipts, "a receipt stays whole, and its chain"
    assert shown.checks == before.checks
    assert shown.work == attrs.evolve(before.work, context=words(done))
    for message in said:
        body, options = words(done), [words(done)] * len(message.options)
        found = (await node.ok(ShowMessage(message_id=message.id))).message
        assert found == attrs.evolve(message, body=body, options=options)
        assert found.digest == hashlib.sha256(message.body.encode()).hexdigest()
    assert [each.id for each in (await node.ok(ListMessages(team_run_id=run.id))).items] == [m.id for m in said]


async def test_a_purge_that_is_asked_for_again_changes_nothing(node: InProcessNode) -> None:
    """Under its key it is answered from memory; under another one by the run as it is."""
    _, run = await over(node)
    ask = purge(run, node)
    done = await node.ok(ask, key="purge")
    before = node.rows()
    assert await node.ok(ask, key="purge") == done
    assert node.rows() == before
    assert await node.ok(purge(done, node)) == done
    assert node.rows() == before


async def test_a_message_sent_under_a_key_is_answered_without_its_words_after_a_purge(node: InProcessNode) -> None:
    """The key still stands for what was done, so that nothing is done twice."""
    s = await mail.with_person(await stage(node))
    ask = SendMessage(team_run_id=s.run.id, body=SECRET, recipients=[s.bob.membership.id])
    sent = await node.ok(ask, key="letter")
    await close_all(s)
    done = await node.ok(cancel(s.run))
    done = await node.ok(purge(done, node))
    again = await node.ok(ask, key="letter")
    assert again.message == attrs.evolve(sent.message, body=words(done))


async def test_a_text_that_was_typed_at_a_terminal_goes_with_a_purge(
    node: InProcessNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(profiles.PROFILES, NAME, Profile(name=NAME, argv=["/bin/true"], typing=Typing(), steers=True))
    s = await effects.live(node)
    await to_bob(s)
    await told(s)
    made = await node.ok(steer(s, SECRET))
    assert SECRET in str(rows_of(node.store.path))
    await supervised(s, effects.settle(s, made))
    await report(s, s.bob.session, SessionCause.CYCLE_ENDED)
    await close_all(s)
    await node.ok(purge(await node.ok(cancel(s.run)), node))
    assert not left(node)
    ledger.check_fold(node.store.path)


async def test_a_work_that_came_from_another_run_is_purged_with_the_run_it_is_in(node: InProcessNode) -> None:
    """The run that it left keeps what it says, and the run that it is in takes its whole past along."""
    s = await stage(node)
    ask = CreateWork(team_run_id=s.run.id, title="build it", completion_criteria="it works", context=SECRET)
    work = await node.ok(ask, key="made")
    other = await works.second_run(s)
    moved = RetargetWork(work_id=work.id, expected_version=work.version, successor_team_run_id=TeamRunId(other.id))
    await works.ann(s).ok(moved)
    await close_all(s)
    await node.ok(purge(await node.ok(cancel(s.run)), node))
    assert (await s.shown(work)).work.context == SECRET
    await node.ok(purge(await node.ok(cancel(other)), node))
    assert not left(node)
    ledger.check_fold(node.store.path)


async def test_no_result_of_a_purged_run_names_its_log_any_more(node: InProcessNode) -> None:
    s = await stage(node)
    work = await submitted(s, checks=[UNIT])
    await works.supervisor(s).ok(checked(s, work))
    await close_all(s)
    run = await node.ok(cancel(s.run))
    assert node.store.look(lambda tx: attempts.logs(tx, since=0))
    await node.ok(purge(run, node))
    assert not node.store.look(lambda tx: attempts.logs(tx, since=0))


async def test_team_run_purge_invalid_state_transition(node: InProcessNode) -> None:
    """A run that goes on, or that was never begun, or whose delegation somebody may still accept."""
    s = await stage(node)
    refusal = await node.refused(purge(s.run, node))
    assert (refusal.code, refusal.about) == (Code.INVALID_STATE_TRANSITION, f"team-run/{s.run.id}")
    assert refusal.lifted_by.startswith(f"it is running; end it first: firm team-run complete {s.run.id}")
    planned = await node.ok(CreateTeamRun(team_id=TeamRef(s.team.id)))
    assert "firm team-run cancel" in (await node.refused(purge(planned, node))).lifted_by


async def test_a_run_is_not_purged_while_its_delegation_may_be_accepted(node: InProcessNode) -> None:
    t: Two = await two(node)
    asked = await t.proposed()
    await close_all(t.our)
    run = await node.ok(cancel(t.our.run))
    again = await next_run(t.our)
    refusal = await node.refused(purge(run, node))
    assert refusal.lifted_by.endswith(f"firm delegation withdraw {asked.id} --expected-version {asked.version}")
    await node.ok(withdraw(asked), plane=Plane.HOST, actor=again.ann.session)
    assert (await node.ok(purge(run, node))).purged_at is not None
    assert asked.context not in str(rows_of(node.store.path)["delegations"])
    ledger.check_fold(node.store.path)


async def test_team_run_purge_not_found(node: InProcessNode) -> None:
    ask = PurgeTeamRun(team_run_id=NO_RUN, expected_version=1, exported_seq=1)
    assert await node.refused(ask) == refusals.not_found("team-run", "nothing")


async def test_team_run_purge_row_quarantined(node: InProcessNode) -> None:
    """What does not decode was not exported: not the run, a message, an event of a Work."""
    s = await stage(node)
    work: Work = await s.work()
    sent = await mail.sent(s, s.ann, s.bob)
    await close_all(s)
    run = await node.ok(cancel(s.run))
    (first, *_) = (await node.ok(ListEvents(stream=f"work/{work.id}"))).items
    for table, record in (("messages", sent.message.id), ("events", first.seq)):
        was = spoil(node.store.path, table, record)
        assert await node.refused(purge(run, node)) == refusals.unreadable(f"{table}/{record}")
        mend(node.store.path, table, record, was)
    await refused_while_spoilt(node, purge(run, node), "team_runs", run.id)


async def test_team_run_purge_version_conflict(node: InProcessNode) -> None:
    """Of the run as it was seen; and of what happened after it was exported, which is in no export."""
    _, run = await over(node)
    assert await node.refused(purge(run, node, version=1)) == refusals.conflict(f"team-run/{run.id}", run.version)
    last = purge(run, node).exported_seq
    refusal = await node.refused(purge(run, node, seq=last - 1))
    assert (refusal.code, refusal.current_version) == (Code.VERSION_CONFLICT, run.version)
    assert f"event {last} of it is in no export" in refusal.lifted_by
