"""What only a tmux server can do or suffer: outlive its starter, be one of several, stall, die."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import libtmux
import pytest
import trio

from providers import ending
from providers.port import Handle, NotStarted, Seen, Stopped, Taken, Unreachable, Why
from providers.process import Process, process, stat
from providers.tmux import provider
from providers.tmux.provider import Opened, Tmux
from providers.tmux.server import ALLOWED, SOCKET_BYTES, Said
from tests.support.ptys import few, missing
from tests.support.terminals import (
    QUICK,
    STRAY,
    launch,
    left_over,
    python,
    shell,
    shown,
    started,
    tmux_in,
    until,
    written,
)

ROOT = Path(__file__).parents[2]
STARTER = Path(__file__).with_name("starter.py")


@pytest.fixture
def folder() -> Iterator[Path]:
    """Short, since the path of a socket is."""
    place = Path(tempfile.mkdtemp(prefix="firm-"))
    yield place / "t"
    shutil.rmtree(place)


@asynccontextmanager
async def starter(
    folder: Path, launch_id: str = "", within: tuple[str, ...] = ()
) -> AsyncIterator[tuple[trio.Process, dict[str, Any]]]:
    """A process that has opened the tmux of this folder, and what it said."""
    running = await trio.lowlevel.open_process(
        [*within, sys.executable, str(STARTER), str(folder), launch_id],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert running.stdout is not None
    try:
        with trio.fail_after(20):
            yield running, json.loads(await running.stdout.receive_some())
    finally:
        running.kill()
        with trio.CancelScope(shield=True):
            await running.wait()
            await running.stdout.aclose()


def server_of(tmux: Tmux) -> Process:
    assert tmux._server is not None
    return tmux._server.process


async def test_terminals_outlive_the_process_that_started_them(folder: Path) -> None:
    async with tmux_in_after(folder) as tmux:
        async with starter(folder, "ab01") as (running, said):
            running.kill()
            await running.wait()
        opened = await tmux.open()
        assert isinstance(opened, Opened)
        assert opened == Opened(server=server_of(tmux), adopted=True)
        assert opened.server.pid == said["server"]
        seen = await tmux.observe()
        assert isinstance(seen, Seen)
        handle = Handle(**said["handle"])
        assert {each: pane.handle for each, pane in seen.panes.items()} == {"ab01": handle}
        assert "mine" in await shown(tmux, handle, "mine")
        assert await tmux.stop(handle) == Stopped(left=())


@asynccontextmanager
async def tmux_in_after(folder: Path) -> AsyncIterator[Tmux]:
    """A provider that opens nothing by itself; whatever server the folder has is ended after."""
    tmux = Tmux(folder)
    try:
        yield tmux
    finally:
        with trio.fail_after(30) as scope:
            scope.shield = True
            assert await tmux.close() == Stopped(left=())
            assert left_over(folder) == []


async def test_two_starters_have_one_server(folder: Path) -> None:
    said: list[dict[str, Any]] = []

    async def start(over: trio.Event) -> None:
        async with starter(folder) as (_, answer):
            said.append(answer)
            await over.wait()

    async with tmux_in_after(folder):
        over = trio.Event()
        async with trio.open_nursery() as nursery:
            for _ in range(3):
                nursery.start_soon(start, over)

            async def all_said() -> bool:
                await trio.lowlevel.checkpoint()
                return len(said) == 3

            await until(all_said)
            over.set()
        assert len({each["server"] for each in said}) == 1
        assert len(left_over(folder)) == 1


async def test_many_who_open_at_one_time_have_one_server(folder: Path) -> None:
    found: list[Opened | Unreachable] = []

    async def start() -> None:
        found.append(await Tmux(folder).open())

    async with tmux_in_after(folder):
        async with trio.open_nursery() as nursery:
            for _ in range(5):
                nursery.start_soon(start)
        servers = {each.server for each in found if isinstance(each, Opened)}
        assert (len(found), len(servers)) == (5, 1)
        assert left_over(folder) == [each.pid for each in servers]
        assert sorted(each.adopted for each in found if isinstance(each, Opened)) == [False, True, True, True, True]


async def test_a_new_server_takes_the_place_of_a_dead_one(folder: Path) -> None:
    async with tmux_in_after(folder) as tmux:
        first = await tmux.open()
        assert isinstance(first, Opened)
        assert not first.adopted
        os.kill(first.server.pid, signal.SIGKILL)
        with trio.fail_after(5):
            await first.server.ended()
        assert isinstance(await tmux.observe(), Unreachable)
        second = await tmux.open()
        assert isinstance(second, Opened)
        assert (second.adopted, second.server != first.server) == (False, True)
        assert await tmux.observe() == Seen(panes={})


async def test_a_server_that_is_killed_is_noticed_and_is_no_answer_about_processes(tmux: Tmux, tmp_path: Path) -> None:
    handle = await started(tmux, shell(tmp_path, "trap '' HUP; sleep 60"))
    os.kill(server_of(tmux).pid, signal.SIGKILL)
    with trio.fail_after(2):
        await server_of(tmux).ended()
    assert isinstance(await tmux.observe(), Unreachable)
    assert isinstance(await tmux.capture(handle), Unreachable)
    told = await tmux.deliver(handle, "x", QUICK, "1")
    assert getattr(told, "taken", told) is Taken.GONE, "it took its terminals along"
    assert await tmux.stop(handle) == Stopped(left=()), "it took its terminals along"
    assert not Process(handle.pid, handle.start_ticks).lives()
    found = await tmux.start(shell(tmp_path, "read x"))
    assert isinstance(found, NotStarted)
    assert found.why is Why.UNREACHABLE


@pytest.mark.parametrize("again", [False, True], ids=["before the next server", "below the next server"])
async def test_what_a_dead_server_left_is_found_by_its_mark(tmux: Tmux, tmp_path: Path, *, again: bool) -> None:
    """It hangs below somebody else by then. What carried that mark before the launch began is somebody's own."""
    older = subprocess.Popen(["sleep", "60"], env={"FIRM_LAUNCH_ID": "ab02"})  # noqa: ASYNC220 — done in no time
    words = (sys.executable, "-I", "-S", "-c", STRAY, str(tmp_path / "pid"), "stubborn")
    beside = await started(tmux, python(tmp_path, STRAY, str(tmp_path / "other"), "meek"))
    other = await written(tmp_path / "other")  # by then a tick of the kernel's clock has passed
    handle = await started(tmux, launch(tmp_path, *words, launch_id="ab02"))
    stray = await written(tmp_path / "pid")
    try:
        os.kill(server_of(tmux).pid, signal.SIGKILL)
        with trio.fail_after(5):
            await server_of(tmux).ended()
        if again:
            assert isinstance(await tmux.open(), Opened)
        assert stray.lives()
        assert await tmux.stop(handle) == Stopped(left=())
        assert (stray.lives(), other.lives(), older.poll()) == (False, True, None)
        assert await tmux.stop(beside) == Stopped(left=())
        assert not other.lives()
    finally:
        older.kill()
        older.wait()
        for each in (stray, other):
            each.signal(signal.SIGKILL)


