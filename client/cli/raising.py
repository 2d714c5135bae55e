"""From a team file to a run that goes on: what is missing is made, what is different is told first.

Every step may be repeated and may be raced by another shell with the same file: what is made is made under a key that
follows from what was seen, so that whoever asks second gets the first answer.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

from client.cli import differing
from client.cli.arguments import Usage, listing
from client.cli.crew import GOES_ON_BY, GOING_ON, Asked, Node, Refused, make, same_key, settle
from client.cli.members_of import Members
from client.cli.works_of import Works
from client.team_file import APART, ME, TeamFile


def usable(node: Node, file: TeamFile, folder: str) -> None:
    """Raises ``Refused`` where the project has no folder that can be used, and ``Usage`` where several members would
    write into it: without git there are no worktrees. Before anything else is made the node knows the folder, with what
    git says of it now.
    """
    project = node.ask("project.add", root=_project(file, folder))
    first, second = [*(member.name for member in file.writers), "", ""][:2]
    if second and not project["git_dir"]:
        lifted_by = f"make it a repository, with git init and a first commit, or leave one of them: {APART}"
        raise Usage(f"{first!r} and {second!r} would write into one folder: {_project(file, folder)}", lifted_by)


def _project(file: TeamFile, folder: str) -> str:
    return os.path.realpath(os.path.join(folder, file.project))


class Raising:
    """``differences`` are what the file says otherwise than the node; ``raise_all`` makes the node as the file says."""

    def __init__(self, node: Node, file: TeamFile, folder: str, tell: Callable[[str], None]) -> None:
        self._node = node
        self.file = file
        self._project = _project(file, folder)
        self._tell = tell
        self._members = Members(node, file, tell)
        self._works = Works(node, file, self._members, tell)
        self._namesakes = 0
        self.team: Any = None
        self.run: Any = None
        self.differences: list[str] = []

    @property
    def works(self) -> dict[str, Any]:
        """The Works of the file, by their keys."""
        return self._works.found

    def look(self) -> None:
        """What is there already, and what of it differs. Changes nothing."""
        self._members.look()
        self.team = self._find_team()
        if self.team is not None:
            self._members.look_at_team(self.team["id"])
            if runs := self._runs(self.team["id"])[0]:
                self.run = runs[0]
                self._members.look_at_run(self.run["id"])
                self._works.look(self.run["id"])
        works = self._works.differences() if self.run is not None else ()
        self.differences = [*self._of_team(), *self._members.differences(), *works]

    def kept(self) -> list[str]:
        """What stays as it is although the file says otherwise, or nothing; each with what changes it."""
        found = [*self._members.kept(), *(self._works.kept() if self.run is not None else ())]
        if self.run is not None and self.run["objective"] != self.file.objective:
            words = differing.texts(self.run["objective"], self.file.objective)
            found = [f"team: objective {words}: run {self.run['id']} keeps its own, the next one has it", *found]
        if self.run is not None and self.run["cycles"] != self.file.cycles:
            words = f"{self.run['cycles']} → {self.file.cycles}"
            found = [f"team: cycles {words}: run {self.run['id']} keeps its own, the next one has it", *found]
        return found

    def raise_all(self) -> None:
        """Make what is missing and change what differs, in the order in which one thing needs another."""
        self._members.make()
        self.team = self._raise_team()
        self._members.join(self.team["id"])
        if self.file.host == ME:  # it changes Works as their Host; another has them as they were changed before it
            self._hand_over()
        self._go()
        if not (self.file.ends and _ends(self.run)):
            self._members.take_places(self.run["id"])
            self._members.look_at_run(self.run["id"])
            self._works.make(self.run["id"])
            if self.file.ends:  # now that all Works are there, so that the last of them is the last
                self.run = _told_to_end(self._node, self.run)
        self._hand_over()
        for what in self.differences:
            self._tell(f"changed: {what}")

    # --- team ---

    def _of_team(self) -> Iterator[str]:
        if self.team is not None:
            if self.team["description"] != self.file.description:
                yield f"team: description {differing.texts(self.team['description'], self.file.description)}"
            if self._members.host != self.file.host:
                yield f"team: host {self._members.host} → {self.file.host}"
        if self.run is not None and self.run["completing"] and not self.file.ends:
            yield "team: when_done end → stay"

    def _find_team(self) -> Any:
        same = [each for each in self._node.every("team.list") if each["name"] == self.file.name]
        fits = [each for each in same if each["state"] != "trashed"]
        self._namesakes = len(same)
        if len(fits) > 1:
            ids = " or ".join(each["id"] for each in fits)
            raise Usage(f"several teams are called {self.file.name!r}", f"rename all but one: {ids}")
        if not fits:
            return None
        roots = {project["id"]: project["root"] for project in self._node.every("project.list")}
        if (root := roots.get(fits[0]["project_id"])) != self._project:
            lifted_by = f"name this team otherwise, or set team.project to {root}"
            raise Usage(f"the team {self.file.name!r} works in {root}, not in {self._project}", lifted_by)
        return fits[0]

    def _raise_team(self) -> Any:
        team = self._find_team()
        if team is None:
            body = {
                "name": self.file.name,
                "host_agent_id": self._members.agents[self.file.host]["id"],
                "project": self._project,
                "description": self.file.description,
            }
            team = make(self._node, "team.create", body, self._namesakes, self._read)
            self._tell(f"team {self.file.name} in {self._project}")
        named = {"team_id": team["id"]}

        def step(now: Any) -> Asked | None:
            if now["state"] == "inactive":
                return "team.activate", named
            told = {**named, "description": self.file.description}
            return ("team.update", told) if now["description"] != self.file.description else None

        return settle(self._node, team, step, lambda: self._read(team["id"]))

    def _read(self, team_id: str) -> Any:
        return self._node.ask("team.show", team_id=team_id)["team"]

    def _hand_over(self) -> None:
        """Once it takes part the Host of the file is that of the team."""
        self._members.look_at_team(self.team["id"])
        while self._members.host != self.file.host:
            to, team = self._members.agents[self.file.host]["id"], self._read(self.team["id"])
            body = {"team_id": team["id"], "expected_version": team["version"], "to_agent_id": to}
            try:
                self._node.ask("team.hand-over", same_key("host", body, 0), **body)
            except Refused as why:
                if why.refusal["code"] != "VERSION_CONFLICT":
                    raise
            self._members.look_at_team(self.team["id"])

    # --- run ---

    def _runs(self, team_id: str) -> tuple[list[Any], list[Any]]:
        """Those that go on, one at most, and those that ended: both of one look."""
        runs = self._node.every("team-run.list", team_id=team_id)
        going_on = [run for run in runs if run["state"] in GOING_ON]
        if len(going_on) > 1:
            ends = listing(tuple(f"firm down {run['id']}" for run in going_on))
            raise Usage(f"several runs of {self.file.name!r} go on", f"end all but one: {ends}")
        return going_on, [run for run in runs if run["state"] not in GOING_ON]

    def _go(self) -> None:
        going_on, ended = self._runs(self.team["id"])
        anew = ""
        if going_on:
            self.run = going_on[0]
        else:
            body = {"team_id": self.team["id"], "objective": self.file.objective, "cycles": self.file.cycles}
            self.run = self._node.ask("team-run.create", same_key("run", body, len(ended)), **body)
            anew = f", a new one: {ended[-1]['id']} is {ended[-1]['state']}" if ended else ""
        before = self.run
        while (verb := self._moves(self.run)) is not None:
            body = {"team_run_id": self.run["id"], "expected_version": self.run["version"]}
            self.run = self._node.ask(f"team-run.{verb}", same_key(verb, body, 0), **body)
        if self.run is not before:
            self._tell(f"run {self.run['id']}{anew}")

    def _moves(self, run: Any) -> str | None:
        """What has to be done to it until it goes on. One that was told to end is told otherwise by a drain alone."""
        if self.file.ends and _ends(run):
            return None
        if run["completing"] and run["state"] == "running" and not self.file.ends:
            return "drain"
        return GOES_ON_BY.get(run["state"])


def _ends(run: Any) -> bool:
    """Whether its members are being ended, as it was told: nothing is taken back then."""
    return bool(run["completing"] and run["state"] == "draining")


def _told_to_end(node: Node, run: Any) -> Any:
    """The run, once somebody has told it to complete with its last Work."""
    while not run["completing"] and run["state"] in GOING_ON:
        body = {"team_run_id": run["id"], "expected_version": run["version"], "when_closed": True}
        try:
            run = node.ask("team-run.complete", same_key("complete", body, 0), **body)
        except Refused as why:
            if why.refusal["code"] not in {"INVALID_STATE_TRANSITION", "VERSION_CONFLICT"}:
                raise
            run = node.ask("team-run.show", team_run_id=run["id"])["run"]
    return run
