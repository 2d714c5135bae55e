"""A tmux server in a control group of its own, as a user manager's scope is one: real groups of version 2."""

from __future__ import annotations

import os
import secrets
import subprocess
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import trio

from providers.port import Handle, Stopped
from providers.process import process
from providers.tmux import group
from providers.tmux.provider import Opened, Tmux
from providers.tmux.server import Scope
from tests.support.terminals import left_over, python, shell, started, written

#: Enters the group that is its first word, then becomes the rest.
ENTER = 'echo $$ > "$0/cgroup.procs" && exec "$@"'
#: Begins, as our launcher does, only once it is told to.
TOLD = "import os, signal, sys\nopen(sys.argv[1]).read()\n"
#: Leaves its session and loses its parent, with nothing in its environment that says whose it is.
UNMARKED = """
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        wait = "import os, signal, sys; signal.signal(signal.SIGTERM, signal.SIG_IGN); " \\
            "open(sys.argv[1] + '.part', 'w').write(str(os.getpid())); " \\
            "os.rename(sys.argv[1] + '.part', sys.argv[1]); signal.pause()"
        os.execve(sys.executable, [sys.executable, "-I", "-S", "-c", wait, sys.argv[2]], {})
    os._exit(0)
os.wait()
while True: signal.pause()
"""


def _refused() -> str | None:
    """Why no control group can be made here, or None."""
    top = group._mounted()
    if top is None:
        return "there are no control groups of version 2 here"
    made = top / group.group_of(os.getpid()).lstrip("/") / f"firm-test-{secrets.token_hex(4)}"
    try:
        made.mkdir()
    except OSError as error:
        return f"no control group can be made here: {error.strerror}"
    try:
        return None if (made / "cgroup.kill").exists() else "the kernel ends no control group at once"
    finally:
        made.rmdir()


pytestmark = pytest.mark.skipif(_refused() is not None, reason=str(_refused()))


@pytest.fixture
def scope() -> Iterator[Path]:
    """A group that is the test's own; nothing of it is left."""
    top = group._mounted()
    assert top is not None
    made = top / group.group_of(os.getpid()).lstrip("/") / f"firm-test-{secrets.token_hex(4)}"
    made.mkdir()
    yield made
    assert group._kill(made)


@pytest.fixture
async def tmux(scope: Path, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Tmux]:
    folder = tmp_path_factory.mktemp("t")
    provider = Tmux(folder, scope=Scope(words=("sh", "-c", ENTER, str(scope)), told={}))
    assert isinstance(await provider.open(), Opened)
    yield provider
    with trio.fail_after(30):
        assert await provider.close() == Stopped(left=())
        assert left_over(folder) == []


async def told(tmux: Tmux, folder: Path, program: str) -> Handle:
    """A launch of that program, which begins once it stands. Its words are the pipe, and where to write a pid."""
    os.mkfifo(folder / "go")
    handle = await started(tmux, python(folder, TOLD + program, str(folder / "go"), str(folder / "pid")))
    await trio.Path(folder / "go").write_text("go")
    return handle


async def test_each_launch_has_a_group_of_its_own_and_its_end_is_what_the_kernel_says(
    tmux: Tmux, scope: Path, tmp_path: Path
) -> None:
    first, second = [await started(tmux, shell(tmp_path, "read x")) for _ in range(2)]
    for each in (first, second):
        assert Path(group.group_of(each.pid)) == Path(group.group_of(os.getpid())) / scope.name / each.launch_id
        assert each.pid in {found.pid for found in group.inside(scope / each.launch_id)}
    beside = group.inside(scope / second.launch_id)
    assert await tmux.stop(first) == Stopped(left=(), grouped=True)
    assert not (scope / first.launch_id).exists()
    assert all(each.lives() for each in beside), "nothing of another launch was touched"
    assert await tmux.stop(second) == Stopped(left=(), grouped=True)
    assert await tmux.stop(second) == Stopped(left=()), "there is no group to ask any more"


async def test_what_took_its_mark_off_and_lost_its_parent_is_ended_with_its_group(
    tmux: Tmux, scope: Path, tmp_path: Path
) -> None:
    """Also below a group that it made for itself."""
    handle = await told(tmux, tmp_path, UNMARKED)
    stray = await written(tmp_path / "pid")
    (scope / handle.launch_id / "its own").mkdir()
    (scope / handle.launch_id / "its own" / "cgroup.procs").write_text(str(stray.pid))
    assert await tmux.stop(handle) == Stopped(left=(), grouped=True)
    assert not stray.lives()


async def test_what_starts_others_faster_than_it_is_looked_at_is_ended(tmux: Tmux, tmp_path: Path) -> None:
    handle = await told(tmux, tmp_path, "while True:\n    if os.fork(): os._exit(0)\n    os.setsid()")
    assert await tmux.stop(handle) == Stopped(left=(), grouped=True)


async def test_a_successor_uses_the_groups_of_the_server_that_it_adopts(tmux: Tmux, tmp_path: Path) -> None:
    """What was recorded is looked up again. A server that is in another group was given none."""
    handle = await started(tmux, shell(tmp_path, "read x"))
    later = Tmux(tmux._places.folder)
    assert isinstance(await later.open(), Opened)
    assert await later.stop(handle) == Stopped(left=(), grouped=True)
    me = process(os.getpid())
    assert me is not None
    assert group.delegated(tmux._places.group(), me) is None


async def test_a_group_that_cannot_be_made_keeps_nobody_from_starting(tmux: Tmux, scope: Path, tmp_path: Path) -> None:
    wanted = shell(tmp_path, "read x")
    (scope / "cgroup.max.descendants").write_text("0")
    handle = await started(tmux, wanted)
    assert await tmux.stop(handle) == Stopped(left=())


async def test_a_group_in_which_something_is_left_is_no_proof(scope: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What hangs in the kernel does not end; here it is what nobody could kill in time."""
    monkeypatch.setattr(group, "_EMPTY_WITHIN", 0.05)
    with subprocess.Popen(["sleep", "600"]) as sleeper:  # noqa: ASYNC220 — done in no time
        (scope / "one").mkdir()
        (scope / "one" / "cgroup.procs").write_text(str(sleeper.pid))
        assert not group._is_empty(scope / "one")
        assert await group.end(scope / "one")
    assert not await group.end(scope / "one"), "there is none"
