"""A run, followed by a person: its board drawn anew with each change, or a line for each where there is no terminal."""

from __future__ import annotations

import shutil
import sys
from typing import Any

from client.cli import say
from client.cli.crew import Node

#: Milliseconds of one wait; nothing depends on it.
_WAIT_MS = 60_000
_OVER = {"completed", "cancelled"}


def follow(node: Node, run_id: str, *, quiet: bool) -> bool:
    """Until every Work of the run is closed, or the run is over, or was taken down: then nobody does anything in it
    before it goes on. Whether it was.
    """
    drawn, last = 0, ""
    while True:
        board = node.ask("team-run.board", team_run_id=run_id)
        seq = node.seq
        if not quiet and sys.stdout.isatty():
            drawn = _draw(board, drawn)
        elif not quiet and (line := _line(board)) != last:
            last = line
            say.out(line)
        left = sum(board["counts"][name] for name in ("open", "active", "review"))
        if not left or board["run"]["state"] in _OVER:
            return False
        if _taken_down(node, board["run"]):
            return True
        node.ask("event.wait", predicate=f"team-run:{run_id}.seq>{seq}", timeout_ms=_WAIT_MS)


def _taken_down(node: Node, run: Any) -> bool:
    """Whether ``firm down`` has ended its members before its last Work was closed."""
    if run["state"] != "draining":
        return False
    open_ = [each for each in node.every("session.list", team_run_id=run["id"]) if each["state"] != "closed"]
    return all(each["driver"] != "host_driven" for each in open_)


def _draw(board: Any, drawn: int) -> int:
    """Over what was drawn before; how many lines it is now."""
    from client.cli.eyes import text

    lines = text("team-run.board", board).splitlines()[: max(shutil.get_terminal_size().lines - 2, 4)]
    back = f"\x1b[{drawn}F\x1b[J" if drawn else ""
    sys.stdout.write(back)
    say.out("\n".join(lines))
    return len(lines)


def _line(board: Any) -> str:
    counts = board["counts"]
    said = [f"{counts[name]} {name.replace('_', ' ')}" for name in ("open", "active", "blocked", "review", "accepted")]
    alarm = f"; {len(board['attention'])} to look at" if board["attention"] else ""
    return ", ".join(said) + alarm


class End:
    """How a run ended that was told to: its state, and what is, or may be, still there below our terminals."""

    def __init__(self, state: str, below: dict[str, Any]) -> None:
        self.state = state
        self.left: list[int] = [*below["left"], *below["strays"]]
        self.unread = str(below["unread"])

    @classmethod
    def of(cls, node: Node, run_id: str) -> End:
        """Once its supervisor has proven its members ended, or could not in time."""
        from client.cli.by_hand.down import SECONDS, sweep

        def state() -> str:
            return str(node.ask("team-run.show", team_run_id=run_id)["run"]["state"])

        if state() not in _OVER:
            node.wait(f"team-run:{run_id}.state=completed", SECONDS)
        below = sweep(node)
        return cls(state(), below)

    @property
    def proven(self) -> bool:
        return self.state in _OVER and not self.left and not self.unread

    def said(self, run_id: str) -> str:
        if self.proven:
            return f"Run {run_id} is {self.state}, and its members have ended."
        below = f"; still below our terminals: {', '.join(map(str, self.left))}" if self.left else ""
        below += f"; {self.unread}" if self.unread else ""
        return f"Run {run_id} is {self.state}, not every member is proven ended{below}; end them: firm down {run_id}"


def outcome(node: Node, run_id: str, end: End | None, *, down: bool = False, as_json: bool) -> int:
    """What became of every Work; 0 when all were accepted, and the members are proven ended where they had to. ``down``
    is whether the run was taken down.
    """
    works = node.every("work.list", team_run_id=run_id)
    good = all(work["resolution"] == "accepted" for work in works)
    status = 0 if good and (end is None or end.proven) else 1
    if as_json:
        found = [{"id": w["id"], "title": w["title"], "resolution": w["resolution"]} for w in works]
        whole = {"run": run_id, "accepted": good, "works": found}
        say.out(say.dumps(whole if end is None else {**whole, "state": end.state, "left": end.left}))
        return status
    say.out("")
    for work in works:
        say.out(f"  {work['resolution'] or work['phase']:<10} {work['title']}")
    members = end.said(run_id) if end else f"The members still run; end them: firm down {run_id}"
    if down:
        members = f"Run {run_id} was taken down, and its members have ended; firm up goes on with it."
    say.out(f"{'Every Work was accepted.' if good else 'Not every Work was accepted.'} {members}")
    return status
