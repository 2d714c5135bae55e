"""``firm down``: end the processes of a run, prove that they ended, and complete the run where every Work is closed.
Worktrees stay: it says where they are.
"""

from __future__ import annotations

from typing import Any

from client.cli import say
from client.cli.arguments import JSON, Field, Usage, listing
from client.cli.crew import IN_RUN, Node, Refused, guarded

FIELDS: tuple[Field, ...] = (IN_RUN, JSON)
#: Seconds in which a member has to be ended and read back.
SECONDS = 75


def run(_: str, given: dict[str, object]) -> int:
    as_json = bool(given.get("_json"))
    return guarded(lambda: _down(str(given.get("team_run_id", "")), as_json=as_json), as_json=as_json)


def _down(wanted: str, *, as_json: bool) -> int:
    node = Node()
    run_, *others = node.runs(wanted)
    if others:
        teams = {team["id"]: team["name"] for team in node.every("team.list")}
        each = tuple(f"firm down {one['id']} ({teams.get(one['team_id'])})" for one in (run_, *others))
        raise Usage("several runs go on", f"say which: {listing(each)}")
    if run_["state"] == "running":
        run_ = node.ask("team-run.drain", team_run_id=run_["id"], expected_version=run_["version"])
    names = {each["id"]: each["name"] for each in node.every("agent.list")}
    sessions = [s for s in node.every("session.list", team_run_id=run_["id"]) if s["state"] != "closed"]
    begun = [_close(node, session, names) for session in sessions if session["driver"] == "host_driven"]
    found = [_settled(node, each) for each in begun]
    below = sweep(node)
    unproven = [each for each in found if not each["ended"]]
    state = run_["state"] if unproven else _complete(node, run_)
    stay = node.ask("workspace.list", team_id=run_["team_id"])["items"]
    whole = {"run": run_["id"], "state": state, "members": found, **below, "worktrees": stay}
    return _say(whole, unproven or any(below.values()), as_json=as_json)


def _close(node: Node, session: Any, names: dict[str, str]) -> dict[str, Any]:
    begun: dict[str, Any] = {
        "name": names[session["agent_member_id"]],
        "session": session["id"],
        "effect": None,
        "why": "",
    }
    try:
        effect = node.ask("session.close", session_id=session["id"], reason="firm down")
    except Refused as why:
        return {**begun, "why": str(why.refusal["lifted_by"])}
    return {**begun, "effect": effect}


def _settled(node: Node, begun: dict[str, Any]) -> dict[str, Any]:
    """With what was read back of its end."""
    if begun["effect"] is None:
        return {**begun, "effect": "", "ended": False}
    effect = node.read_back(begun["effect"], SECONDS)
    why = effect["readback"] if effect["state"] != "prepared" else f"not read back within {SECONDS} s"
    return {**begun, "effect": effect["id"], "ended": effect["certainty"] == "applied", "why": why}


def sweep(node: Node) -> dict[str, Any]:
    """End what holds the terminals where no run needs it any more. Pids that did not end, those that may be of this
    run or of another one that goes on, and why nobody could look.
    """
    try:
        swept = node.ask("session.sweep")
    except Refused as why:
        if why.refusal["code"] != "PROVIDER_UNREACHABLE":
            raise
        return {"left": [], "strays": [], "unread": f"{why.refusal['about']}: {why.refusal['lifted_by']}"}
    return {"left": swept["left"], "strays": swept.get("strays", []), "unread": ""}  # an older daemon names none


def _complete(node: Node, run_: Any) -> str:
    """Where a Work is not closed the run stays as it is, and goes on with the next ``firm up``. One that was told to
    complete may be completed by its supervisor meanwhile.
    """
    while run_["state"] in {"running", "draining"}:
        try:
            run_ = node.ask("team-run.complete", team_run_id=run_["id"], expected_version=run_["version"])
            break
        except Refused as why:
            if why.refusal["code"] == "WORK_NOT_CLOSED":
                break
            if why.refusal["code"] not in {"INVALID_STATE_TRANSITION", "VERSION_CONFLICT"}:
                raise
            run_ = node.ask("team-run.show", team_run_id=run_["id"])["run"]
    return str(run_["state"])


def _stay(worktrees: list[Any]) -> None:
    """Nothing of a member's work goes by itself."""
    from client.cli.eyes.sheet import clean

    for each in worktrees:
        ahead = f", {each['ahead']} ahead" if each["ahead"] else ""
        say.out(f"  stays {clean(each['name'])}'s worktree, {each['state']}{ahead}: {clean(each['path'])}")
    if worktrees:
        say.out("  Take one away, its branch stays: firm workspace archive MEMBER")


def _say(whole: dict[str, Any], wrong: object, *, as_json: bool) -> int:
    if as_json:
        say.out(say.dumps(whole))
        return 1 if wrong else 0
    for each in whole["members"]:
        say.out(f"  {'ended' if each['ended'] else 'NOT PROVEN ENDED':<8} {each['name']}: {each['why']}")
    for pid in whole["left"]:
        say.out(f"  still below our terminals: process {pid}")
    for pid in whole["strays"]:
        said = "lost its parents and its mark: nobody can say of which run it is; it ends with the last one"
        say.out(f"  NOT PROVEN ENDED process {pid} {said}")
    if whole["unread"]:
        say.out(f"  NOT PROVEN ENDED what else is below our terminals: {whole['unread']}")
    _stay(whole["worktrees"])
    goes_on = "" if whole["state"] in {"completed", "cancelled"} else "; firm up goes on with it"
    say.out(f"Run {whole['run']} is {whole['state']}{goes_on}.")
    return 1 if wrong else 0
