"""Rows to records: the columns of a SELECT in the order of the record's fields. Lists stand as JSON text."""

from __future__ import annotations

import enum
import functools
import json
import types
import typing
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import attrs

from store.tx import Tx, Unreadable

T = TypeVar("T")


def _words(text: Any) -> list[Any]:
    value = json.loads(text)
    if not isinstance(value, list):
        raise TypeError("not a list")
    return typing.cast("list[Any]", value)


def _same(kind: type) -> Callable[[Any], Any]:
    def check(value: Any) -> Any:
        if type(value) is not kind:
            raise TypeError(f"{type(value).__name__} where {kind.__name__} belongs")
        return value

    return check


def _convert(hint: Any) -> Callable[[Any], Any]:
    if typing.get_origin(hint) in (types.UnionType, typing.Union):
        (inner,) = (a for a in hint.__args__ if a is not type(None))
        convert = _convert(inner)
        return lambda value: None if value is None else convert(value)
    if typing.get_origin(hint) is list:
        return _words
    hint = getattr(hint, "__supertype__", hint)
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return hint
    if hint is bool:
        return bool
    return _same(hint)


@functools.cache
def _reader(cls: Any) -> tuple[tuple[str, Callable[[Any], Any]], ...]:
    hints = typing.get_type_hints(cls)
    return tuple((f.name, _convert(hints[f.name])) for f in attrs.fields(cls))


def decode(cls: type[T], table: str, row: tuple[Any, ...]) -> T:
    """The record in ``row``, or ``Unreadable``, which names it."""
    try:
        return cls(
            **{
                name: convert(value)
                for (name, convert), value in zip(_reader(typing.cast("Any", cls)), row, strict=True)
            }
        )
    except (TypeError, ValueError) as error:
        raise Unreadable(f"{table}/{row[0]}", f"{type(error).__name__}: {error}"[:200]) from error


def decode_all(tx: Tx, cls: type[T], table: str, rows: Iterable[tuple[Any, ...]]) -> list[T]:
    """Every record that decodes; the others are named in ``tx.unreadable`` and stop nobody."""
    records: list[T] = []
    for row in rows:
        try:
            records.append(decode(cls, table, row))
        except Unreadable as error:
            tx.unreadable.append(error)
    return records


def encode(record: Any) -> dict[str, Any]:
    """The columns of a record, by name."""
    return {
        name: json.dumps(value, ensure_ascii=False) if isinstance(value, list) else getattr(value, "value", value)
        for name, value in ((f.name, getattr(record, f.name)) for f in attrs.fields(type(record)))
    }
