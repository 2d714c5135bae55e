"""``firm work graph``: the graph drawn in lines, or with ``--dot`` for Graphviz."""

from __future__ import annotations

import sys
from typing import Any

from client.cli import ask as door
from client.cli import say
from client.cli.arguments import JSON, Field
from client.cli.index import DIGEST
from client.cli.index.work import VERBS

DOT: Field = (
    "_dot",
    "--dot",
    "switch",
    False,
    None,
    None,
    False,
    "",
    "print it for Graphviz: firm work graph --dot | dot -Tsvg",
)
FIELDS: tuple[Field, ...] = (*VERBS["graph"][3], DOT, JSON)


def run(_: str, given: dict[str, object]) -> int:
    as_json, as_dot = bool(given.pop("_json", False)), bool(given.pop("_dot", False))
    op = VERBS["graph"][0]
    try:
        answer, welcome = door.once(DIGEST, op, given, "")
    except door.Unavailable as gone:
        return say.unavailable(gone, as_json=as_json)
    if not as_dot or as_json or "refusal" in answer:
        return say.answered(op, answer, welcome, as_json=as_json)
    from client.cli.eyes.dot import draw

    graph: Any = answer["answer"]
    say.out(draw(graph, sys.stdout.encoding if sys.stdout is not None else "ascii"))
    return 0