async def test_a_stalled_server_is_unreachable_in_time_and_goes_on(folder: Path, tmp_path: Path) -> None:
    async with tmux_in(folder) as tmux:
        handle = await started(tmux, shell(tmp_path, "read x"))
        hasty = Tmux(folder, patience=0.5)
        assert isinstance(await hasty.open(), Opened)
        os.kill(server_of(tmux).pid, signal.SIGSTOP)
        try:
            with trio.fail_after(4):
                assert isinstance(await hasty.observe(), Unreachable)
                assert isinstance(await hasty.interrupt(handle), Unreachable)
                assert isinstance(await Tmux(folder, patience=0.5).open(), Unreachable)
                assert await hasty.start(shell(tmp_path, "read x")) == NotStarted(
                    why=Why.UNREACHABLE, detail=f"the tmux server {server_of(tmux).pid} did not answer within 0.5 s"
                )
        finally:
            os.kill(server_of(tmux).pid, signal.SIGCONT)
        seen = await hasty.observe()
        assert isinstance(seen, Seen)
        assert seen.panes[handle.launch_id].ended is None


async def test_a_stalled_server_can_be_closed(folder: Path, tmp_path: Path) -> None:
    async with tmux_in(folder) as tmux:
        handle = await started(tmux, shell(tmp_path, "read x"))
        server = server_of(tmux)
        os.kill(server.pid, signal.SIGSTOP)
        with trio.fail_after(10):
            assert await tmux.close() == Stopped(left=())
        assert not server.lives()
        assert not Process(handle.pid, handle.start_ticks).lives()


