"""The daemon's own command line: ``run``, ``supervise RUN`` and ``restore FILE``. People use ``firm node`` instead."""

from __future__ import annotations

import sys
from pathlib import Path

from client import paths
from client.protocol.team_run import LEASE
from daemon import apart, instance
from daemon import main as daemon_main
from daemon.cannot_start import CannotStart, StartCode
from daemon.config import from_environment
from store.maintenance import BadBackup, Unusable, restore
from store.migrate import NotOurs, TooNew

USAGE = "usage: firm-daemon [run | supervise RUN [LEASE SECONDS, at most 60] | restore FILE]"
#: Milliseconds of the longest lease.
_LONGEST = LEASE.most or 0


def main(arguments: list[str]) -> int:
    try:
        return _main(arguments)
    except paths.NoHome as none:
        print(CannotStart(StartCode.HOME_UNUSABLE, none.meaning.removesuffix("."), none.lifted_by), file=sys.stderr)
        return 1


def _main(arguments: list[str]) -> int:
    match arguments:
        case [] | ["run"]:
            return daemon_main.run()
        case ["supervise", run_id]:
            return apart.run(run_id)
        case ["supervise", run_id, seconds] if seconds.isdecimal() and 0 < int(seconds) * 1000 <= _LONGEST:
            return apart.run(run_id, int(seconds))
        case ["restore", file]:
            return _restore(Path(file).absolute())
        case _:
            print(USAGE, file=sys.stderr)
            return 2


def _restore(file: Path) -> int:
    config = from_environment()
    try:
        instance.prepare_home(config.home)
        lock = instance.take_lock(config.home)
        row = restore(config.database, file, crash=daemon_main.crash_at(config.crash_at))
    except CannotStart as refusal:
        print(refusal, file=sys.stderr)
        return 1
    except Unusable as error:
        return _refuse(file, str(error), error.lifted_by)
    except NotOurs:
        return _refuse(file, "it is a database of something else", _ANOTHER)
    except (BadBackup, TooNew) as error:
        return _refuse(file, str(error), _ANOTHER)
    print(f"restored {file}; store_id={row.store_id} generation_floor={row.generation_floor}")
    del lock
    return 0


_ANOTHER = "choose a file that firm node backup of this firm, or of an older one, has made"


def _refuse(file: Path, why: str, lifted_by: str) -> int:
    print(f"FILE_UNUSABLE: {file} cannot be restored: {why}. Nothing was changed.", file=sys.stderr)
    print(f"  To lift it: {lifted_by}.", file=sys.stderr)
    return 1
