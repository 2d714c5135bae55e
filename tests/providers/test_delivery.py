"""Delivering once, holding, and waiting for what holds: what every provider promises of that."""

from __future__ import annotations

import os
from pathlib import Path

import attrs
import pytest
import trio

from providers.port import Delivered, Dialog, Handle, Provider, Taken, Typing
from providers.tmux.provider import Tmux
from tests.support.terminals import COMPOSER, QUICK, python, shell, shown, started

SUBMITTED = Delivered(taken=Taken.SUBMITTED)
BEFORE = Delivered(taken=Taken.SUBMITTED, earlier=True)
#: How the programs below like to be typed to: their composer is a line that begins with a mark and has no more.
MARKED = attrs.evolve(QUICK, composer=r">\s*", dialogs=[Dialog(lines=[r"^Do you trust"])])

#: The same, where the composer stays while the program works, and says so once it works no more.
RESTS = attrs.evolve(MARKED, composer=r">( ready)?\s*", rests=[r"^> ready"])


async def composer(provider: Provider, folder: Path, swallowed: int = 0) -> Handle:
    handle = await started(provider, python(folder, COMPOSER, str(swallowed)))
    await shown(provider, handle, "ready")
    return handle


async def test_a_delivery_is_typed_once_however_often_it_is_asked_for(provider: Provider, tmp_path: Path) -> None:
    handle = await composer(provider, tmp_path)
    for said in (SUBMITTED, BEFORE, BEFORE):
        assert await provider.deliver(handle, "one", QUICK, "1") == said
    assert await provider.deliver(handle, "two", QUICK, "2") == SUBMITTED
    screen = await shown(provider, handle, "took <two>")
    assert screen.count("took <") == 2


async def test_what_was_pasted_is_not_pasted_again(provider: Provider, tmp_path: Path) -> None:
    """Whoever typed it ended before Enter."""
    handle = await composer(provider, tmp_path)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(provider.deliver, handle, "words", attrs.evolve(QUICK, before_enter=30), "1")
        await shown(provider, handle, "words")
        nursery.cancel_scope.cancel()
    assert await provider.deliver(handle, "words", QUICK, "1") == SUBMITTED
    screen = await shown(provider, handle, "took <")
    assert "took <words>" in screen


async def test_what_was_sent_and_not_seen_to_be_taken_stays_unsubmitted(provider: Provider, tmp_path: Path) -> None:
    handle = await composer(provider, tmp_path, 3)
    hasty = attrs.evolve(QUICK, settle=0.1)
    for _ in range(2):
        found = await provider.deliver(handle, "words", hasty, "1")
        assert isinstance(found, Delivered)
        assert found.taken is Taken.UNSUBMITTED
    assert "took" not in await shown(provider, handle, "words")


async def test_a_tmux_keeps_for_another_process_what_was_typed(tmux: Tmux, tmp_path: Path) -> None:
    handle = await composer(tmux, tmp_path)
    assert await tmux.deliver(handle, "words", QUICK, "1") == SUBMITTED
    successor = Tmux(tmux._places.folder)
    await successor.open()
    assert await successor.deliver(handle, "words", QUICK, "1") == BEFORE
    assert await successor.deliver(handle, "more", QUICK, "2") == SUBMITTED
    assert (await shown(successor, handle, "took <more>")).count("took <words>") == 1


@pytest.mark.parametrize(
    ("shows", "reason"),
    [
        ("> half a line", "draft"),
        (r"starting\n", "no composer: the program does not show yet"),
        (r"Do you trust this?\n> ", "dialog: it waits for a person: Do"),
    ],
)
async def test_what_stands_in_the_way_holds_until_it_is_gone(
    provider: Provider, tmp_path: Path, shows: str, reason: str
) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    script = f"printf '{shows}'; read x < gate; echo; seq 20; printf '\\n> '; exec sleep 60"
    handle = await started(
        provider, python(tmp_path, "import os, sys; os.execlp('sh', 'sh', '-c', sys.argv[1])", script)
    )
    await shown(provider, handle, shows.split("\\n", maxsplit=1)[0])
    found = await provider.deliver(handle, "words", MARKED, "1")
    assert isinstance(found, Delivered)
    assert (found.taken, found.reason.startswith(reason)) == (Taken.HELD, True)
    with trio.move_on_after(0.5) as waited:
        await provider.clear(handle, MARKED)
    assert waited.cancelled_caught
    await opened(provider, handle, gate, MARKED)


