"""``$EDITOR`` for a long text that a command needs and did not get, at a terminal.

What was written is kept in a file until the command is done with it: a refusal must not cost somebody their words.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile

from client import paths
from client.cli.arguments import LIMIT, Usage

_CUT = "# ---- what stands below this line is left out ----"
#: Files with what was written for this command.
_kept: list[str] = []


def program() -> str:
    """What opens, as a shell command; empty where nobody could use it."""
    if paths.MARK in os.environ or os.environ.get("TERM", "dumb") == "dumb":
        return ""  # a member is no person, and nobody would ever close the editor
    if not all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stdout)):
        return ""
    return os.environ.get("VISUAL") or os.environ.get("EDITOR") or ""


def written(opens: str, command: str, flag: str, about: str) -> str:
    """The text that a person writes for ``flag``. Raises ``Usage`` where there is none."""
    handle, path = tempfile.mkstemp(prefix="firm-", suffix=".md")
    _kept.append(path)
    with open(handle, "w", encoding="utf-8") as file:
        file.write(f"\n{_CUT}\n# {command} {flag}: {about}\n# An empty text sends nothing.\n")
    ended = subprocess.run(["/bin/sh", "-c", f'{opens} "$@"', opens, path], check=False).returncode
    if ended:
        raise Usage(f"the editor {opens} ended with {ended}", f"set EDITOR to one that runs, or give {flag} TEXT")
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read(LIMIT + 1).partition(_CUT)[0].strip()
    except (OSError, UnicodeDecodeError) as why:
        raise Usage(f"what the editor left cannot be read: {why}", f"write it again, or give {flag} TEXT") from None
    if not text:
        _kept.remove(path)
        _gone(path)
        raise Usage(f"{flag} is empty, so nothing was sent", f"write above the line, or give {flag} TEXT")
    return text


def settle(status: int) -> None:
    """The command has ended: its texts go with what it did, or stay and are named."""
    for path in _kept:
        if status == 0:
            _gone(path)
        else:
            print(f"  What you wrote is kept: {path}", file=sys.stderr)
    _kept.clear()


def _gone(path: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
