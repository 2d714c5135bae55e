"""The team file: who is in a team, what a run of it is to do. Read and checked.

One table of fields says what may stand where; the reader, its errors and the JSON Schema are all read from it.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping
from typing import Any

import attrs

from client.protocol.checks import named
from client.protocol.checks import read as read_check
from client.protocol.team_run import CYCLES, SOME_CYCLES

#: The Host that is the person at this machine.
ME = "me"
#: The profile of our own worker.
OURS = "command"


@attrs.frozen
class Field:
    """``kind`` is str, int (a count, from one on) or list (of texts). A list has ``least`` items where it stands, and
    each is like ``item``.
    """

    name: str
    kind: type
    help: str
    required: bool = False
    choices: tuple[str, ...] = ()
    least: int = 0
    item: str = ""


#: What one line of text is that says something, the same in JSON Schema. Without what the node splits lines at.
SAYS, _BREAKS = r"\S", r"\n\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"
SAYS_IN_ONE_LINE = rf"^[^{_BREAKS}]*[^\s{_BREAKS}][^{_BREAKS}]*$"
#: What the node takes for a named check.
_CHECK = rf"^[A-Za-z][A-Za-z0-9._-]{{0,63}}=[^{_BREAKS}]*[^\s{_BREAKS}][^{_BREAKS}]*$"
_CEILINGS = ("read_only", "workspace_write", "full_access")
_PRIORITIES = ("low", "normal", "high", "urgent")
#: Table, whether there may be several, and its fields.
TABLES: Mapping[str, tuple[bool, tuple[Field, ...]]] = {
    "team": (
        False,
        (
            Field("name", str, "what people call the team", required=True),
            Field("host", str, f"the member that accepts Works, or {ME!r}: the person at this machine", required=True),
            Field("project", str, "the folder it works in, seen from this file; that of the file when absent"),
            Field("description", str, "what the team is for"),
            Field("objective", str, "what this run is to reach"),
            Field(
                "when_done",
                str,
                "once every Work is closed: stay, so that its members run until firm down, or end, with all of them; "
                "stay when absent",
                choices=("stay", "end"),
            ),
            Field(
                "cycles", int, f"how many members may be in a cycle at once, for all of its run; {CYCLES} when absent"
            ),
        ),
    ),
    "member": (
        True,
        (
            Field("name", str, "what people call it", required=True),
            Field("profile", str, "which program runs it; command when absent"),
            Field("role", str, "what it does, such as builder"),
            Field("description", str, "what it is for"),
            Field("model", str, "which model it prefers"),
            Field(
                "workspace",
                str,
                "where it works; one member at most shares the project's folder, since nothing keeps two apart yet",
                choices=("worktree", "shared"),
            ),
            Field("ceiling", str, "the most it may be allowed; recorded, not enforced yet", choices=_CEILINGS),
        ),
    ),
    "work": (
        True,
        (
            Field("key", str, "how other Works of this file name it", required=True),
            Field("title", str, "what is to be done, in one line; no two Works have the same", required=True),
            Field("context", str, "why, and what one needs to know; for the profile command, the program"),
            Field("criteria", list, "what is looked at before it is accepted, one a line", required=True, least=1),
            Field("needs", list, "keys of the Works that have to be accepted before"),
            Field("assign", str, "the member that answers for it; it does not stand beside claim"),
            Field("claim", list, "the members that may claim it; with neither assign nor claim every one may", least=1),
            Field("priority", str, "how urgent", choices=_PRIORITIES),
            Field(
                "check",
                list,
                "what has to pass on what is submitted, each as NAME=COMMAND or NAME=limit=SECONDS COMMAND",
                item=_CHECK,
            ),
            Field(
                "verifier",
                str,
                "the member without whose word it is not accepted; neither of assign and claim, nor the host",
            ),
        ),
    ),
}

#: Of these fields of a table one may be there.
EITHER: Mapping[str, tuple[str, str]] = {"work": ("assign", "claim")}


class Wrong(Exception):
    """The file cannot be used. Says where, and what to write instead."""

    def __init__(self, path: str, line: int, field: str, what: str) -> None:
        super().__init__(f"{path}:{line}: {field}: {what}" if field else f"{path}:{line}: {what}")


@attrs.frozen(kw_only=True)
class Member:
    name: str
    profile: str = OURS
    role: str = ""
    description: str = ""
    model: str = ""
    workspace: str = "worktree"
    ceiling: str = "workspace_write"


@attrs.frozen(kw_only=True)
class Work:
    key: str
    title: str
    criteria: list[str]
    context: str = ""
    needs: list[str] = attrs.Factory(list)
    assign: str = ""
    claim: list[str] = attrs.Factory(list)
    priority: str = "normal"
    check: list[str] = attrs.Factory(list)
    verifier: str = ""


@attrs.frozen(kw_only=True)
class TeamFile:
    """``works`` stand so that each comes after those that it needs. With ``ends`` the run is over after the last."""

    name: str
    host: str
    project: str
    description: str
    objective: str
    ends: bool
    cycles: int
    members: list[Member]
    works: list[Work]

    @property
    def writers(self) -> list[Member]:
        """Who may change files where it works. Our own program, as a Host that no Work is assigned to, only looks;
        ceilings are not enforced yet, so none of them keeps anybody from it.
        """
        doers = {work.assign for work in self.works}
        return [m for m in self.members if m.profile != "command" or m.name != self.host or m.name in doers]


#: What lifts it where two members would change the files of one folder.
APART = "nothing keeps members in one folder apart yet, neither ceilings nor lanes"


def read(path: str, text: str) -> TeamFile:
    """Raises ``Wrong``. ``path`` is only for its words."""
    try:
        found = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        said = re.fullmatch(r"(.*) \(at line (\d+), column \d+\)", str(error))
        what, line = (said[1], int(said[2])) if said else (str(error), text.count("\n") + 1)
        raise Wrong(path, line, "", f"not TOML: {what}") from None
    return _Reader(path, text).file(found)


@attrs.frozen
class _Reader:
    path: str
    text: str

    def file(self, found: dict[str, Any]) -> TeamFile:
        for name in found:
            if name not in TABLES:
                raise Wrong(self.path, self._line(name), name, f"there is no such table; use {_all(TABLES)}")
        team = self._table("team", found.get("team"), 0)
        members = [Member(**self._table("member", row, n)) for n, row in enumerate(self._rows("member", found))]
        works = [_tidy(Work(**self._table("work", row, n))) for n, row in enumerate(self._rows("work", found))]
        self._unlike("member", "name", [member.name for member in members])
        self._unlike("work", "key", [work.key for work in works])
        self._unlike("work", "title", [work.title for work in works], alike=str.casefold)
        self._names(team, members, works)
        self._judged(team["host"], members, works)
        whole = TeamFile(
            name=team["name"],
            host=team["host"],
            project=team.get("project", "."),
            description=team.get("description", ""),
            objective=team.get("objective", ""),
            ends=team.get("when_done") == "end",
            cycles=team.get("cycles", CYCLES),
            members=members,
            works=self._ordered(works),
        )
        self._apart(whole)
        return whole

    def _apart(self, file: TeamFile) -> None:
        """No two members that may write share the project's folder."""
        shared = [member for member in file.writers if member.workspace == "shared"]
        if len(shared) > 1:
            line = self._line("member", file.members.index(shared[1]), "workspace")
            pair = f"{shared[0].name!r} and {shared[1].name!r}"
            what = f'{pair} would write into one folder; give all but one of them workspace = "worktree": {APART}'
            raise Wrong(self.path, line, "member.workspace", what)

    def _judged(self, host: str, members: list[Member], works: list[Work]) -> None:
        """Our own worker, as the Host, accepts what somebody else has shown to hold, so that must be asked for."""
        if not any(member.name == host and member.profile == OURS for member in members):
            return
        for number, work in enumerate(works):
            if not work.check and not work.verifier and work.assign != host:
                what = f"is missing: {host!r} accepts only what a check or a verifier has shown to hold"
                raise Wrong(self.path, self._line("work", number), "work.check", what)

    def _rows(self, name: str, found: dict[str, Any]) -> list[Any]:
        rows = found.get(name, [])
        if not isinstance(rows, list):
            raise Wrong(self.path, self._line(name), name, f"write [[{name}]], with two brackets: there may be several")
        return rows

    def _table(self, name: str, row: object, number: int) -> dict[str, Any]:
        several, fields = TABLES[name]
        if not isinstance(row, dict):
            shown = f"[[{name}]]" if several else f"[{name}]"
            needs = " and ".join(field.name for field in fields if field.required)
            raise Wrong(self.path, 1, name, f"write a table {shown} with {needs}")
        known = {field.name: field for field in fields}
        for key in row:
            if key not in known:
                line = self._line(name, number, key)
                raise Wrong(self.path, line, f"{name}.{key}", f"no such field; use {_all(known)}")
        for field in fields:
            self._field(name, number, field, row)
        one, other = EITHER.get(name, ("", ""))
        if one in row and other in row:
            line = self._line(name, number, other)
            raise Wrong(self.path, line, f"{name}.{other}", f"stands beside {one}; take one of them away")
        return row

    def _field(self, name: str, number: int, field: Field, row: dict[str, Any]) -> None:
        where, value = f"{name}.{field.name}", row.get(field.name)
        if value is None:
            if field.required:
                raise Wrong(self.path, self._line(name, number), where, f"is missing: {field.help}")
            return
        line = self._line(name, number, field.name)
        if instead := _of_kind(field, value):
            raise Wrong(self.path, line, where, instead)
        if field.kind is str and field.required and not value.strip():
            raise Wrong(self.path, line, where, f"is empty: {field.help}")
        if field.choices and value not in field.choices:
            raise Wrong(self.path, line, where, f"use {_all(field.choices)}")
        if isinstance(value, list) and len(value) < field.least:
            raise Wrong(self.path, line, where, f"is empty: {field.help}")

    def _unlike(self, table: str, field: str, values: list[str], alike: Callable[[str], str] = str) -> None:
        same = [alike(value) for value in values]
        for number, value in enumerate(values):
            if same[number] in same[:number]:
                raise Wrong(self.path, self._line(table, number, field), f"{table}.{field}", f"{value!r} stands twice")

    def _names(self, team: dict[str, Any], members: list[Member], works: list[Work]) -> None:
        """Every name that is used is one that is there."""
        names, keys = [member.name for member in members], [work.key for work in works]
        if ME in names:
            line = self._line("member", names.index(ME), "name")
            raise Wrong(self.path, line, "member.name", f"{ME!r} is the person at this machine; name it otherwise")
        if team["host"] not in {ME, *names}:
            raise Wrong(self.path, self._line("team", 0, "host"), "team.host", f"use {_all([ME, *names])}")
        for number, work in enumerate(works):
            if work.assign and work.assign not in names:
                line = self._line("work", number, "assign")
                raise Wrong(self.path, line, "work.assign", f"there is no member {work.assign!r}; use {_all(names)}")
            if unknown := [name for name in work.claim if name not in names]:
                line = self._line("work", number, "claim")
                raise Wrong(self.path, line, "work.claim", f"there is no member {unknown[0]!r}; use {_all(names)}")
            if wrong := _no_checks(work.check):
                raise Wrong(self.path, self._line("work", number, "check"), "work.check", wrong)
            if work.verifier and work.verifier not in {*names} - {work.assign, *work.claim, team["host"]}:
                line = self._line("work", number, "verifier")
                raise Wrong(self.path, line, "work.verifier", _no_verifier(work, team["host"], names))
            for need in work.needs:
                if need not in keys or need == work.key:
                    line = self._line("work", number, "needs")
                    raise Wrong(self.path, line, "work.needs", f"there is no other work with the key {need!r}")

    def _ordered(self, works: list[Work]) -> list[Work]:
        left, done = list(works), list[Work]()
        placed: set[str] = set()
        while left:
            ready = [work for work in left if placed >= set(work.needs)]
            if not ready:
                raise self._circle(works, left)
            done += ready
            placed |= {work.key for work in ready}
            left = [work for work in left if work.key not in placed]
        return done

    def _circle(self, works: list[Work], left: list[Work]) -> Wrong:
        """Every Work of ``left`` needs another of ``left``: from one to the next one comes back."""
        by_key = {work.key: work for work in left}
        path = [left[0].key]
        while (need := next(key for key in by_key[path[-1]].needs if key in by_key)) not in path:
            path.append(need)
        circle = [*path[path.index(need) :], need]
        line = self._line("work", works.index(by_key[need]), "needs")
        return Wrong(self.path, line, "work.needs", f"they wait for each other: {' → '.join(circle)}")

    def _line(self, table: str, number: int = 0, field: str = "") -> int:
        """Where the ``number``-th table of that name begins, or the field in it; the first line when it is written in a
        way that this does not follow.
        """
        lines = self.text.splitlines()
        heads = [n for n, line in enumerate(lines) if re.match(rf"\s*\[\[?\s*{re.escape(table)}\s*\]", line)]
        if number >= len(heads):
            return 1
        begin = heads[number]
        for n in range(begin + 1, len(lines)) if field else ():
            if re.match(r"\s*\[", lines[n]):
                break
            if re.match(rf'\s*["\']?{re.escape(field)}["\']?\s*=', lines[n]):
                return n + 1
        return begin + 1


