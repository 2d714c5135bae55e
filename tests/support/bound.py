"""A person's own shell, as a process of its own: what is typed in it, and who the daemon takes it for."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import attrs

from tests.support.daemon import Home
from tests.support.wire import Client

ROOT = Path(__file__).parents[2]
FIRM = Path(sys.executable).with_name("firm")
#: Says hello with the operator key, and prints what the daemon takes it for.
WHO = """
import os, sys
sys.path.insert(0, sys.argv[1])
from pathlib import Path
from tests.support.wire import Client
folder = Path(os.environ["FIRM_HOME"])
with Client(folder / "run" / "node.sock") as client:
    said = client.hello((folder / "operator.key").read_text().strip())
hello = said.get("hello")
print(hello["plane"] + " " + hello["actor"] if hello else said["refusal"]["code"])
"""
#: Leaves a child behind that no process of the tree is above of; it asks once it may read a line from the pipe.
_LEAVE = """
import os, subprocess, sys
if os.fork() == 0:
    os.setsid()
    open(sys.argv[1]).read()
    told = subprocess.run([sys.executable, *sys.argv[3:]], capture_output=True, text=True)
    open(sys.argv[2], "w").write(told.stdout + told.stderr)
"""


@attrs.frozen
class Typed:
    """What a command printed, and its exit status."""

    out: str
    status: int

    @property
    def json(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.out)
        return found


@attrs.frozen
class OwnShell:
    process: subprocess.Popen[str]
    home: Home

    @property
    def pid(self) -> int:
        return self.process.pid

    def types(self, line: str) -> Typed:
        """Type a line and wait for its end. What it says on both streams."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{{ {line}; }} 2>&1; status=$?; echo; echo ended $status\n")
        self.process.stdin.flush()
        said: list[str] = []
        for told in self.process.stdout:
            if told.startswith("ended "):
                return Typed("".join(said).strip(), int(told.removeprefix("ended ")))
            said.append(told)
        raise EOFError("the shell ended")

    def refusal(self, line: str) -> dict[str, Any]:
        """The refusal of a ``firm`` command."""
        typed = self.types(f"{line} --json")
        assert typed.status == 1, typed
        refusal: dict[str, Any] = typed.json["refusal"]
        return refusal

    def answer(self, line: str) -> dict[str, Any]:
        """The answer to a ``firm`` command."""
        typed = self.types(f"{line} --json")
        assert typed.status == 0, typed
        answer: dict[str, Any] = typed.json["answer"]
        return answer

    def who(self, *, below: int = 1) -> str:
        """Who a process is, that many generations below the shell, which shows the operator key."""
        script = self._written("who.py", WHO)
        line = f"{sys.executable} {script} {ROOT}"
        for _ in range(below - 1):
            line = f"bash -c {shlex.quote(f'{line}; true')}"
        return self.types(line).out

    def who_left(self) -> str:
        """Who a process is that left the tree: forked twice, in a session of its own, its parent gone and reaped."""
        script, leave = self._written("who.py", WHO), self._written("leave.py", _LEAVE)
        may, told = self.home.temporary / "may", self.home.temporary / "told"
        os.mkfifo(may)
        os.mkfifo(told)
        self.types(f"{sys.executable} {leave} {may} {told} {script} {ROOT}")
        may.write_text("now\n")
        return told.read_text().strip()

    def _written(self, name: str, text: str) -> Path:
        path = self.home.temporary / name
        path.write_text(text)
        return path

    def kill(self) -> None:
        """``kill -9``, and reaped."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()


@contextmanager
def own_shell(home: Home) -> Generator[OwnShell]:
    path = f"{FIRM.parent}{os.pathsep}{os.environ['PATH']}"
    with subprocess.Popen(
        ["bash", "--norc", "--noprofile"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**home.environment, "PATH": path},
        text=True,
    ) as process:
        try:
            yield OwnShell(process, home)
        finally:
            process.kill()


@attrs.frozen
class Operator:
    """The person, in the process of the test: asks over one connection."""

    client: Client

    def ask(self, op: str, **body: object) -> dict[str, Any]:
        answered = self.client.ask(op, body)
        assert "answer" in answered, (op, answered)
        answer: dict[str, Any] = answered["answer"]
        return answer

    def until(self, predicate: str) -> None:
        """Wait until that is true."""
        assert not self.ask("event.wait", predicate=predicate, timeout_ms=30_000)["timed_out"], predicate

    def attempt(self, work_id: str, run_id: str) -> dict[str, Any]:
        """The last attempt at a Work, once the supervisor has admitted one."""
        while True:
            answered = self.client.ask("work.show", {"work_id": work_id})
            if bindings := answered["answer"]["bindings"]:
                attempt: dict[str, Any] = bindings[-1]
                return attempt
            self.until(f"team-run:{run_id}.seq>{answered['seq']}")

    def supervised(self, run_id: str, sup_gen: int) -> None:
        """Wait until a supervisor of that generation holds the run."""
        while True:
            answered = self.client.ask("team-run.show", {"team_run_id": run_id})
            if answered["answer"]["run"]["sup_gen"] >= sup_gen:
                assert answered["answer"]["run"]["sup_gen"] == sup_gen
                return
            self.until(f"team-run:{run_id}.seq>{answered['seq']}")


@attrs.frozen
class Crew:
    """A running run of Ann's team, with Bob and Cid in it."""

    team: str
    run: str
    agents: dict[str, str]


def crew(operator: Operator, folder: Path) -> Crew:
    agents = {name: operator.ask("agent.create", name=name)["id"] for name in ("ann", "bob", "cid")}
    team = operator.ask("team.create", name="crew", host_agent_id="ann", project=str(folder))["id"]
    for name in ("bob", "cid"):
        invited = operator.ask("membership.invite", team_id=team, agent_member_id=name)
        operator.ask("membership.join", membership_id=invited["id"], expected_version=1)
    run = operator.ask("team-run.create", team_id=team)
    operator.ask("team-run.start", team_run_id=run["id"], expected_version=1)
    return Crew(team, run["id"], agents)
