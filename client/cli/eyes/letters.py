"""``firm message list``: a conversation as one reads it."""

from __future__ import annotations

from typing import Any

from client.cli.eyes import names
from client.cli.eyes.sheet import block, clean, head
from client.cli.render import ago


def lay(page: dict[str, Any]) -> str:
    if not page["items"]:
        return "None."
    known, lines, conversation = names.agents(), list[str](), ""
    for message in page["items"]:
        if message["correlation_id"] != conversation:
            conversation = message["correlation_id"]
            work = f", about Work {message['work_id']}" if message["work_id"] else ""
            lines += ["", head(f"Conversation {conversation}{work}")]
        agent = message["sender_agent_id"]
        who = clean(known[agent]["name"]) if agent in known else agent
        kind = message["kind"].replace("_", " ")
        needs = ", needs an answer" if message["intent"] == "response_required" else ""
        lines.append(f"  {message['id']}  {who}: {kind}{needs}, {ago(message['created_at'])}")
        lines += block(message["body"], "    ")
    onward = ["", f"Continue with --cursor {page['next']}"] if page["next"] else []
    return "\n".join([*lines[1:], *onward])
