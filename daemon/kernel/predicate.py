"""What ``event.wait`` waits for: ``seq>N``, ``NOUN:ID.FIELD=VALUE``, ``NOUN:ID.version>N``."""

from __future__ import annotations

import enum
import re
from collections.abc import Mapping

import attrs

from client.protocol.agent import AgentStatus
from client.protocol.membership import MembershipRole, MembershipState
from client.protocol.refusals import Code, Refusal
from client.protocol.team import TeamState

#: The fields one can wait on, with the values they can take.
FIELDS: Mapping[str, Mapping[str, type[enum.StrEnum]]] = {
    "agent": {"status": AgentStatus},
    "membership": {"role": MembershipRole, "state": MembershipState},
    "team": {"state": TeamState},
}


@attrs.frozen
class SeqAbove:
    """True once something was committed behind ``seq``."""

    seq: int


@attrs.frozen
class FieldIs:
    """True while ``field`` of that record has ``value``."""

    noun: str
    id: str
    field: str
    value: str


@attrs.frozen
class VersionAbove:
    """True once that record changed after ``version``."""

    noun: str
    id: str
    version: int


Predicate = SeqAbove | FieldIs | VersionAbove

_SEQ = re.compile(r"seq>(\d{1,18})")
_FIELD = re.compile(r"(\w+):([^\s.=>]+)\.(\w+)=(\w+)")
_VERSION = re.compile(r"(\w+):([^\s.=>]+)\.version>(\d{1,18})")


def parse(text: str) -> Predicate | Refusal:
    if match := _SEQ.fullmatch(text):
        return SeqAbove(int(match[1]))
    match = _VERSION.fullmatch(text) or _FIELD.fullmatch(text)
    if not match:
        return _refuse("write seq>N, NOUN:ID.FIELD=VALUE or NOUN:ID.version>N")
    noun, record_id = match[1], match[2]
    if noun not in FIELDS:
        return _refuse(f"wait on one of {', '.join(FIELDS)}")
    if match.re is _VERSION:
        return VersionAbove(noun, record_id, int(match[3]))
    field, value = match[3], match[4]
    if field not in FIELDS[noun]:
        return _refuse(f"of {noun} one can wait on {', '.join(FIELDS[noun])} or version")
    values = [m.value for m in FIELDS[noun][field]]
    if value not in values:
        return _refuse(f"{noun} {field} is one of {', '.join(values)}")
    return FieldIs(noun, record_id, field, value)


def _refuse(lifted_by: str) -> Refusal:
    return Refusal(code=Code.MALFORMED, about="predicate", lifted_by=lifted_by)
