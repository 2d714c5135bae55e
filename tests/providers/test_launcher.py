"""The launcher between a daemon and a program: what it asks, what it becomes, and how it fails."""

from __future__ import annotations

import errno
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import attrs
import msgpack
import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from providers import launcher
from providers.port import Handle, Launch
from providers.process import has_execd, start_ticks_of, stat
from providers.tmux.provider import Tmux
from tests.support.terminals import shown, started, until

LAUNCHER = Path(launcher.__file__).resolve()


@attrs.frozen
class Daemon:
    """Plays the daemon for one launcher: frames in, frames out."""

    stream: trio.SocketStream

    async def hear(self) -> Any:  # noqa: ANN401 — whatever came
        size = int.from_bytes(await self.exactly(4), "big")
        return msgpack.unpackb(await self.exactly(size))

    async def exactly(self, count: int) -> bytes:
        raw = b""
        while len(raw) < count:
            part = await self.stream.receive_some(count - len(raw))
            assert part, "the launcher closed"
            raw += part
        return raw

    async def say(self, message: object) -> None:
        body = msgpack.packb(message)
        await self.stream.send_all(len(body).to_bytes(4, "big") + body)

    async def closed(self) -> None:
        assert await self.stream.receive_some(1) == b""


@pytest.fixture
def path() -> Iterator[Path]:
    """Of the daemon's socket; short, since such a path has to be."""
    with tempfile.TemporaryDirectory(prefix="firm-") as folder:
        yield Path(folder) / "node.sock"


@attrs.frozen
class Door:
    """Where launchers knock, until the test is over."""

    listener: trio.SocketListener
    open: list[trio.SocketStream] = attrs.field(factory=list[trio.SocketStream])

    async def met(self) -> Daemon:
        with trio.fail_after(10):
            self.open.append(await self.listener.accept())
        return Daemon(self.open[-1])


@asynccontextmanager
async def listening(path: Path) -> AsyncIterator[Door]:
    sock = trio.socket.socket(socket.AF_UNIX)
    await sock.bind(str(path))
    sock.listen(16)
    async with trio.SocketListener(sock) as listener:
        door = Door(listener)
        try:
            yield door
        finally:
            for stream in door.open:
                await trio.aclose_forcefully(stream)


def launch(path: Path, folder: Path, launch_id: str = "ab01cd34") -> Launch:
    argv = (sys.executable, "-I", "-S", str(LAUNCHER), str(path), launch_id)
    return Launch(launch_id=launch_id, argv=argv, cwd=str(folder))


def hello(folder: Path, *argv: str, **env: str) -> dict[str, Any]:
    return {"hello": {"protocol": 1, "argv": list(argv), "env": env, "cwd": str(folder), "node_id": "n1"}}


async def test_it_becomes_the_program_that_the_daemon_names(tmux: Tmux, path: Path, tmp_path: Path) -> None:
    there = tmp_path / "there"
    there.mkdir()
    async with listening(path) as door:
        handle = await started(tmux, launch(path, tmp_path))
        daemon = await door.met()
        assert await daemon.hear() == {"hello": {"protocol": 1, "launch": "ab01cd34"}}
        found = stat(handle.pid)
        assert found is not None
        assert found.comm == launcher.COMM
        assert not has_execd(handle.pid, handle.start_ticks)
        await daemon.say(hello(there, "/bin/sh", "-c", "pwd; env; echo done; read x", TOLD="s3"))
        assert await daemon.hear() == {"exec": True}
        await daemon.closed()
        assert has_execd(handle.pid, handle.start_ticks)
        screen = await shown(tmux, handle, "done")
    assert screen.splitlines()[0] == str(there)
    names = {line.partition("=")[0] for line in screen.splitlines()[1:-1]}
    assert names <= {"TOLD", "FIRM_LAUNCH_ID", "PWD", "OLDPWD", "SHLVL", "_"}
    assert "FIRM_LAUNCH_ID=ab01cd34" in screen
    assert start_ticks_of(handle.pid) == handle.start_ticks


