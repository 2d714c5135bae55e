"""A session's own folder: private, its files whole, what a program changed in it kept, and gone at the end."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from client.protocol.ids import SessionId
from supervisor.folders import Folders

MINE, OTHER = SessionId("mine"), SessionId("other")


async def test_files_are_private_and_what_is_there_stays(tmp_path: Path) -> None:
    folders = Folders(tmp_path / "base")
    await folders.give(MINE, {"deep/down.toml": "first", "b": "x"})
    path = folders.of(MINE) / "deep" / "down.toml"
    modes = [each.stat().st_mode & 0o777 for each in (folders.of(MINE), path.parent, path)]
    assert modes == [0o700, 0o700, 0o600]
    path.write_text("changed by the program")
    (folders.of(MINE) / "b").unlink()
    await folders.give(MINE, {"deep/down.toml": "first", "b": "y"})
    assert (path.read_text(), (folders.of(MINE) / "b").read_text()) == ("changed by the program", "y")
    assert sorted(each.name for each in folders.of(MINE).rglob("*")) == ["b", "deep", "down.toml"]


async def test_a_text_that_is_told_again_is_the_newest(tmp_path: Path) -> None:
    folders = Folders(tmp_path)
    first = await folders.tell(MINE, "1.txt", "old")
    assert await folders.tell(MINE, "1.txt", "new\udcff") == first
    assert (first.read_text(), first.stat().st_mode & 0o777) == ("new?", 0o600)
    assert [each.name for each in first.parent.iterdir()] == ["1.txt"]


async def test_a_folder_goes_alone_and_one_that_cannot_be_removed_is_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folders = Folders(tmp_path)
    await folders.drop(MINE)
    await folders.give(MINE, {"a": ""})
    await folders.give(OTHER, {"a": ""})
    await folders.drop(MINE)
    assert (folders.of(MINE).exists(), folders.of(OTHER).exists()) == (False, True)
    assert caplog.text == ""
    folders.of(MINE).symlink_to(folders.of(OTHER))
    with caplog.at_level(logging.WARNING):
        await folders.drop(MINE)
    assert "the folder of session=mine cannot be removed" in caplog.text
    assert (folders.of(OTHER) / "a").exists()
