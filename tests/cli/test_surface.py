"""What is said in two places is the same in both: constants of the light door, codes, columns."""

from __future__ import annotations

import ast
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest

from client.cli import ask
from client.cli.arguments import parse
from client.cli.index import CODES, NOUNS
from client.cli.main import verbs_of
from client.cli.render import COLUMNS
from client.protocol import cli_index, frames, hello
from client.protocol.operation import Operation
from client.protocol.reference import COMMAND_LINE
from client.protocol.refusals import ROWS
from client.protocol.shape import shapes
from client.protocol.table import OPERATIONS
from daemon.cannot_start import StartCode

ROOT = Path(__file__).parents[2]


def test_the_light_door_speaks_the_protocol_of_the_table() -> None:
    assert ask.PROTOCOL == hello.PROTOCOL
    assert (ask.LARGEST_REQUEST, ask.LARGEST_ANSWER) == (frames.MAX_REQUEST, frames.MAX_ANSWER)
    assert {code: row[:2] for code, row in CODES.items()} == {c.value: (r.exit, r.retry) for c, r in ROWS.items()}


@pytest.mark.parametrize("op", OPERATIONS, ids=lambda op: str(op.name))
def test_every_operation_can_be_typed_with_every_field(op: Operation) -> None:
    words: list[str] = []
    for shape in shapes(op.request):
        flag = cli_index.flag(shape)
        value = "7" if shape.kind in (int, float) else shape.choices[-1] if shape.choices else "x"
        words += [flag] if shape.kind is bool else [flag, value] * (1 + shape.many)
    body, options = parse(op.noun, op.verb, verbs_of(op.noun)[op.verb], [*words, "--json"])
    assert list(body) == [shape.name for shape in shapes(op.request)]
    assert options["json"] is True
    for shape in shapes(op.request):
        assert isinstance(body[shape.name], list if shape.many else str if issubclass(shape.kind, str) else shape.kind)


def said_codes() -> Iterator[str]:
    """Every code that the source of the command line says by itself."""
    for path in (ROOT / "client/cli").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute):
                called = node.func.id if isinstance(node.func, ast.Name) else node.func.attr
                if called == "declined" and isinstance(node.args[0], ast.Constant):
                    yield str(node.args[0].value)


def test_every_code_that_the_command_line_says_is_in_the_reference() -> None:
    own = set(said_codes()) - set(CODES) - {code.value for code in StartCode}
    assert own | {"NODE_DAEMON_UNAVAILABLE"} == set(COMMAND_LINE)


def test_every_exit_status_is_used_by_some_code() -> None:
    assert {status for status, *_ in CODES.values()} | {status for *_, status in COMMAND_LINE.values()} == {
        1,
        2,
        3,
        4,
        5,
        130,  # as every shell has it of an interrupt
    }


def records() -> Iterator[tuple[str, type[Any]]]:
    """The noun or the name of each list in an answer, and the record of its rows."""
    for op in OPERATIONS:
        hints = typing.get_type_hints(op.response)
        for field in attrs.fields(op.response):
            if typing.get_origin(hints[field.name]) is list:
                (row,) = typing.get_args(hints[field.name])
                if attrs.has(row):
                    yield (op.noun if field.name == "items" else field.name), row


def columns_of(row: type[Any]) -> set[str]:
    """The fields of a row, and those of a record in it as the renderer lays them flat."""
    found: set[str] = set()
    for field in attrs.fields(row):
        kind = typing.get_type_hints(row)[field.name]
        inner = {f.name for f in attrs.fields(kind)} if attrs.has(kind) else set[str]()
        found |= {f"{field.name}_id" if name == "id" else name for name in inner} or {field.name}
    return found


def test_every_column_of_a_table_is_a_field_of_its_record() -> None:
    shown = {kind: row for kind, row in records() if kind in COLUMNS}
    assert set(shown) == set(COLUMNS)
    for kind, row in shown.items():
        assert set(COLUMNS[kind]) <= columns_of(row), kind


def test_a_noun_without_help_is_not_dropped_in_silence() -> None:
    with pytest.raises(ValueError, match="NOUNS"):
        cli_index.modules(OPERATIONS, {noun: text for noun, text in NOUNS.items() if noun != "team"})
