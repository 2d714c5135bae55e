"""A supervisor over real processes whose last screen cannot be kept."""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import trio

from client.protocol.event import ListEvents
from client.protocol.ids import SessionId
from supervisor.means import handle_of
from tests.support.runtime import Runtime, runtime
from tests.support.terminals import until


@pytest.fixture
async def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Runtime]:
    async with runtime(tmp_path / "home", monkeypatch) as running:
        with trio.fail_after(25):
            yield running


async def test_a_disk_that_takes_no_last_screen_hinders_nothing(
    world: Runtime, caplog: pytest.LogCaptureFixture
) -> None:
    world.means.screens.base.write_text("a file in its way")
    world.program("/bin/sh", "-c", "echo words; exec cat")
    world.supervise()
    first = await world.live()
    assert await until(lambda: shows(world, first.id))
    with caplog.at_level(logging.WARNING):
        os.kill(first.pid, signal.SIGKILL)
        await world.live(after=first.session_gen)
    kinds = [each.kind for each in (await world.node.ok(ListEvents(stream=f"session/{first.id}"))).items]
    assert "exited: ended by signal 9" in kinds
    assert f"the last screen of session={first.id} cannot be kept: [Errno 17]" in caplog.text


async def shows(world: Runtime, session_id: SessionId) -> bool:
    """Whether something stands on its terminal."""
    (effect,) = [each for each in await world.effects() if each.session_id == session_id]
    handle = handle_of(effect)
    assert handle is not None
    return bool(await world.provider.capture(handle))
