"""What every provider promises, whatever holds its terminals."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import attrs
import pytest
import trio

from providers.port import Delivered, Exit, NotStarted, Provider, Seen, Stopped, Taken, Why
from providers.process import Process, boot_id, process, start_ticks_of
from tests.support.terminals import (
    COMPOSER,
    PHOENIX,
    QUICK,
    STRAY,
    launch,
    python,
    shell,
    shown,
    started,
    until,
    written,
)


async def test_a_launch_is_found_by_its_id_pid_and_start(provider: Provider, tmp_path: Path) -> None:
    handle = await started(provider, wanted := shell(tmp_path, "echo here; read x"))
    assert handle.launch_id == wanted.launch_id
    assert handle.boot_id == boot_id()
    assert handle.start_ticks == start_ticks_of(handle.pid)
    assert Path(f"/proc/{handle.pid}/cwd").samefile(tmp_path)
    seen = await provider.observe()
    assert isinstance(seen, Seen)
    assert {each: (pane.handle, pane.ended) for each, pane in seen.panes.items()} == {wanted.launch_id: (handle, None)}
    await shown(provider, handle, "here")


async def test_the_same_launch_id_again_is_the_same_terminal(provider: Provider, tmp_path: Path) -> None:
    wanted = shell(tmp_path, "read x")
    handle = await started(provider, wanted)
    assert await provider.start(wanted) == handle
    assert await provider.start(shell(tmp_path, "read x")) != handle
    again: list[object] = []

    async def start() -> None:
        again.append(await provider.start(same))

    same = shell(tmp_path, "read x")
    async with trio.open_nursery() as nursery:
        for _ in range(4):
            nursery.start_soon(start)
    assert len({repr(each) for each in again}) == 1
    assert not isinstance(again[0], NotStarted)


async def test_a_launch_that_ended_is_not_started_again(provider: Provider, tmp_path: Path) -> None:
    handle = await started(provider, wanted := shell(tmp_path, "sleep 0.3; exit 3"))
    assert (await provider.ended(handle)).status == 3
    assert await provider.start(wanted) == handle


async def test_a_folder_that_is_missing_starts_nothing(provider: Provider, tmp_path: Path) -> None:
    found = await provider.start(shell(tmp_path / "gone", "read x"))
    assert isinstance(found, NotStarted)
    assert found.why is Why.WORKSPACE_MISSING
    assert await provider.observe() == Seen(panes={})


async def test_a_launcher_that_is_missing_has_ended(provider: Provider, tmp_path: Path) -> None:
    """Whether it is seen before it has ended is a race; both are said as they were."""
    wanted = shell(tmp_path, "")
    found = await provider.start(attrs.evolve(wanted, argv=("/nowhere/python", wanted.launch_id)))
    if isinstance(found, NotStarted):
        assert found.why is Why.ENDED_AT_ONCE
        assert await provider.observe() == Seen(panes={})
    else:
        assert (await provider.ended(found)).status == 1


@pytest.mark.parametrize("name", ["line\nbreak", "#(exit 1)#{pid}", "%H ;", "##[x]", "tab\tü \x1b[1m"])
async def test_a_folder_may_have_any_name(provider: Provider, tmp_path: Path, name: str) -> None:
    odd = tmp_path / name
    odd.mkdir()
    beside = await started(provider, shell(tmp_path, "read x"))
    handle = await started(provider, shell(odd, "read x"))
    assert Path(f"/proc/{handle.pid}/cwd").samefile(odd)
    seen = await provider.observe()
    assert isinstance(seen, Seen)
    assert {each: pane.handle for each, pane in seen.panes.items()} == {
        beside.launch_id: beside,
        handle.launch_id: handle,
    }


async def test_words_arrive_as_they_are(provider: Provider, tmp_path: Path) -> None:
    words = ["a b", "semi;", "#{pid}", "$HOME", "'", "x\\;", ""]
    wanted = launch(tmp_path, sys.executable, "-I", "-S", "-c", "import sys; print(sys.argv[1:-1]); input()", *words)
    handle = await started(provider, wanted)
    await shown(provider, handle, repr(words))


@pytest.mark.parametrize(
    ("script", "status", "number"),
    [("echo last words; exit 7", 7, None), ("echo last words; kill -KILL $$", None, signal.SIGKILL)],
    ids=["status", "signal"],
)
async def test_how_it_ended_is_known_with_the_last_screen(
    provider: Provider, tmp_path: Path, script: str, status: int | None, number: int | None
) -> None:
    handle = await started(provider, shell(tmp_path, f"sleep 0.1; {script}"))
    found = await provider.ended(handle)
    assert found == Exit(status=status, signal=number, screen="last words")
    assert await provider.ended(handle) == found
    seen = await provider.observe()
    assert isinstance(seen, Seen)
    assert seen.panes[handle.launch_id].ended == attrs.evolve(found, screen="")
    assert await provider.deliver(handle, "x", QUICK, "1") == Delivered(
        taken=Taken.GONE, reason="the first process of this terminal has ended"
    )
    assert await provider.interrupt(handle) is False


async def test_another_process_with_that_number_has_ended(provider: Provider, tmp_path: Path) -> None:
    handle = await started(provider, shell(tmp_path, "read x"))
    stranger = attrs.evolve(handle, launch_id="ff", start_ticks=handle.start_ticks - 1)
    with trio.fail_after(5):
        assert await provider.ended(stranger) == Exit(status=None, signal=None, screen="")
        assert await provider.stop(stranger) == Stopped(left=())
    assert Process(handle.pid, handle.start_ticks).lives()


async def test_fifty_exits_all_have_their_status(provider: Provider, tmp_path: Path) -> None:
    await exits(provider, tmp_path, 50)


@pytest.mark.soak
async def test_two_hundred_exits_all_have_their_status(provider: Provider, tmp_path: Path) -> None:
    await exits(provider, tmp_path, 200)


async def exits(provider: Provider, folder: Path, count: int) -> None:
    wrong: list[tuple[int, Exit]] = []

    async def one(code: int, limit: trio.CapacityLimiter) -> None:
        async with limit:
            handle = await started(provider, shell(folder, f"sleep 0.2; exit {code}"))
            if (found := await provider.ended(handle)).status != code:
                wrong.append((code, found))
            assert await provider.stop(handle) == Stopped(left=())

    async with trio.open_nursery() as nursery:
        limit = trio.CapacityLimiter(8)
        for number in range(count):
            nursery.start_soon(one, number % 100, limit)
    assert wrong == []


@pytest.mark.parametrize("temper", ["meek", "stubborn"])
async def test_a_stop_ends_what_left_its_session(provider: Provider, tmp_path: Path, temper: str) -> None:
    beside = await started(provider, shell(tmp_path, "read x"))
    handle = await started(provider, python(tmp_path, STRAY, str(tmp_path / "pid"), temper))
    stray = await written(tmp_path / "pid")
    assert await provider.stop(handle) == Stopped(left=())
    assert not stray.lives()
    assert not Process(handle.pid, handle.start_ticks).lives()
    seen = await provider.observe()
    assert isinstance(seen, Seen)
    assert {each: pane.ended for each, pane in seen.panes.items()} == {beside.launch_id: None}
    assert await provider.stop(handle) == Stopped(left=())


async def test_a_stop_ends_what_its_ended_program_left(provider: Provider, tmp_path: Path) -> None:
    handle = await started(provider, python(tmp_path, STRAY, str(tmp_path / "pid"), "meek"))
    stray = await written(tmp_path / "pid")
    os.kill(handle.pid, signal.SIGKILL)
    assert (await provider.ended(handle)).signal == signal.SIGKILL
    assert stray.lives()
    assert await provider.stop(handle) == Stopped(left=())
    assert not stray.lives()


async def test_what_lost_its_parents_and_its_mark_is_named_and_nothing_else_is(
    provider: Provider, tmp_path: Path
) -> None:
    await started(provider, python(tmp_path, STRAY, str(tmp_path / "marked"), "meek"))
    await started(provider, python(tmp_path, STRAY, str(tmp_path / "lost"), "meek", env={}))
    marked, lost = await written(tmp_path / "marked"), await written(tmp_path / "lost")
    assert await provider.strays() == (lost.pid,)
    assert marked.lives()


async def test_a_close_ends_what_carries_no_mark(provider: Provider, tmp_path: Path) -> None:
    handle = await started(provider, python(tmp_path, STRAY, str(tmp_path / "pid"), "meek", env={}))
    stray = await written(tmp_path / "pid")
    assert await provider.close() == Stopped(left=())
    assert not stray.lives()
    assert not Process(handle.pid, handle.start_ticks).lives()


@pytest.mark.parametrize("all_of_it", [False, True], ids=["stop", "close"])
async def test_what_is_started_by_what_is_ended_is_ended(
    provider: Provider, tmp_path: Path, *, all_of_it: bool
) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    handle = await started(provider, python(tmp_path, PHOENIX, str(first), str(second)))
    await written(first)
    assert await (provider.close() if all_of_it else provider.stop(handle)) == Stopped(left=())
    assert second.exists()
    assert process(int(second.read_text())) is None or not (await written(second)).lives()


async def test_many_that_end_at_one_time_all_have_their_status(provider: Provider, tmp_path: Path) -> None:
    """The last ones matter: what a provider missed of one, it may learn with the next."""
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    for _ in range(5):
        held = os.open(gate, os.O_RDWR)
        handles = [await started(provider, shell(tmp_path, "read x < gate; exit 9")) for _ in range(4)]
        os.write(held, b"\n" * 4)
        found = [await provider.ended(handle) for handle in handles]
        os.close(held)
        assert [each.status for each in found] == [9] * 4


@pytest.mark.parametrize("swallowed", [0, 1])
async def test_a_text_is_taken_also_when_the_first_enter_is_lost(
    provider: Provider, tmp_path: Path, swallowed: int
) -> None:
    handle = await started(provider, python(tmp_path, COMPOSER, str(swallowed)))
    await shown(provider, handle, "ready")
    assert await provider.deliver(handle, "one\ntwo\n", QUICK, "1") == Delivered(taken=Taken.SUBMITTED)
    await shown(provider, handle, "took <one/two>")


async def test_a_text_that_nothing_takes_is_unsubmitted(provider: Provider, tmp_path: Path) -> None:
    handle = await started(provider, python(tmp_path, COMPOSER, "99"))
    await shown(provider, handle, "ready")
    found = await provider.deliver(handle, "words", attrs.evolve(QUICK, settle=0.1), "1")
    assert isinstance(found, Delivered)
    assert found.taken is Taken.UNSUBMITTED


async def test_two_texts_do_not_mix(provider: Provider, tmp_path: Path) -> None:
    handle = await started(provider, python(tmp_path, COMPOSER, "0"))
    await shown(provider, handle, "ready")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(provider.deliver, handle, "a" * 40, QUICK, "1")
        nursery.start_soon(provider.deliver, handle, "b" * 40, QUICK, "2")
    screen = await shown(provider, handle, f"took <{'b' * 40}>")
    assert f"took <{'a' * 40}>" in screen


async def test_a_text_cannot_press_keys(provider: Provider, tmp_path: Path) -> None:
    handle = await started(provider, python(tmp_path, COMPOSER, "0"))
    await shown(provider, handle, "ready")
    await provider.deliver(handle, "a\x1b[201~\x03\x1bb", QUICK, "1")
    await shown(provider, handle, "took <a[201~b>")


async def test_nothing_is_typed_into_a_shell_that_came_to_the_front(provider: Provider, tmp_path: Path) -> None:
    ahead = """
