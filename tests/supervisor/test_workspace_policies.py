"""Where a member works, by its policy and by whether its project is in git."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio

from client.protocol.agent import WorkspacePolicy
from client.protocol.board import Seat
from client.protocol.ids import AgentMemberId, MemberRunId, ProjectId, RunGen
from client.protocol.refusals import Code, Refusal
from daemon.processes import _folder
from supervisor.workspaces import Workspaces
from tests.support.repos import repo


def seat(root: Path, policy: WorkspacePolicy, *, in_git: bool) -> Seat:
    return Seat(
        member_run_id=MemberRunId("place"),
        run_gen=RunGen(1),
        agent_member_id=AgentMemberId("kiwi"),
        agent_name="bob",
        team_name="crew",
        profile="command",
        workspace=policy,
        project_id=ProjectId("project"),
        root=str(root),
        in_git=in_git,
        takes_sessions=True,
        session=None,
        launch=None,
    )


@pytest.mark.parametrize("in_git", [True, False])
async def test_a_staged_workspace_is_refused_and_no_other_is_given_for_it(tmp_path: Path, *, in_git: bool) -> None:
    found = await _folder(Workspaces(), tmp_path / "base", seat(tmp_path, WorkspacePolicy.STAGED, in_git=in_git))
    assert isinstance(found, Refusal)
    assert (found.code, found.about) == (Code.LAUNCH_DENIED, "agent/kiwi")
    assert "not built" in found.lifted_by
    assert not await trio.Path(tmp_path / "base").exists()


async def test_a_worktree_is_the_members_own_and_what_is_shared_is_the_projects(tmp_path: Path) -> None:
    """A project that is in no repository has only its folder."""
    project = repo(tmp_path / "project")
    base = tmp_path / "base"
    own = await _folder(Workspaces(), base, seat(project.root, WorkspacePolicy.WORKTREE, in_git=True))
    assert own == base / "project" / "crew" / "bob"
    shared = await _folder(Workspaces(), base, seat(project.root, WorkspacePolicy.SHARED, in_git=True))
    assert shared == project.root
    plain = tmp_path / "plain"
    plain.mkdir()
    assert await _folder(Workspaces(), base, seat(plain, WorkspacePolicy.WORKTREE, in_git=False)) == plain
