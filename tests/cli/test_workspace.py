"""What a member's workspace says is submitted, asked of real repositories; and ``firm work submit`` around it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import attrs
import pytest

from client.cli import workspace
from tests.cli.shell import Shell

#: When the attempt began, and moments before and after.
SINCE = 1_800_000_000
BEFORE, AFTER = SINCE - 100, SINCE + 100


@attrs.frozen
class Repository:
    folder: Path

    def git(self, *words: str, at: int = AFTER) -> str:
        env = {
            **os.environ,
            "GIT_CONFIG_GLOBAL": "/dev/null",
            "GIT_CONFIG_SYSTEM": "/dev/null",
            "GIT_AUTHOR_DATE": f"{at} +0000",
            "GIT_COMMITTER_DATE": f"{at} +0000",
        }
        who = ("-c", "user.name=kiwi", "-c", "user.email=kiwi@example.org", "-c", "init.defaultBranch=main")
        done = subprocess.run(
            ["git", *who, *words], cwd=self.folder, env=env, check=True, capture_output=True, text=True
        )
        return done.stdout.strip()

    def commit(self, name: str, *, at: int = AFTER) -> str:
        (self.folder / name).write_text(f"{at}\n")
        self.git("add", name)
        self.git("commit", "--quiet", "--message", name, at=at)
        return self.git("rev-parse", "HEAD")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the member stands."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    return tmp_path


@pytest.fixture
def repository(folder: Path) -> Repository:
    """With one commit from before the attempt."""
    made = Repository(folder)
    made.git("init", "--quiet")
    made.commit("old", at=BEFORE)
    return made


def test_where_there_is_no_repository_there_is_only_a_report(folder: Path) -> None:
    (folder / "report.md").write_text("seen")
    assert workspace.candidate(SINCE) == ""


def test_where_there_is_no_git_there_is_only_a_report(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(repository.folder))
    assert workspace.candidate(SINCE) == ""


def test_nothing_new_is_only_a_report(repository: Repository) -> None:
    assert workspace.candidate(SINCE) == ""
    repository.git("checkout", "--quiet", "-b", "branch")
    assert workspace.candidate(SINCE) == ""


def test_a_commit_since_the_attempt_began_is_the_candidate(repository: Repository) -> None:
    repository.commit("new")
    newer = repository.commit("newer")
    assert workspace.candidate(SINCE) == newer


def test_a_commit_of_the_very_second_counts_as_new(repository: Repository) -> None:
    new = repository.commit("new", at=SINCE)
    assert workspace.candidate(SINCE + 0.9) == new


def test_a_folder_below_the_root_sees_the_whole_repository(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    new = repository.commit("new")
    (repository.folder / "below").mkdir()
    monkeypatch.chdir(repository.folder / "below")
    assert workspace.candidate(SINCE) == new
    (repository.folder / "lost").write_text("")
    with pytest.raises(workspace.Dirty, match="lost"):
        workspace.candidate(SINCE)


def test_an_amended_commit_is_new_and_an_older_one_is_not(repository: Repository) -> None:
    oldest = repository.git("rev-parse", "HEAD")
    repository.commit("second", at=BEFORE)
    repository.git("checkout", "--quiet", oldest)
    assert workspace.candidate(SINCE) == ""
    repository.git("checkout", "--quiet", "main")
    repository.git("commit", "--quiet", "--amend", "--message", "better")
    assert workspace.candidate(SINCE) == repository.git("rev-parse", "HEAD")


def test_the_second_attempt_needs_a_commit_of_its_own(repository: Repository) -> None:
    repository.commit("of the first attempt")
    second = AFTER + 1000
    assert workspace.candidate(second) == ""
    new = repository.commit("of the second", at=second + 1)
    assert workspace.candidate(second) == new


def test_in_a_clone_that_is_younger_than_the_attempt_only_its_own_commits_are_new(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository.git("clone", "--quiet", ".", str(repository.folder / "clone"))
    clone = Repository(repository.folder / "clone")
    monkeypatch.chdir(clone.folder)
    assert workspace.candidate(SINCE) == ""
    new = clone.commit("new")
    assert workspace.candidate(SINCE) == new


def test_in_a_worktree_that_is_younger_than_the_attempt_too(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository.git("worktree", "add", "--quiet", "-b", "kiwi", str(repository.folder / "tree"))
    tree = Repository(repository.folder / "tree")
    monkeypatch.chdir(tree.folder)
    assert workspace.candidate(SINCE) == ""
    new = tree.commit("new")
    assert workspace.candidate(SINCE) == new


def test_a_repository_that_was_made_in_the_attempt_is_new_from_its_first_commit(folder: Path) -> None:
    made = Repository(folder)
    made.git("init", "--quiet")
    assert workspace.candidate(SINCE) == ""
    first = made.commit("first")
    assert workspace.candidate(SINCE) == first


def changed(repository: Repository) -> str:
    (repository.folder / "old").write_text("changed")
    return "old"


def staged(repository: Repository) -> str:
    (repository.folder / "staged file").write_text("")
    repository.git("add", "staged file")
    return "staged file"


def untracked(repository: Repository) -> str:
    (repository.folder / "é\nnew").write_text("")
    return "é\nnew"


def removed(repository: Repository) -> str:
    (repository.folder / "old").unlink()
    return "old"


def renamed(repository: Repository) -> str:
    repository.git("mv", "old", "moved")
    return "moved"


@pytest.mark.parametrize("spoil", [changed, staged, untracked, removed, renamed], ids=lambda each: each.__name__)
def test_what_is_in_no_commit_is_named(repository: Repository, spoil: object) -> None:
    assert callable(spoil)
    repository.commit("new")
    name = spoil(repository)
    with pytest.raises(workspace.Dirty) as found:
        workspace.candidate(SINCE)
    assert found.value.files == [name]


def test_what_git_ignores_is_no_change(repository: Repository) -> None:
    (repository.folder / ".git" / "info" / "exclude").write_text("*.log\n")
    (repository.folder / "noise.log").write_text("")
    assert workspace.candidate(SINCE) == ""


def test_many_files_are_counted(repository: Repository) -> None:
    for n in range(13):
        (repository.folder / f"f{n:02}").write_text("")
    with pytest.raises(workspace.Dirty, match=r"f00, .*f09 and 3 more$"):
        workspace.candidate(SINCE)


def test_a_repository_that_git_does_not_read_is_no_report(repository: Repository) -> None:
    (repository.folder / ".git" / "config").write_text("[broken")
    with pytest.raises(workspace.Unclear, match="config"):
        workspace.candidate(SINCE)


# --- the command ------------------------------------------------------------------------------------------------------


def test_the_template_prints_the_five_headings_and_asks_nobody(shell: Shell) -> None:
    for words in (["work", "submit", "--template"], ["member", "work", "submit", "--template", "--work-id", "x"]):
        headings = [line for line in shell.firm(*words).splitlines() if line.startswith("#")]
        assert headings == ["## RESULT", "## SUMMARY", "## COVERAGE", "## WORKTREE", "## ARTIFACTS"]
    assert not shell.home.exists()


def test_without_the_template_what_is_required_is_required(shell: Shell) -> None:
    done = shell.tries("work", "submit", "x")
    assert done.status == 2
    assert "--expected-version" in done.err
    assert "--result-summary" in done.err


def test_a_submission_nobody_can_make_is_refused_by_the_daemon(served: Shell) -> None:
    words = ("work", "submit", "nosuch", "--expected-version", "1", "--result-summary", "-")
    for more in ([], ["--report-only"], ["--candidate-revision", "0" * 40]):
        done = served.tries(*words, *more, "--json", stdin=b"done")
        assert (done.status, done.refusal["code"]) == (1, "NOT_FOUND" if not more else "NOT_AUTHORIZED")


def test_no_daemon_is_said_with_the_key_to_ask_again(shell: Shell) -> None:
    done = shell.tries("work", "submit", "x", "--expected-version", "1", "--result-summary", "r")
    assert done.status == 4
    assert "firm node start" in done.err
