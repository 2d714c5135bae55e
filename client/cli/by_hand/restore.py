"""``firm node restore FILE``: hands the work to the daemon's own code, which alone opens a database."""

from __future__ import annotations

import os
import subprocess
import sys

from client import paths
from client.cli import say
from client.cli.arguments import JSON, Field, absolute

FIELDS: tuple[Field, ...] = (
    ("file", "--file", "str", True, None, None, False, "file", "a file that firm node backup made"),
    JSON,
)


def run(_: str, given: dict[str, object]) -> int:
    as_json = bool(given.get("_json"))
    done = subprocess.run(
        [sys.executable, "-I", "-m", "daemon", "restore", absolute(str(given["file"]))],
        env={**os.environ, "FIRM_HOME": paths.home()},
        cwd="/",
        capture_output=True,
        text=True,
        check=False,
    )
    why = say.last_words(done.stderr) if done.returncode else None
    if why is not None:
        code, what, lifted_by = why
        return say.declined(code, "", what, lifted_by, as_json=as_json)
    if done.returncode:
        say.err(done.stderr.rstrip())
        return done.returncode
    if as_json:
        _, _, facts = done.stdout.strip().rpartition("; ")
        found = dict(fact.split("=", 1) for fact in facts.split())
        floor = int(found["generation_floor"])
        say.out(say.dumps({"restored": True, "store_id": found["store_id"], "generation_floor": floor}))
    else:
        say.out(done.stdout.strip())
    return 0
