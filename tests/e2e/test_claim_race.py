"""Twenty members, each a process of its own, claim one Work at once: one winner, nineteen who are told who won."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from tests.support.daemon import Daemon
from tests.support.wire import PATIENCE, Client

ROOT = Path(__file__).parents[2]
RACERS = 20

Record = dict[str, Any]


def asked(client: Client, op: str, **body: object) -> Record:
    found = client.ask(op, body)
    assert "answer" in found, found
    answer: Record = found["answer"]
    return answer


class Race:
    """The processes, and the gate at which all of them wait."""

    def __init__(self) -> None:
        self.gate, self._closes = os.pipe()
        self.racers = [self._racer() for _ in range(RACERS)]
        os.close(self.gate)

    def _racer(self) -> subprocess.Popen[str]:
        command = (sys.executable, "-m", "tests.e2e.racer", str(self.gate))
        return subprocess.Popen(
            command, cwd=ROOT, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, pass_fds=[self.gate]
        )

    def tell(self, n: int, **message: object) -> None:
        stdin = self.racers[n].stdin
        assert stdin is not None
        stdin.write(json.dumps(message) + "\n")
        stdin.flush()

    def hear(self, n: int) -> Record:
        stdout = self.racers[n].stdout
        assert stdout is not None
        line = stdout.readline()
        assert line, f"racer {n} ended"
        found: Record = json.loads(line)
        return found

    def go(self) -> None:
        os.close(self._closes)
        self._closes = -1

    def close(self) -> None:
        if self._closes >= 0:
            self.go()
        for racer in self.racers:
            with contextlib.suppress(BrokenPipeError):
                racer.communicate(timeout=PATIENCE)


@pytest.fixture
def race() -> Generator[Race]:
    running = Race()
    try:
        yield running
    finally:
        running.close()


def crew(client: Client, project: Path) -> tuple[Record, list[Record], Record]:
    """A running run of a team of one Host and twenty members; the memberships of these; a Work for whoever claims."""
    ann = asked(client, "agent.create", name="ann")
    team = asked(client, "team.create", name="crew", host_agent_id=ann["id"], project=str(project))
    members: list[Record] = []
    for n in range(RACERS):
        agent = asked(client, "agent.create", name=f"racer-{n}")
        invited = asked(client, "membership.invite", team_id=team["id"], agent_member_id=agent["id"])
        members.append(asked(client, "membership.join", membership_id=invited["id"], expected_version=1))
    run = asked(client, "team-run.create", team_id=team["id"])
    run = asked(client, "team-run.start", team_run_id=run["id"], expected_version=1)
    work = asked(client, "work.create", team_run_id=run["id"], title="the one", completion_criteria="won")
    return run, members, work


def test_twenty_processes_claim_one_work_at_once(daemon: Daemon, race: Race, tmp_path: Path) -> None:
    """Every answer was lost once; asked again under the same key, nothing happens twice."""
    with daemon.client() as client:
        _, members, work = crew(client, tmp_path)
        body = {"work_id": work["id"], "expected_version": 1}
        for n, (member, racer) in enumerate(zip(members, race.racers, strict=True)):
            asked(client, "session.bind", agent_member_id=member["agent_member_id"], pid=racer.pid)
            race.tell(n, socket=str(daemon.member_socket), body=body, key=f"race-{n}")
        for n in range(RACERS):
            assert race.hear(n) == {"ready": True}
        race.go()
        heard = [race.hear(n) for n in range(RACERS)]
        (winner,) = [n for n, found in enumerate(heard) if "answer" in found["again"]]
        for n, found in enumerate(heard):
            if n == winner:
                _won(found, members[n], work)
            else:
                _lost(found, f"racer-{winner} ({members[winner]['id']})", work)
        shown = asked(client, "work.show", work_id=work["id"])["work"]
        assert (shown["owner_id"], shown["version"], shown["phase"]) == (members[winner]["id"], 2, "open")
        events = asked(client, "event.list", stream=f"work/{work['id']}")["items"]
        assert [(event["version"], event["kind"]) for event in events] == [(1, "created"), (2, "claimed")]


def _won(found: Record, member: Record, work: Record) -> None:
    """The lost answer is given again, twice, as it was."""
    for each in (found["again"], found["once_more"]):
        assert each["replayed"] is True
        answer = each["answer"]
        assert (answer["id"], answer["owner_id"], answer["version"]) == (work["id"], member["id"], 2)
    assert found["again"]["answer"] == found["once_more"]["answer"]


def _lost(found: Record, owner: str, work: Record) -> None:
    for each in (found["again"], found["once_more"]):
        assert each["refusal"] == {
            "code": "CLAIM_LOST",
            "about": f"work/{work['id']}",
            "lifted_by": f"{owner} answers for it; do none of its side effects",
            "current_version": 2,
        }
