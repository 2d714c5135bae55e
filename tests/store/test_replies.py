"""Remembered replies: found by who asked what under which key, kept for thirty days, forgotten in portions."""

from __future__ import annotations

import contextlib
from pathlib import Path

import apsw

from client.protocol.ids import UnixMs
from store import maintenance, replies
from store.replies import Reply

NOW = UnixMs(1_800_000_000_000)


def test_replies_older_than_they_are_kept_are_forgotten_in_portions_and_younger_ones_stay(tmp_path: Path) -> None:
    path = tmp_path / "node.db"
    maintenance.take(path)
    kept_ms = 30 * 24 * 3600 * 1000
    with contextlib.closing(apsw.Connection(str(path))) as connection:
        with connection:
            connection.executemany(
                "INSERT INTO replies (mark, digest, answer, at) VALUES (randomblob(16), zeroblob(32), x'c0', ?)",
                [(NOW - kept_ms - 1,)] * 12_001 + [(NOW - kept_ms,)] * 3 + [(NOW,)] * 4,
            )
        portions = [maintenance.in_one(connection, lambda tx: replies.forget(tx, now=NOW)) for _ in "1234"]
        assert portions == [5000, 5000, 2001, 0]
        assert connection.execute("SELECT count(*), min(at) FROM replies").fetchall() == [(7, NOW - kept_ms)]


def test_a_reply_is_found_again_by_actor_operation_and_key_alone(tmp_path: Path) -> None:
    path = tmp_path / "node.db"
    maintenance.take(path)
    mine = replies.mark("operator", "agent.create", "k1")
    others = [
        replies.mark("agent/x", "agent.create", "k1"),
        replies.mark("operator", "agent.update", "k1"),
        replies.mark("operator", "agent.create", "k2"),
        replies.mark("operatora", "gent.create", "k1"),
    ]
    assert len({mine, *others}) == 5
    with contextlib.closing(apsw.Connection(str(path))) as connection:
        maintenance.in_one(connection, lambda tx: replies.keep(tx, mine, digest=bytes(32), answer=b"first", at=NOW))
        found = maintenance.in_one(connection, lambda tx: [replies.find(tx, mark) for mark in (mine, *others)])
    assert found == [Reply(bytes(32), b"first"), None, None, None, None]
