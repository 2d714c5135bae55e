"""What may happen to an attempt: custody, delivery, and what a submission has to bring."""

from __future__ import annotations

import enum
import re
from collections.abc import Mapping

from client.protocol.attempt import Binding, Custody, DeliveryCause, DeliveryState
from client.protocol.checks import named, read
from client.protocol.refusals import Code, Refusal
from client.protocol.work import Work
from daemon.kernel.machine import Lifecycle


class CustodyCause(enum.StrEnum):
    RELEASE = "release"
    COMPLETE = "complete"
    ORPHAN = "orphan"
    TAKE_BACK = "heartbeat of the same session"
    HAND_OVER = "custody review"


_S, _C = Custody, CustodyCause

CUSTODY = Lifecycle(
    "custody of an attempt",
    start=_S.CLAIMED,
    moves={
        _S.CLAIMED: {_C.RELEASE: _S.RELEASED, _C.COMPLETE: _S.COMPLETED, _C.ORPHAN: _S.ORPHANED_UNVERIFIED},
        _S.ORPHANED_UNVERIFIED: {
            _C.TAKE_BACK: _S.CLAIMED,
            _C.HAND_OVER: _S.HANDED_OVER,
            _C.RELEASE: _S.RELEASED,
        },
        _S.RELEASED: {},
        _S.COMPLETED: {},
        _S.HANDED_OVER: {},
    },
)

#: An attempt that is not over: it stands in the way of the next one.
LIVE: frozenset[Custody] = frozenset({Custody.CLAIMED, Custody.ORPHANED_UNVERIFIED})

_D = DeliveryState

DELIVERY = Lifecycle(
    "work delivery",
    start=_D.QUEUED,
    moves={
        _D.QUEUED: {
            DeliveryCause.TAKEN: _D.CLAIMED,
            DeliveryCause.RECEIVED: _D.PROVIDER_RECEIVED,
            DeliveryCause.FAILED: _D.FAILED,
        },
        _D.CLAIMED: {
            DeliveryCause.RECEIVED: _D.PROVIDER_RECEIVED,
            DeliveryCause.HELD: _D.QUEUED,
            DeliveryCause.FAILED: _D.FAILED,
        },
        _D.PROVIDER_RECEIVED: {DeliveryCause.FAILED: _D.FAILED},
        _D.FAILED: {},
    },
)


def stale(binding: Binding, fence: int) -> Refusal | None:
    """Why an attempt of another fence changes nothing, or None."""
    if binding.fence == fence:
        return None
    return Refusal(
        code=Code.FENCE_STALE,
        about=f"work/{binding.work_id}",
        lifted_by=f"the attempt in question is fence={binding.fence}; fence={fence} changes nothing",
    )


_REVISION = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_ANSWER = re.compile(r"([^=]{1,64})=(met|not_met|not_applicable)(?::(.{0,500}))?", re.DOTALL)
_CHECK = re.compile(r"([A-Za-z][A-Za-z0-9._-]{0,63})=(.*\S.*)")
#: ``review:NAME@REVISION``, the whole of a reference.
_REVIEW = re.compile(r"review:[^@]*@(\S*)")
#: Bytes of a receipt's body.
MOST_BODY = 32 * 1024


def evidence_missing(candidate: str, *, report_only: bool) -> Refusal | None:
    """A submission names a commit or says that there is none: exactly one of the two."""
    if bool(candidate) == report_only:
        return _evidence("give --candidate-revision COMMIT, or --report-only where there is no commit; not both")
    if candidate and not _REVISION.fullmatch(candidate):
        return _evidence("give the whole commit: 40 or 64 hex digits, lower case")
    return None


def reviewed_elsewhere(candidate: str, check_refs: list[str]) -> Refusal | None:
    """A review by a helper of the member counts for exactly the commit that it saw, or None where each saw this one."""
    for ref in check_refs:
        seen = _REVIEW.fullmatch(ref.strip())
        if seen is not None and seen[1] != candidate:
            saw = f"{ref.strip()[:200]} is of another commit than the one submitted"
            return _evidence(f"{saw}: have {candidate or 'what is submitted'} reviewed, or leave it out")
    return None


def answers(work: Work, given: list[str]) -> dict[str, list[dict[str, str]]] | Refusal:
    """Each criterion and named check with its answer; what was not answered is said, and refuses nothing."""
    lines = {str(n): line for n, line in enumerate(work.criteria, 1)}
    checks = {name: name for name in map(named, work.checks)}
    found: dict[str, tuple[str, str]] = {}
    for text in given:
        match = _ANSWER.fullmatch(text)
        if match is None or match[1] not in {**lines, **checks}:
            which = " or ".join([f"criteria 1 to {len(lines)}", *([f"checks {', '.join(checks)}"] if checks else [])])
            return _evidence(f"answer {which} as N=met, N=not_met or N=not_applicable[:note]")
        if match[1] in found:
            return _evidence(f"answer {match[1]} once")
        found[match[1]] = (match[2], match[3] or "")

    def answered(what: str, asked: Mapping[str, str]) -> list[dict[str, str]]:
        said = ((text, *found.get(key, ("unanswered", ""))) for key, text in asked.items())
        return [{what: text, "answer": answer, "note": note} for text, answer, note in said]

    return {"checks": answered("check", checks), "criteria": answered("criterion", lines)}


def too_long(body: str) -> Refusal | None:
    """Why this is no body of a receipt, or None."""
    size = len(body.encode())
    if size <= MOST_BODY:
        return None
    lifted_by = f"{size} bytes, and a receipt has at most {MOST_BODY}: keep what is large elsewhere and name its digest"
    return Refusal(code=Code.LIMIT_EXCEEDED, about="submission", lifted_by=lifted_by)


def bad_checks(checks: list[str]) -> Refusal | None:
    """Why these are no named checks, or None."""
    names = [named(check) for check in checks]
    for name, check in zip(names, checks, strict=True):
        if not _CHECK.fullmatch(check) or names.count(name) > 1:
            why = f"{name!r} names two of them" if _CHECK.fullmatch(check) else f"not {check[:80]!r}"
            lifted_by = f"write each as NAME=COMMAND, the name of letters, digits, '.', '_' and '-'; {why}"
            return Refusal(code=Code.MALFORMED, about="checks", lifted_by=lifted_by)
        if isinstance(wrong := read(check), str):
            lifted_by = f"write each as NAME=COMMAND or NAME=limit=SECONDS COMMAND; {name}: {wrong}"
            return Refusal(code=Code.MALFORMED, about="checks", lifted_by=lifted_by)
    return None


def _evidence(lifted_by: str) -> Refusal:
    return Refusal(code=Code.EVIDENCE_REQUIRED, about="submission", lifted_by=lifted_by)
