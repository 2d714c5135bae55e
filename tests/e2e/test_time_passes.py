"""Time that passes while nobody lives through it changes nothing for members that run: a daemon that stood still, a
clock that was set, a machine that slept.
"""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

import attrs
import psutil
import pytest

from daemon.loops import READ_FIRST, TICK
from tests.support.daemon import COMMAND, Daemon
from tests.support.runs import Field
from tests.support.spoil import execute

DAY = 24 * 3600
#: What the suite makes of a minute: a tick is this much shorter, and so is the time for which the daemon stands still.
SCALE = 40

#: A daemon as it is, but for the length of its ticks, and a wall clock that a file sets.
SCALED = """
import sys
from pathlib import Path
import daemon.loops, daemon.main
from daemon.command import main
scale, moved, right = float(sys.argv[1]), Path(sys.argv[2]), daemon.main.now
daemon.loops.TICK, daemon.loops.READ_FIRST = daemon.loops.TICK / scale, daemon.loops.READ_FIRST / scale
daemon.main.now = lambda: right() + int(moved.read_text()) * 1000
sys.exit(main(["run"]))
"""


@attrs.frozen
class Scene:
    """Two launched members, each with a Work that it has begun; ``tick`` is that of the daemon."""

    field: Field
    daemon: Daemon
    tick: float
    clock: Path
    go: Path  # a program waits for a line from the pipe of its name there, and has no child meanwhile

    def facts(self) -> dict[str, Any]:
        """Everything that is recorded of members and their Works, and how far the record goes."""
        works = self.field.ask("work", "list")["items"]
        return {
            "seq": self.field.firm("event", "list", "--limit", "1")["seq"],
            "sessions": self.field.ask("session", "list")["items"],
            "runs": self.field.ask("team-run", "list")["items"],
            "works": [self.field.ask("work", "show", each["id"]) for each in works],
            "processes": sorted(self.field.roots()),
        }

    def lives_through(self, seconds: float) -> None:
        """Let so much time pass, during which the daemon does not end."""
        with pytest.raises(TimeoutError):
            self.daemon.wait(seconds)


def begin(field: Field, scale: float, clock: Path) -> Daemon:
    clock.write_text("0") if not clock.exists() else None
    command = (*COMMAND[:2], "-c", SCALED, str(scale), str(clock))
    return field.home.start(command=command, env={"XDG_DATA_HOME": field.environment["XDG_DATA_HOME"]})


def scene(field: Field, scale: float = SCALE) -> Scene:
    go = field.home.temporary / "go"
    go.mkdir()
    for name in ("kiwi", "lime"):
        os.mkfifo(go / name)
    rows = "".join(
        f'[[work]]\nkey = "{name}"\ntitle = "{name}"\ncriteria = ["x"]\nassign = "{name}"\n'
        f'context = "#!/bin/sh\\nread on < {go}/{name}\\n"\n'
        for name in ("kiwi", "lime")
    )
    field.team("kiwi", "lime", works=rows)
    clock = field.home.temporary / "clock"
    made = Scene(field, begin(field, scale, clock), TICK / scale, clock, go)
    assert field.call("up", "team.toml", "--detach").returncode == 0
    for each in field.ask("work", "list")["items"]:
        field.wait(f"work:{each['id']}.phase=active")
    # So short that it is over within a tick, would anybody count.
    execute(field.home.database, "UPDATE bindings SET lease_ms = 1")
    return made


@pytest.mark.parametrize("scale", [SCALE, pytest.param(1, marks=[pytest.mark.soak, pytest.mark.timeout(300)])])
def test_a_daemon_that_stood_still_for_a_minute_expires_nothing(field: Field, scale: float) -> None:
    """Four ticks, for which it took nothing in; then more of them, in which it does."""
    made = scene(field, scale)
    before = made.facts()
    made.daemon.stopped()
    made.lives_through(60 / scale)
    made.daemon.signal(signal.SIGCONT)
    made.lives_through(3 * (TICK + READ_FIRST) / scale)
    assert made.facts() == before


@pytest.mark.parametrize("scale", [SCALE, pytest.param(1, marks=[pytest.mark.soak, pytest.mark.timeout(300)])])
def test_what_all_stood_still_together_goes_on_where_it_was(field: Field, scale: float) -> None:
    """What comes nearest to a machine that slept: daemon, tmux server, members and their programs, all at once, and for
    longer than anything waits for another; the wall clock has moved on by a day. On a machine that slept the clock that
    all of them count by would have stood still too, which is less.
    """
    made = scene(field, scale)
    before = made.facts()
    server = field.server()
    assert server is not None
    everything = [made.daemon.pid, server, *field.members()]  # tmux continues what it sees stopped: it comes before
    for pid in everything:
        os.kill(pid, signal.SIGSTOP)
    while not all(psutil.Process(pid).status() == psutil.STATUS_STOPPED for pid in everything):
        os.sched_yield()
    assert set(field.members()) | {made.daemon.pid, server} == set(everything), "nothing of it was left out"
    made.clock.write_text(str(DAY))
    made.lives_through(60 / scale)
    for pid in reversed(everything):  # whoever hears of others first finds them awake
        os.kill(pid, signal.SIGCONT)
    made.lives_through(3 * (TICK + READ_FIRST) / scale)
    assert made.facts() == before
    for each in field.ask("work", "list")["items"]:  # and it goes on: what ends is seen to end, its Work is submitted
        (made.go / each["title"]).write_text("on\n")
        field.wait(f"work:{each['id']}.phase=review")
    assert field.roots() == before["processes"]


@pytest.mark.parametrize("jump", [DAY, -DAY], ids=["forward", "back"])
def test_a_clock_that_jumps_a_day_changes_nothing(field: Field, jump: int) -> None:
    """Nor a machine that slept: what a daemon sees of that is a wall clock that jumped, and another that did not."""
    assert time.get_clock_info("perf_counter").implementation == "clock_gettime(CLOCK_MONOTONIC)", "trio's clock"
    made = scene(field)
    first = field.ask("agent", "create", "mango")["created_at"]
    before = made.facts()
    made.clock.write_text(str(jump))
    made.lives_through(5 * made.tick)
    assert made.facts() == before
    moved = field.ask("agent", "create", "melon")["created_at"] - first
    assert abs(moved / 1000 - jump) < 60, "the daemon's clock did jump"
    made.daemon.kill()
    begin(field, SCALE, made.clock)
    for each in before["sessions"]:
        field.wait(f"session:{each['id']}.version>{each['version']}")
    after = made.facts()
    assert after["processes"] == before["processes"]
    assert [each["bindings"] for each in after["works"]] == [each["bindings"] for each in before["works"]]
    assert [(s["id"], s["pid"], s["state"]) for s in after["sessions"]] == [
        (s["id"], s["pid"], s["state"]) for s in before["sessions"]
    ]
