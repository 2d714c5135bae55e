"""``firm node status``: what is wrong, since when, and what lifts it, before anything else."""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

from client import paths
from client.cli import ask as door
from client.cli.index import DIGEST
from client.cli.main import refused
from client.cli.render import ago, fields


def run(_: str, arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(
        "firm node status", description="Say what is wrong with the daemon, and what lifts it."
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args(arguments)
    home = paths.home()
    try:
        answer, welcome = door.once(home, DIGEST, "node.status", {}, "")
    except door.Unavailable as gone:
        if options.json:
            print(json.dumps({"live": False, "home": home, "why": str(gone)}))
        else:
            print(f"firm: No daemon answers: {gone}. [NODE_DAEMON_UNAVAILABLE]", file=sys.stderr)
            print("  To lift it: firm node start", file=sys.stderr)
        return 4
    refusal = answer.get("refusal")
    if isinstance(refusal, dict):
        return refused(refusal, welcome, as_json=options.json)
    status: Any = answer["answer"]
    print(json.dumps(status) if options.json else _text(status))
    return 0


def _text(status: dict[str, Any]) -> str:
    ready = "ready" if status["ready"] else "not ready"
    lines = [f"The daemon is {ready}; health {status['health']}."]
    for trouble in status["troubles"]:
        lines.append(f"  {trouble['code']}: {trouble['what']}, since {ago(trouble['since'])}")
        lines.append(f"    To lift it: {trouble['lifted_by']}")
    rest = {name: value for name, value in status.items() if name not in _TOLD}
    lines += ["", fields(rest), "", "Not built yet:"]
    lines += [f"  {what}" for what in status["not_built"]]
    return "\n".join([*lines, "", status["boundary"]])


_TOLD = {"live", "ready", "health", "troubles", "not_built", "boundary"}
