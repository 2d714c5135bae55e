"""``firm up``: the run that a team file describes, started and followed until every Work of it is closed.

Safe to repeat: the same file gives the same run. What the file says otherwise than the node is shown before it is
changed.
"""

from __future__ import annotations

import os
import shlex
import sys
from typing import Any

from client.cli import say
from client.cli.arguments import JSON, Field
from client.cli.crew import Node, guarded

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


def run(_: str, given: dict[str, object]) -> int:
    from client.team_file import Wrong, read

    as_json = bool(given.get("_json"))
    path = str(given.get("file", "team.toml"))
    try:
        with open(path, encoding="utf-8") as file:
            wanted = read(path, file.read())
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is not UTF-8"
        meaning, lifted_by = f"{path} cannot be read: {why}.", "name the team file: firm up FILE"
        return say.declined("FILE_UNUSABLE", path, meaning, lifted_by, as_json=as_json)
    except Wrong as wrong:
        meaning, lifted_by = "The team file is not right.", f"correct {wrong}"
        return say.declined("USAGE", path, meaning, lifted_by, as_json=as_json)
    if status := _daemon(as_json=as_json):
        return status
    folder = os.path.dirname(os.path.abspath(path))
    return guarded(lambda: _up(wanted, folder, given, as_json=as_json), as_json=as_json)


def _daemon(*, as_json: bool) -> int:
    """Start it where none runs. For a program it says so only when it cannot: one command prints one object."""
    import contextlib
    import io

    from client.cli import ask as door
    from client.cli.by_hand import start

    home = Node().home
    try:
        door.Conversation(home, "").close()
    except door.Unavailable:
        with (
            contextlib.redirect_stdout(io.TextIOWrapper(io.BytesIO(), "utf-8")) if as_json else contextlib.nullcontext()
        ):
            return start.run("start", {"_json": as_json})
    return 0


def _up(wanted: Any, folder: str, given: dict[str, object], *, as_json: bool) -> int:
    from client.cli.following import End, follow, outcome
    from client.cli.raising import Raising, apart

    node = Node()
    apart(node, wanted, folder)
    raising = Raising(node, wanted, folder, lambda text: None if as_json else say.out(f"  {text}"))
    raising.look()
    if raising.differences and not _agreed(raising.differences, given, as_json=as_json):
        lifted_by = f"look at them, then: firm up {shlex.quote(str(given.get('file', 'team.toml')))} --yes"
        meaning = f"The file asks for {len(raising.differences)} changes: {'; '.join(raising.differences)}."
        return say.declined("CONFIRMATION_REQUIRED", wanted.name, meaning, lifted_by, as_json=as_json)
    raising.apply()
    raising.raise_all()
    run_id = raising.run["id"]
    if given.get("detach"):
        text = f"Run {run_id} of {wanted.name} goes on. Look: firm board, firm ps. End it: firm down {run_id}"
        say.out(
            say.dumps({"run": run_id, "works": {k: w["id"] for k, w in raising.works.items()}}) if as_json else text
        )
        return 0
    follow(node, run_id, quiet=as_json)
    return outcome(node, run_id, End.of(node, run_id) if wanted.ends else None, as_json=as_json)


def _agreed(differences: list[str], given: dict[str, object], *, as_json: bool) -> bool:
    if given.get("yes"):
        return True
    if as_json or not sys.stdin.isatty() or not sys.stdout.isatty():
        return False
    say.out("The file asks for these changes:")
    for what in differences:
        say.out(f"  {what}")
    return input("Make them? [y/N] ").strip().lower() in {"y", "yes"}
