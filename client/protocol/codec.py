"""Records to bytes and back, strictly. The only module that knows cattrs; the CLI's door knows msgpack too.

Strict means exact: no coercion (``str(1)``), no unknown field, lists are lists, integers fit 64 bits, floats are
finite, a body is a map. What does not fit is refused by field name.
"""

from __future__ import annotations

import enum
import functools
import hashlib
import math
import typing
from collections.abc import Callable
from typing import Any, TypeVar

import attrs
import msgpack
from cattrs import BaseValidationError, transform_error
from cattrs.preconf.msgpack import MsgpackConverter, make_converter
from cattrs.v import format_exception

from client.protocol.operation import Operation
from client.protocol.refusals import Code, Refusal
from client.protocol.shape import bounded, outside

T = TypeVar("T")

_converter: MsgpackConverter = make_converter(forbid_extra_keys=True)


class _WrongType(TypeError):
    """What a field wanted instead; the message is shown to the caller."""


@functools.cache
def _choices(target: Any) -> tuple[str, ...] | None:
    """The values of an enum; None for every other type."""
    is_enum = isinstance(target, type) and issubclass(target, enum.Enum)
    members: Any = target
    return tuple(member.value for member in members) if is_enum else None


def _exactly(kind: type, fits: Callable[[Any], bool], want: str) -> None:
    def check(value: object, target: Any) -> Any:
        # A hook for str also gets every StrEnum: those must still be looked up, or any text would pass.
        choices = _choices(target)
        if not fits(value) or (choices is not None and value not in choices):
            raise _WrongType(f"expected {want}" if choices is None else f"expected one of {', '.join(choices)}")
        return value if choices is None else target(value)

    _converter.register_structure_hook(kind, check)


_exactly(str, lambda v: isinstance(v, str), "a string")
_exactly(bool, lambda v: type(v) is bool, "true or false")
_exactly(int, lambda v: type(v) is int and -(2**63) <= v < 2**63, "an integer of 64 bits")
_exactly(float, lambda v: type(v) in (int, float) and math.isfinite(v), "a finite number")
_exactly(bytes, lambda v: isinstance(v, bytes), "bytes")


def _list_of(hint: Any) -> Callable[[Any, Any], list[Any]]:
    (kind,) = typing.get_args(hint)

    def check(value: object, _: object) -> list[Any]:
        if type(value) is not list:
            raise _WrongType("expected a list")
        return [_converter.structure(item, kind) for item in typing.cast("list[Any]", value)]

    return check


def _is_list(hint: Any) -> bool:
    origin: Any = typing.get_origin(hint)
    return origin is list


_converter.register_structure_hook_factory(_is_list, _list_of)


def _why(error: BaseException, kind: type | None) -> str:
    if isinstance(error, _WrongType):
        return str(error)
    if isinstance(error, KeyError):
        return "this field is required"
    return format_exception(error, kind)


def to_plain(value: object) -> Any:
    return _converter.unstructure(value)


def from_plain(plain: object, cls: type[T]) -> T | Refusal:
    """A request record out of a received body, or the refusal that names each field that is wrong."""
    record = exact(plain, cls, "body")
    if isinstance(record, Refusal):
        return record
    for shape in bounded(cls):
        if refusal := outside(shape, getattr(record, shape.name)):
            return refusal
    return record


def exact(plain: object, cls: type[T], about: str) -> T | Refusal:
    """``plain`` as a record, without a look at bounds."""
    if type(plain) is not dict or not all(type(name) is str for name in plain):
        return Refusal(code=Code.MALFORMED, about=about, lifted_by=f"send {about} as a map of field names")
    try:
        return _converter.structure(plain, cls)
    except BaseValidationError as exc:
        faults = transform_error(exc, path=about, format_exception=_why)
        return Refusal(code=Code.MALFORMED, about=about, lifted_by="correct " + "; ".join(faults))


def structure(plain: object, cls: type[T]) -> T:
    """A record out of bytes that we wrote ourselves. Raises on anything else."""
    return _converter.structure(plain, cls)


def packb(value: object) -> bytes:
    packed: bytes = msgpack.packb(_converter.unstructure(value))
    return packed


def pack_plain(value: object) -> bytes:
    """The same of a small value that msgpack takes as it is."""
    return _pack(value)


def unpackb(data: bytes) -> Any:
    """Raises ``ValueError`` on anything that is not exactly one msgpack value."""
    try:
        return msgpack.unpackb(data, strict_map_key=True)
    except (msgpack.UnpackException, RecursionError) as exc:
        raise ValueError(f"not msgpack: {exc}") from exc


def body_digest(body: dict[str, Any]) -> bytes:
    """SHA-256 over the body as it was received, keys sorted: a field added later changes no old digest."""
    return hashlib.sha256(msgpack.packb(_sorted(body))).digest()


def _sorted(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _sorted(value[key]) for key in sorted(value, key=repr)}
    if isinstance(value, list):
        return [_sorted(item) for item in value]
    return value


@attrs.frozen
class Ask:
    """One request as it stands on the wire."""

    id: int
    op: str
    body: Any
    key: str


#: One packer for all that is small: a new one costs more than the small values of an answer do. Whole answers have one
#: of their own, since a packer keeps the room of the largest thing that it has packed. What is packed is plain, so no
#: code of ours runs in the middle and no other thread comes between.
_pack: Callable[[object], bytes] = msgpack.Packer().pack
_ANSWER_HEAD = msgpack.Packer().pack_map_header(4)
_MORE_HEAD = msgpack.Packer().pack_map_header(5)
_K_ID, _K_ANSWER, _K_REPLAYED, _K_SEQ, _K_MORE = (_pack(key) for key in ("id", "answer", "replayed", "seq", "more"))


def answer_frame(ask_id: int, body: bytes, *, seq: int, replayed: bool = False, more: bool = False) -> bytes:
    """An answer around a body that is packed already, so that a remembered reply leaves byte for byte."""
    head = _MORE_HEAD + _K_MORE + b"\xc3" if more else _ANSWER_HEAD
    flag = b"\xc3" if replayed else b"\xc2"
    return b"".join((head, _K_ID, _pack(ask_id), _K_REPLAYED, flag, _K_SEQ, _pack(seq), _K_ANSWER, body))


def refusal_frame(ask_id: int, refusal: Refusal) -> bytes:
    return _pack({"id": ask_id, "refusal": to_plain(refusal)})


class Undeclared(Exception):
    """The other side refused with a code its own table does not list."""


def outcome(op: Operation, reply: dict[str, Any]) -> Any:
    """A received reply as the declared response, or as one of the declared refusals."""
    if "refusal" not in reply:
        return _converter.structure(reply["answer"], op.response)
    refusal = _converter.structure(reply["refusal"], Refusal)
    if refusal.code not in op.codes:
        raise Undeclared(f"{op.name} may not refuse with {refusal.code}")
    return refusal
