"""``firm watch``: events as they are committed, one line each, until interrupted."""

from __future__ import annotations

import argparse
import json
from typing import Any

from client import paths
from client.cli import ask as door
from client.cli.index import DIGEST
from client.cli.main import refused, unavailable
from client.cli.render import cell


def run(_: str, arguments: list[str]) -> int:
    parser = argparse.ArgumentParser("firm watch", description="Follow events as they are committed.")
    parser.add_argument("--stream", default="", metavar="NOUN/ID", help="only of this record")
    parser.add_argument("--cursor", default="", help="begin after this point; without one, with the next event")
    parser.add_argument("--json", action="store_true", help="print one JSON object a line")
    options = parser.parse_args(arguments)
    body: dict[str, object] = {"stream": options.stream, "cursor": options.cursor}
    try:
        conversation = door.Conversation(paths.home(), DIGEST)
        conversation.begin("event.watch", body)
        while True:
            answer = conversation.next()
            refusal = answer.get("refusal")
            if isinstance(refusal, dict):
                return refused(refusal, conversation.welcome, as_json=options.json)
            page: Any = answer["answer"]
            for event in page["items"]:
                print(json.dumps(event, ensure_ascii=False) if options.json else _line(event), flush=True)
    except door.Unavailable as gone:
        return unavailable(gone, "")


def _line(event: dict[str, Any]) -> str:
    shown = [cell(name, event[name]) for name in ("seq", "stream", "version", "kind", "actor")]
    return "{:>8}  {:<24}  v{:<4} {:<16} {}".format(*shown)
