"""Daemon, tmux server and members are killed at random moments. What is left afterwards is one proven process for each
place or a person who is asked, nothing unsettled that could be read, and Works that belong to whom they belonged.
"""

from __future__ import annotations

import contextlib
import os
import random
import select
import signal

import pytest

from tests.support.aftermath import check, events, strangers, until_quiet
from tests.support.crash import dice
from tests.support.daemon import Daemon
from tests.support.runs import Field

MEMBERS = ("kiwi", "lime")


def _kill(pid: int | None) -> None:
    if pid is not None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _hurt(field: Field, daemon: Daemon, chance: random.Random) -> Daemon:
    """One kill, a moment after the last; the daemon that serves afterwards."""
    # Not a guess at how long something takes: the moment is what is random. It ends early with the daemon.
    select.select([daemon.fd], [], [], chance.uniform(0, 0.6))
    match chance.choice(("daemon", "daemon", "member", "member", "server")):
        case "daemon":
            daemon.kill()
            return field.start()
        case "member":
            roots = field.roots()
            _kill(chance.choice(roots) if roots else None)
        case _:
            _kill(field.server())
    return daemon


@pytest.mark.parametrize("kills", [20, pytest.param(200, marks=pytest.mark.soak)])
def test_after_kills_at_random_every_place_has_one_proven_process(field: Field, kills: int) -> None:
    chance = dice()
    work = '[[work]]\nkey = "w"\ntitle = "wait"\ncriteria = ["x"]\nassign = "kiwi"\n'
    work += 'context = "#!/bin/sh\\nexec sleep 600\\n"\n'
    field.team(*MEMBERS, works=work)
    daemon = field.start()
    assert field.call("up", "team.toml", "--detach").returncode == 0
    before = events(field)
    with strangers(field):
        for _ in range(kills):
            daemon = _hurt(field, daemon, chance)
        # The last daemon begins anew: what failed in a row before counts no more.
        daemon.kill()
        field.start()
        until_quiet(field, len(MEMBERS))
        # Each has one that goes on. Where nobody can prove what became of a launch, a person is asked, and ``check``
        # sees that they are.
        goes_on = [each for each in field.look("session.list")["items"] if each["state"] != "closed"]
        assert len({each["agent_member_id"] for each in goes_on}) == len(goes_on) == len(MEMBERS)
        check(field, before)
        (work,) = field.look("work.list")["items"]
        assert (work["title"], work["phase"] in {"open", "active"}, work["owner_id"] is None) == ("wait", True, False)
        done = field.call("down")
        assert (done.returncode, field.members(), field.server_lives()) == (0, [], False), done.stdout
