"""Ending processes when the looking itself goes wrong."""

from __future__ import annotations

import signal
import subprocess
import threading
from collections.abc import Callable, Iterator

import pytest
import trio

from providers import ending
from providers.port import Unreachable
from providers.process import Process, process


def _sleeping() -> Iterator[subprocess.Popen[bytes]]:
    running = subprocess.Popen(["sleep", "60"])
    yield running
    running.kill()
    running.wait()


sleeper = pytest.fixture(_sleeping, name="sleeper")
parent = pytest.fixture(_sleeping, name="parent")


@pytest.fixture
def stuck(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], set[Process]]]:
    """A look that waits for a process that hangs in the kernel, and the bounds so short that a test can wait."""
    monkeypatch.setattr(ending, "_LOOK_WITHIN", 0.05)
    monkeypatch.setattr(ending, "_PATIENCE", 0.2)
    over = threading.Event()

    def look() -> set[Process]:
        over.wait()
        return set()

    yield look
    over.set()


async def test_nothing_left_is_not_said_when_nobody_could_look(stuck: Callable[[], set[Process]]) -> None:
    with trio.fail_after(5):
        assert isinstance(await ending.end_all(stuck, grace=0.1), Unreachable)


async def test_there_is_a_moment_at_which_it_is_given_up(
    stuck: Callable[[], set[Process]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """However long each step of it may take."""
    for name in ("_LOOK_WITHIN", "_PATIENCE"):
        monkeypatch.setattr(ending, name, 600.0)
    with trio.fail_after(30):
        assert isinstance(await ending.end_all(stuck, until=trio.current_time() + 0.2), Unreachable)


async def test_who_has_little_time_still_kills(sleeper: subprocess.Popen[bytes]) -> None:
    """Half of what is left is for whoever ends by itself."""
    seen = process(sleeper.pid)
    assert seen is not None
    sleeper.send_signal(signal.SIGSTOP)  # it takes no TERM
    with trio.fail_after(30):
        assert await ending.end_all(lambda: {seen}, grace=600.0, until=trio.current_time() + 6.0) == ()


async def test_what_was_seen_before_is_ended_all_the_same(
    stuck: Callable[[], set[Process]], sleeper: subprocess.Popen[bytes]
) -> None:
    seen = process(sleeper.pid)
    assert seen is not None
    looks: list[Callable[[], set[Process]]] = [lambda: {seen}]

    def look() -> set[Process]:
        return looks.pop()() if looks else stuck()

    with trio.fail_after(5):
        found = await ending.end_all(look, grace=0.1)
    assert isinstance(found, Unreachable)
    assert not seen.lives()


async def test_what_cannot_be_ended_is_named(stuck: Callable[[], set[Process]]) -> None:
    """Init of this machine, which heeds no signal of this kind, stands for what hangs: here it is only looked at."""
    del stuck  # for its short bounds
    first = process(1)
    assert first is not None

    class Deaf(Process):
        def signal(self, number: object) -> bool:
            del number
            return True

    with trio.fail_after(5):
        assert await ending.end_all(lambda: {Deaf(first.pid, first.start_ticks)}, grace=0.1) == (1,)


async def test_what_was_born_during_a_look_is_ended(
    sleeper: subprocess.Popen[bytes], parent: subprocess.Popen[bytes]
) -> None:
    """Its parent started it and ended while /proc was read: that look shows neither."""
    born = process(sleeper.pid)
    assert born is not None
    first = process(parent.pid)
    assert first is not None
    looks: list[set[Process]] = [{first}, set(), {born}]

    def look() -> set[Process]:
        if len(looks) == 2:
            parent.wait()
        return looks.pop(0) if looks else set()

    with trio.fail_after(10):
        assert await ending.end_all(look) == ()
    assert not born.lives()
