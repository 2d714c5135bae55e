"""Starting a launch in a session of its own, and reading back what was started."""

from __future__ import annotations

import errno
import functools
import os
from collections.abc import Callable, Mapping
from pathlib import Path

import attrs
import trio

from providers.ending import end_all
from providers.port import Handle, Launch, NotStarted, Unreachable, Why
from providers.process import Process, boot_id, lost_below, marked, since, stat, under
from providers.screen import last_lines
from providers.tmux import group
from providers.tmux.listing import LAUNCH_ID, TICKS, WORDS, Row, look, seen_in
from providers.tmux.server import SIZE, Said, Server

#: What tmux says when it could make no terminal or no process, by the error of the kernel in it.
_LIMITS = {
    f"fork failed: {os.strerror(errno.ENOSPC)}": Why.TERMINAL_LIMIT,
    f"fork failed: {os.strerror(errno.EAGAIN)}": Why.PROCESS_LIMIT,
}
_EXEC_WITHIN = 1.0
_LOOK_AGAIN = 0.001


async def start(server: Server, launch: Launch) -> Handle | NotStarted:
    """The terminal of this launch: the one it has, or a new one. tmux refuses a second session of the same name."""
    assert LAUNCH_ID.fullmatch(launch.launch_id), "a launch id is lower-case letters and digits"
    assert len(launch.argv) > 1, "one word alone would be run by a shell"
    assert launch.argv[0].startswith("/"), "a program is named by its whole path"
    if (there := await _is_folder(launch.cwd, server.patience)) is None:
        return unreachable(_silent(launch.cwd))
    if not there:
        seen: Mapping[str, Row] | Unreachable = await look(server)  # its terminal may outlive its folder
        if isinstance(seen, Unreachable):
            return unreachable(seen)
        row = seen.get(launch.launch_id)
        return _missing(launch) if row is None else await _read_back(server, row, launch)
    made = await server.ask(*_new_session(launch), ";", *WORDS, cwd=launch.cwd)
    if isinstance(made, Unreachable):
        return unreachable(made) if await _is_folder(launch.cwd, server.patience) is not False else _missing(launch)
    # What failed was not followed by its listing. It may be there already: tmux makes no second one of that name.
    seen = await look(server) if made.status else seen_in(made, server)
    if isinstance(seen, Unreachable):
        return unreachable(seen)
    row = seen.get(launch.launch_id)
    return why_not(made) if row is None else await _read_back(server, row, launch)


def _new_session(launch: Launch) -> tuple[str, ...]:
    """The folder is that in which this call of tmux runs: what -c names would be expanded, and could run a command."""
    # A word that ends in a semicolon would end the command.
    argv = tuple(word[:-1] + "\\;" if word.endswith(";") else word for word in launch.argv)
    return ("new-session", "-d", "-s", launch.launch_id, "-x", str(SIZE[0]), "-y", str(SIZE[1]), "--", *argv)


async def _read_back(server: Server, row: Row, launch: Launch) -> Handle | NotStarted:
    """The pane by everything that proves it. The start ticks are kept with it, for when its process has ended."""
    if row.start_ticks:
        return handle_of(row)
    found = stat(row.pid)
    if row.dead or found is None or found.parent != server.process.pid:
        shown = await screen(server, row.pane)
        await server.ask("kill-session", "-t", f"={row.launch_id}")
        return NotStarted(why=Why.ENDED_AT_ONCE, detail=shown)
    if not await _left_tmux(server, row.pid):
        return unreachable(Unreachable(detail=f"its process has not begun within {_EXEC_WITHIN:g} s"))
    stands = await _in_time(server.patience, functools.partial(_stands_in, row.pid, launch.cwd))
    if stands is None:
        return unreachable(_silent(launch.cwd))
    if not stands:
        # tmux takes another folder, without a word, when the one it was given has gone.
        await end_launch(server, row.launch_id, Process(row.pid, found.start_ticks))
        await server.ask("kill-session", "-t", f"={row.launch_id}")
        return _missing(launch)
    if server.group is not None:  # it waits to be told what to become, and has started nothing yet
        await trio.to_thread.run_sync(group.enter, server.group / row.launch_id, row.pid)
    at = f"={row.launch_id}:"
    # Whoever attaches does not change the size of what the agent sees. Set for all windows, it ends a tmux 3.3a.
    fixed = ("set-option", "-w", "-t", at, "window-size", "manual", ";")
    said = await server.ask(*fixed, "set-option", "-t", at, TICKS, str(found.start_ticks))
    if isinstance(said, Unreachable):
        return unreachable(said)
    return handle_of(attrs.evolve(row, start_ticks=found.start_ticks))


