"""A person with a project and a team file, and real members in a real tmux; nothing is left when a test ends."""

from __future__ import annotations

import os
import signal
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import attrs
import psutil

from tests.cli.shell import Done, Shell, complaints
from tests.support.repos import repo

TEAM = """\
[team]
name = "core"
host = "me"

[[member]]
name = "bob"

[[work]]
key = "a"
title = "the parser"
criteria = ["it reads"]
context = "#!/bin/sh\\necho new > made"
assign = "bob"

[[work]]
key = "b"
title = "the printer"
criteria = ["it prints"]
context = "#!/bin/sh\\necho more > made"
needs = ["a"]
assign = "bob"
"""


@attrs.frozen
class Person:
    """``root`` is the folder of everything: home, data, project."""

    shell: Shell
    root: Path

    @property
    def file(self) -> Path:
        return self.shell.cwd / "team.toml"

    def writes(self, text: str = TEAM) -> None:
        self.file.write_text(text)

    def works(self) -> dict[str, dict[str, Any]]:
        """Those of the only run, by title."""
        (run,) = self.shell.answer("team-run", "list")["items"]
        items = self.shell.answer("work", "list", "--team-run-id", run["id"])["items"]
        return {work["title"]: work for work in items}

    def accepts(self, work_id: str) -> dict[str, Any]:
        """As the Host, once it is submitted."""
        self.shell.firm("wait", f"work:{work_id}.phase=review", "--timeout-ms", "60000")
        work = self.shell.answer("work", "show", "--work-id", work_id)["work"]
        version, receipt = str(work["version"]), work["receipt_id"]
        return self.shell.answer("work", "accept", work_id, "--expected-version", version, "--receipt-id", receipt)

    def ups(self, *words: str) -> dict[str, Any]:
        """``firm up --detach``, and what it says for programs."""
        done = self.shell.tries("up", "--detach", "--json", *words)
        assert (done.status, complaints(done.err)) == (0, ""), done
        return done.json

    def downs(self, *words: str) -> Done:
        return self.shell.tries("down", "--json", *words)

    def left(self) -> list[psutil.Process]:
        """Processes that run here, have this place in their environment, or are called by it."""
        return [each for each in psutil.process_iter() if each.pid != os.getpid() and self._here(each)]

    def _here(self, process: psutil.Process) -> bool:
        try:
            said = [process.cwd(), *process.cmdline(), *process.environ().values()]
        except psutil.Error:
            return False
        return any(str(self.root) in word for word in said)


@contextmanager
def person() -> Generator[Person]:
    with tempfile.TemporaryDirectory(prefix="firm-", ignore_cleanup_errors=True) as folder:
        root = Path(folder)
        project = repo(root / "project")
        shell = Shell(root / "home", project.root, {"XDG_DATA_HOME": str(root / "data")})
        made = Person(shell, root)
        made.writes()
        try:
            yield made
        finally:
            if shell.home.is_dir():
                for run in _runs(shell):
                    shell.tries("down", run)
                shell.tries("session", "sweep")
                shell.tries("node", "stop")
            left = made.left()
            for each in left:
                each.send_signal(signal.SIGKILL)
            psutil.wait_procs(left, 10)
        assert left == []


def _runs(shell: Shell) -> list[str]:
    done = shell.tries("team-run", "list", "--json")
    if done.status:
        return []
    return [run["id"] for run in done.json["answer"]["items"] if run["state"] in {"planned", "running", "draining"}]
