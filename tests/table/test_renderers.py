"""What is rendered from the table says what the table says: the schema, the command line, the reference."""

from __future__ import annotations

import functools
import importlib.machinery
import importlib.util
import json
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import attrs
import pytest

from client.cli import index
from client.cli.arguments import parse
from client.cli.main import verbs_of
from client.protocol import cli_index, codec, json_schema, reference, table
from client.protocol.digest import DIGEST
from client.protocol.lifting import LIFTED_BY
from client.protocol.operation import Effect, Operation
from client.protocol.refusals import COMMON, ROWS, WRITING, Code
from client.protocol.shape import Shape, shapes
from client.protocol.table import OPERATIONS, digest
from daemon import cannot_start
from tests.support.samples import well_formed
from tests.table.test_strictness import WRONG, beyond, fits, within

ROOT = Path(__file__).parents[2]
every_operation = pytest.mark.parametrize("op", OPERATIONS, ids=lambda op: str(op.name))


@functools.cache
def document() -> dict[str, Any]:
    written = json.loads(json_schema.document(OPERATIONS))
    assert isinstance(written, dict)
    return written


@functools.cache
def operations_page() -> str:
    return reference.operations(OPERATIONS)


def schema(op: Operation) -> dict[str, Any]:
    found: dict[str, Any] = document()["operations"][op.name]
    return found


def admits(field: dict[str, Any], value: Any) -> bool:  # noqa: ANN401 — any value that JSON can hold
    """The part of JSON Schema that we use, as its specification reads; numbers and texts alike."""
    if "anyOf" in field:
        return any(admits(one, value) for one in field["anyOf"])
    if "enum" in field and value not in field["enum"]:
        return False
    kinds: dict[str, Any] = {"string": str, "integer": int, "boolean": bool, "array": list, "null": type(None)}
    if type(value) is not kinds[field["type"]]:
        return False
    size = value if field["type"] == "integer" else len(value) if field["type"] in {"string", "array"} else 0
    least = field.get("minimum", field.get("minLength", field.get("minItems")))
    most = field.get("maximum", field.get("maxLength", field.get("maxItems")))
    if (least is not None and size < least) or (most is not None and size > most):
        return False
    return all(admits(field["items"], item) for item in value) if field["type"] == "array" else True


@every_operation
def test_the_schema_lists_every_field_and_no_other(op: Operation) -> None:
    written = schema(op)
    assert written["input"]["additionalProperties"] is False
    assert list(written["input"]["properties"]) == [shape.name for shape in shapes(op.request)]
    assert written["input"]["required"] == [shape.name for shape in shapes(op.request) if shape.required]
    assert written["planes"] == sorted(op.planes)
    assert set(written["refuses"]) == op.codes
    assert written["description"] == op.summary
    # A wait changes nothing, but a program that only reads may not stop a node or make a file.
    assert written["reads_only"] == (op.effect in {Effect.READ, Effect.SCAN, Effect.STREAM})


@every_operation
def test_the_schema_admits_what_the_codec_admits(op: Operation) -> None:
    """For every field: each wrong type, each value at a bound, and each just beyond it."""
    for shape in shapes(op.request):
        field = schema(op)["input"]["properties"][shape.name]
        for value in within(shape):
            assert admits(field, value), (shape.name, value)
        for value, code in beyond(shape):
            if code is Code.LIMIT_EXCEEDED or isinstance(value, int) or value == "":
                assert not admits(field, value), (shape.name, value)
        for value in WRONG:
            # That an integer has 64 bits is the wire's limit; JSON Schema has no word for it.
            if not fits(shape, value) and type(value) is not int:
                assert not admits(field, value), (shape.name, value)


@every_operation
def test_a_default_of_the_schema_is_the_default_of_the_record(op: Operation) -> None:
    properties = schema(op)["input"]["properties"]
    defaults = {name: field["default"] for name, field in properties.items() if "default" in field}
    plain = well_formed(op)
    assert {name: plain[name] for name in defaults} == defaults
    assert set(plain) == {*defaults, *schema(op)["input"]["required"]}


def flags(shape: Shape, value: str) -> list[str]:
    return [cli_index.flag(shape)] if shape.kind is bool else [cli_index.flag(shape), value]


def given(shape: Shape) -> tuple[str, object]:
    """What somebody types for a field, and what the body then holds."""
    if shape.choices is not None:
        return shape.choices[-1], shape.choices[-1]
    if shape.kind is int:
        number = max(7, shape.bounds.least or 0)
        return str(number), number
    if shape.kind is bool:
        return "", True
    return ("/some/where", "/some/where") if shape.path else ("words", ["words"] if shape.many else "words")


