"""Remembered replies: the first answer to each (actor, operation, key), kept for thirty days."""

from __future__ import annotations

import hashlib

import attrs

from store.sql import sql
from store.tx import Tx

KEPT_MS = 30 * 24 * 3600 * 1000


@attrs.frozen
class Reply:
    """A packed answer, and the digest of the body that it answered."""

    digest: bytes
    answer: bytes


def mark(actor: str, operation: str, key: str) -> bytes:
    """Sixteen bytes that stand for who asked what under which key."""
    parts = b"\0".join(part.encode() for part in (actor, operation, key))
    return hashlib.blake2b(parts, digest_size=16).digest()


_FIND = sql("SELECT digest, answer FROM replies WHERE mark = :mark")


def find(tx: Tx, mark: bytes) -> Reply | None:
    found = tx.row(_FIND, mark=mark)
    return Reply(*found) if found else None


_KEEP = sql("INSERT INTO replies (mark, digest, answer, at) VALUES (:mark, :digest, :answer, :at)")


def keep(tx: Tx, mark: bytes, *, digest: bytes, answer: bytes, at: int) -> None:
    tx.rows(_KEEP, mark=mark, digest=digest, answer=answer, at=at)


_FORGET = sql("DELETE FROM replies WHERE n IN (SELECT n FROM replies WHERE at < :before ORDER BY n LIMIT 5000)")


def forget(tx: Tx, *, now: int) -> int:
    """Drop replies that are older than they are kept; how many, at most one portion."""
    return tx.changed(_FORGET, before=now - KEPT_MS)
