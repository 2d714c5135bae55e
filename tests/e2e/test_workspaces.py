"""Worktrees of members as a person sees them: listed with what git says, kept by ``firm down``, and taken away by
``firm workspace archive``, never with anything in them that is in no commit; whoever is killed over it.
"""

from __future__ import annotations

import contextlib
import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.daemon import Daemon
from tests.support.repos import repo
from tests.support.runs import Field

pytestmark = pytest.mark.skipif(shutil.which("tmux") is None, reason="there is no tmux here")

_ARCHIVE = ("archive-prepared", "archive-aside", "archive-forgotten", "archive-done")


def listed(field: Field) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = field.ask("workspace", "list")["items"]
    return found


def archives(field: Field) -> list[dict[str, Any]]:
    (run,) = field.ask("team-run", "list")["items"]
    return [each for each in field.ask("effect", "list", run["id"])["items"] if each["kind"] == "archive"]


def ask_once(daemon: Daemon, path: Path) -> None:
    """Its answer may be lost with the daemon."""
    with daemon.client() as client, contextlib.suppress(EOFError, ConnectionError):
        client.ask("workspace.archive", {"path": str(path)})


def left_behind(field: Field, *members: str) -> list[dict[str, Any]]:
    """The worktrees of members that worked, and were ended."""
    field.team(*members)
    assert field.call("up", "team.toml", "--detach").returncode == 0
    field.until_live(len(members))
    assert field.call("down").returncode == 0
    return listed(field)


def archive(field: Field, named: str, *words: str) -> dict[str, Any]:
    effect: dict[str, Any] = field.firm("workspace", "archive", named, *words)["effect"]
    return effect


def branches(field: Field) -> list[str]:
    return field.repo.git("for-each-ref", "--format=%(refname:short)", "refs/heads/firm").splitlines()


def test_a_worktree_is_listed_while_it_is_used_and_stays_when_its_member_is_ended(field: Field) -> None:
    field.team("kiwi", "lime")
    field.start()
    assert field.call("up", "team.toml", "--detach").returncode == 0
    sessions = {each["id"] for each in field.until_live(2)}
    first, second = listed(field)
    assert [first["name"], second["name"]] == ["kiwi", "lime"]
    assert {first["session_id"], second["session_id"]} == sessions
    assert (first["branch"], first["state"]) == ("firm/crew/kiwi", "clean")
    refused = field.call("workspace", "archive", "kiwi")
    assert (refused.returncode, "SESSION_LIVE" in refused.stderr) == (1, True)

    (Path(second["path"]) / "new").write_text("mine")
    down = field.call("down")
    assert down.returncode == 0, down.stdout
    for each in (first, second):
        assert f"stays {each['name']}'s worktree" in down.stdout
        assert each["path"] in down.stdout
    assert [(each["session_id"], each["state"]) for each in listed(field)] == [(None, "clean"), (None, "dirty")]
    shown = field.call("workspace", "list").stdout
    assert "dirty, 1 change" in shown
    assert "lime: commit or remove what is in no commit: new" in shown


def test_one_that_is_archived_is_gone_and_its_branch_is_taken_up_again(field: Field) -> None:
    """With commits that are nowhere else, and what the repository ignores, which goes with the folder."""
    field.repo.commit(".gitignore", "*.o\n")
    field.start()
    (kiwi,) = left_behind(field, "kiwi")
    path = Path(kiwi["path"])
    done = field.repo.commit("more", at=path)
    (path / "built.o").write_text("x")
    effect = archive(field, "kiwi", "--reason", "it is done")
    assert (effect["kind"], effect["certainty"], effect["cwd"]) == ("archive", "applied", str(path))
    assert effect["readback"] == f"taken away; its branch firm/crew/kiwi stays at {done[:12]}"
    assert (listed(field), [*path.parent.iterdir()], branches(field)) == ([], [], ["firm/crew/kiwi"])
    assert field.repo.worktrees() == [str(field.repo.root)]
    again = field.call("workspace", "archive", "kiwi")
    assert (again.returncode, "there is none; nothing has to be done" in again.stderr) == (2, True)
    assert field.call("up", "team.toml", "--detach").returncode == 0
    field.until_live()
    (back,) = listed(field)
    assert (back["path"], back["revision"], back["ahead"]) == (str(path), done, 1)


def dirty(_: Field, path: Path) -> None:
    (path / "new").write_text("mine")


def staged(field: Field, path: Path) -> None:
    (path / "file").write_text("changed")
    field.repo.git("add", "file", at=path)


def vanished(_: Field, path: Path) -> None:
    shutil.rmtree(path)


def moved(field: Field, path: Path) -> None:
    field.repo.git("worktree", "move", str(path), str(path.with_name("elsewhere")))


def another_repository(_: Field, path: Path) -> None:
    shutil.rmtree(path)
    repo(path)


def a_stranger(field: Field, path: Path) -> None:
    """Git has forgotten it, and something else stands there."""
    field.repo.git("worktree", "remove", str(path))
    path.mkdir()
    (path / "mine").write_text("mine")


