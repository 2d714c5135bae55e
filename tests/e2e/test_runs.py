"""Runs with a real daemon and a real tmux: what is left, and what goes on, whoever of them is killed."""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import subprocess
import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import attrs
import psutil
import pytest

from providers.process import Process, process, under
from tests.support.bound import ROOT, WHO, Operator
from tests.support.daemon import Daemon, Home
from tests.support.wire import PATIENCE

pytestmark = pytest.mark.skipif(shutil.which("tmux") is None, reason="there is no tmux here")

#: The program of a Work: leaves a child behind in a session of its own, says its pid, and goes on.
STRAY = """#!/bin/sh
setsid sh -c 'setsid sh -c "trap : TERM HUP; echo \\$\\$ > {fifo}; while :; do sleep 600; done" & exit 0' &
while :; do sleep 600; done
"""

#: The program of a Work: leaves a child behind, forked twice, in a session of its own, in an environment that it is
#: given; once nobody of the member is above it, that asks with the operator's key, and says what it is taken for.
ASKS = """#!{python} -I
import os, signal
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        open({may!r}).read()
        os.dup2(os.open({told!r}, os.O_WRONLY), 1)
        os.execve({python!r}, [{python!r}, "-I", "-c", {who!r}, {root!r}], {env})
    os._exit(0)
os.wait()
open({may!r}, "w").write("now")
while True:
    signal.pause()
"""


def gone(pid: int, ticks: int) -> bool:
    """Whether a process ends, which is waited for."""
    with Process(pid, ticks).held() as fd:
        return fd is None or bool(select.select([fd], [], [], PATIENCE)[0])


def server(home: Home) -> Process | None:
    """The tmux server of that home, as it recorded itself, if it is that."""
    record = home.run / "tmux" / "server.json"
    if not record.exists():
        return None
    said = json.loads(record.read_text())
    found = Process(said["pid"], said["start_ticks"])
    return found if found.lives() else None


def end_tmux(home: Home) -> None:
    """Nothing of a home's tmux is left; only what it had started is touched."""
    while (found := server(home)) is not None:
        for each in (*under(found), found):
            each.signal(signal.SIGKILL)
        assert gone(found.pid, found.start_ticks)


