"""Members of a run whose daemon systemd keeps: they are no part of its restart."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.support.repos import Repo
from tests.systemd.node import ended, watched
from tests.systemd.test_firm_node import Person, person

__all__ = ["person"]


def _live(person: Person) -> list[Any]:
    """Open sessions whose process is proven, once there is one."""
    while True:
        status = json.loads(person.firm("node", "status", "--json"))
        items = json.loads(person.firm("session", "list", "--json"))["answer"]["items"]
        if found := [each for each in items if (each["state"], each["process"]) == ("idle", "live")]:
            return found
        person.firm("wait", f"seq>{status['seq']}", "--timeout-ms", "30000")


def test_a_member_outlives_a_restart_of_the_service_and_is_adopted(person: Person, tmp_path: Path) -> None:
    repo = Repo(tmp_path)
    repo.git("init", "-q", "-b", "main")
    team = tmp_path / "team.toml"
    team.write_text('[team]\nname = "crew"\nhost = "me"\n[[member]]\nname = "kiwi"\n')
    repo.commit()
    person.firm("node", "install")
    person.firm("up", str(team), "--detach")
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
