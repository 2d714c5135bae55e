"""Shells: one with a daemon for all tests of a file, one whose FIRM_HOME is not there yet."""

from __future__ import annotations

import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cli.shell import Shell


@contextmanager
def somebody() -> Generator[Shell]:
    """In a short folder of its own: the path of a socket has 107 bytes."""
    with tempfile.TemporaryDirectory(prefix="firm-") as root:
        folder = Path(root) / "work"
        folder.mkdir()
        shell = Shell(Path(root) / "home", folder)
        try:
            yield shell
        finally:
            if shell.home.is_dir():
                shell.tries("node", "stop")


@pytest.fixture
def shell() -> Generator[Shell]:
    """A person whose FIRM_HOME does not exist; a daemon that the test starts is gone at its end."""
    with somebody() as shell:
        yield shell


@pytest.fixture(scope="module")
def served() -> Generator[Shell]:
    """A person whose daemon runs, shared by a file: its tests make what they look at under names of their own."""
    with somebody() as shell:
        shell.firm("node", "start")
        yield shell
