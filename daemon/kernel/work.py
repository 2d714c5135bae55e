"""What may happen to a Work: three axes, one frozen standing, one set of legal combinations.

``next_standing`` answers every (standing, cause): the standing that follows, or the refusal. Who may ask is decided
before it (``GUARDS`` in ``daemon/handlers.py``), and versions are compared before it.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping

import attrs

from client.protocol.refusals import Code, Refusal
from client.protocol.work import Condition, Phase, Resolution, Work


@attrs.frozen
class Standing:
    """Where a Work is. ``held`` is the condition a hold will give back."""

    phase: Phase
    condition: Condition
    resolution: Resolution | None = None
    held: Condition | None = None


_P, _K, _R = Phase, Condition, Resolution

LEGAL: frozenset[Standing] = frozenset(
    {
        Standing(_P.OPEN, _K.NORMAL),
        Standing(_P.ACTIVE, _K.NORMAL),
        Standing(_P.ACTIVE, _K.BLOCKED),
        Standing(_P.REVIEW, _K.NORMAL),
        Standing(_P.OPEN, _K.ON_HOLD, held=_K.NORMAL),
        Standing(_P.ACTIVE, _K.ON_HOLD, held=_K.NORMAL),
        Standing(_P.ACTIVE, _K.ON_HOLD, held=_K.BLOCKED),
        Standing(_P.REVIEW, _K.ON_HOLD, held=_K.NORMAL),
        *(Standing(_P.CLOSED, _K.NORMAL, resolution) for resolution in Resolution),
    }
)


class WorkCause(enum.StrEnum):
    ASSIGN = "assigned"
    CLAIM = "claimed"
    RELEASE = "released"
    START = "started"
    BLOCK = "blocked"
    RESUME = "resumed"
    HOLD = "held"
    UNHOLD = "unheld"
    SUBMIT = "submitted"
    REQUEST_CHANGES = "changes requested"
    ACCEPT = "accepted"
    CANCEL = "cancelled"
    FAIL = "failed"
    NEEDS = "dependencies replaced"
    UPDATE = "updated"
    RECOVER = "recovered"
    REDELIVER = "redelivered"
    RETARGET = "retargeted"
    VERIFY = "verified"


_C = WorkCause
_OPEN = frozenset({_P.OPEN})
_UNCLOSED = frozenset({_P.OPEN, _P.ACTIVE, _P.REVIEW})
_ANY = frozenset(_K)
_NORMAL = frozenset({_K.NORMAL})

#: From which phases and conditions each cause is legal.
FROM: Mapping[WorkCause, tuple[frozenset[Phase], frozenset[Condition]]] = {
    _C.ASSIGN: (_OPEN, _ANY),
    _C.CLAIM: (_OPEN, _NORMAL),
    _C.RELEASE: (_OPEN, _ANY),
    _C.START: (_OPEN, _NORMAL),
    _C.BLOCK: (frozenset({_P.ACTIVE}), _NORMAL),
    _C.RESUME: (frozenset({_P.ACTIVE}), frozenset({_K.BLOCKED})),
    _C.HOLD: (_UNCLOSED, frozenset({_K.NORMAL, _K.BLOCKED})),
    _C.UNHOLD: (_UNCLOSED, frozenset({_K.ON_HOLD})),
    _C.SUBMIT: (frozenset({_P.ACTIVE}), _NORMAL),
    _C.REQUEST_CHANGES: (frozenset({_P.REVIEW}), _NORMAL),
    _C.ACCEPT: (frozenset({_P.REVIEW}), _NORMAL),
    _C.CANCEL: (_UNCLOSED, _ANY),
    _C.FAIL: (_UNCLOSED, _ANY),
    _C.NEEDS: (_UNCLOSED, _ANY),
    _C.UPDATE: (_UNCLOSED, _ANY),
    _C.RECOVER: (frozenset({_P.OPEN, _P.ACTIVE}), frozenset({_K.NORMAL, _K.BLOCKED})),
    _C.REDELIVER: (_OPEN, _NORMAL),
    _C.RETARGET: (_UNCLOSED, _ANY),
    _C.VERIFY: (frozenset({_P.REVIEW}), _NORMAL),
}


def moved_by(work: Work, cause: WorkCause) -> Standing | Refusal:
    """The standing of a Work after ``cause``, or why it has none."""
    return next_standing(standing_of(work), cause, work.id, str(work.version))


def next_standing(
    now: Standing, cause: WorkCause, work_id: str = "WORK", version: str = "VERSION"
) -> Standing | Refusal:
    """The standing after ``cause``, or why it has none."""
    about = f"work/{work_id}"
    phases, conditions = FROM[cause]
    if now.phase in phases and now.condition is _K.ON_HOLD and _K.ON_HOLD not in conditions and cause is not _C.HOLD:
        lifted_by = f"its Host takes it off hold: firm work unhold {work_id} --expected-version {version}"
        return Refusal(code=Code.WORK_ON_HOLD, about=about, lifted_by=lifted_by)
    if now.phase not in phases or now.condition not in conditions:
        wanted = " or ".join(p.value for p in Phase if p in phases)
        also = "" if conditions == _ANY else " and " + " or ".join(k.value for k in Condition if k in conditions)
        lifted_by = f"it is {now.phase.value} and {now.condition.value}; this is possible while it is {wanted}{also}"
        return Refusal(code=Code.INVALID_STATE_TRANSITION, about=about, lifted_by=lifted_by)
    return _after(now, cause)


#: Where a cause leads; a cause that is not here moves no axis.
_TO: Mapping[WorkCause, Standing] = {
    _C.START: Standing(_P.ACTIVE, _K.NORMAL),
    _C.BLOCK: Standing(_P.ACTIVE, _K.BLOCKED),
    _C.RESUME: Standing(_P.ACTIVE, _K.NORMAL),
    _C.SUBMIT: Standing(_P.REVIEW, _K.NORMAL),
    _C.REQUEST_CHANGES: Standing(_P.OPEN, _K.NORMAL),
    _C.RECOVER: Standing(_P.OPEN, _K.NORMAL),
    _C.ACCEPT: Standing(_P.CLOSED, _K.NORMAL, _R.ACCEPTED),
    _C.CANCEL: Standing(_P.CLOSED, _K.NORMAL, _R.CANCELLED),
    _C.FAIL: Standing(_P.CLOSED, _K.NORMAL, _R.FAILED),
}


def _after(now: Standing, cause: WorkCause) -> Standing:
    if cause is _C.HOLD:
        return attrs.evolve(now, condition=_K.ON_HOLD, held=now.condition)
    if cause is _C.UNHOLD:
        return attrs.evolve(now, condition=now.held or _K.NORMAL, held=None)
    return _TO.get(cause, now)


def standing_of(work: Work) -> Standing:
    return Standing(work.phase, work.condition, work.resolution, work.held)


@attrs.frozen
class _Drawing:
    """The standings for the documentation, computed from the same rule that decides."""

    name: str

    def mermaid(self) -> str:
        lines = ["stateDiagram-v2", "    [*] --> open"]
        seen: set[str] = set()
        for now in sorted(LEGAL, key=repr):
            for cause in WorkCause:
                after = next_standing(now, cause)
                if isinstance(after, Standing) and (after.phase, after.condition) != (now.phase, now.condition):
                    seen.add(f"    {_label(now)} --> {_label(after)}: {cause.value}")
        lines += sorted(seen)
        return "\n".join([*lines, *(f"    closed_{r.value} --> [*]" for r in Resolution)])


WORK = _Drawing("work")


def _label(standing: Standing) -> str:
    if standing.resolution is not None:
        return f"closed_{standing.resolution.value}"
    over = "" if standing.condition is _K.NORMAL else f"_{standing.condition.value}"
    return f"{standing.phase.value}{over}"
