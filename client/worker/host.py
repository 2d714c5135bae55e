"""A managed Host: it judges what members submit, by the results of the named checks and by what the submission says.

It decides nothing of its own Works, and nothing that the results do not decide: that is left for a person, and said.
"""

from __future__ import annotations

from collections.abc import Callable

import attrs
import trio

from client import check_logs
from client.git import one_line
from client.protocol.board import Counts, ShowBoard
from client.protocol.event import WaitForEvent
from client.protocol.operation import R, Request
from client.protocol.refusals import Refusal
from client.protocol.session import ShowSession
from client.protocol.work import Phase, Work
from client.protocol.work_asks import AcceptWork, HoldWork, ListWorks, RequestChanges, ShowWork, WorkShown
from client.worker.evidence import readable
from client.worker.identity import Me
from client.worker.judge import Accept, Judgement, Leave, PutOnHold, SendBack, judge
from client.worker.link import Link, told
from client.worker.news import APART
from client.worker.settings import Settings

#: Seconds before something is looked at again that the daemon could not say.
_AGAIN = 10.0


@attrs.define(eq=False)
class Host:
    """Beside the worker of the same session. ``_said`` is what was said of each Work last."""

    link: Link
    me: Me
    settings: Settings
    say: Callable[[str], None]
    _said: dict[str, str] = attrs.Factory(dict)

    async def serve(self) -> None:
        """Until it is cancelled, or ``Gone`` is raised."""
        self.say("judges, as the Host, what members submit")
        while True:
            looked = trio.current_time()
            _, seq = await self.link.ask_at(ShowSession(session_id=self.me.session_id))
            if not await self._look():
                await trio.sleep(_AGAIN)
                continue
            waited = await self.link.ask(WaitForEvent(predicate=f"team-run:{self.me.run_id}.seq>{seq}", limit=0))
            if isinstance(waited, Refusal):
                self._tell("node", told(waited))
                await trio.sleep(_AGAIN)
            await trio.sleep_until(looked + APART)

    async def _look(self) -> bool:
        """Judge everything in review. Whether all of it could be seen."""
        works = await self._in_review()
        if isinstance(works, Refusal):
            self._tell("node", told(works))
            return False
        for work in works:
            shown = await self.link.ask(ShowWork(work_id=work.id))
            if isinstance(shown, Refusal):
                self._tell(work.id, told(shown))
                continue
            judged = judge(shown, self.me.membership_id, logs=await self._logs(shown))
            if judged is not None:
                await self._do(shown.work, judged)
        board = await self.link.ask(ShowBoard(team_run_id=self.me.run_id))
        if isinstance(board, Refusal):
            self._tell("node", told(board))
            return False
        self._tell("run", _closed(board.counts))
        return True

    async def _in_review(self) -> list[Work] | Refusal:
        found: list[Work] = []
        cursor: str | None = ""
        while cursor is not None:
            asked = ListWorks(team_run_id=self.me.run_id, phase=Phase.REVIEW, limit=500, cursor=cursor)
            page = await self.link.ask(asked)
            if isinstance(page, Refusal):
                return page
            found += page.items
            cursor = page.next
        return found

    async def _logs(self, shown: WorkShown) -> dict[str, str]:
        """The end of the log of each check that failed."""
        folder, found = check_logs.folder(self.settings.environment), dict[str, str]()
        for result in shown.checks:
            if not result.passed:
                end = await trio.to_thread.run_sync(check_logs.end, folder, result.log_digest)
                found |= {result.name: readable(end)} if end is not None else {}
        return found

    async def _do(self, work: Work, judged: Judgement) -> None:
        about = f"{work.id} {one_line(work.title)}"
        match judged:
            case Leave(why):
                self._tell(work.id, f"{about}: {why}")
            case Accept(receipt):
                accept = AcceptWork(work_id=work.id, expected_version=work.version, receipt_id=receipt.id)
                await self._ask(work, "accept", receipt.id, accept, f"{about}: accepted")
            case SendBack(receipt, reason):
                changes = RequestChanges(work_id=work.id, expected_version=work.version, reason=reason)
                said = f"{about}: sent back: {one_line(reason)}"
                await self._ask(work, "request-changes", receipt.id, changes, said)
            case PutOnHold(receipt, reason):
                hold = HoldWork(work_id=work.id, expected_version=work.version, reason=reason)
                await self._ask(work, "hold", receipt.id, hold, f"{about}: {one_line(reason)}")

    async def _ask(self, work: Work, verb: str, receipt: str, request: Request[R], said: str) -> None:
        """A refusal is said; where the world moved since it was looked at, that change brings the next look."""
        outcome = await self.link.ask(request, key=f"host {verb} {work.id} {work.version} {receipt}")
        if isinstance(outcome, Refusal):
            self._tell(work.id, told(outcome))
        else:
            self._said.pop(work.id, None)
            self.say(said)

    def _tell(self, about: str, text: str) -> None:
        """Once: what is looked at again at every change is not told again at every change."""
        if self._said.get(about, "") != text:
            self._said[about] = text
            if text:
                self.say(text)


def _closed(counts: Counts) -> str:
    """What there is to say once every Work of the run is closed; empty while one is not, or there is none."""
    closed = counts.accepted + counts.cancelled + counts.failed
    if not closed or counts.open or counts.active or counts.review:
        return ""
    ends = f"{counts.accepted} accepted, {counts.cancelled} cancelled, {counts.failed} failed"
    return f"every Work of the run is closed: {ends}; waits for the next"
