"""Fixtures of a supervisor in the process of its test."""

from __future__ import annotations

import pytest

from supervisor import run


@pytest.fixture(autouse=True)
def looks_at_once(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a clock that stands still no time passes between two looks, unless the test says that it is about that."""
    if "looks_apart" not in request.fixturenames:
        monkeypatch.setattr(run, "APART", 0.0)


@pytest.fixture
def looks_apart() -> float:
    """Seconds between two looks of a supervisor."""
    return run.APART