async def test_a_program_dies_of_a_pipe_that_nobody_reads(tmux: Tmux, path: Path, tmp_path: Path) -> None:
    async with listening(path) as door:
        handle = await started(tmux, launch(path, tmp_path))
        daemon = await door.met()
        await daemon.hear()
        await daemon.say(hello(tmp_path, "/bin/sh", "-c", "grep Sig[IB] /proc/self/status; read x"))
        screen = await shown(tmux, handle, "SigIgn")
    # 32 and 33 are the C library's own: nobody but it may set them, and who started the tests may ignore them.
    theirs = 1 << 31 | 1 << 32
    masks = {line.split(":")[0]: int(line.split()[1], 16) & ~theirs for line in screen.splitlines() if ":" in line}
    assert masks == {"SigIgn": 0, "SigBlk": 0}


@pytest.mark.parametrize(("nice", "more"), [(0, 0), (7, 7)])
async def test_the_program_gives_way_as_far_as_it_is_told(
    tmux: Tmux, path: Path, tmp_path: Path, nice: int, more: int
) -> None:
    async with listening(path) as door:
        handle = await started(tmux, launch(path, tmp_path))
        daemon = await door.met()
        await daemon.hear()
        before = os.getpriority(os.PRIO_PROCESS, handle.pid)
        plan = hello(tmp_path, "/bin/sh", "-c", "cat /proc/self/autogroup; echo here; read x")
        plan["hello"]["nice"] = before + nice if nice else 0
        await daemon.say(plan)
        screen = await shown(tmux, handle, "here")
    assert os.getpriority(os.PRIO_PROCESS, handle.pid) == before + more
    if os.geteuid() == 0 and "/autogroup-" in screen:  # others may ask ten times a second, all of them together
        assert f" nice {before + more}\n" in screen


@pytest.mark.parametrize(
    ("plan", "number", "what"),
    [
        (("/nowhere/agent", ""), errno.ENOENT, "cannot run the program: No such file or directory"),
        (("/etc/passwd", ""), errno.EACCES, "cannot run the program: Permission denied"),
        (("/bin/sh", "gone"), errno.ENOENT, "cannot enter the folder: No such file or directory"),
    ],
)
async def test_what_cannot_start_says_so(
    tmux: Tmux, path: Path, tmp_path: Path, plan: tuple[str, str], number: int, what: str
) -> None:
    argv0, folder = plan
    async with listening(path) as door:
        handle = await started(tmux, launch(path, tmp_path))
        daemon = await door.met()
        await daemon.hear()
        await daemon.say(hello(tmp_path / folder, argv0))
        said = await daemon.hear()
        if said == {"exec": True}:
            said = await daemon.hear()
        assert said == {"failed": {"errno": number, "what": what}}
        found = await tmux.ended(handle)
    assert (found.status, found.screen) == (launcher.FAILED, f"firm: {what}")
    assert not has_execd(handle.pid, handle.start_ticks)


async def test_a_refusal_is_shown_with_what_lifts_it(tmux: Tmux, path: Path, tmp_path: Path) -> None:
    async with listening(path) as door:
        handle = await started(tmux, launch(path, tmp_path))
        daemon = await door.met()
        await daemon.hear()
        await daemon.say({"refusal": {"code": "LAUNCH_UNKNOWN", "about": "launch", "lifted_by": "start it again"}})
        found = await tmux.ended(handle)
    assert (found.status, found.screen) == (launcher.REFUSED, "firm: LAUNCH_UNKNOWN: start it again")


async def test_it_keeps_asking_while_the_daemon_is_away(tmux: Tmux, path: Path, tmp_path: Path) -> None:
    handle = await started(tmux, launch(path, tmp_path))

    async def waits() -> bool:
        await trio.lowlevel.checkpoint()
        found = stat(handle.pid)
        return found is not None and found.comm == launcher.COMM

    await until(waits)
    async with listening(path) as door:  # comes, hears it, and goes without an answer
        await (await door.met()).hear()
    path.unlink()
    async with listening(path) as door:
        daemon = await door.met()
        await daemon.hear()
        await daemon.say(hello(tmp_path, "/bin/sh", "-c", "echo here; read x"))
        await shown(tmux, handle, "here")


