"""Workspaces that are made, adopted, and given back: real git, hostile names, somebody's hooks and configuration."""

from __future__ import annotations

import os
import re
from pathlib import Path

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from client.git import Author, commit_all, commit_exists, dirty, head
from client.protocol.refusals import Refusal
from supervisor.snapshots import checked_out, snapshot
from supervisor.workspaces import Place, Workspace, Workspaces, plan, slug
from supervisor.worktrees import Archived, Worktrees
from tests.support.repos import ENVIRONMENT, Repo, repo

HOSTILE = [
    *("", "bob", "Bob", "b b", "b\nb", "-rf", "--", "..", "../..", "a/b", ".lock", "x.lock", "@{1}", "büro", "日本"),
    *(
        "~^:?*[",
        "x" * 200,
        "x" * 199 + "y",
        "\x00",
        "a\x1b[31m",
        " ",
        "refs/heads/main",
        "HEAD",
        "b-b",
        "b_b",
        "\ud800",
    ),
]


@attrs.frozen
class Bench:
    repo: Repo
    base: Path

    def place(self, member: str = "bob", team: str = "crew", member_id: str = "m1") -> Place:
        return plan(root=self.repo.root, base=self.base, project_id="p1", team=team, member=member, member_id=member_id)

    async def made(self, member: str = "bob") -> Workspace:
        found = await Workspaces().worktree(self.place(member))
        assert isinstance(found, Workspace), found
        return found

    async def archived(self) -> Archived | Refusal:
        return await Worktrees(Workspaces(), self.base).archive(self.place())


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(repo(tmp_path / "project"), tmp_path / "data" / "worktrees")


async def test_a_worktree_begins_at_head_on_the_members_own_branch(bench: Bench) -> None:
    made = await bench.made()
    path = bench.base / "p1" / "crew" / "bob"
    first = bench.repo.git("rev-parse", "HEAD")
    assert made == Workspace(cwd=path, top=path, branch="firm/crew/bob", base=first, adopted=False)
    assert bench.repo.git("symbolic-ref", "HEAD", at=path) == "refs/heads/firm/crew/bob"
    assert bench.repo.git("symbolic-ref", "HEAD") == "refs/heads/main"
    assert (path.parent.stat().st_mode & 0o777, (path / "file").read_text()) == (0o700, "text\n")


async def test_it_is_adopted_with_what_was_done_in_it(bench: Bench) -> None:
    made = await bench.made()
    done = bench.repo.commit("more", at=made.top)
    (made.top / "draft").write_text("not yet")
    bench.repo.commit("elsewhere")  # the project went on
    again = await bench.made()
    assert again == attrs.evolve(made, base=done, adopted=True)
    assert (made.top / "draft").read_text() == "not yet"


async def test_a_project_below_the_top_of_its_repository_stays_below(bench: Bench) -> None:
    bench.repo.commit("parts/one/file")
    place = attrs.evolve(bench.place(), root=bench.repo.root / "parts" / "one")
    made = await Workspaces().worktree(place)
    assert isinstance(made, Workspace)
    assert (made.cwd, made.top) == (place.path / "parts" / "one", place.path)
    assert (made.cwd / "file").exists()


async def test_a_base_behind_a_link_is_one_place(bench: Bench, tmp_path: Path) -> None:
    real = tmp_path / "real"
    real.mkdir()
    bench.base.parent.mkdir(parents=True)
    bench.base.symlink_to(real)
    assert not (await bench.made()).adopted
    assert (await bench.made()).adopted