import os, signal
signal.signal(signal.SIGTTOU, signal.SIG_IGN)
pid = os.fork()
if pid == 0:
    os.setpgid(0, 0); os.tcsetpgrp(0, os.getpid())
    os.execlp("sh", "sh", "-c", "echo shell; read x; true")
os.waitpid(pid, 0)
"""
    handle = await started(provider, python(tmp_path, ahead))
    await shown(provider, handle, "shell")
    found = await provider.deliver(handle, "rm -rf x", QUICK, "1")
    assert isinstance(found, Delivered)
    assert (found.taken, "a shell" in found.reason) == (Taken.HELD, True)


async def test_an_interrupt_arrives(provider: Provider, tmp_path: Path) -> None:
    handle = await started(
        provider, shell(tmp_path, "trap 'echo caught; exit 5' INT; echo set; while :; do sleep 0.05; done")
    )
    await shown(provider, handle, "set")
    assert await provider.interrupt(handle) is True
    found = await provider.ended(handle)
    assert (found.status, "caught" in found.screen) == (5, True)


async def test_a_screen_has_fifty_lines_and_no_control_characters(provider: Provider, tmp_path: Path) -> None:
    handle = await started(provider, shell(tmp_path, r"seq 200; printf 'a\033]0;title\007b\033[31mred\n'; sleep 60"))

    async def done() -> str:
        screen = await provider.capture(handle)
        assert isinstance(screen, str)
        return screen if "red" in screen else ""

    screen = await until(done)
    assert len(screen.splitlines()) <= 50
    assert all(each.isprintable() for line in screen.splitlines() for each in line)
