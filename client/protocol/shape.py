"""Field shapes: the few types a request may use, seen the same way by every surface."""

from __future__ import annotations

import enum
import functools
import types
import typing
import unicodedata
from typing import Any

import attrs

from client.protocol import ids
from client.protocol.refusals import Code, Refusal

#: Types whose values the command line completes or resolves before they are sent.
_PATHS = {ids.Folder: "folder", ids.FilePath: "file"}


#: Characters of one item of a list, where nothing else is said.
ITEM = 200


@attrs.frozen
class Bounds:
    """How small and how large: characters of a str, items of a list, the value of an int."""

    least: int | None = None
    most: int | None = None
    line: bool = False  # no control characters, so that a terminal shows it as one harmless line
    item: int = ITEM  # characters of one item of a list


LINE = Bounds(least=1, most=200, line=True)
LABEL = Bounds(most=200, line=True)
TEXT = Bounds(most=64 * 1024)
PATH = Bounds(least=1, most=4096)
WORDS = Bounds(most=64)
VERSION = Bounds(least=1)
PAGE = Bounds(least=1, most=500)
ID = Bounds(least=1, most=200, line=True)
OPTIONAL_ID = Bounds(most=200, line=True)


@attrs.frozen
class Shape:
    """One field of a request."""

    name: str
    help: str
    required: bool
    default: Any
    kind: type  # str, int, float, bool or an Enum
    many: bool
    optional: bool
    path: str  # "folder", "file" or ""
    bounds: Bounds

    @property
    def choices(self) -> list[str] | None:
        return [m.value for m in self.kind] if issubclass(self.kind, enum.Enum) else None


@functools.cache
def _shapes(cls: Any) -> tuple[Shape, ...]:
    hints = typing.get_type_hints(cls, include_extras=True)
    return tuple(_shape(f, hints[f.name]) for f in attrs.fields(cls))


def shapes(cls: type) -> tuple[Shape, ...]:
    """The fields of a request, in order. Raises ``TypeError`` on what no surface can show."""
    return _shapes(cls)


def _shape(field: attrs.Attribute[Any], hint: Any) -> Shape:
    if typing.get_origin(hint) is not typing.Annotated:
        raise TypeError(f"{field.name}: write Annotated[{hint!r}, 'one line of help', Bounds(...)]")
    hint, help_line, *rest = typing.get_args(hint)
    optional = many = False
    if typing.get_origin(hint) in (types.UnionType, typing.Union) and type(None) in hint.__args__:
        (hint,) = (a for a in hint.__args__ if a is not type(None))
        optional = True
    if typing.get_origin(hint) is list:
        (hint,) = typing.get_args(hint)
        many = True
    path = _PATHS.get(hint, "")
    hint = getattr(hint, "__supertype__", hint)
    if not (hint in (str, int, float, bool) or (isinstance(hint, type) and issubclass(hint, enum.Enum))):
        raise TypeError(f"{field.name}: {hint!r} is not a shape a surface can show")
    return Shape(
        name=field.name,
        help=help_line,
        required=field.default is attrs.NOTHING,
        default=_default(field),
        kind=hint,
        many=many,
        optional=optional,
        path=path,
        bounds=rest[0] if rest else Bounds(),
    )


def _default(field: attrs.Attribute[Any]) -> Any:
    if field.default is attrs.NOTHING:
        return None
    if isinstance(field.default, attrs.Factory):  # type: ignore[arg-type]
        return typing.cast("Any", field.default).factory()
    return field.default


def one_line(text: str) -> bool:
    """Whether a terminal shows it as one harmless line. Every script's spaces are welcome, all controls are not."""
    return text.isprintable() or all(c.isprintable() or unicodedata.category(c) == "Zs" for c in text)


@functools.cache
def _bounded(cls: Any) -> tuple[Shape, ...]:
    return tuple(shape for shape in shapes(cls) if shape.many or shape.bounds != Bounds())


def bounded(cls: type) -> tuple[Shape, ...]:
    """The fields of a request whose values have bounds."""
    return _bounded(cls)


def outside(shape: Shape, value: Any) -> Refusal | None:
    """The refusal of a ``value`` that is outside the bounds of ``shape``."""
    if value is None:
        return None
    bounds = shape.bounds
    text = isinstance(value, str)
    size: float = len(value) if text or shape.many else value
    if bounds.most is not None and size > bounds.most:
        return _refused(shape, f"at most {bounds.most}{_unit(shape, text=text)}", Code.LIMIT_EXCEEDED)
    if bounds.least is not None and size < bounds.least:
        return _refused(shape, f"at least {bounds.least}{_unit(shape, text=text)}")
    if shape.many:
        return _item_outside(shape, [item for item in value if isinstance(item, str)])
    return _refused(shape, _NO_LINE) if text and bounds.line and not one_line(value) else None


_NO_LINE = "one line without control characters"


def _refused(shape: Shape, wanted: str, code: Code = Code.MALFORMED) -> Refusal:
    return Refusal(code=code, about=shape.name, lifted_by=f"give {shape.name} {wanted}")


def _unit(shape: Shape, *, text: bool) -> str:
    return " items" if shape.many else " characters" if text else ""


def _item_outside(shape: Shape, texts: list[str]) -> Refusal | None:
    if any(len(text) > shape.bounds.item for text in texts):
        return _refused(shape, f"at most {shape.bounds.item} characters an item", Code.LIMIT_EXCEEDED)
    return None if all(map(one_line, texts)) else _refused(shape, _NO_LINE)
