"""Where a tmux server is started, and in what folders: scopes of a user manager, file systems that hang."""

from __future__ import annotations

import threading
from pathlib import Path

import attrs
import pytest
import trio

from providers.port import NotStarted, Stopped, Why
from providers.tmux.provider import Opened, Tmux
from providers.tmux.server import Scope, scope
from tests.providers.test_tmux import folder, tmux_in_after
from tests.support.terminals import shell, started

__all__ = ["folder"]


async def test_a_folder_whose_file_system_hangs_is_told_in_time(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A look that hangs in the kernel can neither be cancelled nor waited for."""
    hanging, held = threading.Event(), tmp_path / "held"
    right = Path.is_dir

    def is_dir(path: Path) -> bool:
        if path == held:
            hanging.wait(20)
        return right(path)

    monkeypatch.setattr(Path, "is_dir", is_dir)
    try:
        async with tmux_in_after(folder) as tmux:
            hasty = Tmux(folder, patience=0.5)
            assert isinstance(await tmux.open(), Opened)
            assert isinstance(await hasty.open(), Opened)
            with trio.fail_after(4):
                found = await hasty.start(attrs.evolve(shell(tmp_path, "read x"), cwd=str(held)))
            assert found == NotStarted(why=Why.UNREACHABLE, detail=f"the file system of {str(held)!r} does not answer")
    finally:
        hanging.set()


async def test_a_server_starts_without_the_scope_that_it_does_not_get(
    folder: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with tmux_in_after(folder):
        tmux = Tmux(folder, scope=Scope(words=("/bin/sh", "-c", "echo no manager >&2; exit 1", "--"), told={}))
        assert isinstance(await tmux.open(), Opened)
        assert "no scope for the tmux server, it starts without one: no manager" in caplog.text
        handle = await started(tmux, shell(tmp_path, "read x"))
        assert await tmux.stop(handle) == Stopped(left=())


def test_only_a_unit_of_a_user_manager_gives_a_scope() -> None:
    """Started by hand there is nothing that a scope would keep a server out of."""
    assert scope({"XDG_RUNTIME_DIR": "/run/user/1"}) is None
    assert scope({"INVOCATION_ID": "1"}) is None
