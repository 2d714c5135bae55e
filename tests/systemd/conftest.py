"""A private user manager for each test, and a node in it."""

from __future__ import annotations

import sys
import venv
from collections.abc import Generator
from pathlib import Path

import pytest

from client.cli.units import TEMPLATES
from tests.support.user_manager import UserManager, UserManagerUnavailable, user_manager
from tests.systemd.node import Node, place_node


@pytest.fixture(scope="session")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An interpreter with an awkward path that knows what ours knows."""
    folder = tmp_path_factory.mktemp("environments") / "v e$n${v} 1% ;#@HOME@"
    venv.create(folder, symlinks=True)
    (packages,) = folder.glob("lib/python3*/site-packages")
    known = [path for path in sys.path if path.endswith("site-packages")]
    (packages / "ours.pth").write_text("\n".join([*known, str(TEMPLATES.parent), ""]))
    return folder / "bin/python"


@pytest.fixture
def manager() -> Generator[UserManager]:
    try:
        with user_manager() as running:
            yield running
    except UserManagerUnavailable as why:
        pytest.skip(str(why))


@pytest.fixture
def node(manager: UserManager, python: Path) -> Node:
    return place_node(manager, python)
