"""``firm work graph --dot``: the same graph for Graphviz."""

from __future__ import annotations

from typing import Any

from client.cli.eyes.graph import states
from client.cli.eyes.sheet import clean

_LOOKS = {
    "accepted": 'style=filled, fillcolor="palegreen"',
    "active": 'style=filled, fillcolor="lightblue"',
    "blocked": 'style=filled, fillcolor="lightpink"',
    "cancelled": 'style=dashed, fontcolor="gray40"',
    "failed": 'style=filled, fillcolor="lightpink"',
    "review": 'style=filled, fillcolor="khaki"',
}


def draw(graph: dict[str, Any], encoding: str) -> str:
    """DOT source. What ``encoding`` cannot say stands as a character reference, which Graphviz reads in labels."""
    stands = states(graph["nodes"])
    lines = ["digraph works {", "  rankdir=LR;", "  node [shape=box];"]
    for node in graph["nodes"]:
        label = [clean(node["title"]), stands[node["id"]] + (f", {clean(node['owner'])}" if node["owner"] else "")]
        looks = _LOOKS.get(stands[node["id"]])
        lines.append(f"  {_quoted(node['id'])} [label={_quoted(*label)}{', ' + looks if looks else ''}];")
    known = {node["id"] for node in graph["nodes"]}
    lines += [
        f"  {_quoted(need)} -> {_quoted(node['id'])};"
        for node in graph["nodes"]
        for need in node["needs"]
        if need in known
    ]
    return "\n".join([*lines, "}"]).encode(encoding, "xmlcharrefreplace").decode(encoding)


def _quoted(*lines: str) -> str:
    """A string of DOT. Graphviz reads backslashes and, in labels, character references."""
    escaped = (line.replace("&", "&amp;").replace("\\", "\\\\").replace('"', '\\"') for line in lines)
    return '"' + "\\n".join(escaped) + '"'
