"""What is said of each sort of incident that somebody has to look at: what it is, and what lifts it. Data."""

from __future__ import annotations

import attrs

from client.protocol.board import AttentionKind


@attrs.frozen
class Words:
    """What is said of one sort of incident, with the facts of each put in."""

    kind: AttentionKind
    key: str
    about: str
    what: str
    lifted_by: str


SAID = {
    "review": Words(
        AttentionKind.REVIEW,
        "review/{work}/{receipt}{verdict}",
        "work/{work}",
        "{name} submitted {title!r}{verified}",
        "look at it, then accept it or request changes: firm work show --work-id {work}",
    ),
    "verify": Words(
        AttentionKind.VERIFY,
        "verify/{work}/{receipt}",
        "work/{work}",
        "you are to say whether the submission of {title!r} holds: {looked_at}",
        "look at exactly that, then say what you found: firm member work verify {work} --expected-version {version} "
        "--receipt-id {receipt}{revision} --outcome passed --reason TEXT, or --outcome failed",
    ),
    "verifier": Words(
        AttentionKind.VERIFIER,
        "verifier/{work}/{verifier}",
        "work/{work}",
        "{name} cannot say whether a submission of {title!r} holds: {reason}",
        "name another verifier, or none: "
        "firm work update {work} --expected-version {version} --verifier-id MEMBERSHIP, or "
        "firm work update {work} --expected-version {version} --remove-verifier",
    ),
    "blocked": Words(
        AttentionKind.BLOCKED,
        "blocked/{work}/{incident}",
        "work/{work}",
        "{title!r} is blocked: {reason}",
        "answer its owner; the Host resumes it, or cancels it: "
        "firm work resume --work-id {work} --expected-version {version} --resolution TEXT, or "
        "firm work cancel {work} --expected-version {version} --reason TEXT",
    ),
    "orphaned": Words(
        AttentionKind.ORPHANED,
        "orphaned/{work}/{fence}/{incident}",
        "work/{work}",
        "the attempt fence={fence} at {title!r} was lost: {reason}",
        "see what it left behind: firm work show --work-id {work}; then say what you found: firm recover {work}",
    ),
    "stopped": Words(
        AttentionKind.STOPPED,
        "stopped/{session}/{version}",
        "session/{session}",
        "{name} has no process: {reason}",
        "it is tried again a few times; mend what stands in the way, then: firm session close {session}, and "
        "firm reopen {name}{resumes}",
    ),
    "prerequisite": Words(
        AttentionKind.PREREQUISITE,
        "prerequisite/{work}/{last}",
        "work/{work}",
        "{title!r} needs {needs}",
        "give it other prerequisites, or cancel it; to do without: {command}",
    ),
    "proposed": Words(
        AttentionKind.DELEGATION,
        "proposed/{delegation}",
        "delegation/{delegation}",
        "another team asks for {title!r}",
        "accept it in a run of yours, or decline it: "
        "firm delegation accept {delegation} --expected-version {version} --team-run-id {run}, or "
        "firm delegation decline {delegation} --expected-version {version} --reason TEXT",
    ),
    "declined": Words(
        AttentionKind.DELEGATION,
        "declined/{delegation}",
        "work/{work}",
        "{title!r} was declined: {reason}",
        "decide how it goes on without: firm work show --work-id {work}",
    ),
    "delegated": Words(
        AttentionKind.DELEGATION,
        "delegated/{delegation}/{target}",
        "work/{work}",
        "{title!r} was {resolution} there: {said}{evidence}",
        "nothing of yours was accepted by it; decide about your own: firm work show --work-id {work}",
    ),
    "degraded": Words(
        AttentionKind.DEGRADED,
        "degraded/{session}/{since}",
        "session/{session}",
        "{name} was told {streak} times what to do, and did nothing that was seen",
        "it is told nothing more until it does something; look, and help: firm attach {name} --type; or begin it anew: "
        "firm close {name}, and firm reopen {name}",
    ),
    "held": Words(
        AttentionKind.HELD,
        "held/{effect}",
        "session/{session}",
        "nothing can be typed to {name}: {readback}",
        "it is typed when that ends; see it: firm logs {name}, or end it there: firm attach {name} --type",
    ),
    "capacity": Words(
        AttentionKind.CAPACITY,
        "capacity/{session}/{since}",
        "session/{session}",
        "the provider of {name} gives it nothing: {capacity}, by its {source}",
        "it is told and started again {minutes} min after that was read; to try at once: "
        "firm close {name}, and firm reopen {name}",
    ),
    "unsubmitted": Words(
        AttentionKind.UNSUBMITTED,
        "unsubmitted/{effect}",
        "effect/{effect}",
        "whether {name} took what was typed is not known: {readback}",
        "look: firm logs {name}; then say what you found: firm effect resolve {effect} --expected-version {version} "
        "--finding confirm_applied --reason TEXT, or with confirm_not_applied, after which it is typed again",
    ),
    "unended": Words(
        AttentionKind.NOT_ENDED,
        "unended/{effect}",
        "session/{session}",
        "{name} was to end and has not: {readback}{then}",
        "see what is left and end it, then ask for it again: firm session close {session}",
    ),
    "unread": Words(
        AttentionKind.NOT_ENDED,
        "unread/{effect}",
        "effect/{effect}",
        "whether the process of {name} has ended is not known: {readback}{then}",
        "look: firm logs {name}; then say what you found: firm effect resolve {effect} --expected-version {version} "
        "--finding confirm_applied --reason TEXT, or with confirm_not_applied, after which it can be ended again",
    ),
    "uninterrupted": Words(
        AttentionKind.UNINTERRUPTED,
        "uninterrupted/{effect}",
        "effect/{effect}",
        "whether {name} was interrupted is not known: {readback}",
        "look: firm logs {name}; then say what you found: firm effect resolve {effect} --expected-version {version} "
        "--finding confirm_applied --reason TEXT, or with confirm_not_applied; until then it is told nothing",
    ),
    "mail": Words(
        AttentionKind.MAIL,
        "mail/{delivery}",
        "message/{message}",
        "your message will not arrive: {state}, {reason}",
        "send it again if it is still needed, and say that you noticed: firm message ack {delivery}",
    ),
}
