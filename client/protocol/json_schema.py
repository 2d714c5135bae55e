"""JSON Schema of every request, rendered from the operation table."""

from __future__ import annotations

import enum
import json
from collections.abc import Iterable
from typing import Any

from client.protocol.operation import Effect, Operation
from client.protocol.shape import Shape, shapes

_TYPES: dict[type, str] = {bool: "boolean", float: "number", int: "integer", str: "string"}


def document(operations: Iterable[Operation]) -> str:
    """All operations as one JSON document with stable order."""
    rows = {op.name: operation(op) for op in operations}
    return json.dumps({"$schema": "https://json-schema.org/draft/2020-12/schema", "operations": rows}, indent=1) + "\n"


def operation(op: Operation) -> dict[str, Any]:
    return {
        "description": op.summary,
        "planes": sorted(op.planes),
        "reads_only": op.effect in {Effect.READ, Effect.SCAN, Effect.STREAM},
        "refuses": sorted(op.codes),
        "input": request(op.request),
    }


def request(cls: type) -> dict[str, Any]:
    """The closed schema of one request."""
    fields = shapes(cls)
    return {
        "type": "object",
        "properties": {field.name: _field(field) for field in fields},
        "required": [field.name for field in fields if field.required],
        "additionalProperties": False,
    }


def _field(shape: Shape) -> dict[str, Any]:
    one = _one(shape)
    if shape.many:
        schema: dict[str, Any] = {"type": "array", "items": {**one, "maxLength": shape.bounds.item}}
        if shape.bounds.most is not None:
            schema["maxItems"] = shape.bounds.most
    elif shape.optional:
        schema = {"anyOf": [one, {"type": "null"}]}
    else:
        schema = one
    if not shape.required:
        default = shape.default.value if isinstance(shape.default, enum.Enum) else shape.default
        schema = {**schema, "default": default}
    return {**schema, "description": shape.help}


def _one(shape: Shape) -> dict[str, Any]:
    if shape.choices:
        return {"type": "string", "enum": shape.choices}
    schema: dict[str, Any] = {"type": _TYPES[shape.kind]}
    least, most = ("minimum", "maximum") if shape.kind in (int, float) else ("minLength", "maxLength")
    if shape.bounds.least is not None and not shape.many:
        schema[least] = shape.bounds.least
    if shape.bounds.most is not None and not shape.many:
        schema[most] = shape.bounds.most
    return schema
