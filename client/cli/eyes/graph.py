"""``firm work graph``: the dependency graph of a run as a tree of lines.

Every Work has one line. It hangs below the prerequisite that lies deepest; the others are named below it. The branch
with most Works goes straight on and only the smaller ones are indented, so that the depth of a drawing of N Works is
log N at most, however long its chains are.
"""

from __future__ import annotations

from typing import Any

from client.cli.eyes import standing
from client.cli.eyes.sheet import GAP, clean, counted, cut, head, mark
from client.cli.render import padded, terminal, width

#: What is counted in the first line, in this order.
_ORDER = ("review", "active", "blocked", "on hold", "ready", "waiting", "stuck", "accepted", "cancelled", "failed")
#: How little of a title is still of use.
_LEAST = 20


def lay(graph: dict[str, Any]) -> str:
    nodes = graph["nodes"]
    if not nodes:
        return "None."
    stands = states(nodes)
    lines = [_summary(list(stands.values()))]
    side = [(id_, standing.marked(stands[id_]), clean(node["owner"])) for id_, node in _by_id(nodes).items()]
    widths = [max(width(row[at]) for row in side) for at in range(3)]
    left = {row[0]: GAP.join(map(padded, row, widths)) + GAP for row in side}
    blank = " " * (sum(widths) + 3 * len(GAP))
    room = max(terminal() - len(blank), _LEAST) if terminal() else 0
    for node, before, below in _drawn(nodes):
        title = before + clean(node["title"])
        lines.append(left[node["id"]] + (cut(title, room) if room else title))
        if len(node["needs"]) > 1:
            needs = f"{below}needs {', '.join(node['needs'])}"
            lines.append(blank + (cut(needs, room) if room else needs))
    return "\n".join(lines)


def states(nodes: list[dict[str, Any]]) -> dict[str, str]:
    """How each Work stands, in a word. Nodes come after what they need."""
    known = _by_id(nodes)
    found: dict[str, str] = {}
    for node in nodes:
        ends = {known[need]["resolution"] for need in node["needs"] if need in known}
        readiness = standing.READY if ends <= {"accepted"} else standing.WAITING
        found[node["id"]] = standing.word(node, standing.STUCK if ends & {"cancelled", "failed"} else readiness)
    return found


def _summary(stands: list[str]) -> str:
    said = [f"{stands.count(word)} {word}" for word in (*_ORDER, "open") if word in stands]
    return head(f"{counted(len(stands), 'Work')}: {', '.join(said)}")


def _by_id(nodes: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {node["id"]: node for node in nodes}


def _drawn(nodes: list[dict[str, Any]]) -> list[tuple[dict[str, Any], str, str]]:
    """Each Work once, with what stands before its title, and before what is said below it."""
    known, below = _by_id(nodes), _below(nodes)
    size = dict.fromkeys(known, 1)
    for node in reversed(nodes):
        size[node["id"]] += sum(size[child] for child in below[node["id"]])
    branch, last, line, straight = mark("├─ "), mark("└─ "), mark("│  "), mark("↓ ")
    lines: list[tuple[dict[str, Any], str, str]] = []
    # A chain can be as long as a run: no recursion. Entries are Work, margin, its own branch, and what goes on below.
    left: list[tuple[str, str, str, str]] = [(root, "", "", "") for root in reversed(below[""])]
    while left:
        id_, margin, own, under = left.pop()
        *small, largest = sorted(below[id_], key=lambda child: size[child]) or [""]
        lines.append((known[id_], margin + own, margin + under + (line if largest else "   ")))
        if not largest:
            continue
        inside = margin + under
        ends = bool(small) and size[largest] == 1
        left.append((largest, inside, last if ends else straight, "   " if ends else ""))
        left += [(child, inside, branch, line) for child in reversed(small)]
    return lines


def _below(nodes: list[dict[str, Any]]) -> dict[str, list[str]]:
    """What hangs below each Work, in the order of the graph; the roots below the empty id."""
    level: dict[str, int] = {}
    below: dict[str, list[str]] = {"": []}
    for node in nodes:
        needs = [need for need in node["needs"] if need in level]
        deepest = max(needs, key=lambda need: level[need], default="")
        level[node["id"]] = level.get(deepest, -1) + 1
        below[node["id"]] = []
        below[deepest].append(node["id"])
    return below
