"""``team-run.board`` and ``board-summary``, one test an outcome of the table; and that a board counts right."""

from __future__ import annotations

import contextlib
import json

import apsw
import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from client.protocol.board import (
    AttentionKind,
    Board,
    BoardMember,
    Counts,
    Doing,
    ShowBoard,
    ShowSummary,
)
from client.protocol.ids import MemberRunId, SupGen, TeamId, TeamRef, TeamRunId, UnixMs
from client.protocol.operation import Plane
from client.protocol.session import ReportSession, SessionCause, SessionState
from client.protocol.team_run import CreateTeamRun, TeamRun, TeamRunState
from client.protocol.work import Condition, Phase, Priority, Resolution
from client.protocol.work_asks import BlockWork, CancelWork, HoldWork
from daemon.kernel import board as rules
from daemon.kernel.work import LEGAL, Standing
from store import board as facts
from store.tx import Tx
from tests.support import mail, refusals
from tests.support.mail import ok, refused
from tests.support.node import InProcessNode
from tests.support.run import Member, Stage, stage

NOTHING = Counts(
    open=0,
    active=0,
    blocked=0,
    on_hold=0,
    review=0,
    accepted=0,
    cancelled=0,
    failed=0,
    assigned=0,
    unassigned=0,
    ready=0,
)


async def not_found(node: InProcessNode, kind: type[ShowBoard | ShowSummary]) -> None:
    s, other = await stage(node), await stage(node)
    for run in ("nothing", other.run.id):
        assert await refused(s, s.bob, kind(team_run_id=TeamRunId(run))) == refusals.not_found("team-run", run)
    refusal = await node.refused(kind(team_run_id=other.run.id), plane=Plane.SUPERVISOR, actor=s.run.id)
    assert refusal == refusals.not_found("team-run", other.run.id)


async def board(s: Stage) -> Board:
    return await s.node.ok(ShowBoard(team_run_id=s.run.id))


async def doing(s: Stage, who: Member) -> tuple[Doing, str]:
    (found,) = [each for each in (await board(s)).members if each.member_run_id == who.place.id]
    return found.doing, found.work_title


async def test_team_run_board_ok(node: InProcessNode) -> None:
    """Who does what, by role and number; what waits for them; looking changes nothing."""
    s = await stage(node)
    working, review = await s.started(s.bob, "build it"), await s.submitted(s.cid, "test it")
    await s.work("rest")
    await mail.sent(s, s.bob, s.ann, s.cid)
    before = node.rows()
    found = await board(s)
    assert node.rows() == before
    assert found.run == s.run
    assert found.counts == attrs.evolve(NOTHING, open=1, active=1, review=1, assigned=2, unassigned=1, ready=1)
    assert [(each.title, each.phase, each.owner, each.ready) for each in found.works] == [
        ("test it", Phase.REVIEW, s.cid.agent.name, False),
        ("build it", Phase.ACTIVE, s.bob.agent.name, False),
        ("rest", Phase.OPEN, "", True),
    ]
    assert found.members == [
        BoardMember(
            member_run_id=who.place.id,
            name=who.agent.name,
            role=role,
            number=number,
            doing=what,
            session=SessionState.IDLE,
            work_id=work.id if work else None,
            work_title=work.title if work else "",
            mail=waits,
        )
        for who, role, number, what, work, waits in (
            (s.ann, "host", 1, Doing.IDLE, None, 1),
            (s.bob, "member", 1, Doing.WORKING, working, 0),
            (s.cid, "member", 2, Doing.AWAITING_REVIEW, review, 1),
        )
    ]
    assert [(each.kind, each.about) for each in found.attention] == [(AttentionKind.REVIEW, f"work/{review.id}")]
    for who in (s.ann, s.bob):
        assert (await ok(s, who, ShowBoard())).counts == found.counts


async def test_a_work_on_hold_or_behind_another_is_not_ready_on_the_board(
    node: InProcessNode,
) -> None:
    """The most urgent first, then the oldest; closed ones are only counted."""
    s = await stage(node)
    first, held = await s.work("first"), await s.work("held")
    await s.work("waits", prerequisite_work_ids=[first.id], priority=Priority.URGENT)
    await ok(s, s.ann, HoldWork(work_id=held.id, expected_version=1, reason="later"))
    gone = await s.work("gone")
    await ok(s, s.ann, CancelWork(work_id=gone.id, expected_version=1, reason="no"))
    found = [(each.title, each.condition, each.ready) for each in (await board(s)).works]
    assert found == [
        ("waits", Condition.NORMAL, False),
        ("first", Condition.NORMAL, True),
        ("held", Condition.ON_HOLD, False),
    ]


async def test_a_board_has_fifty_works_of_a_phase_and_counts_all(node: InProcessNode) -> None:
    s = await stage(node)
    for n in range(52):
        await s.work(f"work {n}")
    found = await board(s)
    assert [each.title for each in found.works] == [f"work {n}" for n in range(50)]
    assert found.counts.open == 52


