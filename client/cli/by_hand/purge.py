"""``firm node purge``: what was said in a run that is over goes to a file, and then out of the database."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from client import check_logs
from client.cli import say
from client.cli.arguments import JSON, Field, absolute
from client.cli.crew import Node, Refused, guarded

_TO = "the file to make; it must not exist; firm-run-ID.json in the current folder when left out"
FIELDS: tuple[Field, ...] = (
    ("run", "--run", "str", True, None, None, False, "", "the run; it must be completed or cancelled"),
    ("to", "--to", "str", False, "", None, False, "file", _TO),
    JSON,
)


def run(_: str, given: dict[str, object]) -> int:
    as_json = bool(given.get("_json"))
    run_id = str(given["run"])
    target = Path(absolute(str(given.get("to") or f"firm-run-{run_id}.json")))
    return guarded(lambda: _purge(run_id, target, as_json=as_json), as_json=as_json)


def _purge(run_id: str, target: Path, *, as_json: bool) -> int:
    node = Node()
    found = node.ask("team-run.show", team_run_id=run_id)["run"]
    if found["purged_at"] is not None:
        return _say(found, None, as_json=as_json)
    exported = _export(node, run_id)
    try:
        _write(target, exported)
    except FileExistsError:
        meaning, lifted_by = "A file of that name exists and is not overwritten.", "choose another name: --to FILE"
        return say.declined("FILE_EXISTS", str(target), meaning, lifted_by, as_json=as_json)
    except OSError as error:
        meaning, lifted_by = f"The export cannot be written: {error.strerror}.", "choose another place: --to FILE"
        return say.declined("FILE_UNUSABLE", str(target), meaning, lifted_by, as_json=as_json)
    try:
        version, seq = exported["run"]["version"], exported["exported_seq"]
        found = node.ask("team-run.purge", team_run_id=run_id, expected_version=version, exported_seq=seq)
    except Refused as why:
        # Nothing was removed for sure, so the export stands for nothing; and the next try may have its name.
        if why.refusal["code"] in {"INVALID_STATE_TRANSITION", "ROW_QUARANTINED", "VERSION_CONFLICT"}:
            target.unlink()
        raise
    return _say(found, target, as_json=as_json)


def _say(found: Any, target: Path | None, *, as_json: bool) -> int:
    if as_json:
        say.out(say.dumps({"run": found, "export": None if target is None else str(target)}))
    elif target is None:
        say.out(f"run {found['id']} was purged before; there is nothing more to export or to remove")
    else:
        say.out(f"run {found['id']} is purged; what was said in it is in {target}")
    return 0


def _export(node: Node, run_id: str) -> dict[str, Any]:
    """Everything that is known of the run. Its events are read first: what comes later is found by their number."""
    shown = node.ask("team-run.show", team_run_id=run_id)
    events = {event["seq"]: event for event in _events(node, team_run_id=run_id)}
    last = max(events)
    works = [node.ask("work.show", work_id=w["id"]) for w in node.every("work.list", team_run_id=shown["run"]["id"])]
    for work in works:  # one that came from another run has events of there
        events |= {event["seq"]: event for event in _events(node, stream=f"work/{work['work']['id']}")}
    return {
        "run": shown["run"],
        "members": shown["members"],
        "works": works,
        "messages": node.every("message.list", team_run_id=run_id),
        "events": [events[seq] for seq in sorted(events)],
        "check_logs": _logs(check["log_digest"] for work in works for check in work["checks"]),
        "exported_seq": last,
    }


def _events(node: Node, **of: str) -> list[Any]:
    found: list[Any] = []
    cursor, before = "", None
    while cursor != before:
        page = node.ask("event.list", limit=500, cursor=cursor, **of)
        cursor, before = page["cursor"], cursor
        found += page["items"]
    return found


def _logs(digests: Iterable[str]) -> dict[str, str | None]:
    """What each check wrote; None where its log is not here any more."""
    folder = check_logs.folder(os.environ)
    texts = {digest: check_logs.whole(folder, digest) for digest in digests}
    return {digest: None if text is None else text.decode(errors="replace") for digest, text in texts.items()}


def _write(target: Path, exported: dict[str, Any]) -> None:
    """A whole file or none, on the disk, for its owner only. Raises ``OSError``."""
    handle, partial = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".partial", dir=target.parent)
    try:
        with open(handle, "w", encoding="utf-8") as file:
            json.dump(exported, file, ensure_ascii=False, indent=1)
            file.flush()
            os.fsync(file.fileno())
        os.link(partial, target)
    finally:
        with contextlib.suppress(OSError):  # whatever it is, the outcome is decided
            os.unlink(partial)
    folder = os.open(target.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
