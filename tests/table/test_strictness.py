"""Strict means exact: every field of every operation, fed every wrong type and every value just beyond a bound."""

from __future__ import annotations

import enum
import math
from typing import Any

import pytest

from client.protocol import codec
from client.protocol.operation import Operation
from client.protocol.refusals import Code, Refusal
from client.protocol.shape import Shape, shapes
from client.protocol.table import OPERATIONS
from tests.support.node import InProcessNode
from tests.support.samples import well_formed

with_fields = pytest.mark.parametrize("noun", sorted({op.noun for op in OPERATIONS}))

#: One value of every type that msgpack knows, some of which lie about what they are.
WRONG: list[Any] = [
    "nonsense",
    "",
    "1",
    1,
    -1,
    2**63,
    -(2**63),
    2**64 - 1,
    True,
    False,
    1.0,
    1.5,
    math.nan,
    math.inf,
    [],
    ["nonsense"],
    [1],
    [None],
    [b"nonsense"],
    [[]],
    {},
    {"a": 1},
    None,
    b"",
    b"nonsense",
]


def fits(shape: Shape, value: object) -> bool:
    """Whether the type of ``value`` is the one declared; written apart from the codec."""
    if value is None:
        return shape.optional
    if shape.many:
        return type(value) is list and all(type(item) is str for item in value)
    if shape.choices is not None:
        return type(value) is str and value in shape.choices
    if shape.kind is int:
        return type(value) is int and -(2**63) <= value < 2**63
    return type(value) is shape.kind


def fields(noun: str) -> list[tuple[Operation, Shape]]:
    """Every field of every operation of a noun."""
    return [(op, shape) for op in OPERATIONS if op.noun == noun for shape in shapes(op.request)]


async def refusal(node: InProcessNode, op: Operation, body: dict[str, Any]) -> Refusal:
    outcome = await node.begin(op.name, body, plane=min(op.planes), actor="").outcome()
    assert isinstance(outcome, Refusal), (body, outcome)
    return outcome


@with_fields
async def test_every_wrong_type_is_refused_by_the_name_of_its_field(node: InProcessNode, noun: str) -> None:
    before, tried = node.rows(), 0
    for op, shape in fields(noun):
        good = well_formed(op)
        wrong = [value for value in WRONG if not fits(shape, value)]
        assert len(wrong) >= 15
        for value in wrong:
            tried += 1
            said = await refusal(node, op, {**good, shape.name: value})
            assert (said.code, said.about) == (Code.MALFORMED, "body"), (op.name, shape.name, value)
            assert f"@ body.{shape.name}" in said.lifted_by, (op.name, shape.name, value)
    assert tried
    assert node.rows() == before


def beyond(shape: Shape) -> list[tuple[Any, Code]]:
    """Values of the right type just outside the bounds of ``shape``, and what they are refused with."""
    found: list[tuple[Any, Code]] = []
    most, least, number = shape.bounds.most, shape.bounds.least, shape.kind is int
    if most is not None:
        large = most + 1 if number else ["x"] * (most + 1) if shape.many else "x" * (most + 1)
        found.append((large, Code.LIMIT_EXCEEDED))
    if least is not None:
        assert number or least == 1
        found.append((least - 1 if number else "", Code.MALFORMED))
    if shape.many:
        found.append((["x" * (shape.bounds.item + 1)], Code.LIMIT_EXCEEDED))
    if shape.many or shape.bounds.line:
        odd = ["two\nlines", "bell\a", "\x1b[31mred", "right\u202eto left", "nul\0", "del\x7f"]
        found += [([text] if shape.many else text, Code.MALFORMED) for text in odd]
    return found


def within(shape: Shape) -> list[Any]:
    """Values at the bounds of ``shape``."""
    if shape.choices is not None:
        return list(shape.choices)
    if shape.kind is int:
        return [each for each in (shape.bounds.least, shape.bounds.most) if each is not None]
    if shape.kind is bool:
        return [True, False]
    assert shape.bounds.most is not None
    if shape.many:
        return [[], ["x" * shape.bounds.item] * shape.bounds.most, ["größer 字 🙂"]]
    return ["x" * (shape.bounds.least or 0), "字" * shape.bounds.most, "größer 字 🙂"]


@with_fields
async def test_every_value_beyond_a_bound_is_refused_by_the_name_of_its_field(node: InProcessNode, noun: str) -> None:
    before = node.rows()
    for op, shape in fields(noun):
        good = well_formed(op)
        for value, code in beyond(shape):
            said = await refusal(node, op, {**good, shape.name: value})
            assert (said.code, said.about) == (code, shape.name), (op.name, shape.name, value)
            assert said.lifted_by.startswith(f"give {shape.name} ")
        for value in within(shape):
            admitted = codec.from_plain({**good, shape.name: value}, op.request)
            assert isinstance(admitted, op.request), (op.name, shape.name, value, admitted)
    assert node.rows() == before


@with_fields
async def test_every_required_field_is_asked_for_by_name(node: InProcessNode, noun: str) -> None:
    for op, shape in fields(noun):
        body = {name: value for name, value in well_formed(op).items() if name != shape.name}
        if shape.required:
            said = await refusal(node, op, body)
            assert said.code is Code.MALFORMED
            assert f"this field is required @ body.{shape.name}" in said.lifted_by
        else:
            assert isinstance(codec.from_plain(body, op.request), op.request)


async def test_every_unknown_field_is_refused_by_name(node: InProcessNode) -> None:
    before = node.rows()
    for op in OPERATIONS:
        for name in ("nonsense", "Name", "id", ""):
            said = await refusal(node, op, {**well_formed(op), name: 1})
            assert said == Refusal(
                code=Code.MALFORMED, about="body", lifted_by=f"correct extra fields found ({name}) @ body"
            ), op.name
    assert node.rows() == before


async def test_all_faults_are_named_at_once(node: InProcessNode) -> None:
    (op,) = [op for op in OPERATIONS if op.name == "agent.create"]
    said = await refusal(node, op, {"name": 1, "role": None, "skills": "x", "odd": 1})
    for fault in ("@ body.name", "@ body.role", "@ body.skills", "(odd)"):
        assert fault in said.lifted_by


def test_a_choice_is_refused_with_the_choices() -> None:
    (op,) = [op for op in OPERATIONS if op.name == "agent.list"]
    said = codec.from_plain({"status": "odd"}, op.request)
    assert said == Refusal(
        code=Code.MALFORMED,
        about="body",
        lifted_by="correct expected one of active, paused, retired @ body.status",
    )


class _Colour(enum.StrEnum):
    RED = "red"


def test_a_hook_for_text_does_not_let_any_text_pass_for_a_choice() -> None:
    """Cattrs gives a hook for ``str`` every ``StrEnum`` too."""
    assert codec.structure("red", _Colour) is _Colour.RED
    with pytest.raises(TypeError):
        codec.structure("blue", _Colour)
