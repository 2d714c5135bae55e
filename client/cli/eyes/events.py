"""``firm events``: one line each: when, what was changed, how, and by whom."""

from __future__ import annotations

from typing import Any

from client.cli.eyes import names
from client.cli.eyes.sheet import clean, columns, head
from client.cli.render import ago


def lay(page: dict[str, Any]) -> str:
    if not page["items"]:
        return "None."
    known = names.agents() if any(e["actor"].startswith("agent/") for e in page["items"]) else {}
    rows = [("seq", "when", "record", "v", "what", "who")]
    rows += [
        (str(e["seq"]), ago(e["at"]), clean(e["stream"]), str(e["version"]), clean(e["kind"]), _who(e["actor"], known))
        for e in page["items"]
    ]
    first, *rest = columns(rows, 4)
    return "\n".join([head(first), *rest, f"Continue with --cursor {page['cursor']}"])


def _who(actor: str, known: dict[str, dict[str, Any]]) -> str:
    """An agent by its name; a name is only a label, so the id stays beside it."""
    kind, _, agent = actor.partition("/")
    return f"{clean(known[agent]['name'])} ({agent})" if kind == "agent" and agent in known else clean(actor)
