"""What others met when they ran programs in tmux, and no other test of ours shows; see docs/tmux-failures.md."""

from __future__ import annotations

import secrets
import tempfile
from pathlib import Path

import attrs
import pytest
import trio

from providers.port import NotStarted, Seen, Stopped, Unreachable, Why
from providers.process import Process
from providers.tmux import launching
from providers.tmux.provider import Opened, Tmux
from providers.tmux.server import Said
from tests.support.terminals import left_over, python, shell, shown, started, tmux_in

SIZE = """
import os, signal, sys
def tell(*_):
    size = os.get_terminal_size()
    print(f"{size.columns} by {size.lines}", flush=True)
signal.signal(signal.SIGWINCH, tell)
tell()
while True: signal.pause()
"""


async def asked(tmux: Tmux, *words: str) -> str:
    assert tmux._server is not None
    said = await tmux._server.ask(*words)
    assert isinstance(said, Said), said
    return said.out.strip()


async def test_whoever_looks_on_in_a_small_window_changes_no_size(tmux: Tmux, tmp_path: Path) -> None:
    handle = await started(tmux, python(tmp_path, SIZE))
    await shown(tmux, handle, "220 by 50")
    async with tmux_in() as elsewhere:
        looks = shell(tmp_path, f"stty cols 60 rows 20; exec {' '.join(tmux.attach_command(handle, read_only=True))}")
        person = await started(elsewhere, looks)
        await shown(elsewhere, person, "220 by 50")
        assert await asked(tmux, "list-clients", "-F", "#{client_width}x#{client_height}") == "60x20"
        assert await asked(tmux, "display-message", "-p", "-t", handle.pane, "#{pane_width}x#{pane_height}") == "220x50"
        assert await tmux.capture(handle) == "220 by 50"


async def test_a_launch_whose_id_begins_another_is_that_one_alone(tmux: Tmux, tmp_path: Path) -> None:
    short = secrets.token_hex(4)
    longer = await started(tmux, attrs.evolve(shell(tmp_path, "echo longer; exec cat"), launch_id=f"{short}ab"))
    one = await started(tmux, attrs.evolve(shell(tmp_path, "echo short; exec cat"), launch_id=short))
    await shown(tmux, one, "short")
    assert await tmux.stop(one) == Stopped(left=())
    seen = await tmux.observe()
    assert isinstance(seen, Seen)
    assert set(seen.panes) == {longer.launch_id}
    assert Process(longer.pid, longer.start_ticks).lives()
    assert await tmux.stop(one) == Stopped(left=()), "again, and still not the other"
    assert Process(longer.pid, longer.start_ticks).lives()


async def test_a_server_outlives_its_last_terminal(tmux: Tmux, tmp_path: Path) -> None:
    assert tmux._server is not None
    server = tmux._server.process
    for _ in range(2):
        assert await tmux.stop(await started(tmux, shell(tmp_path, "exec cat"))) == Stopped(left=())
        assert server.lives()
    assert await tmux.open() == Opened(server=server, adopted=True)


async def test_a_server_is_found_whatever_the_environment_says(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """As a daemon that was started again in another shell, or within a tmux."""
    place = Path(tempfile.mkdtemp(prefix="firm-")) / "t"
    async with tmux_in(place) as first:
        handle = await started(first, shell(tmp_path, "exec cat"))
        monkeypatch.setenv("TMUX", "/tmp/tmux-0/default,1,0")  # noqa: S108 — of somebody else's shell
        monkeypatch.setenv("TMUX_TMPDIR", str(tmp_path))
        again = Tmux(place)
        assert first._server is not None
        assert await again.open() == Opened(server=first._server.process, adopted=True)
        seen = await again.observe()
        assert isinstance(seen, Seen)
        assert {each.handle for each in seen.panes.values()} == {handle}
        assert await trio.Path(tmp_path / "tmux-0").exists() is False
        monkeypatch.undo()
    await trio.Path(place.parent).rmdir()


async def test_a_process_that_is_slow_to_begin_is_not_taken_for_one_in_another_folder(
    tmux: Tmux, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before it is another program than tmux, it may still stand where tmux does."""
    wanted = shell(tmp_path, "read x")
    with monkeypatch.context() as slow:
        slow.setattr(launching, "_EXEC_WITHIN", 0.05)
        slow.setattr(launching, "_image", lambda _: "tmux")
        slow.setattr(launching, "_stands_in", lambda *_: False)
        found = await tmux.start(wanted)
    assert isinstance(found, NotStarted)
    assert (found.why, found.detail) == (Why.UNREACHABLE, "its process has not begun within 0.05 s")
    seen = await tmux.observe()
    assert isinstance(seen, Seen)
    assert [(pane.ended, pane.handle.launch_id) for pane in seen.panes.values()] == [(None, wanted.launch_id)]
    assert (await started(tmux, wanted)).pid == seen.panes[wanted.launch_id].handle.pid


async def test_a_socket_that_somebody_removed_is_made_anew(tmux: Tmux, tmp_path: Path) -> None:
    """The server and its terminals are there all the same, and none of them is started twice."""
    handle = await started(tmux, shell(tmp_path, "read x"))
    assert tmux._server is not None
    places = tmux._server.places
    places.socket.unlink()
    assert isinstance(await tmux.observe(), Unreachable)
    server = await tmux.open()
    assert isinstance(server, Opened)
    assert server.adopted
    seen = await tmux.observe()
    assert isinstance(seen, Seen)
    assert [pane.handle for pane in seen.panes.values()] == [handle]
    places.socket.unlink()
    other = Tmux(places.folder)  # as the next daemon does
    assert await other.open() == server
    assert await other.observe() == seen
    assert await other.stop(handle) == Stopped(left=())


async def test_what_is_not_ascii_is_seen_in_any_locale(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("LC_ALL", "LC_CTYPE", "LANG"):
        monkeypatch.setenv(name, "C")
    async with tmux_in() as tmux:
        handle = await started(tmux, shell(tmp_path, "printf '✻ Grüße │ 好\\n'; exec cat"))
        assert await shown(tmux, handle, "✻") == "✻ Grüße │ 好"


async def test_no_pipe_and_no_control_client_is_left_to_stall(tmux: Tmux, tmp_path: Path) -> None:
    """What is known of a terminal is asked for; nothing streams, and no client of the server stays."""
    handle = await started(tmux, shell(tmp_path, "exec cat"))
    assert await asked(tmux, "display-message", "-p", "-t", handle.pane, "#{pane_pipe}") == "0"
    assert await asked(tmux, "list-clients") == ""
    assert tmux._server is not None
    assert left_over(tmux._server.places.folder) == [tmux._server.process.pid]
