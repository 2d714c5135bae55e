"""A page of Markdown as a dialogue: commands typed into real shells, and the answers that stand below them.

In blocks marked ``console`` a line ``NAME$ COMMAND`` is typed in the shell of that name; it goes on over lines that end
in a backslash. All other lines there are answers. Ids and other things that differ from run to run stand as names, such
as ``<work-1>``, in commands and answers alike.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator, Mapping

import attrs

from tests.support.bound import Operator, OwnShell

_COMMAND = re.compile(r"([a-z]+)\$ (.*)", re.DOTALL)
_NAMED = re.compile(r"<[a-z]+(?:-\d+)?>")
_TIME = r"(?:now|\d+ (?:s|min|h) ago)"
#: What differs from run to run and is no id: how it looks, and what stands for it.
_CHANGING = (
    (re.compile(rf"\d{{4}}-\d\d-\d\d \d\d:\d\d:\d\d, {_TIME}"), "2026-01-31 14:05:09, now"),
    (re.compile(rf"(?<= ){_TIME} +(?=\S)"), "now   "),
    (re.compile(rf"(?<= ){_TIME}\b"), "now"),
    (re.compile(r"\b(when|changed) {2,}"), r"\1  "),
    (re.compile(r"(?<=--cursor )\S+"), "<cursor>"),
    (re.compile(r"^(pid|start_ticks)( +)\d+$", re.MULTILINE), r"\1\2<\1>"),
    (re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b"), "<boot>"),
)


@attrs.define
class Names:
    """Every id so far, and the name that stands for it: the noun, and which of its kind in the order of creation.

    ``pid`` is that of the shell that is bound; ``folders`` have their names from the start.
    """

    pid: int
    folders: Mapping[str, str]
    ids: dict[str, str] = attrs.Factory(dict)

    def learn(self, operator: Operator) -> None:
        """Look at all that was committed."""
        for event in operator.ask("event.list", limit=500)["items"]:
            noun, _, id_ = event["stream"].partition("/")
            self._add("run" if noun == "team-run" else noun, id_)
        for team in operator.ask("team.list")["items"]:
            self._add("node", team["node_id"])
        for run in operator.ask("team-run.list")["items"]:
            for message in operator.ask("message.list", team_run_id=run["id"])["items"]:
                self._add("message", message["id"])
                self._add("conversation", message["correlation_id"])
            for work in operator.ask("work.list", team_run_id=run["id"])["items"]:
                for receipt in operator.ask("work.receipts", work_id=work["id"])["items"]:
                    self._add("receipt", receipt["id"])

    def commit(self, sha: str) -> None:
        self._add("commit", sha)

    def _add(self, noun: str, id_: str) -> None:
        if id_ not in self.ids:
            number = 1 + sum(name.startswith(f"<{noun}-") for name in self.ids.values())
            self.ids[id_] = "<run>" if noun == "run" else f"<{noun}-{number}>"

    def real(self, command: str) -> str:
        """A command as it is typed."""
        found = {"<pid>": str(self.pid), **{name: id_ for id_, name in self.ids.items()}}
        return _NAMED.sub(lambda match: found[match[0]], command)

    def stable(self, said: str) -> str:
        """An answer as it stands on the page. Where there is room, what stands behind a name stays where it was."""
        for id_, name in {**self.ids, **self.folders}.items():
            pattern = re.compile(rf"(?<![\w-]){re.escape(id_)}(?![\w-])( {{2,}})?")
            said = pattern.sub(functools.partial(_instead, id_, name), said)
        for pattern, name in _CHANGING:
            said = pattern.sub(name, said)
        return "\n".join(line.rstrip() for line in said.splitlines())


def _instead(id_: str, name: str, match: re.Match[str]) -> str:
    return name + " " * max(len(id_) + len(match[1]) - len(name), 2) if match[1] else name


@attrs.frozen
class Played:
    """The page as it would be written now, and each command as it stood, with its answer and exit status."""

    page: str
    said: list[tuple[str, str, int]]


def play(page: str, shells: Mapping[str, OwnShell], names: Names, settle: Callable[[Names], None]) -> Played:
    """Type every command of a page, in order. ``settle`` returns once what a command set off has happened."""
    lines: list[str] = []
    said: list[tuple[str, str, int]] = []
    for kind, text in _parts(page):
        if kind == "prose":
            lines.append(text)
            continue
        match = _COMMAND.fullmatch(text)
        assert match is not None
        typed = shells[match[1]].types(names.real(match[2]))
        settle(names)
        answer = names.stable(typed.out)
        said.append((text, answer, typed.status))
        lines += [text, *([answer] if answer else [])]
    return Played("\n".join(lines) + "\n", said)


def _parts(page: str) -> Iterator[tuple[str, str]]:
    """Prose line by line, and commands; the answers are left out."""
    inside, command = False, ""
    for line in page.splitlines():
        if line.startswith("```"):
            inside = line == "```console"
            yield "prose", line
        elif not inside:
            yield "prose", line
        elif command or _COMMAND.fullmatch(line):
            command = f"{command}\n{line}" if command else line
            if not line.endswith("\\"):
                yield "command", command
                command = ""
