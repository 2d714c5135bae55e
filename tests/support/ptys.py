"""A small pty table: a devpts of its own in a mount namespace of its own, so that the kernel says "no pty is left".

    home.start(command=[*few(1), *COMMAND])

Only what is started through ``few`` has it. Needs root: ``missing()`` says what else is missing, for ``pytest.skip``.
"""

from __future__ import annotations

import functools
import os
import subprocess

_MOUNTED = (
    'mount -t devpts -o "newinstance,max=$1,ptmxmode=666" devpts /dev/pts && mount --bind /dev/pts/ptmx /dev/ptmx'
)


def few(count: int) -> tuple[str, ...]:
    """The words before a command that give it, and all it starts, a table of that many ptys. It stays one process."""
    return ("unshare", "--mount", "sh", "-c", f'{_MOUNTED} && shift && exec "$@"', "sh", str(count))


@functools.cache
def missing() -> str | None:
    """Why a small pty table cannot be had here, or None if it can."""
    if os.geteuid() != 0:
        return "a pty table of its own takes a mount, and that takes root"
    try:
        subprocess.run([*few(1), "true"], capture_output=True, check=True)
    except OSError as problem:
        return f"no private mount namespace: {problem}"
    except subprocess.CalledProcessError as problem:
        return f"no pty table of its own: {problem.stderr.decode(errors='replace').strip()}"
    return None
