"""A run, followed by a person: its board drawn anew with each change, or a line for each where there is no terminal."""

from __future__ import annotations

import shutil
import sys
from typing import Any

from client.cli import say
from client.cli.crew import Node

#: Milliseconds of one wait; nothing depends on it.
_WAIT_MS = 60_000


def follow(node: Node, run_id: str, *, quiet: bool) -> None:
    """Until every Work of the run is closed, or the run is over."""
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
        if not left or board["run"]["state"] in {"completed", "cancelled"}:
            return
        node.ask("event.wait", predicate=f"team-run:{run_id}.seq>{seq}", timeout_ms=_WAIT_MS)


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


def outcome(node: Node, run_id: str, *, as_json: bool) -> int:
    """What became of every Work; 0 when all were accepted."""
    works = node.every("work.list", team_run_id=run_id)
    good = all(work["resolution"] == "accepted" for work in works)
    if as_json:
        found = [{"id": w["id"], "title": w["title"], "resolution": w["resolution"]} for w in works]
        say.out(say.dumps({"run": run_id, "accepted": good, "works": found}))
        return 0 if good else 1
    say.out("")
    for work in works:
        say.out(f"  {work['resolution'] or work['phase']:<10} {work['title']}")
    end = "Every Work was accepted." if good else "Not every Work was accepted."
    say.out(f"{end} The members still run; end them: firm down {run_id}")
    return 0 if good else 1
