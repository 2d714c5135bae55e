"""A provider of each kind, and a tmux by itself. Nothing of them is left when a test ends, however it ends."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from providers import fake
from providers.port import Provider
from providers.tmux.provider import Tmux
from tests.support.terminals import tmux_in


@pytest.fixture(params=["tmux", "fake"])
async def provider(request: pytest.FixtureRequest) -> AsyncIterator[Provider]:
    if request.param == "tmux":
        async with tmux_in() as tmux:
            yield tmux
    else:
        async with fake.running() as running:
            yield running


@pytest.fixture
async def tmux() -> AsyncIterator[Tmux]:
    async with tmux_in() as running:
        yield running
