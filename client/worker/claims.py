"""Taking up a Work that nobody answers for: one, when there is nothing else to do."""

from __future__ import annotations

from client.protocol.refusals import ROWS, Refusal, Retry
from client.protocol.work import ClaimMode, Condition, Phase, Work
from client.protocol.work_asks import ClaimWork, ListWorks
from client.worker.identity import Me
from client.worker.link import Link


async def claim_one(link: Link, me: Me) -> Refusal | None:
    """Claim the first Work that is for this member, unless it answers for one already. One that is not ready is asked
    for again when the run changes; what is answered is a refusal that passes by itself.
    """
    works = await _open(link, me)
    if isinstance(works, Refusal):
        return works
    if any(work.owner_id == me.membership_id and work.condition is Condition.NORMAL for work in works):
        return None
    for work in works:
        if not _is_for(me, work):
            continue
        asked = ClaimWork(work_id=work.id, expected_version=work.version)
        claimed = await link.ask(asked, key=f"worker claim {work.id} {work.version} {me.session_id}")
        if not isinstance(claimed, Refusal):
            return None
        if ROWS[claimed.code].retry is Retry.SAME:
            return claimed
    return None


def _is_for(me: Me, work: Work) -> bool:
    """Whether asking makes sense. Role, readiness and everything else is the daemon's to judge."""
    free = work.owner_id is None and work.condition is Condition.NORMAL and work.claim_mode is ClaimMode.TEAM_CLAIM
    return free and work.verifier_id != me.membership_id and (not work.eligible or me.agent_id in work.eligible)


async def _open(link: Link, me: Me) -> list[Work] | Refusal:
    found: list[Work] = []
    cursor: str | None = ""
    while cursor is not None:
        asked = ListWorks(team_run_id=me.run_id, phase=Phase.OPEN, limit=500, cursor=cursor)
        page = await link.ask(asked)
        if isinstance(page, Refusal):
            return page
        found += page.items
        cursor = page.next
    return found
