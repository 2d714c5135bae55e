"""Who may be the verifier of a Work, and when verdict and named checks let a submission be accepted."""

from __future__ import annotations

from collections.abc import Mapping

from client.protocol.attempt import CheckResult
from client.protocol.checks import named
from client.protocol.membership import MembershipRole, MembershipState, TeamMembership
from client.protocol.refusals import Code, Refusal
from client.protocol.verdict import Verdict, Verification
from client.protocol.work import Work


def cannot_verify(member: TeamMembership, about: str, *, owns: bool, built: int) -> Refusal | None:
    """Why this member is no verifier of this Work, or None. ``built`` is the fence of its last attempt at it, 0 without
    one; both are asked of the person, under whatever membership.
    """
    if member.role is not MembershipRole.MEMBER or member.state is not MembershipState.ACTIVE:
        said = f"an active member verifies; this one is {member.state.value} as {member.role.value}"
    elif owns:
        said = "it answers for the Work itself; name another member, or give the Work to another first"
    elif built:
        said = f"it made the attempt fence={built} at it; name a member that never made one"
    else:
        return None
    return Refusal(code=Code.NOT_ELIGIBLE, about=about, lifted_by=said)


def verifies(work: Work) -> Refusal:
    """Why its verifier cannot answer for it."""
    command = f"firm work update {work.id} --expected-version {work.version}"
    return Refusal(
        code=Code.NOT_ELIGIBLE,
        about=f"work/{work.id}",
        lifted_by=f"this member is its verifier; its Host names another, or none: {command} --verifier-id MEMBERSHIP, "
        f"or {command} --remove-verifier",
    )


def checks_passed(work: Work, results: Mapping[str, CheckResult]) -> str | Refusal:
    """The snapshot on which every named check passed, empty where none is named; or which of them did not."""
    snapshot = ""
    for check in work.checks:
        name = named(check)
        found = results.get(name)
        found = found if found is not None and found.line == check else None
        snapshot = snapshot or (found.snapshot if found is not None else "")
        if found is None or not found.passed or not found.snapshot or found.snapshot != snapshot:
            said = "has no result yet" if found is None else "failed"
            if found is not None and found.passed:
                said = "passed on another snapshot" if found.snapshot else "passed on no snapshot"
            return _shut(work, f"check {name} {said}", "the check", f"--remove-check {name}")
    return snapshot


def gate(work: Work, results: Mapping[str, CheckResult], verdict: Verdict | None) -> Refusal | None:
    """Why this submission cannot be accepted, or None. ``verdict`` is what its verifier said of it."""
    snapshot = checks_passed(work, results)
    if isinstance(snapshot, Refusal):
        return snapshot
    if work.verifier_id is None:
        return None
    said = f"its verifier {work.verifier_id}"
    if verdict is None:
        said += " has not said yet whether it holds"
    elif verdict.outcome is not Verification.PASSED:
        said += " says that it does not hold"
    elif verdict.snapshot and snapshot and verdict.snapshot != snapshot:
        said += " looked at another snapshot"
    else:
        return None
    return _shut(work, said, "the verifier", "--remove-verifier")


def _shut(work: Work, said: str, what: str, option: str) -> Refusal:
    lifted_by = (
        f"{said}; a new attempt lifts it, or the Host takes {what} away: "
        f"firm work update {work.id} --expected-version {work.version} {option}"
    )
    return Refusal(code=Code.GATE_NOT_PASSED, about=f"work/{work.id}", lifted_by=lifted_by)
