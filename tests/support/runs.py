"""A repository, a team file and the node that runs it: real tmux, real processes, all ended whatever happens."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Any

import attrs
import pytest

from tests.support.daemon import Daemon, Home, new_home
from tests.support.repos import Repo
from tests.support.terminals import KEEPER, MEMBER
from tests.support.wire import PATIENCE, Client

FIRM = str(Path(sys.executable).with_name("firm"))


#: What a member's hook runs: it is given what it was run for as agents give it, on standard input.
HOOK = """#!/bin/sh
printf '{"hook_event_name": "%s", "turn_id": "%s", "prompt": "x"}' "$1" "$2" | "$FIRM_BIN" member hook
echo "$1 $2 $?" >> "$(dirname "$0")/hooked"
"""


@attrs.define
class Field:
    """``home`` holds node and tmux server; ``repo`` is the project. ``firm`` runs the command as its person."""

    home: Home
    repo: Repo

    @property
    def environment(self) -> dict[str, str]:
        folders = {f"XDG_{name.upper()}_HOME": str(self.home.temporary / name) for name in ("data", "config")}
        return {**self.home.environment, **folders}

    def start(self, **env: str) -> Daemon:
        """A daemon that puts worktrees into this home too, and finds its profiles there."""
        return self.begin(**env).until_ready()

    def begin(self, **env: str) -> Daemon:
        """The same, only started."""
        own = {name: self.environment[name] for name in ("XDG_DATA_HOME", "XDG_CONFIG_HOME")}
        return self.home.launch(env={**own, **env})

    def call(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [FIRM, *words],
            env=self.environment,
            cwd=self.repo.root,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE * 2,
            check=False,
        )

    def firm(self, *words: str) -> Any:  # noqa: ANN401 — whatever the command says as JSON
        done = self.call(*words, "--json")
        assert done.returncode == 0, f"firm {' '.join(words)}: {done.returncode}\n{done.stdout}{done.stderr}"
        return json.loads(done.stdout)

    def ask(self, *words: str) -> Any:  # noqa: ANN401 — whatever the operation answers
        return self.firm(*words)["answer"]

    def node(self, operation: str, **body: object) -> Any:  # noqa: ANN401 — the answer with its sequence number
        """The same without the command, for what is asked often."""
        with Client(self.home.run / "node.sock") as client:
            assert "hello" in client.hello((self.home.folder / "operator.key").read_text().strip())
            said = client.ask(operation, body)
        assert "answer" in said, f"{operation}: {said}"
        return said

    def look(self, operation: str, **body: object) -> Any:  # noqa: ANN401 — whatever the operation answers
        return self.node(operation, **body)["answer"]

    def seq(self) -> int:
        """What was committed last."""
        return int(self.node("event.list", limit=1)["seq"])

    def team(self, *members: str, works: str = "") -> Path:
        """A team file whose Host is the person, with these members of the profile ``command``."""
        rows = "".join(f'[[member]]\nname = "{name}"\n' for name in members)
        path = self.repo.root / "team.toml"
        path.write_text(f'[team]\nname = "crew"\nhost = "me"\n{rows}{works}', "utf-8")
        return path

    def talker(  # noqa: PLR0913 — what a member that takes text can be
        self,
        name: str = "kiwi",
        *,
        works: str = "",
        swallowed: int = 0,
        asks: Sequence[str] = (),
        hooks: bool = False,
        records: str = "",
        keeps: str = "",
        profile: str = "",
        **typing: object,
    ) -> Path:
        """A team file with one member that takes text, and the profile for it; the folder in which it says what it
        took (``terminals.MEMBER``), and in which its hook stands, if it has one. With ``keeps``, where profiles say
        that it keeps its transcripts, it is one that is resumed (``terminals.KEEPER``). With ``records``, the rules as
        TOML, its transcript is NATIVE.jsonl in that folder.
        """
        folder = self.home.temporary / f"{name}-told"
        folder.mkdir()
        if asks:
            (folder / "asks").write_text("\n".join(asks))
        if hooks:
            (folder / "hook").write_text(HOOK)
            (folder / "hook").chmod(0o755)
        says = {"before_enter": 0.1, "settle": 0.5, "quiet": 1.0, "composer": r">\s*", **typing}
        program = KEEPER if keeps else MEMBER
        argv = ["{python}", "-I", "-S", "-c", program, str(folder), str(swallowed), "> "]
        rows = [
            f"argv = {json.dumps(argv)}",
            "nice = 0",  # its turn is over after one quiet second, also where everybody else is busy
            profile,
            "[typing]",
            *(f"{key} = {_toml(value)}" for key, value in says.items()),
            *(["[hooks]", 'begun = ["Begin"]', 'ended = ["Stop"]', 'waiting = ["Ask"]'] if hooks else []),
        ]
        if records:
            keeps = f"{folder}/{{native_id}}.jsonl"
        if keeps:
            words = ["[native]", 'start = ["--session-id", "{native_id}"]', 'resume = ["--resume", "{native_id}"]']
            rows += [*words, f"transcript = {json.dumps(keeps)}", records]
        profiles = Path(self.environment["XDG_CONFIG_HOME"]) / "firm" / "profiles"
        profiles.mkdir(parents=True, exist_ok=True)
        (profiles / "talker.toml").write_text("\n".join(rows), "utf-8")
        member = f'[[member]]\nname = "{name}"\nprofile = "talker"\n'
        (self.repo.root / "team.toml").write_text(f'[team]\nname = "crew"\nhost = "me"\n{member}{works}', "utf-8")
        return folder

    def live(self) -> list[Any]:
        """Sessions that are open and proven to run."""
        return [s for s in self.look("session.list")["items"] if s["state"] == "idle" and s["process"] == "live"]

    def until_live(self, count: int = 1) -> list[Any]:
        """The same, once there are so many."""
        while True:
            seq = self.seq()
            if len(found := self.live()) >= count:
                return found
            self.wait(f"seq>{seq}")

    def until_proven(self, count: int = 1) -> list[Any]:
        """The same, once the supervisor of now has proven them all: none is left over from what an earlier one knew."""
        while True:
            seq = self.seq()
            (run,) = self.look("team-run.list")["items"]
            found = [each for each in self.live() if self.held_by(each["id"]) == run["sup_gen"]]
            if len(found) >= count:
                return found
            self.wait(f"seq>{seq}")

    def held_by(self, session_id: str) -> int:
        """The generation of the supervisor that proved that session last."""
        return int(self.look("session.show", session_id=session_id)["capability"]["sup_gen"])

    def wait(self, predicate: str) -> None:
        """Until it is true, or the test fails."""
        waited = self.look("event.wait", predicate=predicate, timeout_ms=int(PATIENCE * 900), limit=0)
        assert not waited["timed_out"], predicate

    def members(self) -> list[int]:
        """Pids of everything that a launch of this home started, found by its mark."""
        return marked(self.home.folder)

    def roots(self) -> list[int]:
        """Those of the members' processes that none of them started: one for each launch."""
        found = self.members()
        return [pid for pid in found if _parent(pid) not in found]

    def server_lives(self) -> bool:
        """Whether the server that recorded itself still runs."""
        pid = self.server()
        return pid is not None and Path(f"/proc/{pid}").exists()

    def server(self) -> int | None:
        """The pid of this home's tmux server, if one recorded itself."""
        try:
            return int(json.loads((self.home.run / "tmux" / "server.json").read_bytes())["pid"])
        except FileNotFoundError:
            return None


def _toml(value: object) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {_toml(each)}" for key, each in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return json.dumps(value)


def marked(home: Path) -> list[int]:
    """Processes whose environment has a launch of this home. The door it asks at stands in its folder."""
    wanted = f"FIRM_SOCKET={home}".encode()
    found: list[int] = []
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            said = (folder / "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        if any(each.startswith(wanted) for each in said) and any(each.startswith(b"FIRM_LAUNCH_ID=") for each in said):
            found.append(int(folder.name))
    return found


def _parent(pid: int) -> int:
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return 0
    return int(stat.rpartition(b")")[2].split()[1])


@pytest.fixture
def field(tmp_path: Path) -> Generator[Field]:
    root = tmp_path / "repo"
    root.mkdir()
    with new_home() as home:
        made = Field(home, Repo(root))
        made.repo.git("init", "-q", "-b", "main")
        made.repo.commit()
        try:
            yield made
        finally:
            _end(made)


def _end(made: Field) -> None:
    """Everything of this home by its own marks: daemons first, which would start a server anew; then the members, and
    the server that would take them in.
    """
    try:
        made.home.close()
    finally:
        for pid in [*made.members(), *filter(None, [made.server()])]:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
