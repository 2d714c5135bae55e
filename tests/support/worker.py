"""A worker as a real process, bound as the session of a member, and the Works that its Host gives it."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Generator, Mapping
from pathlib import Path
from typing import Any

import attrs
import pytest

from tests.support.bound import Crew, Operator, OwnShell, crew, own_shell
from tests.support.daemon import Daemon, Home, Log
from tests.support.repos import Repo, repo
from tests.support.wire import PATIENCE

#: The process that is bound waits for a line and then is the worker: pid and start ticks stay what was bound.
_THEN = ["bash", "--norc", "--noprofile", "-c", 'read -r && exec "$@"', "bash"]
COMMAND = [sys.executable, "-I", "-m", "client.worker"]


class Worker:
    """One process. ``said`` are its own lines, ``shown`` is what it streamed, in the file of that name."""

    def __init__(self, home: Home, folder: Path, env: Mapping[str, str], shown: Path) -> None:
        with shown.open("wb") as stdout:
            self.process = subprocess.Popen(
                [*_THEN, *COMMAND],
                stdin=subprocess.PIPE,
                stdout=stdout,
                stderr=subprocess.PIPE,
                cwd=folder,
                env={**home.environment, **env},
            )
        assert self.process.stderr is not None
        self.said = Log(self.process.stderr)
        self.shown = shown
        self._fd = os.pidfd_open(self.process.pid)

    def begin(self) -> None:
        """Become the worker, now that the process was bound."""
        assert self.process.stdin is not None
        self.process.stdin.write(b"go\n")
        self.process.stdin.close()

    def signal(self, number: signal.Signals) -> None:
        signal.pidfd_send_signal(self._fd, number)

    def wait(self) -> int:
        assert select.select([self._fd], [], [], PATIENCE)[0], f"it goes on:\n{self.said}"
        return self.process.wait()

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._fd)
        self.said.finish()


@attrs.define
class Bench:
    """A daemon, the operator, a run, Ann's shell as its Host, and Bob, whose worker serves his own worktree."""

    home: Home
    daemon: Daemon
    operator: Operator
    crew: Crew
    ann: OwnShell
    repo: Repo
    folder: Path
    temporary: Path
    worker: Worker | None = None

    @property
    def logs(self) -> Path:
        return self.temporary / "data" / "firm" / "logs"

    @property
    def said(self) -> Log:
        assert self.worker is not None
        return self.worker.said

    def works(self, *, command: list[str] | None = None, folder: Path | None = None, **env: str) -> Worker:
        """Bob's worker, once it serves."""
        worker = self.waits(command=command, folder=folder, **env)
        worker.begin()
        worker.said.until("serves bob")
        return worker

    def waits(self, *, command: list[str] | None = None, folder: Path | None = None, **env: str) -> Worker:
        """Bob's process, bound, which is not the worker yet."""
        told = {"XDG_DATA_HOME": str(self.temporary / "data"), "FIRM_SOCKET": str(self.daemon.socket), **env}
        if command is not None:
            told["FIRM_COMMAND"] = json.dumps(command)
        self.worker = Worker(self.home, folder or self.folder, told, self.temporary / "shown")
        self.operator.ask("session.bind", agent_member_id="bob", pid=self.worker.process.pid)
        return self.worker

    def give(self, context: str, *, criteria: str = "it works\nit is tested", title: str = "build it") -> str:
        """A Work of Bob's; its id."""
        made = self.operator.ask(
            "work.create",
            team_run_id=self.crew.run,
            title=title,
            context=context,
            completion_criteria=criteria,
            claim_mode="host_assign",
        )
        self.host(f"firm work assign {made['id']} --expected-version 1 --membership-id {self.membership('bob')}")
        work: str = made["id"]
        return work

    def host(self, line: str) -> dict[str, Any]:
        """What Ann is answered."""
        return self.ann.answer(line)

    def membership(self, name: str) -> str:
        shown = self.operator.ask("team-run.show", team_run_id=self.crew.run)
        (found,) = [each["member_run"]["membership_id"] for each in shown["members"] if each["name"] == name]
        return str(found)

    def until(self, work: str, what: str) -> dict[str, Any]:
        """The Work with all that hangs on it, once ``what`` is true of it."""
        self.operator.until(f"work:{work}.{what}")
        return self.shown(work)

    def shown(self, work: str) -> dict[str, Any]:
        return self.operator.ask("work.show", work_id=work)

    def close(self) -> None:
        self.operator.client.sock.close()
        if self.worker is not None:
            self.worker.close()

    def restarts(self) -> None:
        """A daemon begins after the former one was killed."""
        self.daemon = self.home.start()
        self.operator.client.sock.close()
        self.operator = Operator(self.daemon.client())


def receipt(shown: dict[str, Any]) -> dict[str, Any]:
    """The body of the last submission."""
    body: dict[str, Any] = json.loads(shown["receipts"][-1]["body"])
    return body


@pytest.fixture
def bench(home: Home, daemon: Daemon, tmp_path: Path) -> Generator[Bench]:
    operator = Operator(daemon.client())
    project = repo(tmp_path / "project")
    people = crew(operator, project.root)
    folder = tmp_path / "worktree"
    project.git("worktree", "add", "-q", "-b", "firm/crew/bob", str(folder))
    with own_shell(home) as ann, contextlib.ExitStack() as stack:
        operator.ask("session.bind", agent_member_id="ann", pid=ann.pid)
        made = Bench(home, daemon, operator, people, ann, project, folder, tmp_path)
        stack.callback(made.close)
        yield made


def gate(folder: Path) -> tuple[Path, str]:
    """A pipe, and a line of shell that waits until something is written to it."""
    path = folder / "gate"
    os.mkfifo(path)
    return path, f"read -r _ < '{path}'"
