"""The one entry module, under a name of our own: cleans the import path before anything of ours is imported.

A repository may have a ``client/`` folder, and a person may have ``PYTHONPATH=.`` set. Neither may change which
code ``firm`` runs.
"""

from __future__ import annotations

import os
import sys


def _clean_path() -> None:
    """Drops the current folder and PYTHONPATH, but for what the interpreter itself would look at."""
    if sys.flags.isolated:
        return  # the interpreter never added them
    own = os.path.dirname(os.path.abspath(__file__))
    site = sys.modules.get("site")
    kept = {own, os.path.dirname(os.__file__), *(site.getsitepackages() if site else ())}
    named = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    foreign = {_absolute(entry) for entry in ("", *named)} - kept
    sys.path[:] = [entry for entry in sys.path if _absolute(entry) not in foreign]


def _absolute(entry: str) -> str:
    """Empty where it leads on from a current folder that was removed: nothing can be imported from there."""
    try:
        return os.path.abspath(entry or ".")
    except FileNotFoundError:
        return ""


def cli() -> int:
    """``firm``."""
    _clean_path()
    from client.cli.main import main

    return main(sys.argv[1:])


def daemon() -> int:
    """``firm-daemon``."""
    _clean_path()
    from daemon.command import main

    return main(sys.argv[1:])
