"""A machine that has no pty left, for a daemon and its tmux: a launch is refused by name, and nothing else happens."""

from __future__ import annotations

import subprocess
from typing import Any

import pytest

from client.protocol.board import AttentionKind
from providers.tmux.server import Places
from supervisor.decide import MOST_FAILURES
from tests.support.daemon import COMMAND
from tests.support.ptys import few, missing
from tests.support.runs import Field

pytestmark = pytest.mark.skipif(missing() is not None, reason=str(missing()))


def launches(field: Field, session_id: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = field.ask("effect", "list")["items"]
    return [each for each in found if each["kind"] == "launch" and each["session_id"] == session_id]


def terminals(field: Field) -> list[str]:
    """What the home's tmux server has, by the launch that each is of."""
    asked = [
        "tmux",
        "-N",
        "-S",
        str(Places(folder=field.home.run / "tmux").socket),
        "list-sessions",
        "-F",
        "#{session_name}",
    ]
    return subprocess.run(asked, capture_output=True, text=True, check=True).stdout.split()


def test_without_a_pty_a_launch_is_refused_by_name_and_works_again_with_one(field: Field) -> None:
    """Of two members one gets the only pty. The other is tried as often as any launch that comes to nothing."""
    field.team("kiwi", "lime")
    own = {name: field.environment[name] for name in ("XDG_DATA_HOME", "XDG_CONFIG_HOME")}
    field.home.start(command=[*few(1), *COMMAND], env=own)
    assert field.call("up", "team.toml", "--detach").returncode == 0
    (one,) = field.until_live()
    (run,) = field.ask("team-run", "list")["items"]
    while True:
        seq = field.firm("event", "list", "--limit", "1")["seq"]
        tried = {each["id"]: launches(field, each["id"]) for each in field.ask("session", "list")["items"]}
        other, refused = next(((each, found) for each, found in tried.items() if each != one["id"]), ("", []))
        if len(refused) == MOST_FAILURES and all(each["state"] == "settled" for each in refused):
            break
        field.wait(f"team-run:{run['id']}.seq>{seq}")
    for each in refused:  # where a deadline had ended it, it would be unknown, or a program that did not come
        assert (each["certainty"], each["pid"]) == ("not_applied", 0)
        assert each["readback"].startswith("terminal_limit: "), each["readback"]
    assert (field.roots(), terminals(field)) == ([one["pid"]], [launches(field, one["id"])[0]["id"]])
    (told,) = (a for a in field.ask("attention", "list")["items"] if a["kind"] == AttentionKind.STOPPED.value)
    assert told["about"] == f"session/{other}"
    assert "has no process: terminal_limit: " in told["what"]

    name = told["lifted_by"].split()[-1]
    assert field.call("close", next(each for each in ("kiwi", "lime") if each != name)).returncode == 0
    for command in (("session", "close", other), ("reopen", name)):
        assert " ".join(("firm", *command)) in told["lifted_by"]
        assert field.call(*command).returncode == 0
    (again,) = field.until_live()
    assert (field.roots(), field.ask("attention", "list")["items"]) == ([again["pid"]], [])
