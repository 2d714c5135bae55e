"""What a program left behind, and what is submitted of it: the answers to the criteria are its exit status."""

from __future__ import annotations

from pathlib import Path

import attrs

from client import git
from client.protocol.attempt import Outcome
from client.protocol.work import Work
from client.protocol.work_asks import SubmitWork
from client.worker.program import Ended, Program

#: Branches that belong to members. Nothing is committed on any other: in a shared folder they are a person's.
_OWN = "firm/"
#: Criteria that one submission may answer, and files and characters of output that a summary shows.
_ANSWERS, _FILES, _SHOWN = 128, 10, 2000


@attrs.frozen
class Obstacle:
    """Why a Work cannot go on."""

    why: str


@attrs.frozen(kw_only=True)
class Evidence:
    """What one run of a program shows. ``revision`` is empty where no commit came of it."""

    program: str
    ended: Ended
    revision: str
    worktree: str

    @property
    def met(self) -> bool:
        return self.ended.status == 0

    def request(self, work: Work) -> SubmitWork:
        """The submission of this to that version of the Work."""
        answer = "met" if self.met else "not_met"
        artifacts = [f"{self.ended.log}@sha256:{self.ended.digest}"] if self.ended.whole else []
        return SubmitWork(
            work_id=work.id,
            expected_version=work.version,
            result_summary=self._summary(),
            candidate_revision=self.revision,
            report_only=not self.revision,
            outcome=Outcome.COMPLETED if self.met else Outcome.FAILED,
            criteria=[f"{number}={answer}" for number in range(1, len(work.criteria) + 1)][:_ANSWERS],
            artifact_refs=artifacts,
            check_refs=[f"{git.one_line(self.program)}: {self.ended.how}"],
        )

    def _summary(self) -> str:
        log = f"{self.ended.log}, {self.ended.size} bytes, sha256:{self.ended.digest}"
        if not self.ended.whole:
            log += ", incomplete: the disk was full, or what the program left running kept its output open"
        return "\n".join(
            [
                f"result: {git.one_line(self.program)}: {self.ended.how}",
                f"summary: the end of its output:\n{readable(self.ended.tail)}",
                f"coverage: every criterion is answered by the exit status: {'met' if self.met else 'not met'}",
                f"worktree: {self.worktree}",
                f"artifacts: {log}",
            ]
        )


def readable(data: bytes) -> str:
    """The end of some output as text that does nothing to a terminal."""
    text = data.decode(errors="replace").replace("\r\n", "\n")
    shown = "".join(c if c == "\n" or c.isprintable() else "�" for c in text)
    return shown[-_SHOWN:].strip("\n") or "(none)"


async def base_of(folder: Path) -> str | None:
    """The commit that a Work begins on; None outside of git, or before the first commit."""
    try:
        return await git.head(folder)
    except git.GitUnusable:
        return None


async def left_behind(
    folder: Path, base: str | None, work: Work, fence: int, author: git.Author
) -> tuple[str, str] | Obstacle:
    """The commit that came of a run, empty where none did, and what there is to say about the folder."""
    try:
        if not await git.inside(folder):
            return "", f"{folder} is in no checkout"
        on, changed, committed = await git.branch(folder), await git.dirty(folder), None
        if changed and on is not None and on.startswith(_OWN):
            message = f"{work.title}\n\nFirm-Work: {work.id}\nFirm-Attempt: {fence}\n"
            committed = await git.commit_all(folder, message, author)
            changed = await git.dirty(folder)
        revision = await git.head(folder)
    except git.GitUnusable as why:
        return ("", f"{folder}, looked at without git: {why}") if base is None else Obstacle(_lost(str(why)))
    except git.GitRefused as why:
        return Obstacle(_lost(str(why)))
    said = f"{folder} on {git.one_line(on) if on else 'no branch'}"
    if committed is not None:
        said += f", what was left was committed as {committed}"
    if changed:
        named = ", ".join(git.one_line(name, most=100) for name in changed[:_FILES])
        said += f", in no commit: {named}{' and others' if len(changed) > _FILES else ''}"
    return (revision if revision is not None and revision != base else ""), said


def _lost(why: str) -> str:
    return f"the program ran, and what it left behind cannot be looked at or committed: {git.one_line(why)}"


async def gather(
    folder: Path, base: str | None, work: Work, fence: int, run: tuple[Program, Ended, git.Author]
) -> Evidence | Obstacle:
    program, ended, author = run
    found = await left_behind(folder, base, work, fence, author)
    if isinstance(found, Obstacle):
        return Obstacle(f"{found.why} ({ended.how})")
    return Evidence(program=program.name, ended=ended, revision=found[0], worktree=found[1])
