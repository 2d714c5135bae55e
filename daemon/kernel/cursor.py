"""Cursors: opaque, bound to one store and one query, refused by name when they no longer fit."""

from __future__ import annotations

import hashlib

from client.protocol.ids import StoreId
from client.protocol.refusals import Code, Refusal

_MARK = 6
_LAST = 2**63 - 1  # a database numbers no row higher


def write(position: int, store_id: StoreId, *query: object) -> str:
    """A cursor that continues ``query`` behind ``position``; hexadecimal, so a command line takes it for no option."""
    return (_mark(store_id, query) + position.to_bytes(8, "big")).hex()


def read(cursor: str, store_id: StoreId, *query: object) -> int | Refusal:
    """The position in ``cursor``; 0 for an empty one."""
    if not cursor:
        return 0
    try:
        raw = bytes.fromhex(cursor)
    except ValueError:
        raw = b""
    position = int.from_bytes(raw[_MARK:], "big")
    if len(raw) != _MARK + 8 or raw[:_MARK] != _mark(store_id, query) or position > _LAST:
        return Refusal(
            code=Code.CURSOR_INVALID,
            about="cursor",
            lifted_by="begin again without a cursor; one fits only the query and the store that gave it",
        )
    return position


def _mark(store_id: StoreId, query: tuple[object, ...]) -> bytes:
    return hashlib.blake2b(repr((store_id, *query)).encode(), digest_size=_MARK).digest()