async def test_team_run_board_not_found(node: InProcessNode) -> None:
    await not_found(node, ShowBoard)


async def test_team_run_board_row_quarantined(node: InProcessNode) -> None:
    s = await stage(node)
    await refusals.refused_while_spoilt(node, ShowBoard(team_run_id=s.run.id), "team_runs", s.run.id)


async def test_team_run_board_summary_ok(node: InProcessNode) -> None:
    s = await stage(node)
    await s.started(s.bob)
    await s.submitted(s.cid, "test it")
    said = (await ok(s, s.ann, ShowSummary())).text
    assert said.splitlines() == [
        "open=0 active=1 blocked=0 on_hold=0 review=1 accepted=0 cancelled=0 failed=0",
        "assigned=2 unassigned=0 ready=0 attention=1",
        "ann: idle",
        "bob: working",
        "cid: awaiting-review",
        f"run=running sup_gen={s.sup_gen}",
    ]


async def test_team_run_board_summary_not_found(node: InProcessNode) -> None:
    await not_found(node, ShowSummary)


async def test_team_run_board_summary_row_quarantined(node: InProcessNode) -> None:
    s = await stage(node)
    await refusals.refused_while_spoilt(node, ShowSummary(team_run_id=s.run.id), "team_runs", s.run.id)


#: Long lists and long names as often as short ones.
NAMES = st.integers(0, 60).flatmap(
    lambda many: st.lists(
        st.one_of(
            st.integers(1, 200).map(lambda long: "ö" * long),
            st.text(min_size=1, max_size=20).filter(str.isprintable),
        ),
        min_size=many,
        max_size=many,
    )
)


@settings(max_examples=100, deadline=None)
@given(names=NAMES, numbers=st.integers(0, 10_000), gen=st.integers(0, 2**62))
def test_a_summary_has_at_most_500_characters_and_is_no_json(names: list[str], numbers: int, gen: int) -> None:
    """I47: whatever people are called and however many there are; who does not fit is counted."""
    members = [
        BoardMember(
            member_run_id=MemberRunId(str(n)),
            name=name,
            role="member",
            number=n + 1,
            doing=Doing.AWAITING_REVIEW,
            session=None,
            work_id=None,
            work_title="",
            mail=0,
        )
        for n, name in enumerate(names)
    ]
    run = TeamRun(
        id=TeamRunId("run"),
        version=1,
        team_id=TeamId("team"),
        objective="",
        state=TeamRunState.CANCELLED,
        sup_gen=SupGen(gen),
        created_by="operator",
        created_at=UnixMs(1),
        updated_at=UnixMs(1),
        ended_at=None,
    )
    counts = Counts(**dict.fromkeys(attrs.asdict(NOTHING), numbers))
    said = rules.summary(Board(run=run, counts=counts, works=[], members=members, attention=[]))
    assert len(said) <= 500
    with pytest.raises(ValueError, match=r".*"):
        json.loads(said)
    shown = [line for line in said.splitlines()[2:-1] if line.endswith(Doing.AWAITING_REVIEW.value)]
    left = len(names) - len(shown)
    assert ([f"and {left} more"] if left else []) == said.splitlines()[2 + len(shown) : -1]
    assert len(shown) >= min(4, len(names)), "one long name hides no other"


@attrs.frozen
class Sample:
    """A Work as a row of any legal standing, and what it needs of those before it."""

    phase: Phase
    condition: Condition
    resolution: Resolution | None
    held: Condition | None
    owned: bool
    needs: frozenset[int]


def samples() -> st.SearchStrategy[list[Sample]]:
    """A dozen Works; every third one could be ready, as far as it goes by itself."""
    standings = st.sampled_from(sorted(LEGAL, key=repr))
    one = st.one_of(st.just(Standing(Phase.OPEN, Condition.NORMAL)), standings, standings)
    needs = st.lists(st.integers(0, 99), max_size=2)
    return st.lists(st.tuples(one, st.booleans(), needs), min_size=1, max_size=12).map(
        lambda found: [
            Sample(
                each.phase,
                each.condition,
                each.resolution,
                each.held,
                owned or each.phase in {Phase.ACTIVE, Phase.REVIEW},
                frozenset(need % n for need in needs) if n else frozenset(),
            )
            for n, (each, owned, needs) in enumerate(found)
        ]
    )


def recount(found: list[Sample]) -> Counts:
    """The board's counts by hand, one Work after the other."""
    numbers = dict.fromkeys(attrs.asdict(NOTHING), 0)
    for each in found:
        if each.resolution is not None:
            numbers[each.resolution.value] += 1
            continue
        numbers[each.phase.value] += 1
        numbers["assigned" if each.owned else "unassigned"] += 1
        if each.condition is not Condition.NORMAL:
            numbers[each.condition.value] += 1
        accepted = all(found[need].resolution is Resolution.ACCEPTED for need in each.needs)
        if each.phase is Phase.OPEN and each.condition is Condition.NORMAL and accepted:
            numbers["ready"] += 1
    return Counts(**numbers)


