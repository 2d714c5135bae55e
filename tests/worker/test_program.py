"""The program of a Work as a real process: its output, its group, its end, and what happens when it cannot begin."""

from __future__ import annotations

import hashlib
import json
import os
import select
import signal
import subprocess
import sys
import tracemalloc
from collections.abc import AsyncIterator
from pathlib import Path

import attrs
import pytest
import trio

from client.worker.program import NEITHER, Ended, NotStarted, Program, choose, run

ROOT = Path(__file__).parents[2]
SH = "#!/bin/bash\n"


@attrs.frozen
class Desk:
    folder: Path
    screen: int
    shown: Path

    async def run(self, program: Program | str, *, grace: float = 5.0, log: Path | None = None) -> Ended | NotStarted:
        ready = Program(script=f"{SH}{program}\n".encode()) if isinstance(program, str) else program
        where = log or self.folder / "logs" / "log"
        return await run(ready, env=dict(os.environ), folder=self.folder, log=where, screen=self.screen, grace=grace)

    async def ended(self, program: Program | str, *, grace: float = 5.0) -> Ended:
        ended = await self.run(program, grace=grace)
        assert isinstance(ended, Ended), ended
        return ended

    async def pid(self, name: str = "pid") -> int:
        """A pid that a program writes into a pipe of that name."""
        async with await trio.open_file(self.folder / name) as file:
            return int(await file.read())


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    shown = tmp_path / "shown"
    os.mkfifo(tmp_path / "pid")
    fd = os.open(shown, os.O_WRONLY | os.O_CREAT)
    try:
        yield Desk(tmp_path, fd, shown)
    finally:
        os.close(fd)


def gone(pid: int) -> bool:
    """Whether that process has ended, waiting a moment for what ends just now."""
    try:
        fd = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([fd], [], [], 10)[0])
    finally:
        os.close(fd)


@pytest.mark.parametrize(
    ("script", "status", "how"),
    [
        ("exit 0", 0, "exit status 0"),
        ("exit 3", 3, "exit status 3"),
        ("kill -KILL $$", -9, "ended by SIGKILL"),
    ],
)
async def test_how_it_ended(desk: Desk, script: str, status: int, how: str) -> None:
    ended = await desk.ended(script)
    assert (ended.status, ended.how) == (status, how)


async def test_output_is_shown_and_logged_as_it_is(desk: Desk) -> None:
    """Both streams, in order, control characters and what is no text too."""
    wanted = b"\x1b[2J\x00\xff\r\nerror\n"
    ended = await desk.ended(r"printf '\033[2J\000\377\r\n'; echo error >&2")
    assert desk.shown.read_bytes() == ended.log.read_bytes() == ended.tail == wanted
    assert (ended.digest, ended.size, ended.whole) == (hashlib.sha256(wanted).hexdigest(), len(wanted), True)
    assert (ended.log.stat().st_mode & 0o777, ended.log.parent.stat().st_mode & 0o777) == (0o600, 0o700)


async def test_much_output_is_not_kept(desk: Desk) -> None:
    tracemalloc.start()
    try:
        ended = await desk.ended("head -c 33554432 /dev/zero; echo end")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (ended.size, ended.tail[-4:]) == (32 * 1024 * 1024 + 4, b"end\n")
    assert peak < 4 * 1024 * 1024


async def test_a_command_reads_the_context(desk: Desk) -> None:
    """Larger than a pipe holds; and a program that does not read it is none the worse."""
    text = "ü" * 100_000
    assert (await desk.ended(Program(argv=("wc", "-c"), stdin=text.encode()))).tail.strip() == b"200000"
    assert (await desk.ended(Program(argv=("true",), stdin=text.encode()))).status == 0


async def test_a_script_reads_nothing_and_has_no_terminal(desk: Desk) -> None:
    assert (await desk.ended("cat; exec < /dev/tty")).status != 0


async def test_a_script_stands_in_no_folder(desk: Desk) -> None:
    ended = await desk.ended('readlink "$0"')
    assert ended.tail.decode() == "/memfd:firm-script (deleted)\n"
    assert {each.name for each in desk.folder.iterdir()} == {"logs", "pid", "shown"}


async def test_a_script_of_another_interpreter_runs_too(desk: Desk) -> None:
    script = "#!/usr/bin/env python3\nimport sys\nprint(sys.argv[1:], __name__)\n"
    assert (await desk.ended(Program(script=script.encode()))).tail.decode() == "[] __main__\n"


async def test_what_it_left_running_is_ended_with_it(desk: Desk) -> None:
    """Also where that holds the output open and does not listen to TERM."""
    script = "mkfifo there; (trap '' TERM; echo $BASHPID > left; echo > there; exec sleep 1000) & read -r _ < there"
    ended = await desk.ended(script, grace=0.1)
    assert (ended.status, ended.whole) == (0, True)
    assert gone(int((desk.folder / "left").read_text()))


