"""How each boundary is reached, and who can be killed there: the daemon, a supervisor in a process of its own, the tmux
server, the member's process. Whoever is not at the boundary itself is killed while everything stands still there.
"""

from __future__ import annotations

import enum
import os
import signal
import subprocess
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import attrs

from client.protocol.boundary import Boundary
from client.protocol.effect import EffectKind
from tests.support.apart import Apart, apart, until_adopted
from tests.support.daemon import Daemon
from tests.support.runs import FIRM, Field
from tests.support.wire import PATIENCE


class Victim(enum.StrEnum):
    DAEMON = "daemon"
    SUPERVISOR = "supervisor"
    SERVER = "tmux server"
    MEMBER = "member"


@attrs.define
class Play:
    """One member that runs. ``asked`` is what somebody asks for, with its key, and what came of it."""

    field: Field
    folder: Path
    session: Any
    asked: list[str] = attrs.Factory(list)
    asking: subprocess.Popen[str] | None = None

    def ask(self, *words: str) -> None:
        """Ask and do not wait: whoever has to answer is about to be killed, or to stand still."""
        self.asked = [FIRM, *words, "--idempotency-key", "asked", "--json"]
        self.asking = subprocess.Popen(
            self.asked,
            env=self.field.environment,
            cwd=self.field.repo.root,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
        )

    def answered(self) -> str:
        """What was answered, or nothing when nobody was left to do it."""
        if self.asking is None:
            return ""
        said, _ = self.asking.communicate(timeout=PATIENCE)
        return said if self.asking.returncode == 0 else ""

    def terminal(self) -> int:
        """The first process of the only terminal whose process has not ended."""
        words = ["list-panes", "-a", "-F", "#{pane_dead} #{pane_pid}"]
        tmux = ["tmux", "-S", str(self.field.home.run / "tmux" / "tmux.sock")]
        said = subprocess.run([*tmux, *words], check=True, capture_output=True, text=True, timeout=PATIENCE).stdout
        (pid,) = [int(pid) for dead, pid in map(str.split, said.splitlines()) if dead == "0"]
        return pid


def _assigned(play: Play) -> None:
    """A Work of the member, which is told at its terminal."""
    field = play.field
    wanted = {"title": "build it", "completion_criteria": "it works", "claim_mode": "host_assign"}
    work = field.look("work.create", team_run_id=play.session["team_run_id"], **wanted)
    members = field.look("membership.list", team_id=work["team_id"])["items"]
    (own,) = [each["id"] for each in members if each["agent_member_id"] == play.session["agent_member_id"]]
    play.ask("work", "assign", work["id"], "--expected-version", "1", "--membership-id", own)


def _told(play: Play) -> None:
    _assigned(play)
    assert play.answered()
    while True:
        seq = play.field.seq()
        if any(e["kind"] == "deliver" for e in play.field.look("effect.list", state="settled")["items"]):
            return
        play.field.wait(f"seq>{seq}")


def _steered(play: Play) -> None:
    play.ask("session", "steer", play.session["id"], "--text", "rather blue")


def _interrupted(play: Play) -> None:
    play.ask("session", "interrupt", play.session["id"])


def _closed(play: Play) -> None:
    play.ask("session", "close", play.session["id"])


def _ended(play: Play) -> None:
    os.kill(play.session["pid"], signal.SIGKILL)


def _nothing(_: Play) -> None:
    """What is there already is enough."""


@attrs.frozen
class Scene:
    """``begins`` leads to the boundary, after ``before``. ``nth`` is how often the daemon reaches it until then.
    ``member`` is whether the member has a process at that moment.
    """

    begins: Callable[[Play], None]
    kind: EffectKind | None = None
    before: Callable[[Play], None] = _nothing
    nth: int = 1
    member: bool = True
    doubtful: bool = False  # whether nobody can read afterwards what was done


