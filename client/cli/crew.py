"""What the commands for whole runs share: questions that raise when they are refused, and runs and members by name."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable
from typing import Any

from client.cli import ask as door
from client.cli import say
from client.cli.arguments import Field, Usage, listing, near
from client.cli.index import DIGEST

#: Seconds in which a daemon that went away is looked for again: it may be starting anew.
_AWAY = 30.0
#: The states of a run that goes on.
GOING_ON = ("planned", "running", "draining")
#: The verb by which a run in this state goes on.
GOES_ON_BY = {"planned": "start", "draining": "resume"}


IN_RUN: Field = (
    "team_run_id",
    "--team-run-id",
    "str",
    False,
    "",
    None,
    False,
    "",
    "the run or its team, where several go on",
)

#: An operation and what it is asked, but for the version.
Asked = tuple[str, dict[str, Any]]


class Refused(Exception):
    """The daemon declined; the command ends with what it said."""

    def __init__(self, refusal: dict[str, Any], welcome: dict[str, object]) -> None:
        super().__init__(refusal["code"])
        self.refusal = refusal
        self.welcome = welcome


class Node:
    """The daemon, asked many things. Of the last answer: what was committed then, and whether it was given before."""

    def __init__(self) -> None:
        self.seq = 0
        self.replayed = False
        self._answered = False

    def ask(self, op: str, key: str = "", **body: Any) -> Any:
        """The answer. A write without a key gets one, so that a lost answer is asked for again. Raises ``Refused``,
        and ``Unavailable`` where no daemon ever answered, or it was away for long.
        """
        key = key or (door.new_key() if _writes(op) else "")
        until = time.monotonic() + _AWAY
        while True:
            try:
                answer, welcome = door.once(DIGEST, op, body, key)
            except door.Unavailable:
                if not self._answered or time.monotonic() > until:
                    raise
                _pause()
                continue
            self._answered = True
            refusal: Any = answer.get("refusal")
            if refusal is None:
                self.seq, self.replayed = int(str(answer["seq"])), bool(answer["replayed"])
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

    def runs(self, wanted: str = "") -> list[Any]:
        """The runs that go on, or those of them that the id or the team's name fits; one at least, or ``Usage``."""
        teams = self._teams()
        runs = [run for run in self.every("team-run.list") if run["state"] in GOING_ON]
        fits = [run for run in runs if wanted in {"", run["id"], run["team_id"], teams.get(run["team_id"])}]
        if not runs:
            raise Usage("no run goes on", "start one: firm up FILE")
        if not fits:
            raise Usage(f"no run that goes on is {wanted!r}", f"say which: {self.named(runs)}")
        return fits

    def named(self, runs: list[Any]) -> str:
        """Runs as one says them: id and team."""
        teams = self._teams()
        return ", ".join(f"{run['id']} of {teams.get(run['team_id'])}" for run in runs)

    def _teams(self) -> dict[str, str]:
        return {team["id"]: team["name"] for team in self.every("team.list")}

    def place(self, name: str, wanted: str = "") -> tuple[Any, Any]:
        """The run that goes on in which a member of that name, or of that id, takes part, and its place there.
        Raises ``Usage``.
        """
        fits: list[tuple[Any, Any]] = []
        known: set[str] = set()
        for run in self.runs(wanted):
            for each in self.ask("team-run.show", team_run_id=run["id"])["members"]:
                if each["member_run"]["coordination"] == "retired":
                    continue
                known.add(each["name"])
                if name in {each["name"], each["member_run"]["agent_member_id"]}:
                    fits.append((run, each))
        if len(fits) == 1:
            return fits[0]
        if fits:
            raise Usage(
                f"{name!r} takes part in several runs", f"--team-run-id: {self.named([run for run, _ in fits])}"
            )
        meant = near(name, sorted(known))
        hint = f"did you mean {meant}? They are" if meant else "say one of them"
        raise Usage(f"nobody called {name!r} takes part in a run that goes on", f"{hint}: {', '.join(sorted(known))}")

    def session(self, name: str) -> Any:
        """The session of the member of that name in a run that goes on. Raises ``Usage``, also where no run does."""
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
        self.runs()
        raise Usage(f"{name!r} has no session that is open", "see who has: firm ps")

    def wait(self, predicate: str, seconds: float) -> bool:
        """Whether it came true in time."""
        return not self.ask("event.wait", predicate=predicate, timeout_ms=int(seconds * 1000))["timed_out"]

    def read_back(self, begun: Any, seconds: float) -> Any:
        """The effect, once it is known what came of it, or that nobody can say; as it is when that takes longer."""
        self.wait(f"effect:{begun['id']}.version>{begun['version']}", seconds)
        return self.ask("effect.show", effect_id=begun["id"])


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


def make(node: Node, op: str, body: dict[str, Any], number: int, now: Callable[[str], Any]) -> Any:
    """What ``op`` makes, once, however many shells ask. What was made so before and has been called otherwise since is
    another; ``now`` reads it by its id.
    """
    name = "title" if "title" in body else "name"
    while True:
        made = node.ask(op, same_key(op, body, number), **body)
        found = now(made["id"]) if node.replayed else made
        if found[name] == made[name]:
            return found
        number += 1


def settle(node: Node, found: Any, step: Callable[[Any], Asked | None], again: Callable[[], Any]) -> Any:
    """The record once ``step`` asks for no change of it any more. Where somebody was faster ``again`` reads it."""
    done: Asked | None = None
    while (asked := step(found)) not in (None, done):
        assert asked is not None
        op, body = asked[0], {**asked[1], "expected_version": found["version"]}
        try:
            found, done = node.ask(op, same_key(op, body, 0), **body), asked
        except Refused as why:
            if why.refusal["code"] != "VERSION_CONFLICT":
                raise
            found, done = again(), None
    return found


def optional(field: Field) -> Field:
    """The same, where what is missing is asked for later."""
    return (*field[:3], False, *field[4:])


def choices(fields: tuple[Field, ...], name: str) -> str:
    """A flag with what can be said with it, as one line says it; nothing of it is assumed."""
    (field,) = (field for field in fields if field[0] == name)
    return f"{field[1]} {listing(field[5]) if field[5] else 'TEXT'}"


def one_of(found: list[Any], named: str, what: str) -> Any:
    """The one that somebody named, by a value of its ``names``. Raises ``Usage`` with those that there are."""
    fits = [each for each in found if named in each["names"]]
    if len(fits) == 1:
        return fits[0]
    shown = "; ".join(f"{each['id']}, {each['says']}" for each in fits or found)
    if fits:
        raise Usage(f"{named!r} names several {what}", f"say which by its id: {shown}")
    raise Usage(f"no {what} is {named!r}", f"there is: {shown}" if shown else "there is none; nothing has to be done")
