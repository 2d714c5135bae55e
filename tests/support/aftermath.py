"""What must hold after somebody was killed, whoever it was and whenever: nothing that was answered is lost, nothing was
done twice, every session says what became of it, and what is somebody else's was left alone.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import libtmux

from providers.process import MARK, Process, process
from tests.support.runs import Field

#: What the record says of a session that had a process, once nobody looks for it any more: how it was found, and what
#: showed it.
_EVIDENCE = re.compile(
    r"ready"  # proven at its launch; the launch says by which process
    r"|adopted: %\d+ pid=\d+ ticks=\d+"
    r"|lost: .+"
    r"|exited: (how it ended is not read yet|ended .+|lost: .+)"
    r"|stopped"
)


@contextmanager
def strangers(field: Field) -> Generator[None]:
    """A tmux server and processes of somebody else beside a run; afterwards they are as they were."""
    theirs = libtmux.Server(socket_path=field.home.temporary / "theirs")
    theirs.cmd("-f", "/dev/null", "new-session", "-d", "-s", "ab01", "-c", str(field.repo.root), "sleep", "600")
    pids = [int(theirs.cmd("display-message", "-p", name).stdout[0]) for name in ("#{pid}", "#{pane_pid}")]
    sleeper = subprocess.Popen(["sleep", "600"], env={MARK: "ab01"}, cwd=field.repo.root)
    before = [process(pid) for pid in (*pids, sleeper.pid)]
    sessions = theirs.cmd("list-sessions").stdout
    try:
        yield
        assert [isinstance(each, Process) and each.lives() for each in before] == [True] * len(before)
        assert theirs.cmd("list-sessions").stdout == sessions
    finally:
        theirs.cmd("kill-server")
        sleeper.kill()
        sleeper.wait()


def events(field: Field) -> list[Any]:
    """All of them, oldest first."""
    found: list[Any] = []
    cursor = ""
    while True:
        page = field.look("event.list", limit=500, cursor=cursor)
        if not page["items"]:
            return found
        found += page["items"]
        cursor = page["cursor"]


def until_quiet(field: Field, places: int) -> list[Any]:
    """The sessions that have a process, once nothing is under way any more, and each of so many places has one that the
    supervisor of now has proven and that lives, or is somebody's to decide: its member ended in the middle of a turn.
    """
    while True:
        seq = field.seq()
        (run,) = field.look("team-run.list")["items"]
        sessions = field.look("session.list")["items"]
        found = [each for each in sessions if each["process"] == "live"]
        left = [each for each in sessions if each["state"] == "recovery_required"]
        under_way = field.look("effect.list", state="prepared")["items"]
        proven = [each for each in found if field.held_by(each["id"]) == run["sup_gen"]]
        if len(found) + len(left) == places and proven == found and not under_way and _roots(field) == _pids(found):
            return found
        field.wait(f"seq>{seq}")


def _roots(field: Field) -> list[int]:
    return sorted(field.roots())


def _pids(sessions: Sequence[Any]) -> list[int]:
    return sorted(each["pid"] for each in sessions)


def check(field: Field, before: Sequence[Any], *, ran: Path | None = None) -> None:
    """``before`` is what had been committed before the first kill; ``ran`` is what programs wrote that were started,
    the launch and pid of each in a line of its own.
    """
    after = events(field)
    assert after[: len(before)] == list(before), "what was committed is there, as it was"
    _each_change_once(after)
    effects = field.look("effect.list", limit=500)["items"]
    sessions = field.look("session.list", limit=500)["items"]
    assert _roots(field) == _pids([each for each in sessions if each["process"] == "live"])
    _each_launch_once(effects, sessions, ran)
    _each_says_what_became_of_it(after, effects, sessions)
    _works_are_done_once(field)
    # What could not be read back is somebody's to decide, and they are told while it matters: its session goes on.
    told = {item["about"] for item in field.look("attention.list")["items"]}
    over = {each["id"] for each in sessions if each["state"] == "closed"}
    unread = [each for each in effects if each["state"] == "recovery_required" and each["session_id"] not in over]
    assert {f"effect/{each['id']}" for each in unread} <= told
    assert {f"session/{each['id']}" for each in sessions if each["state"] == "recovery_required"} <= told


def _each_change_once(after: Sequence[Any]) -> None:
    """Every record went from version to version, one event each."""
    versions: dict[str, int] = {}
    for event in after:
        assert event["version"] == versions.get(event["stream"], 0) + 1, event
        versions[event["stream"]] = event["version"]
    assert [event["seq"] for event in after] == list(range(1, len(after) + 1))


def _each_launch_once(effects: Sequence[Any], sessions: Sequence[Any], ran: Path | None) -> None:
    """At most one launch of a session came to something, and no launch came to two processes."""
    launched = [e["session_id"] for e in effects if e["kind"] == "launch" and e["certainty"] == "applied"]
    assert len(launched) == len(set(launched)), "a session was launched twice"
    assert {each["id"] for each in sessions if each["process"] == "live"} <= set(launched)
    pids = [each["pid"] for each in effects if each["kind"] == "launch" and each["pid"]]
    assert len(pids) == len(set(pids)), "two launches name one process"
    if ran is not None and ran.exists():
        lines = [line.split() for line in ran.read_text().splitlines()]
        known = {(e["id"], str(e["pid"])) for e in effects if e["kind"] == "launch"}
        assert len({launch for launch, _ in lines}) == len(lines), "a launch started two processes"
        assert {(launch, pid) for launch, pid in lines} <= known, "a process that no launch names"


def _each_says_what_became_of_it(after: Sequence[Any], effects: Sequence[Any], sessions: Sequence[Any]) -> None:
    proven = {e["session_id"]: e for e in effects if e["kind"] == "launch" and e["certainty"] == "applied"}
    for session in sessions:
        said = [event["kind"] for event in after if event["stream"] == f"session/{session['id']}"]
        found = [kind for kind in said if _EVIDENCE.fullmatch(kind)]
        if session["id"] in proven:
            assert found, said
            assert f"pid={proven[session['id']]['pid']}" in proven[session["id"]]["readback"]
        if session["state"] == "closed":
            assert found[-1].startswith(("lost: ", "exited: ", "stopped")), said


def _works_are_done_once(field: Field) -> None:
    """A Work has at most one attempt that somebody may go on with; each attempt has a fence of its own."""
    for work in field.look("work.list")["items"]:
        bindings = field.look("work.show", work_id=work["id"])["bindings"]
        assert len([each for each in bindings if each["custody"] in {"claimed", "orphaned_unverified"}]) <= 1, bindings
        fences = [each["fence"] for each in bindings]
        assert len(fences) == len(set(fences)), bindings
