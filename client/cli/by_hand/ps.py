"""``firm ps``: who runs, in which process, and what it does, in every run that goes on."""

from __future__ import annotations

from typing import Any

from client.cli import say
from client.cli.arguments import JSON, Field
from client.cli.crew import GOING_ON, Node, guarded

FIELDS: tuple[Field, ...] = (JSON,)


def run(_: str, given: dict[str, object]) -> int:
    as_json = bool(given.get("_json"))
    return guarded(lambda: _ps(as_json=as_json), as_json=as_json)


def _ps(*, as_json: bool) -> int:
    from client.cli.eyes.board import conversations, ends
    from client.cli.eyes.sheet import NOT_ENFORCED, clean, columns

    node = Node()
    teams = {team["id"]: team["name"] for team in node.every("team.list")}
    runs = [run_ for run_ in node.every("team-run.list") if run_["state"] in GOING_ON]
    boards = [node.ask("team-run.board", team_run_id=run_["id"]) for run_ in runs]
    found = [row for board in boards for row in _rows(node, board, teams)]
    if as_json:
        say.out(say.dumps({"members": found}))
        return 0
    if not found:
        say.out("No run goes on. Start one: firm up FILE")
        return 0
    head = ("TEAM", "MEMBER", "ROLE", "SESSION", "PID", "CEILING", "DOES", "WORK")
    shown = [tuple(clean(row[name.lower()]) for name in head) for row in found]
    said = conversations([{**row, "name": row["member"]} for row in found])
    say.out("\n".join([*columns([head, *shown], len(head) - 1), *said]))
    if any(row["ceiling"] not in {"", "full_access"} for row in found):
        say.out(NOT_ENFORCED)
    for board in boards:
        for line in ends(board):
            say.out(line)
    return 0


def _rows(node: Node, board: Any, teams: dict[str, str]) -> list[dict[str, Any]]:
    run_ = board["run"]
    sessions = {
        session["member_run_id"]: session
        for session in node.every("session.list", team_run_id=run_["id"])
        if session["state"] != "closed"
    }
    rows: list[dict[str, Any]] = []
    for member in board["members"]:
        session = sessions.get(member["member_run_id"])
        live = session is not None and session["process"] == "live"
        rows.append(
            {
                "team": teams.get(run_["team_id"], ""),
                "run": run_["id"],
                "member": member["name"],
                "role": member["role"],
                "session": f"{session['state']}, {session['process']}" if session else "none",
                "session_id": session["id"] if session else None,
                "pid": session["pid"] if session is not None and live else "",
                "ceiling": session["ceiling"] if session else "",
                "ceiling_enforced": False,
                "does": member["doing"],
                "work": member["work_title"],
                "native_session": member["native_session"],
                "resumed": member["resumed"],
            }
        )
    return rows
