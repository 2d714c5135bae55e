"""``firm node backup`` and ``restore`` as a person uses them."""

from __future__ import annotations

import pytest

from tests.cli.shell import Shell


def names(shell: Shell) -> list[str]:
    return [item["name"] for item in shell.answer("agent", "list")["items"]]


@pytest.fixture
def backed_up(shell: Shell) -> Shell:
    """Ann is in ``copy.db``; Bob came later. The daemon runs."""
    shell.firm("node", "start")
    shell.firm("agent", "create", "ann")
    shell.firm("node", "backup", "copy.db")
    shell.firm("agent", "create", "bob")
    return shell


def test_a_restored_backup_is_what_it_was_and_begins_above_every_generation(backed_up: Shell) -> None:
    before = backed_up.tries("node", "status", "--json").json
    cursor = backed_up.answer("events")["cursor"]
    backed_up.firm("node", "stop")
    assert backed_up.firm("node", "restore", "copy.db").startswith(f"restored {backed_up.cwd / 'copy.db'}; store_id=")
    backed_up.firm("node", "start")
    assert names(backed_up) == ["ann"]
    after = backed_up.tries("node", "status", "--json").json
    assert after["daemon_gen"] > before["daemon_gen"] + 1_000_000
    assert after["store_id"] != before["store_id"]
    assert after["node_id"] == before["node_id"]
    assert "CURSOR_INVALID" in backed_up.tries("events", "--cursor", cursor).err
    assert len(list(backed_up.home.glob("node.db.before-*"))) >= 1


def test_restore_answers_programs_too(backed_up: Shell) -> None:
    backed_up.firm("node", "stop")
    done = backed_up.tries("node", "restore", "copy.db", "--json")
    assert (done.status, done.err) == (0, "")
    assert sorted(done.json) == ["generation_floor", "restored", "store_id"]
    assert done.json["restored"] is True


def test_a_backup_overwrites_nothing(backed_up: Shell) -> None:
    before = (backed_up.cwd / "copy.db").read_bytes()
    done = backed_up.tries("node", "backup", "copy.db")
    assert done.status == 1
    assert "[FILE_EXISTS " in done.err
    assert (backed_up.cwd / "copy.db").read_bytes() == before


def test_a_backup_where_nothing_can_be_written_says_so(backed_up: Shell) -> None:
    done = backed_up.tries("node", "backup", "nosuch/copy.db")
    assert done.status == 1
    assert "[FILE_UNUSABLE " in done.err
    assert "To lift it: " in done.err


def test_a_restore_while_the_daemon_runs_is_refused(backed_up: Shell) -> None:
    for form in ([], ["--json"]):
        done = backed_up.tries("node", "restore", "copy.db", *form)
        assert (done.status, done.out) == (1, "")
        assert "NODE_DAEMON_ALREADY_RUNNING" in done.err
        assert "firm node stop" in done.err
    assert names(backed_up) == ["ann", "bob"]


@pytest.mark.parametrize("content", [None, b"", b"no database" * 1000], ids=["missing", "empty", "garbage"])
def test_a_file_that_is_no_backup_is_refused_and_nothing_changed(backed_up: Shell, content: bytes | None) -> None:
    backed_up.firm("node", "stop")
    if content is not None:
        (backed_up.cwd / "bad.db").write_bytes(content)
    done = backed_up.tries("node", "restore", "bad.db")
    assert (done.status, done.out) == (1, "")
    assert "[FILE_UNUSABLE]\n  To lift it: " in done.err
    assert "Nothing was changed." in done.err
    backed_up.firm("node", "start")
    assert names(backed_up) == ["ann", "bob"]
