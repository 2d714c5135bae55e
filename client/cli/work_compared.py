"""A Work as the node has it beside what a team file says of it: what differs, and what is asked for to change it."""

from __future__ import annotations

from typing import Any

from client.cli import differing
from client.cli.arguments import listing
from client.cli.crew import Asked
from client.cli.members_of import Members
from client.team_file import Work

#: Fields that a Work has by the name that they have in the file.
_TEXTS = ("title", "context", "priority")


class Compared:
    """``labels`` are what Works are called, by their ids. ``by_the_host``: the person who types is to be the Host."""

    def __init__(self, members: Members, *, by_the_host: bool) -> None:
        self._members = members
        self._by_the_host = by_the_host
        self.labels: dict[str, str] = {}

    def differs(self, found: Any, work: Work) -> dict[str, str]:
        """Field by field of the file, what it is and what it is to be."""
        said = {
            name: differing.texts(found[name], value)
            for name in _TEXTS
            if (value := getattr(work, name)) != found[name]
        }
        if work.criteria != found["criteria"]:
            said["criteria"] = differing.lists(found["criteria"], work.criteria)
        if sorted(work.check) != sorted(found["checks"]):
            said["check"] = differing.lists(found["checks"], work.check)
        needs = sorted(str(self.labels.get(need, need)) for need in found["needs"])
        if needs != sorted(set(work.needs)):
            said["needs"] = differing.lists(needs, work.needs)
        if self._verifier(found, work):
            said["verifier"] = differing.texts(self._members.member(found["verifier_id"]), work.verifier)
        if self._who(found, work):
            said["who does it:"] = f"{self._says_now(found)} → {self._says(work)}"
        return said

    def _verifier(self, found: Any, work: Work) -> dict[str, Any]:
        """What to ask for, where another one is named. One that is not in the team yet is named once it is."""
        named = self._members.memberships.get(work.verifier)
        if not work.verifier:
            return {"remove_verifier": True} if found["verifier_id"] else {}
        return {"verifier_id": named} if named is None or found["verifier_id"] != named else {}

    def _who(self, found: Any, work: Work) -> dict[str, Any]:
        """What to ask for, where others may claim it, or the Host gives it to another."""
        if work.assign and found["owner_id"] and found["owner_id"] == self._members.memberships.get(work.assign):
            return {}
        mode, eligible = self.claims(work)
        if (mode, eligible) == (found["claim_mode"], found["eligible"]):
            return {}
        named = {"eligible_member_ids": eligible} if eligible else {"remove_eligible": True}
        return {"claim_mode": mode, **named}

    def claims(self, work: Work) -> tuple[str, list[str]]:
        """Only the Host gives Works away. Where that is not the person, the member takes what is for it alone."""
        mode = "host_assign" if work.assign and self._by_the_host else "team_claim"
        agents = self._members.agents
        names = [work.assign] if work.assign else work.claim
        return mode, sorted({agents[name]["id"] if name in agents else name for name in names})

    def _says(self, work: Work) -> str:
        return _said(self.claims(work)[0], [work.assign] if work.assign else work.claim)

    def _says_now(self, found: Any) -> str:
        return _said(found["claim_mode"], sorted(map(self._members.called, found["eligible"])))

    def update(self, found: Any, work: Work) -> Asked | None:
        """One check is taken away at a time; the last of them in exchange for those that are new."""
        body = {name: value for name in _TEXTS if (value := getattr(work, name)) != found[name]}
        if work.criteria != found["criteria"]:
            body["completion_criteria"] = "\n".join(work.criteria)
        body |= self._verifier(found, work) | self._who(found, work)
        stale = [line for line in found["checks"] if line not in work.check]
        if stale:
            body["remove_check"] = stale[0].partition("=")[0]
        if not stale[1:] and (new := [line for line in work.check if line not in found["checks"]]):
            body["add_checks"] = new
        return ("work.update", body) if body else None


def _said(mode: str, names: list[str]) -> str:
    """Who does a Work, as a mode and names mean it."""
    if mode == "host_assign":
        return f"the Host gives it to {listing(tuple(names))}" if names else "the Host gives it away"
    return f"{listing(tuple(names))} may claim it" if names else "any member may claim it"