def _like(text: str, pattern: str = "") -> bool:
    """``$`` alone would let a line end pass behind it."""
    return bool(re.search((pattern or SAYS_IN_ONE_LINE) + r"(?!\n)", text))


def _no_checks(lines: list[str]) -> str:
    """Why these are no named checks, or nothing."""
    names = [named(line) for line in lines]
    for name, line in zip(names, lines, strict=True):
        if names.count(name) > 1:
            return f"{name!r} names two of them"
        if isinstance(wrong := read_check(line), str):
            return f"{name}: {wrong}"
    return ""


def _of_kind(field: Field, value: object) -> str:
    """What to write instead of a value that the field cannot have; empty where it can."""
    if field.kind is list:
        if not isinstance(value, list) or not all(isinstance(each, str) and _like(each) for each in value):
            return 'write a list of texts, each in one line, as ["one", "two"]'
        unlike = [each for each in value if not _like(each, field.item)]
        return f"{unlike[0]!r} is not right; it is {field.help}" if unlike else ""
    if field.kind is int:
        least, most = SOME_CYCLES.least or 0, SOME_CYCLES.most or 0
        fits = isinstance(value, int) and not isinstance(value, bool) and least <= value <= most
        return "" if fits else f"write a number from {least} to {most}, without quotes"
    return "" if isinstance(value, str) else "write a text in quotes"


def _no_verifier(work: Work, host: str, names: list[str]) -> str:
    others = [name for name in names if name not in {work.assign, *work.claim, host}]
    use = f"use {_all(others)}" if others else "add a member for it"
    if work.verifier not in names:
        return f"there is no member {work.verifier!r}; {use}"
    why = "accepts" if work.verifier == host else "may do it" if work.verifier in work.claim else "does it"
    return f"{work.verifier!r} {why}, and somebody else verifies; {use}"


def _tidy(work: Work) -> Work:
    """With the spaces that the node would store, so that it is found again there."""
    criteria = [each.strip() for each in work.criteria]
    return attrs.evolve(work, title=" ".join(work.title.split()), criteria=criteria)


def _all(words: Any) -> str:  # noqa: ANN401 — any iterable of names
    return ", ".join(words)