async def test_the_last_output_of_what_it_left_running_is_waited_for(desk: Desk) -> None:
    """As of a ``tee`` that a shell does not wait for."""
    ended = await desk.ended("echo text > >(cat; echo last)")
    assert ended.tail == b"text\nlast\n"


async def test_what_left_its_group_does_not_keep_it_from_ending(desk: Desk) -> None:
    ended = await desk.ended("setsid sleep 1000 & echo $! > left", grace=0.1)
    assert (ended.status, ended.whole) == (0, False)
    os.kill(int((desk.folder / "left").read_text()), 9)


async def _cancelled(desk: Desk, script: str, grace: float) -> int:
    """Cancel once the program says that it is there; its pid."""
    async with trio.open_nursery() as nursery:

        async def running() -> None:
            await desk.run(f"{script}\necho $$ > pid\nsleep 1000 & wait", grace=grace)

        nursery.start_soon(running)
        pid = await desk.pid()
        nursery.cancel_scope.cancel()
    return pid


async def test_cancelled_it_is_asked_to_end_and_heard_to_the_last(desk: Desk) -> None:
    pid = await _cancelled(desk, "trap 'head -c 300000 /dev/zero; echo bye; exit 0' TERM", 10)
    assert gone(pid)
    assert desk.shown.read_bytes().endswith(b"\0bye\n")


async def test_one_that_does_not_listen_is_killed(desk: Desk) -> None:
    assert gone(await _cancelled(desk, "trap '' TERM", 0.2))


@pytest.mark.parametrize(
    "program",
    [
        Program(argv=("/nowhere/at/all",)),
        Program(argv=("no-such-program-anywhere",)),
        Program(argv=("a\0b",)),
        Program(script=b"#!/nowhere\n"),
        Program(script=b"#!/etc/passwd\n"),
    ],
)
async def test_what_cannot_begin_says_why(desk: Desk, program: Program) -> None:
    found = await desk.run(program)
    assert isinstance(found, NotStarted)
    assert "cannot be started: " in found.why


async def test_a_log_that_cannot_be_opened_starts_nothing(desk: Desk) -> None:
    found = await desk.run("touch ran", log=desk.shown / "log")
    assert isinstance(found, NotStarted)
    assert not (desk.folder / "ran").exists()
    (desk.folder / "link").symlink_to(desk.folder / "target")
    assert isinstance(await desk.run("true", log=desk.folder / "link"), NotStarted)


async def test_a_full_disk_ends_the_log_and_not_the_program(desk: Desk) -> None:
    full = await desk.run("echo text", log=Path("/dev/full"))
    assert isinstance(full, Ended)
    assert (full.status, full.whole, desk.shown.read_bytes()) == (0, False, b"text\n")


async def test_a_closed_terminal_ends_the_showing_and_not_the_program(desk: Desk) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    ended = await attrs.evolve(desk, screen=writer).ended("echo text")
    os.close(writer)
    assert (ended.whole, ended.log.read_bytes()) == (True, b"text\n")


def test_which_program_it_is() -> None:
    command = json.dumps(["make", "check"])
    assert choose("#!/bin/sh\nexit", command) == Program(script=b"#!/bin/sh\nexit")
    assert choose("words", command) == Program(argv=("make", "check"), stdin=b"words")
    assert choose(" #!/bin/sh", "") == NotStarted(NEITHER)
    for wrong in ("make", "[]", "{}", '"make"', "[1]", '["a", null]', "[["):
        assert "FIRM_COMMAND is no JSON list" in getattr(choose("words", wrong), "why", "")


#: A worker that runs one script. Its temporary files would be in TMPDIR.
RUNS = """
import sys, trio
from pathlib import Path
from client.worker.program import Program, run
import os
folder = Path(sys.argv[1])
script = Program(script=f"#!/bin/sh\\necho $$ > {folder / 'pid'}\\nexec sleep 600\\n".encode())
trio.run(lambda: run(script, env=dict(os.environ), folder=folder, log=folder / "log", screen=None))
"""


def test_a_worker_that_is_killed_leaves_nothing_of_its_script(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pid")
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    env = {**os.environ, "TMPDIR": str(temporary)}
    with subprocess.Popen([sys.executable, "-c", RUNS, str(tmp_path)], cwd=ROOT, env=env) as worker:
        program = int((tmp_path / "pid").read_text())
        worker.kill()
    try:
        assert list(temporary.iterdir()) == []
        assert {each.name for each in tmp_path.iterdir()} == {"pid", "log", "temporary"}
    finally:
        os.kill(program, signal.SIGKILL)
    assert gone(program)