@every_operation
def test_the_command_line_asks_for_what_the_record_wants(op: Operation) -> None:
    """Every field given by its flag arrives under its name; none given but what is required leaves the defaults."""
    row = verbs_of(op.noun)[op.verb]
    assert row[:3] == (op.name, op.effect.value, op.summary)
    words: list[str] = []
    expected: dict[str, object] = {}
    for shape in shapes(op.request):
        typed, arrives = given(shape)
        words += flags(shape, typed)
        expected[shape.name] = arrives
    body, _ = parse(op.noun, op.verb, row, words)
    assert body == expected
    assert isinstance(codec.from_plain(body, op.request), op.request)
    least = [word for shape in shapes(op.request) if shape.required for word in flags(shape, given(shape)[0])]
    body, _ = parse(op.noun, op.verb, row, least)
    assert isinstance(codec.from_plain(body, op.request), op.request)


def test_the_command_line_knows_every_code_as_the_table_does() -> None:
    assert index.DIGEST == DIGEST
    assert {code: (row.exit, row.retry.value, row.meaning) for code, row in ROWS.items()} == index.CODES
    assert set(index.NOUNS) == {op.noun for op in OPERATIONS}


def test_a_flag_is_one_field_of_its_operation() -> None:
    for op in OPERATIONS:
        names = [cli_index.flag(shape) for shape in shapes(op.request)]
        assert len(set(names)) == len(names), op.name


@every_operation
def test_the_reference_shows_every_operation_with_its_fields_and_refusals(op: Operation) -> None:
    text = operations_page()
    _, _, rest = text.partition(f"## {op.name}\n")
    chapter = rest.partition("\n## ")[0]
    rows = re.findall(r"^\| `(\w+)` \| `(--[\w-]+)` \|", chapter, re.MULTILINE)
    assert rows == [(shape.name, cli_index.flag(shape)) for shape in shapes(op.request)]
    named = set(re.findall(r"`([A-Z_]+)`", chapter))
    assert named == {str(code) for code in op.codes - {*COMMON, *WRITING}}
    assert all(shape.help in chapter for shape in shapes(op.request))


def test_the_reference_says_of_every_code_what_lifts_it() -> None:
    """Of those of a daemon that did not start and of the command line too; each command there is one."""
    assert set(LIFTED_BY) == set(Code)
    assert set(cannot_start.LIFTED_BY) == set(cannot_start.StartCode)
    page = (ROOT / "docs/refusals.md").read_text()
    rows = [re.split(r" \| ", line.strip("| ")) for line in page.splitlines() if line.startswith("| `")]
    lifts = {row[0].strip("`"): row[2] for row in rows}
    start = {code.value: text for code, text in cannot_start.LIFTED_BY.items()}
    said = {code: lifted_by for code, (_, lifted_by, _) in reference.COMMAND_LINE.items()}
    assert lifts == {**{code.value: text for code, text in LIFTED_BY.items()}, **start, **said}
    assert all(lifts.values())


def test_the_reference_shows_every_code_with_who_refuses_so() -> None:
    lines = {}
    for line in reference.refusals(OPERATIONS, {}).splitlines():
        if match := re.match(r"\| `([A-Z_]+)` \| (.*) \| .* \| (\w+) \| (\d) \| (\d+) \| (.*) \|$", line):
            lines[match[1]] = match.groups()[1:]
    for code, row in ROWS.items():
        *said, by = lines[code]
        assert said == [row.meaning, row.retry.value, str(row.exit), str(row.http)]
        assert by.strip()
        if code not in {*COMMON, *WRITING}:
            listed = set(re.findall(r"`([\w.-]+)`", by))
            assert listed == {op.name for op in OPERATIONS if code in op.refuses}


def _generate() -> ModuleType:
    loader = importlib.machinery.SourceFileLoader("generate", str(ROOT / ".ci" / "generate"))
    spec = importlib.util.spec_from_loader("generate", loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


def test_the_files_that_are_committed_are_what_is_rendered() -> None:
    generate = _generate()
    assert generate.main(["--check"]) == 0


def test_the_digest_changes_with_everything_a_client_must_agree_on(monkeypatch: pytest.MonkeyPatch) -> None:
    first = OPERATIONS[0]
    for changed in (
        attrs.evolve(first, planes=frozenset()),
        attrs.evolve(first, effect=Effect.READ),
        attrs.evolve(first, refuses=(Code.NOT_FOUND,)),
        attrs.evolve(first, request=OPERATIONS[1].request),
        attrs.evolve(first, name="agent.make"),
    ):
        monkeypatch.setattr(table, "OPERATIONS", (changed, *OPERATIONS[1:]))
        assert digest() != DIGEST
    monkeypatch.setattr(table, "OPERATIONS", OPERATIONS)
    assert digest() == DIGEST
