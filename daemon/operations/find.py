"""References to records: an id, or a name that fits exactly one."""

from __future__ import annotations

from client.protocol.agent import AgentMember
from client.protocol.ids import AgentMemberRef, MembershipId, TeamRef
from client.protocol.membership import TeamMembership
from client.protocol.refusals import Code, Refusal
from client.protocol.team import Team
from store.agent import AGENTS
from store.agent import named as agents_named
from store.membership import MEMBERSHIPS
from store.team import TEAMS
from store.team import named as teams_named
from store.tx import Tx


def agent(tx: Tx, ref: AgentMemberRef) -> AgentMember | Refusal:
    found = AGENTS.load(tx, ref)
    if found is not None:
        return found
    fits = agents_named(tx, ref)
    return fits[0] if len(fits) == 1 else _unclear("agent", ref, [a.id for a in fits])


def team(tx: Tx, ref: TeamRef) -> Team | Refusal:
    found = TEAMS.load(tx, ref)
    if found is not None:
        return found
    fits = teams_named(tx, ref)
    return fits[0] if len(fits) == 1 else _unclear("team", ref, [t.id for t in fits])


def membership(tx: Tx, membership_id: MembershipId) -> TeamMembership | Refusal:
    return MEMBERSHIPS.load(tx, membership_id) or not_found("membership", membership_id)


#: Where one sees what there is of a noun that has no list of its own.
_SHOWN_BY = {"mail": "message inbox", "member-run": "team-run show RUN"}


def not_found(noun: str, ref: str) -> Refusal:
    shown_by = _SHOWN_BY.get(noun, f"{noun} list")
    return Refusal(code=Code.NOT_FOUND, about=f"{noun}/{ref}", lifted_by=f"see what there is: firm {shown_by}")


def _unclear(noun: str, ref: str, fits: list[str]) -> Refusal:
    if not fits:
        return not_found(noun, ref)
    return Refusal(
        code=Code.NAME_AMBIGUOUS, about=f"{noun}/{ref}", lifted_by=f"say which one by id: {' or '.join(fits)}"
    )
