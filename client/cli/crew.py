"""What the commands for whole runs share: questions that raise when they are refused, and runs and members by name."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable
from typing import Any

from client import paths
from client.cli import ask as door
from client.cli import say
from client.cli.arguments import Usage
from client.cli.index import DIGEST

#: Seconds in which a daemon that went away is looked for again: it may be starting anew.
_AWAY = 30.0
_GOING_ON = ("planned", "running", "draining")


#: What the file says otherwise, in words, and what makes it so.
Change = tuple[str, Callable[[], object]]


class Refused(Exception):
    """The daemon declined; the command ends with what it said."""

    def __init__(self, refusal: dict[str, Any], welcome: dict[str, object]) -> None:
        super().__init__(refusal["code"])
        self.refusal = refusal
        self.welcome = welcome


class Node:
    """The daemon, asked many things. ``seq`` is what was committed at the last answer."""

    def __init__(self) -> None:
        self.home = paths.home()
        self.seq = 0
        self._answered = False

    def ask(self, op: str, key: str = "", **body: Any) -> Any:
        """The answer. A write without a key gets one, so that a lost answer is asked for again. Raises ``Refused``,
        and ``Unavailable`` where no daemon ever answered, or it was away for long.
        """
        key = key or (door.new_key() if _writes(op) else "")
        until = time.monotonic() + _AWAY
        while True:
            try:
                answer, welcome = door.once(self.home, DIGEST, op, body, key)
            except door.Unavailable:
                if not self._answered or time.monotonic() > until:
                    raise
                _pause()
                continue
            self._answered = True
            refusal: Any = answer.get("refusal")
            if refusal is None:
                self.seq = int(str(answer["seq"]))
                return answer["answer"]
            if refusal["code"] != "NODE_DAEMON_DRAINING" or time.monotonic() > until:
                raise Refused(refusal, welcome)
            _pause()

    def every(self, op: str, **body: Any) -> list[Any]:
        """All items of a list, page after page."""
        found: list[Any] = []
        cursor: str | None = ""
        while cursor is not None:
            page = self.ask(op, limit=500, cursor=cursor, **body)
            found += page["items"]
            cursor = page["next"]
        return found

    def run(self, wanted: str) -> Any:
        """The run that is named by its id or its team's name, or the only one that goes on. Raises ``Usage``."""
        teams = {team["id"]: team["name"] for team in self.every("team.list")}
        runs = [run for run in self.every("team-run.list") if run["state"] in _GOING_ON]
        fits = [run for run in runs if wanted in {"", run["id"], run["team_id"], teams.get(run["team_id"])}]
        if len(fits) == 1:
            return fits[0]
        shown = ", ".join(f"{run['id']} of {teams.get(run['team_id'])}" for run in runs) or "no run goes on"
        what = f"no run that goes on is {wanted!r}" if wanted and not fits else "which run is not clear"
        raise Usage(what if runs else "no run goes on", f"say which: {shown}" if runs else "start one: firm up FILE")

    def session(self, name: str) -> Any:
        """The session of the member of that name in a run that goes on. Raises ``Usage``."""
        agents = {agent["id"] for agent in self.every("agent.list") if name in {agent["name"], agent["id"]}}
        fits = [
            session
            for session in self.every("session.list")
            if session["state"] != "closed" and (session["agent_member_id"] in agents or session["id"] == name)
        ]
        if len(fits) == 1:
            return fits[0]
        if fits:
            raise Usage(f"{name!r} has several sessions", "say which: " + ", ".join(s["id"] for s in fits))
        raise Usage(f"{name!r} has no session that is open", "see who has: firm ps")

    def wait(self, predicate: str, seconds: float) -> bool:
        """Whether it came true in time."""
        return not self.ask("event.wait", predicate=predicate, timeout_ms=int(seconds * 1000))["timed_out"]


def _writes(op: str) -> bool:
    noun, _, verb = op.partition(".")
    from client.cli.main import verbs_of

    return verbs_of(noun)[verb][1] == "write"


def _pause() -> None:
    import select

    select.select([], [], [], 0.2)


def guarded(run: Any, *, as_json: bool) -> int:
    """Run the body of a command; what it is refused becomes its exit status."""
    try:
        return int(run())
    except Refused as why:
        return say.refused(why.refusal, why.welcome, as_json=as_json)
    except door.Unavailable as gone:
        return say.unavailable(gone, as_json=as_json)


def same_key(what: str, body: dict[str, Any], number: int) -> str:
    """The same for whoever saw the same: ``number`` counts what there was before."""
    digest = hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()[:24]
    return f"up {what} {number} {digest}"
