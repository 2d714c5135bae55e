"""The one entry module, under a name of our own: cleans the import path before anything of ours is imported.

A repository may have a ``client/`` folder, and a person may have ``PYTHONPATH=.`` set. Neither may change which
code ``firm`` runs.
"""

from __future__ import annotations

import os
import sys


def _clean_path() -> None:
    own = os.path.dirname(os.path.abspath(__file__))
    foreign = {os.getcwd()} if _has_folder() else set()
    foreign.update(os.path.abspath(entry or ".") for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep))
    sys.path[:] = [
        entry for entry in sys.path if (where := os.path.abspath(entry or ".")) == own or where not in foreign
    ]


def _has_folder() -> bool:
    """Whether the current folder still exists; where it was removed nothing can be imported from it."""
    try:
        os.getcwd()
    except OSError:
        return False
    return True


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
