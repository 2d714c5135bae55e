"""How SQLite finds mail, boards and delegations: by an index, never by reading every Work, event or delivery."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from types import ModuleType

import apsw
import pytest

from store import board, delegation, events, message, migrate, work
from store.sql import Sql

#: An index of few rows, read whole: the attempts that are live.
FEW = {"SCAN b USING INDEX bindings_one_live"}


def statements(*modules: ModuleType) -> list[tuple[str, Sql]]:
    return [
        (f"{module.__name__}.{name}", each)
        for module in modules
        for name, each in vars(module).items()
        if isinstance(each, Sql)
    ]


@pytest.fixture(scope="module")
def migrated() -> Iterator[apsw.Connection]:
    with contextlib.closing(apsw.Connection(":memory:")) as connection:
        migrate.migrate(connection)
        yield connection


def plan(connection: apsw.Connection, statement: Sql) -> list[str]:
    names = dict.fromkeys(re.findall(r":(\w+)", statement.text))
    return [str(row[3]) for row in connection.execute(f"EXPLAIN QUERY PLAN {statement.text}", names)]


def _name(each: object) -> str:
    return each if isinstance(each, str) else ""


@pytest.mark.parametrize(("name", "statement"), statements(message, board, delegation), ids=_name)
def test_no_statement_reads_a_whole_table(migrated: apsw.Connection, name: str, statement: Sql) -> None:
    steps = plan(migrated, statement)
    assert [
        step for step in steps if step.startswith("SCAN") and step not in FEW and "VIRTUAL TABLE" not in step
    ] == [], (name, steps)


@pytest.mark.parametrize(
    ("statement", "index"),
    [
        (message._QUEUED, "message_deliveries_waiting"),
        (message._QUEUED_IN_RUN, "message_deliveries_waiting"),
        (message._QUEUED_FOR, "message_deliveries_unaddressed"),
        (message._UNADDRESSED, "message_deliveries_unaddressed"),
        (message._TO_TAKE, "message_deliveries_unaddressed"),
        (message._WAITING, "message_deliveries_waiting"),
        (message._UNSETTLED, "message_deliveries_unsettled"),
        (message._EVERYTHING, "message_deliveries_by_recipient"),
        (message._UNTOLD, "message_deliveries_untold"),
        (message._UNTOLD_ANYWHERE, "message_deliveries_untold"),
        (message._DUE, "message_deliveries_expiring"),
        (message._NEXT_EXPIRY, "message_deliveries_expiring"),
        (message._OF_RECIPIENT, "message_deliveries_waiting"),
        (message._OF_RUN, "message_deliveries_waiting_of_run"),
        (message._PAGE, "messages_by_run"),
        (board._STANDINGS, "works_by_standing"),
        (board._READY, "works_by_standing"),
        (board._DOES, "works_by_owner"),
        (board._DUE, "works_by_owner"),
        (board._BLOCKED, "events_by_stream"),
        (board._MEMBERS, "message_deliveries_waiting"),
        (board._ORPHANED, "bindings_one_live"),
        (work._OF_OWNER, "works_by_owner"),
        (work._OF_OWNER_IN_PHASE, "works_by_owner"),
        (work._CLAIMABLE, "works_claimable"),
        (events._OF_RUN, "events_by_run"),
        (events._OF_STREAM, "events_by_stream"),
    ],
    ids=_name,
)
def test_a_statement_uses_the_index_that_was_made_for_it(migrated: apsw.Connection, statement: Sql, index: str) -> None:
    used = {found[1] for step in plan(migrated, statement) if (found := re.search(r"INDEX (\w+)", step))}
    assert index in used, plan(migrated, statement)


@pytest.mark.parametrize("statement", [message._PAGE, message._EVERYTHING, message._UNSETTLED, message._WAITING])
def test_a_page_is_found_in_its_order(migrated: apsw.Connection, statement: Sql) -> None:
    """So its cost is that of a page, not that of the whole list."""
    assert not [step for step in plan(migrated, statement) if "TEMP B-TREE" in step]