def another_branch(field: Field, path: Path) -> None:
    field.repo.git("switch", "-q", "--detach", at=path)
    field.repo.commit("lost", at=path)


def locked(field: Field, path: Path) -> None:
    field.repo.git("worktree", "lock", "--reason", "on a stick", str(path))


def a_link(_: Field, path: Path) -> None:
    path.rename(path.with_name("elsewhere"))
    path.symlink_to("elsewhere")


@pytest.mark.parametrize(
    ("change", "state", "code", "lifted_by"),
    [
        (dirty, "dirty", "WORKSPACE_DIRTY", "commit or remove what is in no commit: new"),
        (staged, "dirty", "WORKSPACE_DIRTY", "commit or remove what is in no commit: file"),
        (vanished, "gone", "WORKSPACE_CONFLICT", "git worktree prune"),
        (moved, "moved", "WORKSPACE_CONFLICT", "it was moved to"),
        (another_repository, "conflict", "WORKSPACE_CONFLICT", "belongs to another repository"),
        (a_stranger, "conflict", "WORKSPACE_CONFLICT", "is no worktree of the project"),
        (another_branch, "conflict", "WORKSPACE_CONFLICT", "git switch firm/crew/kiwi"),
        (locked, "clean", "WORKSPACE_CONFLICT", "git worktree unlock"),
        (a_link, "clean", "WORKSPACE_CONFLICT", "a link stands there"),
    ],
    ids=lambda each: getattr(each, "__name__", None),
)
def test_what_would_lose_something_or_is_not_what_was_made_is_refused_by_name(
    field: Field, change: Callable[[Field, Path], None], state: str, code: str, lifted_by: str
) -> None:
    field.start()
    (kiwi,) = left_behind(field, "kiwi")
    path = Path(kiwi["path"])
    change(field, path)
    before, there = field.repo.state(), sorted(each.name for each in path.parent.rglob("*") if ".git" not in each.parts)
    (found,) = listed(field)
    assert found["state"] == state
    refused = field.call("workspace", "archive", "kiwi")
    assert refused.returncode == 1, refused
    assert f"[{code} {path}]" in refused.stderr
    assert lifted_by in refused.stderr
    after = sorted(each.name for each in path.parent.rglob("*") if ".git" not in each.parts)
    assert (field.repo.state(), after) == (before, there)
    assert branches(field) == ["firm/crew/kiwi"]


def test_a_folder_that_is_no_worktree_of_ours_is_never_taken_away(field: Field) -> None:
    """The project's own folder, in which a member worked that shares it."""
    text = field.team("kiwi").read_text()
    (field.repo.root / "team.toml").write_text(text + 'workspace = "shared"\n')
    daemon = field.start()
    assert field.call("up", "team.toml", "--detach").returncode == 0
    field.until_live()
    assert field.call("down").returncode == 0
    assert listed(field) == []
    ask_once(daemon, field.repo.root)
    (begun,) = archives(field)
    field.wait(f"effect:{begun['id']}.state=settled")
    effect = field.ask("effect", "show", begun["id"])
    assert effect["certainty"] == "not_applied"
    assert effect["readback"] == "NOT_FOUND: see what there is: firm workspace list"
    assert (field.repo.root / "file").exists()


def test_two_who_would_write_into_one_folder_are_named_and_nothing_is_begun(field: Field) -> None:
    """Where there is no git there is no worktree. What lifts it does, also for a folder that the node knows."""
    plain = field.home.temporary / "plain"
    plain.mkdir()
    field.team("kiwi", "lime").rename(plain / "team.toml")
    field.start()
    up = ("up", str(plain / "team.toml"), "--detach")
    refused = field.call(*up)
    assert refused.returncode == 2
    assert f"'kiwi' and 'lime' would write into one folder: {plain}" in " ".join(refused.stderr.split())
    assert (field.ask("agent", "list")["items"], field.ask("team", "list")["items"]) == ([], [])
    repo(plain)
    assert field.call(*up).returncode == 0
    field.until_live(2)
    assert len({each["path"] for each in listed(field)}) == 2


@pytest.mark.parametrize("point", _ARCHIVE)
def test_killed_in_an_archive_the_next_daemon_ends_it(field: Field, point: str) -> None:
    """At every boundary of it; nothing of the worktree is left, and nothing of its branch is lost."""
    dying = field.start(FIRM_CRASH_AT=point)
    (kiwi,) = left_behind(field, "kiwi")
    path = Path(kiwi["path"])
    done = field.repo.commit("more", at=path)
    ask_once(dying, path)
    assert dying.wait() == -signal.SIGKILL
    field.start()
    (begun,) = archives(field)
    field.wait(f"effect:{begun['id']}.state=settled")
    assert field.ask("effect", "show", begun["id"])["certainty"] == "applied"
    assert (listed(field), [*path.parent.iterdir()]) == ([], [])
    assert field.repo.worktrees() == [str(field.repo.root)]
    assert field.repo.git("rev-parse", "firm/crew/kiwi") == done
