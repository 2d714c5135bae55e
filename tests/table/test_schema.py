"""The schema says what the records say: columns and fields, CHECK lists and enums, states that events lead to."""

from __future__ import annotations

import contextlib
import enum
import re
import typing
from typing import Any

import apsw
import attrs
import pytest

from client.protocol.attempt import Receipt
from client.protocol.membership import MessageSubscription
from client.protocol.message import Message
from daemon.kernel.agent import AGENT
from daemon.kernel.attempt import CUSTODY, DELIVERY
from daemon.kernel.delegation import DELEGATION
from daemon.kernel.effect import EFFECT
from daemon.kernel.membership import MEMBERSHIP
from daemon.kernel.message import MAIL_LIFE
from daemon.kernel.session import SESSION
from daemon.kernel.team import TEAM
from daemon.kernel.team_run import MEMBER_RUN, TEAM_RUN
from daemon.operations.quarantine import _KEEPERS as KEEPERS
from store import migrate

RECORDS: dict[str, type[Any]] = {
    **{keeper.table: keeper.cls for keeper in KEEPERS},
    "messages": Message,
    "receipts": Receipt,
    "subscriptions": MessageSubscription,
}
#: Lists in a CHECK of a table that no record is made of: a flag.
FLAGS = {("node", "open"): ["0", "1"], ("check_results", "passed"): ["0", "1"]}
#: Members of an enum that a column never holds: a hold is put on what is not on hold yet.
NEVER = {("works", "held"): {"'on_hold'"}}

each_record = pytest.mark.parametrize(("table", "record"), RECORDS.items(), ids=list(RECORDS))


def tables() -> dict[str, str]:
    """The statement that makes each table."""
    return {match[1]: text for text in migrate.schema() if (match := re.match(r"CREATE TABLE (\w+)", text))}


def lists(table: str) -> dict[str, list[str]]:
    """Column to the values that its own CHECK admits; one that was added stands behind a comma."""
    found = re.findall(r"(?:^|,)\s*(\w+) [^,]*CHECK \(\1 IN\s+\(([^)]*)\)\)", tables()[table], re.MULTILINE)
    return {column: re.findall(r"[\w']+", values) for column, values in found}


def enums(record: type[Any]) -> dict[str, type[enum.Enum]]:
    hints = typing.get_type_hints(record)
    kinds = {f.name: typing.get_args(hints[f.name]) or (hints[f.name],) for f in attrs.fields(record)}
    return {name: kind for name, (kind, *_) in kinds.items() if isinstance(kind, type) and issubclass(kind, enum.Enum)}


def admits(table: str, record: type[Any]) -> dict[str, set[str]]:
    """Column to the values that it should admit."""
    said = {
        name: {repr(member.value) for member in kind} - NEVER.get((table, name), set())
        for name, kind in enums(record).items()
    }
    hints = typing.get_type_hints(record)
    return said | {f.name: {"0", "1"} for f in attrs.fields(record) if hints[f.name] is bool}


@each_record
def test_columns_are_the_fields_of_the_record(table: str, record: type[Any]) -> None:
    with contextlib.closing(apsw.Connection(":memory:")) as connection:
        migrate.migrate(connection)
        columns = connection.execute(f"SELECT name, \"notnull\" FROM pragma_table_info('{table}')").fetchall()  # noqa: S608
    assert [name for name, _ in columns] == ["n", *(field.name for field in attrs.fields(record))]
    hints = typing.get_type_hints(record)
    may_be_null = {name for name, required in columns if not required} - {"n"}
    assert may_be_null == {name for name, hint in hints.items() if type(None) in typing.get_args(hint)}


@each_record
def test_a_check_lists_exactly_the_members_of_the_enum(table: str, record: type[Any]) -> None:
    assert {column: set(values) for column, values in lists(table).items()} == admits(table, record)


def test_no_other_list_stands_in_a_check() -> None:
    others = {
        (table, column): values for table in tables().keys() - RECORDS.keys() for column, values in lists(table).items()
    }
    assert others == FLAGS


def test_every_table_is_strict() -> None:
    assert [name for name, text in tables().items() if not text.endswith((" STRICT", " STRICT, WITHOUT ROWID"))] == []


@pytest.mark.parametrize(
    ("lifecycle", "table", "column"),
    [
        (AGENT, "agents", "status"),
        (CUSTODY, "bindings", "custody"),
        (DELEGATION, "delegations", "state"),
        (DELIVERY, "work_deliveries", "state"),
        (EFFECT, "effects", "state"),
        (MAIL_LIFE, "message_deliveries", "state"),
        (MEMBERSHIP, "memberships", "state"),
        (MEMBER_RUN, "member_runs", "coordination"),
        (SESSION, "sessions", "state"),
        (TEAM, "teams", "state"),
        (TEAM_RUN, "team_runs", "state"),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_a_column_admits_exactly_the_states_of_its_lifecycle(lifecycle: Any, table: str, column: str) -> None:  # noqa: ANN401
    assert sorted(lists(table)[column]) == sorted(repr(state.value) for state in lifecycle.moves)


def types(connection: apsw.Connection, table: str) -> dict[str, str]:
    found = connection.execute("SELECT name, lower(type) FROM pragma_table_info(?)", (table,))
    return {str(name): str(kind) for name, kind in found}


def insert(connection: apsw.Connection, table: str, row: dict[str, Any]) -> None:
    names, marks = ", ".join(row), ", ".join("?" * len(row))
    connection.execute(f"INSERT INTO {table} ({names}) VALUES ({marks})", tuple(row.values()))  # noqa: S608


@each_record
def test_the_database_itself_refuses_what_is_no_member(table: str, record: type[Any]) -> None:
    """Each CHECK is tried, not only read."""
    with contextlib.closing(apsw.Connection(":memory:")) as connection:
        migrate.migrate(connection)
        connection.execute("PRAGMA foreign_keys = OFF")
        row = {column: 1 if kind == "integer" else "x" for column, kind in types(connection, table).items()}
        for column, kind in enums(record).items():
            row |= {column: next(iter(kind)).value}
        for column in enums(record):
            with pytest.raises(apsw.ConstraintError, match=rf"CHECK constraint failed: {column} IN"):
                insert(connection, table, {**row, column: "nonsense"})
