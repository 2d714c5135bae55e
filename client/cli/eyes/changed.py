"""What became of a Work that was changed: one line. ``firm work show`` says the rest."""

from __future__ import annotations

from typing import Any

from client.cli.eyes import standing
from client.cli.eyes.sheet import clean


def lay(work: dict[str, Any]) -> str:
    return f"{work['id']}  {standing.word(work)}, version {work['version']}: {clean(work['title'])}"
