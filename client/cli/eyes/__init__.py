"""Answers that are read most, laid out for eyes: one function an operation. All others are drawn by ``render``.

A layout takes the answer and gives lines. It lives by what ``sheet`` gives it, which lets no control character through.
"""

from __future__ import annotations

from typing import Any

from client.cli import render

#: Verbs of a Work that answer it as it is now.
_CHANGES = (
    "accept",
    "assign",
    "block",
    "cancel",
    "claim",
    "create",
    "fail",
    "hold",
    "recover",
    "redeliver",
    "release",
    "replace-dependencies",
    "request-changes",
    "resume",
    "retarget",
    "start",
    "submit",
    "unhold",
    "update",
)
#: operation: module under client.cli.eyes. Each has ``lay(answer) -> str``.
LAYOUTS = {
    **dict.fromkeys((f"work.{verb}" for verb in _CHANGES), "changed"),
    **dict.fromkeys(("message.answer", "message.ask", "message.reply", "message.send"), "sent"),
    **dict.fromkeys(("message.ack", "message.claim", "message.respond"), "delivery"),
    "event.list": "events",
    "message.inbox": "inbox",
    "message.list": "letters",
    "team.hand-over": "team",
    "team.show": "team",
    "team-run.board": "board",
    "team-run.board-summary": "summary",
    "work.graph": "graph",
    "work.list": "works",
    "work.show": "work",
    "workspace.list": "workspaces",
}


def text(op: str, answer: Any) -> str:
    """One answer as text, by the layout of its operation or, where it has none, by the renderer of all."""
    name = LAYOUTS.get(op)
    if name is None:
        return render.text(op.partition(".")[0], answer)
    module = __import__(f"client.cli.eyes.{name}", fromlist=["lay"])
    try:
        return str(module.lay(answer))
    except KeyError:  # the daemon is of another build, and its answer has other fields
        return render.text(op.partition(".")[0], answer)
