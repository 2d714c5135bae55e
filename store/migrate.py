"""Bring a database file to the schema this program knows. Forward only; all steps in one transaction."""

from __future__ import annotations

import importlib.resources
import re

import apsw

from client.protocol.ids import new_id

#: "firm" in ASCII: tells our files from every other SQLite database.
APPLICATION_ID = 0x6669726D


class NotOurs(Exception):
    """The file is a database of something else."""


class TooNew(Exception):
    """The file was written by a newer program."""

    def __init__(self, found: int, known: int) -> None:
        super().__init__(f"schema {found} found, {known} known")
        self.found = found
        self.known = known


def steps() -> list[tuple[int, str]]:
    """Every migration, by number."""
    folder = importlib.resources.files("store") / "migrations"
    named = ((re.match(r"(\d{4})_\w+\.sql$", f.name), f) for f in folder.iterdir())
    return sorted((int(match[1]), f.read_text("utf-8")) for match, f in named if match)


def known() -> int:
    """The schema version of this program."""
    return steps()[-1][0]


def version(connection: apsw.Connection) -> int:
    """The schema version of an open file, 0 for a new one. Raises ``NotOurs``, ``TooNew``."""
    tables = connection.pragma("schema_version")
    found = connection.pragma("user_version")
    if connection.pragma("application_id") != APPLICATION_ID and tables:
        raise NotOurs
    if found > known():
        raise TooNew(found, known())
    return int(found)


def _casefold(*texts: apsw.SQLiteValue) -> str:
    return str(texts[0]).casefold()


def functions(connection: apsw.Connection) -> None:
    """What the steps call that SQLite does not have."""
    connection.create_scalar_function("casefold", _casefold, 1, deterministic=True)


def migrate(connection: apsw.Connection) -> int:
    """Apply what is missing; the version reached. Nothing is changed when it raises."""
    at = version(connection)
    functions(connection)
    with connection:
        for number, text in steps():
            if number <= at:
                continue
            connection.execute(text)
            connection.pragma("application_id", APPLICATION_ID)
            connection.pragma("user_version", number)
            if at == 0:
                connection.execute(
                    "INSERT INTO node (one, node_id, store_id, daemon_gen) VALUES (1, ?, ?, 0)",
                    (new_id(), new_id()),
                )
            at = number
    return at


def schema() -> list[str]:
    """Every statement of the schema, as an empty migrated database states it."""
    connection = apsw.Connection(":memory:")
    migrate(connection)
    found = connection.execute(
        "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY type DESC, name"
    ).fetchall()
    connection.close()
    return [str(row[0]) for row in found]
