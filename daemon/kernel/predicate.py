"""What ``event.wait`` waits for: ``seq>N``, ``team-run:ID.seq>N``, ``inbox``, ``NOUN:ID.FIELD=VALUE`` or
``NOUN:ID.version>N``.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Mapping

import attrs

from client.protocol.agent import AgentStatus
from client.protocol.effect import Certainty, EffectState
from client.protocol.membership import MembershipRole, MembershipState
from client.protocol.message import MailState, Response
from client.protocol.refusals import Code, Refusal
from client.protocol.session import SessionState
from client.protocol.team import TeamState
from client.protocol.team_run import TeamRunState
from client.protocol.work import Condition, Phase, Resolution

#: The fields one can wait on, with the values they can take.
FIELDS: Mapping[str, Mapping[str, type[enum.StrEnum]]] = {
    "agent": {"status": AgentStatus},
    "effect": {"certainty": Certainty, "state": EffectState},
    "mail": {"response": Response, "state": MailState},
    "membership": {"role": MembershipRole, "state": MembershipState},
    "session": {"state": SessionState},
    "team": {"state": TeamState},
    "team-run": {"state": TeamRunState},
    "work": {"condition": Condition, "phase": Phase, "resolution": Resolution},
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


@attrs.frozen
class RunSeqAbove:
    """True once something of that run was committed behind ``seq``."""

    run: str
    seq: int


@attrs.frozen
class InboxHasMail:
    """True while mail waits for the caller."""


Predicate = SeqAbove | RunSeqAbove | InboxHasMail | FieldIs | VersionAbove

_SEQ = re.compile(r"seq>(\d{1,18})")
_RUN_SEQ = re.compile(r"team-run:([^\s.=>]+)\.seq>(\d{1,18})")
_FIELD = re.compile(r"([\w-]+):([^\s.=>]+)\.(\w+)=(\w+)")
_VERSION = re.compile(r"([\w-]+):([^\s.=>]+)\.version>(\d{1,18})")


def parse(text: str) -> Predicate | Refusal:
    if match := _SEQ.fullmatch(text):
        return SeqAbove(int(match[1]))
    if match := _RUN_SEQ.fullmatch(text):
        return RunSeqAbove(match[1], int(match[2]))
    if text == "inbox":
        return InboxHasMail()
    match = _VERSION.fullmatch(text) or _FIELD.fullmatch(text)
    if not match:
        return _refuse("write seq>N, team-run:ID.seq>N, inbox, NOUN:ID.FIELD=VALUE or NOUN:ID.version>N")
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
