"""``firm logs NAME``: what stands on a member's terminal, or stood there last before its process ended."""

from __future__ import annotations

from typing import Any

from client.cli import say
from client.cli.arguments import JSON, Field, Usage
from client.cli.crew import Node, guarded

LAST: Field = (
    "last",
    "--last",
    "switch",
    False,
    None,
    None,
    False,
    "",
    "the last screen of the process that ended last, also where another one has taken its place",
)
FIELDS: tuple[Field, ...] = (
    ("member", "--member", "str", True, None, None, False, "", "the member, by its name; or a session, by its id"),
    LAST,
    JSON,
)
MORE = """

Once its process has ended, what the terminal showed last is kept for seven
days: at most 50 lines, with the secrets of its environment masked. Where there
is none it says why."""


def run(_: str, given: dict[str, object]) -> int:
    as_json = bool(given.get("_json"))
    name, last = str(given["member"]), bool(given.get("last"))
    return guarded(lambda: _show(Node(), name, last=last, as_json=as_json), as_json=as_json)


def _show(node: Node, name: str, *, last: bool, as_json: bool) -> int:
    from client.cli.eyes.sheet import lines

    found = node.ask("session.terminal", session_id=_whose(node, name, last=last)["id"])
    del found["argv"]
    if as_json:
        say.out(say.dumps(found))
    else:
        say.out("\n".join([*_head(name, found), *lines(found["screen"])]))
    return 0


def _whose(node: Node, name: str, *, last: bool) -> Any:
    """The session that is open, else the last one of that member; with ``last``, the last one whose process ended."""
    agents = {agent["id"] for agent in node.every("agent.list") if name in {agent["name"], agent["id"]}}
    of = [each for each in node.every("session.list") if each["agent_member_id"] in agents or each["id"] == name]
    over = [each for each in of if each["state"] == "closed" or each["process"] == "stopped"]
    if over and (last or all(each["state"] == "closed" for each in of)):
        if len(whose := {each["agent_member_id"] for each in over}) > 1:
            raise Usage(f"several members are called {name!r}", "say which: " + ", ".join(sorted(whose)))
        return over[-1]
    open_ = node.session(name)
    if last:
        raise Usage(f"no process of {name!r} has ended", f"see what its terminal shows: firm logs {name}")
    return open_


def _head(name: str, found: Any) -> list[str]:
    """What is said of a process that has ended, before what is kept of it."""
    from client.cli.eyes.sheet import clean
    from client.cli.render import moment

    if found["live"]:
        return []
    how = f"The process of {name} is over: {clean(found['ended'])} ({moment(found['ended_at'])})."
    if found["no_screen"]:
        return [how, f"There is no last screen: {clean(found['no_screen'])}."]
    return [how, "Its last screen, at its end:", ""]