#: Those of the daemon itself: at its door, and at every commit. The third commit of a daemon is one of its recovery.
_OF_DAEMON = {
    Boundary.AFTER_UNIT: Scene(_nothing, nth=3),
    Boundary.BEFORE_COMMIT: Scene(_nothing, nth=3),
    Boundary.AFTER_COMMIT: Scene(_nothing, nth=3),
    Boundary.LAUNCH_ADMITTED: Scene(_ended, EffectKind.LAUNCH, nth=2),
    Boundary.LAUNCH_PROVEN: Scene(_ended, EffectKind.LAUNCH, nth=2),
}
_OF_SUPERVISOR = {
    Boundary.LAUNCH_PREPARED: Scene(_ended, EffectKind.LAUNCH, nth=2, member=False),
    Boundary.LAUNCH_DONE: Scene(_ended, EffectKind.LAUNCH, nth=2),
    Boundary.LAUNCH_RECORDED: Scene(_ended, EffectKind.LAUNCH, nth=2),
    Boundary.LAUNCH_SETTLED: Scene(_ended, EffectKind.LAUNCH, nth=2),
    Boundary.EXIT_REPORTED: Scene(_ended, member=False),
    Boundary.DELIVER_PREPARED: Scene(_assigned, EffectKind.DELIVER),
    Boundary.DELIVER_PASTED: Scene(_assigned, EffectKind.DELIVER),
    Boundary.DELIVER_ENTERED: Scene(_assigned, EffectKind.DELIVER, doubtful=True),
    Boundary.DELIVER_DONE: Scene(_assigned, EffectKind.DELIVER),
    Boundary.DELIVER_SETTLED: Scene(_assigned, EffectKind.DELIVER),
    Boundary.STEER_PREPARED: Scene(_steered, EffectKind.STEER, before=_told),
    Boundary.STEER_DONE: Scene(_steered, EffectKind.STEER, before=_told),
    Boundary.STEER_SETTLED: Scene(_steered, EffectKind.STEER, before=_told),
    Boundary.INTERRUPT_PREPARED: Scene(_interrupted, EffectKind.INTERRUPT),
    Boundary.INTERRUPT_DONE: Scene(_interrupted, EffectKind.INTERRUPT),
    Boundary.STOP_PREPARED: Scene(_closed, EffectKind.STOP),
    Boundary.STOP_DONE: Scene(_closed, EffectKind.STOP, member=False),
}
SCENES = {**_OF_DAEMON, **_OF_SUPERVISOR}
#: Reached while no daemon runs (tests/store/test_restore.py), or of a daemon alone, without any member
#: (tests/e2e/test_workspaces.py), or of a program with ways of its own (tests/e2e/test_dialogs.py).
ALONE = {
    Boundary.RESTORE,
    *(each for each in Boundary if each.startswith(("archive-", "dialog-"))),
    Boundary.DELIVER_READIED,
}
_COMMITS = {Boundary.AFTER_UNIT, Boundary.BEFORE_COMMIT, Boundary.AFTER_COMMIT}


def victims(boundary: Boundary) -> list[Victim]:
    return [each for each in Victim if each is not Victim.MEMBER or SCENES[boundary].member]


def play(field: Field, boundary: Boundary, victim: Victim, begun: Callable[[], None]) -> Play:
    """Kill the victim at the boundary, and have the next one go on. ``begun`` is called before anything leads there."""
    scene = SCENES[boundary]
    in_apart = victim is Victim.SUPERVISOR and boundary in _OF_SUPERVISOR
    dies = victim is Victim.DAEMON or in_apart
    crash = f"{boundary}:{1 if in_apart else scene.nth}{'' if dies else ':stop'}"
    later = in_apart or boundary in _COMMITS
    folder = field.talker(quiet=20, settle=0.3, profile="steers = true")
    daemon = field.start(**({} if later else {"FIRM_CRASH_AT": crash}))
    assert field.call("up", "team.toml", "--detach").returncode == 0
    (session,) = field.until_live()
    made = Play(field, folder, session)
    with ExitStack() as stack:
        scene.before(made)
        other = None
        if victim is Victim.SUPERVISOR:
            env = {"FIRM_CRASH_AT": crash} if in_apart else {}
            other = stack.enter_context(apart(field, session["team_run_id"], lease=1, **env))
            until_adopted(field, session["id"], other.sup_gen)
        begun()
        if boundary in _COMMITS:
            daemon.kill()
            daemon = field.begin(FIRM_CRASH_AT=crash)
        scene.begins(made)
        _kill(made, victim, daemon, other, dies=dies)
        if victim is Victim.DAEMON:
            field.start()
    return made


def _kill(made: Play, victim: Victim, daemon: Daemon, other: Apart | None, *, dies: bool) -> None:
    if victim is Victim.DAEMON:
        assert daemon.wait() == -signal.SIGKILL
        return
    if dies:
        assert other is not None
        assert other.wait() == -signal.SIGKILL
        return
    with _standing(daemon):
        match victim:
            case Victim.SUPERVISOR:
                assert other is not None
                other.process.kill()
                assert other.wait() == -signal.SIGKILL
            case Victim.SERVER:
                server = made.field.server()
                assert server is not None
                os.kill(server, signal.SIGKILL)
            case _:
                os.kill(made.terminal(), signal.SIGKILL)


@contextmanager
def _standing(daemon: Daemon) -> Generator[None]:
    """While it stands still at the boundary."""
    found = os.waitid(os.P_PID, daemon.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
    assert found is not None
    assert found.si_code == os.CLD_STOPPED, f"the daemon ended:\n{daemon.log}"
    try:
        yield
    finally:
        daemon.signal(signal.SIGCONT)