async def test_the_shared_workspace_is_the_project_itself_and_git_is_not_asked(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = tmp_path / "asked"
    git = tmp_path / "git"
    git.write_text(f'#!/bin/sh\necho "$@" >>{asked}\n')
    git.chmod(0o700)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    for folder in (bench.repo.root, tmp_path):
        shared = await Workspaces().shared(folder)
        assert shared == Workspace(cwd=folder, top=folder, branch=None, base=None, adopted=True)
    assert not asked.exists()


async def test_names_of_any_kind_make_workspaces_of_their_own(bench: Bench) -> None:
    names = [name for name in HOSTILE if name not in {"x" * 199 + "y", "\ud800"}]
    made = [await bench.made(name) for name in names]
    assert len({each.branch for each in made}) == len({each.top for each in made}) == len(names)
    for each in made:
        assert each.top.parent == bench.base / "p1" / "crew"
        assert bench.repo.git("symbolic-ref", "--short", "HEAD", at=each.top) == each.branch
    assert all(each.adopted for each in [await bench.made(name) for name in names])


@settings(deadline=None)
@given(st.lists(st.text(max_size=60) | st.sampled_from(HOSTILE), min_size=2, max_size=8, unique=True))
def test_two_names_never_have_one_slug(names: list[str]) -> None:
    slugs = [slug(name) for name in names]
    slugs += [slug(each) for each in slugs if each not in names]  # a slug is a name that somebody may have, too
    assert len(set(slugs)) == len(slugs)
    assert all(re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,39}", each) for each in slugs)


def test_a_plain_name_is_its_own_slug() -> None:
    assert [slug(name) for name in ("bob", "Bob", "a_b-c", "9")] == ["bob", "Bob", "a_b-c", "9"]


@pytest.mark.parametrize("hook", ["post-checkout", "reference-transaction", "pre-commit", "commit-msg", "post-commit"])
async def test_no_hook_of_the_repository_runs(bench: Bench, tmp_path: Path, hook: str) -> None:
    told = tmp_path / "told"
    bench.repo.hook(hook, told)
    made = await bench.made()
    (made.top / "new").write_text("x")
    revision = await commit_all(made.top, "new", Author("bob", "bob@firm.invalid"))
    assert revision is not None
    async with checked_out(bench.repo.root, revision, tmp_path / "scratch") as path:
        assert isinstance(path, Path)
    assert isinstance(await bench.archived(), Archived)
    assert not told.exists()


async def test_configuration_and_environment_of_a_person_change_nothing(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Signing would prompt; hidden untracked files would be lost; ``GIT_DIR`` would name another repository."""
    for name, value in {
        "commit.gpgsign": "true",
        "gpg.program": "false",
        "status.showUntrackedFiles": "no",
        "core.fsmonitor": "false; touch told",
        "commit.template": "/nowhere",
        "user.useConfigOnly": "true",
    }.items():
        bench.repo.git("config", name, value)
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "nowhere"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "index"))
    made = await bench.made()
    (made.top / "new").write_text("x")
    assert await dirty(made.top) == ["new"]
    revision = await commit_all(made.top, "#1 new\nsecond", Author("Bob <x>\n", "m1@firm.invalid"))
    assert await head(made.top) == revision
    shown = bench.repo.git("log", "-1", "--format=%an|%ae|%cn|%s", at=made.top)
    assert shown == "Bob x|m1@firm.invalid|Bob x|#1 new second"
    assert await dirty(made.top) == []


@pytest.mark.parametrize("name", ["", "<>", "...", "\n", "\x1b"])
async def test_a_name_that_git_would_not_take_still_commits(bench: Bench, name: str) -> None:
    made = await bench.made()
    (made.top / "new").write_text("x")
    assert await commit_all(made.top, "new", Author(name, "m1@firm.invalid")) is not None
    assert bench.repo.git("log", "-1", "--format=%an", at=made.top) == "member"


async def test_dirty_names_every_kind_of_change(bench: Bench) -> None:
    bench.repo.commit(".gitignore", "ignored\n")
    bench.repo.commit("gone")
    bench.repo.commit("moved")
    made = await bench.made()
    (made.top / "ignored").write_text("x")
    assert await dirty(made.top) == []
    (made.top / "gone").unlink()
    (made.top / "moved").rename(made.top / "a\nb ü")
    (made.top / "file").write_text("changed")
    (made.top / os.fsdecode(b"\xff")).mkdir()
    (made.top / os.fsdecode(b"\xff") / "x").write_text("x")
    found = await dirty(made.top)
    assert sorted(found) == sorted(["gone", "moved", "a\nb ü", "file", os.fsdecode(b"\xff/")])


async def test_head_and_commits_are_looked_up_and_nothing_else(bench: Bench, tmp_path: Path) -> None:
    first = bench.repo.git("rev-parse", "HEAD")
    tree = bench.repo.git("rev-parse", "HEAD^{tree}")
    assert await head(bench.repo.root) == first
    assert await head(tmp_path) is None
    assert await head(repo(tmp_path / "empty", commits=False).root) is None
    assert await commit_exists(bench.repo.root, first)
    for other in (tree, first[:10], "HEAD", "0" * 40, "--help", first + "\n"):
        assert not await commit_exists(bench.repo.root, other)


async def test_a_snapshot_is_exactly_that_commit_and_leaves_nothing(bench: Bench, tmp_path: Path) -> None:
    """Whatever a check does in it: the project and the member's worktree are as before."""
    first = bench.repo.git("rev-parse", "HEAD")
    bench.repo.commit("file", "later\n")
    before = bench.repo.state()
    under = tmp_path / "scratch"
    async with checked_out(bench.repo.root, first, under) as path:
        assert isinstance(path, Path)
        assert (path / "file").read_text() == "text\n"
        assert bench.repo.git("status", "--porcelain", at=path) == ""
        (path / "built").mkdir()
        (path / "built" / "out").write_text("x")
        (path / "link").symlink_to(bench.repo.root)
        (path / "built").chmod(0o500)
        (path / "file").unlink()
    assert (list(under.iterdir()), bench.repo.state()) == ([], before)
    found = await snapshot(bench.repo.root, first)
    assert not isinstance(found, Refusal)
    assert (found.revision, found.tree) == (first, bench.repo.git("rev-parse", f"{first}^{{tree}}"))


async def test_a_snapshot_goes_although_its_block_fails(bench: Bench, tmp_path: Path) -> None:
    first = bench.repo.git("rev-parse", "HEAD")
    with pytest.raises(ZeroDivisionError):
        async with checked_out(bench.repo.root, first, tmp_path / "scratch"):
            raise ZeroDivisionError
    assert bench.repo.worktrees() == [str(bench.repo.root)]


async def test_an_archived_worktree_is_gone_and_its_branch_stays(bench: Bench) -> None:
    made = await bench.made()
    done = bench.repo.commit("more", at=made.top)
    archived = await bench.archived()
    assert archived == Archived(removed=True, branch="firm/crew/bob", revision=done)
    assert not made.top.exists()
    assert await bench.archived() == attrs.evolve(archived, removed=False)
    again = await bench.made()
    assert (again.adopted, again.base) == (False, done)


def test_the_tests_own_git_has_no_configuration_of_a_repository() -> None:
    assert "GIT_DIR" not in ENVIRONMENT
