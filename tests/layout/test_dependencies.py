"""A dependency is named the same way everywhere, has a reason, and is pinned by content and not by place."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def named(path: str) -> set[str]:
    """The requirements of an .in file, without comments, extras and includes."""
    lines = (line.split("#")[0].strip() for line in (ROOT / path).read_text().splitlines())
    return {re.split(r"[\[<>=;]", line)[0] for line in lines if line and not line.startswith("-")}


def test_what_an_installed_node_needs_is_what_a_checkout_needs_beside_the_build() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    installed = {re.split(r"[<>=]", line)[0] for line in project["dependencies"]}
    assert installed == named("requirements.in") - {"hatchling", "editables"}


def test_every_dependency_has_a_reason() -> None:
    page = (ROOT / "docs/decisions/0001-dependencies.md").read_text().split("## Considered and left out")[0]
    explained = set(re.findall(r"^\| ([a-z0-9-]+) \|", page, re.MULTILINE)) - {"package"}
    assert explained == named("requirements.in") | named("requirements-dev.in")


@pytest.mark.parametrize("lock", ["requirements.lock", "requirements-dev.lock"])
def test_a_lock_holds_pins_and_hashes_and_no_address(lock: str) -> None:
    lines = (ROOT / lock).read_text().splitlines()
    pin = re.compile(r"[a-z0-9._-]+==[\w.]+( ; [\w' .!=*<>-]+)? \\|    --hash=sha256:[0-9a-f]{64}( \\)?|\s*#[^:]*:?")
    assert [line for line in lines if not pin.fullmatch(line)] == []


def test_the_runtime_runs_on_the_same_releases_in_both_locks() -> None:
    def pins(lock: str) -> set[str]:
        return set(re.findall(r"^\S+==\S+", (ROOT / lock).read_text(), re.MULTILINE))

    assert pins("requirements.lock") < pins("requirements-dev.lock")
