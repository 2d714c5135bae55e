"""The systemd user units, as the ``firm node`` commands see them."""

from __future__ import annotations

import os
import shutil
import subprocess

#: What `firm node install` writes; the first is the one to enable, both are started and stopped together.
UNITS = ("firm.socket", "firm.service")
#: Seconds in which a user manager answers a question, and in which it starts or stops the units: more than the
#: TimeoutStartSec, TimeoutStopSec and TimeoutAbortSec of firm.service.
_ANSWERS = 10
CHANGES = 150


def folder() -> str:
    """Where a person's own units live."""
    config = os.environ.get("XDG_CONFIG_HOME") or os.path.join(os.path.expanduser("~"), ".config")
    return os.path.join(config, "systemd", "user")


def installed(home: str) -> bool:
    """Whether the units are installed for this very FIRM_HOME and a user manager could start them."""
    return served() == home and reachable()


def served() -> str | None:
    """The FIRM_HOME of the units that are installed; None where there are none, empty where they are not ours."""
    try:
        with open(os.path.join(folder(), UNITS[1]), encoding="utf-8", errors="surrogateescape") as file:
            first = file.readline().rstrip("\n")
    except OSError:
        return None
    mark = home_line("")
    return first.removeprefix(mark) if first.startswith(mark) else ""


def home_line(home: str) -> str:
    """The first line of our units: which FIRM_HOME they serve."""
    return f"# FIRM_HOME: {home}"


def reachable() -> bool:
    """Whether a user manager answers."""
    if shutil.which("systemctl") is None or "XDG_RUNTIME_DIR" not in os.environ:
        return False
    return systemctl("show", "--property=Version").returncode == 0


def main_pid() -> int:
    """Of the daemon that the units run; 0 where they run none."""
    return int(systemctl("show", "--value", "--property=MainPID", UNITS[1]).stdout or 0)


def systemctl(*arguments: str, within: float = _ANSWERS) -> subprocess.CompletedProcess[str]:
    """A user manager that hangs is one that refuses: 124, as ``timeout`` says it, and why on standard error."""
    command = ["systemctl", "--user", *arguments]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=within)
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(command, 124, "", f"the user manager did not answer within {within:.0f} s")
