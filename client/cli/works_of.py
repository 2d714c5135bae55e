"""The Works of a team file in a run: found by their titles, compared, made where they are missing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from client.cli.crew import Change, Node, same_key
from client.team_file import ME, TeamFile, Work


class Works:
    """``found`` are the Works of the file that are there, by their keys."""

    def __init__(self, node: Node, file: TeamFile, tell: Callable[[str], None]) -> None:
        self._node = node
        self._file = file
        self._tell = tell
        self.found: dict[str, Any] = {}

    def look(self, run_id: str, memberships: dict[str, str]) -> list[Change]:
        """Find what is there; what differs. Changes nothing."""
        known = {work["title"].casefold(): work for work in self._node.every("work.list", team_run_id=run_id)}
        changes: list[Change] = []
        for work in self._file.works:
            found = known.get(work.title.casefold())
            if found is not None:
                self.found[work.key] = found
                changes += self._compare(found, work, memberships)
        return changes

    def _compare(self, found: Any, work: Work, memberships: dict[str, str]) -> list[Change]:
        said = {"title": work.title, "context": work.context, "priority": work.priority}
        changes: dict[str, Any] = {name: value for name, value in said.items() if value != found[name]}
        if work.criteria != found["criteria"]:
            changes["completion_criteria"] = "\n".join(work.criteria)
        differs = [*changes]
        if found["verifier_id"] != (named := memberships.get(work.verifier)) or (work.verifier and named is None):
            differs.append("verifier")
            if not work.verifier:
                changes["remove_verifier"] = True
            elif named is not None:  # else it is not in the team yet, and ``make`` names it once it is
                changes["verifier_id"] = named
        if not differs:
            return []
        what = f"work {work.key}: {', '.join(differs)} changed"
        if found["phase"] == "closed":
            self._tell(f"{what} in the file, and it is closed: it stays as it was")
            return []
        body = {"work_id": found["id"], "expected_version": found["version"], **changes}
        return [(what, lambda: self._update(work, body) if changes else None)]

    def _update(self, work: Work, body: dict[str, Any]) -> None:
        self.found[work.key] = self._node.ask("work.update", **body)

    def make(self, run_id: str, agents: dict[str, Any], memberships: dict[str, str]) -> None:
        """Make what is missing, and give it to who is to answer for it."""
        for work in self._file.works:
            self._work(run_id, agents, memberships, work)

    def _work(self, run_id: str, agents: dict[str, Any], memberships: dict[str, str], work: Work) -> None:
        if work.key not in self.found:
            body = {
                "team_run_id": run_id,
                "title": work.title,
                "context": work.context,
                "completion_criteria": "\n".join(work.criteria),
                # Only the Host gives Works away. Where that is not the person, the member takes what is for it alone.
                "claim_mode": "host_assign" if work.assign and self._file.host == ME else "team_claim",
                "eligible_member_ids": [agents[work.assign]["id"]] if work.assign else [],
                "prerequisite_work_ids": [self.found[key]["id"] for key in work.needs],
                "priority": work.priority,
                "checks": work.check,
                **({"verifier_id": memberships[work.verifier]} if work.verifier else {}),
            }
            self.found[work.key] = self._node.ask("work.create", same_key("work", body, 0), **body)
            self._tell(f"work {work.key}: {work.title}")
        found = self.found[work.key]
        if work.verifier and found["verifier_id"] != memberships[work.verifier] and found["phase"] != "closed":
            # It was not in the team when the Work was compared.
            named = {"work_id": found["id"], "verifier_id": memberships[work.verifier]}
            self._update(work, {**named, "expected_version": found["version"]})
            found = self.found[work.key]
        if work.assign and self._file.host == ME and found["owner_id"] is None and found["phase"] == "open":
            body = {
                "work_id": found["id"],
                "expected_version": found["version"],
                "membership_id": memberships[work.assign],
            }
            self.found[work.key] = self._node.ask("work.assign", same_key("assign", body, 0), **body)
