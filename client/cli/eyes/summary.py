"""``firm team-run board-summary``: the text alone, so that it stays within its five hundred characters."""

from __future__ import annotations

from typing import Any

from client.cli.eyes.sheet import lines


def lay(answer: dict[str, Any]) -> str:
    return "\n".join(lines(answer["text"]))