async def test_a_close_keeps_to_its_time(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However long each step of it may take: the server is stopped, and what is below it cannot be read."""
    hangs = threading.Event()

    def look(_: Process) -> set[Process]:
        hangs.wait()
        return set()

    async with tmux_in(folder) as tmux:
        os.kill(server_of(tmux).pid, signal.SIGSTOP)
        with monkeypatch.context() as slow, trio.fail_after(30):
            slow.setattr(provider, "under", look)
            slow.setattr(provider, "CLOSE_SECONDS", 0.5)
            slow.setattr(provider, "_FOR_THE_SERVER", 0.2)
            for name in ("_LOOK_WITHIN", "_PATIENCE"):
                slow.setattr(ending, name, 600.0)
            assert isinstance(await tmux.close(), Unreachable)
        hangs.set()


async def test_strangers_are_not_touched(tmux: Tmux, tmp_path: Path, folder: Path) -> None:
    folder.mkdir()
    foreign = libtmux.Server(socket_path=folder / "theirs")
    foreign.cmd("-f", "/dev/null", "new-session", "-d", "-s", "ab01", "sleep", "60")
    pids = [int(foreign.cmd("display-message", "-p", name).stdout[0]) for name in ("#{pid}", "#{pane_pid}")]
    sleeper = subprocess.Popen(["sleep", "60"], env={"FIRM_LAUNCH_ID": "ab01"})  # noqa: ASYNC220 — done in no time
    strangers = [process(pid) for pid in (*pids, sleeper.pid)]
    try:
        handle = await started(tmux, python(tmp_path, STRAY, str(tmp_path / "pid"), "meek"))
        await written(tmp_path / "pid")
        ours = await started(tmux, shell(tmp_path, "read x"))
        assert await tmux.stop(handle) == Stopped(left=())
        assert await tmux.stop(Handle(launch_id="ab01", pane="%0", pid=pids[1], start_ticks=1, boot_id="")) == Stopped(
            left=()
        )
        assert await tmux.close() == Stopped(left=())
        assert not Process(ours.pid, ours.start_ticks).lives()
        assert [each is not None and each.lives() for each in strangers] == [True, True, True]
    finally:
        sleeper.kill()
        sleeper.wait()
        foreign.cmd("kill-server")


async def test_what_loses_its_parent_hangs_below_the_server(tmux: Tmux, tmp_path: Path) -> None:
    await started(tmux, python(tmp_path, STRAY, str(tmp_path / "pid"), "meek"))
    stray = await written(tmp_path / "pid")

    async def hangs_there() -> bool:
        """Its parent may still be ending when it has said its number."""
        await trio.lowlevel.checkpoint()
        found = stat(stray.pid)
        return found is not None and found.parent == server_of(tmux).pid

    assert await until(hangs_there)


async def test_a_terminal_is_told_nothing_but_what_is_allowed(folder: Path, tmp_path: Path) -> None:
    os.environ["FIRM_TEST_SECRET"] = "hidden"  # noqa: S105 — it is what must not be seen
    try:
        async with tmux_in(folder) as tmux:
            handle = await started(tmux, shell(tmp_path, "read x"))
            server = server_of(tmux)
            names = {
                each.partition(b"=")[0].decode()
                for each in Path(f"/proc/{server.pid}/environ").read_bytes().split(b"\0")
                if each
            }
            assert names <= {*ALLOWED, "LC_ALL", "TERM"}
            for pid in (server.pid, handle.pid):
                assert b"hidden" not in Path(f"/proc/{pid}/environ").read_bytes()
                assert b"hidden" not in Path(f"/proc/{pid}/cmdline").read_bytes()
            asked = await tmux._server.ask("show-environment", "-g") if tmux._server else None
            assert isinstance(asked, Said)
            assert {line.partition("=")[0].lstrip("-") for line in asked.out.splitlines()} <= {
                *ALLOWED,
                "LC_ALL",
                "PWD",
                "TERM",
            }
    finally:
        del os.environ["FIRM_TEST_SECRET"]


async def test_the_files_of_a_server_are_the_users_alone(folder: Path) -> None:
    async with tmux_in(folder):
        assert folder.stat().st_mode & 0o777 == 0o700
        modes = {path.name: path.stat().st_mode & 0o077 for path in folder.iterdir()}
        assert {name for name, mode in modes.items() if mode} == set()
        assert {"tmux.sock", "server.json", "tmux.conf"} <= modes.keys()


@pytest.mark.parametrize("mode", [0o750, 0o707])
async def test_a_folder_that_others_can_enter_is_refused(folder: Path, mode: int) -> None:
    folder.mkdir()
    folder.chmod(mode)
    found = await Tmux(folder).open()
    assert isinstance(found, Unreachable)
    assert "0700" in found.detail


@pytest.mark.parametrize("name", ["tmux.conf", "start.lock"])
async def test_a_folder_in_which_nothing_can_be_written_is_told(folder: Path, name: str) -> None:
    folder.mkdir(mode=0o700)
    (folder / name).mkdir()
    found = await Tmux(folder).open()
    assert isinstance(found, Unreachable)
    assert "Is a directory" in found.detail
    assert left_over(folder) == []


async def test_a_path_that_is_too_long_for_a_socket_is_refused(folder: Path) -> None:
    found = await Tmux(folder / ("x" * SOCKET_BYTES)).open()
    assert isinstance(found, Unreachable)
    assert "longer than 100 bytes" in found.detail
    assert not folder.exists()


async def test_without_tmux_nothing_can_be_asked(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(folder))
    found = await Tmux(folder).open()
    assert isinstance(found, Unreachable)
    assert "not installed" in found.detail


async def test_another_server_on_our_socket_is_not_ours(folder: Path) -> None:
    async with tmux_in(folder) as tmux:
        ours = server_of(tmux)
        (folder / "server.json").rename(folder.parent / "kept")
        said = json.loads((folder.parent / "kept").read_text())
        me = process(os.getpid())
        assert me is not None
        (folder / "server.json").write_text(json.dumps(said | {"pid": me.pid, "start_ticks": me.start_ticks}))
        found = await Tmux(folder, patience=0.5).open()
        (folder.parent / "kept").rename(folder / "server.json")
        assert isinstance(found, Unreachable)
        assert ours.lives()


@pytest.mark.skipif(missing() is not None, reason=str(missing()))
async def test_a_full_pty_table_is_told_from_other_failures(folder: Path, tmp_path: Path) -> None:
    async with tmux_in_after(folder) as tmux, starter(folder, within=few(2)):
        assert isinstance(await tmux.open(), Opened)
        first = await started(tmux, shell(tmp_path, "read x"))
        await started(tmux, shell(tmp_path, "read x"))
        found = await tmux.start(wanted := shell(tmp_path, "read x"))
        assert isinstance(found, NotStarted)
        assert found.why is Why.TERMINAL_LIMIT
        assert await tmux.stop(first) == Stopped(left=())
        await started(tmux, wanted)
