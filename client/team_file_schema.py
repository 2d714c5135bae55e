"""The JSON Schema of a team file, drawn from the table of its fields."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from client.protocol.team_run import SOME_CYCLES
from client.team_file import EITHER, SAYS, SAYS_IN_ONE_LINE, TABLES, Field


def schema() -> str:
    """The JSON Schema of a team file, for editors."""
    properties = {name: _shape(name, several, fields) for name, (several, fields) in TABLES.items()}
    whole = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "firm team file",
        "type": "object",
        "required": ["team"],
        "additionalProperties": False,
        "properties": properties,
    }
    return json.dumps(whole, indent=2, ensure_ascii=False) + "\n"


def _shape(name: str, several: bool, fields: tuple[Field, ...]) -> dict[str, Any]:  # noqa: FBT001 — of the table
    one: dict[str, Any] = {
        "type": "object",
        "additionalProperties": False,
        "required": [field.name for field in fields if field.required],
        "properties": dict(_properties(fields)),
    }
    if either := EITHER.get(name):
        one["not"] = {"required": list(either)}
    return {"type": "array", "items": one} if several else one


def _properties(fields: tuple[Field, ...]) -> Iterator[tuple[str, dict[str, Any]]]:
    for field in fields:
        shape: dict[str, Any] = {"type": "string"}
        if field.kind is int:
            shape = {"type": "integer", "minimum": SOME_CYCLES.least, "maximum": SOME_CYCLES.most}
        elif field.kind is list:
            shape = {"type": "array", "items": {"type": "string", "pattern": field.item or SAYS_IN_ONE_LINE}}
            if field.least:
                shape["minItems"] = field.least
        elif field.required:
            shape["pattern"] = SAYS
        if field.choices:
            shape["enum"] = list(field.choices)
        yield field.name, {**shape, "description": field.help}