async def test_a_board_counts_what_a_recount_counts(node: InProcessNode) -> None:
    """On whatever Works there can be, written past the daemon, with another run's beside them."""
    s = await stage(node)
    model, beside = await s.work("model"), await node.ok(CreateTeamRun(team_id=TeamRef(s.team.id)))
    varies = {"id", "team_run_id", "phase", "condition", "resolution", "held", "owner_id"}
    same = ", ".join(column for column in attrs.asdict(model) if column not in varies)
    insert = (
        "INSERT INTO works (id, team_run_id, phase, condition, resolution, held, owner_id, "  # noqa: S608
        f"{same}) SELECT ?, ?, ?, ?, ?, ?, ?, {same} FROM works WHERE id = ?"
    )
    node.execute("UPDATE works SET team_run_id = ? WHERE id = ?", beside.id, model.id)

    def write(connection: apsw.Connection, found: list[Sample]) -> None:
        connection.execute("DELETE FROM work_needs; DELETE FROM works WHERE id LIKE 'w_' OR id LIKE 'w__'")
        for n, each in enumerate(found):
            ends = each.resolution and each.resolution.value, each.held and each.held.value
            owner = s.bob.membership.id if each.owned else None
            row = (f"w{n}", s.run.id, each.phase.value, each.condition.value, *ends, owner, model.id)
            connection.execute(insert, row)
            for need in each.needs:
                connection.execute("INSERT INTO work_needs (work_id, needs_id) VALUES (?, ?)", (f"w{n}", f"w{need}"))

    @settings(max_examples=100, deadline=None)
    @given(found=samples())
    def counts_right(found: list[Sample]) -> None:
        with contextlib.closing(apsw.Connection(str(node.store.path))) as connection, connection:
            write(connection, found)
        assert node.store.look(lambda tx: _counts(tx, s.run.id)) == recount(found)

    counts_right()


def _counts(tx: Tx, run_id: TeamRunId) -> Counts:
    """What the handler counts, without the request: a loop does not run inside a loop."""
    return rules.counts(facts.standings(tx, run_id), facts.ready(tx, run_id))


async def test_doing_says_what_a_member_does(node: InProcessNode) -> None:
    s = await stage(node)
    assert await doing(s, s.bob) == (Doing.IDLE, "")
    work = await s.owned(s.bob)
    await s.admit(work, s.bob)
    assert await doing(s, s.bob) == (Doing.IDLE, "")
    work = await s.start(work, s.bob)
    assert await doing(s, s.bob) == (Doing.WORKING, "build it")
    stopped = await ok(s, s.bob, BlockWork(work_id=work.id, expected_version=work.version, reason="no key"))
    assert await doing(s, s.bob) == (Doing.IDLE, "build it")
    await s.submitted(s.bob, "second")
    assert await doing(s, s.bob) == (Doing.AWAITING_REVIEW, "second")
    held = HoldWork(work_id=work.id, expected_version=stopped.version, reason="later")
    await ok(s, s.ann, held)
    assert await doing(s, s.bob) == (Doing.AWAITING_REVIEW, "second")


async def test_a_member_without_a_session_is_absent(node: InProcessNode) -> None:
    s = await stage(node)
    await mail.closed(s, s.cid)
    assert await doing(s, s.cid) == (Doing.ABSENT, "")


async def test_a_session_that_needs_recovery_says_so_whatever_it_works_on(node: InProcessNode) -> None:
    s = await stage(node)
    await s.started(s.bob)
    lost = ReportSession(
        session_id=s.bob.session.id,
        session_gen=s.bob.session.session_gen,
        sup_gen=s.sup_gen,
        cause=SessionCause.LOST,
    )
    await node.ok(lost, plane=Plane.SUPERVISOR, actor=s.run.id)
    assert (await doing(s, s.bob))[0] is Doing.RECOVERY


@pytest.mark.parametrize("session", ["", *SessionState])
@pytest.mark.parametrize("condition", Condition)
@pytest.mark.parametrize("phase", ["", Phase.ACTIVE, Phase.REVIEW])
def test_every_session_and_work_gives_one_word(session: str, phase: str, condition: str) -> None:
    found = rules.doing(session, phase, condition)
    if session == SessionState.RECOVERY_REQUIRED:
        assert found is Doing.RECOVERY
    elif phase == Phase.REVIEW:
        assert found is Doing.AWAITING_REVIEW
    elif not session:
        assert found is Doing.ABSENT
    else:
        assert found is (Doing.WORKING if (phase, condition) == (Phase.ACTIVE, Condition.NORMAL) else Doing.IDLE)
