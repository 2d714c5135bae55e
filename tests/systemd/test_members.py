"""Members of a run whose daemon systemd keeps: they are no part of its restart."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from providers.tmux import group
from tests.support.repos import Repo
from tests.systemd.node import ended, watched
from tests.systemd.test_firm_node import Person, person

__all__ = ["person"]


def _proof() -> str:
    """What else an end is proven by where scopes are control groups of version 2, and the kernel ends those at once."""
    top = group._mounted()
    own = top / group.group_of(os.getpid()).lstrip("/") if top else None
    able = own is not None and any((each / "cgroup.kill").exists() for each in (own, *own.iterdir()))
    return "its control group is empty, and " if able else ""


def _live(person: Person) -> list[Any]:
    """Open sessions whose process is proven, once there is one."""
    while True:
        status = json.loads(person.firm("node", "status", "--json"))
        items = json.loads(person.firm("session", "list", "--json"))["answer"]["items"]
        if found := [each for each in items if (each["state"], each["process"]) == ("idle", "live")]:
            return found
        person.firm("wait", f"seq>{status['seq']}", "--timeout-ms", "30000")


def _up(person: Person, tmp_path: Path) -> None:
    """A run with one member, whose daemon systemd keeps."""
    repo = Repo(tmp_path)
    repo.git("init", "-q", "-b", "main")
    team = tmp_path / "team.toml"
    team.write_text('[team]\nname = "crew"\nhost = "me"\n[[member]]\nname = "kiwi"\n')
    repo.commit()
    person.firm("node", "install")
    person.firm("up", str(team), "--detach")


def _unit_of(pid: int) -> str:
    """The unit in whose control group a process is."""
    lines = Path(f"/proc/{pid}/cgroup").read_text().splitlines()
    paths = {name: path for _, name, path in (line.split(":", 2) for line in lines)}
    parts = [part for name in ("", "name=systemd") for part in paths.get(name, "").split("/")]
    return next((part for part in reversed(parts) if part.endswith((".scope", ".service"))), "")


def test_terminals_are_in_a_scope_of_their_own_which_a_stop_of_the_service_leaves(
    person: Person, tmp_path: Path
) -> None:
    """Delegated, and told nothing of the user manager."""
    _up(person, tmp_path)
    try:
        (before,) = _live(person)
        record = next(person.home.rglob("tmux/server.json"))
        server = int(json.loads(record.read_text())["pid"])
        scope = _unit_of(server)
        assert (scope.endswith(".scope"), _unit_of(before["pid"])) == (True, scope)
        assert person.manager.show(scope, "Delegate") == "yes"
        assert _unit_of(int(person.manager.show("firm.service", "MainPID"))) == "firm.service"
        environ = Path(f"/proc/{server}/environ").read_bytes().split(b"\0")
        assert not [each for each in environ if each.startswith((b"FIRM_", b"INVOCATION", b"XDG_"))]
        with watched(before["pid"]) as alive:
            person.manager.systemctl("stop", "firm.socket", "firm.service")
            assert not ended(alive, within=0)
            assert person.manager.show("firm.service", "ControlGroup") == "", "nothing of it is left in the service"
            person.firm("node", "start")
            (after,) = _live(person)
            assert (after["id"], after["pid"]) == (before["id"], before["pid"])
            (member,) = json.loads(person.firm("down", "--json"))["members"]
            assert ended(alive)
        assert member["why"] == f"{_proof()}nothing of it is left below our server"
        assert person.manager.show(scope, "LoadState") == "not-found"
    finally:
        person.tries("down")


def test_a_member_outlives_a_restart_of_the_service_and_is_adopted(person: Person, tmp_path: Path) -> None:
    _up(person, tmp_path)
    try:
        (before,) = _live(person)
        with watched(before["pid"]) as alive:
            person.manager.systemctl("restart", "firm.service")
            (after,) = _live(person)
            assert (after["id"], after["pid"]) == (before["id"], before["pid"])
            run = json.loads(person.firm("team-run", "list", "--json"))["answer"]["items"][0]
            assert run["sup_gen"] == 2
            assert not ended(alive, within=0)
            person.firm("down")
            assert ended(alive)
    finally:
        person.tries("down")
