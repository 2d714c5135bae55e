"""``firm node restore FILE``: hands the work to the daemon's own code, which alone opens a database."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys

from client import paths


def run(_: str, arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(
        "firm node restore",
        description="Put a backup in the place of the database. The daemon must be stopped. The former database is "
        "kept beside it; every generation is raised above any ever issued; cursors given out before are refused.",
    )
    parser.add_argument("file", help="a file that firm node backup made")
    file = os.path.abspath(parser.parse_args(arguments).file)
    done = subprocess.run(
        [sys.executable, "-I", "-m", "daemon", "restore", file],
        env={**os.environ, "FIRM_HOME": paths.home()},
        cwd="/",
        check=False,
    )
    return done.returncode
