"""What a member is told at its terminal: which Work at which version, which messages, and the commands for each. Pure.

A process that runs gets no new environment, so everything it needs to answer stands in the text.
"""

from __future__ import annotations

from collections.abc import Sequence

from client.protocol.effect import Wake
from client.protocol.message import Intent, Mail, MessageKind
from client.protocol.work import Condition, Phase, Work

#: Characters of one message that are typed; some programs cut what is longer than 50 KiB.
MOST_BODY = 4000

_ABOUT = {
    Wake.CONTINUE: "It was changed since you were told of it last; read it again and go on.",
    Wake.ACCEPTED: "It is blocked, and another Work of yours was accepted since. See whether it can go on now.",
    Wake.PROBATION: "It is yours, and your last turn did nothing about it. Go on, or say what hinders you.",
}


def words(wake: Wake, work: Work | None, mail: Sequence[Mail], claimable: Sequence[Work], *, firm: str) -> str:
    """The whole text of one delivery. ``firm`` is what its reader types for the command."""
    parts = [_work(firm, wake, work)] if work is not None else []
    parts += [_letter(firm, each) for each in mail]
    if wake is Wake.CLAIMABLE:
        parts.append(_claimable(firm, claimable))
    return "\n\n".join(parts)


def _work(firm: str, wake: Wake, work: Work) -> str:
    begin = f"begin it: {firm} work start --work-id {work.id} --expected-version {work.version}"
    go_on = f"then: {firm} work resume --work-id {work.id} --expected-version {work.version} --resolution TEXT"
    end, blocked = f"--work-id {work.id} --expected-version VERSION", work.condition is Condition.BLOCKED
    submit = f"{firm} work submit {end} --result-summary TEXT --candidate-revision COMMIT (or --report-only)"
    lines = [
        f"Work {work.id}, version {work.version}: {work.title}",
        *([_ABOUT[wake]] if wake in _ABOUT else []),
        f"read it: {firm} work show --work-id {work.id}",
        *([begin] if work.phase is Phase.OPEN else []),
        *([go_on] if blocked else []),
        f"when it is done: {submit}",
        *([] if blocked else [f"when you cannot go on: {firm} work block {end} --reason TEXT"]),
    ]
    return "\n".join(lines)


def _letter(firm: str, each: Mail) -> str:
    message, needs = each.message, each.message.intent is Intent.RESPONSE_REQUIRED
    about = f", about Work {message.work_id}" if message.work_id else ""
    body = message.body
    if len(body) > MOST_BODY:
        body = f"{body[:MOST_BODY]}\n[the rest: {firm} message show {message.id}]"
    answer = (
        f"answer it: {firm} message answer {message.id} "
        + ("--option CHOICE" if message.options else "--response-text TEXT")
        if message.kind is MessageKind.INTERACTION_REQUEST
        else f"answer it: {firm} message reply {message.id} --body TEXT"
    )
    lines = [
        f"Message {message.id} from {each.sender}{about}" + (", which needs an answer:" if needs else ":"),
        body,
        *(f"- {option}" for option in message.options),
        *([answer] if needs or message.kind is MessageKind.INTERACTION_REQUEST else []),
        f"when you have seen it: {firm} message ack {each.delivery.id}",
    ]
    return "\n".join(lines)


def _claimable(firm: str, works: Sequence[Work]) -> str:
    lines = [f"- {work.title}: {firm} work claim {work.id} --expected-version {work.version}" for work in works]
    return "\n".join(["You may claim:", *lines])
