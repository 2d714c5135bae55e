"""Workspaces that cannot be had: every reason by its name, with what lifts it, and nothing changed."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import attrs
import pytest
import trio

from client.git import GitUnusable, git
from client.protocol.refusals import Code, Refusal
from supervisor import workspaces
from supervisor.snapshots import checked_out
from supervisor.workspaces import Place, Workspace, Workspaces, plan
from supervisor.worktrees import Worktrees
from tests.support.repos import Repo, repo


@attrs.frozen
class Bench:
    repo: Repo
    place: Place

    async def made(self) -> Path:
        found = await Workspaces().worktree(self.place)
        assert isinstance(found, Workspace), found
        return found.top

    async def refused(self, code: Code, said: str, place: Place | None = None) -> None:
        before = self.repo.state()
        await self.refuses(code, said, place)
        assert self.repo.state() == before

    async def refuses(self, code: Code, said: str, place: Place | None = None) -> None:
        refusal = await Workspaces().worktree(place or self.place)
        assert isinstance(refusal, Refusal), refusal
        about = self.place.path if code is Code.WORKSPACE_CONFLICT else (place or self.place).root
        assert (refusal.code, refusal.about) == (code, str(about))
        assert said in refusal.lifted_by

    async def not_archived(self, code: Code, said: str) -> None:
        before = self.repo.state()
        refusal = await Worktrees(Workspaces(), self.place.path).archive(self.place)
        assert isinstance(refusal, Refusal), refusal
        assert (refusal.code, refusal.about) == (code, str(self.place.path))
        assert said in refusal.lifted_by
        assert self.repo.state() == before


def _place(root: Path, base: Path, member_id: str = "m1") -> Place:
    return plan(root=root, base=base, project_id="p1", team="crew", member="bob", member_id=member_id)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    made = repo(tmp_path / "project")
    return Bench(made, _place(made.root, tmp_path / "worktrees"))


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("nothing", "it is no folder"),
        ("file", "it is no folder"),
        ("plain", "git init"),
        ("empty", "make the first one"),
        ("bare", "bare repository"),
        ("inside", "in the .git folder"),
        ("new folder", "nothing of this folder"),
    ],
)
async def test_of_what_no_worktree_can_be_made(bench: Bench, tmp_path: Path, kind: str, said: str) -> None:
    root = tmp_path / "other"
    if kind == "file":
        root.write_text("x")
    elif kind in {"plain", "empty"}:
        root.mkdir()
        if kind == "empty":
            repo(root, commits=False)
    elif kind == "bare":
        bench.repo.git("clone", "-q", "--bare", str(bench.repo.root), str(root))
    elif kind == "inside":
        root = bench.repo.root / ".git" / "refs"
    elif kind == "new folder":
        root = bench.repo.root / "new"
        root.mkdir()
    await bench.refused(Code.FILE_UNUSABLE, said, attrs.evolve(bench.place, root=root))
    assert not bench.place.path.exists()


async def test_git_that_cannot_be_run_is_said(bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    refusal = await Workspaces().worktree(bench.place)
    assert isinstance(refusal, Refusal)
    assert (refusal.code, "git cannot be run" in refusal.lifted_by) == (Code.FILE_UNUSABLE, True)


async def test_git_that_does_not_end_is_ended(bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    slow = tmp_path / "bin" / "git"
    slow.parent.mkdir()
    slow.write_text(f"#!/bin/sh\nexec cat '{tmp_path}/never'\n")
    slow.chmod(0o700)
    os.mkfifo(tmp_path / "never")
    monkeypatch.setenv("PATH", f"{slow.parent}{os.pathsep}{os.environ['PATH']}")
    with pytest.raises(GitUnusable, match=r"git status did not end within 0\.2 seconds"):
        await git(bench.repo.root, "status", seconds=0.2)


@pytest.mark.parametrize("kind", ["file", "full", "link", "repository", "above"])
async def test_what_stands_in_the_way_is_left_alone(bench: Bench, tmp_path: Path, kind: str) -> None:
    path = bench.place.path
    path.parent.parent.mkdir(parents=True)
    if kind == "above":
        path.parent.write_text("mine")
    else:
        path.parent.mkdir()
    if kind == "file":
        path.write_text("mine")
    elif kind == "full":
        path.mkdir()
        (path / "mine").write_text("mine")
    elif kind == "link":
        (tmp_path / "target").mkdir()
        path.symlink_to(tmp_path / "target")
    elif kind == "repository":
        repo(path)
    await bench.refused(Code.WORKSPACE_CONFLICT, "move it away")
    assert path.parent.is_file() or path.is_symlink() or path.exists()


async def test_a_worktree_of_another_repository_is_not_adopted(bench: Bench, tmp_path: Path) -> None:
    other = repo(tmp_path / "other")
    other.git("worktree", "add", "-q", "-b", "firm/crew/bob", str(bench.place.path))
    await bench.refused(Code.WORKSPACE_CONFLICT, "move it away")
    assert other.git("symbolic-ref", "--short", "HEAD", at=bench.place.path) == "firm/crew/bob"


async def test_one_that_was_turned_into_another_repository_is_not_adopted(bench: Bench, tmp_path: Path) -> None:
    """Git still lists it as its own; what stands there says otherwise."""
    path = await bench.made()
    other = repo(tmp_path / "other")
    (path / ".git").write_text(f"gitdir: {other.root}/.git\n")
    await bench.refused(Code.WORKSPACE_CONFLICT, "belongs to another repository")


@pytest.mark.parametrize("how", ["branch", "detached"])
async def test_one_on_another_branch_is_not_adopted(bench: Bench, how: str) -> None:
    path = await bench.made()
    bench.repo.git("switch", "-q", *(["-c", "mine"] if how == "branch" else ["--detach"]), at=path)
    said = "on the branch mine" if how == "branch" else "on no branch"
    await bench.refused(Code.WORKSPACE_CONFLICT, said)
    await bench.not_archived(Code.WORKSPACE_CONFLICT, said)
    bench.repo.git("switch", "-q", "firm/crew/bob", at=path)  # as advised
    assert await bench.made() == path


async def test_the_branch_of_another_member_of_that_name_is_not_taken(bench: Bench, tmp_path: Path) -> None:
    """A name is given again once its member has retired, and two teams may have one name: neither shares a branch."""
    path = await bench.made()
    later = _place(bench.repo.root, tmp_path / "worktrees", "m2")
    await bench.refused(Code.WORKSPACE_CONFLICT, "of the member m1", later)
    bench.repo.git("worktree", "remove", str(path))
    await bench.refused(Code.WORKSPACE_CONFLICT, "of the member m1", later)
    bench.repo.git("branch", "-D", "firm/crew/bob")
    assert isinstance(await Workspaces().worktree(later), Workspace)


async def test_a_branch_that_a_person_made_is_not_taken(bench: Bench) -> None:
    bench.repo.git("branch", "firm/crew/bob")
    await bench.refused(Code.WORKSPACE_CONFLICT, "not made for a member")


async def test_a_branch_that_git_cannot_make_leaves_no_trace(bench: Bench) -> None:
    """A branch ``firm`` leaves no room for one below it."""
    bench.repo.git("branch", "firm")
    await bench.refused(Code.WORKSPACE_CONFLICT, "firm/crew/bob")
    assert not bench.place.path.exists()


async def test_a_branch_that_is_checked_out_elsewhere_is_named_with_the_place(bench: Bench, tmp_path: Path) -> None:
    path = await bench.made()
    bench.repo.git("worktree", "move", str(path), str(tmp_path / "elsewhere"))
    await bench.refused(Code.WORKSPACE_CONFLICT, f"checked out at {tmp_path / 'elsewhere'}: free it there")
    shutil.rmtree(tmp_path / "elsewhere")
    await bench.refused(Code.WORKSPACE_CONFLICT, "git worktree prune")


async def test_one_whose_folder_is_gone_is_not_made_again_by_itself(bench: Bench) -> None:
    shutil.rmtree(await bench.made())
    await bench.refused(Code.WORKSPACE_CONFLICT, "git worktree prune")
    await bench.not_archived(Code.WORKSPACE_CONFLICT, "git worktree prune")
    bench.repo.git("worktree", "prune")  # as advised
    await bench.made()


async def test_a_locked_one_is_adopted_while_it_is_there_and_never_removed(bench: Bench) -> None:
    path = await bench.made()
    bench.repo.git("worktree", "lock", "--reason", "on a stick", str(path))
    assert await bench.made() == path
    await bench.not_archived(Code.WORKSPACE_CONFLICT, "locked it (on a stick)")
    shutil.rmtree(path)
    await bench.refused(Code.WORKSPACE_CONFLICT, "locked (on a stick)")


async def test_one_over_which_git_was_ended_is_no_place_to_work_in(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half of its files are not there: whoever commits all that it sees would delete them."""
    monkeypatch.setattr(workspaces, "_FINISHED_WITHIN", 0.5)
    bench.repo.commit(".gitattributes", "*.cut filter=cut\n")
    bench.repo.commit("a.cut", "a\n")
    ends = "read -r _ _ _ above _ < /proc/$PPID/stat; kill -9 $above $PPID"
    bench.repo.git("config", "filter.cut.smudge", ends)
    await bench.refuses(Code.WORKSPACE_CONFLICT, "git ended with status -9")
    bench.repo.git("config", "--unset", "filter.cut.smudge")
    away = f"git worktree remove --force --force {bench.place.path}"
    await bench.refused(Code.WORKSPACE_CONFLICT, away)
    await bench.not_archived(Code.WORKSPACE_CONFLICT, away)
    bench.repo.git(*away.split()[1:])  # as advised
    assert ((await bench.made()) / "a.cut").read_text() == "a\n"


