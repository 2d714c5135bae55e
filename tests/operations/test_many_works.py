"""However many Works a run has: a list and a board take as many rows out of the database as they show, and a board
still counts every one of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import apsw

from client.protocol.board import ListDue, ShowBoard, ShowSummary
from client.protocol.operation import Plane, Request
from client.protocol.work_asks import CreateWork, ListWorks
from tests.support.node import InProcessNode
from tests.support.run import Stage, stage

FEW, MANY = 120, 480


@contextmanager
def rows_taken(node: InProcessNode) -> Iterator[list[int]]:
    """One for each row that SQLite hands to us in the block."""
    taken: list[int] = []

    def took(_: object, row: tuple[apsw.SQLiteValue, ...]) -> tuple[apsw.SQLiteValue, ...]:
        taken.append(1)
        return row

    connections = node.store._connections
    for each in connections:
        each.row_trace = took
    try:
        yield taken
    finally:
        for each in connections:
            each.row_trace = None


async def cost(s: Stage) -> dict[str, int]:
    """Rows of each thing that is looked at often."""
    due = ListDue(team_run_id=s.run.id, sup_gen=s.sup_gen)
    asked: list[tuple[Request[Any], Plane]] = [
        (ListWorks(team_run_id=s.run.id), Plane.OPERATOR),
        (ShowBoard(team_run_id=s.run.id), Plane.OPERATOR),
        (ShowSummary(team_run_id=s.run.id), Plane.OPERATOR),
        (due, Plane.SUPERVISOR),
    ]
    found: dict[str, int] = {}
    for ask, plane in asked:
        with rows_taken(s.node) as taken:
            await s.node.ok(ask, plane=plane, actor=s.run.id if plane is Plane.SUPERVISOR else "")
        found[type(ask).__name__] = len(taken)
    return found


async def more(s: Stage, begin: int, end: int) -> None:
    for n in range(begin, end):
        await s.node.ok(CreateWork(team_run_id=s.run.id, title=f"part {n}", completion_criteria="it works"))


async def test_list_and_board_never_load_all_works_and_counts_stay_exact(node: InProcessNode) -> None:
    s = await stage(node)
    await s.submitted(s.bob)
    await more(s, 0, FEW)
    few = await cost(s)
    await more(s, FEW, MANY)
    assert await cost(s) == few
    assert few["ListWorks"] < FEW
    board = await node.ok(ShowBoard(team_run_id=s.run.id))
    assert (board.counts.open, board.counts.ready, board.counts.review) == (MANY, MANY, 1)
    assert (board.counts.assigned, board.counts.unassigned) == (1, MANY)
    assert len(board.works) == 50 + 1