async def _is_folder(path: str, patience: float) -> bool | None:
    """None when its file system does not answer in time."""
    return await _in_time(patience, Path(path).is_dir)


async def _in_time(patience: float, look: Callable[[], bool]) -> bool | None:
    """A thread that hangs in the kernel is left to itself: looking at a folder of a server that is gone never ends."""
    with trio.move_on_after(patience):
        return await trio.to_thread.run_sync(look, abandon_on_cancel=True)
    return None


def _silent(path: str) -> Unreachable:
    return Unreachable(detail=f"the file system of {path!r} does not answer")


async def _left_tmux(server: Server, pid: int) -> bool:
    """Whether a child of the server is no longer a copy of it, in time: only before exec does it go to its folder."""
    with trio.move_on_after(_EXEC_WITHIN):
        while _image(pid) == _image(server.process.pid) is not None:  # noqa: ASYNC110 — of another process; nothing tells
            await trio.sleep(_LOOK_AGAIN)
        return True
    return False


def _image(pid: int) -> tuple[str, bytes] | None:
    """What a process runs, and with which words: what it was given to run may be tmux again."""
    try:
        return str(Path(f"/proc/{pid}/exe").readlink()), Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return None


def _stands_in(pid: int, cwd: str) -> bool:
    """Whether a process is in that folder. One that has ended meanwhile is nowhere; how it ended is asked for later."""
    try:
        return Path(f"/proc/{pid}/cwd").samefile(cwd)
    except FileNotFoundError:
        return Path(cwd).is_dir()


async def end_launch(server: Server, launch_id: str, first: Process) -> tuple[int, ...] | Unreachable:
    """End the first process, all below it, and whatever carries the mark of the launch below the server."""

    def strays() -> set[Process]:
        found = marked(under(server.process), launch_id)
        return found | group.inside(server.group / launch_id) if server.group is not None else found

    return await _end(first, strays)


async def strays(server: Server) -> tuple[int, ...] | Unreachable:
    """The children of the server that are the first process of no terminal and carry the mark of no launch."""
    seen = await look(server)
    if isinstance(seen, Unreachable):
        return seen
    return await trio.to_thread.run_sync(lost_below, [server.process], {row.pid for row in seen.values()})


async def end_left(launch_id: str, first: Process) -> tuple[int, ...] | Unreachable:
    """The same of a launch whose server has died: what that left hangs below somebody else. Only the mark tells, and
    that nothing of it is older than the first process.
    """
    return await _end(first, lambda: marked(since(first), launch_id))


async def _end(first: Process, strays: Callable[[], set[Process]]) -> tuple[int, ...] | Unreachable:
    def find() -> set[Process]:
        found = strays()
        return {first} | under(first, *found) | found

    return await end_all(find)


async def screen(server: Server, pane: str) -> str:
    """A diagnostic: empty when it could not be had."""
    said = await server.ask("capture-pane", "-p", "-t", pane)
    return "" if isinstance(said, Unreachable) else last_lines(said.out)


def why_not(made: Said) -> NotStarted:
    """What tmux said when it made no terminal."""
    for text, why in _LIMITS.items():
        if text in made.error:
            return NotStarted(why=why, detail=made.error)
    return NotStarted(why=Why.ENDED_AT_ONCE, detail=made.error or "tmux has no such terminal")


def handle_of(row: Row) -> Handle:
    return Handle(launch_id=row.launch_id, pane=row.pane, pid=row.pid, start_ticks=row.start_ticks, boot_id=boot_id())


def unreachable(found: Unreachable) -> NotStarted:
    return NotStarted(why=Why.UNREACHABLE, detail=found.detail)


def _missing(launch: Launch) -> NotStarted:
    return NotStarted(why=Why.WORKSPACE_MISSING, detail=f"there is no folder {launch.cwd!r}")
