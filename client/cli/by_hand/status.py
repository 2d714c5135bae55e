"""``firm node status``: what is wrong, since when, and what lifts it, before anything else."""

from __future__ import annotations

from typing import Any

from client import paths
from client.cli import ask as door
from client.cli import say
from client.cli.arguments import JSON, Field
from client.cli.index import DIGEST
from client.cli.render import ago, fields, wrapped

FIELDS: tuple[Field, ...] = (JSON,)


def run(_: str, given: dict[str, object]) -> int:
    as_json = bool(given.get("_json"))
    home = "" if paths.told() else paths.home()
    try:
        answer, welcome = door.once(DIGEST, "node.status", {}, "")
    except door.Unavailable as gone:
        if as_json:
            say.out(say.dumps({"live": False, "ready": False, "home": home, "why": str(gone)}))
        return say.unavailable(gone, as_json=as_json)
    refusal = answer.get("refusal")
    if isinstance(refusal, dict):
        return say.refused(refusal, welcome, as_json=as_json)
    status: Any = answer["answer"]
    say.out(say.dumps(status) if as_json else _text(status))
    return 0


def _text(status: dict[str, Any]) -> str:
    ready = "ready" if status["ready"] else "not ready"
    lines = [f"The daemon is {ready}; health {status['health']}."]
    for trouble in status["troubles"]:
        lines.append(f"  {trouble['code']}: {trouble['what']}, since {ago(trouble['since'])}")
        lines.append(f"    To lift it: {trouble['lifted_by']}")
    rest = {name: value for name, value in status.items() if name not in _TOLD}
    lines += ["", fields(rest), "", "Not built yet:"]
    lines += [line for what in status["not_built"] for line in wrapped(what, "  ", "    ")]
    return "\n".join([*lines, "", *wrapped(status["boundary"])])


_TOLD = {"live", "ready", "health", "troubles", "not_built", "boundary"}
