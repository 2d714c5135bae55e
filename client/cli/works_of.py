"""The Works of a team file in a run: found by their titles, compared, made where they are missing, changed where the
file says otherwise.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from typing import Any

from client.cli.arguments import listing
from client.cli.crew import Asked, Node, make, settle
from client.cli.members_of import Members
from client.cli.work_compared import Compared
from client.team_file import ME, TeamFile, Work

#: What a member has been given, and goes on with, when it has begun.
_GIVEN = {"title", "context", "criteria"}
#: Works that are not in the file, and are named before the rest is counted.
_NAMED = 5


class Works:
    """``found`` are the Works of the file that are there, by their keys."""

    def __init__(self, node: Node, file: TeamFile, members: Members, tell: Callable[[str], None]) -> None:
        self._node = node
        self._file = file
        self._members = members
        self._tell = tell
        self.found: dict[str, Any] = {}
        self._others: list[Any] = []
        self._compared = Compared(members, by_the_host=file.host == ME)

    def look(self, run_id: str) -> None:
        """Find what is there. Where several have one title it is the one that is not closed."""
        known = self._node.every("work.list", team_run_id=run_id)
        by_title = {
            each["title"].casefold(): each for each in sorted(known, key=lambda each: each["phase"] != "closed")
        }
        self._compared.labels = {each["id"]: f"{each['id']} {each['title']!r}" for each in known}
        for work in self._file.works:
            if (found := by_title.get(work.title.casefold())) is not None:
                self.found[work.key] = found
                self._compared.labels[found["id"]] = work.key
        here = {each["id"] for each in self.found.values()}
        self._others = [each for each in known if each["phase"] != "closed" and each["id"] not in here]

    @property
    def _decides(self) -> bool:
        """Whether whoever types this is the Host who changes a Work, now or once the team was handed over."""
        return ME in {self._file.host, self._members.host}

    def differences(self) -> Iterator[str]:
        for work in self._file.works:
            found = self.found.get(work.key)
            if found is None and self._others:
                yield f"work {work.key} is made anew: no Work of this run is called {work.title!r}{self._renamed(work)}"
            elif found is not None and found["phase"] != "closed" and self._decides:
                for field, words in self._compared.differs(found, work).items():
                    yield f"work {work.key}: {field} {words}{self._later(found, field)}"

    def _renamed(self, work: Work) -> str:
        """What to type where it is one that is there, and was only called otherwise."""
        if not self._decides:
            return ""
        title = shlex.quote(work.title)
        meant = [f"firm work update {o['id']} --expected-version {o['version']} --title {title}" for o in self._others]
        more = f", or {len(meant) - 1} others that are not in the file" if meant[1:] else ""
        return f"; to rename {self._others[0]['title']!r} instead{more}: {meant[0]}"

    def _later(self, found: Any, field: str) -> str:
        if found["phase"] == "open":
            return ""
        owner = self._members.member(found["owner_id"])
        if field in _GIVEN:
            return (
                f" (it is {found['phase']}: {owner} has been given it as it was; firm send {shlex.quote(owner)} TEXT)"
            )
        return f" (it is {found['phase']}: that holds once it is open again)" if field == "needs" else ""

    def kept(self) -> Iterator[str]:
        """What the file says otherwise and cannot change, and what is there without it; with what changes it."""
        for work in self._file.works:
            found = self.found.get(work.key)
            if found is None:
                continue
            said = "; ".join(f"{field} {words}" for field, words in self._compared.differs(found, work).items())
            if found["phase"] == "closed":
                if said:
                    yield f"work {work.key} is closed, and stays as it was: {said}"
            elif not self._decides:
                if said:
                    tell = f"firm send {shlex.quote(self._members.host)} TEXT"
                    yield f"work {work.key}: {said}: only its Host {self._members.host} changes it: {tell}"
            elif owned := self._owned(found, work):
                yield f"work {work.key}: {owned}"
        for other in self._others[:_NAMED]:
            cancel = f"firm work cancel {other['id']} --expected-version {other['version']} --reason TEXT"
            ends = f"to end it: {cancel}" if self._decides else f"its Host {self._members.host} may cancel it"
            yield f"work {other['id']} {other['title']!r} is not in the file: it stays; {ends}"
        if self._others[_NAMED:]:
            yield f"{len(self._others) - _NAMED} more Works are not in the file, and stay: firm work list"

    def _owned(self, found: Any, work: Work) -> str:
        """What is to be done where somebody answers for it to whom the file does not give it."""
        allowed = [work.assign] if work.assign else work.claim
        if not found["owner_id"] or not allowed or found["owner_id"] in map(self._members.memberships.get, allowed):
            return ""
        said = f"{self._members.member(found['owner_id'])} answers for it, not {listing(tuple(allowed))}"
        named = f"{found['id']} --expected-version {found['version']}"
        if found["phase"] == "open":
            return f"{said}; firm work release {named} takes it back, and firm up goes on"
        if found["phase"] == "review":
            return f"{said}; firm work request-changes {named} --reason TEXT sends it back, then it can be released"
        return f"{said}; it is active, and can be released once it is open again"

    # --- made ---

    def make(self, run_id: str) -> None:
        """Make what is missing and change what differs, each after what it needs, and give it to who is to do it."""
        for work in self._file.works:
            if work.key not in self.found:
                self._create(run_id, work)
            elif self._decides and self.found[work.key]["phase"] != "closed":
                self._settle(work, self._compared.update)
                self._settle(work, self._needs)
            if work.assign and self._file.host == ME:
                self._settle(work, self._assign)

    def _create(self, run_id: str, work: Work) -> None:
        mode, eligible = self._compared.claims(work)
        body = {
            "team_run_id": run_id,
            "title": work.title,
            "context": work.context,
            "completion_criteria": "\n".join(work.criteria),
            "claim_mode": mode,
            "eligible_member_ids": eligible,
            "prerequisite_work_ids": self._ids(work.needs),
            "priority": work.priority,
            "checks": work.check,
            **({"verifier_id": self._members.memberships[work.verifier]} if work.verifier else {}),
        }
        self.found[work.key] = made = make(self._node, "work.create", body, 0, self._read)
        self._compared.labels[made["id"]] = work.key
        self._tell(f"work {work.key}: {work.title}")

    def _ids(self, keys: list[str]) -> list[str]:
        return sorted({self.found[key]["id"] for key in keys})

    def _settle(self, work: Work, step: Callable[[Any, Work], Asked | None]) -> None:
        found = self.found[work.key]

        def named(now: Any) -> Asked | None:
            asked = step(now, work) if now["phase"] != "closed" else None
            return (asked[0], {"work_id": now["id"], **asked[1]}) if asked else None

        self.found[work.key] = settle(self._node, found, named, lambda: self._read(found["id"]))

    def _read(self, work_id: str) -> Any:
        return self._node.ask("work.show", work_id=work_id)["work"]

    def _needs(self, found: Any, work: Work) -> Asked | None:
        ids = self._ids(work.needs)
        return ("work.replace-dependencies", {"prerequisite_work_ids": ids}) if ids != found["needs"] else None

    def _assign(self, found: Any, work: Work) -> Asked | None:
        if found["owner_id"] is not None or found["phase"] != "open":
            return None
        return ("work.assign", {"membership_id": self._members.memberships[work.assign]})
