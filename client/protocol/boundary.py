"""Boundaries: the moments at which a process of ours may be killed, each with a name. Tests end one there, or have it
stand still there while they end somebody else.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum


class Boundary(StrEnum):
    """In the order in which they are reached. Of an effect: recorded, done, settled, and what lies between."""

    AFTER_UNIT = "after-unit"
    BEFORE_COMMIT = "before-commit"
    AFTER_COMMIT = "after-commit"
    RESTORE = "restore"  # each step of one, while no daemon runs
    LAUNCH_PREPARED = "launch-prepared"
    LAUNCH_DONE = "launch-done"
    LAUNCH_RECORDED = "launch-recorded"
    LAUNCH_ADMITTED = "launch-admitted"
    LAUNCH_PROVEN = "launch-proven"
    LAUNCH_SETTLED = "launch-settled"
    EXIT_REPORTED = "exit-reported"
    DELIVER_PREPARED = "deliver-prepared"
    DELIVER_PASTED = "deliver-pasted"  # of a steer too
    DELIVER_READIED = "deliver-readied"  # after the keys that some programs want before Enter
    DELIVER_ENTERED = "deliver-entered"
    DELIVER_DONE = "deliver-done"
    DELIVER_SETTLED = "deliver-settled"
    DIALOG_ANSWERED = "dialog-answered"
    DIALOG_GONE = "dialog-gone"
    STEER_PREPARED = "steer-prepared"
    STEER_DONE = "steer-done"
    STEER_SETTLED = "steer-settled"
    INTERRUPT_PREPARED = "interrupt-prepared"
    INTERRUPT_DONE = "interrupt-done"
    STOP_PREPARED = "stop-prepared"
    STOP_DONE = "stop-done"
    ARCHIVE_PREPARED = "archive-prepared"
    ARCHIVE_ASIDE = "archive-aside"
    ARCHIVE_FORGOTTEN = "archive-forgotten"
    ARCHIVE_DONE = "archive-done"


Crash = Callable[[Boundary], None]


def no_crash(_: Boundary) -> None:
    """Production never stops at a boundary."""
