"""Nothing that a member can ask says who asks: another identity than its own cannot even be expressed."""

from __future__ import annotations

import re
import typing

import attrs

from client.protocol.operation import MEMBERS, Effect, Plane
from client.protocol.table import OPERATIONS
from daemon.operations import cycle

#: Ids that an actor, a run, a session or an attempt could be picked by; and generations, which say "I am this one".
IDENTITIES = {
    "AgentMemberId",
    "AgentMemberRef",
    "BindingId",
    "CapabilityId",
    "MemberRunId",
    "MembershipId",
    "SessionId",
    "SubscriptionId",
    "TeamId",
    "TeamRef",
    "TeamRunId",
}
NAMES = re.compile(
    r"actor|agent|author|binding|caller|capability|(^|_)gen$|key|member|owner|pid|plane|queue|run|sender|session|token"
)

LOOKS = "looks at something of the caller's own team, and changes nothing"
OWN_WHEN_EMPTY = "a run of the caller's own team; who does it there is still the caller, by its session"
#: Fields that name somebody, and why that is not who asks.
EXCEPTIONS: dict[tuple[str, str], str] = {
    ("attention.ack", "key"): "which item was seen; the caller sees its own items only",
    ("attention.ack", "team_run_id"): OWN_WHEN_EMPTY,
    ("membership.join", "membership_id"): "the invitation; taken by that very member only",
    ("membership.leave", "membership_id"): "what is left; by that very member or its Host only",
    ("message.send", "team_run_id"): OWN_WHEN_EMPTY,
    ("work.create", "eligible_member_ids"): "who may claim it later; a member names itself or nobody",
    ("work.create", "verifier_id"): "only a Host names who is to verify; a member is refused",
    ("work.create", "team_run_id"): OWN_WHEN_EMPTY,
}


def named() -> dict[tuple[str, str], Effect]:
    """Fields of the operations of a member that name somebody, with what the operation does."""
    found: dict[tuple[str, str], Effect] = {}
    for op in OPERATIONS:
        if Plane.MEMBER not in op.planes:
            continue
        hints = typing.get_type_hints(op.request)
        for field in attrs.fields(op.request):  # type: ignore[arg-type]
            kinds = {getattr(kind, "__name__", "") for kind in (hints[field.name], *typing.get_args(hints[field.name]))}
            if kinds & IDENTITIES or NAMES.search(field.name):
                found[op.name, field.name] = op.effect
    return found


def test_no_field_of_a_member_says_who_asks() -> None:
    writes = {each for each, effect in named().items() if effect is Effect.WRITE}
    assert writes == set(EXCEPTIONS), "a new one needs a reason"


def test_what_only_looks_is_no_way_to_be_somebody() -> None:
    """A read or a wait may name whom it looks at; there are no other effects on this plane."""
    effects = {effect for each, effect in named().items() if each not in EXCEPTIONS}
    assert effects <= {Effect.READ, Effect.SCAN, Effect.LIVE}


def test_what_a_supervisor_or_the_operator_writes_no_member_does() -> None:
    """Catalogues with nothing in common that writes: a member's tools, a supervisor's, and the controls. What a
    member's program says by itself is of the caller's own session, and controls nothing.
    """
    controls = {"agent", "member-run", "node", "project", "session", "team", "team-run"}
    for op in OPERATIONS:
        if op.effect is Effect.WRITE and Plane.SUPERVISOR in op.planes:
            assert not op.planes & MEMBERS, op.name
        if op.effect is Effect.WRITE and op.noun in controls and op.name not in cycle.REFLEXES:
            assert Plane.MEMBER not in op.planes, op.name
