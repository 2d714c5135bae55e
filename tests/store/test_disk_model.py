"""The model of a disk behind the VFS shim, without SQLite."""

from __future__ import annotations

from random import Random

from tests.support.disk import Disk, FileImage


def test_a_failed_sync_loses_what_it_should_have_kept_even_if_the_next_one_succeeds() -> None:
    image = FileImage(b"old!")
    image.write(b"new", 0)
    image.sync_failed()
    image.synced()
    assert image.after_power_loss(None) == b"old!"
    image.write(b"NEW", 0)
    image.synced()
    assert image.after_power_loss(None) == b"NEW!"


def test_what_was_not_synced_is_there_or_not() -> None:
    image = FileImage(b"a" * 2048)
    image.write(b"b" * 1024, 0)
    image.truncate(1536)
    assert image.after_power_loss(None) == b"a" * 2048
    found = {image.after_power_loss(Random(seed)) for seed in range(100)}
    sectors = {content.replace(b"a" * 512, b"a").replace(b"b" * 512, b"b") for content in found}
    assert sectors == {b"aaaa", b"aaa", b"abaa", b"aba", b"baaa", b"baa", b"bbaa", b"bba"}


def test_names_last_when_their_folder_was_synced() -> None:
    disk = Disk()
    disk.adopt("/a/found", b"1")
    disk.create("/a/made").write(b"2", 0)
    disk.create("/b/made")
    disk.delete("/a/found")
    assert disk.after_power_loss(None) == {"/a/found": b"1"}
    disk.folder_synced("/a/any")
    assert disk.after_power_loss(None) == {"/a/made": b""}
    assert disk.after_process_loss() == {"/a/made": b"2", "/b/made": b""}
