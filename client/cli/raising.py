"""From a team file to a run that goes on: what is missing is made, what is different is told first.

Every step may be repeated and may be raced by another shell with the same file: what is made is made under a key that
follows from what was seen, so that whoever asks second gets the first answer.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from client.cli.arguments import Usage
from client.cli.crew import Change, Node, Refused, same_key
from client.cli.works_of import Works
from client.team_file import APART, ME, Member, TeamFile

_GOING_ON = ("planned", "running", "draining")
_AGENT = ("profile", "role", "description", "model", "workspace", "ceiling")


def apart(node: Node, file: TeamFile, folder: str) -> None:
    """Raises ``Usage`` where several members would write into the project's folder: without git there are no worktrees.
    The node is told of the folder, and sees what git says of it now.
    """
    first, second = [*(member.name for member in file.writers), "", ""][:2]
    if second and not node.ask("project.add", root=_project(file, folder))["git_dir"]:
        lifted_by = f"make it a repository, with git init and a first commit, or leave one of them: {APART}"
        raise Usage(f"{first!r} and {second!r} would write into one folder: {_project(file, folder)}", lifted_by)


def _project(file: TeamFile, folder: str) -> str:
    return os.path.realpath(os.path.join(folder, file.project))


class Raising:
    """``differences`` are what the file says otherwise than the node; ``apply`` makes the node as the file says."""

    def __init__(self, node: Node, file: TeamFile, folder: str, tell: Callable[[str], None]) -> None:
        self._node = node
        self._file = file
        self._project = _project(file, folder)
        self._tell = tell
        self._changes: list[Change] = []
        self._agents: dict[str, Any] = {}
        self._memberships: dict[str, str] = {}
        self._works = Works(node, file, tell)
        self._namesakes = 0
        self.run: Any = None

    @property
    def works(self) -> dict[str, Any]:
        """The Works of the file, by their keys."""
        return self._works.found

    @property
    def differences(self) -> list[str]:
        return [what for what, _ in self._changes]

    def apply(self) -> None:
        for what, change in self._changes:
            change()
            self._tell(f"changed {what}")
        self._changes.clear()

    def look(self) -> None:
        """What is there already, and what of it differs. Changes nothing."""
        self._find_agents()
        team = self._find_team()
        if team is not None and (runs := self._runs(team)[0]):
            self.run = runs[0]
            shown = self._node.ask("team.show", team_id=team["id"])["members"]
            members = {each["name"]: each["membership"]["id"] for each in shown}
            self._changes += self._works.look(self.run["id"], members)

    def raise_all(self) -> None:
        """Make what is missing, in the order in which one thing needs another."""
        for member in [*([_ME] if self._file.host == ME else []), *self._file.members]:
            self._agent(member)
        team = self._team()
        for member in self._file.members:
            self._member(team, member)
        self._go(team)
        if self._file.ends and _ends(self.run):
            return
        self._places()
        self._works.make(self.run["id"], self._agents, self._memberships)
        if self._file.ends:  # now that all Works are there, so that the last of them is the last
            self.run = _told_to_end(self._node, self.run)

    # --- agents ---

    def _find_agents(self) -> None:
        known = self._node.every("agent.list")
        for member in [*([_ME] if self._file.host == ME else []), *self._file.members]:
            fits = [each for each in known if each["name"] == member.name and each["status"] != "retired"]
            if len(fits) > 1:
                ids = " or ".join(each["id"] for each in fits)
                raise Usage(f"several agent members are called {member.name!r}", f"retire all but one: {ids}")
            if fits:
                self._agents[member.name] = fits[0]
                self._compare(fits[0], member)

    def _compare(self, agent: Any, member: Member) -> None:
        changes = {name: getattr(member, name) for name in _AGENT if getattr(member, name) != agent[name]}
        for name, value in changes.items():
            what = f"member {member.name}: {name} {agent[name] or 'nothing'} → {value or 'nothing'}"
            self._changes.append((what, lambda: None))
        if changes:
            body = {"agent_member_id": agent["id"], "expected_version": agent["version"], **changes}
            what, _ = self._changes.pop()
            self._changes.append((what, lambda: self._node.ask("agent.update", **body)))

    def _agent(self, member: Member) -> None:
        if member.name in self._agents:
            return
        body = {name: getattr(member, name) for name in ("name", *_AGENT)}
        same = [each for each in self._node.every("agent.list") if each["name"] == member.name]
        if there := [each for each in same if each["status"] != "retired"]:  # another shell was faster
            self._agents[member.name] = there[0]
            return
        self._agents[member.name] = self._node.ask("agent.create", same_key("agent", body, len(same)), **body)
        self._tell(f"member {member.name} ({member.profile})")

    # --- team ---

    def _find_team(self) -> Any:
        same = [each for each in self._node.every("team.list") if each["name"] == self._file.name]
        fits = [each for each in same if each["state"] != "trashed"]
        self._namesakes = len(same)
        if len(fits) > 1:
            ids = " or ".join(each["id"] for each in fits)
            raise Usage(f"several teams are called {self._file.name!r}", f"rename all but one: {ids}")
        if not fits:
            return None
        roots = {project["id"]: project["root"] for project in self._node.every("project.list")}
        if (root := roots.get(fits[0]["project_id"])) != self._project:
            lifted_by = f"name this team otherwise, or set team.project to {root}"
            raise Usage(f"the team {self._file.name!r} works in {root}, not in {self._project}", lifted_by)
        return fits[0]

    def _team(self) -> Any:
        host = self._agents[self._file.host]
        team = self._find_team()
        if team is None:
            body = {
                "name": self._file.name,
                "host_agent_id": host["id"],
                "project": self._project,
                "description": self._file.description,
            }
            team = self._node.ask("team.create", same_key("team", body, self._namesakes), **body)
            self._tell(f"team {self._file.name} in {self._project}")
        if team["state"] == "inactive":
            body = {"team_id": team["id"], "expected_version": team["version"]}
            team = self._node.ask("team.activate", same_key("activate", body, 0), **body)
        shown = self._node.ask("team.show", team_id=team["id"])["members"]
        self._memberships = {each["name"]: each["membership"]["id"] for each in shown}
        hosts = [each["name"] for each in shown if each["membership"]["role"] == "host"]
        if hosts != [self._file.host]:
            lifted_by = f"hand it over: firm team hand-over {team['id']} --to-agent-id {host['id']}"
            raise Usage(f"the Host of {self._file.name!r} is {' '.join(hosts)}, not {self._file.host}", lifted_by)
        return team

    def _member(self, team: Any, member: Member) -> None:
        shown = {
            each["name"]: each["membership"] for each in self._node.ask("team.show", team_id=team["id"])["members"]
        }
        membership, agent = shown.get(member.name), self._agents[member.name]
        if membership is None:
            body = {"team_id": team["id"], "agent_member_id": agent["id"]}
            gone = len([m for m in self._node.every("membership.list", **body) if m["state"] == "inactive"])
            membership = self._node.ask("membership.invite", same_key("invite", body, gone), **body)
        if membership["state"] == "invited":
            body = {"membership_id": membership["id"], "expected_version": membership["version"]}
            membership = self._node.ask("membership.join", same_key("join", body, 0), **body)
        self._memberships[member.name] = membership["id"]

    # --- run ---

    def _runs(self, team: Any) -> tuple[list[Any], int]:
        """Those that go on, one at most, and how many there ever were: both of one look."""
        runs = self._node.every("team-run.list", team_id=team["id"])
        going_on = [run for run in runs if run["state"] in _GOING_ON]
        if len(going_on) > 1:
            ids = " or ".join(run["id"] for run in going_on)
            raise Usage(f"several runs of {self._file.name!r} go on", f"end all but one: firm down {ids}")
        return going_on, len(runs)

    def _go(self, team: Any) -> None:
        going_on, number = self._runs(team)
        if going_on:
            self.run = going_on[0]
        else:
            body = {"team_id": team["id"], "objective": self._file.objective}
            self.run = self._node.ask("team-run.create", same_key("run", body, number), **body)
        verb = {"planned": "start", "draining": "resume"}.get(self.run["state"])
        if verb is not None and not (self._file.ends and _ends(self.run)):
            body = {"team_run_id": self.run["id"], "expected_version": self.run["version"]}
            self.run = self._node.ask(f"team-run.{verb}", same_key(verb, body, 0), **body)
            self._tell(f"run {self.run['id']}")

    def _places(self) -> None:
        shown = self._node.ask("team-run.show", team_run_id=self.run["id"])["members"]
        places = {each["name"]: each["member_run"] for each in shown if each["member_run"]["coordination"] != "retired"}
        for member in self._file.members:
            place = places.get(member.name)
            if place is None:
                body = {"team_run_id": self.run["id"], "membership_id": self._memberships[member.name]}
                before = [each for each in shown if each["name"] == member.name]
                self._node.ask("member-run.add", same_key("place", body, len(before)), **body)
            elif place["coordination"] == "closed":
                body = {"member_run_id": place["id"], "expected_version": place["version"]}
                self._node.ask("member-run.reopen", same_key("reopen", body, 0), **body)


def _ends(run: Any) -> bool:
    """Whether its members are being ended, as it was told: nothing is taken back then."""
    return bool(run["completing"] and run["state"] == "draining")


def _told_to_end(node: Node, run: Any) -> Any:
    """The run, once somebody has told it to complete with its last Work."""
    while not run["completing"] and run["state"] in _GOING_ON:
        body = {"team_run_id": run["id"], "expected_version": run["version"], "when_closed": True}
        try:
            run = node.ask("team-run.complete", same_key("complete", body, 0), **body)
        except Refused as why:
            if why.refusal["code"] not in {"INVALID_STATE_TRANSITION", "VERSION_CONFLICT"}:
                raise
            run = node.ask("team-run.show", team_run_id=run["id"])["run"]
    return run


_ME = Member(name=ME, profile="me")
