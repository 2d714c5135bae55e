"""Where a Work may stand and what moves it: every standing, every cause, and the CHECKs of the real table."""

from __future__ import annotations

import itertools
from pathlib import Path

import apsw
import pytest

from client.protocol.refusals import Code, Refusal
from client.protocol.work import Condition, Phase, Resolution
from daemon.kernel.work import FROM, LEGAL, WORK, Standing, WorkCause, next_standing
from store import maintenance

#: The full product of the four axes; the fourth is the condition that a hold keeps.
PRODUCT = [Standing(*each) for each in itertools.product(Phase, Condition, [None, *Resolution], [None, *Condition])]
PAIRS = list(itertools.product(sorted(LEGAL, key=repr), WorkCause))

OPEN, A, R = Phase.OPEN, Phase.ACTIVE, Phase.REVIEW
N, B, H = Condition.NORMAL, Condition.BLOCKED, Condition.ON_HOLD

#: The whole table of design 3.2, written down a second time: where each cause is legal, and where it leads.
MOVES: dict[WorkCause, dict[tuple[Phase, Condition], tuple[Phase, Condition]]] = {
    WorkCause.ASSIGN: {(OPEN, N): (OPEN, N), (OPEN, H): (OPEN, H)},
    WorkCause.CLAIM: {(OPEN, N): (OPEN, N)},
    WorkCause.RELEASE: {(OPEN, N): (OPEN, N), (OPEN, H): (OPEN, H)},
    WorkCause.START: {(OPEN, N): (A, N)},
    WorkCause.BLOCK: {(A, N): (A, B)},
    WorkCause.RESUME: {(A, B): (A, N)},
    WorkCause.HOLD: {(OPEN, N): (OPEN, H), (A, N): (A, H), (A, B): (A, H), (R, N): (R, H)},
    WorkCause.UNHOLD: {(OPEN, H): (OPEN, N), (A, H): (A, N), (R, H): (R, N)},
    WorkCause.SUBMIT: {(A, N): (R, N)},
    WorkCause.REQUEST_CHANGES: {(R, N): (OPEN, N)},
    WorkCause.ACCEPT: {(R, N): (Phase.CLOSED, N)},
    WorkCause.RECOVER: {(OPEN, N): (OPEN, N), (A, N): (OPEN, N), (A, B): (OPEN, N)},
    WorkCause.REDELIVER: {(OPEN, N): (OPEN, N)},
    WorkCause.VERIFY: {(R, N): (R, N)},
    **{
        cause: {(phase, c): (Phase.CLOSED, N) for phase in (OPEN, A, R) for c in Condition}
        for cause in (WorkCause.CANCEL, WorkCause.FAIL)
    },
    **{
        cause: {(phase, c): (phase, c) for phase in (OPEN, A, R) for c in Condition}
        for cause in (WorkCause.NEEDS, WorkCause.UPDATE, WorkCause.RETARGET)
    },
}
#: Causes that a hold stands in the way of.
HELD_BACK = {
    WorkCause.CLAIM,
    WorkCause.START,
    WorkCause.BLOCK,
    WorkCause.RESUME,
    WorkCause.SUBMIT,
    WorkCause.REQUEST_CHANGES,
    WorkCause.ACCEPT,
    WorkCause.RECOVER,
    WorkCause.REDELIVER,
    WorkCause.VERIFY,
}


@pytest.mark.parametrize(("now", "cause"), PAIRS, ids=str)
def test_every_standing_and_cause_lead_where_the_table_says(now: Standing, cause: WorkCause) -> None:
    """To a legal standing, or to a refusal that names the Work and what would be possible."""
    after = next_standing(now, cause, "w", "3")
    there = None if now.resolution else MOVES[cause].get((now.phase, now.condition))
    if there is None:
        held = now.condition is H and now.phase in FROM[cause][0] and cause in HELD_BACK
        assert isinstance(after, Refusal)
        assert after.code is (Code.WORK_ON_HOLD if held else Code.INVALID_STATE_TRANSITION)
        assert (after.about, after.lifted_by != "") == ("work/w", True)
        return
    assert isinstance(after, Standing)
    assert after in LEGAL
    if cause is WorkCause.UNHOLD:
        assert after == Standing(now.phase, now.held or N)
    else:
        assert (after.phase, after.condition) == there
    if cause is WorkCause.HOLD:
        assert after.held is now.condition


