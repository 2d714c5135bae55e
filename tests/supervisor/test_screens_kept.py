"""What a supervisor keeps of real processes: whether it can be kept, and of one that ended while nobody looked."""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import trio

from client.protocol.effect import Certainty
from client.protocol.event import ListEvents
from client.protocol.ids import SessionId
from providers.port import Handle, Launch
from supervisor.means import handle_of
from tests.supervisor.test_adopt import prepared
from tests.support.runtime import Runtime, runtime
from tests.support.terminals import until


@pytest.fixture
async def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Runtime]:
    async with runtime(tmp_path / "home", monkeypatch) as running:
        with trio.fail_after(25):
            yield running


async def test_of_a_launch_that_ended_while_nobody_looked_the_last_screen_is_kept(world: Runtime) -> None:
    session, effect = await prepared(world)
    words = ("/bin/sh", "-c", "echo out of luck")
    found = await world.provider.start(Launch(launch_id=effect.id, argv=words, cwd=effect.cwd))
    assert isinstance(found, Handle)
    await world.provider.ended(found)
    world.supervise()
    assert (await world.live()).id == session.id
    first, _ = await world.effects()
    assert (first.certainty, first.readback) == (Certainty.NOT_APPLIED, "its process ended before it was proven")
    last = await world.means.screens.last(session)
    assert last is not None
    assert "out of luck" in last.text


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
