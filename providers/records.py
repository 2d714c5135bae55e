"""What a program records of its own turns, a JSON object a line: what its provider told it, by rules over exact keys.

Nothing that a model wrote decides anything here: a rule names keys of maps, and their values whole. Text is never
searched, and what stands in a list, as the parts of a message do, is never entered.
"""

from __future__ import annotations

import io
import json
import os
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import attrs

from client.protocol.session import Capacity, Ending, Failure

#: Bytes that are read at a time: of more the last, since what came last counts.
MOST = 64 * 1024 * 1024
#: Bytes of one record.
LONGEST = 8 * 1024 * 1024
#: What a rule can say of how a turn ended; ``completed`` takes back what an earlier record of the turn said.
ENDINGS = frozenset({*(each.value for each in Failure), Ending.INTERRUPTED_BY_PROVIDER.value, Ending.COMPLETED.value})


@attrs.frozen(kw_only=True)
class Rule:
    """What a record says in which each of these keys has exactly this value. A key leads into maps with dots."""

    match: dict[str, Any]
    ending: str = ""
    capacity: Capacity | None = None

    @property
    def words(self) -> str:
        return "record " + ", ".join(f"{key}={json.dumps(value)}" for key, value in self.match.items())

    def fits(self, record: dict[str, Any]) -> bool:
        return all(_same(_at(record, key), value) for key, value in self.match.items())


@attrs.frozen(kw_only=True)
class Reading:
    """How far a file was read, and what that said since a cycle began: the last of each. ``unparsed`` are lines that
    are no record.
    """

    path: Path
    offset: int
    ending: str = ""
    capacity: Capacity | None = None
    source: str = ""
    unparsed: int = 0

    @property
    def failure(self) -> Failure | None:
        return Failure(self.ending) if self.ending in set(Failure) else None


def wrong(rule: Rule) -> str:
    """Why a rule cannot be used, or an empty string."""
    if not rule.match or not all(type(value) in {str, int, bool} for value in rule.match.values()):
        return "records.match names keys, each with a text, a number or true or false"
    if rule.ending and rule.ending not in ENDINGS:
        return f"records.ending can be {', '.join(sorted(ENDINGS))}"
    if not rule.ending and rule.capacity is None:
        return "a rule of records says an ending, a capacity or both"
    return ""


def at_end(path: Path) -> Reading:
    """Where the whole records of a file end now; what is still being written comes later."""
    with _opened(path) as file:
        size = file.seek(0, io.SEEK_END)
        start = file.seek(max(0, size - LONGEST))
        return Reading(path=path, offset=start + file.read(size - start).rfind(b"\n") + 1)


def further(reading: Reading, rules: Sequence[Rule]) -> Reading:
    """Read what was written since. A last line without its end is read again next time. A file that is shorter than it
    was is another one, and what stands in it is not of this cycle.
    """
    with _opened(reading.path) as file:
        size = file.seek(0, io.SEEK_END)
        if size < reading.offset:
            return attrs.evolve(reading, offset=size)
        start = file.seek(max(reading.offset, size - MOST))
        if start > reading.offset:
            start += len(_line(file)[0])
        return _read(file, attrs.evolve(reading, offset=start), rules)


def _read(file: io.BufferedIOBase, reading: Reading, rules: Sequence[Rule]) -> Reading:
    while True:
        line, length = _line(file)
        if not line.endswith(b"\n"):
            return reading
        reading = attrs.evolve(reading, offset=reading.offset + length)
        if not line.strip():
            continue
        record = _record(line) if length == len(line) else None
        if record is None:
            reading = attrs.evolve(reading, unparsed=reading.unparsed + 1)
        elif rule := next((each for each in rules if each.fits(record)), None):
            reading = _said(reading, rule)


def _said(reading: Reading, rule: Rule) -> Reading:
    reading = attrs.evolve(reading, ending=rule.ending or reading.ending)
    if rule.capacity is None:
        return reading
    return attrs.evolve(reading, capacity=rule.capacity, source=rule.words)


def _line(file: io.BufferedIOBase) -> tuple[bytes, int]:
    """The next line and its length; of one that is too long only the end, which is no record."""
    line = file.readline(LONGEST)
    length = len(line)
    while line and not line.endswith(b"\n"):
        more = file.readline(LONGEST)
        if not more:
            break
        line, length = more, length + len(more)
    return line, length


def _record(line: bytes) -> dict[str, Any] | None:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _at(record: dict[str, Any], key: str) -> object:
    found: Any = record
    for name in key.split("."):
        if not isinstance(found, dict) or name not in found:
            return None
        found = found[name]
    return found


def _same(found: object, wanted: object) -> bool:
    return type(found) is type(wanted) and found == wanted


def _opened(path: Path) -> io.BufferedIOBase:
    """The file, or an empty one where there is none yet. Raises ``OSError``; a pipe or a device is none of ours."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return io.BytesIO()
    file = open(fd, "rb")  # noqa: PTH123, SIM115 — a descriptor, and its reader closes it
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        file.close()
        raise OSError(f"{path} is no file")
    return file
