"""``project.*``, one test an outcome that the table declares."""

from __future__ import annotations

import subprocess
from pathlib import Path

import attrs

from client.protocol.ids import Folder, ProjectId
from client.protocol.project import AddProject, ListProjects, Project, ShowProject
from client.protocol.refusals import Code, Refusal
from tests.support import refusals
from tests.support.node import InProcessNode
from tests.support.refusals import refused_while_spoilt


def add(root: Path) -> AddProject:
    return AddProject(root=Folder(str(root)))


def git(folder: Path, *words: str) -> None:
    subprocess.run(["git", "-C", str(folder), *words], check=True, capture_output=True)


async def test_project_add_ok(node: InProcessNode, tmp_path: Path) -> None:
    made = await node.ok(add(tmp_path))
    assert made == Project(
        id=made.id,
        version=1,
        root=str(tmp_path),
        git_dir="",
        created_at=made.created_at,
        updated_at=made.created_at,
    )


async def test_a_folder_is_one_project_however_it_is_named(node: InProcessNode, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (tmp_path / "link").symlink_to(folder)
    made = await node.ok(add(folder))
    before = node.rows()
    for name in (folder, tmp_path / "link", folder / ".." / "folder"):
        assert await node.ok(add(name)) == made
    assert node.rows() == before


async def test_a_repository_that_appears_later_is_seen(node: InProcessNode, tmp_path: Path) -> None:
    made = await node.ok(add(tmp_path))
    git(tmp_path, "init", "--quiet")
    seen = await node.ok(add(tmp_path))
    assert seen == attrs.evolve(made, version=2, git_dir=str(tmp_path / ".git"), updated_at=seen.updated_at)


async def test_worktrees_of_one_repository_share_its_identity(node: InProcessNode, tmp_path: Path) -> None:
    main = tmp_path / "main"
    main.mkdir()
    git(main, "init", "--quiet")
    git(main, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "--quiet", "--allow-empty", "-m", "first")
    git(main, "worktree", "add", "--quiet", str(tmp_path / "other"))
    one, other = await node.ok(add(main)), await node.ok(add(tmp_path / "other"))
    assert one.id != other.id
    assert one.git_dir == other.git_dir == str(main / ".git")


async def test_project_add_file_unusable(node: InProcessNode, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    said = {
        "relative": "give an absolute path",
        str(tmp_path / "missing"): "give a folder that exists (No such file or directory)",
        str(tmp_path / "file"): "give a folder, not a file",
    }
    for path, lifted_by in said.items():
        refusal = await node.refused(add(Path(path)))
        assert refusal == Refusal(code=Code.FILE_UNUSABLE, about=path, lifted_by=lifted_by)


async def test_project_add_row_quarantined(node: InProcessNode, tmp_path: Path) -> None:
    made = await node.ok(add(tmp_path))
    await refused_while_spoilt(node, add(tmp_path), "projects", made.id)


async def test_project_list_ok(node: InProcessNode, tmp_path: Path) -> None:
    folders = [tmp_path / name for name in ("one", "two", "three")]
    for folder in folders:
        folder.mkdir()
    one, two, three = [await node.ok(add(folder)) for folder in folders]
    first = await node.ok(ListProjects(limit=2))
    assert first.items == [one, two]
    assert first.next is not None
    rest = await node.ok(ListProjects(limit=2, cursor=first.next))
    assert (rest.items, rest.next) == ([three], None)


async def test_project_list_cursor_invalid(node: InProcessNode) -> None:
    assert await node.refused(ListProjects(cursor="nonsense")) == refusals.stale_cursor()


async def test_project_show_ok(node: InProcessNode, tmp_path: Path) -> None:
    made = await node.ok(add(tmp_path))
    assert await node.ok(ShowProject(project_id=made.id)) == made


async def test_project_show_not_found(node: InProcessNode) -> None:
    refusal = await node.refused(ShowProject(project_id=ProjectId("nothing")))
    assert refusal == refusals.not_found("project", "nothing")
    assert not isinstance(await node.follow(refusal), Refusal)


async def test_project_show_row_quarantined(node: InProcessNode, tmp_path: Path) -> None:
    made = await node.ok(add(tmp_path))
    await refused_while_spoilt(node, ShowProject(project_id=made.id), "projects", made.id)
