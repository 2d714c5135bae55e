"""Taking up a Work that nobody answers for: one, when there is nothing else to do."""

from __future__ import annotations

from client.protocol.refusals import ROWS, Refusal, Retry
from client.protocol.work import Condition, Phase
from client.protocol.work_asks import ClaimWork, ListWorks
from client.worker.identity import Me
from client.worker.link import Link

#: Works that are tried in one look: others claim them too, and each time that one does, this member looks again.
_MOST = 20


async def claim_one(link: Link, me: Me) -> Refusal | None:
    """Claim the first Work that is for this member, unless it answers for one already; what is not for it is not even
    read. What is answered is a refusal that passes by itself.
    """
    own = ListWorks(
        team_run_id=me.run_id, phase=Phase.OPEN, condition=Condition.NORMAL, owner_id=me.membership_id, limit=1
    )
    answered_for = await link.ask(own)
    if isinstance(answered_for, Refusal):
        return answered_for
    if answered_for.items:
        return None
    found = await link.ask(ListWorks(team_run_id=me.run_id, claimable_by=me.membership_id, limit=_MOST))
    if isinstance(found, Refusal):
        return found
    for work in found.items:
        asked = ClaimWork(work_id=work.id, expected_version=work.version)
        claimed = await link.ask(asked, key=f"worker claim {work.id} {work.version} {me.session_id}")
        if not isinstance(claimed, Refusal):
            return None
        if ROWS[claimed.code].retry is Retry.SAME:
            return claimed
    return None
