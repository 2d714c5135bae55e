"""``firm up``: the run that a team file describes, started and followed until every Work of it is closed, or
somebody takes it down.

Safe to repeat: the same file gives the same run. What the file says otherwise than the node is shown before it is
changed.
"""

from __future__ import annotations

import os
import shlex
import sys
from typing import Any

from client.cli import say
from client.cli.arguments import JSON, Field, listing
from client.cli.crew import Node, guarded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from client.cli.raising import Raising

FIELDS: tuple[Field, ...] = (
    ("file", "--file", "str", False, "team.toml", None, False, "file", "the team file"),
    ("detach", "--detach", "switch", False, None, None, False, "", "return at once; the run goes on"),
    (
        "yes",
        "--yes",
        "switch",
        False,
        None,
        None,
        False,
        "",
        "make the changes that the file asks for without a question",
    ),
    JSON,
)
#: What ``firm up --help`` says beside its arguments.
MORE = """

A team file is TOML like this; docs/how-to/write-a-team-file.md says all of it:

  [team]
  name = "core"
  host = "me"

  [[member]]
  name = "kiwi"

  [[work]]
  key = "hello"
  title = "Say hello"
  assign = "kiwi"
  criteria = ["hello.txt is there"]
  context = \"\"\"#!/bin/sh
  echo hello > hello.txt
  \"\"\""""
#: Team files that are named to whom has named none.
_NAMED = 3


def run(_: str, given: dict[str, object]) -> int:
    from client.team_file import Wrong, read

    as_json = bool(given.get("_json"))
    path = str(given.get("file", "team.toml"))
    try:
        with open(path, encoding="utf-8") as file:
            wanted = read(path, file.read())
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is not UTF-8"
        meaning = f"{path} cannot be read: {why}."
        return say.declined("FILE_UNUSABLE", path, meaning, _another(path), as_json=as_json)
    except Wrong as wrong:
        meaning, lifted_by = "The team file is not right.", f"correct {wrong}"
        return say.declined("USAGE", path, meaning, lifted_by, as_json=as_json)
    if status := _daemon(as_json=as_json):
        return status
    folder = os.path.dirname(os.path.abspath(path))
    return guarded(lambda: _up(wanted, folder, given, as_json=as_json), as_json=as_json)


def _another(path: str) -> str:
    """What to type instead of a path that is no team file: those beside it, or in it."""
    folder = path if os.path.isdir(path) else os.path.dirname(path)
    try:
        names = sorted(os.listdir(folder or "."))
    except OSError:  # no such folder: nothing is beside it
        names = []
    beside = [os.path.join(folder, name) for name in names if name.endswith(".toml")]
    found = [f"firm up {shlex.quote(file)}" for file in beside if _is_one(file)]
    if found:
        return f"name the team file: {listing(tuple(found[:_NAMED]))}"
    return "write a team file and name it: firm up FILE; what stands in one: firm up --help"


def _is_one(path: str) -> bool:
    try:
        with open(path, encoding="utf-8") as file:
            return any(line.partition("#")[0].strip() == "[team]" for line in file)
    except (OSError, UnicodeDecodeError):
        return False


def _daemon(*, as_json: bool) -> int:
    """Start it where none runs. For a program it says so only when it cannot: one command prints one object."""
    import contextlib
    import io

    from client.cli import ask as door
    from client.cli.by_hand import start

    try:
        door.Conversation("").close()
    except door.Unavailable:
        with (
            contextlib.redirect_stdout(io.TextIOWrapper(io.BytesIO(), "utf-8")) if as_json else contextlib.nullcontext()
        ):
            return start.run("start", {"_json": as_json})
    return 0


def _up(wanted: Any, folder: str, given: dict[str, object], *, as_json: bool) -> int:
    from client.cli.raising import Raising, usable

    node = Node()
    usable(node, wanted, folder)
    raising = Raising(node, wanted, folder, lambda text: None if as_json else say.out(f"  {text}"))
    again = f"firm up {shlex.quote(str(given.get('file', 'team.toml')))}"
    try:
        raising.look()
        if raising.differences and not _agreed(raising, given, as_json=as_json):
            lifted_by = f"look at them, then: {again} --yes"
            return say.declined("CONFIRMATION_REQUIRED", wanted.name, _asks(raising), lifted_by, as_json=as_json)
        return _raise(node, raising, given, as_json=as_json)
    except KeyboardInterrupt:
        going_on = ends = ""
        if raising.run is not None:
            going_on = f" Run {raising.run['id']} goes on."
            ends = f"; to look at it: firm board; to end it: firm down {raising.run['id']}"
        meaning = f"Interrupted; what was done stays.{going_on}"
        return say.declined("INTERRUPTED", wanted.name, meaning, f"to go on with it: {again}{ends}", as_json=as_json)


def _asks(raising: Raising) -> str:
    """What a file asks for, and what of it cannot be, in one line."""
    from client.cli.eyes.sheet import counted

    kept = raising.kept()
    also = f" Not changed by it: {'; '.join(kept)}." if kept else ""
    return f"The file asks for {counted(len(raising.differences), 'change')}: {'; '.join(raising.differences)}.{also}"


def _raise(node: Node, raising: Raising, given: dict[str, object], *, as_json: bool) -> int:
    from client.cli.following import End, follow, outcome

    wanted = raising.file
    raising.raise_all()
    run_id, kept = raising.run["id"], raising.kept()
    if not as_json:
        for what in kept:
            say.out(f"  not changed: {what}")
    if given.get("detach"):
        text = f"Run {run_id} of {wanted.name} goes on. Look: firm board, firm ps. End it: firm down {run_id}"
        works = {key: work["id"] for key, work in raising.works.items()}
        say.out(say.dumps({"run": run_id, "works": works, "not_changed": kept}) if as_json else text)
        return 0
    down = follow(node, run_id, quiet=as_json)
    end = End.of(node, run_id) if wanted.ends and not down else None
    return outcome(node, run_id, end, down=down, as_json=as_json)


def _agreed(raising: Raising, given: dict[str, object], *, as_json: bool) -> bool:
    if given.get("yes"):
        return True
    if as_json or not sys.stdin.isatty() or not sys.stdout.isatty():
        return False
    say.out("The file asks for these changes:")
    for what in raising.differences:
        say.out(f"  {what}")
    for what in raising.kept():
        say.out(f"  not changed: {what}")
    try:
        return input("Make them? [y/N] ").strip().lower() in {"y", "yes"}
    except EOFError:
        say.out("")
        return False
