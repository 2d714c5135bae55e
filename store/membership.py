"""Memberships and their subscriptions: rows and records."""

from __future__ import annotations

from client.protocol.ids import AgentMemberId, MembershipId, SubscriptionId, TeamId, new_id
from client.protocol.membership import (
    MembershipState,
    MessageSubscription,
    SubscriptionSource,
    SubscriptionState,
    TeamMembership,
)
from store import rows
from store.keeper import Keeper, Page, page
from store.sql import sql
from store.tx import Tx

MEMBERSHIPS = Keeper("membership", "memberships", TeamMembership)

_HOST = MEMBERSHIPS.select("WHERE team_id = :team_id AND role = 'host' AND state = 'active'")


def host(tx: Tx, team_id: TeamId) -> TeamMembership | None:
    """The team's Host. It stays while the team is set aside."""
    return MEMBERSHIPS.one(tx, _HOST, team_id=team_id)


_HOST_AGENT = sql("""
    SELECT a.id, a.profile FROM memberships m JOIN agents a ON a.id = m.agent_member_id
    WHERE m.team_id = :team_id AND m.role = 'host' AND m.state = 'active'
""")


def host_agent(tx: Tx, team_id: TeamId) -> tuple[str, str]:
    """Who hosts a team, as id and profile: what most decisions ask, without two records. Empty where nobody does."""
    return tx.row(_HOST_AGENT, team_id=team_id) or ("", "")


_OPEN = MEMBERSHIPS.select("WHERE team_id = :team_id AND agent_member_id = :agent_id AND state <> 'inactive'")


def open_of(tx: Tx, team_id: TeamId, agent_id: AgentMemberId) -> TeamMembership | None:
    """The membership of that pair that has not ended."""
    return MEMBERSHIPS.one(tx, _OPEN, team_id=team_id, agent_id=agent_id)


_OF_TEAM = MEMBERSHIPS.select("WHERE team_id = :team_id AND state <> 'inactive' ORDER BY role <> 'host', n")


def open_of_team(tx: Tx, team_id: TeamId) -> list[TeamMembership]:
    """Everybody who takes part or is invited, the Host first, for eyes."""
    return MEMBERSHIPS.readable(tx, _OF_TEAM, team_id=team_id)


_ACTIVE = MEMBERSHIPS.select("WHERE team_id = :team_id AND state = 'active' ORDER BY role <> 'host', n")


def active_of_team(tx: Tx, team_id: TeamId) -> list[TeamMembership]:
    """Everybody who takes part, the Host first."""
    return MEMBERSHIPS.many(tx, _ACTIVE, team_id=team_id)


_OF_AGENT = MEMBERSHIPS.select("WHERE agent_member_id = :agent_id AND state <> 'inactive' ORDER BY n")


def open_of_agent(tx: Tx, agent_id: AgentMemberId) -> list[TeamMembership]:
    return MEMBERSHIPS.many(tx, _OF_AGENT, agent_id=agent_id)


_LAST_GEN = sql("""
    SELECT max(coalesce((SELECT max(member_gen) FROM memberships
                         WHERE team_id = :team_id AND agent_member_id = :agent_id), 0),
               (SELECT generation_floor FROM node))
""")


def last_gen(tx: Tx, team_id: TeamId, agent_id: AgentMemberId) -> int:
    """No generation of this pair was ever issued above this."""
    return int(tx.value(_LAST_GEN, team_id=team_id, agent_id=agent_id))


_NAMESAKE = sql("""
    SELECT m.agent_member_id FROM memberships m JOIN agents a ON a.id = m.agent_member_id
    WHERE m.team_id = :team_id AND m.state IN ('active', 'leaving') AND a.name = :name
      AND a.id <> :agent_id LIMIT 1
""")


def namesake(tx: Tx, team_id: TeamId, agent_id: AgentMemberId, name: str) -> AgentMemberId | None:
    """Another active member of the team who has this name."""
    found = tx.row(_NAMESAKE, team_id=team_id, agent_id=agent_id, name=name)
    return AgentMemberId(found[0]) if found else None


_PAGE = sql(f"""
    SELECT n, {MEMBERSHIPS.columns} FROM memberships
    WHERE n > :after AND (:team_id IS NULL OR team_id = :team_id)
      AND (:agent_id IS NULL OR agent_member_id = :agent_id) AND (:state IS NULL OR state = :state)
    ORDER BY n LIMIT :limit
""")  # noqa: S608


def list_page(
    tx: Tx,
    *,
    team_id: TeamId | None,
    agent_id: AgentMemberId | None,
    state: MembershipState | None,
    after: int,
    limit: int,
) -> Page[TeamMembership]:
    def load(a: int, m: int) -> list[tuple[object, ...]]:
        return tx.rows(_PAGE, after=a, limit=m, team_id=team_id, agent_id=agent_id, state=state)

    return page(tx, MEMBERSHIPS, load, after, limit)


_SUBSCRIBE = sql("""
    INSERT INTO subscriptions (id, membership_id, source, source_id, state)
    VALUES (:id, :membership_id, :source, :source_id, :state)
""")


def subscribe(tx: Tx, membership: TeamMembership) -> None:
    """Give a membership that becomes active what it may receive: mail to the member, mail to the team."""
    for source, source_id in (
        (SubscriptionSource.AGENT, membership.agent_member_id),
        (SubscriptionSource.TEAM, membership.team_id),
    ):
        record = MessageSubscription(
            id=SubscriptionId(new_id()),
            membership_id=membership.id,
            source=source,
            source_id=source_id,
            state=SubscriptionState.ACTIVE,
        )
        tx.rows(_SUBSCRIBE, **rows.encode(record))


_REVOKE = sql("UPDATE subscriptions SET state = 'revoked' WHERE membership_id = :membership_id")


def revoke(tx: Tx, membership_id: MembershipId) -> None:
    tx.rows(_REVOKE, membership_id=membership_id)


_SUBSCRIPTIONS = sql("""
    SELECT id, membership_id, source, source_id, state FROM subscriptions
    WHERE membership_id = :membership_id ORDER BY n
""")


def subscriptions(tx: Tx, membership_id: MembershipId) -> list[MessageSubscription]:
    found = tx.rows(_SUBSCRIPTIONS, membership_id=membership_id)
    return rows.decode_all(tx, MessageSubscription, "subscriptions", found)


_PERSONAL = MEMBERSHIPS.select("""
    WHERE role = 'host' AND state = 'active'
      AND agent_member_id IN (SELECT id FROM agents WHERE profile = 'me')
      AND team_id IN (SELECT id FROM teams WHERE state = 'active') ORDER BY n
""")


def personal(tx: Tx) -> list[TeamMembership]:
    """The Host memberships of active teams that are the person at this machine."""
    return MEMBERSHIPS.many(tx, _PERSONAL)


_SUBSCRIPTION = sql("SELECT id, membership_id, source, source_id, state FROM subscriptions WHERE id = :id")


def subscription(tx: Tx, subscription_id: str) -> MessageSubscription | None:
    found = tx.row(_SUBSCRIPTION, id=subscription_id)
    return rows.decode(MessageSubscription, "subscriptions", found) if found else None