def test_every_cause_stands_in_the_table() -> None:
    assert set(MOVES) == set(WorkCause) == set(FROM)


def test_every_resolution_comes_of_its_own_cause() -> None:
    for cause, resolution in (
        (WorkCause.ACCEPT, Resolution.ACCEPTED),
        (WorkCause.CANCEL, Resolution.CANCELLED),
        (WorkCause.FAIL, Resolution.FAILED),
    ):
        after = next_standing(Standing(R, N), cause)
        assert after == Standing(Phase.CLOSED, N, resolution)


def test_every_legal_standing_can_be_reached() -> None:
    """From an open Work, and no other standing can."""
    found = {Standing(OPEN, N)}
    fresh = set(found)
    while fresh:
        after = {next_standing(now, cause) for now in fresh for cause in WorkCause}
        fresh = {each for each in after if isinstance(each, Standing)} - found
        found |= fresh
    assert found == LEGAL


def test_what_is_closed_stays_closed() -> None:
    for now, cause in PAIRS:
        if now.phase is Phase.CLOSED:
            assert isinstance(next_standing(now, cause), Refusal)


def test_the_table_takes_exactly_the_legal_standings(tmp_path: Path) -> None:
    """Real SQLite, the product of all four axes: the CHECKs of the schema are the kernel's rule."""
    path = tmp_path / "node.db"
    maintenance.take(path)
    connection = apsw.Connection(str(path))
    connection.execute("PRAGMA foreign_keys = OFF")
    taken = {standing for standing in PRODUCT if _stored(connection, standing)}
    connection.close()
    assert taken == LEGAL
    assert len(PRODUCT) == 4 * 3 * 4 * 4


def test_a_work_in_progress_has_an_owner(tmp_path: Path) -> None:
    path = tmp_path / "node.db"
    maintenance.take(path)
    connection = apsw.Connection(str(path))
    connection.execute("PRAGMA foreign_keys = OFF")
    ownerless = {phase for phase in Phase if _stored(connection, _somewhere(phase), owner=None)}
    connection.close()
    assert ownerless == {Phase.OPEN, Phase.CLOSED}


def _somewhere(phase: Phase) -> Standing:
    return min((s for s in LEGAL if s.phase is phase and s.condition is N), key=repr)


def _stored(connection: apsw.Connection, standing: Standing, owner: str | None = "m") -> bool:
    """Whether the table takes a row that stands there."""
    values = {
        "owner": owner,
        "phase": standing.phase.value,
        "condition": standing.condition.value,
        "resolution": standing.resolution.value if standing.resolution else None,
        "held": standing.held.value if standing.held else None,
    }
    try:
        connection.execute(
            """INSERT INTO works (id, version, team_id, team_run_id, owner_id, title, context, criteria, phase,
                   condition, held, resolution, claim_mode, eligible, required_role, priority, needs, checks, reason,
                   result_summary, created_by, created_at, updated_at)
               VALUES (hex(randomblob(8)), 1, 't', 'r', :owner, 'x', '', '[]', :phase, :condition, :held, :resolution,
                   'team_claim', '[]', '', 'normal', '[]', '[]', '', '', 'operator', 1, 1)""",
            values,
        )
    except apsw.ConstraintError:
        return False
    return True


def test_the_drawing_shows_every_move() -> None:
    """And nothing that moves no axis."""
    drawn = {line.rpartition(": ")[2] for line in WORK.mermaid().splitlines() if ": " in line}
    assert drawn == {cause.value for cause, moves in MOVES.items() if any(a != b for a, b in moves.items())}
