"""Handler for ``work.check``: what a named check said of the submission in review."""

from __future__ import annotations

from client.protocol.attempt import CheckResult, RecordCheck
from client.protocol.checks import named
from client.protocol.refusals import Code, Refusal
from client.protocol.work import Phase, Work
from daemon.call import Call
from daemon.operations.attempt import supervised
from store import attempt as attempts
from store import events
from store.tx import Tx


def check(tx: Tx, call: Call, ask: RecordCheck) -> CheckResult | Refusal:
    found = supervised(tx, call, ask.work_id, ask.sup_gen)
    if isinstance(found, Refusal):
        return found
    work, _ = found
    about = f"work/{work.id}"
    if work.phase is not Phase.REVIEW or work.receipt_id != ask.receipt_id:
        lifted_by = "a check runs on the submission in review; this one is not"
        return Refusal(code=Code.INVALID_STATE_TRANSITION, about=about, lifted_by=lifted_by)
    name = named(ask.line)
    if name not in map(named, work.checks):
        return no_check(work, name)
    if ask.line not in work.checks:
        lifted_by = f"its Host replaced the check {name} while this one ran; the one that the Work names now is due"
        return Refusal(code=Code.INVALID_STATE_TRANSITION, about=about, lifted_by=lifted_by)
    if ask.revision != (submitted := attempts.revision(tx, ask.receipt_id)):
        lifted_by = f"it ran on {ask.revision or 'no commit'}; the submission names {submitted or 'none'}"
        return Refusal(code=Code.INVALID_STATE_TRANSITION, about=about, lifted_by=lifted_by)
    result = CheckResult(
        receipt_id=ask.receipt_id,
        name=name,
        passed=ask.passed,
        snapshot=ask.snapshot,
        log_digest=ask.log_digest,
        at=call.now,
        line=ask.line,
    )
    attempts.record(tx, result)
    # Whoever waits for the run hears of it: the Host, who decides, and the supervisor, for whom it is no longer due.
    stream = f"check/{ask.receipt_id}/{name}"
    said = {
        "passed": ask.passed,
        "snapshot": ask.snapshot,
        "log_digest": ask.log_digest,
        "line": ask.line,
        "work_id": work.id,
    }
    version = events.last_version(tx, stream) + 1
    tx.append(stream, version, "recorded", actor=call.actor, at=call.now, body=said, run=work.team_run_id)
    return result


def no_check(work: Work, name: str) -> Refusal:
    names = ", ".join(map(named, work.checks)) or "none"
    return Refusal(code=Code.NOT_FOUND, about=f"check/{name}", lifted_by=f"the checks of {work.id}: {names}")