async def opened(provider: Provider, handle: Handle, gate: Path, typing: Typing) -> None:
    """``clear`` ends once the gate was opened, and not for another reason."""
    told = trio.Event()
    async with trio.open_nursery() as nursery:

        async def wait() -> None:
            await provider.clear(handle, typing)
            told.set()

        nursery.start_soon(wait)
        with trio.move_on_after(0.5):
            await told.wait()
        assert not told.is_set()
        held = os.open(gate, os.O_RDWR)
        os.write(held, b"\n")
        with trio.fail_after(5):
            await told.wait()
        os.close(held)


async def test_a_shell_in_front_holds_until_it_ends(provider: Provider, tmp_path: Path) -> None:
    """It shows nothing when it ends."""
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    ahead = """
import os, signal
signal.signal(signal.SIGTTOU, signal.SIG_IGN)
pid = os.fork()
if pid == 0:
    os.setpgid(0, 0); os.tcsetpgrp(0, os.getpid())
    os.execlp("sh", "sh", "-c", "echo shell; read x < gate; true")
os.waitpid(pid, 0)
os.tcsetpgrp(0, os.getpid())
signal.pause()
"""
    handle = await started(provider, python(tmp_path, ahead))
    await shown(provider, handle, "shell")
    await opened(provider, handle, gate, QUICK)


async def test_nobody_waits_for_a_terminal_whose_process_has_ended(provider: Provider, tmp_path: Path) -> None:
    handle = await started(provider, shell(tmp_path, "printf '> half'; read x"))
    await shown(provider, handle, "> half")
    with trio.fail_after(10):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(provider.clear, handle, MARKED)
            nursery.start_soon(provider.quiet, handle, 60)
            with trio.move_on_after(0.3):
                await provider.ended(handle)
            os.kill(handle.pid, 9)


async def test_quiet_is_when_nothing_was_shown_for_so_long(provider: Provider, tmp_path: Path) -> None:
    handle = await started(
        provider, shell(tmp_path, "for n in 1 2 3 4 5 6; do echo $n; sleep 0.4; done; exec sleep 60")
    )
    await shown(provider, handle, "1")
    with trio.fail_after(15):
        await provider.quiet(handle, 1)
        assert "6" in await shown(provider, handle, "6")
        began = trio.current_time()
        await provider.quiet(handle, 1)
        assert trio.current_time() - began >= 0.9


@pytest.mark.parametrize(
    "shows", ["working", "> ready, half a line", "> ", r"> ready\n> ", r"Do you trust this?\n> ready"]
)
async def test_a_quiet_program_rests_once_it_shows_that_it_works_on_nothing(
    provider: Provider, tmp_path: Path, shows: str
) -> None:
    """However long it was quiet before, and whatever stands above the line in which one types."""
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    script = f"printf '{shows}'; read x < gate; echo; seq 20; printf '\\n> ready'; exec sleep 60"
    handle = await started(
        provider, python(tmp_path, "import os, sys; os.execlp('sh', 'sh', '-c', sys.argv[1])", script)
    )
    await shown(provider, handle, shows.split("\\n", maxsplit=1)[0].strip())
    rested = trio.Event()
    async with trio.open_nursery() as nursery:

        async def wait() -> None:
            await provider.quiet(handle, 1, RESTS)
            rested.set()

        nursery.start_soon(wait)
        with trio.move_on_after(2.5):
            await rested.wait()
        assert not rested.is_set()
        held = os.open(gate, os.O_RDWR)
        os.write(held, b"\n")
        with trio.fail_after(10):
            await rested.wait()
        os.close(held)


async def test_who_does_not_say_how_it_rests_is_not_seen_to(provider: Provider, tmp_path: Path) -> None:
    """Many programs keep their composer while they work. Its end is the end of the wait."""
    handle = await started(
        provider, python(tmp_path, "import time; print('> ready', end='', flush=True); time.sleep(60)")
    )
    await shown(provider, handle, "> ready")
    with trio.fail_after(10):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(provider.quiet, handle, 1, attrs.evolve(RESTS, rests=[]))
            with trio.move_on_after(2.5) as waited:
                await provider.ended(handle)
            assert waited.cancelled_caught
            assert nursery.child_tasks
            os.kill(handle.pid, 9)


async def test_what_rests_may_say_so_below_its_composer(tmux: Tmux, tmp_path: Path) -> None:
    """The cursor stands above it."""
    below = r"printf '> \n  ? for help\033[A\r\033[2C'; exec sleep 60"
    handle = await started(tmux, shell(tmp_path, below))
    await shown(tmux, handle, "? for help")
    with trio.fail_after(10):
        await tmux.quiet(handle, 1, attrs.evolve(RESTS, rests=[r"^  \? for help$", "^>"]))
