"""``make demo``: a team of three does real work in a real repository, is hurt, and finishes.

Six Works with prerequisites; one fails its check and is sent back; one member is killed in the middle; the daemon is
killed too. The Host accepts on evidence. Then everything is stopped, and proven stopped. Needs git and tmux; no model,
no network. Everything is in a temporary folder. Ends with 1 when a proof fails.
"""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
from pathlib import Path
from typing import Any

import attrs

FIRM = str(Path(sys.executable).with_name("firm"))
TEAM = Path(__file__).with_name("demo") / "team.toml"
COLUMNS = 80
#: Seconds in which each step of the demo has to come to its end.
PATIENCE = 90
_TESTS = {
    "words": "self.assertEqual(words('one two\\nthree'), 3)",
    "lines": "self.assertEqual(lines('one\\ntwo\\n'), 2)",
    "report": "self.assertEqual(report('one two\\n'), '2 words, 1 lines')",
}


class Failed(Exception):
    """Something did not go as it must; the message says what."""


@attrs.frozen
class Stage:
    """The temporary folder: FIRM_HOME, the worktrees, and the repository in which the person stands."""

    root: Path

    @property
    def environment(self) -> dict[str, str]:
        own = {"FIRM_HOME": str(self.root / "home"), "XDG_DATA_HOME": str(self.root / "data"), "COLUMNS": "100"}
        return {**os.environ, **own}

    @property
    def repository(self) -> Path:
        return self.root / "counter"

    def call(self, *words: str, status: int | None = 0) -> str:
        """What a command says. Raises ``Failed`` when it ends otherwise than expected."""
        done = subprocess.run(
            words,
            env=self.environment,
            cwd=self.repository,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        if status is not None and done.returncode != status:
            raise Failed(f"{' '.join(words)}: status {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout.rstrip()

    def firm(self, *words: str) -> Any:  # noqa: ANN401 — whatever the operation answers
        return json.loads(self.call(FIRM, *words, "--json"))

    def ask(self, *words: str) -> Any:  # noqa: ANN401 — as above
        return self.firm(*words)["answer"]

    def show(self, *words: str, only: tuple[str, ...] = ("",)) -> None:
        """Run a command and let the reader see it and what it says: so much of it as has one of the words ``only``."""
        shown = ["firm" if word == FIRM else word.replace(str(self.root), "$DEMO") for word in words]
        print(" \\\n".join(_folded(shlex.join(shown).replace("'$DEMO'", "$DEMO"), "   $ ")))
        said = [line for line in self.call(*words).replace(str(self.root), "$DEMO").splitlines() if line.strip()]
        kept = [line for line in said if any(word in line for word in only)]
        for line in kept:
            print("\n".join(_folded(line.strip() if only != ("",) else line, "     ")))
        if len(kept) < len(said):
            print(f"     … and {len(said) - len(kept)} lines more")

    def wait(self, predicate: str) -> None:
        waited = self.firm("wait", predicate, "--timeout-ms", str(PATIENCE * 1000))
        if waited["answer"]["timed_out"]:
            raise Failed(f"not within {PATIENCE} s: {predicate}")


def _folded(line: str, begin: str) -> list[str]:
    """As it is, where it fits; else over several lines."""
    if len(begin + line) < COLUMNS:
        return [(begin + line).rstrip()]
    return textwrap.wrap(
        line,
        COLUMNS - 2,
        initial_indent=begin,
        subsequent_indent=begin.replace("$", " ") + "  ",
        break_on_hyphens=False,
    )


def say(number: int, what: str) -> None:
    print("\n".join(_folded(f"{number}. {what}", "")), flush=True)


def proof(what: str, *, holds: bool) -> None:
    print("\n".join(_folded(f"{'proven' if holds else 'NOT TRUE'}: {what}", "   ")), flush=True)
    if not holds:
        raise Failed(what)


def main() -> int:
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="firm-demo-") as folder:
        stage = Stage(Path(folder).resolve())
        try:
            _story(stage)
        except Failed as why:
            print(f"\nThe demo failed: {why}", file=sys.stderr)
            print(stage.call(FIRM, "node", "logs", status=None), file=sys.stderr)
            return 1
        finally:
            stage.call(FIRM, "down", status=None)
            stage.call(FIRM, "node", "stop", status=None)
    print(f"Every proof held, in {time.monotonic() - began:.0f} s. Nothing is left: not a process, not a file.")
    return 0


def _story(stage: Stage) -> None:
    say(1, "A repository with tests and no program; a team of three, and six Works")
    _repository(stage)
    stage.show(FIRM, "up", "team.toml", "--detach", only=("daemon started", "member "))
    run = stage.ask("team-run", "list")["items"][-1]["id"]
    works = {work["title"]: work["id"] for work in stage.ask("work", "list", "--team-run-id", run)["items"]}
    _hurt(stage, works["Count lines"])
    say(4, "kiwi's first attempt fails its check, and hana sends it back")
    stage.wait(f"work:{works['Count words']}.resolution=accepted")
    receipts = stage.ask("work", "receipts", works["Count words"])["items"]
    first, second = (json.loads(receipt["body"])["candidate_revision"][:7] for receipt in receipts)
    fences = [receipt["fence"] for receipt in receipts]
    proof(f"attempt 1, {first}, was sent back, and attempt 2, {second}, accepted", holds=fences == [1, 2])
    _finish(stage, run, works)
    _end(stage)


def _repository(stage: Stage) -> None:
    tests = stage.repository / "tests"
    tests.mkdir(parents=True)
    (stage.repository / "README").write_text("Counts the words\nand the lines of a text.\n", "utf-8")
    (tests / "__init__.py").touch()
    for name, line in _TESTS.items():
        text = f"import unittest\n\nfrom {name} import {name}\n\n\nclass T(unittest.TestCase):\n"
        (tests / f"test_{name}.py").write_text(f"{text}    def test_{name}(self):\n        {line}\n", "utf-8")
    (stage.repository / "team.toml").write_bytes(TEAM.read_bytes())
    (stage.repository / ".gitignore").write_text("__pycache__/\n", "utf-8")
    for words in (["init", "-q", "-b", "main"], ["add", "."]):
        stage.call("git", *words)
    person = ["-c", "user.name=You", "-c", "user.email=you@example.invalid", "-c", "commit.gpgsign=false"]
    stage.call("git", *person, "commit", "-q", "-m", "Tests first")


def _hurt(stage: Stage, work_id: str) -> None:
    say(2, "In the middle of her Work lime is killed, and then the daemon too")
    stage.wait(f"work:{work_id}.phase=active")
    before = {row["member"]: row["pid"] for row in stage.firm("ps")["members"]}
    print(f"   $ kill -9 {before['lime']}    # lime")
    os.kill(before["lime"], signal.SIGKILL)
    stage.wait(f"work:{work_id}.version>0")
    _until_orphaned(stage, work_id)
    daemon = int(stage.firm("node", "status")["pid"])
    print(f"   $ kill -9 {daemon}    # the daemon")
    os.kill(daemon, signal.SIGKILL)
    stage.show(FIRM, "node", "start")
    after = {row["member"]: row["pid"] for row in stage.firm("ps")["members"]}
    proof("kiwi and hana went on in the same processes", holds=all(after[n] == before[n] for n in ("kiwi", "hana")))
    say(3, "Nobody knows what lime's attempt left behind: a person looks, and says it")
    stage.show(
        *(FIRM, "recover", "lime", "--finding", "NO_SIDE_EFFECTS", "--responsibility", "keep"),
        *("--reason", "the worktree is clean"),
    )


def _until_orphaned(stage: Stage, work_id: str) -> None:
    """Until it was noticed that the process of a member is gone in the middle of its Work."""
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        if stage.ask("work", "show", work_id)["bindings"][-1]["custody"] == "orphaned_unverified":
            return
        seq = stage.firm("event", "list", "--limit", "1")["seq"]
        stage.firm("wait", f"seq>{seq}", "--timeout-ms", "1000")
    raise Failed("that lime's process ended was not noticed")


def _finish(stage: Stage, run: str, works: dict[str, str]) -> None:
    say(5, "What needs it follows, accepted on evidence, one after the other")
    print("     accepted:", end="", flush=True)
    for number, work_id in enumerate(works.values(), 1):
        stage.wait(f"work:{work_id}.resolution=accepted")
        print(f" {number}", end="", flush=True)
    print()
    stage.show(FIRM, "board", "--team-run-id", run)
    stage.show("git", "log", "--oneline", "firm/demo/lime")
    shown = [stage.ask("work", "show", work_id) for work_id in works.values()]
    accepted = all(each["work"]["resolution"] == "accepted" for each in shown)
    proof("all six Works were accepted, each with its receipt", holds=accepted and len(shown) == len(works))
    said = stage.call("git", "show", "firm/demo/lime:MANUAL").splitlines()[-1]
    proof(f"the program works: {said}", holds=said == "9 words, 2 lines")


def _end(stage: Stage) -> None:
    say(6, "The end")
    stage.show(FIRM, "down", only=("ended", "completed"))
    stage.show(FIRM, "node", "stop")
    proof("no process of this demo is left", holds=not _left(stage))


def _left(stage: Stage) -> list[int]:
    """Processes whose command or environment names the demo's folder."""
    mine = str(stage.root).encode()
    found: list[int] = []
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit() or int(folder.name) == os.getpid():
            continue
        try:
            said = (folder / "cmdline").read_bytes() + (folder / "environ").read_bytes()
        except OSError:
            continue
        if mine in said:
            found.append(int(folder.name))
    return found


if __name__ == "__main__":
    sys.exit(main())
