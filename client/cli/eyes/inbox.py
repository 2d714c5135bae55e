"""``firm inbox``: what was not read first, then the rest; who says what, and what an answer needs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from client.cli.eyes import names
from client.cli.eyes.sheet import block, clean, counted, head, mark, section
from client.cli.render import ago, terminal

#: Lines of a letter on a terminal; a pipe gets all of it.
_LINES = 6
_READ = "acknowledged"


def lay(inbox: dict[str, Any]) -> str:
    items, lost = inbox["items"], inbox["undelivered"]
    if not items and not lost:
        return "None." if names.run_goes_on() else "None. No run goes on; start one: firm up FILE"
    unread = [mail for mail in items if mail["delivery"]["state"] != _READ]
    read = [mail for mail in items if mail["delivery"]["state"] == _READ]
    lines = [f"{counted(len(unread), 'letter')} unread" + (f", {len(read)} read" if read else "")]
    lines += [line for mail in [*unread, *read] for line in ("", *_letter(mail))]
    lines += section("Will not arrive", [line for mail in lost for line in _lost(mail)])
    if inbox["next"]:
        lines += ["", f"Continue with --cursor {inbox['next']}"]
    return "\n".join(lines)


def _letter(mail: dict[str, Any]) -> Iterator[str]:
    message, delivery = mail["message"], mail["delivery"]
    new = delivery["state"] != _READ
    kind = message["kind"].replace("_", " ")
    needs = ", needs an answer" if message["intent"] == "response_required" else ""
    said = "" if delivery["response"] == "none" else f", {delivery['response']}"
    first = f"{clean(mail['sender'])}: {kind}{needs}{said}, {ago(message['created_at'])}"
    yield f"{mark('●') if new else ' '} {head(first) if new else first}"
    work = f", about Work {message['work_id']}" if message["work_id"] else ""
    yield f"    conversation {message['correlation_id']}{work}"
    body = block(message["body"], "    ")
    room = _LINES if terminal() else len(body)
    yield from body[:room]
    if body[room:]:
        yield f"    {counted(len(body) - room, 'more line')}: firm message show {message['id']}"
    if new or needs:
        yield f"    {_next(message, delivery, needed=bool(needs))}"


def _next(message: dict[str, Any], delivery: dict[str, Any], *, needed: bool) -> str:
    """The command that answers it, or says that it was seen."""
    if delivery["recipient_id"] is None:
        return f"To take it: firm message claim {delivery['id']}"
    if message["kind"] == "interaction_request":
        options = ", ".join(map(clean, message["options"]))
        given = f"--option ONE of {options}" if options else "--response-text TEXT"
        return f"To answer it, once: firm message answer {message['id']} {given}"
    if needed or message["kind"] == "request_decision":
        return f"To answer it: firm message reply {message['id']} --body TEXT"
    return f"To say that it was seen: firm message ack {delivery['id']}"


def _lost(mail: dict[str, Any]) -> Iterator[str]:
    delivery = mail["delivery"]
    why = f": {clean(delivery['reason'])}" if delivery["reason"] else ""
    yield f"  {delivery['state']}, {ago(delivery['updated_at'])}{why}"
    yield from block(mail["message"]["body"], "    ")[:_LINES]
    yield f"    To say that it was noticed: firm message ack {delivery['id']}"
