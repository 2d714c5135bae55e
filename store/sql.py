"""SQL as named, checkable constants. Only store/ calls this."""

from __future__ import annotations

import attrs

REGISTERED: list[Sql] = []


@attrs.frozen
class Sql:
    text: str


def sql(text: str) -> Sql:
    """Keep ``text`` next to the function that runs it; a test compiles every one."""
    statement = Sql(text)
    REGISTERED.append(statement)
    return statement