@attrs.define
class Scene:
    """A running run in which Bob is a ``command`` member; Ann, its Host, is the person at this machine."""

    home: Home
    daemon: Daemon
    operator: Operator
    run: str
    membership: str

    def sessions(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.operator.ask("session.list", team_run_id=self.run)["items"]
        return found

    def session(self, *, state: str = "idle", after: int = 0, process: str = "live") -> dict[str, Any]:
        """Bob's session, once it is that."""
        while True:
            answered = self.operator.client.ask("session.list", {"team_run_id": self.run})
            for each in answered["answer"]["items"]:
                if (each["state"], each["process"]) == (state, process) and each["session_gen"] > after:
                    found: dict[str, Any] = each
                    return found
            self.operator.until(f"team-run:{self.run}.seq>{answered['seq']}")

    def effects(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.operator.ask("effect.list", team_run_id=self.run)["items"]
        return found

    def restarts(self) -> None:
        """A daemon begins after the former one was killed."""
        self.daemon.kill()
        self.daemon = self.home.start()
        self.operator.client.sock.close()
        self.operator = Operator(self.daemon.client())

    def working(self, context: str) -> dict[str, Any]:
        """A Work of Bob's that his worker has started."""
        made = self.operator.ask(
            "work.create", team_run_id=self.run, title="run it", completion_criteria="it ran", context=context
        )
        given = self.operator.ask(
            "work.assign", work_id=made["id"], expected_version=made["version"], membership_id=self.membership
        )
        while True:
            answered = self.operator.client.ask("work.show", {"work_id": given["id"]})
            if answered["answer"]["work"]["phase"] == "active":
                work: dict[str, Any] = answered["answer"]["work"]
                return work
            self.operator.until(f"team-run:{self.run}.seq>{answered['seq']}")

    def stray(self) -> Process:
        """What the program of a Work left behind."""
        fifo = self.home.temporary / "stray"
        os.mkfifo(fifo)
        self.working(STRAY.format(fifo=fifo))
        found = process(int(fifo.read_text()))
        assert found is not None
        return found

    def close(self, session: dict[str, Any]) -> dict[str, Any]:
        """The stop of a session, settled."""
        asked = self.operator.ask("session.close", session_id=session["id"])
        self.operator.until(f"effect:{asked['id']}.state=settled")
        return self.operator.ask("effect.show", effect_id=asked["id"])


@pytest.fixture
def scene(home: Home) -> Generator[Scene]:
    daemon = home.start(env={"XDG_DATA_HOME": str(home.temporary)})
    operator = Operator(daemon.client())
    folder = home.temporary / "project"
    folder.mkdir()
    operator.ask("agent.create", name="ann", profile="me")
    operator.ask("agent.create", name="bob", profile="command", workspace="shared")
    team = operator.ask("team.create", name="crew", host_agent_id="ann", project=str(folder))["id"]
    invited = operator.ask("membership.invite", team_id=team, agent_member_id="bob")
    joined = operator.ask("membership.join", membership_id=invited["id"], expected_version=1)
    run = operator.ask("team-run.create", team_id=team)
    operator.ask("team-run.start", team_run_id=run["id"], expected_version=1)
    made = Scene(home, daemon, operator, run["id"], joined["id"])
    try:
        yield made
    finally:
        made.operator.client.sock.close()
        try:
            made.daemon.close()
        finally:
            end_tmux(home)


@contextmanager
def foreign(home: Home) -> Iterator[Process]:
    """Another tmux server of the same person, which is none of ours."""
    tmux = ["tmux", "-f", "/dev/null", "-S", str(home.temporary / "theirs.sock")]
    subprocess.run([*tmux, "new-session", "-d", "-s", "theirs", "sleep 600"], check=True)
    asked = subprocess.run([*tmux, "display-message", "-p", "#{pid}"], check=True, capture_output=True)
    found = process(int(asked.stdout))
    assert found is not None
    try:
        yield found
    finally:
        subprocess.run([*tmux, "kill-server"], check=False)


def kill(session: dict[str, Any]) -> None:
    assert Process(session["pid"], session["start_ticks"]).signal(signal.SIGKILL)


def test_a_member_that_is_killed_is_launched_again(scene: Scene) -> None:
    first = scene.session()
    kill(first)
    second = scene.session(after=first["session_gen"])
    assert second["session_gen"] == first["session_gen"] + 1
    assert Process(second["pid"], second["start_ticks"]).lives()
    events = scene.operator.ask("event.list", stream=f"session/{first['id']}")["items"]
    assert "exited: ended by signal 9" in [each["kind"] for each in events]


def test_a_member_lets_the_daemon_go_first(scene: Scene) -> None:
    assert os.getpriority(os.PRIO_PROCESS, scene.session()["pid"]) == max(10, os.getpriority(os.PRIO_PROCESS, 0))


def test_a_daemon_that_is_killed_finds_the_same_process_again(scene: Scene) -> None:
    """The next supervisor of the run holds it, nothing is started twice, and its capability goes on."""
    first = scene.session()
    held = scene.operator.ask("team-run.show", team_run_id=scene.run)["run"]["sup_gen"]
    scene.restarts()
    scene.operator.supervised(scene.run, held + 1)
    while True:
        shown = scene.operator.client.ask("session.show", {"session_id": first["id"]})
        if shown["answer"]["capability"]["sup_gen"] == held + 1:
            break
        scene.operator.until(f"team-run:{scene.run}.seq>{shown['seq']}")
    session = scene.session()
    assert (session["id"], session["pid"], session["start_ticks"]) == (first["id"], first["pid"], first["start_ticks"])
    assert len(scene.effects()) == 1
    work = scene.working("#!/bin/sh\nexec sleep 600\n")
    assert work["owner_id"] == scene.membership, "it heard of a Work from the new daemon"


def test_a_tmux_server_that_is_killed_takes_no_work_away(scene: Scene) -> None:
    """The session is over within seconds, its Work keeps its owner, and a new server holds its successor."""
    first = scene.session()
    work = scene.working("#!/bin/sh\nexec sleep 600\n")
    former = server(scene.home)
    assert former is not None
    with foreign(scene.home) as theirs:
        below = under(former)
        former.signal(signal.SIGKILL)
        try:
            assert (
                scene.operator.ask(
                    "event.wait", predicate=f"session:{first['id']}.version>{first['version']}", timeout_ms=5000
                )["timed_out"]
                is False
            )
            over = scene.operator.ask("session.show", session_id=first["id"])["session"]
            assert over["state"] in {"cold", "recovery_required", "closed"}
            shown = scene.operator.ask("work.show", work_id=work["id"])
            assert shown["work"]["owner_id"] == scene.membership
            assert shown["bindings"][-1]["custody"] == "orphaned_unverified"
            assert theirs.lives()
        finally:
            for each in below:
                each.signal(signal.SIGKILL)


def test_a_session_that_is_closed_leaves_nothing(scene: Scene) -> None:
    """Nor what had left its session and its parents and does not listen; another tmux is left alone."""
    session, stray = scene.session(), scene.stray()
    with foreign(scene.home) as theirs:
        done = scene.close(session)
        assert (done["certainty"], done["readback"]) == ("applied", "nothing of it is left below our server")
        assert not stray.lives()
        assert not Process(session["pid"], session["start_ticks"]).lives()
        ours = server(scene.home)
        assert ours is not None
        assert {each for each in under(ours) if each.lives()} == set()
        assert theirs.lives()
        assert under(theirs)
    assert [each["state"] for each in scene.sessions() if each["id"] == session["id"]] in ([], ["closed"])


@pytest.mark.parametrize("env", ["dict(os.environ)", "{}"], ids=["marked", "without its mark"])
def test_what_leaves_the_tree_of_a_member_is_not_the_operator(scene: Scene, env: str) -> None:
    """Though it shows the operator's key: it hangs below our terminals, whatever stands in its environment."""
    may, told = scene.home.temporary / "may", scene.home.temporary / "told"
    os.mkfifo(may)
    os.mkfifo(told)
    given = f"{{**{env}, 'FIRM_HOME': {str(scene.home.folder)!r}}}"
    script = ASKS.format(python=sys.executable, may=str(may), told=str(told), who=WHO, root=str(ROOT), env=given)
    scene.session()
    scene.working(script)
    assert told.read_text().strip() == "NOT_AUTHORIZED"


def test_no_secret_stands_where_others_read(scene: Scene) -> None:
    """Neither the capability of a session nor the key of the operator: in no argv, no tmux, no file, no event; nor in
    what a program says that tells all that it knows, on the screen, in its log and in what is kept of the screen.
    """
    session, told = scene.session(), scene.home.temporary / "told"
    os.mkfifo(told)
    scene.working(f"#!/bin/sh\nenv\necho told > {told}\nexec sleep 600\n")
    assert told.read_text() == "told\n"
    variables = Path(f"/proc/{session['pid']}/environ").read_bytes().split(b"\0")
    (token,) = [each.partition(b"=")[2] for each in variables if each.startswith(b"FIRM_CAPABILITY=")]
    assert token
    secrets = [token, scene.daemon.key.encode(), (scene.home.folder / "node.secret").read_bytes().strip()]
    places: dict[str, bytes] = {}
    for each in psutil.process_iter(["pid", "cmdline"]):
        places[f"argv of {each.info['pid']}"] = "\0".join(each.info["cmdline"] or []).encode()
    tmux = ["tmux", "-S", str(scene.home.run / "tmux" / "tmux.sock")]
    (effect,) = scene.effects()
    for words in (["show-environment", "-g"], ["show-environment", "-t", f"={effect['id']}"], ["show-options", "-g"]):
        places[" ".join(words)] = subprocess.run([*tmux, *words], check=True, capture_output=True).stdout
    shown = ["capture-pane", "-p", "-S", "-", "-t", f"={effect['id']}:"]
    places["the screen"] = subprocess.run([*tmux, *shown], check=True, capture_output=True).stdout
    scene.close(session)
    kept = scene.home.temporary / "firm" / "screens"
    for path in (*scene.home.folder.rglob("*"), *scene.home.temporary.rglob("*")):
        if path.is_file() and path.name not in {"operator.key", "node.secret"}:
            places[str(path)] = path.read_bytes()
    places["the log"] = str(scene.daemon.log).encode()
    places["events"] = json.dumps(scene.operator.ask("event.list", limit=500)).encode()
    assert [where for where, said in places.items() if any(secret in said for secret in secrets)] == []
    assert any(effect["id"].encode() in said for where, said in places.items() if where.startswith("argv")) is False
    assert str(scene.home.database) in places
    assert [where for where in places if where.startswith(str(kept))], "its last screen is among them"
    assert {where for where, said in places.items() if b"FIRM_LAUNCH_ID=" in said} > {"the screen"}, "screen and log"