async def test_one_that_git_is_still_making_is_waited_for(bench: Bench) -> None:
    """The daemon that began it was killed; its git goes on."""
    path = await bench.made()
    bench.repo.git("worktree", "lock", "--reason", "initializing", str(path))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(bench.made)
        with trio.move_on_after(0.5):
            await trio.sleep_forever()
        assert nursery.child_tasks
        bench.repo.git("worktree", "unlock", str(path))


async def test_a_dirty_one_is_never_removed(bench: Bench) -> None:
    path = await bench.made()
    for number in range(12):
        (path / f"new {number:02}").write_text("x")
    (path / "file").write_text("changed")
    await bench.not_archived(Code.WORKSPACE_DIRTY, "file, new 00, new 01")
    await bench.not_archived(Code.WORKSPACE_DIRTY, "and 3 more")
    assert (path / "new 11").read_text() == "x"


@pytest.mark.parametrize("revision", ["0" * 40, "HEAD", "--help", ""])
async def test_no_snapshot_of_what_is_no_commit(bench: Bench, tmp_path: Path, revision: str) -> None:
    async with checked_out(bench.repo.root, revision, tmp_path / "scratch") as found:
        assert isinstance(found, Refusal)
        assert found.code is Code.FILE_UNUSABLE
    assert not (tmp_path / "scratch").exists()
