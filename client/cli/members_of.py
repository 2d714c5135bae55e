"""The members of a team file: found by their names, compared, made, and given their places in a run."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from typing import Any

from client.cli import differing
from client.cli.arguments import Usage
from client.cli.crew import Asked, Node, make, same_key, settle
from client.team_file import ME, Member, TeamFile

_AGENT = ("profile", "role", "description", "model", "workspace", "ceiling")
#: What a session has from its member when it is opened, and keeps.
_OF_SESSION = {"profile", "model", "workspace", "ceiling"}
_ME = Member(name=ME, profile="me")


class Members:
    """``agents`` and ``memberships`` by name, as far as they are there; ``host`` is the name of the team's Host."""

    def __init__(self, node: Node, file: TeamFile, tell: Callable[[str], None]) -> None:
        self._node = node
        self._tell = tell
        self.wanted = [*([_ME] if file.host == ME else []), *file.members]
        self.host = ""
        self.agents: dict[str, Any] = {}
        self.memberships: dict[str, str] = {}
        self._names: dict[str, str] = {}
        self._places: dict[str, Any] = {}
        self._sessions: dict[str, Any] = {}

    def look(self) -> None:
        known = self._node.every("agent.list")
        self._names = {each["id"]: each["name"] for each in known}
        for member in self.wanted:
            fits = [each for each in known if each["name"] == member.name and each["status"] != "retired"]
            if len(fits) > 1:
                ids = " or ".join(each["id"] for each in fits)
                raise Usage(f"several agent members are called {member.name!r}", f"retire all but one: {ids}")
            if fits:
                self.agents[member.name] = fits[0]

    def look_at_team(self, team_id: str) -> None:
        shown = self._node.ask("team.show", team_id=team_id)["members"]
        self.memberships |= {each["name"]: each["membership"]["id"] for each in shown}
        self.host = next((each["name"] for each in shown if each["membership"]["role"] == "host"), "")

    def look_at_run(self, run_id: str) -> None:
        shown = self._node.ask("team-run.show", team_run_id=run_id)["members"]
        self._places = {
            each["name"]: each["member_run"] for each in shown if each["member_run"]["coordination"] != "retired"
        }
        open_ = [each for each in self._node.every("session.list", team_run_id=run_id) if each["state"] != "closed"]
        self._sessions = {self.called(each["agent_member_id"]): each for each in open_}

    def called(self, agent_member_id: str) -> str:
        return self._names.get(agent_member_id, agent_member_id)

    def member(self, membership_id: str | None) -> str:
        """The name of a membership; its id where nobody knows one, nothing where there is none."""
        names = {each: name for name, each in self.memberships.items()}
        return names.get(membership_id or "", membership_id or "")

    def differences(self) -> list[str]:
        return [
            f"member {member.name}: {field} {differing.texts(agent[field], getattr(member, field))}"
            f"{self._later(member.name, field)}"
            for member in self.wanted
            if (agent := self.agents.get(member.name)) is not None
            for field in _changes(agent, member)
        ]

    def _later(self, name: str, field: str) -> str:
        """Of what does not change at once: when it will."""
        if field in _OF_SESSION and name in self._sessions:
            return f" (from its next session on: {_anew(name)})"
        place = self._places.get(name)
        return f" (in this run it stays {place['role']}-{place['number']})" if field == "role" and place else ""

    def kept(self) -> Iterator[str]:
        """What the file says otherwise and cannot change, and what is there without it; with what changes it."""
        for member in self.wanted:
            agent, session = self.agents.get(member.name), self._sessions.get(member.name)
            if agent is not None and agent["status"] == "paused":
                lifted_by = f"firm agent resume {agent['id']} --expected-version {agent['version']}"
                yield f"member {member.name} is paused and begins nothing: {lifted_by}"
            if session is not None and session["ceiling"] != member.ceiling:
                keeps = f"its open session keeps the ceiling {session['ceiling']}"
                yield f"member {member.name}: {keeps}: {_anew(member.name)}"
        here = {member.name for member in self.wanted}
        for name, place in self._places.items():
            if name not in here and name != self.host and place["coordination"] == "active":
                close = f"firm close {shlex.quote(name)}"
                if name not in self._sessions:
                    close = f"firm member-run close {place['id']} --expected-version {place['version']}"
                yield f"member {name} takes part, and is not in the file: it stays; to end that: {close}"

    # --- made ---

    def make(self) -> None:
        for member in self.wanted:
            self.agents[member.name] = self._agent(member)
            self._names[self.agents[member.name]["id"]] = member.name

    def _agent(self, member: Member) -> Any:
        if (found := self.agents.get(member.name)) is not None:
            return self._as_the_file_says(found, member)
        body = {name: getattr(member, name) for name in ("name", *_AGENT)}
        same = [each for each in self._node.every("agent.list") if each["name"] == member.name]
        if there := [each for each in same if each["status"] != "retired"]:  # another shell was faster
            return there[0]
        made = make(self._node, "agent.create", body, len(same), self._read)
        self._tell(f"member {member.name} ({member.profile})")
        return made

    def _as_the_file_says(self, found: Any, member: Member) -> Any:
        named = {"agent_member_id": found["id"]}

        def step(agent: Any) -> Asked | None:
            changes = _changes(agent, member)
            return ("agent.update", {**named, **changes}) if changes else None

        return settle(self._node, found, step, lambda: self._read(found["id"]))

    def _read(self, agent_id: str) -> Any:
        return self._node.ask("agent.show", agent_member_id=agent_id)

    def join(self, team_id: str) -> None:
        shown = {each["name"]: each["membership"] for each in self._node.ask("team.show", team_id=team_id)["members"]}
        self.memberships = {name: each["id"] for name, each in shown.items()}
        for member in self.wanted:
            membership = shown.get(member.name)
            if membership is None:
                body = {"team_id": team_id, "agent_member_id": self.agents[member.name]["id"]}
                gone = len([m for m in self._node.every("membership.list", **body) if m["state"] == "inactive"])
                membership = self._node.ask("membership.invite", same_key("invite", body, gone), **body)
            if membership["state"] == "invited":
                body = {"membership_id": membership["id"], "expected_version": membership["version"]}
                membership = self._node.ask("membership.join", same_key("join", body, 0), **body)
            self.memberships[member.name] = membership["id"]

    def take_places(self, run_id: str) -> None:
        shown = self._node.ask("team-run.show", team_run_id=run_id)["members"]
        places = {each["name"]: each["member_run"] for each in shown if each["member_run"]["coordination"] != "retired"}
        for member in self.wanted:
            place = places.get(member.name)
            if place is None:
                body = {"team_run_id": run_id, "membership_id": self.memberships[member.name]}
                before = [each for each in shown if each["name"] == member.name]
                self._node.ask("member-run.add", same_key("place", body, len(before)), **body)
            elif place["coordination"] == "closed":
                body = {"member_run_id": place["id"], "expected_version": place["version"]}
                self._node.ask("member-run.reopen", same_key("reopen", body, 0), **body)


def _changes(agent: Any, member: Member) -> dict[str, Any]:
    return {name: getattr(member, name) for name in _AGENT if getattr(member, name) != agent[name]}


def _anew(name: str) -> str:
    return f"firm close {shlex.quote(name)}, then firm reopen {shlex.quote(name)}"
