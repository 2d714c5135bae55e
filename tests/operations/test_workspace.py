"""``workspace.list`` and ``workspace.archive``, one test an outcome of the table. What comes of an archive is in
``tests/e2e/test_workspaces.py``.
"""

from __future__ import annotations

from pathlib import Path
from typing import cast

import attrs

from client.protocol.effect import Certainty, EffectKind, EffectState
from client.protocol.ids import Folder, TeamRef
from client.protocol.operation import Plane
from client.protocol.refusals import Code
from client.protocol.session import OpenSession, SessionCause
from client.protocol.team_run import ListTeamRuns, ShowTeamRun
from client.protocol.workspace import ArchiveWorkspace, ListWorkspaces, WorkspaceList, WorkspaceState
from daemon.archives import Archives
from supervisor.workspaces import Workspace, Workspaces
from supervisor.worktrees import Worktrees
from tests.support import effects, refusals, scene
from tests.support.node import InProcessNode
from tests.support.refusals import refused_while_spoilt
from tests.support.repos import Repo, repo
from tests.support.run import Stage, stage
from tests.support.supervised import report, supervised

PATH = "/worktrees/p/crew/bob"


async def worked(node: InProcessNode, path: str = PATH) -> Stage:
    """Bob has worked in a folder below that path, and his session is closed."""
    s = await effects.cold(node)
    launch = await supervised(s, effects.prepare(s, cwd=f"{path}/project"))
    await supervised(s, effects.settle(s, launch, Certainty.NOT_APPLIED, "it ended"))
    await report(s, s.bob.session, SessionCause.CLOSED)
    return s


def archive(path: str = PATH) -> ArchiveWorkspace:
    return ArchiveWorkspace(path=Folder(path), reason="done")


async def test_workspace_archive_ok(node: InProcessNode) -> None:
    """It is recorded before anything is done; the effect belongs to the last session that was there."""
    s = await worked(node)
    made = await node.ok(archive())
    assert (made.kind, made.state, made.certainty) == (EffectKind.ARCHIVE, EffectState.PREPARED, Certainty.UNKNOWN)
    assert (made.cwd, made.session_id, made.created_by) == (PATH, s.bob.session.id, "operator")


async def test_workspace_archive_effect_unsettled(node: InProcessNode) -> None:
    await worked(node)
    made = await node.ok(archive())
    refusal = await node.refused(archive())
    assert (refusal.code, refusal.about) == (Code.EFFECT_UNSETTLED, f"effect/{made.id}")


async def test_workspace_archive_not_found(node: InProcessNode) -> None:
    """Nobody has ever worked there: neither beside it, nor in a folder whose name begins so."""
    await worked(node)
    for path in (PATH[:-1], PATH + "b", "/worktrees/p/crew/cid"):
        assert await node.refused(archive(path)) == refusals.not_found("workspace", path)


async def test_workspace_archive_row_quarantined(node: InProcessNode) -> None:
    s = await worked(node)
    await refused_while_spoilt(node, archive(), "sessions", s.bob.session.id)


async def test_workspace_archive_session_live(node: InProcessNode) -> None:
    """Of its member in that team, whether it has a process or not. One that has closed stands in nobody's way."""
    s = await effects.again(await worked(node))
    refusal = await node.refused(archive())
    assert (refusal.code, refusal.about) == (Code.SESSION_LIVE, f"session/{s.bob.session.id}")
    assert refusal.lifted_by == f"end it first: firm session close {s.bob.session.id}"
    await report(s, s.bob.session, SessionCause.CLOSED)
    await node.ok(archive())


async def test_workspace_list_ok(node: InProcessNode, tmp_path: Path) -> None:
    """With what git says of it now, for as long as there is anything; of one team, or of all."""
    made, path = await bench(node, tmp_path)
    (found,) = (await node.ok(ListWorkspaces())).items
    assert (found.name, found.team, found.root, found.path) == ("bob", "crew", str(made.root), str(path))
    assert (found.branch, found.state, found.ahead, found.why) == ("firm/crew/bob", WorkspaceState.CLEAN, 0, "")
    done = made.commit("more", at=path)
    (path / "new").write_text("x")
    (found,) = (await node.ok(ListWorkspaces(team_id=TeamRef("crew")))).items
    assert (found.state, found.changes, found.changed) == (WorkspaceState.DIRTY, 1, ["new"])
    assert (found.ahead, found.revision, found.why) == (1, done, "commit or remove what is in no commit: new")
    (path / "new").unlink()
    made.git("worktree", "remove", str(path))
    assert await node.ok(ListWorkspaces()) == WorkspaceList(items=[])


async def test_a_worktree_in_use_says_by_whom(node: InProcessNode, tmp_path: Path) -> None:
    await bench(node, tmp_path)
    (found,) = (await node.ok(ListWorkspaces())).items
    assert found.session_id is None
    (run,) = (await node.ok(ListTeamRuns())).items
    place = (await node.ok(ShowTeamRun(team_run_id=run.id))).members[1].member_run
    ask = OpenSession(member_run_id=place.id, sup_gen=run.sup_gen)
    opened = await node.ok(ask, plane=Plane.SUPERVISOR, actor=run.id)
    (found,) = (await node.ok(ListWorkspaces())).items
    assert found.session_id == opened.id


async def test_workspace_list_name_ambiguous(node: InProcessNode) -> None:
    s = await stage(node)
    other = await scene.team(node, s.ann.agent)
    refusal = await node.refused(ListWorkspaces(team_id=TeamRef("crew")))
    assert refusal == refusals.ambiguous("team", "crew", s.team.id, other.id)


async def test_workspace_list_not_found(node: InProcessNode) -> None:
    assert await node.refused(ListWorkspaces(team_id=TeamRef("no"))) == refusals.not_found("team", "no")


async def test_workspace_list_row_quarantined(node: InProcessNode) -> None:
    s = await stage(node)
    await refused_while_spoilt(node, ListWorkspaces(team_id=TeamRef(s.team.id)), "teams", s.team.id)


async def bench(node: InProcessNode, base: Path) -> tuple[Repo, Path]:
    """A project that is a repository, and the worktree in which Bob has worked."""
    made, folder = repo(base / "project"), base / "worktrees"
    s = await worked(node, str(folder / "p" / "crew" / "bob"))
    node.execute("UPDATE projects SET root = ?", str(made.root))
    archives = cast("Archives", node.dispatcher.live["workspace.list"].__self__)  # type: ignore[attr-defined]
    worktrees = Worktrees(Workspaces(), folder)
    assert archives.means is not None
    means = attrs.evolve(archives.means, worktrees=worktrees)
    node.dispatcher.live = {**node.dispatcher.live, "workspace.list": Archives(node.store, means).list}
    place = await worktrees.place(root=made.root, cwd=folder / "p" / "crew" / "bob", member_id=s.bob.agent.id)
    assert place is not None
    found = await worktrees.workspaces.worktree(place)
    assert isinstance(found, Workspace), found
    return made, place.path
