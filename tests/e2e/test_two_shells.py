"""``docs/two-shells.md`` is true: every command is typed into two real shells, and its answer is the one on the page.

``FIRM_RECORD=1`` writes the page anew instead of comparing.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Generator
from pathlib import Path

import attrs
import pytest

from tests.support.bound import Operator, own_shell
from tests.support.daemon import Daemon, Home
from tests.support.dialogue import Names, Played, play

PAGE = Path(__file__).parents[2] / "docs/two-shells.md"
RECORD = os.environ.get("FIRM_RECORD") == "1"
#: Long before any attempt, so that it is nobody's new commit.
_OF_BEFORE = {"GIT_AUTHOR_DATE": "2026-01-01T00:00:00Z", "GIT_COMMITTER_DATE": "2026-01-01T00:00:00Z"}
_SETUP = (
    "export LC_ALL=C.UTF-8 TZ=UTC GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null"
    " GIT_AUTHOR_NAME=kiwi GIT_AUTHOR_EMAIL=kiwi@example.org GIT_COMMITTER_NAME=kiwi"
    " GIT_COMMITTER_EMAIL=kiwi@example.org"
)


@attrs.frozen
class Settled:
    """Waits until the supervisor has done what a command gave it to do, so that the next command sees it."""

    operator: Operator
    workspace: Path

    def __call__(self, names: Names) -> None:
        for run in self.operator.ask("team-run.list", state="running")["items"]:
            self.operator.supervised(run["id"], 1)
            if any(
                each["state"] == "idle" for each in self.operator.ask("session.list", team_run_id=run["id"])["items"]
            ):
                for work in self.operator.ask("work.list", team_run_id=run["id"], phase="open")["items"]:
                    if work["owner_id"]:
                        self._admitted(work["id"], run["id"])
        names.learn(self.operator)
        for commit in git(self.workspace, "rev-list", "--reverse", "HEAD").split():
            names.commit(commit)

    def _admitted(self, work_id: str, run_id: str) -> None:
        while self.operator.attempt(work_id, run_id)["custody"] != "claimed":
            seq = self.operator.client.ask("node.status")["seq"]
            self.operator.until(f"team-run:{run_id}.seq>{seq}")


def git(folder: Path, *words: str) -> str:
    env = {**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null", **_OF_BEFORE}
    who = ("-c", "user.name=hana", "-c", "user.email=hana@example.org", "-c", "init.defaultBranch=main")
    return subprocess.run(["git", *who, *words], cwd=folder, env=env, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def played(home: Home, daemon: Daemon) -> Generator[Played]:
    """The whole page, typed."""
    project, workspace = home.temporary / "export", home.temporary / "kiwi"
    project.mkdir()
    git(project, "init", "--quiet")
    git(project, "commit", "--quiet", "--allow-empty", "--message", "begin")
    git(home.temporary, "clone", "--quiet", str(project), str(workspace))
    operator = Operator(daemon.client())
    with own_shell(home) as hana, own_shell(home) as kiwi:
        for shell, folder in ((hana, project), (kiwi, workspace)):
            assert shell.types(f"{_SETUP}; cd {folder}").status == 0
        names = Names(kiwi.pid, {str(project): "~/export", str(workspace): "~/kiwi"})
        yield play(PAGE.read_text(), {"hana": hana, "kiwi": kiwi}, names, Settled(operator, workspace))
    operator.client.sock.close()


def test_the_page_is_what_two_shells_say(played: Played) -> None:
    if RECORD:
        PAGE.write_text(played.page)
    assert played.page == PAGE.read_text(), "if it is right as it is said now, write the page anew: FIRM_RECORD=1"
    refused = [answer.partition("[")[2].partition("]")[0] for _, answer, status in played.said if status]
    assert [code.partition(" ")[0] for code in refused] == [
        "NOT_AUTHORIZED",
        "WORKSPACE_DIRTY",
        "FENCE_STALE",
        "FENCE_STALE",
        "WORK_NOT_CLOSED",
    ]
