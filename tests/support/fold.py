"""A store's rows against its events, read past our own decoding: a row is what its events add up to."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import apsw
import msgpack

#: Noun, as streams name it, to its table.
TABLES = {"agent": "agents", "membership": "memberships", "project": "projects", "team": "teams"}
_LISTS = {"capabilities", "skills"}

Records = dict[str, dict[str, Any]]


def stored(path: Path) -> Records:
    """Every versioned row, by its stream."""
    found: Records = {}
    with contextlib.closing(_reader(path)) as connection:
        for noun, table in TABLES.items():
            cursor = connection.execute(f"SELECT * FROM {table}")  # noqa: S608 — names of ours
            for row in cursor:
                names = [column[0] for column in cursor.getdescription()]
                record = {name: json.loads(str(v)) if name in _LISTS else v for name, v in zip(names, row, strict=True)}
                del record["n"]
                found[f"{noun}/{record['id']}"] = record
    return found


def folded(path: Path) -> Records:
    """What the events add up to, by stream. Fails where the versions of a stream have a gap or begin late."""
    found: Records = {}
    with contextlib.closing(_reader(path)) as connection:
        for stream, version, body in connection.execute("SELECT stream, version, body FROM events ORDER BY seq"):
            record = found.setdefault(str(stream), {"version": 0})
            assert version == record["version"] + 1, f"{stream} goes from {record['version']} to {version}"
            assert isinstance(body, bytes)
            record.update(msgpack.unpackb(body))
            assert record["version"] == version, "an event says which version it made"
    return found


def check(path: Path) -> int:
    """Every row equals the fold of its events, and no event is of a row that is not there. How many rows."""
    rows = stored(path)
    assert folded(path) == rows
    with contextlib.closing(_reader(path)) as connection:
        seqs = [seq for (seq,) in connection.execute("SELECT seq FROM events ORDER BY seq")]
    assert seqs == list(range(1, len(seqs) + 1)), "no number is given to nobody"
    return len(rows)


def _reader(path: Path) -> apsw.Connection:
    return apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
