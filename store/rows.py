"""Rows to records: the columns of a SELECT in the order of the record's fields. Lists stand as JSON text."""

from __future__ import annotations

import enum
import functools
import json
import operator
import types
import typing
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import attrs

from store.tx import Tx, Unreadable

T = TypeVar("T")


def _words(text: Any) -> list[str]:
    return [] if text == "[]" else list(_read_words(_same(str)(text)))


@functools.lru_cache(maxsize=256)
def _read_words(text: str) -> tuple[str, ...]:
    value = json.loads(text)
    if not isinstance(value, list) or not all(isinstance(word, str) for word in value):
        raise TypeError("not a list of texts")
    return tuple(typing.cast("list[str]", value))


def _same(kind: type) -> Callable[[Any], Any]:
    def check(value: Any) -> Any:
        if type(value) is not kind:
            raise TypeError(f"{type(value).__name__} where {kind.__name__} belongs")
        return value

    return check


def _member(kind: type[enum.Enum]) -> Callable[[Any], Any]:
    members = {member.value: member for member in kind}

    def find(value: Any) -> Any:
        try:
            return members[value]
        except KeyError:
            raise ValueError(f"{value!r} is not a {kind.__name__}") from None

    return find


def _convert(hint: Any) -> Callable[[Any], Any]:
    if typing.get_origin(hint) in (types.UnionType, typing.Union):
        (inner,) = (a for a in hint.__args__ if a is not type(None))
        convert = _convert(inner)
        return lambda value: None if value is None else convert(value)
    if typing.get_origin(hint) is list:
        return _words
    hint = getattr(hint, "__supertype__", hint)
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return _member(hint)
    if hint is bool:
        return bool
    return _same(hint)


@attrs.frozen
class _Reader:
    """How rows become records of one class. ``plain`` are columns that stand as they are, once their types were seen
    good together in an earlier row: a fast answer to a question that is asked of every column of every row.
    """

    names: tuple[str, ...]
    converts: tuple[Callable[[Any], Any], ...]
    converted: tuple[int, ...]
    values: Callable[[Any], tuple[Any, ...]]
    good: set[tuple[type, ...]] = attrs.Factory(set)

    def fields(self, row: tuple[Any, ...]) -> dict[str, Any]:
        kinds = tuple(map(type, row))
        if kinds in self.good:
            fields = dict(zip(self.names, row, strict=True))
            for n in self.converted:
                fields[self.names[n]] = self.converts[n](row[n])
            return fields
        fields = {name: convert(value) for name, convert, value in zip(self.names, self.converts, row, strict=True)}
        self.good.add(kinds)
        return fields


@functools.cache
def _reader(cls: Any) -> _Reader:
    hints = typing.get_type_hints(cls)
    names = tuple(f.name for f in attrs.fields(cls))
    stands = [_stands(hints[name]) for name in names]
    converted = tuple(n for n, plain in enumerate(stands) if not plain)
    converts = tuple(_convert(hints[name]) for name in names)
    return _Reader(names, converts, converted, operator.attrgetter(*names))


def _stands(hint: Any) -> bool:
    """Whether a column of this type is the field itself, without conversion."""
    if typing.get_origin(hint) in (types.UnionType, typing.Union):
        return all(_stands(a) for a in hint.__args__ if a is not type(None))
    return getattr(hint, "__supertype__", hint) in (str, int, float, bytes)


def decode(cls: type[T], table: str, row: tuple[Any, ...]) -> T:
    """The record in ``row``, or ``Unreadable``, which names it."""
    try:
        return cls(**_reader(typing.cast("Any", cls)).fields(row))
    except (TypeError, ValueError, RecursionError) as error:
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


def plain(value: Any) -> Any:
    """A field as msgpack takes it."""
    return value.value if isinstance(value, enum.Enum) else value


def plain_fields(record: Any) -> dict[str, Any]:
    """All fields of a record as msgpack takes them."""
    return {name: plain(value) for name, value in _fields_of(record).items()}


def changed(record: T, changes: dict[str, Any]) -> T:
    """The record with some fields changed: ``attrs.evolve`` at half its price."""
    return type(record)(**{**_fields_of(record), **changes})


def _fields_of(record: Any) -> dict[str, Any]:
    kind: Any = type(record)
    reader = _reader(kind)
    return dict(zip(reader.names, reader.values(record), strict=True))


def column(value: Any) -> Any:
    """A plain field as its column."""
    return json.dumps(value, ensure_ascii=False) if isinstance(value, list) else value


def encode(record: Any) -> dict[str, Any]:
    """The columns of a record, by name."""
    return {name: column(value) for name, value in plain_fields(record).items()}
