"""``firm team show``: a team, and each member with its profile, its ceiling and its workspace."""

from __future__ import annotations

from typing import Any

from client.cli import render
from client.cli.eyes.sheet import NOT_ENFORCED, clean, columns, section

_HEAD = ("NAME", "ROLE", "STATE", "PROFILE", "CEILING", "WORKSPACE", "MEMBERSHIP")


def lay(shown: dict[str, Any]) -> str:
    rows = [tuple(map(clean, _cells(each))) for each in shown["members"]]
    lines = [render.fields(shown["team"]), *section("Members", columns([_HEAD, *rows], 0, "  "))]
    if any(each["ceiling"] not in {None, "full_access"} for each in shown["members"]):
        lines += ["", NOT_ENFORCED]
    return "\n".join(lines)


def _cells(each: dict[str, Any]) -> tuple[object, ...]:
    part = each["membership"]
    return each["name"], part["role"], part["state"], each["profile"], each["ceiling"], each["workspace"], part["id"]