@pytest.mark.parametrize(
    "answer",
    [
        b"\xc1",
        b"\x81\xa5hello\x90",
        msgpack.packb({"hello": {"argv": [], "env": {}, "cwd": "/"}}),
        msgpack.packb({"hello": {"argv": ["/bin/true"], "env": {}, "cwd": "/", "nice": "7"}}),
        b"\xdf\xff\xff\xff\xff",
    ],
)
async def test_an_answer_that_is_none_ends_it(path: Path, answer: bytes) -> None:
    async with listening(path) as door, trio.open_nursery() as nursery:
        done: list[subprocess.CompletedProcess[bytes]] = []
        over = trio.Event()

        async def run() -> None:
            argv = [sys.executable, "-I", "-S", str(LAUNCHER), str(path), "ab01cd34"]
            done.append(await trio.run_process(argv, capture_stderr=True, check=False))
            over.set()

        nursery.start_soon(run)
        daemon = await door.met()
        await daemon.hear()
        await daemon.stream.send_all(len(answer).to_bytes(4, "big") + answer)
        with trio.fail_after(5):
            await over.wait()
    assert done[0].returncode == launcher.FAILED
    assert done[0].stderr.startswith(b"firm: ")
    assert b"Traceback" not in done[0].stderr


async def test_a_socket_that_closes_is_no_proof(tmux: Tmux, path: Path, tmp_path: Path) -> None:
    async with listening(path) as door:
        handle = await started(tmux, launch(path, tmp_path))
        daemon = await door.met()
        await daemon.hear()
        os.kill(handle.pid, signal.SIGKILL)
        await daemon.closed()
        assert not has_execd(handle.pid, handle.start_ticks)


def test_a_process_that_is_going_has_not_become_the_program() -> None:
    """Here it is gone as far as it can be without being reaped; until then everything else about it is right."""
    going = subprocess.Popen(["sleep", "60"])
    ticks = start_ticks_of(going.pid)
    assert ticks is not None
    assert has_execd(going.pid, ticks)
    going.kill()
    os.waitid(os.P_PID, going.pid, os.WEXITED | os.WNOWAIT)
    assert start_ticks_of(going.pid) == ticks
    assert not has_execd(going.pid, ticks)
    going.wait()


def test_no_other_process_has_become_the_program() -> None:
    ticks = start_ticks_of(os.getpid())
    assert ticks is not None
    assert has_execd(os.getpid(), ticks)
    assert not has_execd(os.getpid(), ticks + 1)
    assert not has_execd(2**22 + 1, ticks)


def test_it_imports_little() -> None:
    code = (
        f"import sys; sys.argv[:]=['x']; exec(open({str(LAUNCHER)!r}).read(), {{'__name__': 'x'}}); print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=True)
    assert not {"typing", "re", "enum", "socket", "struct", "json", "pathlib"} & set(done.stdout.split())


PLAIN = st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text(max_size=300)
READ = st.recursive(
    PLAIN | st.integers(2**63, 2**64 - 1) | st.binary(max_size=300),
    lambda inner: st.lists(inner, max_size=20) | st.dictionaries(st.text(max_size=40), inner, max_size=20),
    max_leaves=40,
)
SAID = st.recursive(PLAIN, lambda inner: st.dictionaries(st.text(max_size=10), inner, max_size=5), max_leaves=20)


@given(READ)
def test_it_reads_what_msgpack_writes(value: object) -> None:
    assert launcher.unpack(msgpack.packb(value)) == value


@given(SAID)
def test_msgpack_reads_what_it_writes(value: object) -> None:
    assert msgpack.unpackb(launcher.pack(value)) == value


@given(st.binary(max_size=200))
def test_bytes_that_are_none_are_told_by_one_error(raw: bytes) -> None:
    with suppress(ValueError):
        launcher.unpack(raw)


async def test_ten_launches_one_by_one_are_quick(tmux: Tmux, path: Path, tmp_path: Path) -> None:
    """A bound far above what it takes, so that it only tells of a launch that waits for something."""
    async with listening(path) as door:
        begun = trio.current_time()
        for number in range(10):
            handle = await started(tmux, launch(path, tmp_path, f"ab01cd{number:02}"))
            assert isinstance(handle, Handle)
            daemon = await door.met()
            await daemon.hear()
            await daemon.say(hello(tmp_path, "/bin/cat"))
            assert await daemon.hear() == {"exec": True}
            await daemon.closed()
            assert has_execd(handle.pid, handle.start_ticks)
        took = trio.current_time() - begun
    print(f"ten launches: {took * 1000:.0f} ms")  # noqa: T201 — a figure for whoever runs this with -s
    assert took < 5
