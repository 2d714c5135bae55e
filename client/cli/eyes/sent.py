"""What became of a message that was sent: who gets it, and the conversation it belongs to."""

from __future__ import annotations

from typing import Any

from client.cli.eyes.sheet import counted


def lay(sent: dict[str, Any]) -> str:
    message, deliveries = sent["message"], sent["deliveries"]
    to = counted(len(deliveries), "recipient")
    about = f", about Work {message['work_id']}" if message["work_id"] else ""
    return f"{message['id']}  sent to {to}, conversation {message['correlation_id']}{about}"
