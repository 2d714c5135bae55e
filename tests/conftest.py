"""Fixtures that every test may ask for: a node in this process, and real daemons (``tests/support/daemon.py``)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from providers import profiles
from tests.support.daemon import daemon, home, shared
from tests.support.node import InProcessNode, in_process
from tests.support.runs import field
from tests.support.supervised import living
from tests.support.worker import bench

__all__ = ["bench", "daemon", "field", "home", "living", "node", "shared"]


@pytest.fixture(autouse=True)
def _own_profiles() -> Iterator[None]:
    """A profile that a test, a sample or a node in this process adds is gone with the test."""
    before = dict(profiles.PROFILES)
    yield
    profiles.PROFILES.clear()
    profiles.PROFILES.update(before)


@pytest.fixture
async def node(tmp_path: Path) -> AsyncIterator[InProcessNode]:
    """A node in this process, over a folder of its own."""
    async with in_process(tmp_path / "home") as running:
        yield running
